"""A Redis by its URL, from --redis or LEAT_REDIS, without any file: which setting wins, and where the
password is visible."""
import os
import re
import subprocess
from pathlib import Path

import pytest

from harness.daemon import program, write_config
from harness.users import path_with_systemctl

EX_USAGE, EX_UNAVAILABLE, EX_NOPERM, EX_CONFIG = 64, 69, 77, 78
FILE_DB, VARIABLE_DB, OPTION_DB = 1, 2, 3


def run(name, *args, **env):
    """Runs leat or leatd without the variables of the test's environment that name a queue."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith('LEAT_')}
    return subprocess.run([program(name), *map(str, args)], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, env={**clean, **env}, check=False)


@pytest.fixture
def url(redis_server):
    """A function that returns the URL of the server's socket, with database and user information."""
    return lambda db=0, user='': f'unix://{user}{redis_server.socket}?db={db}'


@pytest.fixture
def etc(folder, redis_server):
    """A folder in place of /etc/leat with the queue `emails`, in a database of its own."""
    place = folder / 'etc'
    place.mkdir()
    write_config(place / 'emails.ini', {'redis': {'socket': redis_server.socket, 'db': FILE_DB},
                                        'queue': {'name': 'emails', 'group': 'mine'}})
    return place


def ready(redis_server):
    """The databases that have a task."""
    found = []
    for db in (0, FILE_DB, VARIABLE_DB, OPTION_DB):
        found += [db] * redis_server.client(db=db).exists('emails')
    return found


def test_no_file_is_needed(url, folder):
    """A producer needs a URL and the queue's name."""
    nowhere = str(folder / 'none')
    done = run('leat', '-q', 'emails', '--redis', url(), 'enqueue', 'true', LEAT_CONFIG_DIR=nowhere)
    assert done.returncode == 0, done
    done = run('leat', '-q', 'emails', 'list', LEAT_CONFIG_DIR=nowhere, LEAT_REDIS=url())
    assert done.returncode == 0 and 'true' in done.stdout
    done = run('leat', 'list', '--redis', url(5), '-q', 'emails')
    assert done.stdout == 'no tasks\n', 'the options follow the command, and the database is used'


def test_tcp(redis_server):
    """The URL may be HOST:PORT/DB."""
    port = redis_server.listen()
    assert run('leat', '-q', 'emails', '--redis', f'redis://localhost:{port}/3', 'enqueue', 'true').returncode == 0
    assert ready(redis_server) == [OPTION_DB]


def test_settings_of_a_file(url, etc):
    """With a URL and -q there is no file: the settings do not differ from one, and none can be applied. With
    LEAT_CONFIG there is one."""
    own = {'LEAT_CONFIG_DIR': str(etc), 'LEAT_REDIS': url()}
    assert run('leat', '-q', 'emails', 'conf', 'max_length', '5', **own).returncode == 0
    done = run('leat', '-q', 'emails', 'doctor', **own)
    assert 'conf-differs' not in done.stdout and 'snapshots-only' in done.stdout, done
    done = run('leat', '-q', 'emails', 'conf', '--apply', **own)
    assert done.returncode == EX_USAGE and '--apply requires a configuration file' in done.stderr
    own['LEAT_CONFIG'] = str(etc / 'emails.ini')
    assert 'max_length: 5, the file has none' in run('leat', 'doctor', **own).stdout
    done = run('leat', 'conf', '--apply', **own)
    assert done.returncode == 0 and re.search('max_length +none', done.stdout), done


@pytest.mark.parametrize('named, given, expected', [
    (['-q'], [], FILE_DB),
    (['-q'], ['variable'], VARIABLE_DB),
    (['-q'], ['option'], OPTION_DB),
    (['-q'], ['variable', 'option'], OPTION_DB),
    (['-c'], [], FILE_DB),
    (['-c'], ['variable'], FILE_DB),
    (['-c'], ['option'], OPTION_DB),
    (['-c'], ['variable', 'option'], OPTION_DB),
    (['LEAT_CONFIG'], [], FILE_DB),
    (['LEAT_CONFIG'], ['variable'], VARIABLE_DB),
    (['LEAT_CONFIG'], ['option'], OPTION_DB),
    ([], [], FILE_DB),
])
def test_which_server_is_used(redis_server, url, etc, named, given, expected):
    """An option overrides the environment, which overrides the files of /etc/leat; -c is an option."""
    path = str(etc / 'emails.ini')
    args, env = [], {'LEAT_CONFIG_DIR': str(etc)}
    args += ['-q', 'emails'] if '-q' in named else ['-c', path] if '-c' in named else []
    args += ['--redis', url(OPTION_DB)] if 'option' in given else []
    env.update({'LEAT_CONFIG': path} if 'LEAT_CONFIG' in named else {})
    env.update({'LEAT_REDIS': url(VARIABLE_DB)} if 'variable' in given else {})
    done = run('leat', *args, 'enqueue', 'true', **env)
    assert done.returncode == 0, done
    assert ready(redis_server) == [expected]


def test_the_file_has_all_other_settings(redis_server, url, etc):
    """With -c the URL replaces the server and the login, and nothing else; with -q no file is read."""
    path = write_config(etc / 'other.ini', {
        'redis': {'sentinels': '127.0.0.1:1', 'master': 'm', 'sentinel_password': 'x', 'user': 'nobody',
                  'password': 'y', 'tls': 'no', 'connect_timeout': '1s'},
        'queue': {'name': 'emails', 'stream': 'letters'}})
    done = run('leat', '-c', path, '--redis', url(), 'enqueue', 'true')
    assert done.returncode == 0, done
    assert redis_server.client().exists('letters') == 1
    done = run('leat', '-q', 'other', '--redis', url(), 'enqueue', 'true', LEAT_CONFIG_DIR=str(etc))
    assert done.returncode == 0 and redis_server.client().exists('other') == 1


@pytest.mark.parametrize('name', ['leat', 'leatd'])
@pytest.mark.parametrize('args, env, code, said', [
    (['--redis', 'redis://h'], {}, EX_USAGE, 'no queue is named; name it with -q'),
    (['-q', 'emails', '--redis', 'redis://:SECRET@h'], {}, EX_USAGE, 'visible to others in ps; set LEAT_REDIS'),
    (['-q', 'emails', '--redis', 'redis://h:SECRET'], {}, EX_USAGE, '--redis: the port is not'),
    (['-q', 'emails', '--redis', 'http://h'], {}, EX_USAGE, '--redis: the URL does not begin with'),
    (['-q', 'emails', '--redis', 'h'], {}, EX_USAGE,
     'write redis://HOST[:PORT][/DB] or unix:///PATH[?db=DB]'),
    (['-q', 'emails'], {'LEAT_REDIS': 'redis://:SE/CRET@h'}, EX_CONFIG, 'LEAT_REDIS: an @ follows the host'),
    (['-q', 'emails'], {'LEAT_REDIS': 'redis://SECRET@h'}, EX_CONFIG,
     'LEAT_REDIS: the URL has a user name but no password'),
    (['-q', 'e mails'], {'LEAT_REDIS': 'redis://h'}, EX_CONFIG, '-q: "e mails" is not a name'),
    (['-q', 'emails', '--password-file', '/x'], {}, EX_USAGE, 'requires --redis or LEAT_REDIS'),
    (['-q', 'emails', '--redis', 'redis://h', '--password-file', '/none'], {}, EX_CONFIG,
     '--password-file: /none: No such file'),
    (['-q', 'emails', '-c', '/x'], {}, EX_USAGE, 'not both'),
    (['-q', '../x'], {}, EX_USAGE, "-q: '../x' is not the name of a queue"),
])
def test_errors(name, args, env, code, said):
    """Each mistake has its message and exit code in both programs, before they connect; no message has a part
    of the URL."""
    done = run(name, *args, *(['list'] if name == 'leat' else []), **env)
    assert done.returncode == code and said in done.stderr, done
    assert 'SECRET' not in done.stderr and 'CRET' not in done.stderr and done.stdout == ''


@pytest.mark.parametrize('name', ['leat', 'leatd'])
def test_advice(name, url, locked):
    """If the login or the database of a URL is refused, the advice is about the URL, not about [redis]."""
    words = [name, '-q', 'emails'] + (['list'] if name == 'leat' else [])
    for given, said in ((url(), 'user and password given with --redis, --password-file or LEAT_REDIS'),
                        (url(99, ':open:it@'), 'the database in --redis or LEAT_REDIS')):
        done = run(*words, LEAT_REDIS=given)
        assert done.returncode in (EX_NOPERM, EX_CONFIG) and said in done.stderr, done
        assert '[redis]' not in done.stderr


def test_advice_without_redis(folder):
    """If no Redis answers at the URL, leat says to check the URL."""
    done = run('leat', '-q', 'emails', '--redis', f'unix://{folder}/none', 'list')
    assert done.returncode == EX_UNAVAILABLE and '--redis or LEAT_REDIS has its address' in done.stderr, done


@pytest.fixture
def locked(client):
    """Users: the default one and `me`, with passwords that must be encoded in a URL."""
    client.execute_command('ACL', 'SETUSER', 'me', 'on', '>s/e?c#r@e:t%', '~*', '&*', '+@all')
    client.config_set('requirepass', 'open:it')


def test_passwords(url, locked, folder):
    """The password comes from LEAT_REDIS, or from --password-file, which wins and must be private."""
    def code(*args, **env):
        done = run('leat', '-q', 'emails', *args, 'list', **env)
        assert 's/e' not in done.stderr and 'wrong' not in done.stderr
        return done.returncode

    encoded = 's%2Fe%3Fc%23r%40e%3At%25'
    file = folder / 'password'
    file.write_text('s/e?c#r@e:t%\n')
    file.chmod(0o600)
    assert code(LEAT_REDIS=url()) == EX_NOPERM
    assert code(LEAT_REDIS=url(user=':wrong@')) == EX_NOPERM
    assert code(LEAT_REDIS=url(user=':open:it@')) == 0
    assert code(LEAT_REDIS=url(user=f'me:{encoded}@')) == 0
    assert code('--password-file', file, LEAT_REDIS=url(user='me:wrong@')) == 0
    assert code('--password-file', file, '--redis', url(user='me@')) == 0
    file.chmod(0o644)
    assert code('--password-file', file, '--redis', url(user='me@')) == EX_CONFIG


def environment(pid):
    return Path(f'/proc/{pid}/environ').read_bytes()


def test_a_worker_without_a_file(daemon, url, locked, wait_until, folder):
    """leatd takes its Redis from LEAT_REDIS; no task, no guard, and not its own environment has the password."""
    given = url(user='me:s%2Fe%3Fc%23r%40e%3At%25@')
    place = folder / 'seen'
    one = daemon(start=False, env={'LEAT_REDIS': given})
    one.source = ['-q', 'emails']
    one.start().wait_ready()
    for text in [environment(one.pid), *map(environment, one.guards())]:
        assert b'unix:' not in text and b'r%40e' not in text
    done = run('leat', '-q', 'emails', 'enqueue', f'env >{place}.new; mv {place}.new {place}', LEAT_REDIS=given)
    assert done.returncode == 0, done
    wait_until(place.exists, message=one.log)
    seen = place.read_text()
    assert 'LEAT_QUEUE=emails' in seen and 'LEAT_REDIS' not in seen and 'r%40e' not in seen
    one.reload()
    one.wait_log('configuration reloaded')
    assert 'r@e' not in one.log() and 'r%40e' not in one.log()
    one.terminate()
    assert one.wait_exit() == 0


def test_a_worker_with_a_file_ignores_the_variable(daemon, redis_server):
    """With -c, LEAT_REDIS is ignored even if it is malformed, so that no unit must unset it."""
    one = daemon(env={'LEAT_REDIS': 'redis://:SE/CRET@nowhere'}).wait_ready()
    assert b'CRET' not in environment(one.pid) and 'CRET' not in one.log()


def test_a_url_replaces_the_server_of_a_worker(daemon, redis_servers, wait_until):
    """leatd -c FILE --redis URL serves the file's queue on the other server."""
    other = redis_servers()
    one = daemon(argv=['--redis', f'unix:{other.socket}'])
    one.wait_ready()
    assert other.client().hlen('{emails}:workers') == 1


def test_check(etc, url, folder):
    """leatd -t takes the same options, and names what it has checked."""
    path = path_with_systemctl(folder)  # this host may have a user leat
    done = run('leatd', '-q', 'emails', '-t', LEAT_CONFIG_DIR=str(etc), PATH=path)
    assert (done.returncode, done.stdout) == (0, f'{etc}/emails.ini: ok\n')
    done = run('leatd', '-q', 'emails', '--redis', url(), '-t')
    assert (done.returncode, done.stdout) == (0, '--redis: ok\n')
    done = run('leatd', '-q', 'none', '-t', LEAT_CONFIG_DIR=str(etc), PATH=path)
    assert done.returncode == EX_CONFIG and f'{etc}/none.ini: cannot open: ' in done.stderr


def test_help():
    """--help of both programs names the options and the variable."""
    for name in ('leat', 'leatd'):
        text = run(name, '--help').stdout
        assert re.search(r'^  --redis URL ', text, re.M) and '  --password-file FILE' in text
        assert 'LEAT_REDIS' in text and max(map(len, text.splitlines())) <= 80
