"""leat itself: help, errors in the command line, and the choice of the configuration."""
import json
import os
import socket
import subprocess
import threading

import pytest

from harness.daemon import program, write_config

COMMANDS = ('enqueue', 'import', 'wait', 'status', 'list', 'show', 'dead', 'cancel', 'pause', 'resume',
            'drain', 'undrain', 'conf', 'doctor', 'run', 'logs', 'init', 'upgrade')
EX_USAGE, EX_DATAERR, EX_UNAVAILABLE, EX_IOERR, EX_NOPERM, EX_CONFIG = 64, 65, 69, 74, 77, 78


def run(*args, env=None, **options):
    """Runs leat without -c."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith('LEAT_')}
    return subprocess.run([program('leat'), *args], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, env={**clean, **(env or {})}, check=False,
                          **options)


def test_help_and_version():
    """--help lists every command, and leat COMMAND --help has usage, examples and exit codes."""
    done = run('--help')
    assert done.returncode == 0 and all(f'  {name}' in done.stdout for name in COMMANDS)
    for name in COMMANDS:
        for args in ([name, '--help'], ['help', name], [name, '-h']):
            done = run(*args)
            assert done.returncode == 0 and done.stderr == ''
            assert done.stdout.startswith(f'Usage: leat {name}')
            assert '\nExamples:\n' in done.stdout and '\nExit codes:\n' in done.stdout
            assert max(map(len, done.stdout.splitlines())) <= 80
    assert max(map(len, run('--help').stdout.splitlines())) <= 80
    assert run('--version').stdout.startswith('leat ')


@pytest.mark.parametrize('args, said', [
    ([], 'Usage: leat'),
    (['stauts'], 'did you mean status?'),
    (['frobnicate'], 'unknown command'),
    (['list', '--jsno'], 'did you mean --json? See leat list --help'),
    (['list', '--flux'], 'unknown option --flux; see leat list --help'),
    (['list', '-x'], 'unknown option -x; see'),
    (['conf', 'max_length', '-1'], 'unknown option -1; write -- before a value that begins with a hyphen; see'),
    (['conf', '--', 'max_length', '-1'], "invalid number '-1'; use one from 1 to 1000000000000, or none; see"),
    (['list', '--limit'], 'needs a value'),
    (['list', '--limit', 'x'], "invalid number 'x'"),
    (['list', '--json=1'], 'takes no value'),
    (['list', '--state', 'redy'], 'did you mean ready?'),
    (['list', 'word'], 'unexpected argument'),
    (['status', '--watch=x'], '--watch: invalid interval'),
    (['status', '--watch', '0.5'], "--watch: invalid interval '0.5'; use whole seconds, such as 5, or a "
                                   'duration of at least 100ms, such as 500ms; see leat status --help'),
    (['status', '--watch', 'now'], "--watch: invalid interval 'now'; use whole"),
    (['status', '--lanes', '0.5'], "--lanes: invalid number '0.5'; use a whole number from 1 to 1000; see"),
    (['status', '--lanes', '1001'], "--lanes: invalid number '1001'; use a whole number from 1 to 1000; see"),
    (['-q', 'list'], 'leat: missing operand: give a command; see leat --help'),
    (['dead', 'drop', '--all', '--limit', '5', '--yes'], '--limit is only for list and --dry-run; select by ids'),
    (['dead', 'show', '--all', '--limit', '5'], '--limit is only for list and --dry-run'),
    (['dead', 'retry', '--payload', '1-0'], '--payload is only for show'),
    (['dead', 'retyr'], 'did you mean retry?'),
    (['dead', 'list', '--cause', 'zzzzzz'], 'unknown cause zzzzzz; CAUSES in leatd(8) lists them; see'),
    (['destroy', 'a', 'b'], 'destroy: give only one queue; see'),
    (['dead'], 'list, show, retry or drop'),
    (['conf', 'leas', '60s'], 'did you mean lease?'),
    (['conf', 'lease', '5ms'], "lease: invalid duration '5ms'; use one from 1s to 1d, such as 30s"),
    (['conf', 'lease', '0'], 'use one from 1s to 1d'),
    (['conf', 'lease', 'none'], 'use one from 1s to 1d'),
    (['conf', 'max_task', '1K'], "max_task: invalid size '1K'; use one from 64K to 1T, such as 16M, or none; see"),
    (['conf', 'max_task', '2000G'], 'use one from 64K to 1T'),
    (['conf', 'history', '100001'], "history: invalid value '100001'; use a number up to 100000, an age from 1m "
     'to 3650d such as 7d, or none'),
    (['conf', 'history', '30s'], 'use a number up to 100000'),
    (['conf', 'max_length', '1e6'], "invalid number '1e6'; use one from 1 to 1000000000000, or none; see"),
    (['conf', 'max_crashes', '0'], 'use one from 1 to 1000; see'),
    (['conf', 'max_crashes', '1001'], 'use one from 1 to 1000; see'),
    (['conf', 'lease', '36525d'], 'use one from 1s to 1d'),
    (['conf', 'burst', '1000000001'], 'use one from 1 to 1000000000; see'),
    (['conf', 'dead_keep', '500ms'], 'use one from 1s to 3650d'),
    (['conf', 'dead_keep', '101y'], 'use one from 1s to 3650d, such as 30s, 5m or 1h30m, or none; see'),
    (['list', '--limit', '2000000000000'], 'use a whole number from 0 to 1000000000000'),
    (['show'], 'missing operand: give a task id'),
    (['cancel'], "missing operand: give task ids, or '-'"),
    (['cancel', '--nwo', 'x'], 'did you mean --now?'),
    (['pause', 'word'], 'unexpected argument'),
    (['resume', 'word'], 'unexpected argument'),
    (['drain'], 'missing operand: give hosts, or --all'),
    (['drain', '--all', 'web1'], 'not both'),
    (['drain', '*'], 'is not a host'),
    (['undrain', ''], 'is not a host'),
    (['-c', 'a', '-q', 'b', 'list'], 'not both'),
    (['-q', '../x', 'list'], 'is not the name of a queue'),
    (['enqueue', '--file', 'a', '--file', 'b'], '--file is given twice; give it once; see leat enqueue --help'),
    (['enqueue', '--timeout', '5', '--timeout', '5', 'true'], '--timeout is given twice'),
    (['enqueue', '--delay', '36526d', 'true'], "--delay: invalid duration '36526d'; use one of at most 36525d; "
                                               'see'),
    (['enqueue', '--expires', '36526d', 'true'], 'use one of at most 36525d; see'),
    (['dead', 'drop', '--cause', 'exit', '--cause', 'oom', '--yes'], '--cause is given twice'),
    (['list', '--limit=1', '--limit=0'], '--limit is given twice'),
    (['list', '-q', 'a', '--queue', 'b'], '--queue is given twice'),
    (['enqueue', '--id', '', 'true'], '--id: the value is empty; give one, or leave out the option'),
    (['enqueue', '--unique=', 'true'], '--unique: the value is empty'),
    (['-c', '', 'list'], '-c: the name of the file is empty'),
    (['show', '--json', '--payload', '1-0'], 'give --json or --payload, not both'),
    (['dead', 'show', '--payload', '--json', '1-0'], 'give --json or --payload, not both'),
])
def test_usage_errors(args, said):
    """A wrong command line gets an error and exit status 64 before leat connects."""
    done = run(*args)
    assert done.returncode == EX_USAGE and said in done.stderr and done.stdout == ''


def test_the_only_queue_is_the_default(folder, redis_server):
    """Without -q and -c the only *.ini of the folder is used; if there are several they are listed, and if
    there is none, leat says so."""
    place = folder / 'etc'
    place.mkdir()
    env = {'LEAT_CONFIG_DIR': str(place)}
    done = run('list', env=env)
    assert done.returncode == EX_CONFIG and 'has no *.ini' in done.stderr
    done = run('list', env={'LEAT_CONFIG_DIR': str(folder / 'none')})
    assert done.returncode == EX_CONFIG and f'cannot read {folder}/none: No such file' in done.stderr

    sections = {'redis': {'socket': redis_server.socket}, 'queue': {'name': 'one'}}
    write_config(place / 'one.ini', sections)
    (place / 'one.ini.bak').write_text('')
    (place / '.hidden.ini').write_text('')
    assert run('list', env=env).stdout == 'no tasks\n'

    sections['queue']['name'] = 'two'
    write_config(place / 'two.ini', sections)
    done = run('list', env=env)
    assert done.returncode == EX_USAGE and 'one, two' in done.stderr
    assert run('-q', 'two', 'list', env=env).returncode == 0
    assert run('list', '-q', 'two', env=env).returncode == 0
    assert run('list', env={**env, 'LEAT_CONFIG': str(place / 'two.ini')}).returncode == 0

    done = run('-q', 'tow', 'list', env=env)
    assert done.returncode == EX_CONFIG
    assert 'did you mean two?' in done.stderr and 'one, two' in done.stderr


def test_a_broken_configuration(folder):
    """All errors of the file are printed with their lines, and the exit status is 78."""
    path = folder / 'x.ini'
    path.write_text('[queue]\nname = x\nlease = soon\nconcurency = 3\n')
    done = run('-c', str(path), 'status')
    assert done.returncode == EX_CONFIG
    assert f'{path}:3' in done.stderr and f'{path}:4' in done.stderr


def test_redis_that_cannot_be_reached(leat, redis_server):
    """If Redis cannot be reached, each command says where it looked, and exits with 69."""
    redis_server.kill()
    for args in (['enqueue', 'true'], ['status'], ['list'], ['show', '1-1'], ['dead', 'list'],
                 ['dead', 'retry', '--all'], ['conf'], ['enqueue', '--file', '/dev/null']):
        done = leat(*args)
        assert done.returncode == EX_UNAVAILABLE, (args, done)
        assert redis_server.socket in done.stderr and done.stdout == ''


def test_reply_that_announces_too_much(folder):
    """A server cannot make leat allocate gigabytes with a few bytes: the connection counts as broken."""
    def answer(listener):
        with listener.accept()[0] as client:
            client.recv(4096)
            client.sendall(b'*2147483647\r\n:1\r\n')
            client.recv(1)  # until leat closes it

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / 'hostile.sock'))
        listener.listen()
        server = threading.Thread(target=answer, args=(listener,), daemon=True)
        server.start()
        done = run('--redis', f'unix://{folder}/hostile.sock', '-q', 'emails', 'status')
        server.join()
    assert done.returncode == EX_UNAVAILABLE and 'a reply of too many elements' in done.stderr, done


@pytest.mark.parametrize('args', [['show'], ['cancel'], ['wait'], ['logs'], ['dead', 'show'], ['dead', 'drop']])
def test_an_empty_id(leat, queue, args):
    """An empty id, such as that of an empty variable of a script, is no task that cannot be found."""
    done = leat(*args, '')
    assert done.returncode == EX_USAGE and 'the id of a task is empty' in done.stderr, done


def test_denied(leat, client, queue):
    """If the user's ACL does not allow the call, leat says so and exits with 77."""
    client.execute_command('ACL', 'SETUSER', 'reader', 'on', '>secret', '~*', '+fcall_ro', '+auth',
                           '+fcall', '+hget', '+time', '+xlen')
    user = {'redis': {'user': 'reader', 'password': 'secret'}}
    assert leat('enqueue', 'true', config=user).returncode == EX_NOPERM
    wrong = {'redis': {'user': 'reader', 'password': 'guess'}}
    done = leat('list', config=wrong)
    assert done.returncode == EX_NOPERM and 'guess' not in done.stderr
    assert 'disabled; check user and password in [redis]' in done.stderr


def test_no_such_database(leat):
    """If the server does not have the database, the configuration is to blame: exit status 78, and what to
    check."""
    done = leat('list', config={'redis': {'db': 99}})
    assert done.returncode == EX_CONFIG and 'out of range; check db' in done.stderr


@pytest.mark.parametrize('args', [['list'], ['list', '--json'], ['status'], ['enqueue', 'true'],
                                  ['--help']])
def test_output_that_cannot_be_written(args, folder, base_config, queue):
    """If stdout cannot be written, here a full disk, the exit status is 74, with a message."""
    queue.register('w')
    queue.add({'command': 'true'})
    path = write_config(folder / 'full.ini', base_config)
    with open('/dev/full', 'w', encoding='ascii') as full:
        done = subprocess.run([program('leat'), '-c', str(path), *args], stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == EX_IOERR and 'No space left' in done.stderr


@pytest.mark.parametrize('closed', ['<&- >&-', '<&- >&- 2>&-', '2>&-'])
def test_closed_descriptors(folder, base_config, queue, client, closed):
    """Output for a closed stdout or stderr does not go to Redis, whose connection is opened next."""
    queue.add({'command': 'FLUSHALL'})
    argv = [program('leat'), '-c', str(write_config(folder / 'q.ini', base_config))]
    done = subprocess.run(['sh', '-c', f'"$@" {closed}', 'sh', *argv, 'list'], stderr=subprocess.PIPE, check=False)
    assert done.returncode == (EX_IOERR if '>&- ' in closed + ' ' and closed != '2>&-' else 0)
    done = subprocess.run(['sh', '-c', f'"$@" {closed}', 'sh', *argv, 'show', '1-1'], stderr=subprocess.PIPE,
                          check=False)
    assert done.returncode == 1
    assert client.info('errorstats') == {}


def test_a_closed_pipe(folder, base_config, queue):
    """leat list | head ends silently with 74."""
    queue.add(*[{'command': f'echo {i} {"x" * 150}'} for i in range(3000)])
    path = write_config(folder / 'pipe.ini', base_config)
    argv = [program('leat'), '-c', str(path), 'list', '--limit', '0', '--json']
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b''
        assert process.wait(120) == EX_IOERR


@pytest.mark.parametrize('worker_ms, file, lease, code, said', [
    (10000, '1s', '15s', EX_DATAERR, 'the worker web1:4711 has kill_grace 10s, which requires a lease of at least '
     '22s222ms; set that, or first lower [task] kill_grace to 6s750ms and reload the workers'),
    (10000, '1s', '22221ms', EX_DATAERR, 'at least 22s222ms'),
    (10000, '1s', '22222ms', 0, ''),
    (1000, '5s', '4s', EX_DATAERR, '.ini has kill_grace 5s, which requires a lease of at least 11s110ms'),
    (None, '100ms', '1s', 0, ''),
])
def test_a_lease_that_is_too_short(leat, queue, worker_ms, file, lease, code, said):
    """conf refuses a lease into which kill_grace of a live worker or of the file does not fit, with numbers
    that are exact; a worker that is gone or does not report its kill_grace does not count."""
    def beat(**members):
        return json.dumps({'host': 'web1', 'pid': 4711, 'state': 'running', **members})
    queue.register('web1:4711:a', heartbeat=beat(**({'kill_grace_ms': worker_ms} if worker_ms else {})))
    queue.redis.hset(queue.workers, 'web2:1:b', f'{queue.now() - 61000} {beat(kill_grace_ms=3600000)}')
    done = leat('conf', 'lease', lease, config={'task': {'kill_grace': file}})
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert (queue.conf_set()['lease_ms'] == '60000') == (code != 0)


def test_conf(leat, queue):
    """conf shows the settings in force before any worker, sets values with units, and refuses others."""
    assert 'lease             1m\n' in leat('conf').stdout
    queue.register('w1', lease=30000)
    assert 'lease             30s' in leat('conf').stdout
    assert leat('conf', 'lease', '90s').returncode == 0
    assert leat('conf', 'max_length', '7').returncode == 0
    assert leat('conf', 'max_crashes', '2').stdout.splitlines() == [
        'lease             1m30s', 'max_crashes       2', 'max_length        7',
        'max_task          none', 'history           1000', 'dead_keep         none', 'dead_keep_number  none',
        'rate              none', 'burst             1', 'lanes_only        any']
    assert 'max_task          64K\n' in leat('conf', 'max_task', '64K').stdout
    assert 'max_task          100000\n' in leat('conf', 'max_task', '100000').stdout
    assert 'max_task          none\n' in leat('conf', 'max_task', '0').stdout
    for given, shown in ('7d', '1w'), ('36h', '1d12h'), ('0', 'none'), ('none', 'none'), ('50', '50'):
        assert f'history           {shown}\n' in leat('conf', 'history', given).stdout
    conf = queue.status()['conf']
    assert (conf['lease_ms'], conf['max_length']) == (b'90000', b'7')
    assert 'max_length        none' in leat('conf', 'max_length', 'none').stdout
    assert '"lease_ms": 90000' in leat('conf', '--json').stdout
    assert leat('conf', 'dead_keep', '30d').returncode == 0
    assert 'dead_keep         4w2d' in leat('conf', 'dead_keep_number', '9').stdout
    assert 'dead letters are kept for 4w2d, the newest 9, and 1 of tasks that never ran' in leat('status').stdout
    assert 'dead_keep         none' in leat('conf', 'dead_keep', 'none').stdout


def test_libraries(leat):
    """leat starts without the libraries that only some commands need, since loading them takes most of the time
    of a short command. With TLS, libcrypto comes with libssl."""
    shown = leat('enqueue', 'true', env={'LD_TRACE_LOADED_OBJECTS': '1'}).stdout
    assert 'libhiredis' in shown
    assert not any(name in shown for name in ('libjansson', 'libsystemd', 'libncurses', 'libtinfo'))
    assert ('libcrypto' in shown) == ('libssl' in shown)


def test_libjansson_cannot_be_loaded(leat, folder):
    """leat fails if it needs libjansson and cannot load it; a command without JSON works."""
    (folder / 'libjansson.so.4').write_bytes(b'')
    broken = {'LD_LIBRARY_PATH': str(folder)}
    assert leat('enqueue', 'true', env=broken).returncode == 0
    done = leat('enqueue', '--json-lines', '--file', '-', input='{"command": "true"}\n', env=broken)
    assert done.returncode == EX_DATAERR and 'libjansson cannot be loaded' in done.stderr
    for args in (['status', '--json'], ['list', '--json']):
        done = leat(*args, env=broken)
        assert done.returncode == 71 and 'out of memory' in done.stderr
