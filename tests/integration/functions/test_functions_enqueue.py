"""leat_enqueue, and plain XADD."""
import pytest
import redis

MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def worker(queue):
    queue.register('w1')


def test_a_task_lands_in_the_stream_field_by_field(queue):
    """Fields keep their order and bytes, and the task's id is the entry's id."""
    fields = [('command', 'cat'), ('payload', b'\0\n\xff bytes'), (b'odd \0 name', b'')]
    [(what, tid)] = queue.enqueue(fields)
    assert what == 'new'
    flat = [part.encode() if isinstance(part, str) else part for pair in fields for part in pair]
    assert queue.entries('stream') == [(tid, flat)]
    assert queue.begin('w1')[0].flat == flat


def test_a_plain_xadd_is_a_task(queue, client):
    """A task that was added by XADD is claimed with attempt 1, and its entry id is its id."""
    tid = client.xadd('emails', {'command': 'true'}).decode()
    [task] = queue.begin('w1')
    assert (task.tid, task.attempt, task.crashes) == (tid, 1, 0)
    assert task.enqueued == int(tid.split('-')[0])


def test_times_that_are_too_far(queue):
    """A task is due in 100 years at most. Beyond all times, leat keeps the poison candidates that wait."""
    for due in ('+9000000000000000', 9 * 10 ** 15):
        with pytest.raises(redis.ResponseError, match='REFUSED task 1: due in more than 100 years'):
            queue.add({'command': 'true'}, due=due)
    queue.add({'command': 'true'})
    queue.finish('w1', *queue.begin('w1'), outcome='retry', delay=9 * 10 ** 15)
    assert queue.redis.zcount(queue.delayed, '(9000000000000000', '+inf') == 0
    assert queue.scan('w1', 1)[1] == []


def test_many_tasks_at_once_are_answered_in_order(queue):
    """One call adds many tasks, each with its own id, and answers in order."""
    tids = queue.add(*[{'command': f'true {i}'} for i in range(150)])
    assert [id for id, _ in queue.entries('stream')] == tids
    assert queue.status()['total_enqueued'] == 150


def test_an_id_is_taken_while_its_task_lives(queue):
    """A label that is in use answers exists with its task: in the stream, delayed and running; it is free
    after the task's end."""
    [tid] = queue.add({'command': 'a', 'id': 'x'})
    assert queue.enqueue({'command': 'b', 'id': 'x'}) == [('exists', tid)]
    [task] = queue.begin('w1')
    assert queue.enqueue({'command': 'b', 'id': 'x'}) == [('exists', tid)]
    queue.finish('w1', task, 'retry', delay=60000)
    assert queue.enqueue({'command': 'b', 'id': 'x'}, due='+5') == [('exists', tid)]
    queue.redis.zadd(queue.delayed, {tid: 1})
    queue.finish('w1', queue.begin('w1')[0])
    assert queue.enqueue({'command': 'b', 'id': 'x'})[0][0] == 'new'


def test_an_id_before_a_label(queue):
    """A producer may choose a short id for an entry, and another task may have the same text as its label. The
    text means the task with the id as long as there is one, so a program that was told the ids of tasks never
    meets the other one."""
    queue.register('w1')
    chosen = queue.redis.xadd(queue.stream, {'command': 'x'}, id='2026-11').decode()
    [labelled] = queue.add({'command': 'x', 'id': chosen})
    assert queue.show(chosen)['row']['tid'].decode() == chosen
    assert queue.call_off(chosen) == ['cancelled'] and list(queue.places()) == [labelled]
    assert queue.call_off(chosen) == ['cancelled'] and queue.places() == {}


def test_an_id_ends_with_a_dead_letter(queue):
    """A dead-lettered task holds no name."""
    queue.add({'command': 'a', 'id': 'x'})
    queue.finish('w1', queue.begin('w1')[0], 'dead', cause='exit')
    assert queue.enqueue({'command': 'b', 'id': 'x'})[0][0] == 'new'


def test_the_same_id_twice_in_one_call(queue):
    """The second task gets the first one's id, and an empty id is no id."""
    (first, tid), (second, same), (third, _), (fourth, _) = queue.enqueue(
        {'command': 'a', 'id': 'x'}, {'command': 'b', 'id': 'x'}, {'command': 'c', 'id': ''},
        {'command': 'd', 'id': ''})
    assert (first, second, third, fourth) == ('new', 'exists', 'new', 'new') and same == tid
    assert len(queue.held()) == 1 and queue.status()['total_enqueued'] == 3


@pytest.mark.parametrize('task, word', [
    ([('command', 'true'), ('leat.tid', '1-1')], 'reserved'),
    ([('leat.', 'x')], 'reserved'),
    ([('command', 'true'), ('command', 'false')], 'given twice'),
    ([], 'wrong number of fields'),
    ([(f'f{i}', 'x') for i in range(1001)], 'wrong number of fields'),
])
def test_refused_tasks_leave_no_trace(queue, client, task, word):
    """A call with one bad task writes nothing, neither before nor after it."""
    before = {key: client.dump(key) for key in client.keys()}
    with pytest.raises(redis.ResponseError, match=f'^REFUSED task 2: .*{word}'):
        queue.enqueue({'command': 'good', 'id': 'x'}, task, {'command': 'good'})
    assert {key: client.dump(key) for key in client.keys()} == before


@pytest.mark.parametrize('due, expires', [('+5000', 4), ('+5000', 5), (lambda now: now + 9000, 9)])
def test_a_task_that_could_never_start_is_refused(queue, due, expires):
    """A task that expires no later than it is due is refused by Redis's clock, with the whole call. A task
    with time left is accepted, and so is one that is only late: the claim check dead-letters it."""
    now = queue.now()
    due = due(now) if callable(due) else due
    with pytest.raises(redis.ResponseError, match='^REFUSED task 2: it expires before it is due'):
        queue.enqueue({'command': 'x'}, {'command': 'x', 'expires': f'{now / 1000 + expires:.3f}'}, due=due)
    assert queue.places() == {}
    queue.enqueue({'command': 'x', 'expires': f'{now / 1000 + expires + 60:.3f}'}, due=due)
    queue.enqueue({'command': 'x', 'expires': '1'}, due=1)
    assert queue.status()['total_enqueued'] == 2


@pytest.mark.parametrize('args', [
    ['x', 1, 'command', 'true'], ['-5', 1, 'command', 'true'], ['+', 1, 'command', 'true'],
    ['nan', 1, 'command', 'true'], ['1e300', 1, 'command', 'true'], [0, 'x', 'command', 'true'],
    [0, 'inf', 'command', 'true'], [0], [0, 2, 'command', 'true'], [0, 1, 'command'], ['', '', ''],
])
def test_malformed_calls_are_refused(queue, args):
    """A malformed argument list gets an error of leat, never a Lua error."""
    with pytest.raises(redis.ResponseError, match='^(BADARG|REFUSED) '):
        queue.call('enqueue', *args)
    assert queue.places() == {}


def test_the_wrong_number_of_keys_is_refused(queue, client):
    """A call with the wrong number of keys is refused, because it would break in a Cluster."""
    with pytest.raises(redis.ResponseError, match='^BADARG expected 9 keys'):
        client.execute_command('FCALL', 'leat_enqueue', 1, 'emails', 0, 1, 'command', 'true')


def test_a_thousand_fields_in_every_state(queue):
    """A task of 1,000 fields, the maximum, passes through retry, dead letter and back."""
    fields = [(f'f{i}', f'v{i}') for i in range(1000)]
    queue.add(fields)
    [task] = queue.begin('w1')
    queue.finish('w1', task, 'retry', cause='exit', status='1')
    [task] = queue.begin('w1')
    assert task.attempt == 2
    queue.finish('w1', task, 'dead', cause='exit', status='1')
    queue.dead_retry(queue.letters()[0][0])
    [task] = queue.begin('w1')
    assert task.flat == [part.encode() for pair in fields for part in pair]


def test_delayed_tasks_wait_for_their_time(queue):
    """A task with a future time, +MS or unix ms, is delayed; a task that is due goes to the stream at once."""
    now = queue.now()
    [later] = queue.add({'command': 'a'}, due='+60000')
    [at] = queue.add({'command': 'b'}, due=now + 30000)
    [past] = queue.add({'command': 'c'}, due=now - 1)
    assert queue.places() == {later: ['waiting'], at: ['waiting'], past: ['stream']}
    assert abs(queue.redis.zscore(queue.delayed, later) - now - 60000) < 5000
    assert queue.redis.zscore(queue.delayed, at) == now + 30000
    [task] = queue.begin('w1', 5)
    assert task.tid == past


def test_ids_of_waiting_tasks_differ(queue):
    """Tasks that are delayed in the same millisecond get ids of their own, in the form of entry ids."""
    tids = queue.add(*[{'command': 'a'}] * 500, due='+60000')
    assert len(set(tids)) == 500
    assert all(part.isdigit() for tid in tids for part in tid.split('-', 1))


def test_the_length_limit_refuses_whole_calls(queue):
    """The stream and delayed tasks count against the limit; an existing task is answered at the limit too."""
    queue.conf_set('max_length', 3)
    queue.add({'command': 'a', 'id': 'x'})
    queue.add({'command': 'b'}, due='+60000')
    with pytest.raises(redis.ResponseError, match='^FULL the queue holds 2 tasks, its limit is 3'):
        queue.enqueue({'command': 'c'}, {'command': 'd'})
    queue.add({'command': 'c'})
    with pytest.raises(redis.ResponseError, match='^FULL'):
        queue.enqueue({'command': 'd'})
    assert queue.enqueue({'command': 'a', 'id': 'x'})[0][0] == 'exists'
    queue.conf_set('max_length', 1)
    assert queue.enqueue({'command': 'a', 'id': 'x'})[0][0] == 'exists'
    queue.conf_set('max_length', 3)
    queue.finish('w1', queue.begin('w1')[0])
    queue.add({'command': 'd'})


def test_a_payload_of_16_mib(queue):
    """A payload of 16 MiB passes through claim, retry, dead letter and back unchanged. The first claim after a
    retry makes it ready, and the next one reads it."""
    payload = bytes(range(256)) * (16 * MIB // 256)
    queue.add({'command': 'cat', 'payload': payload})
    queue.finish('w1', queue.begin('w1')[0], 'retry')
    assert queue.begin('w1') == []
    queue.finish('w1', queue.begin('w1')[0], 'dead', cause='exit')
    [(letter, fields)] = queue.letters()
    assert fields['payload'] == payload
    queue.dead_retry(letter)
    assert queue.begin('w1')[0].fields['payload'] == payload


def test_producers_keys_suffice(queue, redis_server):
    """A producer needs its nine keys and its one function, and cannot write to the requeue stream."""
    client = redis_server.client()
    client.execute_command(
        'ACL', 'SETUSER', 'producer', 'on', '>secret', '-@all', '+fcall', '+xadd', '+xlen', '+hget',
        '+hset', '+hlen', '+hdel', '+xdel', '+zadd', '+zrem', '+zrange', '+zscore', '+exists',
        '+xinfo|groups', '+hincrby', '+time',
        *['~' + key for key in queue.keys[:9]])
    producer = redis_server.client(username='producer', password='secret')
    reply = producer.execute_command(
        'FCALL', 'leat_enqueue', 9, *queue.keys[:9], 0, 2, 'command', 'a', 'id', 'x',
        '+60000', 1, 'command', 'b', 0, 3, 'command', 'c', 'lane', 'l', 'unique', 'u')
    assert reply[1::2] == [b'new'] * 3
    with pytest.raises(redis.ResponseError):
        producer.xadd(queue.go, {'command': 'x'})
