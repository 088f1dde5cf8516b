"""leat_finish: outcomes, fencing, late successes, and what is kept of a task."""
import pytest
import redis

from harness.queue import trailer


@pytest.fixture(autouse=True)
def worker(queue):
    queue.register('w1')
    queue.register('w2')


def begin_one(queue, consumer='w1', **fields):
    queue.add(dict({'command': 'x'}, **fields))
    [task] = queue.begin(consumer)
    return task


def overtaken(queue, **fields):
    """The lease of w1 expired, and w2's scan has requeued the task."""
    task = begin_one(queue, **fields)
    queue.expire(task.token)
    queue.scan('w2')
    return task


def nothing_left(queue):
    return (queue.places() == {} and queue.pending() == [] and not queue.redis.exists(queue.running)
            and queue.held() == {})


def test_success_leaves_nothing(queue):
    """A success removes the entry, the pending entry, the record and the name."""
    assert queue.finish('w1', begin_one(queue, id='label')) == 'ok'
    assert nothing_left(queue) and queue.counter('succeeded') == 1


def test_a_batch_from_both_streams(queue):
    """One call finishes 100 tasks of both streams, with and without names."""
    queue.add(*[{'command': 'x'}] * 60, *[{'command': 'y', 'id': f'label {i}'} for i in range(40)])
    for task in queue.begin('w1', 30):
        queue.finish('w1', task, 'release')
    tasks = queue.begin('w1', 100)
    assert {task.token[0] for task in tasks} == {'g', 's'}
    states = queue.finish_many('w1', [queue.result(task.token) for task in tasks])
    assert states == ['ok'] * 100 and nothing_left(queue) and queue.counter('succeeded') == 100


def test_every_outcome_in_one_call(queue):
    """Answers come in the order of the arguments, in whatever order the outcomes are settled."""
    queue.add(*[{'command': 'x'}] * 4)
    a, b, c, d = queue.begin('w1', 4)
    states = queue.finish_many('w1', [
        queue.result(a.token, 'retry', delay=60000), queue.result('s1-1'), queue.result(b.token),
        queue.result(c.token, 'dead', cause='exit'), queue.result(d.token, 'release')])
    assert states == ['ok', 'gone', 'ok', 'ok', 'ok']
    assert queue.places() == {a.tid: ['waiting'], c.tid: ['dead'], d.tid: ['go']}


def test_a_lost_reply_is_settled_by_sending_again(queue):
    """Each outcome sent a second time is answered gone, changes nothing and does not count as fenced."""
    for outcome in ('success', 'retry', 'dead', 'release'):
        task = begin_one(queue)
        assert queue.finish('w1', task, outcome, delay=60000, cause='exit') == 'ok'
        before = queue.places()
        assert queue.finish('w1', task, outcome, delay=60000, cause='exit', again=True) == 'gone'
        assert queue.places() == before and queue.counter('fenced') == 0
        for left in queue.begin('w1', 9):
            queue.finish('w1', left)


def test_the_same_token_twice_in_one_call(queue):
    """The second outcome for a token in one call changes nothing."""
    task = begin_one(queue)
    twice = [queue.result(task.token, 'dead', cause='exit')] * 2
    assert queue.finish_many('w1', twice)[0] == 'ok'
    assert queue.places() == {task.tid: ['dead']}
    task = begin_one(queue)
    queue.finish_many('w1', [queue.result(task.token)] * 2)
    assert queue.places().get(task.tid) is None


def test_retry_waits_and_counts(queue):
    """The task waits with its attempt and history, and keeps its id and fields."""
    task = begin_one(queue, payload=b'a\0b', id='label')
    queue.finish('w1', task, 'retry', delay=60000, cause='exit', status='3')
    assert queue.places() == {task.tid: ['waiting']} and queue.status()['retrying'] == 1
    assert abs(queue.redis.zscore(queue.delayed, task.tid) - queue.now() - 60000) < 5000
    shown = queue.show('label')
    assert shown['row']['state'] == b'retrying'
    number, worker, begun, ended, cause, status = shown['history'].split()
    assert (number, worker, cause, status) == ('1', 'w1', 'exit', '3') and begun <= ended
    queue.redis.zadd(queue.delayed, {task.tid: 1})
    queue.add({'command': 'later'}, due='+60000')
    [again] = queue.begin('w2')
    assert (again.tid, again.attempt, again.flat) == (task.tid, 2, task.flat)
    assert (queue.status()['retrying'], queue.status()['delayed']) == (0, 1)


def test_history_is_bounded(queue):
    """After 200 attempts the oldest lines of the history are gone, and each line is whole."""
    task = begin_one(queue)
    for _ in range(200):
        queue.finish('w1', task, 'retry', cause='exit', status='1')
        [task] = queue.begin('w1')
    queue.finish('w1', task, 'dead', cause='exit', status='1')
    history = queue.show(task.tid)['history']
    lines = history.splitlines()
    assert len(history) <= 2000 and lines[-1].startswith('201 w1 ')
    assert all(len(line.split()) == 6 for line in lines)


def test_a_dead_letter_keeps_every_byte_and_the_account(queue):
    """A dead letter keeps every byte of the fields, forged leat.* fields of a plain XADD among them; the
    trailer is leat's own."""
    forged = ['command', b'x\0y', 'leat.tid', 'forged', 'leat.attempts', '9', 'leat.fields', '1']
    tid = queue.redis.execute_command('XADD', 'emails', '*', *forged).decode()
    [task] = queue.begin('w1')
    assert (task.tid, task.attempt) == (tid, 1) and len(task.flat) == 8
    queue.finish('w1', task, 'dead', cause='signal', status='KILL', reason='for people',
                 stdout=b'out\0\xff', stderr=b'err')
    [(_, flat)] = queue.entries('dead')
    assert flat[:8] == [part.encode() if isinstance(part, str) else part for part in forged]
    account = trailer(flat)
    assert account['leat.tid'] == tid and account['leat.attempts'] == '1'
    assert (account['leat.cause'], account['leat.status']) == ('signal', 'KILL')
    assert account['leat.worker'] == 'w1' and account['leat.stderr'] == 'err'
    assert int(account['leat.enqueued']) <= int(account['leat.begun']) <= int(account['leat.died'])
    shown = queue.show(tid)
    assert shown['row']['stdout'] == b'out\0\xff' and shown['fields'] == flat[:8]


def test_forged_fields_in_the_stream_mean_nothing(queue):
    """A forged trailer that came by plain XADD has no effect: the task counts from attempt 1 under its own
    id, also after a retry."""
    tid = queue.redis.execute_command(
        'XADD', 'emails', '*', 'command', 'x', 'leat.tid', '1-1', 'leat.attempts', '7',
        'leat.crashes', '2', 'leat.fields', '1').decode()
    [task] = queue.begin('w1')
    queue.finish('w1', task, 'retry')
    [task] = queue.begin('w1')
    assert (task.tid, task.attempt, task.crashes, len(task.flat)) == (tid, 2, 0, 10)


def test_another_worker_changes_nothing(queue):
    """Every outcome of a worker that does not own the task is fenced, and counted."""
    task = begin_one(queue)
    for outcome in ('success', 'retry', 'dead', 'release'):
        assert queue.finish('w2', task, outcome) == 'fenced'
    assert queue.counter('fenced') == 4 and queue.places() == {task.tid: ['stream']}
    assert queue.finish('w1', task) == 'ok'


def test_a_late_success_counts_until_another_attempt_begins(queue):
    """If the lease expired and the task is requeued but not claimed, a late success ends it for good."""
    task = overtaken(queue, id='label')
    assert queue.finish('w1', task) == 'ok'
    assert nothing_left(queue) and queue.counter('succeeded') == 1
    assert queue.finish('w1', task, again=True) == 'gone'


def test_a_late_success_finds_the_task_wherever_it_was_moved(queue):
    """A late success also counts if the task was requeued, read but not claimed, handed back, or taken over
    once more."""
    task = overtaken(queue)
    [token] = queue.block('w2')
    queue.register('w2')
    [token] = queue.block('w2')
    queue.expire(token)
    queue.scan('w1')
    [token] = queue.block('w2')
    assert queue.finish('w1', task) == 'ok' and nothing_left(queue)
    assert queue.claim('w2', 0, named=[token])['tasks'] == []


def test_nothing_counts_after_another_attempt_has_started(queue):
    """If another attempt has started, the stale worker's success, failure, renewal and release are refused."""
    task = overtaken(queue)
    [second] = queue.begin('w2')
    for outcome in ('success', 'retry', 'dead', 'release'):
        assert queue.finish('w1', task, outcome) == 'gone'
    assert queue.renew('w1', [task.token])['lost'] == [task.token]
    assert queue.counter('fenced') == 5
    assert queue.finish('w2', second) == 'ok' and nothing_left(queue)


def test_a_late_failure_is_fenced(queue):
    """A late retry, dead letter or release does not take the new entry, because the crash was counted."""
    task = overtaken(queue)
    for outcome in ('retry', 'dead', 'release'):
        assert queue.finish('w1', task, outcome, delay=5) == 'fenced'
    assert queue.places() == {task.tid: ['go']}


def test_the_fencing_token_grows_with_each_attempt(queue):
    """The next attempt after release, retry, take-over, hand-back and dead_retry has a higher fencing token."""
    task, fences = begin_one(queue), []

    def on(step):
        nonlocal task
        step()
        fences.append(task.fence)
        [task] = queue.begin('w1')

    on(lambda: queue.finish('w1', task, 'release'))
    on(lambda: queue.finish('w1', task, 'retry'))
    on(lambda: (queue.expire(), queue.scan('w2')))
    on(lambda: queue.register('w1'))
    on(lambda: (queue.finish('w1', task, 'dead'), queue.dead_retry(queue.letters()[0][0])))
    fences.append(task.fence)
    assert fences == sorted(set(fences))


def test_a_deleted_entry_is_settled_from_its_record(queue, client):
    """If the entry of a running task is deleted, a failure makes one dead letter with the cause vanished, and
    a success counts."""
    task = begin_one(queue, id='label')
    client.xdel('emails', task.token[1:])
    assert queue.finish('w1', task, 'retry') == 'vanished'
    [(_, letter)] = queue.letters()
    assert letter['leat.cause'] == b'vanished' and letter['leat.tid'].decode() == task.tid
    assert queue.finish('w1', task, 'retry', again=True) == 'gone' and len(queue.letters()) == 1
    assert queue.held() == {} and queue.pending() == []
    task = begin_one(queue)
    client.xdel('emails', task.token[1:])
    assert queue.finish('w1', task) == 'ok' and len(queue.letters()) == 1


def test_an_unclaimed_entry_can_only_be_released(queue):
    """An outcome for an entry that was read but never claimed is refused."""
    queue.add({'command': 'x'})
    [token] = queue.block('w1')
    for outcome in ('success', 'retry', 'dead'):
        assert queue.finish('w1', token, outcome) == 'gone'
    assert queue.finish('w2', token, 'release') == 'gone'
    assert queue.finish('w1', token, 'release') == 'ok'
    assert len(queue.entries('go')) == 1 and queue.pending() == []


def test_a_release_may_wait(queue):
    """A released task may wait with nothing counted, longer each time until an attempt ends; after a failed
    attempt it still counts as a retry."""
    task = begin_one(queue, id='label')
    assert queue.finish('w1', task, 'release', delay=60000) == 'ok'
    assert queue.places() == {task.tid: ['waiting']} and queue.status()['delayed'] == 1
    assert abs(queue.redis.zscore(queue.delayed, task.tid) - queue.now() - 60000) < 5000
    assert queue.show('label')['history'] == '' and queue.counter('released') == 1
    queue.redis.zadd(queue.delayed, {task.tid: 1})
    [again] = queue.begin('w2')
    assert (again.tid, again.attempt, again.flat) == (task.tid, 1, task.flat) and again.fence > task.fence
    assert queue.finish('w2', again, 'release', delay=60000) == 'ok'
    assert abs(queue.redis.zscore(queue.delayed, task.tid) - queue.now() - 2 * 60000) < 5000
    queue.redis.zadd(queue.delayed, {task.tid: 1})
    [again] = queue.begin('w2')
    queue.finish('w2', again, 'retry', delay=0, cause='exit')
    [third] = queue.begin('w1')
    assert queue.finish('w1', third, 'release', delay=60000) == 'ok' and queue.status()['retrying'] == 1
    assert abs(queue.redis.zscore(queue.delayed, task.tid) - queue.now() - 60000) < 5000
    queue.redis.zadd(queue.delayed, {task.tid: 1})
    [last] = queue.begin('w2')
    assert last.attempt == 2 and queue.status()['retrying'] == 0
    assert queue.finish('w2', last) == 'ok' and nothing_left(queue)


def test_one_refused_result_does_not_stop_the_others(queue, client):
    """If dead letters cannot be written, that attempt stays and gets an error, and the other attempts are
    settled."""
    queue.add(*[{'command': 'x'}] * 3)
    a, b, c = queue.begin('w1', 3)
    client.set(queue.dead, 'not a stream')
    results = [queue.result(a.token), queue.result(b.token, 'dead', cause='exit'),
               queue.result(c.token, 'retry', delay=60000)]
    states = queue.finish_many('w1', results)
    assert states[0] == states[2] == 'ok' and states[1].startswith('WRONGTYPE')
    client.delete(queue.dead)
    assert queue.finish('w1', b, 'dead', cause='exit', again=True) == 'ok'
    assert queue.places() == {b.tid: ['dead'], c.tid: ['waiting']}


@pytest.mark.parametrize('args', [
    ['s1-1'], ['s1-1', 'maybe', '', '', '', 0, 0, '', '', 0],
    ['s1-1', 'retry', '', '', '', 'soon', 0, '', '', 0],
    ['x1-1', 'success', '', '', '', 0, 0, '', '', 0],
    ['s1-1', 'success', '', '', '', 0, 0, '', '', 0] * 101,
])
def test_malformed_calls_settle_nothing(queue, args):
    """A malformed call is refused before any outcome is settled."""
    task = begin_one(queue)
    with pytest.raises(redis.ResponseError, match='^BADARG'):
        queue.call('finish', 'leat', 'w1', *queue.result(task.token), *args)
    assert queue.places() == {task.tid: ['stream']}


def test_no_results_at_all(queue):
    """A call without outcomes succeeds."""
    assert queue.finish_many('w1', []) == []


def test_an_id_with_any_bytes_is_released(queue):
    """Spaces, NUL and dashes at the ends of an id do not confuse the record."""
    for id in (b' ', b'-', b'a b ', b'\0x\0', b'x\n', b'\xff'):
        assert queue.finish('w1', begin_one(queue, id=id)) == 'ok', id
        assert queue.held() == {}, id
        task = overtaken(queue, id=id)
        assert queue.finish('w1', task) == 'ok' and queue.held() == {}, id
