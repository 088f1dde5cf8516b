"""leat_follow: workers learn whose output is wanted."""
import pytest
import redis

from harness.queue import text

DAMAGED = ('follow', 'follow x 1-0', 'follow 5', f'follow {"9" * 300} 1-0', 'follow 5 1-0 2-0', 'follow 60000 x',
           'follow 60000 1-0\0', '\0', b'follow 60000 \xff', f'follow 60000 {"1" * 50}-0')


def wakeups(queue):
    """The reasons of the wakeups that are kept."""
    return [text(fields[1]) for _, fields in queue.entries('bell')]


def registered(queue, consumer):
    """{tid: for how long} that a worker that registers is told."""
    *_, followed = queue.call('register', queue.group, consumer, '{}', 0)
    return {text(tid): int(ms) for ms, tid in zip(followed[::2], followed[1::2])}


def test_it_wakes_the_workers(queue):
    """A call writes one wakeup, with the tid and the time, and nothing else."""
    queue.register('w1')
    [tid] = queue.add({'command': 'x'})
    before = queue.redis.keys('*')
    now, answered = queue.call('follow', 60000, tid)
    assert text(answered) == tid and int(now) <= queue.now()
    assert wakeups(queue)[-1] == f'follow 60000 {tid}'
    assert sorted(queue.redis.keys('*')) == sorted(before)


def test_labels(queue):
    """A label is replaced by the tid of its task. An unknown one is no tid, so it wakes nobody."""
    queue.register('w1')
    [(_, tid)] = queue.enqueue({'command': 'x', 'id': 'order-17'})
    tid = text(tid)
    assert text(queue.call('follow', 5, 'order-17')[1]) == tid
    assert wakeups(queue)[-1] == f'follow 5 {tid}'
    kept = wakeups(queue)
    for label in 'order-18', '', 'a b', 'x' * 10000:
        assert text(queue.call('follow', 5, label)[1]) == label
    assert queue.call('follow', 0, tid)
    assert wakeups(queue) == kept


@pytest.mark.parametrize('ms', ['600001', '-1', 'x', 'nan', '1e300'])
def test_times(queue, ms):
    """A time that is none, or longer than ten minutes, is refused."""
    with pytest.raises(redis.ResponseError, match='BADARG'):
        queue.call('follow', ms, '1-0')


def test_who_registers_later(queue):
    """A worker that registers is told who is followed for how long still, of the wakeups that are kept."""
    queue.register('w1')
    assert registered(queue, 'w2') == {}
    queue.call('follow', 60000, '1-0')
    queue.call('follow', 1, '2-0')
    seen = queue.now()
    while queue.now() < seen + 3:
        pass
    told = registered(queue, 'w3')
    assert list(told) == ['1-0'] and 0 < told['1-0'] <= 60000
    for _ in range(16):
        queue.call('gate', 'paused', 1)
    assert registered(queue, 'w4') == {}


def test_damaged_wakeups(queue):
    """Wakeups that leat did not write are ignored."""
    queue.register('w1')
    for why in DAMAGED:
        queue.redis.xadd(queue.bell, {'why': why})
    assert registered(queue, 'w2') == {}
