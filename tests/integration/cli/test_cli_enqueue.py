"""leat enqueue: one task, with every option."""
import json
import subprocess
import time

import pytest

from harness.queue import Queue

EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_TEMPFAIL = 64, 65, 66, 75


def fields_of(queue, tid):
    flat = queue.show(tid)['fields']
    return dict(zip(flat[::2], flat[1::2]))


def enqueue(leat, queue, *args, **options):
    """Enqueues a task. Returns its fields."""
    done = leat('enqueue', *args, **options)
    assert done.returncode == 0, done.stderr
    stdout = done.stdout if isinstance(done.stdout, str) else done.stdout.decode()
    return fields_of(queue, stdout.strip())


@pytest.mark.parametrize('words, command', [
    (['echo hi > log; ls | wc'], b'echo hi > log; ls | wc'),
    (['echo', 'hi'], b'echo hi'),
    (['convert', 'a b.png', "it's.jpg", ''], b"convert 'a b.png' 'it'\\''s.jpg' ''"),
    (['echo', '$HOME', '*', 'x;y', '~'], b"echo '$HOME' '*' 'x;y' '~'"),
    (['make', '-j', '4', '--delay', '5m'], b'make -j 4 --delay 5m'),
    (['--', '-x'], b'-x'),
])
def test_command_line(leat, queue, words, command):
    """One word is a shell line; several words are quoted; options end at the command."""
    assert enqueue(leat, queue, *words) == {b'command': command}


def test_options_after_a_shell_line_are_refused(leat, queue):
    """Options after a shell line are refused, because they would become its arguments; -- allows them."""
    done = leat('enqueue', 'sort > x', '--payload', 'b')
    assert done.returncode == EX_USAGE and '--payload follows the command' in done.stderr
    assert queue.list('ready') == []
    assert leat('enqueue', '--', 'my program', '--payload').returncode == 0


def test_quoted_words_reach_the_program(leat, queue, tmp_path):
    """The shell turns the quoted line back into the words that were given."""
    words = ['printf', '%s|', 'a b', "'", '"', '\\', '\n', '$x', '`x`', 'ü', '', '*']
    line = enqueue(leat, queue, '--', *words)[b'command']
    done = subprocess.run(['/bin/sh', '-c', line], capture_output=True, check=True)
    assert done.stdout.decode() == ''.join(word + '|' for word in words[2:])


def test_fields(leat, queue):
    """Every option becomes the field that workers read."""
    fields = enqueue(leat, queue, '--field', 'SIZE=a=b', '--field', 'empty=', '--timeout', '5m',
                     '--max-attempts', '3', '--payload', 'text', '--expires', '@1999999999', 'true')
    assert fields == {b'SIZE': b'a=b', b'empty': b'', b'timeout': b'5m', b'max_attempts': b'3',
                      b'payload': b'text', b'expires': b'1999999999', b'command': b'true'}
    expires = float(enqueue(leat, queue, '--expires', '2h', 'true')[b'expires'])
    assert abs(expires - time.time() - 7200) < 30
    before = time.time()
    expires = float(enqueue(leat, queue, '--expires', '500ms', 'true')[b'expires'])
    assert before + 0.499 <= expires <= time.time() + 0.501


def test_payload_bytes(leat, queue, folder):
    """--payload - and --payload-file take any bytes, of any length."""
    data = bytes(range(256)) * 1000
    assert enqueue(leat, queue, '--payload', '-', 'cat', input=data)[b'payload'] == data
    (folder / 'data').write_bytes(data)
    assert enqueue(leat, queue, '--payload-file', folder / 'data', 'cat')[b'payload'] == data
    assert enqueue(leat, queue, '--payload', '-', 'cat', input=b'')[b'payload'] == b''
    done = leat('enqueue', '--payload-file', folder / 'none', 'cat')
    assert done.returncode == EX_NOINPUT and 'No such file' in done.stderr


def due_of(queue, tid):
    return int(queue.show(tid)['row']['due_ms'])


@pytest.mark.parametrize('option, value, due', [
    ('--at', '@4102444800', 4102444800000),
    ('--at', '2100-01-01T00:00:00Z', 4102444800000),
    ('--at', '2100-01-01T01:30:00.250+01:30', 4102444800250),
    ('--at', '2100-01-01 00:00', 4102444800000),
    ('--at', '2100-01-01 00:00:05', 4102444805000),
])
def test_due_times(leat, queue, option, value, due):
    """Times are read in each documented form; a blank instead of T means local time."""
    done = leat('enqueue', option, value, 'true', env={'TZ': 'UTC'})
    assert due_of(queue, done.stdout.strip()) == due


def test_local_time_and_delay(leat, queue):
    """Local time follows TZ; a delay counts from the server's time."""
    done = leat('enqueue', '--at', '2100-01-01 00:00', 'true', env={'TZ': 'UTC-2'})
    assert due_of(queue, done.stdout.strip()) == 4102444800000 - 7200000
    before = queue.now()
    tid = leat('enqueue', '--delay', '1h30m', 'true').stdout.strip()
    assert before <= due_of(queue, tid) - 5400000 <= queue.now()
    tid = leat('enqueue', '--at', '@1', 'true').stdout.strip()
    assert queue.show(tid)['row']['state'] == b'ready'


@pytest.mark.parametrize('args', [
    ['--at', '2100-02-30T00:00:00Z', 'x'], ['--at', '2100-01-01T00:00Z', 'x'],
    ['--at', '2100-01-01T00:00:00', 'x'], ['--at', 'tomorrow', 'x'], ['--at', '@-1', 'x'],
    ['--at', '2100-01-01 00:00:00 x', 'x'], ['--delay', 'soon', 'x'], ['--delay', '-5m', 'x'],
    ['--delay', '1s', '--at', '@1', 'x'], ['--timeout', 'x', 'x'], ['--max-attempts', '0', 'x'],
    ['--max-attempts', '1000001', 'x'],
    ['--expires', 'x', 'x'], ['--field', 'x', 'x'], ['--field', '=x', 'x'],
    ['--payload', 'a', '--payload', 'b', 'x'], ['--null', 'x'], ['--json-lines', 'x'], [],
    ['--file', '-', '--id', 'x'], ['--file', '-', '--payload', 'x'],
    ['--file', '-', '--null', '--json-lines'], ['--quiet', '--json', 'x'],
])
def test_wrong_usage(leat, queue, args):
    """A malformed value is refused with 64, and nothing is enqueued."""
    done = leat('enqueue', *args)
    assert done.returncode == EX_USAGE and done.stderr.startswith('leat: enqueue: ')
    assert queue.places() == {}


@pytest.mark.parametrize('args', [
    ['--delay', '1h', '--expires', '1m'], ['--at', '@1999999999', '--expires', '@1999999999']])
@pytest.mark.parametrize('name', ['enqueue', 'run'])
def test_a_task_that_could_never_start(leat, queue, name, args):
    """A task that would expire before it is due is refused, with the reason."""
    done = leat(name, *args, 'true')
    assert done.returncode == {'enqueue': EX_DATAERR, 'run': 125}[name]
    assert done.stdout == '' and 'it expires before it is due' in done.stderr
    assert queue.places() == {}


@pytest.mark.parametrize('args, said', [
    (['--field', 'PA-TH=x', 'x'], 'PA-TH'),
    (['--field', 'leat.tid=x', 'x'], 'reserved'),
    (['--field', 'a=1', '--field', 'a=2', 'x'], 'twice'),
    (['--field', 'command=x', 'x'], 'twice'),
    (['x' * 70000, 'y' * 70000], '131071'),
    ([''], 'empty'),
])
def test_bad_tasks_are_not_sent(leat, queue, args, said):
    """leat enqueue refuses a task that a worker would refuse, with the reason and 65."""
    done = leat('enqueue', *args)
    assert done.returncode == EX_DATAERR and said in done.stderr
    assert queue.places() == {}


@pytest.mark.parametrize('task, payload, said', [
    ({'batch': 2}, 'a\nb', 'newline'),
    ({'resident': 'yes'}, 'a\nb\n', 'newline'),
    ({'batch': 2, 'batch_format': 'nul'}, 'a\0b', 'NUL byte'),
    ({'batch': 2}, 'a\n', None),
    ({'batch': 2, 'batch_format': 'nul'}, 'a\nb', None),
    ({'batch': 2, 'batch_format': 'json'}, 'a\nb', None),
    ({}, 'a\nb', None),
])
def test_payloads_of_batches(leat, queue, task, payload, said):
    """leat enqueue refuses a payload that the format of the configured batches cannot carry, as a worker does."""
    done = leat('enqueue', '--payload', '-', config={'task': {'command': '/bin/cat', **task}}, input=payload)
    if said:
        assert done.returncode == EX_DATAERR and said in done.stderr
        assert queue.places() == {}
    else:
        assert (done.returncode, done.stderr) == (0, '')


@pytest.mark.parametrize('args, said', [
    (['--field', 'FILE=-x'], 'field FILE begins with -'),
    (['--payload', '-', '--field', 'FILE=x'], 'field payload holds a NUL byte'),
    (['--field', 'TO=-x'], 'field FILE is missing'),
    (['--field', 'FILE=x', '--field', 'TO=-x'], None),
    (['--field', 'FILE='], None),
])
def test_arguments_of_listed_commands(leat, queue, args, said):
    """leat enqueue refuses fields that cannot be arguments of the listed command, as a worker does."""
    config = {'security': {'commands': 'listed'},
              'command.copy': {'program': 'true', 'arguments': '{FILE} -{payload=} -- {TO=.}'}}
    done = leat('enqueue', *args, 'copy', config=config, input='a\0b')
    if said:
        assert done.returncode == EX_DATAERR and said in done.stderr
        assert queue.places() == {}
    else:
        assert (done.returncode, done.stderr) == (0, '')


def test_own_id(leat, queue):
    """If a task with the id exists, leat prints its id, says so on stderr, and succeeds."""
    first = leat('enqueue', '--id', 'order-17', 'true')
    again = leat('enqueue', '--id', 'order-17', 'true')
    assert (first.returncode, again.returncode) == (0, 0)
    assert first.stdout == again.stdout and first.stderr == ''
    assert 'already' in again.stderr and len(queue.places()) == 1
    answer = json.loads(leat('enqueue', '--json', '--id', 'order-17', 'true').stdout)
    assert answer == {'tid': first.stdout.strip(), 'new': False, 'id': 'order-17'}


def test_quiet_and_json(leat, queue):
    """--quiet prints nothing, --json an object."""
    assert leat('enqueue', '--quiet', 'true').stdout == ''
    answer = json.loads(leat('enqueue', '--json', 'true').stdout)
    assert answer['new'] is True and answer['tid'] in queue.places()


def test_full(leat, queue):
    """If the queue is at its limit, the exit status is 75 and the error has the limit."""
    queue.register('w1', max_length=1)
    assert leat('enqueue', 'true').returncode == 0
    done = leat('enqueue', 'true')
    assert done.returncode == EX_TEMPFAIL and done.stdout == ''
    assert done.stderr == 'leat: cannot enqueue: the queue holds 1 tasks, its limit is 1; try again later\n'


def test_refused(leat, queue, client):
    """If Redis refuses the task, the error says why, without the code for programs."""
    queue.register('w1', max_task=65536)
    done = leat('enqueue', '--payload', 'x' * 70000, 'true')
    assert done.returncode == EX_DATAERR and done.stdout == ''
    assert done.stderr.startswith('leat: cannot enqueue: task 1: larger than max_task: '), done.stderr


def test_queue_with_its_own_command(leat, queue):
    """If the configuration has the command, a task brings none."""
    own = {'task': {'command': '/bin/cat'}}
    assert enqueue(leat, queue, '--payload', 'x', config=own) == {b'payload': b'x'}
    assert enqueue(leat, queue, config=own) == {b'payload': b''}
    done = leat('enqueue', 'make it', config=own)
    assert done.returncode == EX_DATAERR and 'config' in done.stderr


@pytest.mark.parametrize('stream', ['emails', '{t}q', 'q{t}', 'a{b}c{d}', '{{t}q', 'plain.queue-1'])
def test_programs_and_leat_use_the_same_keys(client, leat, stream):
    """Whatever the stream's name is, leat sees each task that a program added by one key, and writes to the
    same keys."""
    Queue(client).load()
    reply = client.execute_command('FCALL', 'leat_add_many', 1, stream, json.dumps([
        {'command': 'a', 'id': 'x', 'lane': 'l'}, {'command': 'b', 'lane': 'l'}, {'command': 'c', 'delay': '1h'}]))
    assert reply[::2] == [b'new'] * 3
    keys, config = set(client.keys()), {'queue': {'stream': stream}}
    assert len(keys) == 8
    figures = json.loads(leat('status', '--json', config=config).stdout)['figures']
    assert (figures['ready'], figures['delayed']) == (2, 1), figures
    done = leat('enqueue', '--id', 'x', 'a', config=config)
    assert (done.returncode, done.stdout.split()[0]) == (0, reply[1].decode()), done
    assert leat('enqueue', '--lane', 'm', '--delay', '1h', 'd', config=config).returncode == 0
    assert set(client.keys()) == keys | {key for key in client.keys() if key.endswith(b':conf')}


def test_an_exhausted_stream(leat, queue):
    """If the stream has an entry with the greatest possible id, the error names the command that repairs it."""
    queue.register('w1')
    queue.redis.xadd(queue.stream, {'command': 'true'}, id='18446744073709551615-18446744073709551615')
    for args in (('true',), ('--file', '-')):
        done = leat('enqueue', *args, input='true\n')
        assert done.returncode == 70 and 'run leat doctor --repair, which creates the stream again' in done.stderr
    [task] = queue.begin('w1')
    assert queue.finish('w1', task) == 'ok'
    leat('doctor', '--repair')
    assert leat('enqueue', 'true').returncode == 0
