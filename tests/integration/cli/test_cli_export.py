"""leat export and leat import --export take a queue from one Redis, or name, to another: order, lanes, due times,
attempts and dead letters are as they were, byte by byte."""
import json

import pytest
import redis

from harness.functions.doctor import Doctor
from harness.functions.failing import Failing
from harness.functions.invariants import check
from harness.queue import Queue, pairs

EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_TEMPFAIL = 64, 65, 66, 75
PLAIN = {'command': 'true'}
BINARY = b'\0\xff\n' * 349526  # 1 MB
BESIDE = {'queue': {'name': 'mails'}}


def fill(queue):
    """{name: tid} of tasks in every place."""
    queue.register('w1:1:a')
    found = {}
    [found['dead']] = queue.add(dict(PLAIN, payload=b'\xff\0', lane='red'))
    queue.finish('w1:1:a', queue.begin('w1:1:a')[0], 'dead', cause='exit', status='3', reason='why',
                 stderr=b'\xfe')
    [found['refused']] = queue.add(PLAIN)
    [task] = queue.begin('w1:1:a')
    queue.finish('w1:1:a', task, 'dead', cause='timeout')
    again = dict(PLAIN, unique='again', unique_next='1')
    [found['running']] = queue.add(again)
    queue.begin('w1:1:a')
    [found['following']] = queue.add(again)
    [found['retrying']] = queue.add(dict(PLAIN, id='label'))
    [task] = queue.begin('w1:1:a')
    queue.finish('w1:1:a', task, 'retry', cause='exit', status='1', delay=3600000)
    [found['delayed']] = queue.add(dict(PLAIN, unique='key'), due='4102444800000')
    [found['stream']] = queue.add(dict(PLAIN, payload=BINARY))
    found['blue'] = queue.add(*[dict(PLAIN, lane='blue', n=str(i), expires='99999999999') for i in range(120)])
    return found


def state(queue):
    """All tasks but for where they are: their own bytes, and what leat knows of them."""
    tasks = {}
    for what in ('ready', 'waiting', 'following', 'running', 'dead'):
        for row in queue.list(what):
            tid = row['tid'].decode()
            shown = queue.show(tid)
            names = ['state', 'enqueued_ms', 'attempts', 'crashes', 'due_ms', 'cause', 'status', 'reason',
                     'died_ms', 'stderr', 'dead_id', 'fence', 'waits', 'spared']
            tasks[tid] = (shown['fields'], shown['history'], {name: shown['row'].get(name) for name in names})
    return tasks


@pytest.fixture
def exported(leat, queue, folder):
    tids = fill(queue)
    done = leat('export')
    assert (done.returncode, done.stderr) == (0, '')
    (folder / 'export').write_text(done.stdout)
    return tids, done.stdout


def test_lines(queue, exported):
    """One object for each task, with its state; bytes that are no text are base64."""
    tids, text = exported
    lines = {line['tid']: line for line in map(json.loads, text.splitlines())}
    assert len(lines) == len(text.splitlines()) == 127
    for name in ('dead', 'running', 'following', 'retrying', 'delayed'):
        assert lines[tids[name]]['state'] == name
    assert lines[tids['stream']]['state'] == 'ready'
    assert lines[tids['delayed']]['due_ms'] == 4102444800000
    assert {'name': 'leat.cause', 'value': 'exit'} in lines[tids['dead']]['leat']


def test_names_that_are_no_text(leat, queue, folder):
    """Names are exact, too."""
    queue.register('w1:1:a')
    [tid] = queue.add({b'command': b'true', b'n\xff': b'\0'}, due='+60000')
    (folder / 'export').write_text(leat('export').stdout)
    [line] = map(json.loads, (folder / 'export').read_text().splitlines())
    assert line['fields'][1] == {'name_base64': 'bv8=', 'value': '\0'}
    queue.redis.delete(*queue.keys)
    assert leat('import', '--export', folder / 'export').returncode == 0
    assert queue.show(tid)['fields'] == [b'command', b'true', b'n\xff', b'\0']


@pytest.mark.parametrize('config', [None, BESIDE])
def test_there_and_back(leat, queue, folder, exported, config):
    """What was exported is there again, in the emptied queue or beside it, and runs in the same order. A second
    import adds nothing."""
    tids, _ = exported
    before = state(queue)
    if not config:
        queue.redis.delete(*queue.keys)
    there = Queue(queue.redis, 'mails' if config else 'emails')
    there.register('w1:1:a')
    done = leat('import', '--export', folder / 'export', config=config)
    assert (done.returncode, done.stderr) == (0, '')
    assert done.stdout == 'imported 126 tasks and dead letters, 0 were in the queue already\n' \
        '1 task that was running was left out; --running imports it\n'
    check(there)
    assert Doctor(there).kinds() == [] and there.counter('retrying') == 1
    after = state(there)
    del before[tids['running']]
    # its holder has stayed behind
    assert after.pop(tids['following'])[0] == before.pop(tids['following'])[0]
    assert after == before
    with open(folder / 'export', 'rb') as file:
        again = leat('import', '--json', '--running', '--export', '-', config=config, stdin=file)
    # the key of the running task is held by the task that followed it
    assert again.returncode == EX_DATAERR and 'line 1: unique key again is held by' in again.stderr
    assert json.loads(again.stdout) == {'imported': 0, 'existing': 126, 'running_left': 0}
    assert state(there) == {**after, tids['following']: state(there)[tids['following']]}
    ran = [there.begin('w1:1:a')[0].tid for _ in range(120)]
    assert [tid for tid in ran if tid in tids['blue']] == tids['blue'][:len([t for t in ran if t in tids['blue']])]


def test_no_result_of_an_earlier_life(leat, queue, folder):
    """A task that has succeeded since the export waits again: who waits for it does not get its earlier result."""
    queue.register('w1:1:a')
    [tid] = queue.add({**PLAIN, 'result_ttl': '1h'})
    (folder / 'export').write_text(leat('export').stdout)
    queue.finish('w1:1:a', queue.begin('w1:1:a')[0])
    assert leat('wait', tid).stdout.split()[1] == 'succeeded'
    assert leat('import', '--export', folder / 'export').returncode == 0
    done = leat('wait', '--timeout', '1ms', tid)
    assert (done.returncode, done.stdout) == (EX_TEMPFAIL, '')


def test_a_queue_without_a_worker(leat, queue, folder):
    """The tasks can be listed before the first worker has come to the queue."""
    queue.register('w1:1:a')
    [tid] = queue.add(PLAIN)
    (folder / 'export').write_text(leat('export').stdout)
    assert leat('import', '--export', folder / 'export', config=BESIDE).returncode == 0
    done = leat('list', '--json', config=BESIDE)
    assert (done.returncode, done.stderr) == (0, '')
    assert [(row['tid'], row['state']) for row in json.loads(done.stdout)] == [(tid, 'ready')]


def test_what_was_running(leat, queue, folder, exported):
    """With --running the task waits again, without its attempt, and its follow-up follows it."""
    tids, _ = exported
    queue.redis.delete(*queue.keys)
    queue.register('w1:1:a')
    assert leat('import', '--running', '--export', folder / 'export').returncode == 0
    check(queue)
    assert Doctor(queue).kinds() == []
    assert queue.show(tids['running'])['row']['attempts'] == 0
    assert queue.held()[b'n:again'].split()[0] == tids['following'].encode()
    assert queue.call_off(tids['running']) == ['cancelled']
    assert queue.show(tids['following'])['row']['state'] == b'ready'
    check(queue)


@pytest.mark.parametrize('option', [[], ['--running']])
def test_when_a_follow_up_is_due(leat, queue, folder, option):
    """It keeps its due time, both if its holder comes with it and if it does not."""
    queue.register('w1:1:a')
    again = dict(PLAIN, unique='again', unique_next='1')
    queue.add(again)
    queue.begin('w1:1:a')
    [tid] = queue.add(again, due='4102444800000')
    (folder / 'export').write_text(leat('export').stdout)
    queue.redis.delete(*queue.keys)
    queue.register('w1:1:a')
    assert leat('import', *option, '--export', folder / 'export').returncode == 0
    if option:
        queue.finish('w1:1:a', queue.begin('w1:1:a')[0])
    row = queue.show(tid)['row']
    assert (row['state'], row['due_ms']) == (b'delayed', b'4102444800000')
    check(queue)


def test_numbers_of_a_task_are_kept(leat, queue, folder):
    """Waits, a crash that was not counted, and the fencing token come back: the next token is greater than it."""
    queue.register('w1:1:a')
    known = {'attempts': 1, 'crashes': 1, 'fence': 2 ** 52, 'waits': 3, 'spared': 1}
    assert take(queue, 'w', 0, packed('5-5', 'command', 'true', **known)) == 'new'
    text = leat('export').stdout
    (folder / 'export').write_text(text)
    queue.redis.delete(*queue.keys)
    queue.register('w1:1:a')
    assert leat('import', '--export', folder / 'export').returncode == 0
    assert leat('export').stdout == text
    [line] = map(json.loads, text.splitlines())
    kept = {pair['name']: pair['value'] for pair in line['leat']}
    assert {name: int(kept['leat.' + name]) for name in known} == known
    [task] = queue.begin('w1:1:a')
    assert task.fence > 2 ** 52


@pytest.mark.parametrize('line, why', [
    ('{', 'is not a task'), ('{"state": "ready"}', 'is not a task'), ('{"state": 5}', 'is not a task'),
    ('{"state": "ready", "fields": [], "leat": []}', 'line 1: it is not a task as leat export writes it'),
    ('{"state": "ready", "fields": [{"name": "a", "value_base64": "?"}], "leat": []}', 'is not a task'),
    ('{"state": "ready", "fields": [], "leat": [{"name": "leat.tid", "value": "x"}]}', 'line 1: it is not a task'),
    ('{"due_ms": 1e12, "state": "delayed", "fields": [], "leat": []}', 'line 1 is not a task'),
    ('{"due_ms": -5, "state": "delayed", "fields": [], "leat": []}', 'line 1 is not a task'),
])
def test_other_files(leat, queue, folder, line, why):
    """A line that leat export has not written is named, and adds nothing."""
    (folder / 'file').write_text(line + '\n')
    done = leat('import', '--export', folder / 'file')
    assert done.returncode == EX_DATAERR and why in done.stderr
    assert queue.places() == {}


def test_an_id_with_a_zero_before_it(leat, queue, folder):
    """A bit of the file has changed, so that the id of a task in a lane has another form. It is named and adds
    nothing, since its lane would not find it."""
    queue.register('w1:1:a')
    queue.add({'command': 'x', 'lane': 'a'}, {'command': 'y', 'lane': 'a'})
    [*_, line] = [line for line in leat('export').stdout.splitlines() if json.loads(line)['state'] == 'ready']
    tid = json.loads(line)['tid']
    (folder / 'file').write_text(line.replace(tid, '0' + tid[1:]) + '\n')
    queue.redis.delete(*queue.keys)
    queue.register('w1:1:a')
    done = leat('import', '--export', folder / 'file')
    assert done.returncode == EX_DATAERR and 'line 1: it is not a task' in done.stderr, done
    assert queue.places() == {}


@pytest.mark.parametrize('last', [
    '{"tid":', '{"state": "ready", "fields": [{"name": "a", "value": 5}], "leat": []}',
    '{"state": "dead", "dead_id": "x", "fields": [], "leat": []}',
    '{"state": "delayed", "due_ms": 9000000000000001, "fields": [], "leat": []}'])
def test_a_file_that_was_cut(leat, queue, folder, last):
    """The tasks before a line that is no task are imported, also if they are fewer than one call takes."""
    queue.register('w1:1:a')
    tids = [queue.add(PLAIN)[0] for _ in range(3)]
    text = leat('export').stdout
    (folder / 'export').write_text(text + last)
    queue.redis.delete(*queue.keys)
    queue.register('w1:1:a')
    done = leat('import', '--export', folder / 'export')
    assert done.returncode == EX_DATAERR and done.stdout.startswith('imported 3 tasks')
    assert done.stderr == 'leat: line 4 is not a task as leat export writes it; the import ends there\n'
    assert leat('export').stdout == text and [json.loads(line)['tid'] for line in text.splitlines()] == tids


def test_a_full_queue(leat, queue, folder):
    """A full queue ends the import, with one message. Repeated with more room, it adds the rest."""
    queue.register('w1:1:a')
    queue.add(*[PLAIN] * 250)
    text = leat('export').stdout
    (folder / 'export').write_text(text)
    queue.redis.delete(*queue.keys)
    queue.register('w1:1:a')
    queue.conf_set('max_length', 90)
    done = leat('import', '--export', folder / 'export')
    assert done.returncode == EX_TEMPFAIL and done.stdout.startswith('imported 90 tasks')
    assert done.stderr.startswith('leat: cannot import line 91: the queue has reached its limit of 90 tasks')
    assert done.stderr.count('\n') == 1
    queue.conf_set('max_length', 0)
    done = leat('import', '--export', folder / 'export')
    assert (done.returncode, done.stdout) == (
        0, 'imported 160 tasks and dead letters, 90 were in the queue already\n')
    assert leat('export').stdout == text


def test_usage(leat):
    """Options for keys do not go with a file."""
    for words in (['--running', 'key'], ['--export', 'f', 'key'], ['--export', 'f', '--lane', 'a']):
        assert leat('import', *words).returncode == EX_USAGE
    assert leat('import', '--export', '/none').returncode == EX_NOINPUT


# ---- leat_import

def packed(tid, *fields, **known):
    """The arguments of one task that waits."""
    known = {'tid': tid, 'attempts': 0, **known}
    values = [*fields, *[part for name, value in known.items() for part in ('leat.' + name, value)],
              'leat.fields', len(fields) // 2]
    return [len(values), *values]


def take(queue, place, due, args):
    return queue.call('import', place, due, *args)[0].decode()


def test_another_task_with_the_id(queue):
    """The id may be that of another task, and names may be held: then nothing is added."""
    [tid] = queue.add(dict(PLAIN, id='label', unique='k'))
    assert take(queue, 'w', 0, packed(tid, 'command', 'true', 'id', 'label', 'unique', 'k')) == 'exists'
    for fields, why in ((('command', 'false'), 'has the id'), (('command', 'true'), 'has the id')):
        assert why in take(queue, 'w', 0, packed(tid, *fields))
    for fields, why in ((('id', 'label'), 'is held by'), (('unique', 'k'), 'is held by'),
                        (('lane', 'x' * 300), 'lane'), (('id', 'x' * 2000), 'id: longer')):
        assert why in take(queue, 'w', 0, packed('5-5', 'command', 'true', *fields))
    queue.conf_set('max_length', 1)
    assert 'limit of 1' in take(queue, 'w', 0, packed('5-5', 'command', 'true'))
    assert list(queue.places()) == [tid]
    with pytest.raises(redis.ResponseError, match='BADARG'):
        take(queue, 'x', 0, packed('5-5', 'command', 'true'))


@pytest.mark.parametrize('place, due', [('w', 0), ('w', 4102444800000), ('d5-5', 0)])
def test_each_write_fails_once(client, place, due):
    """If a write fails, nothing of the task is there, and the repeated call adds it."""
    queue, at, reached = Queue(client), 0, True
    failing = Failing(queue)
    args = packed('5-5', 'command', 'true', 'id', 'label', 'unique', 'k', 'lane', 'a', 'expires', '99999999999',
                  attempts=2, cause='exit')
    while reached:
        at += 1
        queue.register('w1')
        failing.at(at)
        answer = take(queue, place, due, args)
        reached = failing.writes() >= at
        failing.off()
        if 'INJECTED' in answer:
            assert queue.places() == queue.held() == {} and '5-5' not in queue.index()
            answer = take(queue, place, due, args)
        assert answer == 'new' and list(queue.places()) == ['5-5']
        assert take(queue, place, due, args) == 'exists'
        if place[0] == 'd':
            assert pairs(queue.entries('dead')[0][1])['leat.cause'] == b'exit'
        client.flushall()
    assert at > 2
