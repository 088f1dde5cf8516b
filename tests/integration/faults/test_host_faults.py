"""A host that cannot run tasks: they are requeued unharmed, and other hosts run them."""
import os
import resource
import shutil
import subprocess

import pytest

from harness.polling import wait_until
from harness.short_leases import wait_empty
from harness.tasks import letters, wait_file, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')


@pytest.fixture
def script(folder):
    """A configured program /…/bin/job that records its runs."""
    (folder / 'bin').mkdir()
    path = folder / 'bin/job'
    path.write_text(f'#!/bin/sh\necho $LEAT_TASK $LEAT_ATTEMPT >> {folder}/runs\n')
    path.chmod(0o755)
    return path


def break_program(folder, script):
    return {'task': {'command': f'{folder}/gone/job arg'}}, 'No such file'


def break_mode(folder, script):
    copy = folder / 'job-without-mode'
    shutil.copy(script, copy)
    copy.chmod(0o644)
    return {'task': {'command': str(copy)}}, 'Permission denied'


def break_interpreter(folder, script):
    copy = folder / 'job-without-interpreter'
    copy.write_text('#!/nonexistent/interpreter\n')
    copy.chmod(0o755)
    return {'task': {'command': str(copy)}}, 'exit 127'


def break_search(folder, script):
    return {'task': {'command': 'no-such-program --all'}}, 'exit 127'


def break_directory(folder, script):
    return {'task': {'command': str(script), 'directory': f'{folder}/gone'}}, 'cannot change to directory'


def break_shell(folder, script):
    return {'task': {'command': f'{script} | cat', 'shell': f'{folder}/gone/sh'}}, 'cannot execute'


@pytest.mark.parametrize('make', [break_program, break_mode, break_interpreter, break_search,
                                  break_directory, break_shell])
def test_broken_host(daemon, queue, client, folder, script, make):
    """If the configured program, directory or shell is missing on one host, its worker says so and stops
    claiming, with growing pauses; every task succeeds on the other host with no attempt used."""
    sections, reason = make(folder, script)
    broken = daemon(sections).wait_ready()
    tids = queue.add(*[{'x': '1'}] * 20)
    broken.wait_log('this host cannot run tasks')
    wait_until(lambda: queue.counter('released') >= 1)
    assert reason in broken.log()
    assert queue.counter('succeeded') == queue.counter('retried') == 0

    # it neither burns tasks nor goes on claiming
    daemon({'task': {'command': str(script)}}).wait_ready()
    wait_succeeded(queue, 20, 10)
    assert letters(queue) == [] and queue.counter('retried') == 0
    lines = [line.split() for line in (folder / 'runs').read_text().splitlines()]
    assert sorted(line[0] for line in lines) == sorted(tids)
    assert {line[1] for line in lines} == {'1'}
    assert broken.running() and queue.counter('released') <= 12
    assert 'claiming nothing for 1 s' in broken.log()


def test_faults_end(daemon, queue, folder, script):
    """If the missing file is there again, the host's next try succeeds and it claims normally; its pauses
    grow until then."""
    (folder / 'bin').rename(folder / 'away')
    worker = daemon({'task': {'command': str(script)}}).wait_ready()
    queue.add(*[{'x': '1'}] * 8)
    worker.wait_log('claiming nothing for 2 s')
    assert worker.log().count('this host cannot run tasks') <= 6
    (folder / 'away').rename(folder / 'bin')
    wait_succeeded(queue, 8, 10)
    assert letters(queue) == [] and queue.counter('retried') == 0


def test_own_commands_are_no_host_fault(daemon, queue, client):
    """A task whose own command is missing has failed itself: 127 uses an attempt."""
    worker = daemon({'retry': {'max_attempts': 2}}).wait_ready()
    queue.add({'command': '/no/such/program'}, {'command': 'no-such-program'})
    wait_until(lambda: len(letters(queue)) == 2)
    assert {letter.status for letter in letters(queue)} == {'127'}
    assert 'this host' not in worker.log() and queue.counter('released') == 0


def test_127_with_a_meaning(daemon, queue):
    """If the configuration has a rule for 127, it is no host fault."""
    worker = daemon({'task': {'command': 'exit 127'}, 'retry': {'permanent': '127'}}).wait_ready()
    queue.add({'x': '1'})
    wait_until(lambda: len(letters(queue)) == 1)
    assert 'this host' not in worker.log()


def test_stop_and_reload_with_a_host_fault(daemon, queue, folder, script):
    """A worker that pauses for a host fault stops at once, and a reload that repairs it takes effect."""
    worker = daemon({'task': {'command': f'{folder}/gone/job'}}).wait_ready()
    queue.add({'x': '1'})
    worker.wait_log('this host cannot run tasks')
    text = worker.config_path.read_text().replace(f'{folder}/gone/job', str(script))
    worker.config_path.write_text(text)
    worker.reload()
    wait_succeeded(queue, 1, 10)
    worker.terminate()
    assert worker.wait_exit() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root, to run the worker as another user')
def test_no_more_processes(daemon, queue, redis_server, folder):
    """If fork fails with EAGAIN, tasks are requeued with no attempt used, and run when processes can be
    started."""
    uid = 61000 + os.getpid() % 4000  # which no other test uses
    redis_server.restart(unixsocketperm='777')
    queue.redis = redis_server.client()
    queue.load()

    def before():
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        resource.setrlimit(resource.RLIMIT_NPROC, (3, 100))  # itself and its guards

    worker = daemon(start=False)
    worker.popen = {'preexec_fn': before}
    worker.start().wait_ready()
    folder.chmod(0o777)
    queue.add(*[{'command': f'echo $LEAT_ATTEMPT >> {folder}/runs'}] * 3)
    worker.wait_log('cannot start a process')
    assert 'temporarily unavailable' in worker.log()
    # as the worker's user, because root is not allowed to everywhere
    subprocess.run(['prlimit', f'--pid={worker.pid}', '--nproc=100:100'], check=True, user=uid,
                   group=uid, extra_groups=[])
    wait_succeeded(queue, 3, 10)
    assert (folder / 'runs').read_text() == '1\n1\n1\n' and letters(queue) == []
    assert queue.counter('retried') == queue.counter('crashes') == 0


def test_no_more_descriptors(daemon, queue, folder):
    """The same holds if the daemon's limit of open files is reached."""
    worker = daemon({'queue': {'concurrency': 40}}, start=False)
    worker.popen = {'preexec_fn': lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))}
    worker.start().wait_ready()
    queue.add(*[{'command': f'echo $LEAT_ATTEMPT >> {folder}/runs; sleep 1'}] * 40)
    worker.wait_log('cannot make a pipe')
    wait_succeeded(queue, 40, 60)
    assert (folder / 'runs').read_text().split() == ['1'] * 40 and letters(queue) == []
    wait_empty(queue)


@pytest.mark.parametrize('limit', [12, 16])
def test_too_few_descriptors_to_start(daemon, limit):
    """A worker that has too few descriptors to start names them, and exits with 71."""
    worker = daemon(start=False)
    worker.popen = {'preexec_fn': lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))}
    worker.start()
    assert worker.wait_exit() == 71
    assert 'cannot start: Too many open files' in worker.log()


def test_payloads_need_no_disk(daemon, queue, folder):
    """A payload is in memory, whatever TMPDIR is."""
    daemon(env={'TMPDIR': '/nonexistent'}).wait_ready()
    queue.add({'command': f'cat > {folder}/out', 'payload': 'x' * 100000})
    assert len(wait_file(folder / 'out', 100000)) == 100000
