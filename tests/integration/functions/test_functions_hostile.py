"""Values of leat's own that someone has written by hand stop only the task that has them."""
import contextlib
import time

import pytest
import redis

from harness.functions.damages import packed
from harness.functions.doctor import Doctor
from harness.functions.history import record
from harness.polling import wait_until
from harness.queue import text

GREATEST = '18446744073709551615-18446744073709551615'
FUTURE = '9999999999999-1000000000'
KNOWN = {'leat.tid': '5-5', 'leat.attempts': '0', 'leat.crashes': '0', 'leat.fence': '1', 'leat.enqueued': '1',
         'leat.fields': '1'}

BAD = [('leat.tid', 'x'), ('leat.tid', '5'), ('leat.tid', '1' * 21 + '-1'),
       ('leat.fence', 'nan'), ('leat.fence', '-1'), ('leat.fence', '9' * 17),
       ('leat.fields', '0.5'), ('leat.fields', 'nan'), ('leat.fields', '9'),
       ('leat.history', 'x' * 30000),
       ('leat.attempts', 'inf'), ('leat.attempts', '0x10'), ('leat.crashes', '1e300'), ('leat.passed', ' 1')]


def flat(**changed):
    known = {**KNOWN, **{name.replace('_', '.'): value for name, value in changed.items()}}
    fields = known.pop('leat.fields')
    return {'command': 'bad', **known, 'leat.fields': fields}


@pytest.mark.parametrize('name, value', BAD)
def test_a_field_in_go_that_cannot_be_read(queue, name, value):
    """The task becomes a dead letter that names the field, and the tasks beside it are claimed in the same call.
    Doctor names it before that."""
    queue.register('w1')
    queue.redis.xadd(queue.go, flat(**{name.replace('.', '_'): value}))
    queue.redis.xadd(queue.stream, {'command': 'good'})
    assert 'unreadable' in [one.kind for one in Doctor(queue).look()]
    reply = queue.claim('w1', 9)
    assert [task.fields['command'] for task in reply['tasks']] == [b'good']
    assert list(reply['buried'].values()) == ['damaged'] and name in reply['reasons'][0]
    [(letter, fields)] = queue.letters()
    assert text(fields['leat.damaged']) == f'{name} {value}' and fields['command'] == b'bad'
    assert queue.dead_retry(letter)[0].startswith('REFUSED')
    assert queue.show(text(fields['leat.tid'])) is not None


@pytest.mark.parametrize('name, value', BAD)
@pytest.mark.parametrize('lane', ['', 'a'])
def test_a_field_of_a_waiting_task_that_cannot_be_read(queue, name, value, lane):
    """The same for a task that waits until it is due, and in a lane."""
    queue.register('w1')
    tids = queue.add({'command': 'x', **({'lane': lane} if lane else {})}, {'command': 'good'}, due='+60000')
    known = {**KNOWN, name: value}
    fields = known.pop('leat.fields')
    lanes = ('lane', lane) if lane else ()
    queue.redis.hset(queue.waiting, tids[0], packed(
        'command', 'bad', *lanes, *[part for pair in known.items() for part in pair], 'leat.fields',
        '2' if lane and fields == '1' else fields))
    for tid in tids:
        queue.redis.zadd(queue.delayed, {tid: 1})
    assert [task.fields['command'] for task in queue.begin('w1', 9)] == [b'good']
    assert [fields['leat.cause'] for _, fields in queue.letters()] == [b'damaged']


def test_a_waiting_task_with_too_many_values(queue):
    """30,000 values, more than a call can write, do not hold up the tasks behind them."""
    queue.register('w1')
    bad, good = queue.add({'command': 'bad'}, {'command': 'good'}, due='+60000')
    queue.redis.hset(queue.waiting, bad, packed(*['x'] * 30000))
    for tid in (bad, good):
        queue.redis.zadd(queue.delayed, {tid: 1})
    assert [task.tid for task in queue.begin('w1', 9)] == [good]
    assert ('damaged', bad) in [one.what for one in Doctor(queue).look()]


@pytest.mark.parametrize('lane', [None, 'a'])
def test_a_waiting_task_whose_id_is_none(queue, lane):
    """A tid without a hyphen holds up no other task, and ends with the repair."""
    queue.register('w1')
    [good] = queue.add({'command': 'good'}, due='+60000')
    queue.redis.hset(queue.waiting, 'x', packed('command', 'bad', *(('lane', lane) if lane else ())))
    queue.redis.zadd(queue.delayed, {'x': 0, good: 1})
    assert [task.tid for task in queue.begin('w1', 9)] == [good]
    assert [one.what for one in Doctor(queue).look()] == [('damaged', 'x')]
    Doctor(queue).repair()
    assert Doctor(queue).look() == [] and len(queue.letters()) == 1


@pytest.mark.parametrize('value', ['nan', 'inf', '-inf', '-1', 'soon', '1e999', '0.5'])
def test_settings_that_are_no_numbers(queue, value):
    """Each of them counts as not set, and tasks are claimed, renewed, scanned and ended as before. Nothing is
    trimmed that the settings do not say."""
    queue.register('w1')
    queue.redis.xadd(queue.dead, {'command': 'old', 'leat.tid': '1-1', 'leat.fields': '1'})
    for name in ('lease_ms', 'max_crashes', 'max_length', 'burst', 'dead_keep_ms', 'dead_keep_number',
                 'history', 'hold_until', 'floor_ms', 'floor_until', 'lane:a', 'lane:*'):
        queue.redis.hset(queue.conf, name, value)
    queue.redis.hset(queue.conf, 'rate', '1000/s')
    queue.add({'command': 'a', 'lane': 'a'}, {'command': 'b'}, {'command': 'c', 'lane': 'a'})
    reply, tasks = queue.scan('w1', 9)
    while len(tasks) < 3:
        tasks += queue.begin('w1', 9, len(tasks))
    assert reply['lease'] == 60000
    assert queue.renew('w1', [task.token for task in tasks])['lost'] == []
    queue.add({'command': 'delayed'}, due='+1')
    assert [queue.finish('w1', task) for task in tasks] == ['ok'] * 3
    [task] = wait_until(lambda: queue.begin('w1'))
    assert queue.finish('w1', task, 'dead', cause='exit') == 'ok'
    assert queue.redis.xlen(queue.dead) == 2
    assert {one.what[1] for one in Doctor(queue).look()} >= {'lease_ms', 'max_crashes', 'burst', 'hold_until'}


@pytest.mark.parametrize('value', ['nan', 'inf', '', 'x', '1.5', '9223372036854775807', '-5', '1e15', '1e300',
                                   '0x10'])
def test_counters_that_are_no_numbers(queue, value):
    """Tasks are enqueued, claimed and ended whatever is in the counters."""
    queue.register('w1')
    for name in ('tids', 'retrying', 'clock', 'clock_strict', 'stream_tag', 'swept', 'tat', 'turn', 'r:a', 't:a',
                 'dead_warned', 'succeeded', 'lists_sought'):
        queue.redis.hset(queue.stats, name, value)
    queue.conf_set('lane:a', 'strict, 9, 1000/s')
    queue.conf_set('lane:b', '2, 9')
    tids = queue.add({'command': 'x', 'lane': 'a'}, {'command': 'x', 'lane': 'b'}, {'command': 'x', 'lane': 'a'},
                     {'command': 'y'}, due='+1')
    tids += queue.add({'command': 'x', 'lane': 'a'}, {'command': 'x', 'lane': 'b'})
    assert len(set(tids)) == 6
    found = set()

    def claim():
        tasks = queue.scan('w1', 9)[1]
        found.update(task.tid for task in tasks)
        return [queue.finish('w1', task) for task in tasks]
    wait_until(lambda: set(claim()) <= {'ok'} and found == set(tids))
    Doctor(queue).repair()
    assert Doctor(queue).look() == []


@pytest.mark.parametrize('value', ['1e20', '99999999999999999999', '0x7fffffffffffffff', 'inf', 'x', '-5'])
def test_a_number_of_the_newest_worker_that_is_none(queue, value):
    """Workers that return learn no such number, and the next new worker gets a true one."""
    queue.register('w1')
    queue.redis.hset(queue.stats, 'joined', value)
    assert queue.register('w1')['joined'] == 0
    queue.gate('paused', True)
    assert queue.entries('bell')[-1][1][3] == b'0'
    before = queue.now()
    assert before * 1000 <= queue.register('w2')['joined'] == queue.register('w1')['joined'] < 2 ** 53


@pytest.mark.parametrize('value', ['x', '', '1e20', '99999999999999999999-1', '5-99999999999999999999', '-1-1'])
def test_a_last_letter_of_the_hook_that_is_none(queue, value):
    """The dead-letter hook goes on after it has lost its group."""
    queue.tell()
    queue.redis.hset(queue.stats, 'told_id', value)
    queue.redis.delete(queue.dead)
    assert queue.tell() == ([], [])
    queue.register('w1')
    queue.add({'command': 'x'})
    queue.finish('w1', queue.begin('w1')[0], 'dead', cause='exit')
    [letter], _ = queue.tell()
    assert letter['tid'] == queue.letters()[0][1]['leat.tid'].decode()


def test_records_that_were_changed(queue):
    """A record with values that leat does not write counts as none: it ends no renewal, scan or sweep."""
    queue.register('w1')
    queue.add(*[{'command': 'x', 'lane': 'a', 'unique': str(i)} for i in range(9)])
    tasks = queue.begin('w1', 9)
    bad = [b'bw1\x001 1 nan 1-1 - ', b'bw1\x001 1 1 x - ', b'rw1\x001 1 1 1-1 x ',
           b'mw1\x001 1 1 1-1 s99999999999999999999-1 ',
           b'bw1\x00' + b'9' * 30 + b' 1 1 1-1 - ', b'bw1\x001 ' + b'9' * 400 + b' 1 1-1 - ',
           b'bw1\x001 1 1 1-1 - \x81\xa4lane\x90', b'bw1\x001 1 1 1-1 - \x81\xa4lane\x05']
    for task, damaged in zip(tasks, bad):
        queue.redis.hset(queue.running, task.token, damaged)
    queue.redis.hset(queue.running, 'x', bad[6])
    assert queue.renew('w1', [task.token for task in tasks])['lost'] == [tasks[3].token]
    queue.scan('w1')
    queue.redis.hdel(queue.stats, 'swept')
    queue.expire()
    queue.scan('w2')
    assert {queue.finish('w1', task) for task in tasks} <= {'ok', 'gone', 'fenced'}
    queue.status()


def test_a_success_under_a_record_that_was_changed(queue):
    """It ends with the others of its call, whatever the record says."""
    queue.register('w1')
    queue.add(*[{'command': 'x', 'lane': 'a', 'unique': str(i)} for i in range(2)], *[{'command': 'x'}] * 2)
    queue.add({'command': 'x'}, due='+1')
    wait_until(lambda: queue.claim('w1', 0)['next_due'] < queue.now())
    tasks = queue.begin('w1', 9)
    assert len(tasks) == 5
    for task in tasks[::2]:
        record = queue.redis.hget(queue.running, task.token)
        queue.redis.hset(queue.running, task.token, record[:1] + b'w1\0nothing')
    queue.call('await', 60000, *[task.tid for task in tasks])
    results = [queue.result(task.token, ttl=60000) for task in tasks]
    assert queue.finish_many('w1', results) == ['ok'] * 5
    assert queue.redis.xlen(queue.stream) == queue.redis.xlen(queue.go) == 0
    Doctor(queue).repair()
    assert Doctor(queue).look() == []


@pytest.mark.parametrize('due', ['inf', '1e300', '1e16', '1.5', '-inf'])
def test_due_times_that_are_none(queue, due):
    """A score that is no time reaches no worker, which could not read the reply."""
    queue.register('w1')
    [tid] = queue.add({'command': 'x'}, due='+60000')
    queue.redis.zadd(queue.delayed, {tid: due})
    assert queue.claim('w1')['next_due'] in (0, 2)
    queue.redis.xadd(queue.stream, {'command': 'good'})
    assert b'good' in [task.fields['command'] for task in queue.begin('w1', 2)]


def test_scores_of_tasks_in_lanes(queue):
    """Redis finds no member of a lane by its name if others have scores of their own. The next scan mends them,
    and doctor names them before that."""
    queue.register('w1')
    queue.redis.xadd(queue.stream, {'command': 'first'})
    tids = queue.add(*[{'command': 'x', 'lane': lane} for lane in 'aab'])
    members = queue.redis.zrange(queue.laned, 0, -1)
    queue.redis.zadd(queue.laned, {members[0]: 5, members[2]: '-inf', 'zz': -1, 'a\0x': 'inf'})
    found = [one.kind for one in Doctor(queue).look()]
    assert 'laned' in found
    queue.scan('w1')
    wait_until(lambda: {task.tid for task in queue.begin('w1', 9)} & set(tids))
    wait_until(lambda: queue.begin('w1', 9) == [] and queue.redis.hlen(queue.waiting) == 0)
    assert {task['tid'].decode() for task in queue.list('running')} >= set(tids)
    Doctor(queue).repair()
    assert Doctor(queue).look() == [] and queue.redis.zcard(queue.laned) == 0


def test_doctor_mends_scores_of_tasks_in_lanes(queue):
    """A repair leaves a task in its lane."""
    queue.register('w1')
    queue.gate('paused', True)
    tids = queue.add(*[{'command': 'x', 'lane': 'a'}] * 3)
    for member, score in zip(queue.redis.zrange(queue.laned, 0, -1), (5, -5, 0)):
        queue.redis.zadd(queue.laned, {member: score})
    Doctor(queue).repair()
    assert Doctor(queue).look() == []
    assert {score for _, score in queue.redis.zrange(queue.laned, 0, -1, withscores=True)} == {0}
    assert [row['tid'].decode() for row in queue.list('ready')] == tids


def test_texts_that_take_long_to_search(queue):
    """Redis stands still while a function runs: a search in a text that anyone may write takes no longer than
    reading it."""
    queue.register('w1')
    long = '1' * 200000 + 'x'
    began = time.monotonic()
    for at in (long, '1.' + long):
        with pytest.raises(redis.ResponseError, match='at: not a unix time'):
            queue.program_add('command', 'x', 'at', at)
    with pytest.raises(redis.ResponseError, match='BADARG'):
        queue.conf_set('rate', long)
    with pytest.raises(redis.ResponseError, match='BADARG'):
        queue.conf_set('lane:a', '1,' + ' ' * 200000 + 'x')
    for name, value in (('rate', long), ('lane:a', ' ' * 200000 + 'x')):
        queue.redis.hset(queue.conf, name, value)
    queue.redis.hset(queue.names, 'u:k', long + ' y z')
    queue.redis.xadd(queue.stream, {'command': 'x', 'unique': 'k', 'lane': 'a'})
    assert len(queue.begin('w1')) == 1
    Doctor(queue).look()
    for what, cursor in (('following', '1'), ('running', 'h1'), ('done', 'd1')):
        with contextlib.suppress(redis.ResponseError):
            queue.call('list', queue.group, what, cursor * 100000 + '  ', 10)
    queue.renew('w1', heartbeat='"figures":{' * 100000)
    assert time.monotonic() - began < 10


def test_marks_of_the_history_that_take_long_to_search(queue):
    """The same of the text that says where the history is to be cut."""
    queue.register('w1', history=1000)
    queue.redis.hset(queue.stats, 'h:', '1' * 200000)
    tids = queue.add(*[{'command': 'x'}] * 130)
    began = time.monotonic()
    for _ in tids:
        queue.finish('w1', queue.begin('w1')[0], history=record('5-5'))
    assert time.monotonic() - began < 10
    assert len(queue.redis.hget(queue.stats, 'h:')) < 1000


@pytest.mark.parametrize('spoiled', [['a', 'b'], ['leat.tid', 'x', 'command', 'x']])
def test_a_waiting_task_without_its_id(queue, spoiled):
    """It is listed, and so are the others."""
    tids = queue.add({'command': 'x'}, {'command': 'y'}, due='+100000')
    queue.redis.hset(queue.waiting, tids[0], packed(*spoiled))
    queue.redis.hset(queue.waiting, 'l:a', packed(*spoiled))
    queue.redis.zadd(queue.delayed, {'l:a': 1})
    assert [text(row['tid']) for row in queue.list('waiting')] == tids


def test_forged_numbers_of_dead_letters_that_never_ran(queue):
    """They do not keep the sweep from an end, nor dead letters beyond their number."""
    queue.register('w1')
    queue.conf_set('dead_keep_number', 5)
    queue.redis.hset(queue.stats, mapping={'unfit_first': 0, 'unfit_next': 2 ** 53 - 2})
    queue.redis.hset(queue.names, f'r:{2 ** 53 - 3}', 'x')
    for _ in range(20):
        queue.add({'command': 'x'})
        queue.finish('w1', queue.begin('w1')[0], 'dead', cause='exit')
    assert queue.redis.xlen(queue.dead) == 5


# ---- ids that producers choose

def choose(queue, id, **fields):
    return text(queue.redis.xadd(queue.stream, {'command': 'x', **fields}, id=id))


@pytest.mark.parametrize('first', [FUTURE, '1700000000000-1000000000', '1700000000000-9999999999999'])
def test_an_id_of_a_producer_harms_nobody(queue, first):
    """After an entry with an id that leat once gave to waiting tasks, all tasks run under the ids that XADD has
    answered, and the id finds its task."""
    queue.register('w1')
    tids = [choose(queue, first), *queue.add({'command': 'x'}), choose(queue, '*')]
    waiting = queue.add({'command': 'x'}, due='+60000')
    assert [queue.show(tid)['row']['state'] for tid in tids] == [b'ready'] * 3
    tasks = queue.begin('w1', 9)
    assert [task.tid for task in tasks] == tids and queue.letters() == []
    assert queue.call_off(tids[0], *waiting) == ['asked w1', 'cancelled']
    assert [queue.finish('w1', task) for task in tasks] == ['ok'] * 3
    assert Doctor(queue).look() == []


def test_no_entry_gets_the_id_of_a_waiting_task(queue):
    """A producer cannot choose the id of a task that waits, has waited, or was enqueued to wait before this
    version."""
    queue.register('w1')
    [tid] = queue.add({'command': 'x'}, due='+60000')
    with pytest.raises(redis.ResponseError, match='Invalid stream ID'):
        choose(queue, tid)
    old = f'{queue.now()}-1000000001'
    queue.redis.hdel(queue.stats, 'own_ids')
    queue.redis.hset(queue.waiting, old, packed('command', 'x'))
    queue.register('w1')
    with pytest.raises(redis.ResponseError, match='equal or smaller'):
        choose(queue, old)
    assert queue.redis.xlen(queue.stream) == 0


def test_tids_of_waiting_tasks_are_found(queue):
    """Each function that takes a tid takes one that no entry can have."""
    queue.register('w1')
    [tid] = queue.add({'command': 'x', 'expires': queue.now() / 1000 + 60}, due='+1000')
    assert queue.show(tid)['row']['state'] == b'delayed'
    queue.redis.zadd(queue.delayed, {tid: 1})
    [task] = queue.begin('w1')
    assert task.tid == tid and queue.show(tid)['row']['state'] == b'running'
    found = queue.call('find', queue.group, 'g0-0', tid, '5-5')
    assert [row[1] for row in found[2]] == [tid.encode()]
    assert queue.call('await', 1000, tid)[1] == tid.encode()
    assert queue.finish('w1', task, 'dead', cause='exit') == 'ok'
    assert queue.show(tid)['row']['state'] == b'dead'
    assert queue.call_off(tid) == ['gone']


def test_the_greatest_id(queue):
    """With an entry that has the greatest possible id, in either state, everything answers. Doctor names it, and
    repairs it once the stream is empty, with a worker that waits for tasks."""
    queue.register('w1')
    tid = choose(queue, GREATEST, unique='k')
    with pytest.raises(redis.ResponseError):
        queue.redis.xadd(queue.stream, {'command': 'y'})

    def look():
        queue.status()
        queue.lane_rows()
        for what in ('ready', 'running', 'waiting', 'following', 'dead'):
            queue.list(what)
        found = [one for one in Doctor(queue).look() if one.kind == 'exhausted']
        assert len(found) == 1
        return found
    assert [row['tid'] for row in queue.list('ready')] == [tid.encode()]
    assert queue.show(tid)['row']['state'] == b'ready'
    [(_, answer)] = Doctor(queue).repair(look())
    assert answer.startswith('left')
    [task] = queue.begin('w1')
    assert queue.show(tid)['row']['state'] == b'running'
    queue.renew('w1', [task.token])
    look()
    assert queue.finish('w1', task, 'dead', cause='exit') == 'ok'
    found = look()
    queue.register('w1')
    [letter] = [id for id, _ in queue.letters()]
    assert queue.dead_retry(letter) == ['ok']
    assert [task.tid for task in queue.begin('w1')] == [tid]
    assert [answer for _, answer in Doctor(queue).repair(found)] == ['repaired']
    new = text(queue.redis.xadd(queue.stream, {'command': 'y'}))
    assert [task.tid for task in queue.begin('w1')] == [new]


def test_the_greatest_id_in_go(queue):
    """The same in the requeue stream, whose tasks end as they always do."""
    queue.register('w1')
    queue.redis.xadd(queue.go, flat(), id=GREATEST)
    queue.add({'command': 'good'})
    tasks = queue.begin('w1', 9)
    assert {task.fields['command'] for task in tasks} == {b'bad', b'good'}
    queue.scan('w1')
    queue.status()
    Doctor(queue).look()
    assert [queue.finish('w1', task) for task in tasks] == ['ok', 'ok']
    Doctor(queue).repair()
    assert Doctor(queue).look() == []
