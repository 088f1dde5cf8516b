"""leat_gate and what a closed gate lets through: nothing begins, and everything else goes on."""
import pytest

from harness.queue import Queue

TASK = {'command': 'true'}
A, B = 'alpha:1:aa', 'beta.example:2:bb'


@pytest.fixture
def queue(client):
    queue = Queue(client).load()
    queue.register(A)
    queue.register(B)
    return queue


def state(queue, consumer, **options):
    """(why, how many tasks) of a claim."""
    reply = queue.claim(consumer, 5, **options)
    assert (reply['closed'] > 0) == (reply['why'] != '')
    return reply['why'], len(reply['tasks'])


def test_pause(queue):
    """Paused, nobody begins anything, however it came; each is told until when not to ask again, and
    the bell tells when it may. Resumed, all of it begins."""
    queue.add(TASK)
    assert queue.gate('paused', True) is False and queue.wakeups() == ['gate']
    queue.redis.xadd(queue.stream, TASK)
    queue.add(dict(TASK, lane='blue'))
    queue.add(TASK, due='+1')
    assert state(queue, A) == state(queue, B) == ('paused', 0)
    assert queue.claim(A, 5)['closed'] > queue.now() + 60000
    assert queue.gate('paused', False) is False and queue.wakeups() == ['gate', 'due', 'gate']
    begun = 0
    while begun < 4:
        begun += len(queue.begin(B, 5))
    assert queue.status()['running'] == 4


def test_what_was_read_goes_back(queue):
    """What a blocking read had brought goes back, un-begun, to be started by whoever may."""
    [tid] = queue.add(TASK)
    named = queue.block(A)
    queue.gate('drain:alpha', True)
    reply = queue.claim(A, 5, named=named)
    assert (reply['why'], reply['tasks'], reply['held']) == ('drained', [], [])
    assert queue.pending() == [] and queue.places() == {tid: ['go']}
    [task] = queue.begin(B)
    assert (task.tid, task.attempt, task.crashes) == (tid, 1, 0)


def test_running_ones_go_on(queue):
    """Renewed, finished, retried: a closed gate is none of their business."""
    queue.add(*[TASK] * 3)
    tasks = queue.begin(A, 3)
    queue.gate('paused', True)
    assert queue.renew(A, [task.token for task in tasks])['lost'] == []
    assert queue.finish(A, tasks[0]) == 'ok'
    assert queue.finish(A, tasks[1], 'retry', cause='exit', status='1', delay=1) == 'ok'
    assert queue.finish(A, tasks[2], 'dead', cause='exit', status='65') == 'ok'


def test_scan_goes_on(queue):
    """Leases that run out while the queue is paused are seen to: the task waits to be resumed."""
    [tid] = queue.add(TASK)
    [task] = queue.begin(A)
    queue.gate('paused', True)
    queue.expire(task.token)
    assert queue.claim(B, 0, cursor='s0-0')['why'] == 'paused'
    assert queue.places() == {tid: ['go']} and queue.counter('crashes') == 1
    assert state(queue, B) == ('paused', 0)


def test_drain(queue):
    """A host is meant by its whole name; the others go on; * means every host."""
    queue.add(*[TASK] * 9)
    queue.gate('drain:beta', True)
    assert state(queue, A) == ('', 5) and queue.claim(B, 1)['why'] == ''
    assert queue.gate('drain:beta.example', True) is False
    assert queue.claim(B, 1)['why'] == 'drained' and queue.claim(A, 1)['why'] == ''
    assert queue.gate('drain:*', True) is False
    assert queue.claim(A, 1)['why'] == queue.claim(B, 1)['why'] == 'drained'
    assert queue.gate('drain:*', False) is False
    assert queue.claim(B, 1)['why'] == 'drained' and queue.claim(A, 1)['why'] == ''
    # a pause says more than a drain, and a recreated group more than both
    queue.gate('paused', True)
    assert queue.claim(B, 1)['why'] == 'paused'
    queue.redis.hset(queue.conf, 'hold_until', queue.now() + 60000)
    assert queue.claim(B, 1)['why'] == 'hold'


def test_again(queue):
    """Said again it changes nothing, and what was so since when stays known."""
    assert queue.gate('paused', False) is True
    before = queue.now()
    assert queue.gate('paused', True) is False
    since = int(queue.redis.hget(queue.conf, 'paused'))
    assert before <= since <= queue.now()
    assert queue.gate('paused', True) is True
    assert int(queue.redis.hget(queue.conf, 'paused')) == since
    assert queue.status()['conf']['paused'] == str(since).encode()
    assert queue.gate('paused', False) is False and queue.gate('paused', False) is True
    assert not queue.redis.hexists(queue.conf, 'paused')


@pytest.mark.parametrize('name', ['', 'lease_ms', 'drain:', 'pausedx', 'x', 'hold_until'])
def test_no_other_gates(queue, name):
    """It writes nothing else into conf."""
    with pytest.raises(Exception, match='BADARG'):
        queue.gate(name, True)
    assert 'x' not in queue.status()['conf']


def test_it_says_who(queue):
    """conf has by whom, whoever closes it again; the gate is as closed as without."""
    queue.add(TASK)
    queue.gate('paused', True, 'alice@web1')
    queue.gate('paused', True, 'bob@web2')
    queue.gate('drain:alpha', True, '')
    since, by = queue.status()['conf']['paused'].split(b' ', 1)
    assert int(since) <= queue.now() and by == b'alice@web1'
    assert queue.status()['conf']['drain:alpha'].isdigit()
    assert state(queue, A) == ('paused', 0)
    queue.gate('paused', False, 'alice@web1')
    assert state(queue, A) == ('drained', 0) and state(queue, B) == ('', 1)


def test_who_has_a_bounded_name(queue):
    """100 bytes are enough."""
    with pytest.raises(Exception, match='BADARG'):
        queue.gate('paused', True, 'x' * 101)
    assert 'paused' not in queue.status()['conf']
    queue.gate('paused', True, 'x' * 100)
    assert queue.status()['conf']['paused'].endswith(b' ' + b'x' * 100)
