"""leat move, leat edit and leat now change tasks that wait, say what became of each, and refuse the others."""
import json
import os

import pytest

from harness.daemon import merged, write_config
from harness.functions.doctor import Doctor
from harness.functions.invariants import check
from harness.polling import wait_until
from harness.queue import Queue, text
from harness.tasks import wait_succeeded

EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_TEMPFAIL, EX_CONFIG = 64, 65, 66, 75, 78
TASK = {'command': 'true', 'id': 'label', 'lane': 'blue'}
PLAIN = {'command': 'true'}
BINARY = b'\0\xff\n' * 349526  # 1 MB


@pytest.fixture
def other(queue, folder, base_config):
    """Another queue of the same Redis. leat finds its file by its name."""
    write_config(folder / 'etc' / 'mails.ini', merged(base_config, {'queue': {'name': 'mails'}}))
    other = Queue(queue.redis, 'mails')
    other.register('v1:1:a')
    return other


@pytest.fixture(autouse=True)
def registered(queue, folder):
    (folder / 'etc').mkdir()
    queue.register('w1:1:a')


@pytest.fixture
def run(leat, folder):
    """(stdout, stderr, exit status)"""
    def run(*args, **options):
        done = leat(*args, env={**os.environ, 'LEAT_CONFIG_DIR': str(folder / 'etc')}, **options)
        return done.stdout, done.stderr, done.returncode
    return run


def add(queue, task, **options):
    """Its id, with which no other task's id shares the first 13 digits."""
    [tid] = queue.add(task, **options)

    def is_over():
        seconds, us = queue.redis.time()
        return seconds * 1000 + us // 1000 > int(tid[:13])
    wait_until(is_over)
    return tid


def fields_of(queue, tid):
    flat = queue.show(tid)['fields']
    return {text(name): value for name, value in zip(flat[::2], flat[1::2])}


def test_move_to_a_lane(run, queue):
    """Tasks in all places move, by id, label, prefix and stdin."""
    first, second, third = add(queue, TASK), add(queue, PLAIN, due='+60000'), add(queue, PLAIN)
    assert run('move', '--lane', 'red', 'label', second[:13], '-', input=third + '\n') == (
        f'label: moved\n{second}: moved\n{third}: moved\n', '', 0)
    assert {fields_of(queue, tid)['lane'] for tid in (first, second, third)} == {b'red'}
    assert run('move', '--lane', 'red', first) == (f'{first}: is there already\n', '', 0)
    assert run('move', '--lane', '', first)[0] == f'{first}: moved\n' and 'lane' not in fields_of(queue, first)
    check(queue)
    assert Doctor(queue).kinds() == []


def test_move_to_a_queue(run, queue, other):
    """The tasks go on in the other queue, with new ids and all their bytes; both queues are sound."""
    tid = queue.add(dict(TASK, payload=BINARY))[0]
    out, err, code = run('move', '--to', 'mails', '--json', 'label')
    answer = json.loads(out)
    assert (err, code, answer['state'], answer['id']) == ('', 0, 'moved', 'label')
    assert queue.places() == {} and list(other.places()) == [answer['tid']] and answer['tid'] != tid
    assert fields_of(other, 'label')['payload'] == BINARY
    assert run('move', '--to', 'mails', tid) == (f'{tid}: not found\n', '', EX_NOINPUT)
    for one in (queue, other):
        check(one)
        assert Doctor(one).kinds() == []
    later = queue.add(PLAIN, due='+60000')[0]
    out = run('move', '--to', 'mails', '--lane', 'red', later)[0]
    assert f'{later}: moved as {other.list("waiting")[0]["tid"].decode()} to queue mails\n' == out
    assert fields_of(other, out.split()[3])['lane'] == b'red'


def test_queues_that_tasks_cannot_go_to(run, queue, other, folder, base_config):
    """The queue itself, one without a file, one that no worker knows, and one of another database."""
    [tid] = queue.add(PLAIN, due='+60000')
    write_config(folder / 'etc' / 'emails.ini', base_config)
    write_config(folder / 'etc' / 'fresh.ini', merged(base_config, {'queue': {'name': 'fresh'}}))
    write_config(folder / 'etc' / 'far.ini', merged(base_config, {'queue': {'name': 'far'}, 'redis': {'db': 1}}))
    for name, status, why in (('emails', EX_USAGE, 'emails is the queue that the tasks are in'),
                              ('mail', EX_CONFIG, 'did you mean mails?'),
                              ('fresh', EX_DATAERR, 'there is no queue fresh yet'),
                              ('far', EX_CONFIG, 'far: its configuration names another Redis or database')):
        out, err, code = run('move', '--to', name, tid)
        assert code == status and why in err and 'moved' not in out
    other.conf_set('max_length', 1)
    other.add(PLAIN)
    assert run('move', '--to', 'mails', tid)[2] == EX_TEMPFAIL
    assert list(queue.places()) == [tid]


def test_now(run, queue):
    """A delayed task is due. One that was so already is no error."""
    [tid] = queue.add(TASK, due='+60000')
    assert run('now', 'label') == ('label: due now\n', '', 0)
    assert run('now', 'label') == ('label: was due already\n', '', 0)
    [task] = queue.begin('w1:1:a')
    assert task.tid == tid


def test_edit(run, queue, folder):
    """Fields are set, replaced and removed, byte by byte, and so is the due time."""
    [tid] = queue.add(dict(TASK, payload='old', n='1', never='x'))
    (folder / 'payload').write_bytes(BINARY)
    assert run('edit', 'label', '--payload-file', folder / 'payload', '--field', 'n=2', '--timeout', '5m',
               '--unset', 'never', '--unset', 'lane', '--id', 'two', '--delay', '1h') == ('label: edited\n', '', 0)
    assert fields_of(queue, tid) == {'command': b'true', 'id': b'two', 'payload': BINARY, 'n': b'2',
                                     'timeout': b'5m'}
    assert queue.redis.zscore(queue.delayed, tid) > queue.now() + 3000000
    assert run('edit', 'two', '--field', 'n=2') == ('two: is so already\n', '', 0)
    assert run('edit', '--command', 'false', tid, '--payload', '-', input=b'\0') == (
        f'{tid}: edited\n'.encode(), b'', 0)
    assert fields_of(queue, tid)['payload'] == b'\0' and fields_of(queue, tid)['command'] == b'false'
    check(queue)
    assert Doctor(queue).kinds() == []


@pytest.mark.parametrize('args, status, why', [
    ((), EX_USAGE, 'nothing to change'),
    (('--field', 'a=1', '--unset', 'a'), EX_USAGE, 'field a is given twice'),
    (('--sign', 'key'), EX_USAGE, 'for new tasks only'),
    (('--unset', ''), EX_USAGE, 'give the name of a field'),
    (('--unset', 'command'), EX_DATAERR, 'workers would refuse the task: '),
    (('--timeout', 'soon'), EX_USAGE, 'invalid duration'),
    (('--unique', 'k'), EX_DATAERR, 'unique key k is held by'),
    (('--field', 'leat.tid=1'), EX_DATAERR, 'leat.tid'),
])
def test_edit_refuses(run, queue, args, status, why):
    """Nothing changes if workers, producers or names forbid it, and the message says why."""
    [tid] = queue.add(TASK)
    queue.add(dict(PLAIN, unique='k'), due='+60000')
    out, err, code = run('edit', tid, *args)
    assert (out, code) == (f'{tid}: failed\n' if status == EX_DATAERR else '', status)
    assert why in err
    if status == EX_DATAERR:
        assert json.loads(run('edit', tid, '--json', *args)[0]) == {'id': tid, 'state': 'failed'}
    assert fields_of(queue, tid) == {name: value.encode() for name, value in TASK.items()}


@pytest.mark.parametrize('words', [['move', '--lane', 'red'], ['now'], ['edit', '--timeout', '1s']])
def test_tasks_that_do_not_wait(run, queue, words):
    """A running task, a dead letter and a signed task stay as they are. The message says what to do instead."""
    [tid] = queue.add(TASK)
    [task] = queue.begin('w1:1:a')
    out, err, code = run(*words, tid)
    assert (out, code) == (f'{tid}: failed\n', EX_DATAERR)
    assert 'it runs on w1:1:a; wait for its end, or stop it: leat cancel' in err
    assert json.loads(run(*words, '--json', tid)[0]) == {'id': tid, 'state': 'running', 'worker': 'w1:1:a'}
    queue.finish('w1:1:a', task, 'dead', cause='exit', status='1')
    out, err, code = run(*words, tid)
    assert (out, code) == (f'{tid}: failed\n', EX_DATAERR) and 'to enqueue it again: leat dead retry' in err
    assert run(*words, '1769860800000-0')[2] == EX_NOINPUT
    [tid] = queue.add(dict(PLAIN, signature='leat1:k:n:0'))
    out, err, code = run(*words, tid)
    assert (words == ['now'] and code == 0) or (code == EX_DATAERR and 'it is signed' in err)


def test_edit_without_a_signature(run, queue, folder):
    """Where signatures are required, a change of fields that leaves the task unsigned is refused."""
    tid = add(queue, PLAIN)
    config = {'security': {'signatures': 'required', 'key_files': f'k:{folder}/key'}}
    assert run('edit', tid, '--timeout', '5s', config=config) == (
        f'{tid}: failed\n', f'leat: cannot edit {tid}: workers would refuse the task: it is not signed\n',
        EX_DATAERR)
    assert run('edit', tid, '--delay', '1h', config=config) == (f'{tid}: edited\n', '', 0)


def test_usage(run):
    """Ids and a place are needed."""
    for words in (['move', '1-1'], ['move', '--lane', 'a'], ['now'], ['edit'], ['edit', '1-1', '2-2']):
        assert run(*words)[2] == EX_USAGE


def test_edit_takes_one_task(run, queue):
    """Of ids on stdin, edit could not check each changed task before it changes them all."""
    tid = add(queue, PLAIN)
    before = run('export')
    out, err, code = run('edit', '--timeout', '5s', '-', input=tid + '\n')
    assert (out, code) == ('', EX_USAGE) and 'give the id of one task' in err
    assert run('export') == before


def test_workers(run, queue, other, daemon):
    """Tasks that were moved, edited and made due run, on the worker of the queue where it is now."""
    daemon({'queue': {'name': 'mails'}}).wait_ready()
    tids = queue.add(PLAIN, dict(PLAIN, command='exit 1'), PLAIN, due='+600000')
    run('edit', tids[1], '--command', 'true')
    run('now', *tids)
    assert run('move', '--to', 'mails', *tids)[2] == 0
    wait_succeeded(other, 3)
