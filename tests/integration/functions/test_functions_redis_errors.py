"""A full server, and keys of another type under each of the eleven names."""
import pytest
import redis

from harness.queue import KEYS, Queue

WRONG = {'stream': 'hash', 'bell': 'hash', 'dead': 'string', 'go': 'zset', 'waiting': 'string',
         'delayed': 'hash', 'names': 'zset', 'conf': 'string', 'stats': 'list', 'running': 'zset',
         'workers': 'string', 'lanes': 'hash', 'laned': 'string', 'cancel': 'hash',
         'awaited': 'zset'}


@pytest.fixture
def full(redis_servers):
    """A queue with work of every kind on a server whose memory is used up."""
    queue = Queue(redis_servers(maxmemory_policy='noeviction').client()).load()
    queue.register('w1')
    queue.register('w2')
    queue.add(*[{'command': f'x{i}', 'id': f'label {i}'} for i in range(20)])
    [due] = queue.add({'command': 'due'}, due='+60000')
    queue.redis.zadd(queue.delayed, {due: 1})
    queue.running_tasks = queue.begin('w1', 8)
    queue.redis.config_set('maxmemory', 1)
    return queue


def test_a_full_server_refuses_new_tasks_whole(full):
    """leat_enqueue and plain XADD get OOM before anything is written."""
    before = {key: full.redis.dump(key) for key in full.redis.keys()}
    for due in ('0', '+60000'):
        with pytest.raises(redis.ResponseError, match='OOM|maxmemory'):
            full.enqueue({'command': 'a', 'id': 'x'}, {'command': 'b'}, due=due)
    with pytest.raises(redis.ResponseError, match='OOM|maxmemory'):
        full.redis.xadd('emails', {'command': 'x'})
    assert {key: full.redis.dump(key) for key in full.redis.keys()} == before


def test_a_full_server_still_processes_tasks(full):
    """claim, renew, every finish, scan, register, requeue and the operators' functions work on a full server."""
    a, b, c, d, e, *others = full.running_tasks
    assert full.renew('w1', [task.token for task in full.running_tasks])['lost'] == []
    assert full.finish('w1', a) == 'ok'
    assert full.finish('w1', b, 'retry', delay=60000, cause='exit') == 'ok'
    assert full.finish('w1', c, 'dead', cause='exit') == 'ok'
    assert full.finish('w1', d, 'release') == 'ok'
    full.expire(e.token)
    full.scan('w2')
    full.register('w1', [others[0].token])
    full.requeue('w1', died=True)
    assert full.dead_retry(full.letters()[0][0]) == ['ok']
    assert full.conf_set('max_crashes', 4)['max_crashes'] == '4'
    done, held = 1, []
    for _ in range(60):
        reply = full.claim('w2', 8, named=held)
        held = reply['held']
        done += sum(full.finish('w2', task) == 'ok' for task in reply['tasks'])
    assert done == 20 and list(full.places().values()) == [['waiting']]
    assert full.status()['retrying'] == 1


@pytest.mark.parametrize('name', KEYS)
def test_register_refuses_a_key_of_another_type(queue, client, name):
    """register fails with a message that names the key, and deletes and writes nothing."""
    make_wrong(queue, name)
    before = {key: client.dump(key) for key in client.keys()}
    with pytest.raises(redis.ResponseError, match='WRONGTYPE') as error:
        queue.register('w1')
    assert getattr(queue, name) in str(error.value)
    assert {key: client.dump(key) for key in client.keys()} == before


@pytest.mark.parametrize('call', ['claim', 'enqueue', 'add'])
def test_an_error_about_a_type_names_the_key(queue, client, call):
    """A key that gets another type later: the error of the call names it, and what leat needs."""
    queue.register('w1')
    make_wrong(queue, 'names')
    queue.redis.xadd(queue.stream, {'command': 'x', 'unique': 'key'})
    with pytest.raises(redis.ResponseError, match=f'WRONGTYPE {queue.names} is a .* leat needs a hash'):
        if call == 'add':
            client.execute_command('FCALL', 'leat_add', 1, queue.stream, 'command', 'x', 'id', 'label')
        elif call == 'enqueue':
            queue.enqueue({'command': 'x', 'id': 'label'})
        else:
            queue.begin('w1')


def make_wrong(queue, name):
    key, kind = getattr(queue, name), WRONG[name]
    queue.redis.delete(key)
    {'hash': lambda: queue.redis.hset(key, 'a', 'b'), 'string': lambda: queue.redis.set(key, 'x'),
     'zset': lambda: queue.redis.zadd(key, {'a': 1}),
     'list': lambda: queue.redis.rpush(key, 'x')}[kind]()


@pytest.mark.parametrize('name', KEYS)
def test_a_key_changes_its_type_during_work(queue, client, name):
    """Every function is called while the key has another type. After the key is right again, each task is in
    exactly one place, but for the one whose success was accepted."""
    queue.register('w1', max_crashes=99)
    queue.register('w2')
    tids = queue.add(*[{'command': f'x{i}', 'id': f'label {i}'} for i in range(12)])
    tids += queue.add({'command': 'later'}, due='+60000')
    a, b, c, d, e, f = queue.begin('w1', 6)
    queue.finish('w1', f, 'dead', cause='exit')
    read = queue.block('w2', 2)
    letter = queue.letters()[0][0]
    queue.expire(e.token)
    kept = client.dump(getattr(queue, name))
    make_wrong(queue, name)

    calls = [
        lambda: queue.enqueue({'command': 'new', 'id': 'new'}),
        lambda: queue.enqueue({'command': 'new'}, due='+50'),
        lambda: queue.claim('w2', 2, named=read, cursor='g0-0'),
        lambda: queue.claim('w2', 2, cursor='s0-0'),
        lambda: queue.renew('w1', [a.token, b.token]),
        lambda: queue.finish('w1', a), lambda: queue.finish('w1', b, 'retry', delay=1),
        lambda: queue.finish('w1', c, 'dead', cause='exit'),
        lambda: queue.finish('w1', d, 'release'), lambda: queue.register('w1'),
        lambda: queue.requeue('w1', died=True), lambda: queue.dead_retry(letter),
        lambda: queue.conf_set('max_crashes', 98), queue.status, lambda: queue.list('ready'),
        lambda: queue.show('label 1')]
    succeeded = set()
    for number, call in enumerate(calls):
        try:
            answer = call()
        except redis.ResponseError as error:
            # an error of Redis or of leat, never one of Lua
            assert 'attempt to' not in str(error) and 'bad argument' not in str(error), str(error)
            continue
        if answer == 'ok' and number == 5:
            succeeded.add(a.tid)
        if number in (0, 1):
            tids += [tid for _, tid in answer]

    client.delete(getattr(queue, name))
    if kept:
        client.restore(getattr(queue, name), 0, kept)
    places = queue.places()
    for tid in tids:
        assert len(places.get(tid, [])) == (0 if tid in succeeded else 1), (tid, places.get(tid))
