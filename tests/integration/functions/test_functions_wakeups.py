"""The wakeup invariant: a task that may start is an undelivered entry of the stream or the requeue stream, or
every worker with room knows its time, from the wakeup stream or from its claim."""
import threading

import pytest

from harness.functions import invariants

TASK = {'command': 'x'}


@pytest.fixture(autouse=True)
def worker(queue):
    queue.register('w1')
    queue.register('w2')


class Sleeper:
    """An idle worker: one connection is blocked on the requeue stream and the stream, another on the wakeup
    stream."""

    def __init__(self, queue, server):
        self.queue = queue
        self.work, self.bell = server.client(), server.client()
        last = queue.register('sleeper')['bell']
        # the claim before the block, because tasks that may start now are not what wakes
        self.known_due = queue.claim('sleeper', 0)['next_due']
        self.woken_by, self.threads = [], []
        self._start(self._block_on_work)
        self._start(lambda: self._block_on_bell(last))

    def _start(self, target):
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        self.threads.append(thread)

    def _block_on_work(self):
        reply = self.work.execute_command(
            'XREADGROUP', 'GROUP', 'leat', 'sleeper', 'COUNT', 1, 'BLOCK', 20000, 'STREAMS',
            self.queue.go, self.queue.stream, '>', '>')
        if reply:
            self.woken_by.append('work')

    def _block_on_bell(self, last):
        if self.bell.execute_command('XREAD', 'BLOCK', 20000, 'STREAMS', self.queue.bell, last):
            self.woken_by.append('bell')

    def wake(self):
        """Ends the blocking reads from outside."""
        for row in self.queue.redis.client_list():
            if 'b' in row['flags']:
                self.queue.redis.client_unblock(row['id'])
        for thread in self.threads:
            thread.join(30)


@pytest.fixture
def sleeper(queue, redis_server, wait_until):
    sleepers = []

    def fall_asleep():
        one = Sleeper(queue, redis_server)
        wait_until(lambda: sum('b' in row['flags'] for row in queue.redis.client_list()) == 2, 5,
                   'both reads block')
        sleepers.append(one)
        return one

    yield fall_asleep
    for one in sleepers:
        one.wake()


def begin(queue, count=1):
    queue.add(*[TASK] * count)
    return queue.begin('w1', count)


def expire(queue):
    queue.expire()
    return queue.scan('w2')


def letter(queue):
    queue.finish('w1', begin(queue)[0], 'dead', cause='exit')
    return queue.letters()[0][0]


def full_lane(queue, **more):
    """A lane whose one slot is taken: one task waits in it, and there is nothing to read."""
    queue.register('w1', max_crashes=1)
    queue.conf_set('max_crashes', 1)
    queue.conf_set('lane:a', '1, 1')
    queue.add(dict(TASK, lane='a', **more))
    [task] = queue.begin('w1')
    queue.add(dict(TASK, lane='a'))
    assert queue.begin('w2', 5) == []
    return task


def late_in_a_lane(queue):
    """The task's lease has expired, it was requeued and another worker has read it: only its late success can
    make room for the other task."""
    queue.conf_set('lane:a', '1, 1')
    task = full_lane(queue)
    queue.conf_set('max_crashes', 3)
    queue.expire()
    queue.scan('w2')
    return task


def with_follow_up(queue):
    queue.add(dict(TASK, unique='k'))
    [task] = queue.begin('w1')
    queue.add(dict(TASK, unique='k', unique_next='1'))
    return task


def vanish(queue, task):
    queue.redis.xdel(queue.stream, task.token[1:])


# what prepares a task, and what makes it ready to start
WORK = {
    'freed cap, success': (full_lane, lambda q, task: q.finish('w1', task)),
    'freed cap, retry': (full_lane, lambda q, task: q.finish('w1', task, 'retry', delay=60000)),
    'freed cap, dead': (full_lane, lambda q, task: q.finish('w1', task, 'dead', cause='exit')),
    'freed cap, last crash': (full_lane, lambda q, task: (q.expire(), q.scan('w2'))),
    'freed cap, dead worker': (full_lane, lambda q, task: q.requeue('w1', died=True)),
    'freed cap, vanished': (full_lane, lambda q, task: (vanish(q, task), q.renew('w1', [task.token]))),
    'freed cap, vanished and registered': (full_lane, lambda q, task: (vanish(q, task), q.register('w1'))),
    'freed cap, cancelled': (
        full_lane, lambda q, task: (q.call('cancel', 'leat', 0, task.tid, task.token), q.finish('w1', task))),
    'a higher cap': (full_lane, lambda q, task: q.conf_set('lane:a', '1, 2')),
    'cap removed': (full_lane, lambda q, task: q.conf_set('lane:a', '')),
    'a cancelled task': (
        lambda q: (full_lane(q), q.conf_set('lane:a', '1, 2'), q.block('w1'))[-1],
        lambda q, tokens: q.finish('w1', tokens[0], 'release')),
    'enqueue into a lane': (lambda q: None, lambda q, _: q.add(dict(TASK, lane='a'))),
    'a follow-up': (with_follow_up, lambda q, task: q.finish('w1', task)),
    'a follow-up in a full lane': (
        lambda q: (q.conf_set('lane:a', '1, 1'), q.add(dict(TASK, unique='k', lane='a')), q.begin('w1'),
                   q.add(dict(TASK, unique='k', unique_next='1', lane='a')))[2][0],
        lambda q, task: q.finish('w1', task)),
    'enqueue': (lambda q: None, lambda q, _: q.add(TASK)),
    'plain XADD': (lambda q: None, lambda q, _: q.redis.xadd('emails', TASK)),
    'release': (begin, lambda q, tasks: q.finish('w1', tasks[0], 'release')),
    'expired lease': (begin, lambda q, _: expire(q)),
    'strict register': (begin, lambda q, _: q.register('w1')),
    'requeue': (begin, lambda q, _: q.requeue('w1')),
    'requeue, died': (begin, lambda q, _: q.requeue('w1', died=True)),
    'dead_retry': (letter, lambda q, id: q.dead_retry(id)),
    'named in a closed gate': (
        lambda q: (q.add(TASK), q.block('w1'))[1],
        lambda q, tokens: (q.redis.hset(q.conf, 'hold_until', q.now() + 9999),
                           q.claim('w1', 0, named=tokens))),
}


@pytest.mark.parametrize('name', WORK)
def test_a_startable_task_wakes_a_blocked_reader(queue, sleeper, wait_until, name):
    """Each way in which a task becomes ready at once ends the blocking read."""
    prepare, step = WORK[name]
    before = prepare(queue)
    asleep = sleeper()
    step(queue, before)
    wait_until(lambda: 'work' in asleep.woken_by, 5, 'the blocked read is woken')


TIMES = {
    'enqueue delayed': (lambda q: None, lambda q, _: q.add(TASK, due='+60000')),
    'enqueue earlier than all': (lambda q: q.add(TASK, due='+90000'),
                                 lambda q, _: q.add(TASK, due='+60000')),
    'retry': (begin, lambda q, tasks: q.finish('w1', tasks[0], 'retry', delay=60000)),
    'retry at once': (begin, lambda q, tasks: q.finish('w1', tasks[0], 'retry', delay=0)),
}


@pytest.mark.parametrize('name', TIMES)
def test_an_earlier_due_time_writes_a_wakeup(queue, sleeper, wait_until, name):
    """Idle workers learn of the earlier time, and their next claim answers it."""
    prepare, step = TIMES[name]
    before = prepare(queue)
    asleep = sleeper()
    step(queue, before)
    wait_until(lambda: 'bell' in asleep.woken_by, 5, 'the bell rings')
    due = queue.claim('w2', 0)['next_due']
    assert due > 0 and (asleep.known_due == 0 or due < asleep.known_due)


def test_a_later_due_time_writes_no_wakeup(queue):
    """The known time comes first, and its claim answers the next one."""
    queue.add(TASK, due='+60000')
    queue.add(TASK, due='+70000')
    assert queue.wakeups() == ['due']


def test_the_wakeup_stream_is_short(queue):
    """A thousand wakeups do not grow the stream."""
    for number in range(200):
        queue.add(TASK, due=f'+{90000 - number * 100}')
    assert len(queue.entries('bell')) == 16


def invariant(queue, workers_due):
    """No ready task is hidden: a due task is an undelivered entry, or a worker with room knows its time."""
    first = queue.redis.zrange(queue.delayed, 0, 0, withscores=True)
    if first:
        assert workers_due and all(0 < due <= first[0][1] for due in workers_due)
    for tid in queue.redis.hkeys(queue.waiting):
        assert queue.redis.zscore(queue.delayed, tid) is not None


def test_more_due_than_one_claim_takes(queue):
    """If ten tasks are due and workers have room for one and two, each claim's reply has the time of the
    rest, and no due task is left without a worker that knows."""
    queue.add(*[TASK] * 10, due='+60000')
    for tid in queue.redis.zrange(queue.delayed, 0, -1):
        queue.redis.zadd(queue.delayed, {tid: 5})
    seen = 0
    while seen < 10:
        reply = queue.claim('w1', 2)
        seen += len(reply['tasks'])
        invariant(queue, [reply['next_due']])
        assert len(reply['tasks']) == 2
    assert queue.claim('w1', 1)['next_due'] == 0


def test_a_full_worker_leaves_due_tasks_to_others(queue):
    """A full worker promotes no task that it could not take, and learns when the next one is due."""
    [tid] = queue.add(TASK, due='+60000')
    queue.redis.zadd(queue.delayed, {tid: 5})
    assert queue.claim('w1', 0)['next_due'] == 5 and queue.entries('go') == []
    assert queue.begin('w2')[0].tid == tid


def test_a_promoted_task_that_its_worker_cannot_take_is_there_for_others(queue):
    """If a poison candidate that runs alone is promoted beside other tasks, the tasks that its worker cannot take
    are undelivered entries of the requeue stream."""
    queue.conf_set('max_crashes', 2)
    queue.add(TASK)
    queue.begin('w1')
    expire(queue)
    queue.add(*[TASK] * 2, due='+60000')
    for tid in queue.redis.zrange(queue.delayed, 0, -1):
        queue.redis.zadd(queue.delayed, {tid: 5})
    [candidate] = queue.begin('w1', 3)
    assert candidate.crashes == 1
    reply = queue.claim('w2', 3)
    assert len(reply['tasks']) == 2 and reply['next_due'] == 0


def test_a_late_success_passes_the_wakeup_on(queue):
    """The late success removes the entry that waited to be read, and the next task of its lane is in go."""
    task = late_in_a_lane(queue)
    assert task.tid in [one.tid for one in invariants.Snapshot(queue).unread()]
    assert queue.finish('w1', task) == 'ok'
    assert len(invariants.Snapshot(queue).unread()) == 1


def test_a_token_of_a_lane_writes_a_wakeup(queue):
    """Idle workers learn when a lane that waits for its rate may go on."""
    queue.conf_set('lane:a', '1, -, 1/m')
    queue.add(*[dict(TASK, lane='a')] * 2)
    rung = queue.entries('bell')
    assert len(queue.begin('w1', 1)) == 1
    queue.claim('w1', 0)
    assert queue.begin('w1', 1) == [] and queue.entries('bell') != rung
    due = queue.claim('w2', 1)['next_due']
    assert 0 < due - queue.now() <= 60000


def test_a_higher_rate_writes_a_wakeup(queue):
    """Workers that wait for the old rate's time ask again, and the old time is forgotten."""
    queue.conf_set('rate', '1/h')
    queue.add(*[TASK] * 2)
    assert len(queue.begin('w1', 2)) == 1
    reply = queue.claim('w1', 1)
    assert reply['why'] == 'rate' and reply['closed'] - queue.now() > 3_500_000
    rung = queue.entries('bell')
    queue.conf_set('rate', '100/s')
    assert queue.entries('bell') != rung and len(queue.begin('w1', 2)) == 1
