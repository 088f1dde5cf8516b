"""If any one write of any function fails, the task is in exactly one place, and repeating the call completes
it as if nothing had failed."""
import contextlib

import pytest
import redis

from harness.functions.failing import Failing
from harness.queue import Queue

TASK = {'command': 'true', 'id': 'label'}


@pytest.fixture
def failing(client):
    queue = Queue(client)
    return Failing(queue)


class Case:
    """One step on a task. prepare(queue) sets up the queue; step(queue, what prepare returned) makes the call
    that fails and is repeated. places and named say where the task is in the end and whether its name is
    held; between is another place where it may be after a failure."""

    def __init__(self, name, prepare, step, places, named, between=None):
        self.name, self.prepare, self.step = name, prepare, step
        self.places, self.named, self.between = places, named, between


def begun(queue, task=TASK):
    queue.register('w1')
    queue.add(task)
    return queue.begin('w1')[0]


def claimed_from_requeue(queue):
    """A task in the requeue stream with one attempt behind it."""
    task = begun(queue)
    queue.finish('w1', task, 'retry', cause='exit', status='1')
    return queue.begin('w1')[0]


def expired(queue):
    """A task that w1 claimed, with an expired lease; w2 scans."""
    task = begun(queue)
    queue.register('w2')
    queue.expire()
    return task


def last_crash(queue):
    queue.register('w1', max_crashes=1)
    return expired(queue)


def moved(queue):
    """A task of w1 whose lease expired: w2 has requeued it, and no worker has claimed it."""
    task = expired(queue)
    queue.scan('w2')
    return task


def moved_and_read(queue):
    """As moved, and w2 has read the entry but not claimed it: the blocking read's reply is on its way."""
    moved(queue)
    return queue.block('w2')[0]


def unclaimed(queue):
    queue.register('w1')
    queue.add(TASK)
    return queue.block('w1')[0]


def delayed(queue):
    queue.register('w1')
    queue.add(TASK, due='+1')
    queue.redis.zadd(queue.delayed, {queue.redis.zrange(queue.delayed, 0, 0)[0]: 1})


def buried(queue):
    task = begun(queue)
    queue.finish('w1', task, 'dead', cause='exit', status='65')
    return queue.letters()[0][0]


def past_its_time(queue):
    queue.register('w1')
    queue.add(dict(TASK, expires='1'))


def vanished(queue):
    task = begun(queue)
    queue.redis.xdel(queue.stream, task.token[1:])
    return task


def registered(queue):
    queue.register('w1')
    queue.register('w2')


def waiting(queue):
    queue.register('w1')
    return queue.add(TASK, due='+60000')[0], ''


def laned(queue):
    """A task in a lane, behind a task that is gone."""
    queue.register('w1')
    [other] = queue.add({'command': 'true'})
    [tid] = queue.add(dict(TASK, lane='blue'))
    queue.call_off(other)
    return tid, queue.show(tid)['row'].get('token', b'').decode()


def due_in_a_lane(queue):
    """A delayed task that also has to take a key when it enters its lane."""
    queue.register('w1')
    [tid] = queue.add(dict(TASK, lane='blue', unique='key'), due='+1')
    queue.redis.zadd(queue.delayed, {tid: 1})


def ready(queue):
    queue.register('w1')
    return queue.add(dict(TASK, unique='key', lane='blue'))[0], ''


def released(queue):
    task = begun(queue, dict(TASK, unique='key', lane='blue'))
    queue.finish('w1', task, 'release')
    return task.tid, 'g' + queue.entries('go')[0][0]


def read_by_a_worker(queue):
    tid, token = released(queue)
    assert queue.block('w1') == [token]
    return tid, token


def running(queue):
    task = begun(queue, dict(TASK, unique='key', lane='blue'))
    return task.tid, task.token


def asked(queue):
    tid, token = running(queue)
    queue.call_off((tid, token))
    return tid, token


def asked_and_expired(queue):
    found = asked(queue)
    queue.register('w2')
    queue.expire()
    return found


def cancel(queue, task):
    return queue.call_off(task, now=True)


def end(outcome):
    return lambda queue, task: queue.finish('w1', task[1], outcome)


def finish(outcome, consumer='w1', **result):
    return lambda queue, task: queue.finish(consumer, task, outcome, **result)


def scan(queue, _):
    return queue.scan('w2')


def claim(queue, _):
    return queue.begin('w1')


CASES = [
    Case('enqueue', registered, lambda q, _: q.enqueue(TASK), ['stream'], True),
    Case('enqueue delayed', registered, lambda q, _: q.enqueue(TASK, due='+60000'), ['waiting'],
         True),
    Case('claim', lambda q: (q.register('w1'), q.add(TASK)), claim, ['stream'], True),
    Case('claim due', delayed, claim, ['go'], True),
    Case('claim named', unclaimed, lambda q, token: q.claim('w1', 0, named=[token])['tasks'],
         ['stream'], True),
    Case('claim expired', past_its_time, claim, ['dead'], False),
    Case('claim moved', moved_and_read, lambda q, token: q.claim('w2', 0, named=[token])['tasks'],
         ['go'], True),
    Case('success', begun, finish('success'), [], False),
    Case('success from go', claimed_from_requeue, finish('success'), [], False),
    Case('late success', moved, finish('success'), [], False),
    Case('retry', begun, finish('retry', delay=60000, cause='exit', status='1'), ['waiting'], True),
    Case('retry from go', claimed_from_requeue, finish('retry', delay=60000, cause='exit', status='1'),
         ['waiting'], True),
    Case('dead', begun, finish('dead', cause='exit', status='65'), ['dead'], False),
    Case('dead from go', claimed_from_requeue, finish('dead', cause='exit', status='65'), ['dead'], False),
    Case('release', begun, finish('release'), ['go'], True),
    Case('release unclaimed', unclaimed, finish('release'), ['go'], True),
    Case('scan', expired, scan, ['go'], True),
    Case('scan of the last crash', last_crash, scan, ['dead'], False),
    Case('scan of a moved one', moved_and_read, lambda q, _: (q.expire(), q.scan('w1')), ['go'],
         True),
    Case('vanished, finish', vanished, finish('retry', cause='exit'), ['dead'], False),
    Case('vanished, scan', vanished, scan, ['dead'], False),
    Case('vanished, renew', vanished, lambda q, task: q.renew('w1', [task.token]), ['dead'], False),
    Case('register hands back', begun, lambda q, _: q.register('w1'), ['go'], True),
    Case('register', begun, lambda q, task: q.register('w1', [task.token]), ['stream'], True),
    Case('requeue', begun, lambda q, _: q.requeue('w1'), ['go'], True),
    Case('requeue, died', begun, lambda q, _: q.requeue('w1', died=True), ['go'], True),
    Case('claim due in a lane', due_in_a_lane, claim, ['go'], True),
    Case('cancel, waiting', waiting, cancel, [], False),
    Case('cancel, laned', laned, cancel, [], False),
    Case('cancel, ready', ready, cancel, [], False),
    Case('cancel, released', released, cancel, [], False),
    Case('cancel, read', read_by_a_worker, cancel, [], False),
    Case('cancel, running', running, cancel, ['stream'], True),
    Case('cancelled, finish', asked, end('cancelled'), [], False),
    Case('cancelled, release', asked, end('release'), [], False),
    Case('cancelled, scan', asked_and_expired, scan, [], False),
    Case('cancelled, register', asked, lambda q, task: q.register('w1', [task[1]]), ['stream'],
         True),
    Case('cancelled, success', asked, end('success'), [], False),
    Case('pause', ready, lambda q, _: q.gate('paused', True), ['stream'], True),
    Case('drain', ready, lambda q, _: q.gate('drain:w1', True), ['stream'], True),
    Case('dead_retry', buried, lambda q, id: q.dead_retry(id), ['go'], True, ['waiting']),
    Case('dead_drop', buried, lambda q, id: q.dead_drop(id), [], False),
]


def try_step(case, queue, before):
    """Whether the call failed, with an error or with one in a row of its reply."""
    try:
        answer = case.step(queue, before)
    except redis.ResponseError as error:
        assert 'INJECTED' in str(error)
        return True
    return 'INJECTED' in str(answer)


def one_place(queue, case, at):
    """The task's one place; it is never in two, and never in none while it must exist."""
    places = queue.places()
    assert all(len(found) == 1 for found in places.values()), (case.name, at, places)
    assert len(places) <= 1, (case.name, at, places)
    return [found[0] for found in places.values()]


def clean_up(queue):
    queue.redis.flushall()


def settle_leases(queue):
    """Handles what a stopped call left unclaimed or dangling: a lease later the scan finds it, or at the
    latest the sweep."""
    for _ in range(2):
        queue.redis.hdel(queue.stats, 'swept')
        queue.expire()
        queue.scan('w3')


@pytest.mark.parametrize('case', CASES, ids=lambda case: case.name)
def test_each_write_fails_once(failing, case):
    """If write N fails, for each N, the task has one place, and repeating the call completes it."""
    queue, at = failing.queue, 0
    while True:
        at += 1
        before = case.prepare(queue)
        start = one_place(queue, case, at)
        failing.at(at)
        failed = try_step(case, queue, before)
        reached = failing.writes() >= at
        failing.off()
        found = one_place(queue, case, at)
        # an entry of which only the record is left has a place, too, until the step is repeated
        if case.places and not case.name.startswith(('enqueue', 'vanished')):
            assert found, (case.name, at)
        if failed:
            assert found in (start, case.places, case.between), (case.name, at, found)
            assert not try_step(case, queue, before)
        found = one_place(queue, case, at)
        if found != case.places and case.name.startswith('claim'):
            settle_leases(queue)
            assert one_place(queue, case, at) == ['go'], (case.name, at)
            case.step(queue, before)
            assert one_place(queue, case, at) in (['go'], case.places), (case.name, at)
        elif found != case.places:
            settle_leases(queue)
            assert one_place(queue, case, at) == case.places, (case.name, at, found)
        assert (queue.redis.hget(queue.names, 'i:label') is not None) == case.named, (case.name, at)
        clean_up(queue)
        if not reached:
            break
    assert at > 1, 'the step writes nothing'


@pytest.mark.parametrize('case', CASES, ids=lambda case: case.name)
def test_all_writes_fail_from_one_on(failing, case):
    """If every write from write N on fails, the undoing ones included, the task is never lost."""
    queue, at = failing.queue, 0
    while True:
        at += 1
        before = case.prepare(queue)
        there = bool(queue.places())
        failing.at(at, and_on=True)
        try_step(case, queue, before)
        reached = failing.writes() >= at
        failing.off()
        if not reached:
            break
        if there and case.places:
            assert queue.places(), (case.name, at)
        clean_up(queue)
    assert at > 1


@pytest.mark.parametrize('case', CASES, ids=lambda case: case.name)
def test_nothing_is_left_in_the_end(failing, case):
    """Whichever write failed, the task then runs to its end, and no key keeps anything of it."""
    queue, at = failing.queue, 0
    while True:
        at += 1
        before = case.prepare(queue)
        failing.at(at)
        failed = try_step(case, queue, before)
        reached = failing.writes() >= at
        failing.off()
        if not reached:
            break
        if failed:
            assert not try_step(case, queue, before)
        run_to_the_end(queue)
        assert queue.pending() == [] and queue.redis.hgetall(queue.running) == {}, (case.name, at)
        assert queue.held() == {}, (case.name, at)
        assert not queue.redis.exists(queue.cancel), (case.name, at)
        counts = [name for name in queue.redis.hkeys(queue.stats) if name.startswith(b'r:')]
        assert counts == [], (case.name, at)
        clean_up(queue)


def run_to_the_end(queue):
    """A worker with time: leases expire, delayed tasks become due, and every claimed task succeeds."""
    queue.register('w9', max_crashes=9)
    queue.gate('paused', False)
    for _ in range(6):
        for tid in queue.redis.zrange(queue.delayed, 0, -1):
            queue.redis.zadd(queue.delayed, {tid: 1})
        queue.expire()
        queue.redis.hdel(queue.stats, 'swept')
        queue.scan('w9')
        for task in queue.begin('w9', 10):
            assert queue.finish('w9', task) == 'ok'
    assert [place for place in queue.places().values() if place != ['dead']] == []


def test_lane_that_waits_for_a_token(failing):
    """Whichever write fails, a lane with tasks is either in the rotation or has a due time."""
    queue, at = failing.queue, 0
    while True:
        at += 1
        queue.register('w1')
        queue.conf_set('lane:blue', '1, -, 1/h')
        first, second = queue.add(*[dict(TASK, lane='blue', id=str(number)) for number in range(2)])
        assert [task.tid for task in queue.begin('w1')] == [first]
        failing.at(at)
        try_step(Case('claim', None, claim, [], True), queue, None)
        reached = failing.writes() >= at
        failing.off()
        assert queue.places()[second] == ['waiting']
        assert queue.redis.zscore(queue.lanes, 'blue') or queue.redis.zscore(queue.delayed, 'l:blue'), at
        clean_up(queue)
        if not reached:
            break
    assert at > 1


@pytest.mark.parametrize('right', ['zadd', 'zrem', 'hset', 'hdel', 'xadd', 'xdel', 'sadd', 'srem', 'hincrby'])
@pytest.mark.parametrize('task', [{'command': 'a', 'lane': 'l'}, {'command': 'a'}])
def test_a_right_is_lost(queue, redis_server, task, right):
    """If the worker's user may not run a command any more, among others the one that undoes a step, a task that is
    due starts as soon as it may again."""
    queue.register('w1')
    queue.enqueue({'command': 'first', 'lane': 'l'}, {'command': 'second', 'lane': 'l'})
    [(_, tid)] = queue.enqueue(task, due='+1')
    redis_server.client().acl_setuser(
        'worker', enabled=True, passwords=['+secret'], keys=['*'], categories=['+@all'], commands=['-' + right])
    worker = Queue(redis_server.client(username='worker', password='secret'))
    for call in (worker.scan, worker.begin):
        with contextlib.suppress(redis.ResponseError):
            call('w1')
    queue.register('w1')
    queue.scan('w1')
    begun_tids = []
    while tasks := queue.begin('w1'):
        begun_tids += [task.tid for task in tasks]
    assert tid in begun_tids
