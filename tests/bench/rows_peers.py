"""Rows about other job queues, on the same Redis and in the same run: tasks that do nothing, from a backlog.
`make bench-peers` installs the peers; a row whose peer is missing says so."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import uuid

from rig import ENVIRONMENT, HERE, STALL_S, BenchError, Daemon, against, spread, wait_for
from rows import at_least

PEERS = HERE / "peers"
PYTHON = "/usr/bin/python3"  # which sees Debian's packages
IMPORT_MS, IMPORTS_BAR = 300, 50
MOST_S, QUICK_S = 10, 4  # how long a rate is measured, if so many tasks are there
THREADS = 10  # of Sidekiq, by default


class Missing(Exception):
    """The peer is not installed."""


class Peer:
    """A worker of another queue in a process group of its own, and its backlog."""

    def __init__(self, rig, argv, left, **env):
        """left(): how many tasks are not done."""
        self.left, self.log = left, rig.folder / f"{argv[0].rsplit('/', 1)[-1]}.log"
        self.process = subprocess.Popen(argv, env=dict(ENVIRONMENT, **env), cwd=PEERS, stdin=subprocess.DEVNULL,
                                        stdout=open(self.log, "ab"), stderr=subprocess.STDOUT,
                                        start_new_session=True)

    def check(self):
        if self.process.poll() is not None:
            raise BenchError(f"the peer exited with {self.process.returncode}:\n{self.tail()}")

    def tail(self):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-10:])

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def rate(rig, worker, left):
    """Tasks per second from the first finished one to the last, or for some seconds. The wait between two looks
    is a small part of the time that is left."""
    total = left()
    wait_for(lambda: worker.check() or left() < total, f"a first finished task; the log ends:\n{worker.tail()}",
             STALL_S, 0.002)
    first, since = left(), time.monotonic()
    now_left, moved, most_s = first, since, QUICK_S if rig.quick else MOST_S
    while now_left > 0 and time.monotonic() - since < most_s:
        speed = (first - now_left) / max(time.monotonic() - since, 1e-3)
        time.sleep(min(max(now_left / (2 * speed + 1), 0.002), 0.25))
        worker.check()
        before, now_left = now_left, left()
        if now_left < before:
            moved = time.monotonic()
        elif time.monotonic() - moved > STALL_S:
            raise BenchError(f"stalled at {now_left} tasks; the log ends:\n{worker.tail()}")
    return (first - now_left) / (time.monotonic() - since)


# ---- leat

def handler_rate(rig, program, slots, tasks, in_hand=1):
    """Of a resident process in each slot."""
    rig.server.drop("peer")
    rig.server.preload("peer", tasks, "x", field="payload")
    daemon = Daemon(rig, "peer", slots, f"[task]\ncommand = exec {program}\nresident = yes\n"
                                        f"batch_format = json\nbatch = {in_hand}")
    try:
        return rate(rig, daemon, lambda: rig.server.left("peer"))
    finally:
        daemon.stop()
        rig.server.drop("peer")


# ---- Celery

def celery_version():
    done = subprocess.run([PYTHON, "-c", "import celery; print(celery.__version__)"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    if done.returncode != 0:
        raise Missing("Celery")
    return f"Celery {done.stdout.strip()}"


def celery_rate(rig, tasks):
    """Two processes, as Celery calls prefork. Its messages are copies of one that its own client has sent, with
    identities of their own."""
    client, url = rig.server.client, f"redis+socket://{rig.server.socket}"
    subprocess.run([PYTHON, "-B", "-c", "import celery_noop; celery_noop.noop.delay()"], cwd=PEERS, check=True,
                   env=dict(ENVIRONMENT, BROKER=url))
    message = json.loads(client.lpop("celery"))
    former, pipeline = message["headers"]["id"], client.pipeline(transaction=False)
    for i in range(tasks):
        message["properties"]["delivery_tag"] = str(uuid.uuid4())
        pipeline.lpush("celery", json.dumps(message).replace(former, str(uuid.uuid4())))
        if i % 1000 == 999 or i + 1 == tasks:
            pipeline.execute()

    def left():
        return client.llen("celery") + client.hlen("unacked")
    worker = Peer(rig, [PYTHON, "-B", "-m", "celery", "-A", "celery_noop", "worker", "-P", "prefork",
                        "-c", "2", "-l", "error", "--without-gossip", "--without-mingle",
                        "--without-heartbeat"], left, BROKER=url, C_FORCE_ROOT="1")
    try:
        return rate(rig, worker, left)
    finally:
        worker.stop()
        client.flushdb()


# ---- BullMQ

def bullmq_modules(rig):
    modules = rig.build.resolve() / "peers" / "node_modules"
    if not shutil.which("node") or not (modules / "bullmq").is_dir():
        raise Missing("BullMQ")
    return modules


def bullmq_version(rig):
    package = json.loads((bullmq_modules(rig) / "bullmq" / "package.json").read_text())
    return f"BullMQ {package['version']}"


def bullmq_rate(rig, tasks, at_once):
    client, words = rig.server.client, [shutil.which("node"), str(PEERS / "bullmq_noop.js"),
                                        str(bullmq_modules(rig)), rig.server.socket]
    subprocess.run([*words, "add", str(tasks)], check=True, stdout=subprocess.DEVNULL)

    def left():
        return client.llen("bull:noop:wait") + client.llen("bull:noop:active")
    worker = Peer(rig, [*words, "work", str(at_once)], left)
    try:
        return rate(rig, worker, left)
    finally:
        worker.stop()
        client.flushdb()


# ---- Sidekiq

def sidekiq_version():
    if not shutil.which("sidekiq"):
        raise Missing("Sidekiq")
    said = subprocess.run(["sidekiq", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return said.strip()


def sidekiq_rate(rig, tasks):
    client, pipeline = rig.server.client, rig.server.client.pipeline(transaction=False)
    for i in range(tasks):
        job = {"class": "Noop", "args": [], "retry": True, "queue": "default", "jid": f"{i:024x}",
               "created_at": time.time(), "enqueued_at": time.time()}
        pipeline.lpush("queue:default", json.dumps(job))
        if i % 1000 == 999 or i + 1 == tasks:
            pipeline.execute()
    worker = Peer(rig, [shutil.which("sidekiq"), "-r", "./sidekiq_noop.rb", "-c", str(THREADS), "-q", "default"],
                  lambda: client.llen("queue:default"), REDIS_URL=f"unix://{rig.server.socket}")
    try:
        return rate(rig, worker, worker.left)
    finally:
        worker.stop()
        client.flushdb()


# ---- rows

def alternate(name, ours, theirs, peer, bar, rounds):
    """Our rate and the peer's in turn."""
    peers, mine = [theirs()], []
    for _ in range(rounds):
        mine.append(ours())
        peers.append(theirs())
    rates = against(mine, peers, float)
    yield f"{name}: tasks/s", spread(mine, "{:.0f}"), "", None
    yield f"{peer}: tasks/s", spread(peers, "{:.0f}"), "", None
    yield f"{name} to {peer}", spread(rates), *at_least(rates, bar)


def against_peer(language, find, make):
    """Yields the rows that make(name of the peer) yields, or that the peer is missing."""
    try:
        yield from make(find())
    except Missing as missing:
        yield f"resident {language} handler to {missing}", "missing: make bench-peers", "", None


def peers(rig):
    """No-op tasks of resident handlers, against queues of the same language."""
    rig.need_leatd()
    tasks, rounds = (4_000, 1) if rig.quick else (20_000, 3)
    python, ruby = f"{PYTHON} {PEERS}/handler.py", f"{shutil.which('ruby')} {PEERS}/handler.rb"
    node = f"{shutil.which('node')} {PEERS}/handler.js"

    def of_celery(version):
        yield from alternate("resident Python handler, 2 processes", lambda: handler_rate(rig, python, 2, tasks),
                             lambda: celery_rate(rig, tasks), f"{version}, prefork, 2 processes", 2, rounds)

    def of_bullmq(version):
        for at_once in (1, 16):
            yield from alternate(f"resident Node handler, 1 process, {at_once} at a time",
                                 lambda n=at_once: handler_rate(rig, node, 1, tasks, n),
                                 lambda n=at_once: bullmq_rate(rig, tasks, n),
                                 f"{version}, 1 process, {at_once} at a time", 1, rounds)

    def of_sidekiq(version):
        for in_hand in (1, THREADS):
            yield from alternate(f"resident Ruby handler, 1 process, {in_hand} in hand",
                                 lambda n=in_hand: handler_rate(rig, ruby, 1, tasks, n),
                                 lambda: sidekiq_rate(rig, tasks), f"{version}, {THREADS} threads", 1, rounds)

    yield from against_peer("Python", celery_version, of_celery)
    yield from against_peer("Node", lambda: bullmq_version(rig), of_bullmq)
    yield from against_peer("Ruby", sidekiq_version, of_sidekiq)


def imports(rig):
    """A handler with slow imports, from the start of the daemon on, against a process for each task."""
    rig.need_leatd()
    command = f"{PYTHON} {PEERS}/handler.py {IMPORT_MS}"
    few, many = (10, 1_000) if rig.quick else (40, 2_000)
    rates = {}
    for name, tasks, resident in (("a process each", few, "no"), ("resident", many, "yes")):
        program = f"exec {command}" if resident == "yes" else f"exec {command} 3>/dev/null </dev/null"
        rig.server.drop("imports")
        rig.server.preload("imports", tasks, "x", field="payload")
        since = time.monotonic()
        daemon = Daemon(rig, "imports", 2, f"[task]\ncommand = {program}\nresident = {resident}\n"
                                           "batch_format = json")
        try:
            wait_for(lambda: daemon.check() or rig.server.left("imports") == 0, "all tasks", 120, 0.01)
            rates[name] = tasks / (time.monotonic() - since)
        finally:
            daemon.stop()
            rig.server.drop("imports")
        yield f"imports of {IMPORT_MS} ms, {tasks} tasks, {name}: tasks/s", f"{rates[name]:.1f}", "", None
    ratio = [rates["resident"] / rates["a process each"]]
    yield f"imports of {IMPORT_MS} ms: resident to a process each", spread(ratio), *at_least(ratio, IMPORTS_BAR)


PEER_ROWS = {"peers": peers, "imports": imports}
