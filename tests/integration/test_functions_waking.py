"""The waking invariant: whatever becomes startable stands as an undelivered entry in go or the
stream, or every worker with room has been told its time: by the bell, or by its claim."""
import threading

import pytest

TASK = {'command': 'x'}


@pytest.fixture(autouse=True)
def worker(queue):
    queue.register('w1')
    queue.register('w2')


class Sleeper:
    """An idle worker: one connection is blocked on go and the stream, another on the bell."""

    def __init__(self, queue, server):
        self.queue = queue
        self.work, self.bell = server.client(), server.client()
        last = queue.register('sleeper')['bell']
        # the claim before the block: what is startable now is not what wakes
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
        """Ends the blocks from outside."""
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


# what prepares, what makes a task startable
WORK = {
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
    """Each way in which a task becomes startable at once ends the blocking read."""
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
def test_an_earlier_due_time_rings(queue, sleeper, wait_until, name):
    """Idle workers hear of it; their next claim answers the new time."""
    prepare, step = TIMES[name]
    before = prepare(queue)
    asleep = sleeper()
    step(queue, before)
    wait_until(lambda: 'bell' in asleep.woken_by, 5, 'the bell rings')
    due = queue.claim('w2', 0)['next_due']
    assert due > 0 and (asleep.known_due == 0 or due < asleep.known_due)


def test_a_later_due_time_does_not_ring(queue):
    """The time that is known comes first, and its claim answers the next."""
    queue.add(TASK, due='+60000')
    rung = queue.entries('bell')
    queue.add(TASK, due='+70000')
    assert queue.entries('bell') == rung and len(rung) == 1


def test_the_bell_holds_few_entries(queue):
    """A thousand rings do not grow it."""
    for number in range(200):
        queue.add(TASK, due=f'+{90000 - number * 100}')
    assert len(queue.entries('bell')) == 16


def invariant(queue, workers_due):
    """Nothing startable is hidden: what is due is in go or the stream undelivered, or its time is
    known to a worker that has room."""
    first = queue.redis.zrange(queue.delayed, 0, 0, withscores=True)
    if first:
        assert workers_due and all(0 < due <= first[0][1] for due in workers_due)
    for tid in queue.redis.hkeys(queue.waiting):
        assert queue.redis.zscore(queue.delayed, tid) is not None


def test_more_due_than_one_claim_takes(queue):
    """Ten due tasks, workers with room for one and two: each claim's reply keeps the time of the
    rest, and no due task is left without one who knows."""
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
    """It promotes nothing that it could not take, and says when the next is due."""
    [tid] = queue.add(TASK, due='+60000')
    queue.redis.zadd(queue.delayed, {tid: 5})
    assert queue.claim('w1', 0)['next_due'] == 5 and queue.entries('go') == []
    assert queue.begin('w2')[0].tid == tid


def test_a_promoted_task_that_its_worker_cannot_take_is_there_for_others(queue):
    """A suspect comes up beside others: what goes back is undelivered in go."""
    queue.add(TASK)
    queue.begin('w1')
    expire(queue)
    queue.add(*[TASK] * 2, due='+60000')
    for tid in queue.redis.zrange(queue.delayed, 0, -1):
        queue.redis.zadd(queue.delayed, {tid: 5})
    [suspect] = queue.begin('w1', 3)
    assert suspect.crashes == 1
    reply = queue.claim('w2', 3)
    assert len(reply['tasks']) == 2 and reply['next_due'] == 0
