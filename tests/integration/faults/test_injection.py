"""Calls that fail in leatd and leat: each allocation, fork, pipe, write and so on, once and from then on.
These tests try some calls; `make inject` tries all."""
import json
import os
import subprocess

import pytest

from harness import daemon as daemons
from harness.faults.inject import EVER, LAST_S, points
from harness.faults.trial import EX_OSERR, SHORT, Trial
from harness.functions.signing import Key
from harness.polling import wait_until
from harness.short_leases import is_empty
from harness.tasks import QUICK

# exit statuses of a program that could not go on
FAILED = (69, 70, EX_OSERR, 74, 75)
EX_CONFIG = 78  # systemd does not start leatd again after it
BACKLOG = 8  # tasks that wait while no start succeeds; a worker that starts at last has to run them all
CALLS = ('alloc', 'fork', 'pipe', 'send', 'read', 'open', 'payload', 'epoll', 'child', 'file')
OPENING = ('alloc', 'send', 'read', 'socket', 'epoll', 'timer', 'file', 'open')
START = ('alloc', 'fork', 'send', 'open', 'epoll', 'timer', 'socket', 'file', 'map')


def modes(kinds):
    return [pytest.param(kind, ever, id=f'{kind}-{"on" if ever else "once"}')
            for kind in kinds for ever in (False, True)]


@pytest.mark.parametrize('kind, ever', modes(CALLS))
def test_work(daemon, queue, folder, injector, kind, ever):
    """The Nth call fails while tasks succeed, are retried, die, write, read, wait and become due: each ends
    as usual with no attempt used, the daemon goes on and keeps no descriptor."""
    Trial(daemon, queue, folder, injector).sweep((1, 4, 40), kind, ever)


@pytest.mark.parametrize('kind, ever', modes(('alloc', 'send')))
def test_batches(daemon, queue, folder, injector, kind, ever):
    """The same holds if tasks share a process."""
    Trial(daemon, queue, folder, injector, batch=True).sweep((2, 12), kind, ever)


@pytest.mark.parametrize('kind, ever', modes(('alloc', 'fork', 'pipe', 'send')))
def test_resident(daemon, queue, folder, injector, kind, ever):
    """The same holds if a process stays and runs one task after the other. Some processes may have been started
    before, so only the first fork is sure to come."""
    Trial(daemon, queue, folder, injector, resident=True).sweep((1, 12), kind, ever)


@pytest.mark.parametrize('kind, ever', modes(('alloc', 'fork', 'pipe')))
def test_halves(daemon, queue, folder, injector, kind, ever):
    """The same holds if each process fails that several tasks share, so that they run again in halves."""
    command = f'[ $LEAT_BATCH = 1 ] || exit 1; cat >> {folder}/trace'
    Trial(daemon, queue, folder, injector, batch=True,
          sections={'task': {'command': command}}).sweep((2, 30), kind, ever)


@pytest.mark.parametrize('kind, ever', modes(OPENING))
def test_reconnecting(daemon, queue, folder, injector, kind, ever):
    """The same holds while all connections are opened again."""
    Trial(daemon, queue, folder, injector).sweep((2, 9), kind, ever, lost=True)


@pytest.mark.parametrize('ever', [False, True], ids=['once', 'on'])
def test_libraries(daemon, queue, folder, injector, ever):
    """hiredis and libcrypto get no memory, which may kill the daemon: then the next one finishes the work."""
    Trial(daemon, queue, folder, injector).sweep((3, 30), 'library', ever, may_crash=True)


def sweep_starts(daemon, queue, folder, injector, kind, ever, quick, early):
    """Starts daemons in which calls fail until they are ready; with early, until they have run a task."""
    trace = folder / 'trace'
    clean = missed = 0
    refusals = () if kind == 'alloc' else (EX_CONFIG,)
    lost = set()  # tasks whose worker ended before it could report them
    for number in points(quick):
        task = {'command': f'echo {number} >> {trace}'}
        if early and sum(places != ['dead'] for places in queue.places().values()) < BACKLOG:
            queue.add(task)
        injector.arm(kind, number, EVER if ever else None)
        worker = daemon(daemons.merged(QUICK, SHORT), env=injector.env)
        wait_until(lambda: not worker.running() or injector.has_failed(LAST_S if ever else 0) or
                   (is_empty(queue) if early else 'ready' in worker.log()))
        failed = injector.failed
        if worker.running():
            injector.disarm()
            if not early:
                queue.add(task)
            wait_until(lambda: not worker.running() or is_empty(queue), message=worker.log)
        if worker.running():
            worker.terminate()
            assert worker.wait_exit() == 0, worker.log()
        else:
            lost.add(str(number))
            assert worker.wait_exit() in FAILED + refusals, f'{number}: {worker.log()}'
            assert worker.log() or kind in ('alloc', 'send'), 'the daemon says why'
        assert 'Sanitizer' not in worker.log()
        worker.close()
        injector.disarm()
        clean, missed = (clean + 1, 0) if failed else (clean, missed + 1)
        if missed == 2:
            break
    assert clean, 'no call of this kind failed'
    print(f'clean: {kind}, {clean} calls')
    daemon(daemons.merged(QUICK, SHORT)).wait_ready()
    wait_until(lambda: is_empty(queue))
    runs = trace.read_text().split() if trace.exists() else []  # perhaps no daemon started
    assert {number for number in runs if runs.count(number) > 1} <= lost, 'a task ran twice with its worker alive'


@pytest.mark.parametrize('ever', [False, True], ids=['once', 'on'])
def test_check(folder, injector, ever):
    """Whichever allocation fails, a right configuration is not told as a wrong one."""
    path = daemons.write_config(folder / 'check.ini', {
        'queue': {'name': 'emails'}, 'task': {'environment': 'A=1'}, 'retry': {'exit.7': 3},
        'security': {'commands': 'listed'}, 'lanes': {'*': '1, 1'},
        'command.x': {'program': 'echo', 'arguments': '{payload}'}})
    for number in range(1, EVER):
        injector.arm('alloc', number, EVER if ever else None)
        done = subprocess.run([daemons.program('leatd'), '-t', '-c', path], env={**os.environ, **injector.env},
                              capture_output=True, text=True, timeout=120, check=False)
        failed = injector.failed
        injector.disarm()
        assert done.returncode in (0, EX_OSERR), f'{number}: {done.returncode} {done.stderr}'
        if not failed:
            break
    assert done.returncode == 0


@pytest.mark.parametrize('kind, ever', modes(START))
def test_start(daemon, queue, folder, injector, kind, ever):
    """The Nth call fails while leatd starts: it starts anyway, or says why not and exits with a failure; the
    next start succeeds."""
    sweep_starts(daemon, queue, folder, injector, kind, ever, (1, 3, 30), early=False)


@pytest.mark.parametrize('kind, ever', modes(('alloc', 'fork', 'open', 'send', 'file')))
def test_first_cgroups(caged, queue, folder, injector, kind, ever):
    """The same holds while cgroups are made for the daemon and for its first task, which runs once, unless
    its worker is lost."""
    sweep_starts(caged, queue, folder, injector, kind, ever, (2, 12), early=True)


@pytest.fixture
def over_tcp(redis_server, base_config):
    """Redis over TCP, by a name that must be looked up."""
    base_config['redis'] = {'host': 'localhost', 'port': redis_server.listen()}


@pytest.mark.parametrize('kind, ever', modes(('alloc', 'send', 'read', 'socket', 'epoll')))
def test_tcp(daemon, queue, folder, injector, over_tcp, kind, ever):
    """Connections are opened again over TCP, by name."""
    if kind == 'alloc' and daemons.is_sanitized():
        pytest.skip('AddressSanitizer ends a program that begins a thread, as the lookup does, without memory')
    Trial(daemon, queue, folder, injector).sweep((3, 14), kind, ever, lost=True)


@pytest.mark.parametrize('kind, ever', modes(('alloc', 'send', 'open')))
def test_signed(daemon, queue, folder, injector, kind, ever):
    """No signed task is taken for a forged one."""
    key = Key(folder, '2026a')
    Trial(daemon, queue, folder, injector, tune=key.sign, sections={
        'security': {'signatures': 'required', 'key_files': key.entry}}).sweep((2, 25), kind, ever)


@pytest.mark.parametrize('kind, ever', modes(('alloc', 'send', 'epoll')))
def test_live_output(daemon, queue, folder, injector, kind, ever):
    """The output of tasks is followed in Redis while they run."""
    Trial(daemon, queue, folder, injector, tune=lambda task: {**task, 'live': '1', 'result_ttl': '10s'}).sweep(
        (5, 50), kind, ever)


@pytest.mark.parametrize('kind, ever', modes(('alloc', 'open', 'send')))
def test_reload(daemon, queue, folder, injector, kind, ever):
    """If the configuration is reloaded meanwhile, the new one is in force, or the old one stays and the log
    says so."""
    Trial(daemon, queue, folder, injector).sweep((1, 30), kind, ever, reload=True)


@pytest.mark.parametrize('kind, ever', modes(('alloc', 'fork', 'send', 'file')))
def test_cgroups(caged, queue, folder, injector, kind, ever):
    """Tasks have cgroups, whose files are made, written and read."""
    Trial(caged, queue, folder, injector).sweep((2, 11), kind, ever)


COMMANDS = {
    'status': ['status'], 'status in JSON': ['status', '--json'], 'list': ['list'],
    'show': ['show', '{tid}'], 'enqueue': ['enqueue', 'true'], 'dead list': ['dead', 'list'],
}


@pytest.mark.parametrize('ever', [False, True], ids=['once', 'on'])
@pytest.mark.parametrize('command', COMMANDS)
def test_commands(leat, queue, injector, command, ever):
    """If the Nth allocation of a command fails, the command does its work, or says why not."""
    [tid] = queue.add({'command': 'echo hello', 'payload': 'x'})
    for kind in ('alloc', 'send', 'read', 'socket'):
        for number in points((1, 10, 60)):
            before = queue.redis.xlen(queue.stream)
            injector.arm(kind, number, EVER if ever else None)
            # libc's setlocale leaks if it finds no memory
            env = dict(injector.env, LC_ALL='C')
            done = leat(*[word.format(tid=tid) for word in COMMANDS[command]], env=env)
            failed = injector.failed
            injector.disarm()
            told = f'{kind} {number}: {done.returncode} {done.stdout} {done.stderr}'
            healthy = (0, 1) if 'status' in command else (0,)  # there is no live worker
            failures = (EX_OSERR,) if kind == 'alloc' else FAILED + (EX_CONFIG,)
            assert done.returncode in healthy + failures, told
            assert done.returncode in healthy or done.stderr or kind == 'send', told
            assert 'Sanitizer' not in done.stderr, told
            if command == 'status in JSON' and done.returncode in healthy:
                json.loads(done.stdout)
            if command == 'enqueue':
                added = queue.redis.xlen(queue.stream) - before
                assert added == 1 if done.returncode == 0 else added in (0, 1), told
            if not failed:
                break
