"""leat_intake and related functions: items of producers' lists become tasks, each once and in order."""
import hashlib
import re

import pytest
import redis

from harness.daemon import ROOT
from harness.functions.failing import Failing
from harness.functions.lists import intake, items_of, preview, turn
from harness.queue import Queue

ODD = [b'', b'\0', b'two\nlines', b'\xff\xfe', b'x' * 100_000, b'plain', b'plain']
MEANING = set(re.findall(r'^ *FIELD\((\w+)\)', (ROOT / 'src/queue/shared/task_fields.h').read_text(), re.M))


def fill(queue, kind, items, key='work'):
    """Adds items as a producer does: LPUSH, SADD, ZADD."""
    if kind == 'list':
        queue.redis.lpush(key, *items)
    elif kind == 'set':
        queue.redis.sadd(key, *items)
    else:
        queue.redis.zadd(key, {item: number for number, item in enumerate(items)})


def members(queue, kind, key='work'):
    """The items that are left, in the order in which they are taken."""
    if kind == 'list':
        return queue.redis.lrange(key, 0, -1)[::-1]
    return queue.redis.zrange(key, 0, -1) if kind == 'zset' else sorted(queue.redis.smembers(key))


def test_first_pushed_first_out(queue):
    """Items become tasks in RPOP's order, with any bytes, the empty item included; the list is gone
    afterwards."""
    queue.redis.lpush('work', *ODD)
    assert intake(queue, 'work') == {'taken': len(ODD), 'added': len(ODD), 'left': 0, 'full': 0}
    assert items_of(queue) == ODD
    assert not queue.redis.exists('work')


def test_at_most_as_many_as_asked(queue):
    """The tail is taken first, and the rest stays as it was; a call takes at most 1,000 items."""
    queue.redis.lpush('work', *range(2500))
    assert intake(queue, 'work', most=10)['left'] == 2490
    assert items_of(queue) == [b'%d' % n for n in range(10)]
    assert intake(queue, 'work', most=5000) == {'taken': 1000, 'added': 1000, 'left': 1490, 'full': 0}
    assert items_of(queue) == [b'%d' % n for n in range(1010)]
    assert members(queue, 'list') == [b'%d' % n for n in range(1010, 2500)]
    assert intake(queue, 'work', most=0)['taken'] == 0


def test_large_items_end_a_call(queue):
    """One call moves a few MiB, and at least one item, however large it is."""
    queue.redis.lpush('work', *[bytes([65 + n]) * 1_000_000 for n in range(20)])
    taken = intake(queue, 'work')['taken']
    assert 4 <= taken < 20
    for name in 'ab':
        queue.redis.lpush('large', name * 9_000_000)
    while intake(queue, 'large', most=1)['left']:
        pass
    assert [len(item) for item in items_of(queue)[-2:]] == [9_000_000] * 2


def test_an_absent_list_is_an_empty_one(queue):
    """Nothing is taken and nothing written."""
    assert intake(queue, 'work') == {'taken': 0, 'added': 0, 'left': 0, 'full': 0}
    assert queue.redis.keys() == []


def test_field_lane_and_unique(queue):
    """The item becomes the configured field; lane and unique are set beside it."""
    long = b'y' * 201
    queue.redis.lpush('work', b'one', b'z' * 200, long, b'')
    intake(queue, 'work', field='command', lane='a lane', unique=True)
    fields = [dict(zip(f[::2], f[1::2])) for place in ('stream', 'waiting') for f in fields_in(queue, place)]
    assert sorted(f[b'command'] for f in fields) == sorted([b'one', b'z' * 200, long, b''])
    assert all(f[b'lane'] == b'a lane' for f in fields)
    keys = {f[b'command']: f[b'unique'] for f in fields}
    assert keys[b'one'] == b'one' and keys[b'z' * 200] == b'z' * 200
    for item in (long, b''):
        assert keys[item] == b'sha1:' + hashlib.sha1(item).hexdigest().encode()


def fields_in(queue, place):
    """The fields of tasks in the stream, or waiting."""
    if place == 'stream':
        return [fields for _, fields in queue.entries('stream')]
    return [queue.show(tid)['fields'] for tid in queue.redis.hkeys(queue.waiting)]


@pytest.mark.parametrize('field', ['', 'leat.x', *sorted(MEANING - {'command', 'payload'})])
def test_a_field_with_a_meaning_is_refused(queue, field):
    """An item cannot become a field that leat interprets, because its bytes come from others."""
    queue.redis.lpush('work', 'x')
    with pytest.raises(redis.ResponseError, match='BADARG'):
        intake(queue, 'work', field=field)
    assert queue.redis.llen('work') == 1


def test_it_stops_at_the_length_limit(queue):
    """Items that do not fit stay in the list, and the answer says so."""
    queue.register('w1', max_length=5)
    queue.redis.lpush('work', *range(8))
    assert intake(queue, 'work') == {'taken': 5, 'added': 5, 'left': 3, 'full': 1}
    assert intake(queue, 'work') == {'taken': 0, 'added': 0, 'left': 3, 'full': 1}
    for task in queue.begin('w1', 2):
        queue.finish('w1', task)
    assert intake(queue, 'work') == {'taken': 2, 'added': 2, 'left': 1, 'full': 1}
    for task in queue.begin('w1', 5):
        queue.finish('w1', task)
    assert intake(queue, 'work') == {'taken': 1, 'added': 1, 'left': 0, 'full': 0}
    assert items_of(queue) == [b'7']


@pytest.mark.parametrize('kind', ['list', 'set', 'zset'])
def test_import_of_old_structures(queue, kind):
    """Lists, sets and sorted sets are emptied; a sorted set in the order of its scores."""
    items = [b'item %d' % n for n in range(300)]
    fill(queue, kind, items)
    taken = 0
    while True:
        reply = intake(queue, 'work', most=70, kind=kind)
        taken += reply['taken']
        assert reply['left'] == 300 - taken
        if not reply['left']:
            break
    found = items_of(queue)
    assert (sorted(found) == sorted(items)) if kind == 'set' else (found == items)


def test_a_large_set(queue):
    """Thousands of members of a set become tasks, each once, in bounded calls."""
    fill(queue, 'set', [b'm%d' % n for n in range(20_000)])
    calls = 0
    while intake(queue, 'work', kind='set')['left']:
        calls += 1
        assert calls < 25
    found = items_of(queue)
    assert len(found) == 20_000 and set(found) == {b'm%d' % n for n in range(20_000)}


def test_times(queue):
    """ITEM*UNIXTIME: the time is cut off, and a task whose time is in the future is delayed."""
    ahead = queue.now() // 1000 + 3600
    queue.redis.lpush('ring', b'past*1700000000', b'a*b*5', b'none', b'*7', b'x*', b'y*7z',
                      b'future*%d' % ahead)
    assert intake(queue, 'ring', marks=True)['added'] == 7
    assert items_of(queue) == [b'past', b'a*b', b'none', b'', b'x*', b'y*7z']
    [(tid, due)] = queue.redis.zrange(queue.delayed, 0, -1, withscores=True)
    assert due == ahead * 1000
    assert queue.show(tid)['fields'] == [b'payload', b'future']
    queue.redis.lpush('ring', b'past*1700000000')
    intake(queue, 'ring')
    assert items_of(queue)[-1] == b'past*1700000000'


@pytest.mark.parametrize('kind', ['list', 'set', 'zset'])
def test_another_type_is_refused(queue, client, kind):
    """A key of another type is refused before anything is written, and the error names both types."""
    client.set('work', 'x')
    problem = f'WRONGTYPE work is a string, but its items are to be taken as those of a {kind}'
    with pytest.raises(redis.ResponseError, match=problem):
        intake(queue, 'work', kind=kind)
    with pytest.raises(redis.ResponseError, match=problem):
        preview(queue, 'work', kind)
    with pytest.raises(redis.ResponseError, match='BADARG'):
        intake(queue, 'work', kind='hash')
    assert client.keys() == [b'work']


@pytest.fixture
def failing(client):
    return Failing(Queue(client))


@pytest.mark.parametrize('kind', ['list', 'set', 'zset'])
@pytest.mark.parametrize('and_on', [False, True])
def test_each_write_fails(failing, kind, and_on):
    """Whichever write is refused, each item is in the list or in the queue; if the undoing works, it is never
    in both; and repeating the call moves them all."""
    queue, at = failing.queue, 0
    soon = b'%d' % (queue.now() // 1000 + 3600)
    items = [b'a', b'b*' + soon, b'c', b'd*' + soon]
    while True:
        at += 1
        fill(queue, kind, items)
        failing.at(at, and_on)
        try:
            intake(queue, 'work', kind=kind, marks=True)
        except redis.ResponseError as error:
            assert 'INJECTED' in str(error)
        reached = failing.writes() >= at
        failing.off()
        left, moved = members(queue, kind), len(queue.places())
        if and_on:
            assert left == items or moved == 4
        else:
            assert (left, moved) in ((items, 0), ([], 4)), at
            intake(queue, 'work', kind=kind, marks=True)
            assert sorted(items_of(queue)) == [b'a', b'c'] and queue.redis.zcard(queue.delayed) == 2
        queue.redis.flushall()
        if not reached:
            break
    assert at > 4


@pytest.mark.parametrize('and_on', [False, True])
def test_each_write_fails_with_lane_and_unique(failing, and_on):
    """The same holds for items that become tasks of a lane with unique keys: no name and no lane is left
    without its task."""
    queue, at = failing.queue, 0
    items = [b'a', b'b', b'a', b'c']
    while True:
        at += 1
        fill(queue, 'list', items)
        failing.at(at, and_on)
        try:
            intake(queue, 'work', lane='client', unique=True)
        except redis.ResponseError as error:
            assert 'INJECTED' in str(error)
        reached = failing.writes() >= at
        failing.off()
        left, moved = members(queue, 'list'), len(queue.places())
        if and_on:
            assert left == items or moved == 3
        else:
            assert (left, moved) in ((items, 0), ([], 3)), at
            intake(queue, 'work', lane='client', unique=True)
            run_all(queue, 3)
        queue.redis.flushall()
        if not reached:
            break
    assert at > 6


def run_all(queue, number):
    """This many tasks succeed, and nothing is left."""
    queue.register('w1')
    payloads = []
    for _ in range(number + 1):
        for task in queue.begin('w1', number):
            payloads.append(task.fields['payload'])
            assert queue.finish('w1', task) == 'ok'
    assert len(payloads) == number
    assert queue.places() == {} and queue.pending() == []
    assert queue.redis.exists(queue.lanes, queue.laned, queue.waiting) == 0 and queue.held() == {}
    return payloads


def test_equal_items_become_one_task(queue):
    """An equal item is removed without a task while the first item's task waits or runs; afterwards it
    becomes a task."""
    queue.redis.lpush('work', b'a', b'b', b'a', b'y' * 300, b'y' * 300, b'', b'')
    assert intake(queue, 'work', unique=True) == {'taken': 7, 'added': 4, 'left': 0, 'full': 0}
    queue.register('w1')
    running = queue.begin('w1', 4)
    queue.redis.lpush('work', b'b', b'', b'y' * 300)
    assert intake(queue, 'work', unique=True) == {'taken': 3, 'added': 0, 'left': 0, 'full': 0}
    for task in running:
        queue.finish('w1', task)
    queue.redis.lpush('work', b'b', b'b*1700000000')
    assert intake(queue, 'work', unique=True, marks=True) == {'taken': 2, 'added': 1, 'left': 0, 'full': 0}
    assert run_all(queue, 1) == [b'b']


def test_lanes_take_turns(queue):
    """Lists of clients are lanes: none waits behind another's backlog."""
    queue.redis.lpush('work:a', *[f'a{n}' for n in range(50)])
    queue.redis.lpush('work:b', 'b0', 'b1')
    for client in 'ab':
        intake(queue, f'work:{client}', lane=client)
    assert {b'b0', b'b1'} <= set(run_all(queue, 52)[:6])


def test_an_invalid_lane(queue):
    """The call is refused as a whole, and the items stay."""
    queue.redis.lpush('work', 'x')
    for lane in (b'l' * 201, b'a\0b'):
        with pytest.raises(redis.ResponseError, match='REFUSED'):
            intake(queue, 'work', lane=lane)
    assert queue.redis.llen('work') == 1 and queue.places() == {}


def test_a_full_server_refuses_it_whole(queue):
    """A full server answers OOM; nothing is taken and nothing written."""
    queue.redis.lpush('work', *range(10))
    queue.redis.config_set('maxmemory', 1)
    before = {key: queue.redis.dump(key) for key in queue.redis.keys()}
    with pytest.raises(redis.ResponseError, match='OOM|maxmemory'):
        intake(queue, 'work')
    assert {key: queue.redis.dump(key) for key in queue.redis.keys()} == before


@pytest.mark.parametrize('name', ['stream', 'conf', 'stats', 'delayed', 'waiting'])
def test_a_key_of_the_queue_has_another_type(queue, client, name):
    """If a key of the queue has another type, no item is lost or doubled: all items are in the list, or none."""
    client.set(getattr(queue, name), 'x')
    client.lpush('work', b'a', b'b*9999999999')
    try:
        intake(queue, 'work', marks=True)
    except redis.ResponseError as error:
        assert 'WRONGTYPE' in str(error)
    client.delete(getattr(queue, name))
    assert (client.llen('work'), len(queue.places())) in ((2, 0), (0, 2))


def test_preview(queue):
    """The preview has the number of items and the first of them, cut; nothing changes."""
    ahead = queue.now() // 1000 + 3600
    queue.redis.lpush('work', b'a*%d' % ahead, b'x' * 500, *range(30))
    count, rows = preview(queue, 'work', most=100, marks=True)
    assert count == 32 and len(rows) == 20
    assert rows[:3] == [(b'a', 1, ahead * 1000), (b'x' * 200, 500, 0), (b'0', 1, 0)]
    assert queue.redis.llen('work') == 32 and preview(queue, 'nowhere') == (0, [])


def test_turns(queue):
    """Of all workers that ask in a period, one is told to look for lists; the others learn when to ask again."""
    assert turn(queue, 60_000) == 0
    assert 50_000 < turn(queue, 60_000) <= 60_000
    assert turn(queue, 10) <= 10
    queue.redis.hset(queue.stats, 'lists_sought', queue.now() - 60_000)
    assert turn(queue, 60_000) == 0
    queue.redis.hset(queue.stats, 'lists_sought', queue.now() - 40_000)
    assert turn(queue, 60_000) <= 20_000 and turn(queue, 60_000, busy=True) == 0
    assert turn(queue, 60_000) > 20_000
    queue.redis.hset(queue.stats, 'lists_sought', queue.now() + 10**9)  # a clock that was set back
    assert turn(queue, 60_000) == 0


def test_an_intake_wakes_a_blocked_reader(queue, redis_server):
    """Taking items wakes a blocked reader as an enqueue does."""
    queue.register('w1')
    blocked = redis_server.client()
    connection = blocked.connection_pool.get_connection('XREADGROUP')
    connection.send_command('XREADGROUP', 'GROUP', queue.group, 'w1', 'COUNT', 1, 'BLOCK', 10000, 'STREAMS',
                            queue.go, queue.stream, '>', '>')
    queue.redis.lpush('work', 'x')
    intake(queue, 'work')
    assert connection.read_response()[0][1][0][1] == [b'payload', b'x']
    blocked.connection_pool.release(connection)
