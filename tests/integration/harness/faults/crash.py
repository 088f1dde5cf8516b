"""Rounds of tasks in a daemon that is killed at one of its calls, and what must be true when the next one has
started."""
import signal
import time
from pathlib import Path

from .. import daemon as daemons
from .. import processes
from ..polling import wait_until
from ..short_leases import SHORT, assert_apart
from ..tasks import resident_task
from ..worker_locks import consumer_of, is_locked
from .inject import points
from .rounds import Round

REAPER = Path(__file__).with_name('reaper.py')
SOON_S = 5.0  # far more than the guards of a dead daemon need
CONFIG = {'queue': {'concurrency': 4}, 'retry': {'max_attempts': 2, 'base': '10ms', 'jitter': 'none'},
          'redis': {'backoff_base': '10ms', 'backoff_cap': '100ms'}, 'isolation': {'cgroup': 'off'}}
RENEWED_S = 1.6  # more than a third of the lease
LEFT_S = 60      # how long a descendant runs if nothing kills it
BATCHED = 4


class Work(Round):
    """Tasks of all kinds, or batches, with their expected outcomes."""

    def __init__(self, queue, heartbeats, trace, batch):
        heartbeats.path.unlink(missing_ok=True)
        super().__init__(queue, trace, batch, BATCHED if batch else 6)
        self.heartbeats = heartbeats

    def begin(self):
        if self.batch:
            self.queue.add(*[{'payload': f'task-{number}'} for number in range(BATCHED)])
            return
        left, failing = (self.heartbeats.task(LEFT_S, code, leaves=True) for code in (0, 1))
        second = '[ $LEAT_ATTEMPT = 2 ]'
        lines = {'ok': 'exit 0', 'again': second, 'dead': 'exit 3', 'died': f'{second} || kill -9 $$',
                 'left': f'exec {left}', 'left-failing': f'{second} && exec {left}; exec {failing}',
                 'renewed': f'exec {self.heartbeats.task(RENEWED_S)}'}
        self.queue.add(*[{'command': f'echo {name} $LEAT_ATTEMPT >> {self.trace}; {then}'}
                         for name, then in lines.items()])

    def check(self):
        self.check_ends()
        runs = self.heartbeats.runs()
        for tid in {run.tid for run in runs}:
            assert_apart([run for run in runs if run.tid == tid])
        if not self.batch:
            twice = {'again', 'dead', 'died', 'left-failing'}
            names = twice | {'ok', 'left', 'renewed'}
            ran = self.trace.read_text().splitlines()
            assert set(ran) == {f'{name} 1' for name in names} | {f'{name} 2' for name in twice}
            assert all(ran.count(line) <= 2 for line in ran), 'a worker that is lost costs one run each'


class Crash:
    """A daemon, and the next one each time that it was killed. With inherited, a reaper gets the daemon's
    orphans and reaps them at once."""

    def __init__(self, daemon, queue, folder, injector, heartbeats, late, batch=False, inherited=True,
                 resident=False):
        self.queue, self.folder, self.injector, self.late = queue, folder, injector, late
        batch = batch or resident
        self.heartbeats, self.batch, self.inherited = heartbeats, batch, inherited
        batched = {'task': {'command': heartbeats.task(LEFT_S, leaves=True), 'batch': 2, 'batch_wait': '10ms'},
                   'queue': {'concurrency': 1}}
        if resident:
            batched['task'] = resident_task(f'LEAT_TASK=$payload {heartbeats.task(0)}')
        config = CONFIG if inherited else {**CONFIG, 'isolation': {}}
        sections = daemons.merged(SHORT, config, batched if batch else {})
        self._make = lambda: daemon(sections, start=False)

    def start(self):
        one = self._make()
        env = [f'{name}={value}' for name, value in self.injector.env.items()]
        if self.inherited:
            one.prefix = ['/usr/bin/python3', '-IS', str(REAPER), 'env', *env]
        else:
            one.env.update(self.injector.env)
        one.guarded = []
        return one.start()

    def await_end(self, worker):
        """Waits until all processes of the daemon are dead, which must be soon."""
        begun = time.monotonic()
        wait_until(lambda: not worker.running() and not any(map(processes.alive, worker.guarded)),
                   message=lambda: f'all is dead: {self.heartbeats.runs()}')
        took = time.monotonic() - begun
        assert took < SOON_S + self.late.start(), f'{took:.1f} s until all was dead'

    def run(self, worker, when, number, early):
        """One round. Returns the next worker, and whether the previous one was killed."""
        work = Work(self.queue, self.heartbeats, self.folder / 'trace', self.batch)
        if early:
            work.begin()
        self.injector.arm(when, number)
        worker = worker or self.start()
        if not self.inherited:
            worker.guarded = worker.guards()
        if not early:
            work.begin()
        wait_until(lambda: self.injector.failed or work.over() or not worker.running(), message=worker.log)
        killed = bool(self.injector.failed)
        self.injector.disarm()
        if killed:
            if not self.inherited:
                worker.wait_exit()  # the next one cannot have its cgroup before
            following = self.start()
            self.await_end(worker)
            worker = following.wait_ready()
        wait_until(work.over, message=lambda: f'{self.queue.status()} {self.queue.places()}: {worker.log()}')
        work.check()
        processes.reap_orphans()
        return worker, killed

    def stop(self, worker):
        """Stops the worker: no process and no lock is left. The files of dead workers are removed: a start looks
        after each of them, and would make more calls in each round."""
        processes.send(int(consumer_of(worker).split(':')[1]), signal.SIGTERM)
        self.await_end(worker)
        files = self.folder / 'state' / 'emails'
        for path in files.iterdir():
            assert not is_locked(path)
            path.unlink()

    def sweep(self, quick, when, early=False):
        """Rounds until the daemon was not killed in two of them; one round may make a call less than another."""
        worker, killed, missed = None, 0, 0
        for number in points(quick):
            if early and worker:
                self.stop(worker)
                worker = None
            elif not early and not worker:
                worker = self.start().wait_ready()
            try:
                worker, was = self.run(worker, when, number, early)
            except AssertionError as error:
                raise AssertionError(f'{when} {number}: {error}') from error
            killed, missed = (killed + 1, 0) if was else (killed, missed + 1)
            if missed == 2:
                break
        assert killed, 'no call of this kind was reached'
        print(f'killed: {when}, {killed} calls')
        self.stop(worker)
