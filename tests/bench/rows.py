"""The rows of the table: each yields name, measured value, bar, ok (None without a bar)."""

import contextlib
import os
import socket
import statistics
import subprocess
import time

from harness.queue import Queue
from rig import (BenchError, Daemon, Stamps, against, encode, own_cpu_ns, pss_bytes, spread, wait_for,
                 wakeups)

COMMAND = "/bin/true"


def at_least(values, bar):
    return f"≥ {bar:.2f}", statistics.median(values) >= bar


def at_most(values, bar, form="≤ {:g}"):
    return form.format(bar), statistics.median(values) <= bar


def _rate(span):
    return span.rate


def _cpu(span):
    return span.cpu_us


def backlog_run(rig, queue, concurrency, tasks, command=COMMAND):
    """A preloaded backlog from its first finished task to the last ack."""
    rig.server.drop(queue)
    rig.server.preload(queue, tasks, command)
    daemon = Daemon(rig, queue, concurrency)
    try:
        return rig.drain(daemon, 0)
    finally:
        daemon.stop()
        rig.server.drop(queue)


def load(rig, parallel, rate_bar, cpu_bar=None, with_xargs=False, redis_bar=None, program=None):
    """Throughput and cost at one concurrency, in alternation with the floor. program: started by its path,
    instead of COMMAND."""
    rig.need_leatd()
    tasks = 3_000 if rig.quick else 20_000
    rounds = 3
    command, name = COMMAND, f"concurrency {parallel}"
    if program:
        command, name = str((rig.tools / program).resolve()), f"{name}, static"
    floors, leats, xargs = [rig.floor(parallel, tasks, command)], [], []
    for _ in range(rounds):
        leats.append(backlog_run(rig, "load", parallel, tasks, command))
        if with_xargs:
            xargs.append(rig.xargs(parallel, tasks))
        floors.append(rig.floor(parallel, tasks, command))

    rates = against(leats, floors, _rate)
    yield (f"{name}: the floor, tasks/s", spread([one.rate for one in floors], "{:.0f}"), "", None)
    yield (f"{name}: leat, tasks/s", spread([one.rate for one in leats], "{:.0f}"), "", None)
    yield (f"{name}: tasks/s to the floor's", spread(rates), *at_least(rates, rate_bar))
    costs = against(leats, floors, _cpu)
    yield (f"{name}: CPU per task to the floor's", spread(costs),
           *(at_most(costs, cpu_bar) if cpu_bar else ("", None)))
    if with_xargs:
        yield (f"{name}: xargs -P {parallel} to the floor's", spread(against(xargs, floors, _rate)),
               "", None)
    used = [one.redis_us for one in leats]
    yield (f"{name}: Redis's CPU per task, µs", spread(used, "{:.1f}"),
           *(at_most(used, redis_bar) if redis_bar else ("", None)))


def load8(rig):
    yield from load(rig, 8, 0.92, cpu_bar=1.10, with_xargs=True)


def load32(rig):
    """Under load: with this many slots a round trip finishes several tasks."""
    yield from load(rig, 32, 0.90, redis_bar=25)


def load2(rig):
    yield from load(rig, 2, 0.78, cpu_bar=1.18)


def load_static(rig):
    """Tasks that start in a fifth of the time, as if the host had more cores: leatd's one thread is the limit."""
    yield from load(rig, 8, 0.60, program="nothing")


def shell(rig):
    """The cost of a shell between leat and the program, to interpret the other rows."""
    tasks = 2_000 if rig.quick else 4_000
    floors = [rig.floor(8, tasks)]
    shells = []
    for _ in range(3):
        shells.append(rig.floor(8, tasks, "/bin/sh", "-c", COMMAND))
        floors.append(rig.floor(8, tasks))
    yield ("concurrency 8: the floor with sh -c, to the floor", spread(
        against(shells, floors, _rate)), "", None)


class Noted(Exception):
    """Holds a command that was not sent."""


class Notes:
    """In place of a client: returns the command that would be sent."""

    def execute_command(self, *words):
        raise Noted(*words)


def words_of(call):
    try:
        call()
    except Noted as noted:
        return noted.args
    raise BenchError("nothing would be sent")


def entry_id_in(answer):
    """The entry's id in the reply of a blocking read."""
    return next(part for part in answer.split(b"\r\n")
                if part.count(b"-") == 1 and part[:1].isdigit())


class Calls:
    """The calls of one worker for tasks that come one by one, made by hand and back to back: each waits for
    its reply and for nothing else, so that Redis's caches stay warm."""

    def __init__(self, rig, stream, read):
        self.rig, self.stream, self.read = rig, stream, encode(*read)
        self.entry = encode("XADD", stream, "*", "command", COMMAND)
        self.sockets = [socket.socket(socket.AF_UNIX) for _ in range(3)]
        self.producer, self.work, self.command = self.sockets
        for one in self.sockets:
            one.connect(rig.server.socket)

    def add(self):
        """Wakes the reader; returns the id that it read."""
        self.producer.sendall(self.entry)
        self.producer.recv(256)
        return entry_id_in(self.work.recv(4096))

    def block(self):
        self.work.sendall(self.read)

    def tell(self, *commands):
        """Returns the last call's reply, which is short."""
        self.command.sendall(b"".join(encode(*words) for words in commands))
        return self.command.recv(4096)

    def cpu_us(self, finish):
        """Redis's CPU for each task, from XADD on."""
        count = 2_000 if self.rig.quick else 10_000
        self.block()
        for number in range(-(count // 10), count):
            if number == 0:
                cpu = self.rig.server.cpu_s()
            finish(self.add())
        used = (self.rig.server.cpu_s() - cpu) / count * 1e6
        self.close()
        return used

    def close(self):
        for one in self.sockets:
            one.close()
        self.rig.server.drop(self.stream)


def bare_read(stream):
    return ("XREADGROUP", "GROUP", "bare", "one", "BLOCK", 0, "STREAMS", stream, ">")


def bare_calls(rig):
    """A blocking read, an ack and a delete: the minimum for a stream."""
    rig.server.client.xgroup_create("bare", "bare", "0", mkstream=True)
    calls = Calls(rig, "bare", bare_read("bare"))

    def finish(entry_id):
        calls.block()
        calls.tell(("XACK", "bare", "bare", entry_id), ("XDEL", "bare", entry_id))

    return calls, finish


def leat_calls(rig):
    """The calls of an idle worker with one slot for each task: the blocking read that delivers it, the claim
    that names it, the finish."""
    queue = Queue(rig.server.client, "warm").load(rig.library.read_bytes())
    queue.register("bench")
    told = Queue(Notes(), "warm")
    claim = words_of(lambda: told.claim("bench", 0, 0, named=["TOKEN"]))
    done = words_of(lambda: told.finish("bench", "TOKEN", duration=1_000))
    calls = Calls(rig, "warm", ("XREADGROUP", "GROUP", queue.group, "bench", "COUNT", 1, "BLOCK", 0,
                                "STREAMS", queue.go, queue.stream, ">", ">"))

    def finish(entry_id):
        token = b"s" + entry_id
        begun = calls.tell([token if word == "TOKEN" else word for word in claim])
        calls.block()
        ended = calls.tell([token if word == "TOKEN" else word for word in done])
        if token not in begun or b"ok" not in ended:
            raise BenchError("a task was not begun, or not finished")

    return calls, finish


def warm_us(made):
    calls, finish = made
    return calls.cpu_us(finish)


class Paced:
    """Tasks that come one by one with pauses, and Redis's CPU for each, without its idle CPU: each time it
    wakes up to cold caches."""

    def __init__(self, rig, stream, entry):
        self.rig, self.entry = rig, entry
        self.count = 300 if rig.quick else 700
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(rig.server.socket)
        self.stream = stream

    def run(self, wait_started):
        cpu, begun = self.rig.server.cpu_s(), time.monotonic()
        time.sleep(1 if self.rig.quick else 3)
        idle_share = (self.rig.server.cpu_s() - cpu) / (time.monotonic() - begun)

        cpu, begun = self.rig.server.cpu_s(), time.monotonic()
        for _ in range(self.count):
            self.connection.sendall(self.entry)
            self.connection.recv(256)
            wait_started()
            time.sleep(0.002)
        idle_s = idle_share * (time.monotonic() - begun)
        used = (self.rig.server.cpu_s() - cpu - idle_s) / self.count * 1e6
        self.connection.close()
        self.rig.server.drop(self.stream)
        return used


def bare_paced(rig):
    client = rig.server.client
    client.xgroup_create("bare", "bare", "0", mkstream=True)
    read = encode(*bare_read("bare"))
    with socket.socket(socket.AF_UNIX) as reader:
        reader.connect(rig.server.socket)
        reader.sendall(read)

        def finish():
            entry_id = entry_id_in(reader.recv(4096))
            time.sleep(0.001)
            reader.sendall(encode("XACK", "bare", "bare", entry_id)
                           + encode("XDEL", "bare", entry_id) + read)
            reader.recv(256)

        return Paced(rig, "bare", encode("XADD", "bare", "*", "command", COMMAND)).run(finish)


def leat_paced(rig):
    stamps = Stamps(rig)
    daemon = Daemon(rig, "single", 1)
    try:
        daemon.wait_idle()
        entry = encode("XADD", "single", "*", "command", " ".join(stamps.program))
        return Paced(rig, "single", entry).run(stamps.next_ns)
    finally:
        daemon.stop()
        stamps.close()


@contextlib.contextmanager
def on_one_core(pid):
    """Runs the process and this one on one core: if each waits for the other in turn, both then cost what
    they do. In a virtual machine, waking a sleeper on another core costs as much again."""
    pids = (0, pid)
    were = [os.sched_getaffinity(one) for one in pids]
    core = {min(were[0])}
    try:
        for one in pids:
            os.sched_setaffinity(one, core)
        yield
    finally:
        for one, cores in zip(pids, were):
            os.sched_setaffinity(one, cores)


def by_turns(rig):
    bare, leat = [], []
    for _ in range(5):
        bare.append(warm_us(bare_calls(rig)))
        leat.append(warm_us(leat_calls(rig)))
    return bare, leat


def redis1(rig):
    """Redis's own CPU for tasks that come one by one to an idle worker, XADD included."""
    with on_one_core(rig.server.process.pid):
        bare, leat = by_turns(rig)
    yield "one by one: Redis's CPU for a bare read and ack, µs", spread(bare, "{:.1f}"), "", None
    yield "one by one: Redis's CPU per task, µs", spread(leat, "{:.1f}"), *at_most(leat, 60)
    bare, leat = by_turns(rig)
    yield "the same, woken on another core: a bare read and ack, µs", spread(bare, "{:.1f}"), "", None
    yield "the same, woken on another core: per task, µs", spread(leat, "{:.1f}"), "", None


def slowlog_us(entries, *words):
    """The median time of the commands that begin so."""
    head = " ".join(words).encode().split()
    return statistics.median(one["duration"] for one in entries if one["command"].split()[:len(head)] == head)


def wait_turn():
    """Waits until the next of 20 tasks a second."""
    due = time.monotonic() + 0.05
    wait_for(lambda: time.monotonic() >= due, "the turn of the next task", pause_s=0.05)


def paced_calls(rig, pairs, least_us):
    """What SLOWLOG says of 20 tasks a second of each: commands that took at least so long."""
    client = rig.server.client
    client.config_set("slowlog-log-slower-than", least_us)
    client.slowlog_reset()
    for _ in range(100 if rig.quick else 300):
        for calls, finish in pairs:
            finish(calls.add())
            wait_turn()
    return client.slowlog_get(1_000_000)


def cold(rig):
    """Single calls, 20 tasks a second, so that Redis's caches are cold: by its SLOWLOG."""
    client, pairs = rig.server.client, (bare_calls(rig), leat_calls(rig))
    former = client.config_get("slowlog*")
    client.config_set("slowlog-max-len", 1_000_000)
    for calls, _ in pairs:
        calls.block()
    # the commands within a call are logged, too, which makes it slower: so the calls are measured without that
    entries, calls_only = paced_calls(rig, pairs, 0), paced_calls(rig, pairs, 15)
    for name, value in former.items():
        client.config_set(name, value)
    for calls, _ in pairs:
        calls.close()
    bare = sum(slowlog_us(entries, *words) for words in (("XACK", "bare"), ("XDEL", "bare")))
    claim, finished = (slowlog_us(calls_only, "FCALL", name) for name in ("leat_claim", "leat_finish"))
    within = sum(slowlog_us(entries, *words) for words in (
        ("HMGET", "{warm}:conf"), ("TIME",), ("EXISTS", "{warm}:lanes"), ("HGET", "{warm}:running"),
        ("XCLAIM", "warm"), ("HSET", "{warm}:running")))
    yield "20 tasks/s: a bare worker's XACK and XDEL, µs", f"{bare:.0f}", "", None
    yield "20 tasks/s: leat_claim, µs", f"{claim:.0f}", "≤ 90", claim <= 90
    yield "20 tasks/s: leat_claim to the commands within it", f"{claim / max(within, 1):.1f}", "", None
    yield "20 tasks/s: leat_finish, µs", f"{finished:.0f}", "", None


def redis1_paced(rig):
    """The same with the real daemon and a pause after each task."""
    rig.need_leatd()
    yield ("paced, cold caches: Redis's CPU, bare read and ack, µs", f"{bare_paced(rig):.1f}", "",
           None)
    yield "paced, cold caches: Redis's CPU per task, µs", f"{leat_paced(rig):.1f}", "", None


def idle(rig):
    """A daemon that has worked and is idle now."""
    rig.need_leatd()
    rig.server.preload("idle", 1_000, COMMAND)
    daemon = Daemon(rig, "idle", 8)
    seconds = 5 if rig.quick else 30
    try:
        daemon.wait_idle()
        time.sleep(1)
        sent, woken, cpu = rig.server.calls(), wakeups(daemon.pid), own_cpu_ns(daemon.pid)
        begun = time.monotonic()
        time.sleep(seconds)
        elapsed = time.monotonic() - begun
        woken = wakeups(daemon.pid) - woken
        cpu = (own_cpu_ns(daemon.pid) - cpu) / elapsed / 1e7
        sent = rig.server.calls() - sent
        pss = pss_bytes(daemon.pid) / 2**20
    finally:
        daemon.stop()
        rig.server.drop("idle")
    # a heartbeat or a scan is a timer and a reply: two wake-ups for each command; renewals come every lease/3
    # and scans every lease/4 of 60 s
    expected = int(elapsed / 20) + int(elapsed / 15) + 2
    yield (f"idle: wake-ups in {elapsed:.0f} s, of {sent} beats and scans", str(woken),
           f"≤ {2 * sent}, ≤ {expected} sent", woken <= 2 * sent and sent <= expected)
    yield "idle: CPU, %", f"{cpu:.4f}", *at_most([cpu], 0.1)
    yield "idle: PSS, MiB", f"{pss:.2f}", *at_most([pss], 4)


def heads(rig, few, tasks, rounds):
    """Runs of this many tasks at the head of a short stream, and of one with `many` entries, which exist
    already."""
    short, long = [], []

    def head(queue, total):
        rig.server.preload(queue, max(total - rig.server.left(queue), 0), COMMAND)
        daemon = Daemon(rig, queue, 8)
        try:
            return rig.drain(daemon, total - tasks)
        finally:
            daemon.stop()

    try:
        # in pairs, with alternating order
        for turn in range(rounds):
            for queue in ("few", "many") if turn % 2 == 0 else ("many", "few"):
                if queue == "few":
                    short.append(head("few", few + tasks))
                else:
                    long.append(head("many", rig.server.left("many")))
    finally:
        rig.server.drop("few")
        rig.server.drop("many")
    return short, long


def depth(rig):
    """The same number of tasks at the head of a short and of a long stream."""
    rig.need_leatd()
    tasks, rounds = (2_000, 3) if rig.quick else (5_000, 5)
    few, many = 1_000, 100_000 if rig.quick else 1_000_000
    rig.server.preload("many", many + rounds * (tasks + 1_000), COMMAND)
    short, long = heads(rig, few, tasks, rounds)
    ratios = [far.rate / near.rate for far, near in zip(long, short)]
    yield (f"tasks/s with {many:,} waiting to {few:,}", spread(ratios), *at_least(ratios, 0.95))


def renew(rig):
    """One renewal of 1,000 running leases, by the function itself."""
    client = rig.server.client
    queue = Queue(client, "renew").load(rig.library.read_bytes())
    queue.register("bench")
    rig.server.preload("renew", 1_000, COMMAND)
    tokens = []
    while len(tokens) < 1_000:
        tokens += [task.token for task in queue.begin("bench", 1_000 - len(tokens), len(tokens))]
    times = []
    for _ in range(20):
        client.config_resetstat()
        if queue.renew("bench", tokens)["lost"]:
            raise BenchError("leases were lost in the bench")
        times.append(client.info("commandstats")["cmdstat_fcall"]["usec"] / 1000)
    rig.server.drop("renew")
    yield "renewing 1,000 leases: ms of Redis", spread(times), *at_most(times, 5)


def enqueue(rig):
    """How fast the command enqueues tasks from a file."""
    rig.need_leatd()
    tasks = 20_000 if rig.quick else 200_000
    lines = rig.folder / "tasks"
    lines.write_text(f"{COMMAND}\n" * tasks)
    daemon = Daemon(rig, "enqueue", 1)
    try:
        # the daemon loads the functions
        daemon.wait_idle()
    finally:
        daemon.stop()
    begun = time.monotonic()
    subprocess.run([str(rig.leat), "-c", str(daemon.config), "enqueue", "--file", str(lines)],
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    seconds = time.monotonic() - begun
    if rig.server.left("enqueue") != tasks:
        raise BenchError("leat enqueue lost tasks")
    rig.server.drop("enqueue")
    yield "leat enqueue --file: tasks/s", f"{tasks / seconds:.0f}", "", None


BARE_LIBRARY = """#!lua name=bare
redis.register_function('bare_step', function(keys, args)
  local got = redis.call('XREADGROUP', 'GROUP', 'bare', 'one', 'COUNT', args[1], 'STREAMS', keys[1], '>')
  local ids = {}
  for i, entry in ipairs(got and got[1][2] or {}) do
    ids[i] = entry[1]
  end
  if #ids > 0 then
    redis.call('XACK', keys[1], 'bare', unpack(ids))
    redis.call('XDEL', keys[1], unpack(ids))
  end
  return #ids
end)
"""


def bare_batches(rig, tasks, size):
    """Tasks per second that Redis itself reads, acks and deletes, this many in one call of a function."""
    client = rig.server.client
    client.execute_command("FUNCTION", "LOAD", "REPLACE", BARE_LIBRARY)
    rig.server.preload("bare", tasks, "x" * 20, "payload")
    client.xgroup_create("bare", "bare", "0")
    step = encode("FCALL", "bare_step", 1, "bare", size)
    begun = time.monotonic()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(rig.server.socket)
        answer = None
        while answer != b":0\r\n":
            connection.sendall(step)
            answer = connection.recv(256)
    rate = tasks / (time.monotonic() - begun)
    rig.server.drop("bare")
    return rate


def leat_batches(rig, tasks, size):
    rig.server.preload("batch", tasks, "x" * 20, "payload")
    daemon = Daemon(rig, "batch", 8, f"[output]\nto = discard\n[task]\ncommand = /bin/cat\nbatch = {size}")
    try:
        return rig.drain(daemon, 0)
    finally:
        daemon.stop()
        rig.server.drop("batch")


def batch(rig):
    """100 tasks for one process, compared with one process for each, and with Redis alone."""
    rig.need_leatd()
    size, tasks = 100, 30_000 if rig.quick else 200_000
    starts = 3_000 if rig.quick else 10_000
    floors, leats, bare = [rig.floor(2, starts)], [], []
    for _ in range(3):
        bare.append(bare_batches(rig, tasks, size))
        leats.append(leat_batches(rig, tasks, size))
        floors.append(rig.floor(2, starts))
    to_floor = against(leats, floors, _rate)
    to_bare = [one.rate / most for one, most in zip(leats, bare)]
    fine = statistics.median(to_floor) >= 20 or statistics.median(to_bare) >= 0.4
    yield "batches of 100: the floor, tasks/s", spread([one.rate for one in floors], "{:.0f}"), "", None
    yield "batches of 100: bare Lua, tasks/s", spread(bare, "{:.0f}"), "", None
    yield "batches of 100: leat, tasks/s", spread([one.rate for one in leats], "{:.0f}"), "", None
    yield "batches of 100: Redis's CPU per task, µs", spread(
        [one.redis_us for one in leats], "{:.1f}"), "", None
    yield "batches of 100: the floor's CPU per task to leat's", spread(
        [1 / one for one in against(leats, floors, _cpu)], "{:.1f}"), "", None
    yield "batches of 100: tasks/s to the floor's", spread(to_floor), "≥ 20, or", fine
    yield "batches of 100: tasks/s to bare Lua's", spread(to_bare), "≥ 0.4", fine


ROWS = {
    "load8": load8, "load32": load32, "load2": load2, "load_static": load_static, "shell": shell,
    "redis1": redis1, "cold": cold, "redis1_paced": redis1_paced, "idle": idle, "depth": depth, "renew": renew,
    "enqueue": enqueue, "batch": batch,
}
