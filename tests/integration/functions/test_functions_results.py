"""leat_await, leat_find and results."""
import pytest
import redis

from harness.functions.results import key_of, result_keys, result_of
from harness.queue import pairs, text


def await_tasks(queue, *ids, ms=60000):
    """The tids that leat_await answers."""
    return [text(tid) for tid in queue.call('await', ms, *ids)[1:]]


def find(queue, *tids, cursor='g0-0'):
    """(cursor, at the end, {tid: state}, later) of one call."""
    cursor, end, rows, later = queue.call('find', queue.group, cursor, *tids)
    rows = [pairs(row) for row in rows]
    return (text(cursor), end == 1, {text(row['tid']): text(row['state']) for row in rows},
            [text(tid) for tid in later])


def test_await_keeps_the_result(queue, client):
    """The end of an awaited task is kept in its result for a minute; the ends of others are not."""
    queue.register('w1')
    mine, other = queue.add({'command': 'a'}, {'command': 'b'})
    assert await_tasks(queue, mine) == [mine]
    for task in queue.begin('w1', 2):
        assert queue.finish('w1', task) == 'ok'
    assert result_of(queue, mine)['state'] == 'success'
    assert 50000 < client.pttl(key_of(queue, 'result', mine)) <= 60000
    assert result_of(queue, other) is None
    assert not client.exists(queue.awaited)


def test_every_end_has_a_result(queue):
    """Success, late success, dead letters of each cause, and cancels are written to the results of awaited
    tasks."""
    queue.register('w1', max_crashes=2)
    queue.register('w2')
    ends = {}

    def begin(outcome, **fields):
        [tid] = queue.add({'command': 'x', **fields})
        await_tasks(queue, tid)
        ends[tid] = outcome
        return tid

    begin(('success', 'success'))
    queue.finish('w1', queue.begin('w1')[0])
    begin(('dead', 'exit'))
    queue.finish('w1', queue.begin('w1')[0], 'dead', cause='exit', status='3')
    begin(('dead', 'crash'))
    for _ in range(2):
        queue.begin('w2')
        queue.requeue('w2', died=True)
        queue.register('w2')
    begin(('success', 'success'))
    [task] = queue.begin('w1')
    queue.expire(task.token)
    queue.scan('w2')
    assert queue.finish('w1', task) == 'ok'
    begin(('dead', 'expired'), expires='1')
    assert queue.begin('w1') == []
    begin(('dead', 'vanished'))
    [task] = queue.begin('w1')
    queue.redis.xdel(queue.stream, task.token[1:])
    assert queue.finish('w1', task, 'dead', cause='exit') == 'vanished'
    ready = begin(('cancelled', 'cancelled'))
    queue.call('cancel', queue.group, 0, ready, 's' + ready)
    begin(('cancelled', 'cancelled'))
    [task] = queue.begin('w1')
    queue.call('cancel', queue.group, 0, task.tid, task.token)
    queue.finish('w1', task, 'dead', cause='signal')
    for tid, end in ends.items():
        result = result_of(queue, tid)
        assert result and (result['state'], result['cause']) == end, (tid, end, result)


def test_retries_and_releases_are_no_ends(queue):
    """Retries and releases write no result; the last attempt does."""
    queue.register('w1')
    [tid] = queue.add({'command': 'x', 'result_ttl': '1h'})
    await_tasks(queue, tid)
    queue.finish('w1', queue.begin('w1')[0], 'release')
    queue.finish('w1', queue.begin('w1')[0], 'retry', cause='exit', status='1', delay=0)
    assert result_keys(queue) == []
    queue.finish('w1', queue.begin('w1')[0])
    assert result_of(queue, tid)['attempt'] == '2'


def test_labels(queue):
    """A task can be awaited by its label, and the answer has its tid."""
    [tid] = queue.add({'command': 'x', 'id': 'order-17'})
    assert await_tasks(queue, 'order-17', 'nobody') == [tid, 'nobody']
    assert sorted(map(text, queue.redis.hkeys(queue.awaited))) == sorted([tid, 'nobody'])


def test_a_label_is_not_the_whole_queue(queue):
    """leat_await with * is for the whole queue, also if a task has this label."""
    queue.add({'command': 'x', 'id': '*'})
    assert await_tasks(queue, '*') == ['*']
    assert queue.redis.hkeys(queue.awaited) == [b'*']


def test_await_is_taken_back(queue, client):
    """An await of 0 ms takes the request back; the requests of killed clients are removed later and get no
    result."""
    queue.register('w1')
    [tid] = queue.add({'command': 'x'})
    await_tasks(queue, tid, 'x', ms=60000)
    await_tasks(queue, tid, 'x', ms=0)
    assert not client.exists(queue.awaited)

    client.hset(queue.awaited, mapping={tid: 1, **{f'old-{i}': 1 for i in range(50)}})
    queue.finish('w1', queue.begin('w1')[0])
    assert result_of(queue, tid) is None
    for i in range(20):
        await_tasks(queue, 'x')
    assert [text(name) for name in client.hkeys(queue.awaited)] == ['x']


def test_a_task_that_ended_is_not_awaited(queue, client):
    """If the task has ended, its result is there, and nothing is left behind."""
    queue.register('w1')
    [tid] = queue.add({'command': 'x', 'result_ttl': '1h'})
    queue.finish('w1', queue.begin('w1')[0])
    await_tasks(queue, tid)
    assert not client.exists(queue.awaited)


def test_a_retried_letter_has_no_result(queue):
    """A client that waits for a retried dead letter waits for its next end."""
    queue.register('w1')
    [tid] = queue.add({'command': 'x', 'result_ttl': '1h'})
    queue.finish('w1', queue.begin('w1')[0], 'dead', cause='exit', status='1')
    assert result_of(queue, tid)['state'] == 'dead'
    assert queue.dead_retry(queue.letters()[0][0]) == ['ok']
    assert result_of(queue, tid) is None
    await_tasks(queue, tid)
    queue.finish('w1', queue.begin('w1')[0])
    assert result_of(queue, tid)['state'] == 'success'


def test_wakeup(queue, client):
    """With *, each end writes a wakeup, however it came; after the await has expired, no end does."""
    queue.register('w1')
    bell = key_of(queue, 'result', '*')
    queue.add(*[{'command': 'x'}] * 3)
    await_tasks(queue, '*')
    first, second, third = queue.begin('w1', 3)
    queue.finish('w1', first)
    rung = client.execute_command('XRANGE', bell, '-', '+')
    assert len(rung) == 1 and 0 < client.pttl(bell) <= 60000
    queue.finish('w1', second, 'dead', cause='exit')
    again = client.execute_command('XRANGE', bell, '-', '+')
    assert len(again) == 1 and again[0][0] > rung[0][0]
    client.hset(queue.awaited, '*', 1)
    queue.finish('w1', third)
    assert client.execute_command('XRANGE', bell, '-', '+') == again
    assert not client.exists(queue.awaited)


# ---- leat_find

def test_find_alive(queue):
    """A task is found in every state: ready, running, requeued, waiting for a retry, delayed, in a lane. A
    task that has ended, or never was, is not."""
    queue.register('w1')
    ended, running, retrying, back = queue.add(*[{'command': 'x'}] * 4)
    for task in queue.begin('w1', 4):
        if task.tid == ended:
            queue.finish('w1', task)
        elif task.tid == retrying:
            queue.finish('w1', task, 'retry', cause='exit', delay=60000)
        elif task.tid == back:
            queue.finish('w1', task, 'release')
    [delayed] = queue.add({'command': 'x'}, due='+60000')
    laned = queue.add(*[{'command': 'x', 'lane': 'a'}] * 2)
    [ready] = queue.add({'command': 'x'})
    alive = [running, retrying, back, delayed, ready, *laned]
    strange = ['1-1', 'x', '', '9' * 30 + '-1', 'a\nb', '-']
    _, end, found, later = find(queue, *alive, ended, *strange)
    assert end and later == []
    assert found == {tid: 'alive' for tid in alive}


def test_find_in_a_long_requeue_stream(queue):
    """Many tasks of a long requeue stream are found in one call."""
    queue.register('w1')
    tids = queue.add(*[{'command': 'x'}] * 250)
    for task in queue.begin('w1', 250):
        queue.finish('w1', task, 'release')
    _, end, found, _ = find(queue, *tids)
    assert end and found == {tid: 'alive' for tid in tids}


def test_find_before_older_entries_are_indexed(queue):
    """The requeue stream is then read page by page, and a task that moves meanwhile is found, too."""
    queue.register('w1')
    tids = queue.add(*[{'command': 'x'}] * 250)
    for task in queue.begin('w1', 250):
        queue.finish('w1', task, 'release')
    queue.redis.delete(queue.names)
    cursor, end, found, _ = find(queue, *tids)
    assert not end and len(found) == 100

    # of the tasks that were not passed yet one is requeued, one waits, one ends
    behind, waits, ends = queue.begin('w1', 250)[-3:]
    queue.finish('w1', behind, 'release')
    queue.finish('w1', waits, 'retry', cause='exit', delay=60000)
    queue.finish('w1', ends)
    while not end:
        cursor, end, more, _ = find(queue, *tids, cursor=cursor)
        found.update(more)
    assert set(tids) - set(found) == {ends.tid}

    # and later, behind the end that was seen
    cursor, end, more, _ = find(queue, *tids, cursor=cursor)
    assert end and waits.tid in more and ends.tid not in more


def test_find_dead(queue):
    """Dead letters are found with their details in one call, or page by page before others are indexed."""
    queue.register('w1')
    tids = queue.add(*[{'command': 'x'}] * 150)
    for task in queue.begin('w1', 150):
        queue.finish('w1', task, 'dead', cause='exit', status='3', stderr='oops')
    found = {}
    for _ in range(2):
        cursor, end, rows, _ = queue.call('find', queue.group, 'd0-0', tids[0], tids[149], '1-1')
        assert end and len(rows) == 2
        found.update({text(pairs(row)['tid']): pairs(row) for row in rows})
        queue.redis.hdel(queue.names, 't:')
        cursor, end, rows, _ = queue.call('find', queue.group, 'd0-0', tids[0], tids[149], '1-1')
        assert not end and len(rows) == 2
        queue.scan('w1')
    assert set(found) == {tids[0], tids[149]}
    row = found[tids[0]]
    assert (row['state'], row['cause'], row['status'], row['stderr']) == (
        b'dead', b'exit', b'3', b'oops')
    assert int(row['begun']) <= int(row['died_ms'])


def test_find_is_bounded(queue):
    """Large tasks are searched in several calls."""
    tids = queue.add({'command': 'x', 'payload': 'x' * 9_000_000})
    tids += queue.add({'command': 'x', 'payload': 'x' * 9_000_000})
    tids += queue.add({'command': 'x'})
    _, end, found, later = find(queue, *tids)
    assert end and set(found) == set(tids[:2]) and later == tids[2:]
    assert find(queue, *later)[2] == {tids[2]: 'alive'}


def test_find_needs_no_group(queue):
    """Tasks are found before the first worker has made the group."""
    [tid] = queue.add({'command': 'x'})
    assert find(queue, tid)[2] == {tid: 'alive'}


@pytest.mark.parametrize('args', [['x0-0', '1-1'], ['g0-0', *['1-1'] * 1001]])
def test_find_refuses(queue, args):
    """An unknown cursor, or too many tasks, are refused."""
    with pytest.raises(redis.ResponseError, match='^BADARG give a cursor'):
        queue.call('find', queue.group, *args)


def test_output_is_bounded(queue, client):
    """Only the newest entries are kept, and each one restarts their time to live."""
    key = key_of(queue, 'output', '1-1')
    for i in range(1300):
        client.execute_command('FCALL', 'leat_output', 1, key, 60000, 'offset', i, 'data', 'x' * 5000)
    assert 1000 <= client.xlen(key) <= 1100 and 50000 < client.pttl(key) <= 60000
    [(_, fields)] = client.execute_command('XREVRANGE', key, '+', '-', 'COUNT', 1)
    assert fields[1] == b'1299'


@pytest.mark.parametrize('args', [['1', 'a'], ['1'], ['x', 'a', 'b'], ['1', *['a'] * 1002]])
def test_output_refuses(client, queue, args):
    """A call without a time or pairs, or with too many, is refused."""
    with pytest.raises(redis.ResponseError, match='^BADARG'):
        client.execute_command('FCALL', 'leat_output', 1, key_of(queue, 'output', '1-1'), *args)


def test_await_refuses(queue):
    """A call with too many tasks, or without a time, is refused."""
    with pytest.raises(redis.ResponseError, match='^BADARG more than 1000'):
        queue.call('await', 1, *['x'] * 1001)
    with pytest.raises(redis.ResponseError, match='^BADARG the time'):
        queue.call('await', 'x')
