"""Dead letters (retry, drop), and the functions that only read: status, list, show."""
import pytest
import redis


@pytest.fixture(autouse=True)
def worker(queue):
    queue.register('w1')


def dead_letter(queue, count=1, **fields):
    """Makes tasks dead letters. Returns their tids."""
    queue.add(*[dict({'command': f'x{i}'}, **fields) for i in range(count)])
    tasks = queue.begin('w1', count)
    results = [queue.result(task.token, 'dead', cause='exit', status='65') for task in tasks]
    assert queue.finish_many('w1', results) == ['ok'] * count
    return [task.tid for task in tasks]


def letter_ids(queue):
    return [id for id, _ in queue.letters()]


def test_retry_brings_the_task_back_whole(queue):
    """A retried dead letter keeps its id, fields and history; it gets its name, a fresh attempt budget and a
    higher fencing token."""
    [tid] = dead_letter(queue, payload=b'a\0b', id='label')
    fence = int(queue.letters()[0][1]['leat.fence'])
    assert queue.dead_retry(*letter_ids(queue)) == ['ok']
    [task] = queue.begin('w1')
    assert (task.tid, task.attempt, task.crashes) == (tid, 1, 0) and task.fence > fence
    assert task.fields == {'command': b'x0', 'payload': b'a\0b', 'id': b'label'}
    assert queue.enqueue({'command': 'y', 'id': 'label'}) == [('exists', tid)]
    assert '1 w1 ' in queue.show(tid)['history']
    assert queue.finish('w1', task) == 'ok' and queue.held() == {}


def test_retry_does_not_take_a_name_from_a_living_task(queue):
    """If a new task has the label, both tasks run, and the label stays with the new one until it ends."""
    [old] = dead_letter(queue, id='label')
    [new] = queue.add({'command': 'y', 'id': 'label'})
    queue.dead_retry(*letter_ids(queue))
    first, second = sorted(queue.begin('w1', 2), key=lambda task: task.tid)
    assert [first.tid, second.tid] == [old, new]
    queue.finish('w1', first)
    assert queue.redis.hget(queue.names, 'i:label').decode() == new


def test_retry_and_drop_answer_each_id(queue):
    """Each id gets its own answer, and a repeated call finds all of them gone."""
    dead_letter(queue, 50)
    ids = letter_ids(queue)
    assert queue.dead_drop(ids[0]) == ['ok']
    assert queue.dead_retry(*ids) == ['gone'] + ['ok'] * 49
    assert queue.dead_retry(*ids) == ['gone'] * 50 and queue.dead_drop(*ids) == ['gone'] * 50
    assert len(queue.places()) == 49 == queue.status()['ready'] and queue.letters() == []
    assert len(queue.begin('w1', 50)) == 49
    assert (queue.counter('dead_retried'), queue.counter('dead_dropped')) == (49, 1)


@pytest.mark.parametrize('bad', [['1'], ['-'], ['+'], ['x'], ['1-1-1'], ['1-1'] * 101])
def test_bad_ids_are_refused_before_anything_happens(queue, bad):
    """'-' and '+' are refused, because Redis takes them for ranges."""
    dead_letter(queue)
    for call in (queue.dead_retry, queue.dead_drop):
        with pytest.raises(redis.ResponseError, match='^BADARG'):
            call(*letter_ids(queue), *bad)
    assert len(queue.letters()) == 1


def test_a_vanished_task_cannot_be_retried(queue, client):
    """A dead letter with the cause vanished stays, because its fields are lost."""
    queue.add({'command': 'x'})
    [task] = queue.begin('w1')
    client.xdel('emails', task.token[1:])
    queue.finish('w1', task, 'retry')
    [state] = queue.dead_retry(*letter_ids(queue))
    assert state.startswith('REFUSED') and len(queue.letters()) == 1


@pytest.mark.parametrize('cause', ['expired', 'exit'])
def test_what_has_expired_cannot_be_retried(queue, cause):
    """An expired task stays a dead letter, with all that is known of its end, because it could not start."""
    queue.redis.execute_command('XADD', queue.dead, '9-9', 'command', 'x', 'expires', '1.5', 'leat.tid', '5-5',
                                'leat.cause', cause, 'leat.fields', '2')
    [state] = queue.dead_retry('9-9')
    assert state.startswith('REFUSED it has expired') and letter_ids(queue) == ['9-9']
    assert queue.places() == {'5-5': ['dead']} and not queue.redis.exists(queue.waiting, queue.laned)


def test_follow_ups_are_listed(queue):
    """leat_list gives each follow-up that waits for its unique key, and no other task with a name, page by
    page."""
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
    """status counts ready, running, delayed, retrying and dead tasks, and has the oldest age, the times of
    the next delayed task and the next retry, and totals."""
    dead_letter(queue, 2)
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
    times = [due for _, due in queue.redis.zrange(queue.delayed, 0, -1, withscores=True)]
    assert (status['next_retry_ms'], status['next_due_ms']) == (times[0], times[1])
    assert 0 <= status['oldest_ready_ms'] < 60000 and list(status['workers']) == ['w1']
    assert status['conf']['lease_ms'] == b'60000'


def test_status_reads_few_tasks(queue):
    """However many tasks are delayed or retried, leat_status reads at most 30 of them to tell when the next of
    each is due, and none if all are of one kind."""
    def looks():
        stats = queue.redis.info('commandstats')
        return sum(stats.get(f'cmdstat_{name}', {'calls': 0})['calls'] for name in ('hget', 'hexists'))

    def ask():
        before = looks()
        status = queue.status()
        return status['next_due_ms'], status['next_retry_ms'], looks() - before

    queue.register('w1')
    *_, least = ask()
    queue.add(*[{'command': 'x'}] * 90)
    for task in queue.begin('w1', 90):
        queue.finish('w1', task, 'retry', delay=50000)
    [(_, retry)] = queue.redis.zrange(queue.delayed, 0, 0, withscores=True)
    assert ask() == (0, retry, least + 1)
    queue.add({'command': 'later'}, due='+3600000')
    assert ask() == (0, retry, least + 30)
    queue.add({'command': 'soon'}, due=int(retry) - 1)
    assert ask() == (retry - 1, retry, least + 2)


def test_status_of_a_queue_that_does_not_exist(queue, client):
    """status of an unknown queue is all zeros, and reading creates nothing."""
    client.flushdb()
    status = queue.status()
    assert status['ready'] == status['running'] == status['dead'] == 0 and client.keys() == []
    client.xadd('emails', {'command': 'x'})
    assert queue.status()['ready'] == 1


def test_lists_page_through_everything(queue):
    """Each list comes in pages that are shorter than the list, with every task once and only the
    beginning of its payload."""
    dead = dead_letter(queue, 25, payload='secret' * 100)
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
    assert {row['payload_start'] for row in queue.list('dead')} == {(b'secret' * 100)[:200]}
    with pytest.raises(redis.ResponseError, match='^BADARG unknown list'):
        queue.list('everything')


def test_running_tasks_come_in_their_order(queue):
    """However long the pages are, running tasks come in the order in which they became ready, each once: those
    that were requeued after the others. Ids may have halves of any length."""
    queue.register('w1')
    for id in ('7-3', '7-20', '10-0', '99-1', '1000-18446744073709551615', *(f'2000-{n}' for n in range(75))):
        queue.redis.xadd(queue.stream, {'command': 'x'}, id=id)
    running = queue.begin('w1', 80)
    for task in running[::-3]:
        queue.finish('w1', task, 'release')
    kept = [task.tid for task in running[::-1][1::3] + running[::-1][2::3]]
    expected = sorted(kept, key=lambda tid: tuple(map(int, tid.split('-'))))
    expected += [task.tid for task in queue.begin('w1', 80)]
    assert len(set(expected)) == 80 and expected[:2] == ['7-3', '10-0']
    for limit in (1, 2, 7, 39, 80, 1000):
        assert [row['tid'].decode() for row in queue.list('running', limit)] == expected, limit


def test_show_finds_a_task_wherever_it_is(queue):
    """show finds a task by id and by label: ready, claimed, running, delayed, requeued or dead. It does not
    find an unknown id."""
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
    assert queue.show('d' + letter_ids(queue)[0])['row']['tid'].decode() == tid
    assert queue.show('1-1') is None and queue.show('stranger') is None


def test_show_looks_through_many_pages(queue):
    """show finds the last of 350 entries of the requeue stream and of the dead letters."""
    tids = dead_letter(queue, 100) + dead_letter(queue, 100) + dead_letter(queue, 100)
    assert queue.show(tids[-1])['row']['state'] == b'dead'
    for start in (0, 100, 200):
        queue.dead_retry(*letter_ids(queue)[:100])
        assert start < 300
    assert queue.show(tids[-1])['row']['state'] == b'ready'


def test_looking_is_possible_for_a_reader(queue, redis_server):
    """FCALL_RO calls status, list and show, on a full server too."""
    for name, args in (('status', ['leat']), ('list', ['leat', 'dead', '0-0', 5]),
                       ('show', ['leat', 'x', ''])):
        reply = queue.redis.execute_command('FCALL_RO', 'leat_' + name, len(queue.keys), *queue.keys, *args)
        assert reply[0] == 1
