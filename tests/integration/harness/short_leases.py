"""Shared by tests of faults: short leases, tasks that leave traces, and measures of a process."""
import time
from pathlib import Path

from . import processes
from .polling import PATIENCE_S, wait_until

HEARTBEAT = Path(__file__).with_name('heartbeat.py')

LEASE_S, SCAN_S, GRACE_S = 4.0, 0.3, 0.3  # a busy machine may stall for two seconds
CPUCLOCK_SCHED = 2  # the clock of another process, as clock_getcpuclockid() gives it
MARGIN_S = 0.2  # the daemon's margin for a lease of that length
SHORT = {
    'redis': {'connect_timeout': '2s', 'command_timeout': '2s', 'backoff_base': '50ms',
              'backoff_cap': '400ms'},
    'queue': {'lease': f'{LEASE_S:.0f}s', 'scan': '300ms', 'concurrency': 1},
    'task': {'kill_grace': '300ms'},
    'retry': {'base': '50ms', 'jitter': 'none'},
}


def boot_s():
    """The clock of the traces, in seconds."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) / 1e9


def pass_time(seconds):
    """Waits while a fault or a measurement lasts: the one place where time itself is the condition."""
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= end, seconds + 10)


class Run:
    """One process of a task with heartbeats."""

    def __init__(self, values):
        # a batch has no attempt and fencing token
        self.tid, self.attempt, self.fence = values[1], *(int(n) if n != '-' else 0 for n in values[2:4])
        self.pid, self.first = int(values[4]), int(values[5]) / 1e9
        self.last, self.ended = self.first, False

    def __repr__(self):
        return (f'Run({self.tid}, attempt {self.attempt}, fence {self.fence}, pid {self.pid}, '
                f'{self.first:.3f}–{self.last:.3f}, ended {self.ended})')


class Heartbeats:
    """The trace of tasks with heartbeats: a file that they share."""

    def __init__(self, path):
        self.path = path

    def task(self, seconds, code=0, stubborn=False, leaves=False):
        """A shell line that writes heartbeats for this long; with leaves, it ends at once and a child of it
        goes on."""
        words = ['/usr/bin/python3', '-IS', str(HEARTBEAT), str(self.path), str(seconds), str(code)]
        return ' '.join(words + ['stubborn'] * stubborn + ['leaves'] * leaves)

    def runs(self, tid=None):
        """All runs in the order in which they started."""
        found = {}
        text = self.path.read_text() if self.path.exists() else ''
        for line in text.split('\n')[:-1]:
            values = line.split(' ')
            run = found.setdefault(values[4], None) or Run(values)
            found[values[4]] = run
            run.last = max(run.last, int(values[5]) / 1e9)
            run.ended = run.ended or values[0] == 'end'
        runs = sorted(found.values(), key=lambda run: run.first)
        return [run for run in runs if tid in (None, run.tid)]

    def wait_runs(self, count, timeout=PATIENCE_S):
        wait_until(lambda: len(self.runs()) >= count, timeout,
                   lambda: f'{count} runs began: {self.runs()}')
        return self.runs()

    def wait_dead(self, timeout=PATIENCE_S):
        """All processes seen so far are gone."""
        pids = [run.pid for run in self.runs()]
        wait_until(lambda: not any(processes.alive(pid) for pid in pids), timeout,
                   lambda: f'all are dead: {self.runs()}')
        return self.runs()


def assert_apart(runs):
    """No run started before the previous one was dead."""
    for earlier, later in zip(runs, runs[1:]):
        assert earlier.last < later.first, runs


def cpu_s(pid):
    """CPU time of the process alone. Ticks, as in /proc/PID/stat, are longer than an idle worker runs."""
    return time.clock_gettime(~pid << 3 | CPUCLOCK_SCHED)


def cpu_share(pid, seconds):
    """CPU time during a while, as a share of one processor."""
    before, begun = cpu_s(pid), time.monotonic()
    pass_time(seconds)
    return (cpu_s(pid) - before) / (time.monotonic() - begun)


def wakeups(pid):
    """How often the process has waited for an event so far."""
    with open(f'/proc/{pid}/status', encoding='ascii', errors='replace') as file:
        for line in file:
            if line.startswith('voluntary_ctxt_switches:'):
                return int(line.split()[1])
    raise AssertionError('no voluntary_ctxt_switches')


def blocked_workers(client):
    """How many workers wait in a blocking read."""
    return sum(one['cmd'] == 'xreadgroup' and 'b' in one['flags'] for one in client.client_list())


def wait_blocked(client, count=1, timeout=PATIENCE_S):
    wait_until(lambda: blocked_workers(client) == count, timeout,
               lambda: f'{count} workers wait for tasks: {client.client_list()}')


def is_empty(queue):
    """Nothing is left of any task but dead letters."""
    redis = queue.redis
    return not (redis.xlen(queue.stream) or redis.xlen(queue.go) or redis.hlen(queue.waiting)
                or redis.hlen(queue.running) or redis.zcard(queue.delayed)
                or queue.held() or queue.pending())


def wait_empty(queue, timeout=PATIENCE_S):
    wait_until(lambda: is_empty(queue), timeout,
               lambda: f'the queue is empty: {queue.status()}, {queue.places()}, '
                       f'{queue.redis.hgetall(queue.running)}')
