"""Dead letters: retry, drop; and the functions that look: status, list, show."""
import pytest
import redis


@pytest.fixture(autouse=True)
def worker(queue):
    queue.register('w1')


def bury(queue, count=1, **fields):
    """Tids of tasks that are dead letters now."""
    queue.add(*[dict({'command': f'x{i}'}, **fields) for i in range(count)])
    tasks = queue.begin('w1', count)
    results = [queue.result(task.token, 'dead', cause='exit', status='65') for task in tasks]
    assert queue.finish_many('w1', results) == ['ok'] * count
    return [task.tid for task in tasks]


def letter_ids(queue):
    return [id for id, _ in queue.letters()]


def test_retry_brings_the_task_back_whole(queue):
    """Same id, fields and history, a fresh budget, the name held again, a higher fence."""
    [tid] = bury(queue, payload=b'a\0b', id='label')
    assert queue.dead_retry(*letter_ids(queue)) == ['ok']
    [task] = queue.begin('w1')
    assert (task.tid, task.attempt, task.crashes, task.fence) == (tid, 1, 0, 2)
    assert task.fields == {'command': b'x0', 'payload': b'a\0b', 'id': b'label'}
    assert queue.enqueue({'command': 'y', 'id': 'label'}) == [('exists', tid)]
    assert '1 w1 ' in queue.show(tid)['history']
    assert queue.finish('w1', task) == 'ok' and not queue.redis.exists(queue.names)


def test_retry_does_not_take_a_name_from_a_living_task(queue):
    """A new task with the label lives: both run, the name stays the new one's until its end."""
    [old] = bury(queue, id='label')
    [new] = queue.add({'command': 'y', 'id': 'label'})
    queue.dead_retry(*letter_ids(queue))
    first, second = sorted(queue.begin('w1', 2), key=lambda task: task.tid)
    assert [first.tid, second.tid] == [old, new]
    queue.finish('w1', first)
    assert queue.redis.hget(queue.names, 'i:label').decode() == new


def test_many_and_some_that_are_gone(queue):
    """Each id is answered for itself; repeated, all are gone."""
    bury(queue, 50)
    ids = letter_ids(queue)
    assert queue.dead_drop(ids[0]) == ['ok']
    assert queue.dead_retry(*ids) == ['gone'] + ['ok'] * 49
    assert queue.dead_retry(*ids) == ['gone'] * 50 and queue.dead_drop(*ids) == ['gone'] * 50
    assert len(queue.places()) == 49 == queue.status()['ready'] and queue.letters() == []
    assert len(queue.begin('w1', 50)) == 49
    assert (queue.counter('dead_retried'), queue.counter('dead_dropped')) == (49, 1)


@pytest.mark.parametrize('bad', [['1'], ['-'], ['+'], ['x'], ['1-1-1'], ['1-1'] * 101])
def test_bad_ids_are_refused_before_anything_happens(queue, bad):
    """'-' and '+' are ranges to Redis: they must not reach it."""
    bury(queue)
    for call in (queue.dead_retry, queue.dead_drop):
        with pytest.raises(redis.ResponseError, match='^BADARG'):
            call(*letter_ids(queue), *bad)
    assert len(queue.letters()) == 1


def test_a_vanished_task_cannot_be_retried(queue, client):
    """Its fields are lost: the letter stays."""
    queue.add({'command': 'x'})
    [task] = queue.begin('w1')
    client.xdel('emails', task.token[1:])
    queue.finish('w1', task, 'retry')
    [state] = queue.dead_retry(*letter_ids(queue))
    assert state.startswith('REFUSED') and len(queue.letters()) == 1


@pytest.mark.parametrize('cause', ['expired', 'exit'])
def test_what_has_expired_cannot_be_retried(queue, cause):
    """It could not be started: the letter stays as it is, with what it knows of its end."""
    queue.redis.execute_command('XADD', queue.dead, '9-9', 'command', 'x', 'expires', '1.5', 'leat.tid', '5-5',
                                'leat.cause', cause, 'leat.fields', '2')
    [state] = queue.dead_retry('9-9')
    assert state.startswith('REFUSED 5-5 has expired') and letter_ids(queue) == ['9-9']
    assert queue.places() == {'5-5': ['dead']} and not queue.redis.exists(queue.waiting, queue.laned)


def test_follow_ups_are_listed(queue):
    """Each that waits for its unique key and nothing else that has a name, page by page."""
    keys = [{'command': f'f{i}', 'unique': f'k{i}', 'id': f'i{i}'} for i in range(1200)]
    queue.add(*keys)
    begun = 0
    while begun < 1200:
        begun += len(queue.begin('w1', 1200 - begun))
    tids = queue.add(*[{**task, 'id': '', 'unique_next': '1'} for task in keys[:700]])
    rows = queue.list('following')
    assert sorted(row['tid'].decode() for row in rows) == sorted(tids)
    assert {row['state'] for row in rows} == {b'following'}
    assert queue.status()['delayed'] == 700 and queue.list('waiting') == []


def test_status_counts_every_place(queue):
    """Ready, running, delayed, retrying, dead, the oldest age, the next due time, and totals."""
    bury(queue, 2)
    queue.add(*[{'command': 'x'}] * 5)
    running, retry, release = queue.begin('w1', 3)
    queue.finish('w1', retry, 'retry', delay=50000)
    queue.finish('w1', release, 'release')
    queue.add(*[{'command': 'x'}] * 3, due='+60000')
    queue.redis.xadd(queue.stream, {'command': 'x'})
    status = queue.status()
    wanted = {'ready': 4, 'running': 1, 'retrying': 1, 'delayed': 3, 'dead': 2, 'total_dead': 2,
              'total_enqueued': 11, 'total_retried': 1, 'total_released': 1, 'total_succeeded': 0}
    assert {name: status[name] for name in wanted} == wanted
    [(_, due)] = queue.redis.zrange(queue.delayed, 0, 0, withscores=True)
    assert status['next_due_ms'] == due
    assert 0 <= status['oldest_ready_ms'] < 60000 and list(status['workers']) == ['w1']
    assert status['conf']['lease_ms'] == b'60000'


def test_status_of_a_queue_that_does_not_exist(queue, client):
    """Before any worker: zeros, and nothing is created by looking."""
    client.flushdb()
    status = queue.status()
    assert status['ready'] == status['running'] == status['dead'] == 0 and client.keys() == []
    client.xadd('emails', {'command': 'x'})
    assert queue.status()['ready'] == 1


def test_lists_page_through_everything(queue):
    """Each list in pages smaller than it is long; every task once, no payload in any row."""
    dead = bury(queue, 25, payload='secret')
    queue.add(*[{'command': 'x', 'payload': 'secret', 'id': f'label {i}'} for i in range(60)])
    running = queue.begin('w1', 20)
    for task in running[:10]:
        queue.finish('w1', task, 'release')
    waiting = queue.add(*[{'command': 'y'}] * 15, due='+60000')
    for limit in (7, 1000):
        ready = queue.list('ready', limit)
        assert len({row['tid'] for row in ready}) == len(ready) == 50
        assert [row['tid'].decode() for row in queue.list('dead', limit)] == dead
        assert {row['tid'].decode() for row in queue.list('waiting', limit)} == set(waiting)
        assert {row['tid'].decode() for row in queue.list('running', limit)} == {
            task.tid for task in running[10:]}
    assert {row['payload_bytes'] for row in queue.list('ready')} == {6}
    assert all(b'secret' not in str(row).encode() for row in queue.list('dead'))
    with pytest.raises(redis.ResponseError, match='^BADARG unknown list'):
        queue.list('everything')


def test_show_finds_a_task_wherever_it_is(queue):
    """By id and by label: ready, claimed, running, delayed, in go, dead; a stranger is not."""
    [tid] = queue.add({'command': 'x', 'id': 'label'})
    seen = []

    def look():
        for name in (tid, 'label'):
            shown = queue.show(name)
            assert shown['row']['tid'].decode() == tid and shown['fields'][1] == b'x'
        seen.append(shown['row']['state'].decode())

    look()
    [token] = queue.block('w1')
    look()
    [task] = queue.claim('w1', 0, named=[token])['tasks']
    look()
    queue.finish('w1', task, 'release')
    look()
    queue.finish('w1', queue.begin('w1')[0], 'retry', delay=60000)
    look()
    assert seen == ['ready', 'claimed', 'running', 'ready', 'retrying']
    queue.redis.zadd(queue.delayed, {tid: 1})
    queue.finish('w1', queue.begin('w1')[0], 'dead', cause='exit')
    assert queue.show(tid)['row']['state'] == b'dead'
    assert queue.show(letter_ids(queue)[0])['row']['tid'].decode() == tid
    assert queue.show('1-1') is None and queue.show('stranger') is None


def test_show_looks_through_many_pages(queue):
    """The last of 350 in go, and the last of as many letters."""
    tids = bury(queue, 100) + bury(queue, 100) + bury(queue, 100)
    assert queue.show(tids[-1])['row']['state'] == b'dead'
    for start in (0, 100, 200):
        queue.dead_retry(*letter_ids(queue)[:100])
        assert start < 300
    assert queue.show(tids[-1])['row']['state'] == b'ready'


def test_looking_is_possible_for_a_reader(queue, redis_server):
    """status, list and show are no writes: FCALL_RO calls them, on a full server too."""
    for name, args in (('status', ['leat']), ('list', ['leat', 'dead', '0-0', 5]),
                       ('show', ['leat', 'x', ''])):
        reply = queue.redis.execute_command('FCALL_RO', 'leat_' + name, len(queue.keys), *queue.keys, *args)
        assert reply[0] == 1
