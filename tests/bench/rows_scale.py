"""Rows of `make bench-scale`: how much one machine, one daemon and one Redis carry."""

import resource
import statistics
import subprocess
import time

from harness.queue import Queue
from harness.short_leases import pass_time
from rig import (ENVIRONMENT, BenchError, Daemon, own_cpu_ns, pss_bytes, spread, wait_for)
from rows import COMMAND, at_least, at_most, heads

SLEEP = "/bin/sleep 3600"
HEARTBEAT_S = 20  # a third of the default lease
UNHEARD = "[output]\nto = discard\n[dead]\noutput_tail = 0\n"


def share(used_ns, seconds):
    """CPU time as percent of one core."""
    return used_ns / seconds / 1e7


class Meter:
    """CPU of Redis and of daemons, and Redis's calls, from its creation on."""

    def __init__(self, rig, pids=()):
        self.rig, self.pids = rig, list(pids)
        rig.server.client.config_resetstat()
        self.redis, self.own = own_cpu_ns(rig.server.process.pid), self._own()
        self.begun = time.monotonic()

    def _own(self):
        return sum(own_cpu_ns(pid) for pid in self.pids)

    def stop(self):
        self.seconds = time.monotonic() - self.begun
        self.redis = own_cpu_ns(self.rig.server.process.pid) - self.redis
        self.own = self._own() - self.own
        stats = self.rig.server.client.info("commandstats")
        found = [stats[name] for name in ("cmdstat_fcall", "cmdstat_fcall_ro") if name in stats]
        self.calls, self.usec = sum(one["calls"] for one in found), sum(one["usec"] for one in found)
        return self


class Renewals:
    """How long tasks went without a renewal, seen from outside, and how much of Redis each call took."""

    def __init__(self, client, queue, tasks, seconds):
        client.slowlog_reset()
        end = time.monotonic() + seconds
        self.oldest_s = 0
        while time.monotonic() < end:
            idle = client.xpending_range(queue, "leat", min="-", max="+", count=tasks,
                                         idle=HEARTBEAT_S * 900)
            self.oldest_s = max([self.oldest_s, *(row["time_since_delivered"] / 1000 for row in idle)])
            time.sleep(0.1)
        self.calls_ms = [row["duration"] / 1000 for row in client.slowlog_get(10_000)
                         if row["command"].startswith(b"FCALL leat_renew")]


def crowd(rig, queue, what, tasks, settings):
    """Sleeping tasks on one daemon: its memory for each, their renewals, and their end."""
    seconds = 10 if rig.quick else 45
    client = rig.server.client
    daemon = Daemon(rig, queue, tasks, "[shutdown]\ndrain = 1s\n" + settings)
    try:
        daemon.wait_idle()
        empty = pss_bytes(daemon.pid)
        rig.server.preload(queue, tasks, SLEEP)
        wait_for(lambda: daemon.check() or client.hlen("{%s}:running" % queue) >= tasks,
                 f"all run; the log ends:\n{daemon.tail()}", 300, 0.5)
        time.sleep(2)
        # until one renewal has passed, whose command is kept for the next
        meter = Meter(rig, [daemon.pid])
        time.sleep(seconds)
        meter.stop()
        held = (pss_bytes(daemon.pid) - empty) / tasks
        client.config_set("slowlog-log-slower-than", "0")
        client.config_set("slowlog-max-len", "10000")
        renewals = Renewals(client, queue, tasks, 2.25 * HEARTBEAT_S)
        lost = daemon.log.read_text(errors="replace").count("lease-lost")
        mark, begun = own_cpu_ns(daemon.pid), time.monotonic()
        daemon.process.terminate()
        while daemon.process.poll() is None:
            try:
                stopping = own_cpu_ns(daemon.pid) - mark
            except OSError:
                break
            time.sleep(0.05)
        daemon.process.wait()
        took = time.monotonic() - begun
        handed = daemon.log.read_text(errors="replace").count("cause=shutdown")
    finally:
        daemon.stop()
        rig.server.drop(queue)
        client.config_set("slowlog-log-slower-than", "10000")
    yield f"{what}: memory of leatd per task, KiB", f"{held / 1024:.2f}", *at_most([held / 1024], 4)
    yield f"{what}: leases lost", str(lost), "0", lost == 0
    # nothing is in danger until half of the lease is over
    yield (f"{what}: s without a renewal, of 60 s", f"{renewals.oldest_s:.1f}", f"{HEARTBEAT_S * 3 / 2:.0f}",
           HEARTBEAT_S / 2 < renewals.oldest_s <= HEARTBEAT_S * 3 / 2)
    if renewals.calls_ms:
        yield f"{what}: ms of Redis for a call that renews", spread(renewals.calls_ms, "{:.1f}"), "", None
    yield f"{what}: Redis, % of a core", f"{share(meter.redis, meter.seconds):.2f}", "", None
    yield f"{what}: leatd, % of a core", f"{share(meter.own, meter.seconds):.2f}", "", None
    yield f"{what}: leatd's CPU to stop each, µs", f"{stopping / tasks / 1000:.0f}", "", None
    yield f"{what}: handed back by the stop", f"{handed:,}", f"{tasks:,}", handed == tasks
    yield f"{what}: s that the stop took, drain of 1 s included", f"{took:.1f}", "", None


def running(rig):
    """The largest number of tasks on one daemon; also without pipes, if these need too many descriptors."""
    rig.need_leatd()
    most = 1_000 if rig.quick else 10_000
    # two pipes each, and the daemon's other descriptors
    room = (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 200) // 2
    piped = min(most, room)
    yield from crowd(rig, "running", f"{piped:,} running", piped, "")
    if piped < most:
        yield from crowd(rig, "unheard", f"{most:,} without pipes", most, UNHEARD)


class Fleet:
    """Many daemons of one queue, all idle."""

    def __init__(self, rig, count, queue):
        self.rig = rig
        self.first = Daemon(rig, queue, 2)
        more = [subprocess.Popen(
            [str(rig.leatd), "-c", str(self.first.config)],
            env=dict(ENVIRONMENT, RUNTIME_DIRECTORY=str(rig.folder / "state")),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(self.first.log, "ab"),
            start_new_session=True) for _ in range(count - 1)]
        self.processes = [self.first.process, *more]
        self.pids = [process.pid for process in self.processes]
        try:
            wait_for(lambda: self._blocked() >= count, "an idle fleet", 300, 0.2)
        except BenchError:
            self.stop()
            raise

    def _blocked(self):
        return sum(client["cmd"].startswith("xreadgroup") and "b" in client["flags"]
                   for client in self.rig.server.client.client_list())

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(60)
        self.rig.server.drop(self.first.queue)


def fleet(rig):
    """Idle daemons: the cost of their heartbeats and scans for Redis."""
    rig.need_leatd()
    count, seconds = (50, 20) if rig.quick else (500, 60)
    client = rig.server.client
    memory = client.info("memory")["used_memory"]
    meter = Meter(rig)
    time.sleep(5)
    alone = share(meter.stop().redis, meter.seconds)
    daemons = Fleet(rig, count, "fleet")
    try:
        time.sleep(20)  # the first heartbeats and scans are closer together
        meter = Meter(rig, daemons.pids)
        time.sleep(seconds)
        meter.stop()
        used = share(meter.redis, meter.seconds)
        held = (client.info("memory")["used_memory"] - memory) / count / 1024
        pss = sum(pss_bytes(pid) for pid in daemons.pids) / count / 2**20
    finally:
        daemons.stop()
    what = f"{count} idle daemons"
    yield f"{what}: Redis, % of a core (alone: {alone:.2f})", f"{used:.2f}", *at_most([used], 2)
    yield f"{what}: calls/s, and µs of Redis for each", \
        f"{meter.calls / meter.seconds:.0f}, {meter.usec / max(meter.calls, 1):.0f}", "", None
    yield f"{what}: each, % of a core", f"{share(meter.own, meter.seconds) / count:.3f}", "", None
    yield f"{what}: memory of each, MiB (PSS)", f"{pss:.2f}", "", None
    yield f"{what}: memory of Redis for each, KiB", f"{held:.1f}", "", None


def rate(rig):
    """A backlog under a rate, and fifty daemons that wait for its tokens."""
    rig.need_leatd()
    count, seconds, per_s = 50, 5 if rig.quick else 15, 100
    daemons = Fleet(rig, count, "rate")
    try:
        subprocess.run([str(rig.leat), "-c", str(daemons.first.config), "conf", "rate", f"{per_s}/s"],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        rig.server.preload("rate", per_s * (seconds + 10), COMMAND)
        time.sleep(2)
        before = rig.server.left("rate")
        meter = Meter(rig, daemons.pids)
        time.sleep(seconds)
        meter.stop()
        done = before - rig.server.left("rate")
    finally:
        daemons.stop()
    what = f"rate of {per_s}/s, {count} wait"
    kept = done / meter.seconds / per_s
    yield f"{what}: tasks/s to the rate", f"{kept:.2f}", "0.98–1.02", 0.98 <= kept <= 1.02
    yield f"{what}: calls for each token", f"{meter.calls / done:.1f}", *at_most([meter.calls / done], 8)
    yield f"{what}: Redis, % of a core", f"{share(meter.redis, meter.seconds):.2f}", "", None


def waiting(rig):
    """The same tasks from the head of a short and of a very long stream."""
    rig.need_leatd()
    few, many = 1_000, 200_000 if rig.quick else 10_000_000
    tasks, rounds = (2_000, 3) if rig.quick else (10_000, 5)
    client = rig.server.client
    memory = client.info("memory")["used_memory"]
    rig.server.preload("many", many + rounds * tasks, COMMAND)
    each = (client.info("memory")["used_memory"] - memory) / (many + rounds * tasks)
    short, long = heads(rig, few, tasks, rounds)
    yield f"{many:,} waiting: bytes of Redis for each", f"{each:.0f}", "", None
    for name, figure, bar in (("tasks/s", lambda span: span.rate, True),
                              ("Redis's CPU per task", lambda span: span.redis_us, False)):
        ratios = [figure(far) / figure(near) for far, near in zip(long, short)]
        verdict = at_least(ratios, 0.95) if bar else ("", None)
        yield f"{many:,} waiting: {name} to that with {few:,}", spread(ratios), *verdict


def places(rig):
    """A claim of one task while very many wait beside the streams: in one lane, in many, delayed."""
    client = rig.server.client
    few, many = 1_000, 50_000 if rig.quick else 1_000_000
    kinds = {"in one lane": lambda number: {"lane": "a"},
             "in 1,000 lanes": lambda number: {"lane": f"lane {number % 1000}"},
             "delayed, beside a stream": lambda number: {"due": "+86400000"}}
    for name, fields in kinds.items():
        costs, each = [], 0
        for total in (few, many):
            queue = Queue(client, "places").load(rig.library.read_bytes())
            queue.register("bench")
            memory = client.info("memory")["used_memory"]
            for begin in range(0, total, 1_000):
                batch = [fields(number) for number in range(begin, begin + 1_000)]
                due = batch[0].pop("due", None)
                tasks = [{"command": COMMAND, **({} if due else more)} for more in batch]
                queue.add(*tasks, **({"due": due} if due else {}))
            each = (client.info("memory")["used_memory"] - memory) / total
            if due:
                rig.server.preload("places", 2_000, COMMAND)
            usec = []
            for _ in range(10):
                client.config_resetstat()
                begun = [task for _ in range(50) for task in queue.begin("bench")]
                usec.append(client.info("commandstats")["cmdstat_fcall"]["usec"] / 50)
                queue.finish_many("bench", [queue.result(task.token) for task in begun])
            costs.append(statistics.median(usec))
            rig.server.drop("places")
        yield f"{many:,} {name}: bytes of Redis for each", f"{each:.0f}", "", None
        yield (f"{many:,} {name}: a claim to that with {few:,}",
               f"{costs[1] / costs[0]:.2f} ({costs[1]:.0f} µs)", *at_most([costs[1] / costs[0]], 2))


def finish_all(queue, count, outcome, **texts):
    """Adds tasks, and ends an attempt of each. Returns their tids."""
    tids = []
    for _ in range(0, count, 1_000):
        tids += queue.add(*[{"command": COMMAND}] * 1_000)
        begun = queue.begin("bench", 1_000)
        for at in range(0, 1_000, 100):
            queue.finish_many("bench", [queue.result(task.token, outcome, **texts) for task in begun[at:at + 100]])
    return tids


def in_go(queue, count):
    """Tasks in the requeue stream. They are requeued after all of them were claimed."""
    tids, begun = [], []
    for _ in range(0, count, 1_000):
        tids += queue.add(*[{"command": COMMAND}] * 1_000)
        begun += queue.begin("bench", 1_000)
    for at in range(0, count, 100):
        queue.finish_many("bench", [queue.result(task.token, "release") for task in begun[at:at + 100]])
    return tids


def lookup(rig):
    """What a command costs that is about one task among very many, in lanes, requeued and dead."""
    client, unit = rig.server.client, 100 if rig.quick else 1
    queue = Queue(client, "lookup").load(rig.library.read_bytes())
    queue.register("bench")
    dead = finish_all(queue, 100_000 // unit, "dead", cause="exit", status="1")
    requeued = in_go(queue, 100_000 // unit)
    laned = []
    for _ in range(0, 1_000_000 // unit, 1_000):
        laned += queue.add(*[{"command": COMMAND, "lane": f"lane {number}"} for number in range(1_000)])
    commands = {"show, in a lane": (["show"], laned), "show, requeued": (["show"], requeued),
                "show, dead": (["show"], dead), "cancel, in a lane": (["cancel"], laned),
                "cancel, requeued": (["cancel"], requeued), "dead retry": (["dead", "retry"], dead)}
    for name, (words, tids) in commands.items():
        chosen = tids[len(tids) // 2:][:20]
        meter = Meter(rig)
        for tid in chosen:
            subprocess.run([rig.leat, "-q", "lookup", "--redis", f"unix://{rig.server.socket}", *words, tid],
                           check=True, stdout=subprocess.DEVNULL)
        each = meter.stop().redis / len(chosen) / 1e3
        yield f"{name}: CPU of Redis", f"{each:.0f} µs ({meter.usec / len(chosen):.0f} in functions)", *at_most(
            [each], 1_000)
    rig.server.drop("lookup")


def look(rig, name):
    """Asks the board for what its page shows of the queue. Returns whether it answered."""
    return subprocess.run(["curl", "-sf", "--unix-socket", rig.folder / "board.sock", "-o", "/dev/null",
                           f"http://localhost/api/queue?queue={name}"], check=False).returncode == 0


def start_board(rig, name):
    """Starts a leat-board for this queue, and waits until it answers."""
    etc = rig.folder / "etc"
    etc.mkdir()
    (etc / f"{name}.ini").write_text(f"[redis]\nsocket = {rig.server.socket}\n[queue]\nname = {name}\n")
    board = subprocess.Popen(
        [rig.leat.parent / "leat-board", "--no-token", "--listen", f"unix:{rig.folder}/board.sock"],
        env={**ENVIRONMENT, "LEAT_CONFIG_DIR": str(etc)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: look(rig, name), "the board")
    return board


def watched(rig, ask):
    """What Redis does in ten seconds in which somebody asks five times a second."""
    meter = Meter(rig)
    for _ in range(50):
        ask()
        pass_time(0.2)
    return meter.stop()


def seen(rig):
    """What leat explain and a page that somebody looks at cost Redis while very many tasks wait."""
    client, many = rig.server.client, 200_000 if rig.quick else 10_000_000
    queue = Queue(client, "seen").load(rig.library.read_bytes())
    queue.register("bench")
    rig.server.preload("seen", many, COMMAND)
    laned = queue.add(*[{"command": COMMAND, "lane": f"lane {number % 100}"} for number in range(10_000)])
    delayed = queue.add(*[{"command": COMMAND}] * 1_000, due="+86400000")
    ends = [int(client.xinfo_stream("seen")[end][0].split(b"-")[0]) for end in ("first-entry", "last-entry")]
    [(middle, _)] = client.xrange("seen", min=sum(ends) // 2, count=1)
    asked = {"a task in the stream": ["task", middle], "a task in a lane": ["task", laned[5_000]],
             "a delayed task": ["task", delayed[500]], "a lane": ["lane", "lane 7"], "the queue": ["queue", ""]}
    for name, words in asked.items():
        usec = []
        for _ in range(300):
            meter = Meter(rig)
            queue.call("explain", "leat", *words)
            usec.append(meter.stop().usec)
        yield f"{many:,} waiting: explain {name}, µs", spread(usec), *at_most(usec, 200)
    board = start_board(rig, "seen")
    try:
        costs, functions = [], []
        for _ in range(3):
            idle = watched(rig, lambda: None)
            busy = watched(rig, lambda: look(rig, "seen"))
            costs.append((busy.redis - idle.redis) / busy.seconds / 1e3)
            functions.append(busy.usec / busy.seconds)
        yield f"{many:,} waiting, seen: µs of Redis a second", spread(costs), *at_most(costs, 1_000)
        yield f"{many:,} waiting, seen: of these in functions", spread(functions), "", None
    finally:
        board.terminate()
        board.wait()
        rig.server.drop("seen")


SCALE_ROWS = {"running": running, "fleet": fleet, "rate": rate, "waiting": waiting, "places": places,
              "lookup": lookup, "seen": seen}
