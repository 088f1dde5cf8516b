"""Rounds of tasks in a daemon in which calls fail, with the expected outcomes."""
from .. import daemon as daemons
from ..polling import wait_until
from ..tasks import QUICK, open_files, resident_task
from .inject import EVER, LAST_S, points
from .rounds import Round

# the exit status if the system refuses something that the daemon needs
EX_OSERR = 71
SHORT = {'retry': {'max_attempts': 2, 'base': '10ms', 'jitter': 'none'},
         'redis': {'backoff_base': '10ms', 'backoff_cap': '100ms'}}
RUNS = ['again 1', 'again 2', 'dead 1', 'dead 2', 'late 1', 'ok 1', 'out 1', 'payload 1']
BATCHED = [f'payload {number}' for number in range(6)]


class Handful(Round):
    """A few tasks, with their expected outcomes."""

    def __init__(self, queue, folder, batch, tune):
        super().__init__(queue, folder / 'trace', batch, len(BATCHED) if batch else 5)
        self.tune = tune
        self.crashes = queue.counter('crashes')

    def begin(self):
        if self.batch:
            self.queue.add(*[self.tune({'payload': payload}) for payload in BATCHED])
            return
        commands = [self._task('ok'), self._task('again', '[ $LEAT_ATTEMPT = 2 ]'),
                    self._task('dead', 'echo why >&2; exit 3'), self._task('out', 'seq 200; printf end')]
        self.queue.add(*commands,
                       self._task('payload', 'read x && [ $x = hello ]', payload='hello\n'))
        self.queue.add(self._task('late'), due='+30')

    def _task(self, name, then='exit 0', **fields):
        return self.tune({'command': f'echo {name} $LEAT_ATTEMPT >> {self.trace}; {then}', **fields})

    def check(self, again):
        """again: tasks may have run once more, with no attempt used, because their worker was lost."""
        self.check_ends()
        runs = self.trace.read_text().splitlines()
        wanted = BATCHED if self.batch else RUNS
        assert sorted(set(runs)) == wanted and (again or len(runs) == len(wanted)), runs


class Trial:
    """A daemon in which calls fail, and the next one if it has ended. tune(fields) turns a task's fields into
    those that are enqueued."""

    def __init__(self, daemon, queue, folder, injector, batch=False, sections=None, tune=dict, resident=False):
        batch = batch or resident
        self.queue, self.folder, self.injector, self.batch = queue, folder, injector, batch
        self.tune, self.resident = tune, resident
        batched = {'task': {'command': f'cat >> {folder}/trace', 'batch': 4, 'batch_wait': '20ms'}}
        if resident:
            batched['task'] = {**resident_task(f'echo "$payload" >> {folder}/trace'), 'batch': 2}
        sections = daemons.merged(QUICK, SHORT, batched if batch else {}, sections)
        self._make = lambda: daemon(sections, env=injector.env)
        self.worker = self._make().wait_ready()
        self.files = 0

    def ended(self):
        return not self.worker.running()

    def run(self, kind, number, last, lost=False, may_crash=False, reload=False):
        """One round in which these calls fail. Returns whether any did."""
        one = Handful(self.queue, self.folder, self.batch, self.tune)
        at = len(self.worker.log())
        if self.resident:  # while former processes end, there may be too many for a new one, and they go on
            slots = QUICK['queue']['concurrency']
            wait_until(lambda: len(self.worker.descendants()) <= slots, message=self.worker.log)
        self.injector.arm(kind, number, last)
        if lost:
            self.queue.redis.client_kill_filter(_type='normal', skipme=True)
        one.begin()
        if reload:
            self.worker.reload()
        wait_until(lambda: self.injector.has_failed(LAST_S if last else 0) or self.ended() or one.over(),
                   message=lambda: self._say(one, at))
        if reload and kind != 'send':
            wait_until(lambda: self.ended() or ' reloaded' in self.worker.log()[at:])
        failed = self.injector.failed
        self.injector.disarm()
        wait_until(lambda: self.ended() or one.over(), message=lambda: self._say(one, at))
        status = self.worker.process.poll()
        if status is not None:
            no_loop = status == EX_OSERR and 'event loop' in self.worker.log()
            assert may_crash or no_loop, f'{kind} {number}: ended with {status}: {self.worker.log()[at:]}'
            self.worker.close()
            self.worker = self._make().wait_ready()
        wait_until(one.over, message=lambda: self._say(one, at))
        one.check(status is not None)
        assert status is not None or self.queue.counter('crashes') == one.crashes
        self._check_files(status is not None)
        return bool(failed)

    def _say(self, one, at):
        return f'{self.queue.status()} {self.queue.places()} {one.successes}: {self.worker.log()[at:]}'

    def _check_files(self, fresh):
        """As many descriptors as after the first round."""
        if fresh:
            self.files = 0
            self.run('none', 1, None)  # opens the descriptors that are kept for each slot
        if not self.files:
            wait_until(lambda: len(self.queue.redis.client_list()) >= 4)
            self.files = open_files(self.worker.pid)
        wait_until(lambda: open_files(self.worker.pid) <= self.files,
                   message=lambda: f'{open_files(self.worker.pid)} descriptors, not {self.files}')

    def sweep(self, quick, kind, ever, **options):
        """Rounds until nothing fails in two of them; one round may make a call less than another. Then the
        daemon stops cleanly: the sanitizers find no leak."""
        self.run('none', 1, None)
        clean = missed = 0
        for number in points(quick):
            failed = self.run(kind, number, EVER if ever else None, **options)
            clean, missed = (clean + 1, 0) if failed else (clean, missed + 1)
            if missed == 2:
                break
        # tasks that end at once need no call of epoll_ctl
        assert clean or kind == 'epoll', 'no call of this kind was reached'
        print(f'clean: {kind}, {clean} calls')
        self.worker.terminate()
        assert self.worker.wait_exit() == 0, self.worker.log()
        assert 'Sanitizer' not in self.worker.log()
