"""leat_cancel: a task is cancelled in every state, at once or by the worker that runs it. Nothing of the task
is left but its result: no entry, no name, no place in a lane, and no cancel request."""
import pytest

from harness.queue import Queue

TASK = {'command': 'true', 'id': 'label', 'unique': 'key', 'lane': 'blue'}
PLAIN = {'command': 'true'}


@pytest.fixture
def queue(client):
    queue = Queue(client).load()
    queue.register('w1', lease=60000)
    queue.register('w2', lease=60000)
    return queue


def assert_nothing_left(queue):
    """No key holds anything of a task."""
    assert queue.places() == {} and queue.pending() == []
    assert queue.held() == queue.index() == {}
    for name in ('running', 'waiting', 'delayed', 'laned', 'cancel'):
        assert not queue.redis.exists(getattr(queue, name)), name
    left = [name for name in queue.redis.hkeys(queue.stats) if name.startswith(b'r:')]
    assert left == [] and queue.counter('retrying') == 0


def token_of(queue, tid):
    """The token, as the operator's command finds it."""
    return queue.show(tid)['row'].get('token', b'').decode()


# ---- unclaimed tasks are removed at once. Each function prepares a task and returns its tid.

def in_stream(queue):
    return queue.add(TASK)[0]


def read_unclaimed(queue):
    [tid] = queue.add(TASK)
    queue.block('w1')
    return tid


def in_go(queue):
    [tid] = queue.add(TASK)
    queue.finish('w1', queue.begin('w1')[0], 'release')
    return tid


def read_from_go(queue):
    tid = in_go(queue)
    queue.block('w1')
    return tid


def deferred(queue):
    """A poison candidate that runs alone, deferred by a worker that has other tasks."""
    queue.conf_set('max_crashes', 2)
    [tid] = queue.add(TASK)
    queue.begin('w1')
    queue.expire()
    assert queue.scan('w2')[0]['tasks'] == []
    [other] = queue.add(PLAIN)
    assert [task.tid for task in queue.claim('w2', 1, busy=1)['tasks']] == []
    queue.call_off(other)
    return tid


def delayed(queue):
    return queue.add(TASK, due='+60000')[0]


def retrying(queue):
    [tid] = queue.add(TASK)
    queue.finish('w1', queue.begin('w1')[0], 'retry', cause='exit', status='1', delay=60000)
    assert queue.counter('retrying') == 1
    return tid


def in_lane(queue):
    """A task behind another one in its lane."""
    [first] = queue.add(PLAIN)
    [tid] = queue.add(TASK)
    assert queue.redis.zcard(queue.laned) == 1
    queue.call_off(first)
    # the first task is gone, so the lane's next task was requeued: requeue it once more
    return tid


@pytest.mark.parametrize('place', [
    in_stream, read_unclaimed, in_go, read_from_go, deferred, delayed, retrying, in_lane])
@pytest.mark.parametrize('by_label', [False, True])
def test_not_begun(queue, place, by_label):
    """An unclaimed task is removed at once with all its names, and a worker that has read its entry never
    claims it. Its id and its label both find it, and a second cancel finds nothing."""
    tid = place(queue)
    before = queue.counter('cancelled')
    token = token_of(queue, tid)
    assert queue.call_off(('label' if by_label else tid, token)) == ['cancelled']
    assert_nothing_left(queue)
    assert queue.counter('cancelled') == before + 1 and queue.counter('dead') == 0
    assert queue.call_off((tid, token), 'label') == ['gone', 'gone']
    for worker in ('w1', 'w2'):
        assert queue.claim(worker, 5, named=[token] if token else [])['tasks'] == []
        assert queue.register(worker)['more'] == 0
    assert queue.enqueue(TASK)[0][0] == 'new'


def test_without_a_token(queue):
    """The id is enough to find a task. Only a task of the requeue stream that is not indexed yet needs the token
    of its entry, and no other token will do."""
    in_the_stream, later = queue.add(PLAIN)[0], queue.add(PLAIN, due='+60000')[0]
    released = queue.add(PLAIN)[0]
    [first, second] = queue.begin('w1', 2)
    queue.finish('w1', second, 'release')
    assert first.tid == in_the_stream and second.tid == released
    requeued = queue.add(PLAIN)[0]
    [third] = [task for task in queue.begin('w1', 2) if task.tid == requeued]
    queue.finish('w1', third, 'release')
    assert queue.call_off(later, in_the_stream, requeued, 'no such') == [
        'cancelled', 'asked w1', 'cancelled', 'gone']
    [(id, _)] = queue.entries('go')
    queue.redis.delete(queue.names)
    wrong = [(released, 's' + released), (released, 'g1-1'), ('1-1', 'g' + id)]
    assert queue.call_off(released, *wrong) == ['gone'] * 4
    assert queue.call_off((released, 'g' + id)) == ['asked w1']


def test_before_there_is_a_group(client):
    """A task that was enqueued before the first worker can be cancelled."""
    queue = Queue(client, 'fresh').load()
    [tid] = queue.add(TASK)
    assert queue.call_off(tid) == ['cancelled']
    queue.register('w1')
    assert_nothing_left(queue)


# ---- claimed

@pytest.mark.parametrize('outcome, answer', [
    ('cancelled', 'ok'), ('retry', 'cancelled'), ('dead', 'cancelled'), ('release', 'cancelled')])
@pytest.mark.parametrize('from_go', [False, True])
def test_running(queue, outcome, answer, from_go):
    """A running task goes on until its worker learns of the cancel from its next renewal. Any outcome but
    success then ends it as cancelled, and a repeated outcome finds it gone."""
    tid = in_go(queue) if from_go else in_stream(queue)
    [task] = queue.begin('w1')
    for _ in range(2):
        assert queue.call_off((tid, task.token)) == ['asked w1']
        assert queue.renew('w1', [task.token])['cancelled'] == [task.token]
    assert queue.register('w1', [task.token])['cancelled'] == [task.token]
    assert queue.redis.hlen(queue.running) == 1 and queue.counter('cancelled') == 0
    assert queue.finish('w1', task, outcome, cause='exit', status='1', delay=5) == answer
    assert_nothing_left(queue)
    assert queue.counter('cancelled') == 1 and queue.letters() == []
    assert queue.counter('retried') == 0
    assert queue.finish('w1', task, outcome, delay=5, again=True) == 'gone'


def test_success_counts(queue):
    """A task that succeeds before it is killed has succeeded, and the cancel is forgotten: also if the
    success comes after the lease, or the entry was deleted by hand."""
    tids = queue.add(*[dict(PLAIN, lane='blue', id=str(i)) for i in range(3)])
    tasks = queue.begin('w1', 3)
    while len(tasks) < 3:
        tasks += queue.begin('w1', 3 - len(tasks))
    assert queue.call_off(*[(task.tid, task.token) for task in tasks]) == ['asked w1'] * 3
    assert sorted(task.tid for task in tasks) == sorted(tids)
    assert queue.finish('w1', tasks[0]) == 'ok'
    queue.redis.xdel(queue.stream if tasks[1].token[0] == 's' else queue.go, tasks[1].token[1:])
    assert queue.finish('w1', tasks[1], 'retry') == 'vanished'
    assert queue.redis.smembers(queue.cancel) == {tasks[2].tid.encode()}
    assert queue.finish('w1', tasks[2]) == 'ok'
    assert [letter['leat.cause'] for _, letter in queue.letters()] == [b'vanished']
    queue.dead_drop(queue.letters()[0][0])
    assert_nothing_left(queue)
    assert queue.counter('succeeded') == 2 and queue.counter('cancelled') == 0


def test_late_success_forgets_the_cancel(queue):
    """If another worker has taken over the task but not claimed it, the first worker's success counts."""
    [tid] = queue.add(PLAIN)
    [task] = queue.begin('w1')
    queue.redis.sadd(queue.cancel, 'other')
    queue.expire()
    queue.scan('w2')
    queue.redis.sadd(queue.cancel, tid)
    assert queue.finish('w1', task) == 'ok'
    assert queue.redis.smembers(queue.cancel) == {b'other'}


def worker_crashed(queue, task):
    queue.expire(task.token)
    reply = queue.claim('w2', 0, cursor=('g' if task.token[0] == 'g' else 's') + '0-0')
    return reply['buried']


def proved_dead(queue, task):
    assert queue.requeue('w1', died=True) == (1, 0)
    return {task.tid: 'cancelled'}


def left(queue, task):
    queue.requeue('w1')
    return queue.claim('w2', 5)['buried']


def reconnected(queue, task):
    queue.register('w1')
    return queue.claim('w1', 5)['buried']


def group_lost(queue, task):
    """The group is recreated, and another worker has read the claimed task again; its own worker is silent."""
    for key in (queue.stream, queue.go):
        queue.redis.xgroup_destroy(key, queue.group)
    queue.register('w2')
    assert queue.call_off((task.tid, task.token)) == ['asked w1']
    queue.redis.hdel(queue.conf, 'hold_until')
    queue.redis.hset(queue.workers, 'w1', '0 {}')
    assert queue.claim('w2', 5)['tasks'] == []
    # it went back to its worker, whose lease has run out
    return queue.claim('w2', cursor='g0-0')['buried']


@pytest.mark.parametrize('way', [worker_crashed, proved_dead, left, reconnected, group_lost])
def test_its_worker_is_lost(queue, way):
    """If the worker is lost between the cancel and the task's end, whoever takes over or claims the task ends
    it as cancelled and reports it. No crash is counted and no dead letter written."""
    [tid] = queue.add(TASK)
    [task] = queue.begin('w1')
    assert queue.call_off(tid) == ['asked w1']
    assert way(queue, task) == {tid: 'cancelled'}
    assert_nothing_left(queue)
    assert queue.counter('cancelled') == 1
    assert queue.counter('crashes') == queue.counter('dead') == 0
    assert queue.begin('w2', 5) == []


def test_next_attempt_is_not_begun(queue):
    """A cancelled task is not retried: if its worker had not heard of the cancel, finish ends it; if it waits
    between two attempts, or is due and in the requeue stream, it is removed at once."""
    [tid] = queue.add(TASK)
    [task] = queue.begin('w1')
    queue.finish('w1', task, 'retry', cause='exit', status='1', delay=0)
    queue.redis.zadd(queue.delayed, {tid: 1})
    # a claim that wants no task promotes none
    assert queue.claim('w1', 0)['tasks'] == []
    [task] = queue.begin('w1')
    assert task.attempt == 2 and queue.call_off((tid, task.token)) == ['asked w1']
    assert queue.finish('w1', task, 'retry', cause='exit', status='1', delay=0) == 'cancelled'
    assert_nothing_left(queue)


# ---- dependents

def test_follow_up(queue):
    """A follow-up can be cancelled alone; it starts if the task that it follows is cancelled."""
    again = dict(PLAIN, unique='key', unique_next='1')
    [tid] = queue.add(again)
    [task] = queue.begin('w1')
    [(what, follower)] = queue.enqueue(again)
    assert what == 'new' and queue.call_off(follower) == ['cancelled']
    assert queue.places() == {tid: ['stream']}
    assert queue.held() == {b'u:key': f'{tid} {task.token}'.encode()}
    [(what, follower)] = queue.enqueue(again)
    assert what == 'new' and queue.call_off(tid) == ['asked w1']
    assert queue.finish('w1', task, 'cancelled') == 'ok'
    assert queue.places() == {follower: ['go']}
    assert [task.tid for task in queue.begin('w2')] == [follower]


def test_holder_before_it_ran(queue):
    """A cancelled holder that has not run frees its key."""
    [tid] = queue.add(dict(PLAIN, unique='key', unique_for='1h'), due='+60000')
    assert queue.call_off(tid) == ['cancelled']
    assert queue.enqueue(dict(PLAIN, unique='key'))[0][0] == 'new'


def test_cap_of_a_lane(queue):
    """The place of a cancelled task in a capped lane goes to the next task at once, which is requeued."""
    queue.conf_set('lane:blue', '1, 1')
    tids = queue.add(*[dict(PLAIN, lane='blue')] * 3)
    [task] = queue.begin('w1', 3)
    assert queue.call_off((task.tid, task.token)) == ['asked w1'] and queue.begin('w2', 3) == []
    assert queue.finish('w1', task, 'cancelled') == 'ok'
    assert list(queue.places().values()).count(['go']) == 1
    [second] = queue.begin('w2', 3)
    assert {task.tid, second.tid} < set(tids)


def test_next_of_a_lane_is_put_up(queue):
    """If the only entry that would wake a worker is cancelled, another takes its place."""
    queue.add(*[dict(PLAIN, lane='blue')] * 3)
    [first] = queue.entries('stream')
    assert queue.call_off(first[0]) == ['cancelled']
    assert queue.entries('stream') == [] and len(queue.entries('go')) == 1


def test_result_is_told(queue):
    """Whoever awaits the result learns of the cancel."""
    [tid] = queue.add(dict(PLAIN, result_ttl='60s'))
    assert queue.call_off(tid) == ['cancelled']
    [entry] = queue.redis.execute_command('XRANGE', f'{queue.stats[:-5]}result:{tid}', '-', '+')
    told = dict(zip(entry[1][::2], entry[1][1::2]))
    assert told[b'state'] == b'cancelled'


# ---- calls

def test_wakeup(queue):
    """The wakeup stream gets an entry only if workers are to learn at once and one of them runs a cancelled
    task."""
    one, two = queue.add(PLAIN, PLAIN)
    queue.begin('w1')
    queue.call_off(two, now=True)
    queue.call_off(one)
    assert queue.wakeups() == []
    queue.call_off(one, now=True)
    assert queue.wakeups() == ['cancel']


def test_many_at_once(queue):
    """One call takes a hundred tasks and answers each; a call with more is refused as a whole."""
    tids = queue.add(*[PLAIN] * 101)
    with pytest.raises(Exception, match='BADARG'):
        queue.call_off(*tids)
    assert queue.call_off(*tids[:99], 'gone') == ['cancelled'] * 99 + ['gone']
    assert len(queue.entries('stream')) == 2


def test_damaged_by_hand(queue):
    """A waiting task that cannot be decoded can be cancelled."""
    [tid] = queue.add(PLAIN, due='+60000')
    queue.redis.hset(queue.waiting, tid, b'\xc1')
    assert queue.call_off(tid) == ['cancelled']
    assert queue.places() == {} and not queue.redis.exists(queue.delayed)
