"""leat status for all queues of /etc/leat prints a line for each, whatever is wrong with one of them."""
import json
import os
import re
import socket
import subprocess
import time

import pytest

from harness.daemon import program, write_config

UNHEALTHY, EX_USAGE, EX_UNAVAILABLE, EX_NOPERM, EX_CONFIG = 1, 64, 69, 77, 78


@pytest.fixture
def etc(folder, redis_server):
    """A folder in place of /etc/leat: add('mail', redis={…}, queue={…}) adds a queue."""
    place = folder / 'etc'
    place.mkdir()

    def add(name, redis=None, **queue):
        write_config(place / f'{name}.ini', {'redis': redis or {'socket': redis_server.socket},
                                             'queue': {'name': name, **queue}})

    add.place = place
    return add


@pytest.fixture
def status(etc):
    """Runs leat status without -q."""
    def run(*args, command='status', **env):
        clean = {name: value for name, value in os.environ.items() if not name.startswith('LEAT_')}
        return subprocess.run([program('leat'), command, *args], capture_output=True, text=True, timeout=120,
                              stdin=subprocess.DEVNULL, check=False,
                              env={**clean, 'LEAT_CONFIG_DIR': str(etc.place), **env})
    return run


def rows(text):
    """{queue: its further cells} of the table, without the titles."""
    lines = [line for line in text.splitlines()[1:] if line[0] not in '!']
    return {line.split()[0]: line.split()[1:] for line in lines}


def test_a_line_for_each_queue(etc, status, queue):
    """Each queue has its numbers and state, sorted by name. Problems are printed below, and the worst exit
    status counts."""
    etc('emails')
    etc('thumbs')
    queue.register('w1:1:a')
    queue.add(*[{'command': 'true'} for _ in range(4)])
    queue.add({'command': 'later'}, due='+60000')
    one, two = queue.begin('w1:1:a', 2)
    queue.finish('w1:1:a', one, 'retry', cause='exit', status='3', delay=60000)
    queue.finish('w1:1:a', two, 'dead', cause='exit', status='3', reason='exit 3')
    queue.begin('w1:1:a', 1)
    done = status()
    titles, first, second, problem = done.stdout.splitlines()
    assert titles.split() == ['QUEUE', 'STATE', 'READY', 'RUNNING', 'DELAYED', 'DEAD', 'WORKERS', 'OLDEST']
    assert first.split()[:-1] == ['emails', 'healthy', '1', '1', '2', '1', '1']
    assert re.fullmatch(r'\d+(ms|s)', first.split()[-1])
    assert second.split() == ['thumbs', 'unhealthy', '0', '0', '0', '0', '0', '-']
    assert problem == '! thumbs: no live worker'
    assert (done.returncode, done.stderr) == (UNHEALTHY, '')

    assert status('-q', 'emails', command='pause').returncode == 0
    (etc.place / 'thumbs.ini').unlink()
    done = status('--all')
    assert done.returncode == 0 and rows(done.stdout)['emails'][0] == 'paused'


def test_an_error_of_one_queue_is_in_its_line(etc, status, queue, client, folder):
    """No server, a denied command, a broken file: each has a line with the reason, and the others are shown."""
    client.execute_command('ACL', 'SETUSER', 'old', 'on', '>x', '~*', '&*', '+@all', '-fcall_ro', '-fcall')
    socket_path = client.connection_pool.connection_kwargs['path']
    queue.register('w1:1:a')
    etc('emails')
    etc('gone', redis={'socket': str(folder / 'none.sock')})
    assert status().returncode == EX_UNAVAILABLE
    etc('locked', redis={'socket': socket_path, 'user': 'old', 'password': 'x'})
    assert status().returncode == EX_NOPERM
    etc('wrong', redis={'socket': socket_path, 'password': 'SECRET'})
    (etc.place / 'broken.ini').write_text('[queue]\nname = broken\nlease = soon\n')
    etc('master', redis={'sentinels': '127.0.0.1:1', 'master': 'm'})
    done = status()
    seen = rows(done.stdout)
    assert {name: cells[0] for name, cells in seen.items()} == {
        'broken': 'invalid', 'emails': 'healthy', 'gone': 'unreachable', 'locked': 'denied',
        'master': 'unreachable', 'wrong': 'denied'}
    assert f'{etc.place}/broken.ini:3: lease: ' in done.stdout
    assert 'none.sock: No such file or directory' in done.stdout and 'no sentinel knows' in done.stdout
    assert 'SECRET' not in done.stdout and (done.returncode, done.stderr) == (EX_CONFIG, '')

    page = json.loads(status('--json').stdout)
    assert [one['queue'] for one in page] == sorted(seen)
    found = {one['queue']: one for one in page}
    assert found['emails']['figures']['ready'] == 0 and 'error' not in found['emails']
    assert found['gone']['healthy'] is False and found['gone']['state'] == 'unreachable'
    assert found['gone']['exit'] == EX_UNAVAILABLE and 'none.sock' in found['gone']['error']


def test_an_overview_writes_nothing(etc, status, client):
    """Without the function library the line says so; an overview does not load it."""
    etc('emails')
    etc('thumbs')
    done = status()
    assert rows(done.stdout)['emails'][0] == 'failed' and 'leat init' in done.stdout
    assert client.execute_command('FUNCTION', 'LIST') == []


def test_metrics_of_several_queues(etc, status, queue, folder):
    """leat metrics prints those of all queues; one that cannot be read has leat_up 0, and the worst exit status
    counts."""
    etc('emails')
    etc('gone', redis={'socket': str(folder / 'none.sock')})
    (etc.place / 'broken.ini').write_text('[queue]\nname = broken\nlease = soon\nscan = never\n')
    queue.add({'command': 'x', 'lane': 'a'}, {'command': 'x', 'lane': 'a'}, {'command': 'x', 'lane': 'a'})
    done = status(command='metrics')
    assert done.returncode == EX_CONFIG and 'none.sock' in done.stderr
    for line, key in ((3, 'lease'), (4, 'scan')):
        assert f'\n{etc.place}/broken.ini:{line}: {key}: ' in done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith('leat_up{')] == [
        f'leat_up{{queue="{name}"}} {up}' for name, up in (('broken', 0), ('emails', 1), ('gone', 0))]
    assert 'leat_lane_waiting{queue="emails",lane="a"} 3' in lines


@pytest.mark.parametrize('command', ['status', 'metrics'])
def test_servers_that_hang_are_asked_side_by_side(command, etc, status, queue, late):
    """Servers that accept and never answer cost two seconds together, not each."""
    listeners = [socket.create_server(('127.0.0.1', 0)) for _ in range(6)]
    for number, listener in enumerate(listeners):
        etc(f'hangs{number}', redis={'host': '127.0.0.1', 'port': listener.getsockname()[1]})
    etc('emails')
    queue.register('w1:1:a')
    start = time.monotonic()
    done = status(command=command)
    spent = time.monotonic() - start
    if command == 'status':
        assert rows(done.stdout)['emails'][0] == 'healthy' and done.stdout.count('unreachable') == 6
    else:
        assert 'leat_up{queue="emails"} 1' in done.stdout and done.stdout.count('} 0\nleat_up{queue="hangs') == 5
    assert spent < 11 + late()  # one after the other, they take 12
    for listener in listeners:
        listener.close()


def test_limits_hold_for_every_queue(etc, status, queue):
    """The --max-... options apply to each queue."""
    etc('emails')
    etc('again', stream='emails')
    queue.register('w1:1:a')
    queue.add({'command': 'true'}, {'command': 'true'})
    assert status('--max-ready', '2').returncode == 0
    done = status('--max-ready', '1')
    assert done.returncode == UNHEALTHY
    assert '! emails: ready: 2, more than 1\n' in done.stdout and '! again: ready: 2, more than 1\n' in done.stdout


def test_which_queues_are_shown(etc, status, queue, redis_server):
    """One file, -q, -c, LEAT_CONFIG or a URL prints that queue's page. --all prints the list, whatever the
    variables say."""
    etc('emails')
    queue.register('w1:1:a')
    assert isinstance(json.loads(status('--json').stdout), dict)
    assert [one['queue'] for one in json.loads(status('--all', '--json').stdout)] == ['emails']
    etc('thumbs')
    assert len(json.loads(status('--json').stdout)) == 2
    url = f'unix:{redis_server.socket}'
    for args, env in ((['-q', 'emails'], {}), (['-c', str(etc.place / 'emails.ini')], {}),
                      ([], {'LEAT_CONFIG': str(etc.place / 'emails.ini')}),
                      (['-q', 'emails'], {'LEAT_REDIS': url})):
        assert json.loads(status('--json', *args, **env).stdout)['queue'] == 'emails'
    assert len(json.loads(status('--all', '--json', LEAT_CONFIG='/none', LEAT_REDIS=url).stdout)) == 2
    assert status('--all', '-q', 'emails').returncode == EX_USAGE
    done = status('--lanes')
    assert done.returncode == EX_USAGE and 'name it with -q' in done.stderr
    assert status('--all', LEAT_CONFIG_DIR=str(etc.place / 'none')).returncode == EX_CONFIG


def test_file_names_are_escaped(etc, status, queue):
    """Control characters in a file's name are escaped."""
    etc('emails')
    write_config(etc.place / 'x\x1b[31m.ini', {'queue': {'name': 'x'}, 'redis': {'socket': '/none.sock'}})
    write_config(etc.place / 'y\n\x1b[32m.ini', {'queue': {'name': 'y'}, 'redis': {'sock': '/none.sock'}})
    done = status()
    assert '\x1b' not in done.stdout and '31m' in done.stdout
    assert 'sock: unknown key' in done.stdout
    for name in 'y\n\x1b[32m', 'z\n\x1b[33m':
        done = status('-c', etc.place / f'{name}.ini')
        assert done.returncode == EX_CONFIG and '\x1b' not in done.stderr and r'\n\x1b[3' in done.stderr
