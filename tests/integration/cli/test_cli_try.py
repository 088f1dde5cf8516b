"""leat try: a resident command in the terminal."""
import json

import pytest

from harness.daemon import ROOT

PYTHON = f'exec /usr/bin/python3 {ROOT}/conf/handlers/handler.py'


@pytest.fixture
def attempt(leat, folder):
    """A function that runs leat try: attempt(command, 'payload', …, timeout='1s')."""
    def run(command, *args, form='json', **task):
        own = {'command': command, 'resident': 'yes', 'batch_format': form, 'resident_start_timeout': '10m',
               'timeout': '10m', 'kill_grace': '1m', **task}
        return leat('try', *args, config={'redis': {'socket': folder / 'nowhere'}, 'queue': {'lease': '5m'},
                                          'task': own})

    return run


def test_success(attempt):
    """Each payload becomes a record. What the command writes and reports is shown. No Redis is needed."""
    done = attempt(PYTHON, 'one', 'two')
    assert (done.returncode, done.stdout) == (0, 'attempt 1 of one\nattempt 1 of two\n')
    assert done.stderr == 'descriptor 3: ready\ndescriptor 3: 1 ok\ndescriptor 3: 2 ok\n'


def test_failure(attempt):
    """A task that fails makes the exit status 1; the next record is tried nevertheless."""
    done = attempt(PYTHON, '', 'two')
    assert (done.returncode, done.stdout) == (1, 'attempt 1 of two\n')
    assert 'descriptor 3: 1 retry there is no payload\ndescriptor 3: 2 ok\n' in done.stderr


def test_record(attempt, folder):
    """The record has the form of the configuration, and the fields of the command line."""
    command = f'echo ready >&3; read -r line; echo "$line" > {folder}/seen; echo 1 exit 0 >&3'
    assert attempt(command, '--field', 'size=100', '--field', 'a=b=c', 'x').returncode == 0
    record = json.loads((folder / 'seen').read_text())
    assert record['fields'] == {'payload': 'x', 'size': '100', 'a': 'b=c'}
    assert {'index', 'tid', 'attempt', 'max_attempts', 'fence', 'enqueued_at', 'deadline'} <= set(record)
    assert attempt(command, 'x y', form='lines').returncode == 0
    assert (folder / 'seen').read_text() == 'x y\n'


@pytest.mark.parametrize('command, told', [
    ('exit 0', 'closed descriptor 3, or has ended'),
    ('echo ready >&3', 'leat: the command '),
    ('echo Ready >&3; exec sleep 600', 'ignored: not "ready"'),
    ('echo ready >&3; read -r x; echo 2 ok >&3; echo done >&3', 'done (ignored: no report on this record)'),
    ('echo ready >&3; exec sleep 600', 'written nothing on descriptor 3 in time'),
    ('echo ready >&3; read -r x; echo 1 ok >&3; exec sleep 600', 'has not ended within [task] kill_grace'),
    ('/nowhere/program', 'closed descriptor 3, or has ended')])
def test_faults(attempt, command, told):
    """A command that breaks the rules is told so, and ended."""
    times = {'resident_start_timeout': '5s', 'timeout': '5s', 'kill_grace': '300ms'}
    done = attempt(command, 'x', **times)
    assert done.returncode == 1 and told in done.stderr


@pytest.mark.parametrize('task, told', [
    ({'directory': '/nowhere'}, 'cannot change to directory /nowhere: No such file'),
    ({'shell': '/nowhere/sh'}, '/nowhere/sh: cannot be executed: No such file')])
def test_not_started(attempt, task, told):
    """A command that cannot be started has the status 71, and only the reason is told."""
    done = attempt(PYTHON, 'x', **task)
    assert done.returncode == 71 and done.stderr.startswith(f'leat: {told}') and done.stderr.count('\n') == 1


def test_not_resident(leat):
    """A queue without a resident command cannot be tried."""
    done = leat('try', 'x', config={'task': {'command': 'true'}})
    assert done.returncode == 78 and 'add resident = yes under [task]' in done.stderr


@pytest.mark.parametrize('args, status', [([], 64), (['--field', 'x', 'y'], 64)])
def test_usage(attempt, args, status):
    """Wrong usage is refused."""
    assert attempt('true', *args).returncode == status


def test_refused(attempt, folder):
    """A task that leatd would refuse is refused before the command starts."""
    done = attempt(f'touch {folder}/started; echo ready >&3; cat', 'one', 'two\nlines', form='lines')
    assert done.returncode == 65 and 'record 2: ' in done.stderr and 'holds a newline' in done.stderr
    assert not (folder / 'started').exists()
