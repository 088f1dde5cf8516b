"""Checks of the daemon at its start: servers that endanger tasks, replicas, keys of other programs."""
import pytest

from harness.polling import wait_until
from harness.tasks import wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')


@pytest.mark.parametrize('options, texts', [
    ({}, ['can lose tasks']),
    ({'save': '3600 1'}, ['appendonly is off']),
    ({'appendonly': 'yes', 'maxmemory': '100mb', 'maxmemory-policy': 'allkeys-lru'},
     ['maxmemory-policy is allkeys-lru']),
    ({'maxmemory': '100mb', 'maxmemory-policy': 'volatile-ttl', 'save': '3600 1'},
     ['maxmemory-policy is volatile-ttl', 'appendonly is off']),
    ({'appendonly': 'yes', 'maxmemory': '100mb', 'maxmemory-policy': 'noeviction'}, []),
    ({'appendonly': 'yes'}, []),
])
def test_warnings(daemon, redis_servers, options, texts):
    """Settings that endanger tasks cause a warning at the start, and no others do."""
    server = redis_servers(**options)
    worker = daemon({'redis': {'socket': server.socket}}).wait_ready()
    warned = [line for line in worker.log().splitlines() if 'this Redis can lose tasks' in line]
    assert len(warned) == (1 if texts else 0), warned
    for text in texts:
        assert text in warned[0]
    assert [line.rstrip(' ') for line in warned] == warned
    assert ('maxmemory-policy' in ' '.join(texts)) == ('maxmemory-policy' in ' '.join(warned))
    assert ('appendonly' in ' '.join(warned)) == (options.get('appendonly') != 'yes')


def test_warned_once(daemon, redis_server, client, queue):
    """A warning is not repeated at every reconnect."""
    worker = daemon().wait_ready()
    for count in (2, 3):
        client.execute_command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
        wait_until(lambda: worker.log().count('registered with Redis') >= count)
    assert worker.log().count('can lose tasks') == 1


def test_other_clients_keep_their_connections(daemon, redis_server, client, proxy, through_proxy):
    """The worker closes its own former connections by their ids, but not on a server that was restarted,
    where these ids belong to other clients."""
    worker = daemon(through_proxy).wait_ready()
    numbers = {int(one['id']) for one in client.client_list() if one['name'].startswith('leat:')}
    proxy.refuse()
    proxy.cut()
    redis_server.restart()
    strangers = [redis_server.client() for _ in range(max(numbers) + 5)]
    ids = [stranger.client_id() for stranger in strangers]
    assert numbers and numbers <= set(ids)
    proxy.accept()
    wait_until(lambda: worker.log().count('registered with Redis') == 2)
    assert [stranger.client_id() for stranger in strangers] == ids


def test_replica_is_refused(daemon, redis_servers):
    """A replica takes no writes: the worker says so, waits, and works as soon as the server is a master."""
    from harness.queue import Queue
    master, replica = redis_servers(), redis_servers()
    replica.client().execute_command('REPLICAOF', '127.0.0.1', '1')
    worker = daemon({'redis': {'socket': replica.socket}})
    worker.wait_log('this Redis is a replica')
    assert worker.running() and 'registered' not in worker.log()
    replica.client().execute_command('REPLICAOF', 'NO', 'ONE')
    worker.wait_log('registered with Redis')
    queue = Queue(replica.client())
    queue.add({'command': 'true'})
    wait_succeeded(queue, 1)
    assert master.client().dbsize() == 0


def test_wrong_password(daemon, redis_servers):
    """A wrong password at the start gives a clear message without the password, and exit status 77."""
    server = redis_servers()
    server.client().config_set('requirepass', 'right')
    worker = daemon({'redis': {'socket': server.socket, 'password': 'wrong-secret'}})
    assert worker.wait_exit() == 77
    assert 'WRONGPASS' in worker.log() and 'wrong-secret' not in worker.log()


@pytest.mark.parametrize('set_up', [
    lambda client: client.set('emails', 'precious'),
    lambda client: client.rpush('{emails}:go', 'precious'),
    lambda client: client.sadd('{emails}:running', 'precious'),
    lambda client: client.xgroup_create('emails', 'strangers', mkstream=True),
], ids=['string', 'list', 'set', 'group of others'])
def test_keys_of_other_programs(daemon, client, set_up):
    """Keys of another type, or a stream that others read, are not touched: exit status 78 and a message."""
    set_up(client)
    before = {key: client.dump(key) for key in client.keys()}
    worker = daemon()
    assert worker.wait_exit() == 78
    assert 'emails' in worker.log()
    assert worker.log().count('give the queue another name, or set stream in [queue]') == 1
    assert 'script:' not in worker.log() and '.; ' not in worker.log()
    assert {key: client.dump(key) for key in client.keys()} == before


def test_queue_settings_override_the_file(daemon, queue, client):
    """A second worker whose file has another lease is told that the queue's own setting applies."""
    daemon().wait_ready()
    worker = daemon({'queue': {'lease': '7s'}}).wait_ready()
    worker.wait_log("queue settings override the config file: lease 5s (not 7s)")
    assert client.hget(queue.conf, 'lease') in (b'5000', None)


def test_database_and_stream_of_its_own(daemon, redis_server, folder):
    """db, stream and group are those of the file, with the queue's other keys beside the stream."""
    from harness.queue import Queue
    daemon({'redis': {'db': 3}, 'queue': {'stream': 'jobs:{a}:in', 'group': 'crew'}}).wait_ready()
    client = redis_server.client(db=3)
    client.xadd('jobs:{a}:in', {'command': f'echo $LEAT_QUEUE > {folder}/out'})
    queue = Queue(client, 'jobs:{a}:in', 'crew')
    wait_succeeded(queue, 1)
    assert (folder / 'out').read_text() == 'emails\n'
    assert all(b'{a}' in key for key in client.keys())
    assert redis_server.client().dbsize() == 0
