"""Unique keys: which task holds one, for how long, and what happens to a second task with it."""
import re

import pytest
import redis

from harness.functions import invariants

TASK = {'command': 'x', 'unique': 'k'}
NEXT = dict(TASK, unique_next='1')
AFTER = r'unique key k is refused for 3[56]\d\d s more, because %s has succeeded'


@pytest.fixture(autouse=True)
def worker(queue):
    queue.register('w1')
    queue.register('w2')
    yield
    invariants.check(queue)


def holder(queue, key='k'):
    value = queue.redis.hget(queue.names, 'u:' + key)
    return value and value.decode()


def begin(queue, task=TASK):
    [tid] = queue.add(task)
    [begun] = queue.begin('w1')
    assert begun.tid == tid
    return begun


def cancel(queue, tid, token=''):
    return queue.call('cancel', queue.group, 0, tid, token)[0].decode()


def end_time(queue, key='k'):
    """Ends the time for which the key is refused."""
    queue.redis.hset(queue.names, 'u:' + key, '@1 ' + holder(queue, key).split()[1])
    queue.redis.zadd(queue.delayed, {'u:' + key: 1})


def begun_then(step):
    def make(queue):
        task = begin(queue)
        step(queue, task)
        return task.tid
    return make


# states of a task that holds the key: each function makes one and returns its tid
STATES = {
    'ready': lambda q: q.add(TASK)[0],
    'delayed': lambda q: q.add(TASK, due='+60000')[0],
    'in a lane': lambda q: (q.add({'command': 'first', 'lane': 'a'}), q.add(dict(TASK, lane='a'))[0])[1],
    'running': begun_then(lambda q, task: None),
    'retrying': begun_then(lambda q, task: q.finish('w1', task, 'retry', delay=60000)),
    'released': begun_then(lambda q, task: q.finish('w1', task, 'release')),
    'passed on': begun_then(lambda q, task: (q.expire(), q.scan('w2'))),
    'handed back': begun_then(lambda q, task: q.register('w1')),
    'of a dead worker': begun_then(lambda q, task: q.requeue('w1', died=True)),
}


@pytest.mark.parametrize('state', STATES)
@pytest.mark.parametrize('due', [0, '+1000'])
def test_a_second_one_changes_nothing(queue, client, state, due):
    """While a task with the key exists, in any state, the answer is its id, and no key of Redis changes."""
    tid = STATES[state](queue)
    before = {key: client.dump(key) for key in client.keys()}
    assert queue.enqueue(TASK, due=due) == [('exists', tid)]
    assert {key: client.dump(key) for key in client.keys()} == before


@pytest.mark.parametrize('state', [state for state in STATES if state != 'running'])
def test_a_follow_up_is_wanted_only_while_it_runs(queue, state):
    """If the first task has not started, a follow-up is not needed, and the answer is the first task."""
    tid = STATES[state](queue)
    assert queue.enqueue(NEXT) == [('exists', tid)]


def finished(outcome, **result):
    return lambda queue, task: queue.finish('w1', task, outcome, **result)


# how the holder ends
ENDS = {
    'success': finished('success'),
    'dead letter': finished('dead', cause='exit', status='1'),
    'cancelled': finished('cancelled'),
    'cancelled, told': lambda q, task: (cancel(q, task.tid, task.token), q.finish('w1', task, 'retry')),
    'late success': lambda q, task: (q.expire(), q.scan('w2'), q.finish('w1', task)),
    'vanished': lambda q, task: (q.redis.xdel(q.stream, task.token[1:]), q.renew('w1', [task.token])),
    'crashes': lambda q, task: (q.register('w2', max_crashes=1), q.conf_set('max_crashes', 1), q.expire(),
                                q.scan('w2')),
}


@pytest.mark.parametrize('end', ENDS)
def test_every_end_releases(queue, end):
    """The key is free at once, and the next task is new."""
    task = begin(queue)
    ENDS[end](queue, task)
    assert holder(queue) is None
    assert queue.enqueue(TASK)[0][0] == 'new'


@pytest.mark.parametrize('due', [0, '+60000'])
@pytest.mark.parametrize('lane', [None, 'a'])
def test_cancelled_before_it_began(queue, due, lane):
    """A task that waits, in a lane or ready, releases its key in the same step."""
    queue.add({'command': 'first'})
    [tid] = queue.add(dict(TASK, **({'lane': lane} if lane else {})), due=due)
    token = '' if due or lane else 's' + tid
    assert cancel(queue, tid, token) == 'cancelled' and holder(queue) is None


def test_expired_before_it_began(queue):
    """A dead letter of an expired task does not hold the key."""
    queue.add(dict(TASK, expires='1'))
    assert queue.begin('w1') == [] and holder(queue) is None


def test_dropping_a_dead_letter_releases_nothing(queue):
    """A dead letter holds no key, so another task may hold it by then."""
    queue.finish('w1', begin(queue), 'dead', cause='exit')
    [tid] = queue.add(TASK)
    [(letter, _)] = queue.letters()
    assert queue.dead_drop(letter) == ['ok'] and holder(queue) == tid


def test_a_stale_end_releases_nothing(queue):
    """A key that another task holds by now stays."""
    task = begin(queue)
    queue.redis.hset(queue.names, 'u:k', '5-5')
    queue.finish('w1', task)
    assert holder(queue) == '5-5'
    queue.redis.delete(queue.names)


@pytest.mark.parametrize('key', ['a b', 'x\0y\n', 'é' * 500, '@1 2-3', '5-5 s1-1'])
def test_a_key_is_any_bytes(queue, key):
    """A key may look like the fields that leat stores behind it."""
    first = queue.enqueue({'command': 'x', 'unique': key})[0]
    assert queue.enqueue({'command': 'y', 'unique': key}) == [('exists', first[1])]
    queue.finish('w1', queue.begin('w1')[0])
    assert queue.held() == {}


def test_an_empty_key_is_no_key(queue):
    """An empty key means no key."""
    assert [what for what, _ in queue.enqueue(dict(TASK, unique=''), dict(TASK, unique=''))] == ['new'] * 2
    assert queue.held() == {}


def test_keys_are_independent(queue):
    """id and unique are independent; the id is checked first, and either may be held by another task."""
    [first] = queue.add({'command': 'x', 'id': 'i', 'unique': 'k'})
    [other] = queue.add({'command': 'x', 'unique': 'l'})
    assert queue.enqueue({'command': 'x', 'id': 'i', 'unique': 'l'}) == [('exists', first)]
    assert queue.enqueue({'command': 'x', 'id': 'j', 'unique': 'l'}) == [('exists', other)]
    assert queue.redis.hget(queue.names, 'i:j') is None


def test_twice_in_one_call(queue):
    """The second task of a call gets the first one's id; at the length limit they count as one."""
    queue.conf_set('max_length', 1)
    (first, tid), again = queue.enqueue(TASK, TASK)
    assert (first, again) == ('new', ('exists', tid))
    assert queue.enqueue(TASK) == [('exists', tid)]


# ---- unique_for

def test_refused_for_a_while_after_success(queue):
    """The answer is the task that succeeded; the promotion frees the key when the time is over."""
    task = begin(queue, dict(TASK, unique_for='1h'))
    queue.finish('w1', task)
    assert holder(queue).startswith('@')
    assert queue.enqueue(TASK, NEXT) == [('exists', task.tid)] * 2
    due = queue.redis.zscore(queue.delayed, 'u:k') - queue.now()
    assert 3_500_000 < due <= 3_600_000
    end_time(queue)
    queue.begin('w1')
    assert holder(queue) is None and queue.redis.zcard(queue.delayed) == 0


def test_free_when_the_time_is_over_without_a_promotion(queue):
    """If no worker claims, the key can still be taken again, and a later promotion takes nothing from its
    holder."""
    queue.finish('w1', begin(queue, dict(TASK, unique_for='1h')))
    end_time(queue)
    [tid] = queue.add(TASK)
    assert queue.begin('w1')[0].tid == tid and holder(queue).split()[0] == tid


@pytest.mark.parametrize('end', ['dead letter', 'cancelled', 'vanished'])
def test_only_success_keeps_the_key(queue, end):
    """A failed task frees its key at once."""
    ENDS[end](queue, begin(queue, dict(TASK, unique_for='1h')))
    assert holder(queue) is None


def test_a_late_success_keeps_the_key_too(queue):
    """A late success keeps the key like any success."""
    ENDS['late success'](queue, begin(queue, dict(TASK, unique_for='1h')))
    assert holder(queue).startswith('@')


@pytest.mark.parametrize('text, ms', [
    ('90', 90_000), ('250ms', 250), ('1m30s', 90_000), ('2w', 1_209_600_000), ('1d 1h', 90_000_000)])
def test_durations_with_units(queue, text, ms):
    """The units are the same as elsewhere in leat."""
    queue.finish('w1', begin(queue, dict(TASK, unique_for=text)))
    assert abs(queue.redis.zscore(queue.delayed, 'u:k') - queue.now() - ms) < 10_000


@pytest.mark.parametrize('text', ['soon', '1.5h', '1s1m', '-1', '101000w', '5 5'])
def test_an_invalid_duration_is_refused(queue, text):
    """An invalid duration is refused before anything is written."""
    with pytest.raises(redis.ResponseError, match='^REFUSED task 1: unique_for: not a duration'):
        queue.enqueue(dict(TASK, unique_for=text))
    assert holder(queue) is None


# ---- unique_next

@pytest.mark.parametrize('end', ENDS)
def test_one_follow_up_starts_however_the_holder_ends(queue, end):
    """If a follow-up is requested three times while the holder runs, exactly one task runs after it, and
    holds the key."""
    task = begin(queue)
    [(what, tid), *others] = queue.enqueue(NEXT, NEXT, NEXT)
    assert what == 'new' and others == [('exists', tid)] * 2
    assert queue.enqueue(TASK) == [('exists', task.tid)]
    assert queue.begin('w2') == []
    ENDS[end](queue, task)
    assert holder(queue) == tid
    [following] = queue.begin('w1')
    assert following.tid == tid and holder(queue) == f'{tid} {following.token}'
    queue.finish('w1', following)
    assert queue.held() == {} and queue.begin('w1') == []


@pytest.mark.parametrize('step', [
    finished('retry', delay=0), finished('release'), lambda q, task: q.register('w1'),
    lambda q, task: (q.expire(), q.scan('w2'))])
def test_it_goes_on_waiting_while_the_holder_goes_on(queue, step):
    """Retry, release and an expired lease do not end the holder; it runs again before the follow-up."""
    task = begin(queue)
    [(_, tid)] = queue.enqueue(NEXT)
    step(queue, task)
    [again] = queue.begin('w1', 5)
    assert again.tid == task.tid and queue.show(tid)['row']['state'] == b'following'
    queue.finish('w1', again)
    assert queue.begin('w1', 5)[0].tid == tid


def test_a_follow_up_of_a_follow_up(queue):
    """A follow-up that is requested while the first task runs, and again while the second does, makes three
    runs."""
    task = begin(queue)
    for _ in range(3):
        [(what, tid)] = queue.enqueue(NEXT)
        assert what == 'new'
        queue.finish('w1', task)
        [task] = queue.begin('w1')
        assert task.tid == tid
    queue.finish('w1', task)
    assert queue.held() == {}


def test_a_follow_up_may_be_delayed(queue):
    """A delayed follow-up holds the key from the holder's end on, and starts when it is due."""
    task = begin(queue)
    [(_, tid)] = queue.enqueue(NEXT, due='+60000')
    queue.finish('w1', task)
    assert holder(queue) == tid and queue.begin('w1') == []
    queue.redis.zadd(queue.delayed, {tid: 1})
    assert queue.begin('w1')[0].tid == tid


def test_a_follow_up_takes_the_key_before_unique_for_does(queue):
    """A follow-up takes the key before unique_for reserves it; its own success then does."""
    task = begin(queue, dict(TASK, unique_for='1h'))
    [(_, tid)] = queue.enqueue(dict(NEXT, unique_for='1h'))
    queue.finish('w1', task)
    [following] = queue.begin('w1')
    assert following.tid == tid
    queue.finish('w1', following)
    assert queue.enqueue(NEXT) == [('exists', tid)]


def test_a_cancelled_follow_up_leaves_the_holder_alone(queue):
    """After a cancelled follow-up, the next request is the follow-up."""
    task = begin(queue)
    [(_, tid)] = queue.enqueue(dict(NEXT, id='label'))
    assert cancel(queue, tid) == 'cancelled'
    assert holder(queue).split()[0] == task.tid and len(queue.held()) == 1
    assert queue.enqueue(NEXT)[0][0] == 'new'


def test_a_follow_up_in_a_lane_waits_for_its_turn(queue):
    """The follow-up goes into its lane."""
    queue.conf_set('lane:a', '1, 1')
    task = begin(queue, dict(TASK, lane='a'))
    queue.add({'command': 'before', 'lane': 'a'})
    [(_, tid)] = queue.enqueue(dict(NEXT, lane='a'))
    queue.finish('w1', task)
    [before] = queue.begin('w1', 5)
    queue.finish('w1', before)
    assert queue.begin('w1', 5)[0].tid == tid


def test_follow_ups_count_as_waiting(queue):
    """Follow-ups count in the length limit and the status, and leat show says what they wait for."""
    begin(queue)
    queue.conf_set('max_length', 1)
    with pytest.raises(redis.ResponseError, match='^FULL'):
        queue.enqueue(NEXT)
    queue.conf_set('max_length', 2)
    [(what, tid)] = queue.enqueue(NEXT)
    assert what == 'new' and queue.status()['delayed'] == 1
    assert queue.show(tid)['row']['state'] == b'following'


# ---- plain XADD

def test_a_plain_task_takes_the_key_when_it_starts(queue):
    """A plain task holds the key like any other from its start on."""
    queue.redis.xadd('emails', TASK)
    [task] = queue.begin('w1')
    assert queue.enqueue(TASK) == [('exists', task.tid)]
    queue.finish('w1', task, 'retry', delay=60000)
    assert queue.enqueue(TASK) == [('exists', task.tid)]


@pytest.mark.parametrize('named', [False, True])
def test_a_plain_task_whose_key_is_held_is_refused(queue, named):
    """The task becomes a dead letter that names the holder, and the holder is not disturbed."""
    task = begin(queue)
    queue.redis.xadd('emails', TASK)
    reply = queue.claim('w2', 5, named=queue.block('w2') if named else ())
    assert reply['tasks'] == [] and list(reply['buried'].values()) == ['refused']
    [(_, letter)] = queue.letters()
    assert letter['leat.reason'].decode() == f'unique key k is held by {task.tid}'
    assert holder(queue) == f'{task.tid} {task.token}'


def test_of_plain_tasks_with_one_key_the_first_runs(queue):
    """The first of them runs, also within one claim; the others become dead letters and can be retried after
    its end."""
    for _ in range(3):
        queue.redis.xadd('emails', TASK)
    [task] = queue.begin('w1', 5)
    assert len(queue.letters()) == 2
    queue.finish('w1', task)
    assert queue.dead_retry(queue.letters()[0][0]) == ['ok']


def test_a_plain_task_in_the_time_after_a_success_is_refused(queue):
    """A plain task is refused like an enqueue during the time after a success."""
    task = begin(queue, dict(TASK, unique_for='1h'))
    queue.finish('w1', task)
    queue.redis.xadd('emails', TASK)
    assert queue.begin('w1') == []
    assert re.fullmatch(AFTER % task.tid, queue.letters()[0][1]['leat.reason'].decode())


# ---- dead letters

def test_a_retried_letter_takes_the_key_again(queue):
    """A retried dead letter holds the key from then on."""
    task = begin(queue)
    queue.finish('w1', task, 'dead', cause='exit')
    assert queue.dead_retry(queue.letters()[0][0]) == ['ok'] and holder(queue) == task.tid
    assert queue.enqueue(TASK) == [('exists', task.tid)]


def test_a_letter_whose_key_is_held_stays(queue):
    """The answer names the holder, and nothing changes."""
    queue.finish('w1', begin(queue), 'dead', cause='exit')
    [tid] = queue.add(TASK)
    [(letter, _)] = queue.letters()
    [answer] = queue.dead_retry(letter)
    assert answer == f'REFUSED unique key k is held by {tid}'
    assert holder(queue) == tid and len(queue.letters()) == 1


def test_a_letter_in_the_time_after_a_success_stays(queue):
    """A dead letter stays until the time after the success is over."""
    queue.finish('w1', begin(queue), 'dead', cause='exit')
    [(letter, _)] = queue.letters()
    task = begin(queue, dict(TASK, unique_for='1h'))
    queue.finish('w1', task)
    [answer] = queue.dead_retry(letter)
    assert re.fullmatch('REFUSED ' + AFTER % task.tid, answer)
    end_time(queue)
    assert queue.dead_retry(letter) == ['ok']
