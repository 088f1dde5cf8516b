"""Shared by the rows of the bench: a private Redis, the daemon, the C helpers, and meters."""

import os
import pathlib
import select
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

import redis

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
TICK = os.sysconf("SC_CLK_TCK")
STALL_S = 30  # without progress for this long, something is broken

# The environment of every measured program, so that the floor's exec copies as much as leat's.
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "SHELL": "/bin/sh",
    "PWD": "/",
    "HOME": "/root",
    "USER": "root",
    "LOGNAME": "root",
    "LANG": "C.UTF-8",
    "LEAT_QUEUE": "load",
    "LEAT_WORKER": "host:12345:01234567",
    "LEAT_DEADLINE": "1700000600.000",
    "LEAT_TASK": "1700000000000-0",
    "LEAT_ATTEMPT": "1",
    "LEAT_MAX_ATTEMPTS": "5",
    "LEAT_FENCE": "1",
    "LEAT_ENQUEUED_AT": "1700000000.000",
}


class BenchError(Exception):
    """The bench could not run."""


def wait_for(condition, what, deadline_s=10.0, pause_s=0.005):
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(pause_s)
    raise BenchError(f"waited {deadline_s:g} s in vain: {what}")


def process_cpu_s(pid):
    """CPU of a process and of the children that it has reaped."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    fields = stat.rsplit(")", 1)[1].split()
    return sum(int(value) for value in fields[11:15]) / TICK


def own_cpu_ns(pid):
    """CPU of all threads of a process, without its children."""
    tasks = pathlib.Path(f"/proc/{pid}/task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir())


def wakeups(pid):
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches:"):
                total += int(line.split()[1])
    return total


def pss_bytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise BenchError("smaps_rollup has no Pss")


def encode(*arguments):
    parts = [b"*%d\r\n" % len(arguments)]
    for argument in arguments:
        data = argument if isinstance(argument, bytes) else str(argument).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


class Server:
    """A private redis-server on a unix socket in a temporary folder, with all durability on."""

    def __init__(self, folder):
        self.socket = str(folder / "redis.sock")
        # without rewrites of the AOF, which would fall into some measurements
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", str(folder),
             "--appendonly", "yes", "--appendfsync", "everysec", "--save", "",
             "--auto-aof-rewrite-percentage", "0", "--maxmemory-policy", "noeviction"],
            stdin=subprocess.DEVNULL, stdout=open(folder / "redis.log", "wb"),
            stderr=subprocess.STDOUT)
        self.client = redis.Redis(unix_socket_path=self.socket)
        wait_for(self._answers, "redis-server")

    def _answers(self):
        try:
            return self.client.ping()
        except redis.ConnectionError:
            return False

    def cpu_s(self):
        cpu = self.client.info("cpu")
        return cpu["used_cpu_user"] + cpu["used_cpu_sys"]

    def calls(self):
        """How many functions were called."""
        return self.client.info("commandstats").get("cmdstat_fcall", {"calls": 0})["calls"]

    def preload(self, stream, count, value, field="command"):
        """Adds plain XADD entries to the stream, pipelined."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.socket)
            while count > 0:
                batch = min(count, 10_000)
                connection.sendall(encode("XADD", stream, "*", field, value) * batch)
                # each reply is two lines: a length and an id
                lines = 0
                while lines < 2 * batch:
                    lines += connection.recv(1 << 20).count(b"\n")
                count -= batch

    def left(self, queue):
        """Tasks that are ready or running."""
        pipeline = self.client.pipeline(transaction=False)
        pipeline.xlen(queue)
        pipeline.xlen("{%s}:go" % queue)
        return sum(pipeline.execute())

    def drop(self, queue):
        self.client.delete(queue, *self.client.keys("{%s}:*" % queue))

    def stop(self):
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


class Daemon:
    """A leatd with a queue of its own; its log goes to a file."""

    def __init__(self, rig, queue, concurrency, more="", enter=None):
        """enter: called in the process before it becomes leatd."""
        self.rig, self.queue = rig, queue
        self.config = rig.folder / f"{queue}.ini"
        self.log = rig.folder / f"{queue}.log"
        self.config.write_text(
            f"[redis]\nsocket = {rig.server.socket}\n"
            f"[queue]\nname = {queue}\nconcurrency = {concurrency}\n"
            f"[log]\ntarget = stderr\n{more}\n")
        self.process = subprocess.Popen(
            [str(rig.leatd), "-c", str(self.config)],
            env=dict(ENVIRONMENT, RUNTIME_DIRECTORY=str(rig.folder / "state")), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=open(self.log, "ab"), cwd="/", start_new_session=True,
            preexec_fn=enter)

    @property
    def pid(self):
        return self.process.pid

    def check(self):
        if self.process.poll() is not None:
            raise BenchError(f"leatd exited with {self.process.returncode}:\n{self.tail()}")

    def tail(self):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-10:])

    def wait_idle(self):
        """Waits until it has nothing to do and blocks."""
        def blocked():
            self.check()
            clients = self.rig.server.client.client_list()
            return self.rig.server.left(self.queue) == 0 and any(
                client["cmd"].startswith("xreadgroup") and "b" in client["flags"]
                for client in clients)
        wait_for(blocked, f"an idle worker; its log ends:\n{self.tail()}")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise BenchError("leatd did not stop within 30 s of SIGTERM") from None


class Stamps:
    """The fifo to which the stamp program writes at its start."""

    def __init__(self, rig):
        self.path = rig.folder / "stamps"
        if not self.path.exists():
            os.mkfifo(self.path)
        # opened for writing, too, because otherwise it is at its end whenever no task runs
        self.fifo = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        self.program = [str(rig.tools / "stamp"), str(self.path)]

    def next_ns(self):
        if not select.select([self.fifo], [], [], 10)[0]:
            raise BenchError("a task did not start within 10 s")
        return int(os.read(self.fifo, 64))

    def close(self):
        os.close(self.fifo)


class Span:
    """The values between two points of a run: tasks, time and CPU."""

    def __init__(self, tasks, seconds, cpu_s, redis_cpu_s=0.0):
        self.rate = tasks / seconds
        self.cpu_us = cpu_s / tasks * 1e6
        self.redis_us = redis_cpu_s / tasks * 1e6


class Rig:
    def __init__(self, build, quick):
        self.build, self.quick = pathlib.Path(build), quick
        self.leatd, self.leat = self.build / "leatd", self.build / "leat"
        self.library = self.build / "leat.lua"
        self.tools = self.build / "tests" / "bench"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="leat-bench."))
        self.server = None

    def __enter__(self):
        try:
            self._compile()
            self.server = Server(self.folder)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.server:
            self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _compile(self):
        self.tools.mkdir(parents=True, exist_ok=True)
        for name, more in (("floor", ["start.c"]), ("pipe", ["start.c"]), ("stamp", ["-static"]),
                           ("nothing", ["-static", "-nostartfiles"]), ("resident", []),
                           ("bare", ["start.c", "-lhiredis"])):
            sources = [str(HERE / part) if part.endswith(".c") else part for part in more]
            command = [os.environ.get("CC", "cc"), "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-o",
                       str(self.tools / name), str(HERE / f"{name}.c"), *sources]
            if subprocess.run(command, check=False).returncode != 0:
                raise BenchError(f"could not compile {name}.c")

    def need_leatd(self):
        if not self.leatd.exists():
            raise BenchError(f"{self.leatd} is missing: run make first")

    def floor(self, parallel, tasks, *program):
        done = subprocess.run(
            [str(self.tools / "floor"), str(parallel), str(tasks), *(program or ("/bin/true",))],
            env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            check=True)
        seconds, cpu = (float(word) for word in done.stdout.splitlines()[-1].split())
        return Span(tasks, seconds, cpu)

    def xargs(self, parallel, tasks):
        lines = b"x\n" * tasks
        cpu = os.times()
        begun = time.monotonic()
        subprocess.run(["xargs", "-P", str(parallel), "-n", "1", "/bin/true"], input=lines,
                       env=ENVIRONMENT, check=True)
        seconds = time.monotonic() - begun
        after = os.times()
        return Span(tasks, seconds, after.children_user + after.children_system
                    - cpu.children_user - cpu.children_system)

    def drain(self, daemon, until):
        """Runs until this many tasks are left; measures from the first finished ones on."""
        def snapshot():
            return (self.server.left(daemon.queue), time.monotonic(),
                    process_cpu_s(daemon.pid), self.server.cpu_s())

        total = self.server.left(daemon.queue)
        wait_for(lambda: daemon.check() or self.server.left(daemon.queue) < total,
                 f"a first finished task; the log ends:\n{daemon.tail()}", STALL_S, 0.002)
        first = last = snapshot()
        left, moved = first[0], first[1]
        while left > until:
            # rarely at first, often near the end, because each check costs Redis time
            rate = (first[0] - left) / max(time.monotonic() - first[1], 1e-3)
            time.sleep(min(max((left - until) / (rate * 2 + 1), 0.002), 0.25))
            daemon.check()
            now_left = self.server.left(daemon.queue)
            if now_left < left:
                left, moved = now_left, time.monotonic()
            elif time.monotonic() - moved > STALL_S:
                raise BenchError(f"stalled at {left} tasks; the log ends:\n{daemon.tail()}")
        last = snapshot()
        return Span(first[0] - last[0], last[1] - first[1],
                    last[2] - first[2] + last[3] - first[3], last[3] - first[3])


def against(measured, floors, figure):
    """Ratio of each measurement to the mean of the floors before and after it."""
    return [figure(one) / statistics.mean(figure(floor) for floor in floors[i:i + 2])
            for i, one in enumerate(measured)]


def spread(values, form="{:.2f}"):
    """The median, with the minimum and the maximum."""
    return "{} ({}–{})".format(*(form.format(value) for value in (
        statistics.median(values), min(values), max(values))))
