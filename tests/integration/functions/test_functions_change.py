"""leat_change: a task that waits, wherever it waits, goes to another lane or queue, gets other fields or is due at
once, in one step. Its names, expiry and attempts and the counters stay right, and the doctor finds nothing."""
import pytest
import redis

from harness.functions.doctor import Doctor
from harness.functions.failing import Failing
from harness.functions.invariants import check
from harness.queue import Queue, text

TASK = {'command': 'true', 'id': 'label', 'unique': 'key', 'lane': 'blue', 'expires': '99999999999',
        'payload': b'\0\xff' * 1000}
PLAIN = {'command': 'true'}


@pytest.fixture
def queue(client):
    queue = Queue(client).load()
    queue.register('w1', lease=60000)
    return queue


@pytest.fixture
def other(queue):
    other = Queue(queue.redis, 'mails')
    other.register('v1', lease=60000)
    return other


def fields_of(queue, tid):
    flat = queue.show(tid)['fields']
    return {text(name): value for name, value in zip(flat[::2], flat[1::2])}


def expected(**changes):
    """The fields of TASK with these changes."""
    return {name: value if isinstance(value, bytes) else value.encode()
            for name, value in {**TASK, **changes}.items()}


def sound(*queues):
    for queue in queues:
        check(queue)
        assert Doctor(queue).kinds() == []


# ---- where a task may wait. Each function prepares TASK there and returns its tid.

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


def taken_over(queue):
    """In the requeue stream, with the record of an attempt whose lease has expired."""
    [tid] = queue.add(TASK)
    queue.begin('w1')
    queue.register('w2')
    queue.expire()
    queue.claim('w2', 0, cursor='g0-0')
    queue.claim('w2', 0, cursor='s0-0')
    assert queue.places() == {tid: ['go']}
    return tid


def delayed(queue):
    return queue.add(TASK, due='+60000')[0]


def retrying(queue):
    [tid] = queue.add(TASK)
    queue.finish('w1', queue.begin('w1')[0], 'retry', cause='exit', status='1', delay=60000)
    return tid


def in_lane(queue):
    [first] = queue.add(PLAIN)
    [tid] = queue.add(TASK)
    queue.call_off(first)
    return tid


PLACES = [in_stream, read_unclaimed, in_go, taken_over, delayed, retrying, in_lane]
LATER = (delayed, retrying)


def end(queue, tid, worker='w1'):
    """Runs the task to its end: nothing is left of it."""
    if queue.redis.zscore(queue.delayed, tid):
        assert queue.change(tid, due='0') == ['ok ' + tid]
    [task] = queue.begin(worker)
    assert task.tid == tid and queue.finish(worker, task) == 'ok'
    assert queue.places() == {} and queue.held() == {} and queue.index() == {}
    assert queue.counter('retrying') == 0
    for name in ('running', 'waiting', 'delayed', 'laned'):
        assert not queue.redis.exists(getattr(queue, name)), name


@pytest.mark.parametrize('place', PLACES)
def test_other_fields(queue, place):
    """Fields change, appear and go; the task keeps its id, time and other bytes, and the old label, key and lane
    are free. A second call changes nothing."""
    tid = place(queue)
    due = queue.redis.zscore(queue.delayed, tid)
    change = {'fields': {'lane': 'red', 'id': 'other', 'unique': 'k2', 'expires': '99999999998', 'new': b'\0'},
              'without': ['command', 'never']}
    for by, answer in (('label', 'ok '), ('other', 'same ')):
        assert queue.change(by, **change) == [answer + tid]
        sound(queue)
    wanted = expected(lane='red', id='other', unique='k2', expires='99999999998', new=b'\0')
    del wanted['command']
    assert fields_of(queue, tid) == wanted
    assert queue.held() == {b'i:other': tid.encode(), b'u:k2': tid.encode()}
    assert queue.redis.zscore(queue.delayed, tid) == due
    assert queue.counter('retrying') == (place is retrying)
    assert queue.enqueue(dict(TASK, lane='green'), due='+60000')[0][0] == 'new'
    queue.call_off('label')
    end(queue, tid)


@pytest.mark.parametrize('place', PLACES)
def test_another_lane(queue, place):
    """Only the lane changes, or the task has none from now on."""
    tid = place(queue)
    for change, lane in (({'fields': {'lane': 'red'}}, b'red'), ({'without': ['lane']}, None)):
        assert queue.change(tid, **change) == ['ok ' + tid]
        assert fields_of(queue, tid).get('lane') == lane
        sound(queue)
    end(queue, tid)


@pytest.mark.parametrize('place', PLACES)
def test_now(queue, place):
    """A delayed or retried task may start now. Others may already."""
    tid = place(queue)
    assert queue.change(tid, due='0') == [('ok ' if place in LATER else 'same ') + tid]
    assert fields_of(queue, tid) == expected()
    assert queue.change(tid, due='0') == ['same ' + tid]
    sound(queue)
    if place is not read_unclaimed:
        assert queue.list('waiting') == [] and queue.counter('retrying') == 0
        end(queue, tid)


def test_another_time(queue):
    """A task becomes a delayed one, also after an attempt, and its time moves."""
    tid = in_go(queue)
    assert queue.change(tid, due='+60000') == ['ok ' + tid]
    assert queue.change(tid, due='4102444800000') == ['ok ' + tid]
    assert queue.redis.zscore(queue.delayed, tid) == 4102444800000
    sound(queue)
    end(queue, tid)
    tid = retrying(queue)
    assert queue.change(tid, due='0') == ['ok ' + tid] and queue.counter('retrying') == 0
    assert queue.change(tid, due='+5000') == ['ok ' + tid] and queue.counter('retrying') == 1
    sound(queue)
    end(queue, tid)


@pytest.mark.parametrize('place', PLACES)
def test_another_queue(queue, other, place):
    """The task goes on in the other queue with its attempts, history and time, and another id; its result says
    where it is. Its own queue has nothing of it."""
    tid = place(queue)
    before = queue.show(tid)
    queue.call('await', 60000, tid)
    other.redis.hset(other.stats, 'tids', 5)  # two queues may give the same id in the same ms
    [answer] = queue.change('label', to=other, fields={'lane': 'red'})
    word, new = answer.split()
    assert word == 'ok' and new != tid
    sound(queue, other)
    assert queue.places() == queue.held() == queue.index() == {} and queue.counter('retrying') == 0
    assert not queue.redis.exists(queue.delayed) and queue.change('label', to=other) == ['gone']
    after = other.show('label')
    assert fields_of(other, new) == expected(lane='red') and after['history'] == before['history']
    for name in ('enqueued_ms', 'attempts', 'crashes', 'state'):
        assert name == 'state' and place in (read_unclaimed, in_go, taken_over) \
            or after['row'][name] == before['row'][name], name
    assert queue.redis.zscore(other.delayed, new) == (
        int(before['row']['due_ms']) if place in LATER else None)
    [(_, result)] = queue.redis.execute_command('XRANGE', f'{queue.stats[:-5]}result:{tid}', '-', '+')
    assert f'moved to mails as {new}'.encode() in result
    end(other, new, 'v1')


def test_waiting_worker_is_woken(queue, other):
    """An idle worker of the queue that the task goes to has an entry to read."""
    tid = delayed(queue)
    queue.change(tid, to=other, due='0')
    assert len(other.block('v1')) == 1
    tid = delayed(queue)
    queue.change(tid, due='0')
    assert len(queue.block('w1')) == 1


# ---- refusals: nothing changes

def refused(queue, answer, *args, **options):
    before = {key: queue.redis.dump(key) for key in queue.redis.keys('*') if not key.endswith(b':stats')}
    assert answer in queue.change(*args, **options)[0]
    assert {key: queue.redis.dump(key) for key in before} == before
    sound(queue)


@pytest.mark.parametrize('options', [{'fields': {'lane': 'red'}}, {'due': '0'}])
def test_not_waiting(queue, options):
    """A running task, a dead letter and an unknown one are told apart."""
    tid = in_stream(queue)
    [task] = queue.begin('w1')
    assert queue.change(tid, **options) == ['running w1']
    queue.finish('w1', task, 'dead', cause='exit', status='1')
    assert queue.change(tid, 'label', '1-1', **options) == ['dead', 'gone', 'gone']


@pytest.mark.parametrize('place', PLACES)
def test_refused_changes(queue, other, place):
    """What a producer could not add, an operator cannot make of a task. No task gets the name of another one."""
    tid = place(queue)
    [holder] = queue.add({'command': 'true', 'id': 'taken', 'unique': 'k2'}, due='+9000')
    for fields, answer in (({'id': 'taken'}, 'label taken is held by ' + holder),
                           ({'unique': 'k2'}, 'k2 is held by ' + holder),
                           ({'lane': 'x' * 300}, 'lane: longer'),
                           ({'leat.tid': '1-1'}, 'are reserved'),
                           ({'result_ttl': 'soon'}, 'not a duration'),
                           ({'id': '1769860800000-0'}, 'form of the id')):
        refused(queue, answer, tid, fields=fields)
    refused(queue, 'has 1 to', tid, without=list(TASK))
    queue.conf_set('max_task', 65536)
    refused(queue, 'larger than max_task', tid, fields={'payload': 'x' * 65537})
    refused(queue, 'there is no queue', tid, to=Queue(queue.redis, 'no'))
    other.conf_set('max_length', 1)
    other.add(dict(PLAIN, id='label'))
    refused(queue, 'reached its limit of 1', tid, to=other)
    other.conf_set('max_length', 0)
    refused(queue, 'label label is held by', tid, to=other)
    if place in LATER:
        refused(queue, 'expires before it is due', tid, fields={'expires': '1769860800'})


def test_due_after_expiry(queue):
    """Another due time alone may not make a task expire before it is due, as a producer may not."""
    for options in {}, {'due': '+60000'}:
        [tid] = queue.add(dict(PLAIN, expires=str(queue.redis.time()[0] + 3600)), **options)
        refused(queue, 'expires before it is due', tid, due='+7200000')
        assert queue.change(tid, due='+120000') == ['ok ' + tid]


def test_signed(queue, other):
    """A signature covers all fields and the queue: such a task may only become due."""
    [tid] = queue.add(dict(PLAIN, signature='leat1:k:n:0'), due='+60000')
    refused(queue, 'it is signed', tid, fields={'lane': 'red'})
    refused(queue, 'it is signed', tid, to=other)
    assert queue.change(tid, due='0') == ['ok ' + tid]


def test_follow_up(queue, other):
    """A follow-up waits for no time and in no lane, so it stays; one that took the key over while its holder moved
    becomes ready."""
    again = dict(PLAIN, unique='key', unique_next='1')
    [tid] = queue.add(again)
    [task] = queue.begin('w1')
    [(_, follower)] = queue.enqueue(again)
    for options in ({'fields': {'lane': 'red'}}, {'due': '0'}, {'to': other}):
        refused(queue, 'holds its unique key', follower, **options)
    queue.finish('w1', task, 'retry', cause='exit', status='1', delay=60000)
    assert queue.change(tid, to=other)[0].startswith('ok ')
    sound(queue, other)
    assert [task.tid for task in queue.begin('w1')] == [follower]


def test_late_success(queue):
    """The success of an attempt that had lost its lease does not count for the changed task."""
    tid = taken_over(queue)
    [token] = [token for token in map(text, queue.redis.hkeys(queue.running))]
    assert queue.change(tid, fields={'command': 'false'}) == ['ok ' + tid]
    assert queue.finish('w1', token) in ('gone', 'fenced')
    assert fields_of(queue, tid)['command'] == b'false'


def test_postponed(queue, other):
    """A poison candidate that waits for another one keeps its place behind it, and cannot be due earlier."""
    tid = taken_over(queue)
    score = 9e15 + queue.now()
    queue.change(tid, due='+1')
    queue.redis.zadd(queue.delayed, {tid: score})
    refused(queue, 'lost with its worker', tid, due='0')
    assert queue.change(tid, fields={'lane': 'red'}) == ['ok ' + tid]
    assert queue.redis.zscore(queue.delayed, tid) == score
    sound(queue)
    assert queue.change(tid, to=other)[0].startswith('ok ')
    assert other.redis.zcard(other.laned) + len(other.entries('go')) == 1
    sound(queue, other)


def test_damaged_by_hand(queue):
    """A waiting task that cannot be read stays as it is."""
    tid = delayed(queue)
    queue.redis.hset(queue.waiting, tid, b'\xc1')
    assert 'damaged' in queue.change(tid, due='0')[0]
    assert queue.redis.hget(queue.waiting, tid) == b'\xc1'


def test_many_and_large(queue, other):
    """One call takes a hundred tasks and stops after some very large ones, the first of which it changes."""
    tids = queue.add(*[PLAIN] * 101, due='+60000')
    with pytest.raises(redis.ResponseError, match='BADARG'):
        queue.change(*tids, due='0')
    assert queue.change(*tids[:100], due='0') == ['ok ' + tid for tid in tids[:100]]
    large = dict(PLAIN, payload=b'\0' * (1 << 20))
    big = [queue.add(large, due='+60000')[0] for _ in range(20)]
    answers = queue.change(*big, to=other)
    assert answers[0].startswith('ok ') and answers[-1] == 'later'
    moved = [answer.split()[1] for answer in answers if answer != 'later']
    assert all(fields_of(other, tid)['payload'] == large['payload'] for tid in moved)
    sound(queue, other)


@pytest.mark.parametrize('place', PLACES)
@pytest.mark.parametrize('leaves', [False, True])
def test_each_write_fails_once(client, place, leaves):
    """If write N fails, for each N, as when Redis has no memory, the task is as it was: in one queue, once, with
    its names. The repeated call changes it."""
    queue, at, reached = Queue(client), 0, True
    failing = Failing(queue)
    while reached:
        at += 1
        queue.register('w1', lease=60000)
        other = Queue(client, 'mails')
        other.register('v1')
        tid = place(queue)
        options = {'fields': {'lane': 'red', 'id': 'other', 'unique': 'k2'}, 'to': other if leaves else None}
        failing.at(at)
        [answer] = queue.change(tid, **options)
        reached = failing.writes() >= at
        failing.off()
        if 'INJECTED' in answer:
            assert list(queue.places()) == [tid] and other.places() == {} and other.held() == {}
            assert set(queue.held()) == {b'i:label', b'u:key'} and fields_of(queue, tid) == expected()
            queue.scan('w1')
            [answer] = queue.change(tid, **options)
        assert answer.startswith('ok ')
        there = other if leaves else queue
        assert list(there.places()) == [answer.split()[1]] and set(there.held()) == {b'i:other', b'u:k2'}
        assert not leaves or queue.places() == queue.held() == {}
        client.flushall()
    assert at > 5
