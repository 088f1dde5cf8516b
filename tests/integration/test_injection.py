"""Calls that fail, in leatd and leat: each allocation, fork, pipe, write and so on, once and from then on.
Here at some places; `make inject` goes through them all."""
import json

import pytest

from harness import daemon as daemons
from harness.faults import is_empty
from harness.inject import EVER, LAST_S, Injector, NotHere, points
from harness.polling import wait_until
from harness.tasks import QUICK, letters, open_files

# what the exit status may say where the program could not go on
EX_OSERR = 71
FAILED = (69, 70, EX_OSERR, 74, 75)
CALLS = ('alloc', 'fork', 'pipe', 'send', 'read', 'open', 'payload', 'epoll', 'child', 'file')
OPENING = ('alloc', 'send', 'read', 'socket', 'epoll', 'timer', 'file', 'open')
START = ('alloc', 'fork', 'pipe', 'send', 'open', 'epoll', 'timer', 'socket', 'file', 'map')
SHORT = {'retry': {'max_attempts': 2, 'base': '10ms', 'jitter': 'none'},
         'redis': {'backoff_base': '10ms', 'backoff_cap': '100ms'}}
RUNS = ['again 1', 'again 2', 'dead 1', 'dead 2', 'late 1', 'ok 1', 'out 1', 'payload 1']
BATCHED = [f'payload {number}' for number in range(6)]


@pytest.fixture
def injector(folder):
    try:
        one = Injector(folder / 'inject')
    except NotHere as why:
        pytest.skip(str(why))
    yield one
    one.close()


class Round:
    """A handful of tasks, with what is to become of them."""

    def __init__(self, queue, folder, batch):
        self.queue, self.trace, self.batch = queue, folder / 'trace', batch
        self.trace.unlink(missing_ok=True)
        queue.redis.delete(queue.dead)
        self.before = queue.counter('succeeded')
        self.crashes = queue.counter('crashes')

    def begin(self):
        if self.batch:
            self.queue.add(*[{'payload': payload} for payload in BATCHED])
            return
        commands = [self._task('ok'), self._task('again', '[ $LEAT_ATTEMPT = 2 ]'),
                    self._task('dead', 'echo why >&2; exit 3'), self._task('out', 'seq 200; printf end')]
        self.queue.add(*commands,
                       {**self._task('payload', 'read x && [ $x = hello ]'), 'payload': 'hello\n'})
        self.queue.add(self._task('late'), due='+30')

    def _task(self, name, then='exit 0'):
        return {'command': f'echo {name} $LEAT_ATTEMPT >> {self.trace}; {then}'}

    @property
    def successes(self):
        return self.queue.counter('succeeded') - self.before

    def over(self):
        return is_empty(self.queue) and self.successes >= self.wanted

    @property
    def wanted(self):
        return len(BATCHED) if self.batch else 5

    def check(self, again):
        """again: tasks may have run once more, with no attempt used: their worker was lost."""
        assert self.successes == self.wanted
        runs = self.trace.read_text().splitlines()
        wanted = BATCHED if self.batch else RUNS
        assert sorted(set(runs)) == wanted and (again or len(runs) == len(wanted)), runs
        dead = [(letter.cause, letter.status, letter.attempts) for letter in letters(self.queue)]
        assert dead == ([] if self.batch else [('exit', '3', '2')])


class Trial:
    """A daemon in which calls fail, and one more where it has ended itself."""

    def __init__(self, daemon, queue, folder, injector, batch=False):
        self.queue, self.folder, self.injector, self.batch = queue, folder, injector, batch
        batched = {'task': {'command': f'cat >> {folder}/trace', 'batch': 4, 'batch_wait': '20ms'}}
        sections = daemons.merged(QUICK, SHORT, batched if batch else {})
        self._make = lambda: daemon(sections, env=injector.env)
        self.worker = self._make().wait_ready()
        self.files = 0

    def ended(self):
        return not self.worker.running()

    def run(self, kind, number, last, lost=False, may_crash=False):
        """One round in which these calls fail. Returns whether any did."""
        one = Round(self.queue, self.folder, self.batch)
        at = len(self.worker.log())
        self.injector.arm(kind, number, last)
        if lost:
            self.queue.redis.client_kill_filter(_type='normal', skipme=True)
        one.begin()
        wait_until(lambda: self.injector.has_failed(LAST_S if last else 0) or self.ended() or one.over(),
                   message=lambda: self._say(one, at))
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
        """As many as after the first round."""
        if fresh:
            self.files = 0
        if not self.files:
            wait_until(lambda: len(self.queue.redis.client_list()) >= 4)
            self.files = open_files(self.worker.pid)
        wait_until(lambda: open_files(self.worker.pid) <= self.files,
                   message=lambda: f'{open_files(self.worker.pid)} descriptors, not {self.files}')

    def sweep(self, quick, kind, ever, **options):
        """Rounds until nothing fails any more; the daemon then stops as it should: with the sanitizers,
        nothing is left."""
        self.run('none', 1, None)
        clean = 0
        for number in points(quick):
            if not self.run(kind, number, EVER if ever else None, **options):
                break
            clean += 1
        print(f'clean: {kind}, {clean} calls')
        self.worker.terminate()
        assert self.worker.wait_exit() == 0, self.worker.log()
        assert 'Sanitizer' not in self.worker.log()


def modes(kinds):
    return [pytest.param(kind, ever, id=f'{kind}-{"on" if ever else "once"}')
            for kind in kinds for ever in (False, True)]


@pytest.mark.parametrize('kind, ever', modes(CALLS))
def test_work(daemon, queue, folder, injector, kind, ever):
    """The Nth call fails while tasks succeed, are retried, die, write, read, wait and are due: each ends
    as it would, no attempt is used up, the daemon goes on and keeps no descriptor."""
    Trial(daemon, queue, folder, injector).sweep((1, 4, 40), kind, ever)


@pytest.mark.parametrize('kind, ever', modes(('alloc', 'send')))
def test_batches(daemon, queue, folder, injector, kind, ever):
    """The same where tasks share a process."""
    Trial(daemon, queue, folder, injector, batch=True).sweep((2, 12), kind, ever)


@pytest.mark.parametrize('kind, ever', modes(OPENING))
def test_reconnecting(daemon, queue, folder, injector, kind, ever):
    """The same while all connections are opened anew."""
    Trial(daemon, queue, folder, injector).sweep((2, 9), kind, ever, lost=True)


@pytest.mark.parametrize('ever', [False, True], ids=['once', 'on'])
def test_libraries(daemon, queue, folder, injector, ever):
    """hiredis and libcrypto get no memory, which they may not survive: then the next daemon finishes the
    work."""
    Trial(daemon, queue, folder, injector).sweep((3, 30), 'library', ever, may_crash=True)


@pytest.mark.parametrize('kind, ever', modes(START))
def test_start(daemon, queue, folder, injector, kind, ever):
    """The Nth call fails while leatd starts: it comes up all the same, or says why not and ends with a
    status that tells of a failure; the next start succeeds."""
    trace = folder / 'trace'
    for number in points((1, 3, 30)):
        injector.arm(kind, number, EVER if ever else None)
        worker = daemon(daemons.merged(QUICK, SHORT), env=injector.env)
        wait_until(lambda: not worker.running() or injector.has_failed(LAST_S if ever else 0) or
                   'ready' in worker.log())
        failed = injector.failed
        if worker.running():
            injector.disarm()
            queue.add({'command': f'echo {number} >> {trace}'})
            wait_until(lambda: not worker.running() or is_empty(queue), message=worker.log)
        if worker.running():
            worker.terminate()
            assert worker.wait_exit() == 0, worker.log()
        else:
            assert worker.wait_exit() in FAILED + (78,), f'{number}: {worker.log()}'
            assert worker.log() or kind in ('alloc', 'send'), 'it says why'
        assert 'Sanitizer' not in worker.log()
        worker.close()
        injector.disarm()
        if not failed:
            break
    daemon(daemons.merged(QUICK, SHORT)).wait_ready()
    wait_until(lambda: is_empty(queue))


COMMANDS = {
    'status': ['status'], 'status in JSON': ['status', '--json'], 'list': ['list'],
    'show': ['show', '{tid}'], 'enqueue': ['enqueue', 'true'], 'dead list': ['dead', 'list'],
}


@pytest.mark.parametrize('ever', [False, True], ids=['once', 'on'])
@pytest.mark.parametrize('command', COMMANDS)
def test_commands(leat, queue, injector, command, ever):
    """The Nth allocation of a command fails: it does what it was asked to, or says why not."""
    [tid] = queue.add({'command': 'echo hello', 'payload': 'x'})
    for kind in ('alloc', 'send', 'read', 'socket'):
        for number in points((1, 10, 60)):
            before = queue.redis.xlen(queue.stream)
            injector.arm(kind, number, EVER if ever else None)
            # libc's setlocale leaks where it finds no memory
            env = dict(injector.env, LC_ALL='C')
            done = leat(*[word.format(tid=tid) for word in COMMANDS[command]], env=env)
            failed = injector.failed
            injector.disarm()
            told = f'{kind} {number}: {done.returncode} {done.stdout} {done.stderr}'
            healthy = (0, 1) if 'status' in command else (0,)  # no worker lives
            assert done.returncode in healthy + FAILED + (78,), told
            assert done.returncode in healthy or done.stderr or kind == 'send', told
            assert 'Sanitizer' not in done.stderr, told
            if command == 'status in JSON' and done.returncode in healthy:
                json.loads(done.stdout)
            if command == 'enqueue':
                added = queue.redis.xlen(queue.stream) - before
                assert added == 1 if done.returncode == 0 else added in (0, 1), told
            if not failed:
                break
