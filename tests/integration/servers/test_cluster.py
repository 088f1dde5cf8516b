"""[redis] cluster: real Clusters whose slots move and whose masters die."""
import asyncio
import importlib
import re
import sys

import pytest
import redis.asyncio

from harness.daemon import ROOT, merged, write_config
from harness.polling import wait_until
from harness.queue import Queue
from harness.servers import replicated
from harness.servers.acl import acl_text
from harness.tasks import wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')

REGISTERED = 'registered with Redis'
SLOW = {'redis': {'connect_timeout': '30s', 'command_timeout': '30s'}}
SOON_S = 5  # far less than these


@pytest.fixture
def base_config():
    return {'redis': {'connect_timeout': '2s'}, 'queue': {'name': 'emails'}}


@pytest.fixture
def cluster(folder, base_config):
    """Three masters; the queue's hash slot is on the first one, which has a replica."""
    one = replicated.Cluster(folder, replicas=1)
    base_config.update(merged(base_config, one.sections()))
    yield one
    one.close()


def test_move_and_failover(daemon, leat, cluster, base_config, late, start):
    """The queue's hash slot moves to another master, which gets leat's functions, and back. Then its master
    hangs, and the replica takes over. Worker and leat follow, whichever nodes they were given, and every
    accepted task runs once."""
    base_config.update(merged(base_config, SLOW))
    slot, home, away = cluster.slot('emails'), cluster.masters[0], cluster.masters[1]
    assert cluster.owner(slot) is home
    worker = daemon(cluster.sections(cluster.masters[1:])).wait_log(REGISTERED)
    assert leat('enqueue', 'true', config=cluster.sections([cluster.nodes[3]])).returncode == 0
    wait_succeeded(Queue(home.client()), 1)

    cluster.begin_move(slot, home, away)
    worker.wait_log('ASK')
    waiting = start('enqueue', 'true')
    cluster.end_move(slot, home, away)
    assert waiting.ended() == 0
    wait_succeeded(Queue(away.client()), 2)
    cluster.begin_move(slot, away, home)
    cluster.end_move(slot, away, home)
    assert leat('enqueue', 'true').returncode == 0
    wait_succeeded(Queue(home.client()), 3)

    cluster.wait_whole()
    home.ask('SET', '{emails}:mark', '')
    wait_until(lambda: home.ask('WAIT', 1, 100) == 1)  # writes that the replica does not have may be lost
    home.stop()
    new = cluster.wait_failover(slot, home)
    with replicated.measured() as took:
        assert leat('enqueue', 'true').returncode == 0
        wait_succeeded(Queue(new.client()), 4)
    assert took() < SOON_S + late.start()
    home.cont()
    assert leat('enqueue', 'true').returncode == 0
    wait_succeeded(Queue(new.client()), 5)


def test_tasks_go_to_queues_of_their_hash_slot(leat, cluster, folder, base_config):
    """leat move takes tasks to a queue with the same tag, and refuses one of another hash slot."""
    env = {'LEAT_CONFIG_DIR': str(folder / 'etc')}
    (folder / 'etc').mkdir()
    for name, stream in (('near', '{emails}near'), ('far', 'far')):
        sections = merged(base_config, {'queue': {'name': name, 'stream': stream}})
        leat('init', config=sections)
        write_config(folder / 'etc' / f'{name}.ini', sections)
    assert leat('init').returncode == 0
    tid = leat('enqueue', '--delay', '1h', 'true').stdout.strip()
    refused = leat('move', '--to', 'far', tid, env=env)
    assert refused.returncode == 65 and 'in another hash slot of the Cluster' in refused.stderr
    moved = leat('move', '--to', 'near', tid, env=env)
    assert moved.returncode == 0 and list(Queue(cluster.masters[0].client(), '{emails}near').places()) == [
        moved.stdout.split()[3]]


def test_items_are_imported_from_their_hash_slot_only(leat, cluster):
    """leat import refuses a key of another hash slot before it moves anything from another one."""
    near, far = (cluster.owner(cluster.slot(key)) for key in ('{emails}old', 'far'))
    assert leat('init').returncode == 0
    near.ask('RPUSH', '{emails}old', 'true')
    far.ask('RPUSH', 'far', 'true')
    refused = leat('import', '--field', 'command', '{emails}old', 'far')
    assert refused.returncode == 65 and 'cannot import far: it is in another hash slot' in refused.stderr
    assert near.ask('LLEN', '{emails}old') == far.ask('LLEN', 'far') == 1
    assert leat('import', '--field', 'command', '{emails}old').returncode == 0
    assert near.ask('LLEN', '{emails}old') == 0


def test_the_users_of_the_acl_file(leat, cluster, base_config):
    """With +cluster|nodes and +role, as the file says, its users for leat init and for leat enqueue reach a
    Cluster."""
    for line in acl_text().splitlines():
        if line.startswith('user emails-'):
            rules = re.findall(r'\([^)]*\)|\S+', line)[1:]
            for node in cluster.nodes:
                node.ask('ACL', 'SETUSER', *rules, '+cluster|nodes', '+role')
    base_config['queue']['load_library'] = 'never'
    for role, words in (('admin', ['init']), ('enqueuer', ['enqueue', 'true'])):
        done = leat(*words, config={'redis': {'user': f'emails-{role}', 'password': role}})
        assert (done.returncode, done.stderr) == (0, ''), role


def test_not_a_cluster(daemon, leat, redis_servers, base_config):
    """A server outside a Cluster is an error of the file, with exit status 78."""
    one = replicated.start_server(redis_servers().folder / 'alone')
    try:
        base_config['redis'].update({'socket': None, 'cluster': one.address})
        worker = daemon()
        assert worker.wait_exit() == 78 and 'cluster support disabled' in worker.log()
        refused = leat('status')
        assert refused.returncode == 78 and 'cluster support disabled' in refused.stderr
    finally:
        one.close()


def test_a_node_as_the_only_server(daemon, leat, cluster, base_config):
    """If [redis] host is a node of a Cluster without the hash slot, the error explains the answer."""
    base_config['redis'].update({'cluster': None, 'host': '127.0.0.1', 'port': cluster.masters[1].port})
    daemon().wait_log('to its sentinels or to the Cluster')
    refused = leat('enqueue', 'true')
    assert refused.returncode == 69 and 'MOVED' in refused.stderr and 'or to the Cluster' in refused.stderr


def test_the_named_node_is_gone(daemon, leat, cluster):
    """If the only configured node dies, a worker that knows the Cluster asks the nodes that it has learnt,
    and follows the hash slot, also after its connections were cut; leat, which starts afresh, says which node
    did not answer."""
    slot, home, away, named = cluster.slot('emails'), cluster.masters[0], cluster.masters[1], cluster.nodes[3]
    worker = daemon(cluster.sections([named])).wait_log(REGISTERED)
    named.kill()
    before = worker.log().count(REGISTERED)
    home.ask('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    wait_until(lambda: worker.log().count(REGISTERED) > before)
    before = worker.log().count(REGISTERED)
    cluster.begin_move(slot, home, away)
    cluster.end_move(slot, home, away)
    wait_until(lambda: worker.log().count(REGISTERED) > before)
    refused = leat('enqueue', 'true', config=cluster.sections([named]))
    assert refused.returncode == 69 and named.address in refused.stderr
    assert leat('enqueue', 'true', config=cluster.sections([home])).returncode == 0
    wait_succeeded(Queue(away.client()), 1)


def test_the_python_client(daemon, cluster, monkeypatch):
    """leat.py adds tasks, waits for results and cancels by clients of a Cluster that were given another master."""
    monkeypatch.syspath_prepend(str(ROOT / 'src/clients'))
    monkeypatch.setattr(sys, 'dont_write_bytecode', True)
    leat = importlib.import_module('leat')
    daemon(cluster.sections()).wait_log(REGISTERED)
    port = cluster.masters[1].port
    queue = leat.Queue('emails', redis.RedisCluster(host='127.0.0.1', port=port))
    assert queue.add('echo hi', result_ttl='1h').wait(300).stdout == b'hi\n'
    later = queue.add_many([{'command': 'true', 'delay': '1h'}])[0]
    assert later.cancel() and not later.cancel()

    async def same():
        client = redis.asyncio.RedisCluster(host='127.0.0.1', port=port)
        queue = leat.AsyncQueue('emails', client)
        task = await queue.add('echo hi', result_ttl='1h')
        assert (await task.wait(300)).stdout == b'hi\n'
        assert await (await queue.add('true', delay='1h')).cancel()
        await client.close()
    asyncio.run(same())
