"""Poison candidates: what they run beside, and whose crash it is if their worker is lost, in terms of the
functions alone."""
import pytest

from harness.functions.invariants import check
from harness.polling import wait_until


@pytest.fixture(autouse=True)
def workers(queue):
    queue.register('w1')
    queue.register('w2')


def lose(queue, worker):
    """The worker is proved dead."""
    assert queue.requeue(worker, died=True)[1] == 0


def crashes(queue):
    """{tid: crashes} of the tasks that are left."""
    return {row['tid'].decode(): int(row['crashes'])
            for what in ('ready', 'running', 'waiting') for row in queue.list(what)}


def crash_once(queue, number):
    """Candidates: tasks that were lost with a worker that is gone. Returns their tids."""
    queue.register('gone')
    tids = queue.add(*[{'command': 'bad'}] * number)
    assert len(queue.begin('gone', number)) == number
    lose(queue, 'gone')
    return tids


def postponed(queue):
    return [row['tid'].decode() for row in queue.list('waiting') if row['state'] == b'delayed']


# ---- candidates that run alone: their next crash is the last

def test_deferred_poison_candidates_go_to_the_first_empty_worker(queue):
    """Two busy workers defer one poison candidate each. A third worker that becomes empty starts them one
    after the other, before all else, and the deferring workers learn that theirs are lost."""
    queue.conf_set('max_crashes', 2)
    bad = queue.add(*[{'command': 'bad'}] * 2)
    queue.begin('w2', 2)
    queue.expire()
    queue.scan('w1')
    held = {}
    for name in ('w1', 'w2') * 2:
        held.update({token: name for token in queue.claim(name, 1, busy=1)['held']})
    assert sorted(held.values()) == ['w1', 'w2']
    good = queue.add(*[{'command': 'good'}] * 2)
    wait_until(lambda: len([row for row in queue.list('running') if row['state'] == b'held']) == 2)
    for tid in bad:
        [task] = queue.begin('w3', 4)
        assert task.tid == tid and queue.finish('w3', task) == 'ok'
    assert [task.tid for task in queue.begin('w3', 4)] == good
    assert all(queue.renew(name, [token])['lost'] == [token] for token, name in held.items())


def test_an_empty_worker_starts_poison_candidates_first(queue):
    """Entries before a poison candidate in the requeue stream go behind it, because otherwise the worker
    would have to become empty again."""
    queue.conf_set('max_crashes', 2)
    good = queue.add({'command': 'good'})
    queue.add({'command': 'bad'})
    [first, second] = queue.begin('w2', 2)
    queue.finish('w2', first, 'release')
    queue.expire(second.token)
    queue.scan('w1')
    assert [int(row['crashes']) for row in queue.list('ready')] == [0, 1]
    assert [task.crashes for task in queue.begin('w3', 4)] == [1]
    assert [task.tid for task in queue.begin('w1', 4)] == good


# ---- candidates beside other tasks

def test_a_candidate_runs_beside_others(queue):
    """A busy worker claims one candidate and other tasks. It passes the second candidate on, and postpones it
    after all workers have; the end of the first one makes it ready."""
    bad = crash_once(queue, 3)
    good = queue.add(*[{'command': 'good'}] * 2)
    [first] = queue.begin('w1', 4, busy=2)
    assert first.tid == bad[0]
    running = [first]
    while len(running) < 3:
        running += queue.begin('w1', 4, busy=2 + len(running))
    assert [task.tid for task in running[1:]] == good
    assert postponed(queue) == bad[1:] and queue.list('ready') == []
    assert queue.finish('w1', first) == 'ok'
    assert [row['tid'].decode() for row in queue.list('ready')] == [bad[1]] and postponed(queue) == [bad[2]]
    [second] = queue.begin('w1', 4, busy=4)
    assert second.tid == bad[1]
    check(queue)


@pytest.mark.parametrize('outcome', ['success', 'retry', 'dead', 'release', 'lost'])
def test_each_end_of_a_candidate_brings_the_next(queue, outcome):
    """However a candidate ends, the next one becomes ready, in the same step."""
    queue.requeue('w2')
    [_, tid] = crash_once(queue, 2)
    [first] = queue.begin('w1', 4)
    assert postponed(queue) == [tid]
    if outcome == 'lost':
        lose(queue, 'w1')
    else:
        queue.finish('w1', first, outcome, delay=60000 if outcome == 'retry' else 0)
    assert tid in [row['tid'].decode() for row in queue.list('ready')] and tid not in postponed(queue)
    check(queue)


def test_a_postponed_candidate_is_not_forgotten(queue):
    """If the one that was brought is cancelled before it runs, the next scan of a worker without a candidate
    brings another. The scan of a worker that has one does not."""
    queue.requeue('w2')
    bad = crash_once(queue, 4)
    [first] = queue.begin('w1', 4)
    queue.scan('w1')
    assert postponed(queue) == bad[1:]
    queue.finish('w1', first)
    queue.call_off(bad[1])
    assert postponed(queue) == bad[2:]
    queue.scan('w1')
    assert postponed(queue) == bad[3:] and [task.tid for task in queue.begin('w1', 4)] == [bad[2]]


def test_a_postponed_candidate_is_a_waiting_task(queue):
    """It can be shown and cancelled, has no due time, and its names stay with it."""
    queue.requeue('w2')
    queue.register('gone')
    queue.add({'command': 'first'}, {'command': 'bad', 'id': 'label', 'unique': 'key'})
    queue.begin('gone', 2)
    lose(queue, 'gone')
    queue.begin('w1', 4)
    [tid] = postponed(queue)
    row = queue.show(tid)['row']
    assert row['state'] == b'delayed' and row['due_ms'] == b'0'
    assert queue.claim('w1', 1, busy=1)['next_due'] == 0
    assert set(queue.held()) == {b'i:label', b'u:key'}
    check(queue)
    queue.call_off('label')
    assert tid not in queue.places() and queue.held() == {} and postponed(queue) == []


def test_only_the_candidate_is_blamed(queue):
    """A worker is lost with a candidate and two neighbours. Whatever is taken over first, the crash is the
    candidate's. Done-checks learn that the neighbours were lost with a worker."""
    [bad] = crash_once(queue, 1)
    good = queue.add(*[{'command': 'good'}] * 2)
    assert len(queue.begin('w1', 4)) == 3
    lose(queue, 'w1')
    assert crashes(queue) == {bad: 2, good[0]: 0, good[1]: 0} and queue.counter('crashes') == 2
    reply = queue.claim('w2', 4, busy=1)
    claimed = reply['tasks'] + queue.begin('w2', 4, busy=3)
    again = [task for task in claimed if task.tid in good]
    assert [task.crashes for task in again] == [1, 1]
    assert all('crash not-counted' in queue.show(tid)['history'] for tid in good)


@pytest.mark.parametrize('order', [1, -1])
def test_blame_does_not_depend_on_the_order(queue, order):
    """The leases of a candidate and its neighbours expire one by one, in both orders."""
    [bad] = crash_once(queue, 1)
    [good] = queue.add({'command': 'good'})
    for task in queue.begin('w1', 4)[::order]:
        queue.expire(task.token)
        queue.scan('w2')
    assert crashes(queue) == {bad: 2, good: 0}


def test_a_candidate_that_has_ended_is_not_to_blame(queue):
    """The crash is counted for tasks of a worker whose candidate has succeeded, and for tasks that were claimed
    after the candidate was taken over."""
    crash_once(queue, 1)
    [first] = queue.begin('w1', 1)
    [one] = queue.add({'command': 'one'})
    queue.begin('w1', 1, busy=1)
    queue.finish('w1', first)
    lose(queue, 'w1')
    assert crashes(queue) == {one: 1}

    queue.register('w3')
    [candidate] = queue.begin('w3', 1)
    assert candidate.tid == one
    queue.expire(candidate.token)
    queue.scan('w2')
    [later] = queue.add({'command': 'later'})
    wait_until(lambda: queue.now() > int(queue.redis.hget(queue.stats, 'c:w3')))
    while later not in [task.tid for task in queue.begin('w3', 1, busy=1)]:
        pass
    lose(queue, 'w3')
    assert crashes(queue) == {one: 2, later: 1}


def test_a_task_is_spared_once(queue):
    """A neighbour may be the one that kills: the second time its crash is counted, too."""
    bad = crash_once(queue, 2)
    [good] = queue.add({'command': 'good'})
    for worker, expected in (('w1', 0), ('w3', 1)):
        queue.register(worker)
        claimed = set()
        while good not in claimed or not claimed & set(bad):
            claimed |= {task.tid for task in queue.begin(worker, 1, busy=len(claimed))}
        lose(queue, worker)
        assert crashes(queue)[good] == expected
    assert queue.letters() == []


def test_a_late_success_of_a_postponed_candidate(queue):
    """A success that comes after the lease counts while the task is postponed."""
    queue.requeue('w2')
    queue.register('slow')
    queue.add({'command': 'first'}, {'command': 'second'})
    slow = queue.begin('slow', 2)
    queue.expire()
    queue.scan('w1')
    queue.requeue('slow')
    queue.begin('w1', 4)
    [tid] = postponed(queue)
    [late] = [task for task in slow if task.tid == tid]
    assert queue.finish('slow', late) == 'ok'
    assert postponed(queue) == [] and tid not in queue.places()
    check(queue)


def test_the_mark_of_a_worker_goes_with_it(queue):
    """Nothing of a worker is left in Redis when it is deleted."""
    crash_once(queue, 1)
    [task] = queue.begin('w1', 1)
    assert queue.redis.hget(queue.stats, 'c:w1').decode() == task.token
    lose(queue, 'w1')
    assert [name for name in queue.redis.hkeys(queue.stats) if name.startswith(b'c:')] == []
