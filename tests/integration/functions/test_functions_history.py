"""The history of tasks that have ended: what is noted, how much of it stays, and what it lists."""
import struct

import pytest

from harness.functions.damages import packed
from harness.functions.history import record
from harness.queue import pairs, text

HOUR_MS = 3600000
NODE = 200  # entries by which Redis may keep more than was asked for


@pytest.fixture
def key(queue):
    return queue.stats.replace(':stats', ':history')


@pytest.fixture
def ended(queue):
    """The members of all records, the newest first."""
    return lambda *names: [tuple(text(row[name]) for name in names) for row in queue.list('done')]


def succeed(queue, count, **known):
    """Ends so many tasks, in calls of several. Returns their tids."""
    queue.add(*[{'command': 'true'}] * count)
    tasks = queue.begin('w1', count)
    assert queue.finish_many('w1', [queue.result(task.token) for task in tasks],
                             [record(task.tid, **known) for task in tasks]) == ['ok'] * count
    return [task.tid for task in tasks]


def test_each_end_is_noted_once(queue, ended):
    """A success has the record of its worker; dead letters and cancelled tasks have one of the library. A repeated
    call notes nothing."""
    queue.register('w1', history=1000)
    [done] = succeed(queue, 1, command='true', usage='cpu_us 12')
    failed, called_off, told = queue.add({'command': 'die', 'id': 'order-1', 'lane': 'a'}, {'command': 'x' * 300},
                                         {'command': 'false'})
    tasks = {task.tid: task for task in queue.begin('w1', 3)}
    again = [queue.result(tasks[failed].token, 'dead', cause='exit', status='3', reason='why'),
             queue.result(tasks[called_off].token, 'cancelled'),
             queue.result(tasks[told].token, 'dead', cause='exit', history=record(told, outcome='dead', lane='b'))]
    assert queue.finish_many('w1', again) == ['ok'] * 3 and queue.finish_many('w1', again) == ['gone'] * 3
    [waiting] = queue.add({'command': 'later'}, due='+60000')
    assert queue.call_off(waiting) == ['cancelled']
    assert ended('tid', 'outcome', 'cause', 'status', 'reason', 'id', 'lane', 'command') == [
        (waiting, 'cancelled', 'cancelled', '', '', '', '', 'later'),
        (told, 'dead', '', '', '', '', 'b', ''),
        (called_off, 'cancelled', 'cancelled', '', '', '', '', 'x' * 200),
        (failed, 'dead', 'exit', '3', 'why', 'order-1', 'a', 'die'),
        (done, 'succeeded', '', '', '', '', '', 'true')]
    assert {abs(int(row['ended_ms']) - queue.now()) < HOUR_MS for row in queue.list('done')} == {True}


def test_a_late_success_and_a_crash_are_noted(queue, ended):
    """A success after the lease has expired is one; a task that has lost its last worker is dead."""
    queue.register('w1', history=1000, max_crashes=1)
    queue.register('w2')
    [late] = queue.add({'command': 'true'})
    [task] = queue.begin('w1')
    queue.expire(task.token)
    queue.conf_set('max_crashes', 2)
    queue.scan('w2')
    assert queue.finish('w1', task, history=record(late)) == 'ok'
    queue.conf_set('max_crashes', 1)
    [lost] = queue.add({'command': 'true'})
    queue.expire(queue.begin('w1')[0].token)
    queue.scan('w2')
    assert ended('tid', 'outcome', 'cause') == [(lost, 'dead', 'crash'), (late, 'succeeded', '')]


def test_tasks_that_never_ran_push_nothing_out(queue, ended):
    """Anyone who may add tasks can add any number that are refused or expire."""
    queue.register('w1', history=1)
    [done] = succeed(queue, 1)
    queue.redis.xadd(queue.stream, {'command': 'true', 'expires': '1'})
    queue.redis.xadd(queue.stream, {f'f{i}': '' for i in range(1001)})
    assert queue.claim('w1', 5)['tasks'] == [] and len(queue.letters()) == 2
    queue.add({'command': 'true'})
    assert queue.finish('w1', queue.begin('w1')[0], 'dead', cause='refused') == 'ok'
    assert ended('tid') == [(done,)]


def test_of_several_successes_those_are_noted_that_are_some(queue, ended):
    """A call has the records of all its successes. One that lost its lease, or was settled before, is left out; a
    call without any adds nothing."""
    queue.register('w1', history=1000)
    queue.register('w2')
    queue.add(*[{'command': 'true'}] * 5)
    first, other, lost, failed, last = queue.begin('w1', 5)
    assert queue.finish('w1', other) == 'ok'
    queue.expire(lost.token)
    queue.scan('w2')
    queue.begin('w2')
    outcomes = [(first, 'success'), (other, 'success'), (lost, 'success'), (failed, 'dead'), (last, 'success')]
    results = [queue.result(task.token, outcome, cause='exit' if outcome == 'dead' else '')
               for task, outcome in outcomes]
    records = [record(task.tid) for task, outcome in outcomes if outcome == 'success']
    assert queue.finish_many('w1', results, records) == ['ok', 'gone', 'gone', 'ok', 'ok']
    assert ended('tid') == [(last.tid,), (first.tid,), (failed.tid,)]
    assert queue.finish_many('w1', results, records) == ['gone'] * 5
    assert len(ended('tid')) == 3


@pytest.mark.parametrize('together', [1, 3, 100])
@pytest.mark.parametrize('setting, least, most', [('50', 50, 50 + NODE), ('0', 0, 0), ('7d', 399, 400)])
def test_it_is_bounded_in_number(queue, ended, setting, least, most, together):
    """About as many tasks stay as conf says, the last ones, however many a call ends; none with 0, and all of a
    young queue with an age."""
    queue.register('w1', history=setting)
    tids = [tid for _ in range(400 // together) for tid in succeed(queue, together)]
    kept = [tid for tid, in ended('tid')]
    assert least <= len(kept) <= most and kept == tids[:-len(kept) - 1:-1], len(kept)


@pytest.mark.parametrize('together', [1, 40, 100])
def test_a_large_one_is_bounded_in_number(queue, ended, together):
    """At least as many tasks stay as conf says, and at most a third more."""
    queue.register('w1', history=1000)
    tids = [tid for _ in range(2400 // together) for tid in succeed(queue, together)]
    kept = [tid for tid, in ended('tid')]
    assert 1000 <= len(kept) <= 1333 and kept == tids[:-len(kept) - 1:-1], len(kept)


@pytest.mark.parametrize('damage', ['', 'x', '5', '0 9-9 7', '0 18446744073709551615-18446744073709551616',
                                    '9' * 400 + ' 1-1', '1 1-1 ' * 1000])
def test_the_marks_can_be_damaged(queue, ended, damage):
    """If somebody writes nonsense into them, ends are noted as before, and the number of them stays bounded."""
    queue.register('w1', history=100)
    succeed(queue, 90)
    queue.redis.hset(queue.stats, 'h:', damage)
    after = [tid for _ in range(5) for tid in succeed(queue, 90)]
    kept = [tid for tid, in ended('tid')]
    assert 100 <= len(kept) <= 100 + NODE and kept == after[:-len(kept) - 1:-1]


def die(queue, count):
    """Ends so many tasks as dead letters, in one call. Returns their tids."""
    queue.add(*[{'command': 'true'}] * count)
    tasks = queue.begin('w1', count)
    results = [queue.result(task.token, 'dead', cause='exit') for task in tasks]
    assert queue.finish_many('w1', results) == ['ok'] * count
    return [task.tid for task in tasks]


def test_ends_that_are_no_successes_stay(queue, ended):
    """Successes push no other end out as long as there are not too many, however many other ends come first."""
    queue.register('w1', history=1000)
    tids = [tid for ends in [die] * 3 + [succeed] * 4 for tid in ends(queue, 64)]
    assert [tid for tid, in ended('tid')] == tids[::-1]


def test_ends_before_many_successes_go(queue, ended):
    """Other ends that are older than the successes that stay do not keep those from going."""
    queue.register('w1', history=100)
    tids = [tid for ends in [die] * 2 + [succeed] * 8 for tid in ends(queue, 100)]
    kept = [tid for tid, in ended('tid')]
    assert 100 <= len(kept) <= 100 + NODE and kept == tids[:-len(kept) - 1:-1], len(kept)


@pytest.mark.parametrize('damage', ['many', 'nan', str(2 ** 63 - 1)])
def test_the_counter_of_successes_can_be_damaged(queue, ended, damage):
    """If somebody writes nonsense into it, ends are noted as before."""
    queue.register('w1', history=100)
    queue.redis.hset(queue.stats, 'succeeded', damage)
    tids = succeed(queue, 70) + die(queue, 1) + succeed(queue, 1)
    assert [tid for tid, in ended('tid')] == tids[::-1]


def test_the_counter_of_successes_can_be_lost(queue, ended):
    """If somebody deletes the queue's figures, ends are noted as before, and the number of them stays bounded."""
    queue.register('w1', history=100)
    succeed(queue, 90)
    queue.redis.delete(queue.stats)
    after = [tid for _ in range(5) for tid in succeed(queue, 90)]
    kept = [tid for tid, in ended('tid')]
    assert 100 <= len(kept) <= 100 + NODE and kept == after[:-len(kept) - 1:-1]


def test_ends_that_are_no_successes_are_bounded(queue, ended):
    """So many stay as of others, besides what Redis keeps since it deletes blocks."""
    queue.register('w1', history=10)
    for _ in range(3):
        die(queue, 100)
    assert 10 <= len(ended('tid')) <= 10 + NODE


def fill(queue, key, ages):
    """Entries of tasks that ended so many ms ago, the first ones first, of 1 to 3 tasks. Returns the tids."""
    tids, now = [], queue.now()
    for n, age in enumerate(ages):
        tids.append([f'{n + 1}-{i}' for i in range(n % 3 + 1)])
        queue.redis.xadd(key, {'r': b''.join(record(tid) for tid in tids[-1])}, id=f'{now - age}-0')
    return tids


def test_it_is_bounded_in_time(queue, key):
    """With an age, the sweep deletes older records exactly; with a number, none; without a history, all."""
    queue.register('w1', history=1000)

    def sweep():
        queue.redis.hdel(queue.stats, 'swept')
        queue.scan('w1')
    fill(queue, key, [age * HOUR_MS for age in range(400, 0, -1)])
    sweep()
    assert queue.redis.xlen(key) == 400
    queue.conf_set('history', '100h30m')
    sweep()
    assert queue.redis.xlen(key) == 100
    queue.conf_set('history', '1m')
    sweep()
    assert queue.redis.xlen(key) == 0
    queue.redis.xadd(key, {'r': record('1-1')})
    queue.conf_set('history', '0')
    sweep()
    assert queue.redis.xlen(key) == 0


def test_it_is_bounded_in_bytes(queue, key, ended):
    """A longer record is not kept, whoever has made it."""
    queue.register('w1', history=1000)
    succeed(queue, 2, command='x' * 5000)
    queue.add({'command': 'c' * 100000, 'id': 'i' * 1024, 'lane': 'l' * 200})
    assert queue.finish('w1', queue.begin('w1')[0], 'dead', cause='exit', reason='r' * 100000) == 'ok'
    assert ended('command', 'reason') == [('c' * 200, 'r' * 200)]
    queue.add({'command': 'true'})
    assert queue.finish('w1', queue.begin('w1')[0], 'dead', cause='exit', history='h' * 5000) == 'ok'
    assert len(ended()) == 1 and queue.counter('succeeded') == 2


def test_pages(queue, key):
    """Both orders have every record once, on pages of any size, and the oldest first begin at any time."""
    queue.register('w1', history=1000)
    tids = fill(queue, key, range(450, 0, -1))
    order = [tid for some in tids for tid in some]

    def listed(cursor, limit):
        found = []
        while cursor:
            cursor, rows = queue.call('list', queue.group, 'done', cursor, limit)
            cursor, found = text(cursor), found + [text(pairs(row)['tid']) for row in rows]
            assert len(rows) <= min(limit, 200)
        return found
    assert listed('d+', 1000) == order[::-1] and listed('a0', 7) == order and listed('d+', 1) == order[::-1]
    last = [tid for some in tids[400:] for tid in some]
    [[newest, _]] = queue.redis.xrevrange(key, count=1)
    now = int(newest.split(b'-')[0])
    assert listed(f'a{now - 49}', 100) == last and listed(f'a{now + 1}', 100) == []


@pytest.mark.parametrize('order', ['a0', 'd+'])
def test_a_page_ends_in_an_entry_that_goes(queue, key, order):
    """If the entry in which a page ended is deleted meanwhile, the next page begins with the entry after it."""
    queue.register('w1', history=1000)
    tids = [succeed(queue, 10) for _ in range(3)]
    cursor, _ = queue.call('list', queue.group, 'done', order, 5)
    queue.redis.xdel(key, cursor[1:].split()[0])
    _, rows = queue.call('list', queue.group, 'done', cursor, 5)
    expected = tids[1][:5] if order == 'a0' else tids[1][:4:-1]
    assert [text(pairs(row)['tid']) for row in rows] == expected


@pytest.mark.parametrize('damage', [b'', b'\xc1', packed('1-1'), struct.pack('>BH', 0xdc, 2000), b'\x81\xa1a\xa1b',
                                    b'\xa3abc', b'\x92\x01\xc0'])
def test_damaged_records_are_listed(queue, key, ended, damage):
    """A record that someone has written by hand stops nothing; what cannot be read is empty."""
    queue.register('w1', history=1000)
    queue.redis.xadd(key, {'r': damage})
    [done] = succeed(queue, 1)
    rows = queue.list('done')
    assert len(rows) == 2 and text(rows[0]['tid']) == done
    assert all(text(value) in ('', '1-1', 'done') or name == 'ended_ms' for name, value in rows[1].items())


def test_a_key_of_another_type_stops_no_task(queue, key):
    """If someone has used the name of the history, tasks end as ever."""
    queue.register('w1', history='1h')
    queue.redis.set(key, 'x')
    succeed(queue, 3)
    queue.add({'command': 'false'})
    assert queue.finish('w1', queue.begin('w1')[0], 'dead', cause='exit') == 'ok'
    queue.redis.hdel(queue.stats, 'swept')
    queue.scan('w1')
    assert (queue.counter('succeeded'), queue.counter('dead'), queue.redis.get(key)) == (3, 1, b'x')


@pytest.mark.parametrize('value, is_taken', [('0', True), ('100000', True), ('7d', True), ('1h30m', True),
                                             ('100001', False), ('-1', False), ('x', False), ('', False)])
def test_the_setting(queue, value, is_taken):
    """conf takes a number or an age. A value by hand that is neither keeps nothing, and harms nothing."""
    queue.register('w1', history=1000)
    if is_taken:
        queue.conf_set('history', value)
    else:
        with pytest.raises(Exception, match='history cannot be set'):
            queue.conf_set('history', value)
        queue.redis.hset(queue.conf, 'history', value)
        succeed(queue, 3)
        assert len(queue.list('done')) == (3 if value == '100001' else 0)
