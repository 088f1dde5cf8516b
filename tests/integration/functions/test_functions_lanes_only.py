"""conf lanes_only = named: a lane without settings of its own is none, whichever way a task comes."""
import pytest

from harness.functions.doctor import Doctor
from harness.functions.invariants import check
from harness.polling import wait_until
from harness.queue import text


@pytest.fixture(autouse=True)
def named(queue):
    queue.register('w1')
    queue.conf_set('lane:a', '1')
    queue.conf_set('lanes_only', 'named')


def add(queue, how, *tasks):
    for task in tasks:
        if how == 'XADD':
            queue.redis.xadd(queue.stream, task)
        else:
            queue.program_add(*[part for pair in task.items() for part in pair])


def lanes(tasks):
    return [text(task.fields.get('lane', b'')) for task in tasks]


@pytest.mark.parametrize('how', ['XADD', 'function'])
def test_lanes_of_a_producer_s_own_get_no_turns(queue, how):
    """Tasks that name a hundred lanes wait as tasks without a lane do: a lane of the configuration has every
    second turn, and not one of a hundred."""
    add(queue, how, *[{'command': 'x', 'lane': f'own {i}'} for i in range(100)])
    first = queue.begin('w1', 1)
    add(queue, how, *[{'command': 'x', 'lane': 'a'}] * 5)
    if how == 'XADD':
        # leat learns of their lanes when it reads them: the stream is in order
        assert 'a' not in lanes(queue.begin('w1', 5))
        return
    assert lanes(first) == ['own 0'] and lanes(queue.begin('w1', 8)).count('a') >= 4
    assert set(queue.lane_rows()) <= {b'a'}


def test_a_cap_of_the_default_does_not_bind_them(queue):
    """They are counted in no lane, and bound by no settings of lane:*, as tasks without a lane are not."""
    queue.conf_set('lane:*', '1, 1')
    add(queue, 'XADD', *[{'command': 'x', 'lane': lane} for lane in 'bbbaaa'])
    tasks = queue.begin('w1', 9)
    assert lanes(tasks) == list('bbbaaa')
    assert (queue.counter('r:b'), queue.counter('r:a')) == (0, 3)
    assert {queue.finish('w1', task) for task in tasks} == {'ok'}
    check(queue)
    assert Doctor(queue).look() == []


@pytest.mark.parametrize('how', ['XADD', 'function'])
def test_the_default_is_no_lane(queue, how):
    """A task that names the lane '*' does not get the turns of the settings lane:*."""
    queue.conf_set('lane:*', 'strict')
    add(queue, how, *[{'command': 'x', 'lane': '*'}] * 3)
    assert lanes(queue.begin('w1', 3)) == ['*'] * 3
    assert queue.counter('r:*') == 0 and queue.lane_rows() == {}


def test_the_claim_says_which(queue):
    """The reply names the tokens of tasks whose lane counts as none, so that the worker can log them."""
    add(queue, 'XADD', *[{'command': 'x', **lane} for lane in ({'lane': 'b'}, {}, {'lane': 'a'}, {'lane': 'c'})])
    reply = queue.call('claim', queue.group, 'w1', 9, 0, '')
    tokens = [text(task[0]) for task in reply[6]]
    assert [text(token) for token in reply[12]] == [tokens[0], tokens[3]]


@pytest.mark.parametrize('way', ['retry', 'delayed', 'dead', 'expired lease', 'cancel', 'laned before'])
def test_in_every_state(queue, way):
    """A task that names such a lane is retried, delayed, revived, taken over and cancelled, and leaves nothing
    behind."""
    if way == 'laned before':
        queue.conf_set('lanes_only', 'any')
    queue.add({'command': 'x', 'lane': 'a'}, {'command': 'x', 'lane': 'a'})
    if way in ('delayed', 'cancel'):
        [tid] = queue.add({'command': 'x', 'lane': 'b'}, due='+1')
    else:
        [tid] = queue.add({'command': 'x', 'lane': 'b'})
    queue.conf_set('lanes_only', 'named')
    wait_until(lambda: queue.claim('w1', 0)['next_due'] < queue.now())
    if way == 'cancel':
        queue.redis.zadd(queue.delayed, {tid: 1})
        queue.begin('w1', 1)
        assert queue.show(tid)['row']['state'] in (b'ready', b'running')
        assert queue.call_off(tid)[0] in ('cancelled', 'asked w1')
    tasks = queue.begin('w1', 9)
    mine = [task for task in tasks if task.tid == tid]
    if mine and way in ('retry', 'dead'):
        assert queue.finish('w1', mine[0], way, cause='exit', **({'delay': 1} if way == 'retry' else {})) == 'ok'
        tasks.remove(mine[0])
        if way == 'dead':
            assert queue.dead_retry(queue.letters()[0][0]) == ['ok']
            assert queue.show(tid)['row']['state'] == b'ready'
        tasks += wait_until(lambda: queue.begin('w1'))
    elif mine and way == 'expired lease':
        queue.expire(mine[0].token)
        tasks = [task for task in tasks if task.tid != tid] + queue.scan('w1', 9)[1]
        tasks += queue.begin('w1', 9)
    check(queue)
    assert queue.counter('r:b') == 0
    for task in tasks:
        queue.finish('w1', task)
    while queue.begin('w1'):
        queue.finish('w1', queue.begin('w1')[0])
    Doctor(queue).repair()
    assert Doctor(queue).look() == []


def test_a_lane_that_is_named_later(queue):
    """A lane counts as soon as it has settings, and no more when it has none."""
    add(queue, 'XADD', {'command': 'x', 'lane': 'b'})
    assert queue.begin('w1') and queue.counter('r:b') == 0
    queue.conf_set('lane:b', '2, 1')
    add(queue, 'XADD', *[{'command': 'x', 'lane': 'b'}] * 2)
    assert len(queue.begin('w1', 9)) == 1 and queue.counter('r:b') == 1
    queue.conf_set('lane:b', '')
    assert lanes(queue.begin('w1', 9)) == ['b'] and queue.counter('r:b') == 1
    check(queue)


@pytest.mark.parametrize('value', ['any', '', 'x', 'nan'])
def test_other_values(queue, value):
    """Every other value allows all lanes; doctor names one that was written by hand."""
    queue.redis.hset(queue.conf, 'lanes_only', value)
    add(queue, 'XADD', {'command': 'x', 'lane': 'b'})
    assert queue.begin('w1') and queue.counter('r:b') == 1
    found = [one.what[1] for one in Doctor(queue).look()]
    assert found == ([] if value == 'any' else ['lanes_only'])
