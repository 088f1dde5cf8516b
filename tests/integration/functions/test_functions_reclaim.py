"""leat_requeue for a consumer that is proved dead: its tasks are requeued at once, as if their leases had
expired."""
import pytest
import redis

from harness.polling import wait_until


@pytest.fixture(autouse=True)
def workers(queue):
    queue.register('dead', max_crashes=2)
    queue.register('w1', max_crashes=2)


def begin(queue, count=1, consumer='dead', **fields):
    queue.add(*[{'command': 'x', **fields}] * count)
    tasks = queue.begin(consumer, count)
    assert len(tasks) == count
    return tasks


def reclaim(queue):
    """Calls until nothing is left. Returns how many entries moved, in how many calls, and {tid: cause} of
    tasks that ended."""
    total, calls, more, ended = 0, 0, True, {}
    while more:
        moved, more, known, buried = queue.requeued('dead', died=True)
        assert known
        total, calls, ended = total + moved, calls + 1, {**ended, **buried}
    return total, calls, ended


def consumers(queue):
    return {info['name'].decode() for key in (queue.stream, queue.go)
            for info in queue.redis.xinfo_consumers(key, queue.group)}


def test_many_in_bounded_steps(queue):
    """2,500 entries move in steps of a hundred, each exactly once, and the consumer is deleted last."""
    tids = []
    for _ in range(5):
        tids += queue.add(*[{'command': 'x'}] * 500)
    begun = 0
    while begun < 2500:
        begun += len(queue.begin('dead', 1000, begun))
    moved, calls, ended = reclaim(queue)
    assert (moved, ended) == (2500, {}) and calls >= 25
    rows = queue.list('ready')
    assert sorted(row['tid'].decode() for row in rows) == sorted(tids)
    assert {row['crashes'] for row in rows} == {1}
    assert 'dead' not in consumers(queue) and set(queue.worker_heartbeats()) == {'w1'}
    assert queue.counter('crashes') == 2500


def test_unclaimed_tasks_count_nothing(queue):
    """A task that was delivered by a blocking read, but not claimed, counts no crash."""
    [tid] = queue.add({'command': 'x'})
    queue.block('dead')
    assert reclaim(queue) == (1, 1, {})
    [task] = queue.begin('w1')
    assert (task.tid, task.crashes, task.attempt) == (tid, 0, 1)


def test_crashes_count_as_for_an_expired_lease(queue):
    """A claimed task counts a crash, is a poison candidate that runs alone, and becomes a dead letter at its
    last crash; the caller learns which tasks ended."""
    [task] = begin(queue)
    other = begin(queue, consumer='w1')[0]
    assert reclaim(queue) == (1, 1, {})
    reply = queue.claim('w1', 1, 1)
    assert reply['tasks'] == [] and len(reply['held']) == 1
    assert queue.finish('w1', other) == 'ok'
    [again] = queue.claim('w1', 0, 0, named=reply['held'])['tasks']
    assert (again.tid, again.crashes) == (task.tid, 1) and again.fence > task.fence
    queue.requeue('w1')

    queue.register('dead', max_crashes=2)
    [again] = queue.begin('dead')
    assert reclaim(queue) == (1, 1, {task.tid: 'crash'})
    [(_, letter)] = queue.letters()
    assert letter['leat.cause'] == b'crash' and letter['leat.worker'] == b'dead'


def test_lane_and_names_are_released(queue):
    """The lane's count, unique key and label of a task change as for an expired lease."""
    queue.conf_set('lane:a', '1, 1')
    [task] = begin(queue, unique='key', lane='a', id='label')
    queue.add({'command': 'y', 'lane': 'a'})
    assert queue.begin('w1') == []
    reclaim(queue)
    [again] = queue.begin('w1')
    assert again.tid == task.tid
    assert queue.enqueue({'command': 'x', 'unique': 'key'})[0][0] != 'new'
    assert queue.finish('w1', again) == 'ok'
    queue.add({'command': 'x', 'unique': 'key'})
    assert [one.fields['command'] for one in queue.begin('w1', 1)] == [b'y']


def test_a_late_success_counts_until_the_next_attempt_starts(queue):
    """A success that the dead worker sent last may reach Redis after the reclaim, and counts."""
    late, fenced = begin(queue, 2)
    reclaim(queue)
    assert queue.finish('dead', late) == 'ok'
    [again] = queue.begin('w1')
    assert again.tid == fenced.tid
    assert queue.finish('dead', fenced) == 'gone' and queue.counter('fenced') == 1
    assert queue.finish('w1', again) == 'ok'
    assert queue.counter('succeeded') == 2 and queue.places() == {}


def test_cancelled_meanwhile(queue):
    """A task that was cancelled in the meantime ends, and the caller learns of it."""
    [task] = begin(queue)
    queue.call_off(task.tid)
    assert reclaim(queue) == (1, 1, {task.tid: 'cancelled'})
    assert queue.places() == {}


def test_a_task_that_another_worker_runs(queue):
    """If the group was recreated and delivered a task to the dead worker that another one still runs, no
    crash is counted, and the other's success counts."""
    queue.register('w1', max_crashes=1)
    queue.conf_set('max_crashes', 1)
    [task] = begin(queue, consumer='w1')
    queue.redis.execute_command('XGROUP', 'DESTROY', queue.stream, queue.group)
    queue.register('dead')
    assert queue.block('dead') == [task.token]
    assert reclaim(queue) == (1, 1, {})
    assert queue.counter('crashes') == 0 and queue.letters() == []
    assert queue.finish('w1', task) == 'ok'
    assert queue.places() == {} and queue.counter('succeeded') == 1


def test_two_reclaimers(queue):
    """If two workers reclaim, in any order of calls, each entry moves once, and the later one finds nothing."""
    begin(queue, 250)
    first, more, known, _ = queue.requeued('dead', died=True)
    second, more, known, _ = queue.requeued('dead', died=True)
    third, more, known, _ = queue.requeued('dead', died=True)
    assert (first, second, third) == (100, 100, 50) and not more and known
    assert queue.requeued('dead', died=True) == (0, 0, False, {})
    assert len(queue.entries('go')) == 250 and queue.counter('crashes') == 250


def test_unknown_consumer(queue):
    """For an unknown consumer, perhaps of another Redis, nothing is written, and the caller is told so."""
    begin(queue, consumer='w1')
    before = queue.redis.dbsize(), consumers(queue), queue.pending()
    assert queue.requeued('stranger', died=True) == (0, 0, False, {})
    assert (queue.redis.dbsize(), consumers(queue), queue.pending()) == before


def test_known_by_its_record_alone(queue):
    """A worker that died idle has only its record, and that is deleted."""
    assert queue.requeued('dead', died=True) == (0, 0, True, {})
    assert set(queue.worker_heartbeats()) == {'w1'}


def test_one_stuck_entry_blocks_no_other(queue):
    """If one entry cannot be moved, the others are, and the consumer stays; later the rest follows."""
    queue.register('w1', max_crashes=2)
    stays = begin(queue, 3)
    reclaim(queue)
    for _ in stays:
        assert len(queue.begin('dead')) == 1
    queue.add(*[{'command': 'x'}] * 3)
    assert len(queue.block('dead', 3)) == 3
    queue.redis.set(queue.dead, 'not a stream')
    assert queue.requeued('dead', died=True)[:2] == (3, 1)
    with pytest.raises(redis.ResponseError, match='WRONGTYPE'):
        queue.requeued('dead', died=True)
    assert len(queue.pending('dead')) == 3 and 'dead' in consumers(queue)
    queue.redis.delete(queue.dead)
    assert queue.requeued('dead', died=True)[:2] == (3, 0)
    assert len(queue.letters()) == 3 and 'dead' not in consumers(queue)


def test_wakes_a_waiting_worker(queue, redis_server):
    """A worker in a blocking read gets a reclaimed task at once."""
    begin(queue)
    waiting = redis_server.client()
    waiting.client_setname('waiting')
    pipe = waiting.connection_pool.get_connection('XREADGROUP')
    pipe.send_command('XREADGROUP', 'GROUP', queue.group, 'w1', 'COUNT', 1, 'BLOCK', 0, 'STREAMS',
                      queue.go, queue.stream, '>', '>')
    wait_until(lambda: any('b' in one['flags'] for one in queue.redis.client_list()))
    reclaim(queue)
    [[key, [_]]] = pipe.read_response()
    assert key.decode() == queue.go
