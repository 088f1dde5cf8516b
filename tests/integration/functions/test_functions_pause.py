"""leat_gate and what a pause stops: no task starts, and everything else goes on."""
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
    """(reason, number of tasks) of a claim."""
    reply = queue.claim(consumer, 5, **options)
    assert (reply['closed'] > 0) == (reply['why'] != '')
    return reply['why'], len(reply['tasks'])


def test_pause(queue):
    """While the queue is paused no task starts, however it came; each worker learns until when not to ask,
    and the wakeup stream tells when to. After the resume all tasks start."""
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


def test_delivered_tasks_are_requeued(queue):
    """A task that a blocking read delivered is requeued unclaimed, and any worker may start it later."""
    [tid] = queue.add(TASK)
    named = queue.block(A)
    queue.gate('drain:alpha', True)
    reply = queue.claim(A, 5, named=named)
    assert (reply['why'], reply['tasks'], reply['held']) == ('drained', [], [])
    assert queue.pending() == [] and queue.places() == {tid: ['go']}
    [task] = queue.begin(B)
    assert (task.tid, task.attempt, task.crashes) == (tid, 1, 0)


def test_running_ones_go_on(queue):
    """A pause does not affect renewals, outcomes and retries of running tasks."""
    queue.add(*[TASK] * 3)
    tasks = queue.begin(A, 3)
    queue.gate('paused', True)
    assert queue.renew(A, [task.token for task in tasks])['lost'] == []
    assert queue.finish(A, tasks[0]) == 'ok'
    assert queue.finish(A, tasks[1], 'retry', cause='exit', status='1', delay=1) == 'ok'
    assert queue.finish(A, tasks[2], 'dead', cause='exit', status='65') == 'ok'


def test_scan_goes_on(queue):
    """A lease that expires during a pause is handled, and the task waits for the resume."""
    [tid] = queue.add(TASK)
    [task] = queue.begin(A)
    queue.gate('paused', True)
    queue.expire(task.token)
    assert queue.claim(B, 0, cursor='s0-0')['why'] == 'paused'
    assert queue.places() == {tid: ['go']} and queue.counter('crashes') == 1
    assert state(queue, B) == ('paused', 0)


def test_drain(queue):
    """A host is drained by its whole name, and the others go on; * means every host."""
    queue.add(*[TASK] * 9)
    queue.gate('drain:beta', True)
    assert state(queue, A) == ('', 5) and queue.claim(B, 1)['why'] == ''
    assert queue.gate('drain:beta.example', True) is False
    assert queue.claim(B, 1)['why'] == 'drained' and queue.claim(A, 1)['why'] == ''
    assert queue.gate('drain:*', True) is False
    assert queue.claim(A, 1)['why'] == queue.claim(B, 1)['why'] == 'drained'
    assert queue.gate('drain:*', False) is False
    assert queue.claim(B, 1)['why'] == 'drained' and queue.claim(A, 1)['why'] == ''
    # a pause outranks a drain, and a recreated group outranks both
    queue.gate('paused', True)
    assert queue.claim(B, 1)['why'] == 'paused'
    queue.redis.hset(queue.conf, 'hold_until', queue.now() + 60000)
    assert queue.claim(B, 1)['why'] == 'hold'


def test_repeated(queue):
    """A repeated pause changes nothing and keeps the time of the first."""
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
def test_unknown_names_are_refused(queue, name):
    """An unknown name writes nothing into conf."""
    with pytest.raises(Exception, match='BADARG'):
        queue.gate(name, True)
    assert 'x' not in queue.status()['conf']


def test_user_of_a_pause(queue):
    """conf has the name of the first user who paused the queue; a pause without a name is as effective."""
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


def test_user_name_is_bounded(queue):
    """The user's name has at most 100 bytes."""
    with pytest.raises(Exception, match='BADARG'):
        queue.gate('paused', True, 'x' * 101)
    assert 'paused' not in queue.status()['conf']
    queue.gate('paused', True, 'x' * 100)
    assert queue.status()['conf']['paused'].endswith(b' ' + b'x' * 100)
