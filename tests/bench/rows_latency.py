"""Rows about the time from XADD to the start of a task, against the least that a worker does."""

import contextlib
import os
import socket
import statistics
import subprocess
import time

from rig import ENVIRONMENT, BenchError, Daemon, Stamps, encode, spread, wait_for
from rows import at_most


class Bare:
    """A bare worker with a stream of its own; see bare.c."""

    def __init__(self, rig, queue):
        self.rig, self.queue = rig, queue
        self.process = subprocess.Popen(
            [str(rig.tools / "bare"), rig.server.socket, queue], env=ENVIRONMENT, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, cwd="/")

    def wait_idle(self):
        def blocked():
            if self.process.poll() is not None:
                raise BenchError(f"the bare worker exited with {self.process.returncode}")
            return any(client["cmd"].startswith("xreadgroup") and "b" in client["flags"]
                       for client in self.rig.server.client.client_list())
        wait_for(blocked, "an idle bare worker")

    def stop(self):
        self.process.kill()
        self.process.wait()


def pipe_times(rig, stamps, count):
    """µs from a byte in the pipe to the program's first instruction."""
    times = []
    with subprocess.Popen([str(rig.tools / "pipe"), *stamps.program],
                          stdin=subprocess.PIPE, env=ENVIRONMENT) as process:
        for _ in range(count):
            time.sleep(0.012)
            begun = time.monotonic_ns()
            os.write(process.stdin.fileno(), b"x")
            times.append((stamps.next_ns() - begun) / 1000)
        process.stdin.close()
    return times


def worker_times(rig, worker, stamps, call, count):
    """µs from the call that enqueues a task to the task's stamp, on an idle worker."""
    times = []
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(rig.server.socket)
        for _ in range(count):
            wait_for(lambda: rig.server.left(worker.queue) == 0, "the task's end", pause_s=0.002)
            time.sleep(0.012)
            begun = time.monotonic_ns()
            connection.sendall(call)
            times.append((stamps.next_ns() - begun) / 1000)
            connection.recv(256)
    return times


def measure(rig, stamps, rounds, each):
    """Times by name, a list for each round."""
    resident = (f"[task]\nresident = yes\n"
                f"command = exec {(rig.tools / 'resident').resolve()} {stamps.path}")
    makers = {"bare": lambda: Bare(rig, "bare"), "leat": lambda: Daemon(rig, "latency", 1),
              "resident": lambda: Daemon(rig, "latency2", 1, resident)}
    times = {"pipe": [], "bare": [], "leat": [], "resident": []}
    with contextlib.ExitStack() as stack:
        workers = {}
        for name, make in makers.items():
            workers[name] = worker = make()
            stack.callback(rig.server.drop, worker.queue)
            stack.callback(worker.stop)
            worker.wait_idle()
        program = " ".join(stamps.program)
        calls = {name: encode("XADD", worker.queue, "*", *(
            ("payload", "x") if name == "resident" else ("command", program))) for name, worker in workers.items()}
        for _ in range(rounds):
            times["pipe"].append(pipe_times(rig, stamps, each))
            for name, worker in workers.items():
                times[name].append(worker_times(rig, worker, stamps, calls[name], each))
    return times


def ratios(times, name, to, figure):
    return [figure(one) / figure(other) for one, other in zip(times[name], times[to])]


def p99(times):
    return sorted(times)[len(times) * 99 // 100]


def latency(rig):
    """From XADD to the first instruction on an idle worker, and to a resident process that has the record."""
    rig.need_leatd()
    stamps = Stamps(rig)
    rounds, each = (3, 30) if rig.quick else (6, 100)
    try:
        times = measure(rig, stamps, rounds, each)
    finally:
        stamps.close()
    for key, name in (("pipe", "a pipe-fed vfork loop"), ("bare", "XADD, a bare worker"),
                      ("leat", "XADD, leat"), ("resident", "XADD, resident")):
        every = sum(times[key], [])
        yield (f"to the first instruction, µs: {name}",
               f"{statistics.median(every):.0f} (99 % within {p99(every):.0f})", "", None)
    pipes = ratios(times, "leat", "pipe", statistics.median)
    yield "XADD to first instruction to the pipe's, p50", spread(pipes), *at_most(pipes, 2.5)
    bare = ratios(times, "leat", "bare", statistics.median)
    yield "XADD to first instruction to the bare worker's, p50", spread(bare), *at_most(bare, 1.25)
    late = [p99(sum(times["leat"], [])) / p99(sum(times["bare"], []))]
    yield "XADD to first instruction to the bare worker's, p99", f"{late[0]:.2f}", *at_most(late, 1.25)
    resident = ratios(times, "resident", "leat", statistics.median)
    yield ("XADD to a record in a resident process to the former, p50", spread(resident),
           *at_most(resident, 0.6))


LATENCY_ROWS = {"latency": latency}
