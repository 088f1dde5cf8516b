"""Tasks that do not start in time: who ends them if no worker claims them."""
import pytest

from harness.functions import invariants
from harness.queue import pairs, text

SOON_MS = 3000  # what comes before must be done by then, also on a busy machine


@pytest.fixture(autouse=True)
def worker(queue):
    queue.register('w1')
    yield
    invariants.check(queue)
    assert not queue.redis.exists(queue.delayed)


def expiring(queue, **fields):
    return {'command': 'x', 'expires': f'{(queue.now() + SOON_MS) / 1000:.3f}', **fields}


def add(queue, how='function', **fields):
    """The tid of a task that expires soon, which nobody claims."""
    task = expiring(queue, **fields)
    if how == 'XADD':
        return text(queue.redis.xadd(queue.stream, task))
    return queue.add(task)[0]


def wait_expired(queue, wait_until):
    """Until the time of what was added before has passed."""
    until = queue.now() + SOON_MS
    wait_until(lambda: queue.now() > until)


def ends(queue):
    return [(text(letter['leat.tid']), text(letter['leat.cause'])) for _, letter in queue.letters()]


CALLS = {
    'renew': lambda queue: queue.renew('w1'),
    'claim of nothing': lambda queue: queue.claim('w1', 0, cursor='g0-0'),
    'cancel': lambda queue: queue.call('cancel', queue.group, 0, '5-5', ''),
    'pause': lambda queue: queue.call('gate', 'paused', 1),
    'resume': lambda queue: queue.call('gate', 'paused', 0),
    'await of another': lambda queue: queue.call('await', 1000, '5-5'),
}


@pytest.mark.parametrize('call', CALLS)
def test_the_next_call_ends_it(queue, wait_until, call):
    """On a paused queue too, the next call of a worker, an operator or a waiting program ends an expired task,
    whoever it is, and everything that it held is free."""
    queue.call('gate', 'paused', 1)
    tid = add(queue, id='label', unique='key', lane='a')
    CALLS[call](queue)
    assert ends(queue) == []
    wait_expired(queue, wait_until)
    CALLS[call](queue)
    assert ends(queue) == [(tid, 'expired')] and queue.counter('expired') == 1
    assert queue.places() == {tid: ['dead']} and queue.held() == {}


PLACES = ['stream', 'XADD', 'delayed', 'lane', 'go', 'retrying', 'following', 'read']


@pytest.mark.parametrize('place', PLACES)
def test_wherever_it_waits(queue, wait_until, place):
    """leat_await says when the task expires, and ends it then, wherever it waits: its result is there."""
    if place == 'lane':
        queue.add(*[{'command': 'x', 'lane': 'a'}] * 2)
    elif place == 'following':
        queue.add({'command': 'x', 'unique': 'key'})
    [first] = queue.begin('w1') or [None]
    if place == 'delayed':
        [(_, tid)] = queue.enqueue(expiring(queue), due='+20')
    else:
        tid = add(queue, 'XADD' if place == 'XADD' else 'function', **{
            'lane': {'lane': 'a'}, 'following': {'unique': 'key', 'unique_next': '1'}}.get(place, {}))
    if place in ('go', 'retrying'):
        [task] = queue.begin('w1')
        queue.finish('w1', task, *(['release'] if place == 'go' else ['retry']),
                     delay=0 if place == 'go' else 60000)
    elif place == 'read':
        queue.block('w1')
    _, named, left = queue.call('await', 60000, tid)
    assert text(named) == tid and 0 < left <= SOON_MS
    wait_expired(queue, wait_until)
    assert len(queue.call('await', 60000, tid)) == 2
    assert ends(queue) == [(tid, 'expired')] and queue.places()[tid] == ['dead']
    [(_, result)] = queue.redis.xrange(f'{{{queue.stream}}}:result:{tid}')
    assert pairs(result)['cause'] == b'expired' and pairs(result)['state'] == b'dead'
    for task in [first] * (first is not None) + queue.begin('w1', 9):
        assert queue.finish('w1', task) == 'ok'


@pytest.mark.parametrize('call', ['renew', 'await of another', 'cancel', 'resume'])
def test_a_lane_has_its_turn_after_it(queue, wait_until, call):
    """If the entry expires that would have woken a worker, the call that ends it offers a task of a lane."""
    queue.add(expiring(queue, lane='a'), {'command': 'x', 'lane': 'a'})
    wait_expired(queue, wait_until)
    CALLS[call](queue)
    [token] = queue.block('w1')
    [task] = queue.claim('w1', named=[token])['tasks']
    assert queue.finish('w1', task) == 'ok'


def test_a_task_that_has_started_does_not_expire(queue, wait_until):
    """A claimed task is not ended, and its late end counts; of its later attempts each has to start in time."""
    tid = add(queue)
    [task] = queue.begin('w1')
    wait_expired(queue, wait_until)
    assert len(queue.call('await', 1000, tid)) == 2 and queue.renew('w1', [task.token])['lost'] == []
    assert queue.finish('w1', task, 'retry', delay=60000) == 'ok'
    queue.renew('w1')
    assert ends(queue) == [(tid, 'expired')] and queue.letters()[0][1]['leat.attempts'] == b'1'


@pytest.mark.parametrize('fields', [{}, {'lane': 'a'}])
def test_a_task_that_runs_may_expire_before_its_next_attempt(queue, wait_until, fields):
    """leat_await says when, and ends it then."""
    tid = add(queue, **fields)
    [task] = queue.begin('w1')
    _, _, left = queue.call('await', 60000, tid)
    assert 0 < left <= SOON_MS
    queue.finish('w1', task, 'retry', delay=60000)
    wait_expired(queue, wait_until)
    queue.call('await', 60000, tid)
    assert ends(queue) == [(tid, 'expired')]


def test_what_was_cancelled_or_called_back(queue):
    """Cancelled, nothing of it is left; a dead letter that is retried has to start in time again."""
    first, second = add(queue), add(queue, lane='a')
    queue.call('cancel', queue.group, 0, first, '', second, '')
    assert not queue.redis.exists(queue.delayed)
    [(_, tid)] = queue.enqueue({'command': 'x', 'expires': str(queue.now() / 1000 + 3600)})
    [task] = queue.begin('w1')
    queue.finish('w1', task, 'dead', cause='exit')
    assert queue.dead_retry(queue.letters()[0][0]) == ['ok']
    assert text(queue.redis.zrange(queue.delayed, 0, 0)[0]) == 'x:' + tid
    [task] = queue.begin('w1')
    assert queue.finish('w1', task) == 'ok'
