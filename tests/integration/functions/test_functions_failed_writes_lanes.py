"""If any one write of any function fails for tasks with lanes, unique keys and rates, the keys agree with
each other, and repeating the call completes it."""
import pytest
import redis

from harness.functions import invariants
from harness.functions.failing import Failing
from harness.queue import Queue

A = {'command': 'a', 'lane': 'a', 'unique': 'k', 'id': 'label', 'unique_for': '1h'}
B = {'command': 'b', 'lane': 'b'}
NEXT = dict(A, id='next', unique_next='1')
PLAIN = {'command': 'plain'}


@pytest.fixture
def failing(client):
    return Failing(Queue(client))


def world(queue, most=2):
    queue.register('w1', max_crashes=2)
    queue.register('w2', max_crashes=2)
    queue.conf_set('lane:a', f'2, {most}, 1000/s, 100')


def begun(queue, task=A, more=2):
    """The task of lane a runs; others wait in both lanes."""
    world(queue)
    queue.add(task)
    [one] = queue.begin('w1')
    queue.add(*[dict(A, unique='', id='')] * more, *[B] * more)
    return one


def with_follow_up(queue):
    one = begun(queue)
    queue.enqueue(NEXT)
    return one


def capped(queue):
    """Both slots of lane a are taken; more tasks wait, and one has come by plain XADD."""
    world(queue, most=1)
    queue.add(A)
    [one] = queue.begin('w1')
    queue.add(*[dict(A, unique='', id='')] * 2)
    return one


def plain_for_a_full_lane(queue):
    capped(queue)
    queue.redis.xadd(queue.stream, {'command': 'x', 'lane': 'a'})
    return queue.block('w2')


def passed_on_to_a_full_lane(queue):
    """w1's lease on the first task expired, another task of the lane was quicker, and the first waits in its
    lane."""
    one = capped(queue)
    queue.redis.xadd(queue.stream, {'command': 'x', 'lane': 'a'})
    quick = queue.block('w2')
    queue.expire(one.token)
    queue.scan('w2')
    assert queue.claim('w2', 0, named=quick)['tasks']
    assert queue.begin('w2', 1) == []
    assert 'w' + one.tid in [task.place for task in invariants.Snapshot(queue).tasks]
    return one


def expired(queue):
    one = with_follow_up(queue)
    queue.expire()
    return one


def second_crash(queue):
    one = expired(queue)
    queue.scan('w2')
    [task] = [task for task in queue.begin('w2', 9) if task.tid == one.tid] or queue.begin('w1', 1)
    queue.expire()
    return task


def due(queue):
    world(queue)
    queue.add(PLAIN)
    queue.add(A, PLAIN, due='+60000')
    queue.add(B)
    for member in queue.redis.zrange(queue.delayed, 0, -1):
        queue.redis.zadd(queue.delayed, {member: 1})


def freed_by_time(queue):
    """A rate token is available, and a key is free again."""
    queue.finish('w1', begun(queue))
    queue.redis.hset(queue.names, 'u:k', '@1 ' + queue.redis.hget(queue.names, 'u:k').decode().split()[1])
    queue.redis.zrem(queue.lanes, 'a')
    queue.redis.zadd(queue.delayed, {'u:k': 1, 'l:a': 1})


def buried(queue):
    one = begun(queue)
    queue.finish('w1', one, 'dead', cause='exit')
    return queue.letters()[0][0]


def vanished(queue):
    one = with_follow_up(queue)
    queue.redis.xdel(queue.stream, one.token[1:])
    return one


def waiting(queue, **extra):
    begun(queue)
    return queue.add(dict(B, unique='other', **extra))[0]


def follow_up(queue):
    begun(queue)
    return queue.enqueue(NEXT)[0][1]


def idle(queue):
    """A lane at its cap, and nothing else: only the end of its task can wake a worker."""
    one = capped(queue)
    assert queue.begin('w2') == []
    return one


def finish(outcome, **result):
    return lambda queue, task: queue.finish('w1', task, outcome, cause='exit', **result)


def cancel(queue, tid):
    return queue.call('cancel', queue.group, 0, tid, '')


CASES = {
    'enqueue into an idle queue': (world, lambda q, _: q.enqueue(A)),
    'enqueue into lanes': (begun, lambda q, _: q.enqueue(B, dict(A, unique='l', id=''), PLAIN)),
    'enqueue a follow-up': (begun, lambda q, _: q.enqueue(NEXT)),
    'enqueue delayed': (begun, lambda q, _: q.enqueue(dict(B, unique='l'), due='+60000')),
    'claim from lanes': (begun, lambda q, _: q.begin('w2', 4)),
    'claim what is due': (due, lambda q, _: q.begin('w2', 1)),
    'claim when time has freed a lane and a key': (freed_by_time, lambda q, _: q.begin('w2', 1)),
    'claim for a full lane': (plain_for_a_full_lane, lambda q, named: q.claim('w2', 1, named=named)),
    'claim from a full lane': (capped, lambda q, _: q.begin('w2', 3)),
    'success': (with_follow_up, finish('success')),
    'success that frees a lane': (idle, finish('success')),
    'retry': (with_follow_up, finish('retry', delay=60000)),
    'dead': (with_follow_up, finish('dead')),
    'dead that frees a lane': (idle, finish('dead')),
    'release': (with_follow_up, finish('release')),
    'cancelled': (with_follow_up, finish('cancelled')),
    'late success': (lambda q: (expired(q), q.scan('w2'))[0], finish('success')),
    'late success of one that waits': (passed_on_to_a_full_lane, finish('success')),
    'claim of one that waits with a record': (
        lambda q: (passed_on_to_a_full_lane(q), q.conf_set('lane:a', '1')), lambda q, _: q.begin('w1', 5)),
    'cancel one that waits with a record': (lambda q: passed_on_to_a_full_lane(q).tid, cancel),
    'scan': (expired, lambda q, _: q.scan('w2')),
    'scan of the last crash': (second_crash, lambda q, _: q.scan('w1')),
    'register': (with_follow_up, lambda q, _: q.register('w1', max_crashes=2)),
    'requeue, died': (with_follow_up, lambda q, _: q.requeue('w1', died=True)),
    'vanished, renew': (vanished, lambda q, task: q.renew('w1', [task.token])),
    'cancel one in a lane': (waiting, cancel),
    'cancel a follow-up': (follow_up, cancel),
    'dead_retry': (buried, lambda q, id: q.dead_retry(id)),
    'conf of a lane': (capped, lambda q, _: q.conf_set('lane:a', '1, 3')),
    'conf of a lane that becomes strict': (begun, lambda q, _: q.conf_set('lane:a', 'strict')),
}


def try_step(step, queue, before):
    """Whether the call failed, with an error or with one in a row of its reply."""
    try:
        return 'INJECTED' in str(step(queue, before))
    except redis.ResponseError as error:
        assert 'INJECTED' in str(error)
        return True


def agree(queue):
    """The keys agree with each other. Returns the lanes that could start a task."""
    snapshot = invariants.Snapshot(queue)
    snapshot.one_place_each()
    follows = snapshot.held_names()
    snapshot.unique_tasks(follows, ())
    snapshot.waiting_tasks(follows)
    snapshot.lane_counts()
    return snapshot.startable_lanes()


def is_woken_in_the_end(queue):
    """A lane that could start a task wakes a worker, at the latest with the next scan."""
    queue.scan('w2')
    invariants.Snapshot(queue).a_worker_is_woken(agree(queue))


@pytest.mark.parametrize('name', CASES)
def test_the_keys_agree_whatever_write_fails(failing, name):
    """If write N fails, for each N, names, lanes, counts and places agree at once, and repeating the call
    completes it. Then every task runs to its end, and nothing is left."""
    queue, at, (prepare, step) = failing.queue, 0, CASES[name]
    reached = True
    while reached:
        at += 1
        before = prepare(queue)
        agree(queue)
        failing.at(at)
        failed = try_step(step, queue, before)
        reached = failing.writes() >= at
        failing.off()
        try:
            agree(queue)
            if failed:
                assert not try_step(step, queue, before)
            is_woken_in_the_end(queue)
            run_to_the_end(queue)
        except AssertionError as error:
            raise AssertionError(f'write {at}: {error}') from error
        queue.redis.flushall()
    assert at > 1, 'the step writes nothing'


def run_to_the_end(queue):
    """A worker with time: leases expire, delayed tasks become due, and every claimed task succeeds."""
    queue.conf_set('lane:a', '')
    queue.register('w9', max_crashes=9)
    for _ in range(8):
        for member in queue.redis.zrange(queue.delayed, 0, -1):
            queue.redis.zadd(queue.delayed, {member: 1})
        queue.expire()
        queue.redis.hdel(queue.stats, 'swept')
        queue.scan('w9')
        for task in queue.begin('w9', 10):
            assert queue.finish('w9', task) == 'ok'
    assert [place for place in queue.places().values() if place != ['dead']] == []
    assert queue.pending() == [] and queue.redis.hgetall(queue.running) == {}
    assert [value for value in queue.held().values() if value[:1] != b'@'] == []
    assert [name for name in queue.redis.hkeys(queue.stats) if name[:2] == b'r:'] == []
    assert queue.redis.zcard(queue.laned) == 0
