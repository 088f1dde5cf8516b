"""Edits by hand, or ids of a producer's choice, in one task do not stop the others."""
import pytest

from harness.functions.doctor import Doctor
from harness.polling import wait_until

DAMAGES = [b'', b'\x80', b'\x90', b'\x93\xff\xfe', b'\x81\xa1a\xa1b', b'\x92\x01\x02', b'\x91\xa1a',
           b'\x92\xa1a\x91\xa1b', b'\xc0', b'\x05']


def make_due(queue, *tids):
    for tid in tids:
        queue.redis.zadd(queue.delayed, {tid: 1})


@pytest.mark.parametrize('damage', DAMAGES)
def test_a_damaged_waiting_task_blocks_no_other(queue, damage):
    """A damaged task that is due first does not stop the others; it stays, is shown, and can be cancelled."""
    queue.register('w1')
    [bad] = queue.add({'command': 'true'}, due='+60000')
    [good] = queue.add({'command': 'true'}, due='+60000')
    queue.redis.hset(queue.waiting, bad, damage)
    make_due(queue, bad, good)
    assert [task.tid for task in queue.begin('w1', 5)] == [good]
    assert queue.redis.hexists(queue.waiting, bad)
    assert queue.show(bad)['row']['state'] == b'damaged'
    assert queue.list('waiting') == []
    assert [one.what for one in Doctor(queue).look()] == [('damaged', bad)]
    assert queue.call('cancel', queue.group, 0, bad, '') == [b'cancelled']
    assert Doctor(queue).look() == []


@pytest.mark.parametrize('member', [b'a', b'a\0', b'a\0-', b'a\0005-5', b'\0', b'a\0' + b'x' * 41])
def test_a_damaged_lane_member_blocks_no_other(queue, member):
    """A malformed member at the head of a lane, or beside it, does not stop the lane's tasks."""
    queue.register('w1')
    queue.add({'command': 'first'}, {'command': 'true', 'lane': 'a'}, {'command': 'true', 'lane': 'a'})
    queue.redis.zadd(queue.laned, {member: 0})
    assert [task.fields['command'] for task in queue.begin('w1', 5)] == [b'first', b'true', b'true']


def test_waits_that_are_over_are_swept(queue):
    """The sweep removes awaits of clients that are gone and whose tasks had ended before, and keeps the
    others."""
    queue.register('w1')
    queue.call('await', 0, '1-1', '2-2')
    queue.call('await', 600000, '3-3')
    queue.redis.hset(queue.awaited, '4-4', 'x')
    # an await of 0 ms is over with the next millisecond
    now = queue.now()
    wait_until(lambda: queue.now() > now)
    queue.scan('w1')
    assert queue.redis.hkeys(queue.awaited) == [b'3-3']


def test_a_cancel_that_came_too_late_is_forgotten(queue):
    """If the task succeeded after its lease, or its entry was deleted, nothing is left of the cancel."""
    queue.register('w1')
    queue.register('w2')
    queue.add({'command': 'true'}, {'command': 'true'})
    late, deleted = queue.begin('w1', 2)
    queue.expire(late.token)
    queue.scan('w2')
    queue.redis.sadd(queue.cancel, late.tid, deleted.tid)
    assert queue.finish('w1', late) == 'ok'
    queue.redis.xdel(queue.stream, deleted.token[1:])
    assert queue.renew('w1', [deleted.token])['lost'] == [deleted.token]
    assert queue.redis.smembers(queue.cancel) == set()


def test_a_damaged_await_blocks_no_other(queue):
    """A value of the awaited key that is no time counts as an await that is over."""
    queue.register('w1')
    [tid] = queue.add({'command': 'true'})
    queue.redis.hset(queue.awaited, mapping={'*': 'x', tid: 'y'})
    queue.call('await', 60000, '5-5')
    assert queue.redis.hkeys(queue.awaited) == [b'5-5']
    queue.redis.hset(queue.awaited, mapping={'*': 'x', tid: 'y'})
    [task] = queue.begin('w1')
    assert queue.finish('w1', task) == 'ok'
    assert queue.redis.hkeys(queue.awaited) == [b'5-5']
    assert not queue.redis.exists('{emails}:result:*')
