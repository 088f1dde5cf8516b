"""[redis] sentinels: real sentinels over real masters and replicas."""
import pytest

from harness.daemon import merged
from harness.polling import wait_until
from harness.queue import Queue
from harness.servers import replicated
from harness.tasks import wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')

REGISTERED = 'registered with Redis'
SLOW = {'redis': {'connect_timeout': '30s', 'command_timeout': '30s'}}
SOON_S = 5  # far less than these


@pytest.fixture
def servers(folder):
    """A function that calls a starter, and ends what it returns after the test: servers(start, …)."""
    made = []

    def start(starter, *args, **options):
        made.append(starter(folder / f'r{len(made)}', *args, **options))
        return made[-1]

    yield start
    for server in made:
        server.close()


@pytest.fixture
def watched(folder):
    one = replicated.Watched(folder)
    yield one
    one.close()


@pytest.fixture
def base_config():
    return {'redis': {'connect_timeout': '2s'}, 'queue': {'name': 'emails'}}


@pytest.fixture
def divided(servers):
    """Two masters; a sentinel that was cut off names the first, two others know the newer second."""
    old, new = servers(replicated.start_server), servers(replicated.start_server)
    epoch = f'sentinel config-epoch {replicated.NAME} 7'
    sentinels = [servers(replicated.start_sentinel, old, 3)]
    sentinels += [servers(replicated.start_sentinel, new, 3, epoch) for _ in range(2)]
    return old, new, sentinels


def test_a_stopped_master_is_left(daemon, leat, watched, base_config, late):
    """If the master hangs, an idle worker and leat use the promoted one without waiting for the old one to answer,
    and stay there when it answers again and still claims to be the master."""
    base_config.update(merged(base_config, watched.sections(), SLOW))
    worker = daemon().wait_ready().wait_log(REGISTERED)
    assert leat('enqueue', 'true').returncode == 0
    old = watched.master
    for server in watched.servers:  # writes that the replicas do not have may be lost
        wait_succeeded(Queue(server.client()), 1)
    old.stop()
    new = watched.wait_failover(old)
    with replicated.measured() as took:
        assert leat('enqueue', 'true').returncode == 0
        wait_succeeded(Queue(new.client()), 2)
    assert took() < SOON_S + late.start()
    watched.wait_agreed()
    count = worker.log().count(REGISTERED)
    old.cont()
    assert leat('enqueue', 'true').returncode == 0
    wait_succeeded(Queue(new.client()), 3)
    assert worker.log().count(REGISTERED) == count


def test_a_stale_master_is_refused(daemon, leat, divided, base_config):
    """If sentinels contradict each other, the newer state wins, whichever comes first, though the other's
    master answers as one: it is left as soon as any sentinel knows better."""
    old, new, sentinels = divided
    base_config.update(merged(base_config, replicated.sentinel_sections(sentinels)))
    for sentinel in sentinels[1:]:
        sentinel.stop()
    worker = daemon({'log': {'level': 'debug'}}).wait_log(REGISTERED)
    assert leat('enqueue', 'true').returncode == 0
    wait_succeeded(Queue(old.client()), 1)
    sentinels[2].cont()
    worker.wait_log(f'the master is now {new.address}')
    assert leat('enqueue', 'true').returncode == 0
    wait_succeeded(Queue(new.client()), 1)
    assert Queue(old.client()).counter('succeeded') == 1

    # newer knowledge is kept: the sentinel that was cut off cannot lead back alone
    sentinels[2].stop()
    count = worker.log().count(REGISTERED)
    new.ask('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    worker.wait_log('the sources that answer have older information than before')
    assert worker.log().count(REGISTERED) == count
    sentinels[1].cont()
    wait_until(lambda: worker.log().count(REGISTERED) > count)
    assert Queue(old.client()).counter('succeeded') == 1


def test_a_named_replica_is_not_used(daemon, leat, servers, base_config):
    """If the sentinels name a replica, nothing is written there, and the message says so; as soon as it is a
    master it is used."""
    server = servers(replicated.start_server)
    sentinel = servers(replicated.start_sentinel, server, 2)
    server.ask('REPLICAOF', '127.0.0.1', 1)
    base_config.update(merged(base_config, replicated.sentinel_sections([sentinel])))
    worker = daemon().wait_log('this Redis is a replica')
    refused = leat('status')
    assert refused.returncode == 69 and 'is a replica' in refused.stderr
    server.ask('REPLICAOF', 'NO', 'ONE')
    worker.wait_log(REGISTERED)
    assert leat('status').returncode == 0


def test_login(daemon, leat, servers, base_config):
    """Sentinels and Redis each have a password of their own; without the sentinels' the message names the
    server that refused, and no password."""
    server = servers(replicated.start_server)
    sentinel = servers(replicated.start_sentinel, server, 2)
    server.ask('CONFIG', 'SET', 'requirepass', 'for-redis')
    sentinel.ask('ACL', 'SETUSER', 'default', 'resetpass', '>for-sentinels')
    sections = replicated.sentinel_sections([sentinel], password='for-redis')
    base_config.update(merged(base_config, sections))
    worker = daemon()
    assert worker.wait_exit() == 77
    refused = leat('status')
    assert refused.returncode == 77
    for text in (worker.log(), refused.stderr):
        assert f'no sentinel knows the address of master {replicated.NAME}' in text
        assert sentinel.address in text and 'NOAUTH' in text and 'for-redis' not in text
    base_config['redis']['sentinel_password'] = 'for-sentinels'
    daemon().wait_log(REGISTERED)
    assert leat('status').returncode == 0


def test_the_rights_for_sentinels(daemon, leat, servers, base_config):
    """The two rights that leatd(8) names are enough for sentinel_user."""
    sentinel = servers(replicated.start_sentinel, servers(replicated.start_server), 2)
    sentinel.ask('ACL', 'SETUSER', 'asker', 'on', '>asker', '-@all', '+sentinel|get-master-addr-by-name',
                 '+sentinel|master')
    base_config.update(merged(base_config, replicated.sentinel_sections(
        [sentinel], sentinel_user='asker', sentinel_password='asker')))
    done = leat('enqueue', 'true')
    assert (done.returncode, done.stderr) == (0, '')
    daemon().wait_log(REGISTERED)


def test_an_unknown_name(daemon, leat, servers, base_config):
    """If the sentinels know no master of that name, it is an error of the file, with exit status 78."""
    server = servers(replicated.start_server)
    sentinel = servers(replicated.start_sentinel, server, 2)
    base_config.update(merged(
        base_config, replicated.sentinel_sections([sentinel], master='other')))
    worker = daemon()
    assert worker.wait_exit() == 78 and 'knows no master of that name' in worker.log()
    refused = leat('status')
    assert refused.returncode == 78 and 'knows no master of that name' in refused.stderr


@pytest.mark.parametrize('named_as, words', [
    ('host', 'sentinels are not named as host, but as sentinels'),
    ('sentinels', 'this server is not a sentinel'),
    ('cluster', 'this server is not a node of a Cluster'),
])
def test_wrong_kind_of_server(daemon, leat, servers, base_config, named_as, words):
    """A sentinel in place of a server or a node, or a server in place of a sentinel, is an error of the file,
    with exit status 78, and the message names the kind."""
    server = servers(replicated.start_server)
    one = server if named_as == 'sentinels' else servers(replicated.start_sentinel, server, 2)
    base_config['redis'].update({
        'host': {'host': '127.0.0.1', 'port': one.port}, 'cluster': {'cluster': one.address},
        'sentinels': {'sentinels': one.address, 'master': replicated.NAME}}[named_as], socket=None)
    worker = daemon()
    assert worker.wait_exit() == 78 and words in worker.log()
    refused = leat('status')
    assert refused.returncode == 78 and words in refused.stderr


def test_no_sentinel(daemon, leat, servers, base_config):
    """If no sentinel answers, leat says so after connect_timeout, and the worker waits for one."""
    server = servers(replicated.start_server)
    sentinel = servers(replicated.start_sentinel, server, 2)
    sentinel.kill()
    base_config.update(merged(
        base_config, replicated.sentinel_sections([sentinel], connect_timeout='300ms')))
    worker = daemon().wait_log('no sentinel knows the address of master')
    failed = leat('status')
    assert failed.returncode == 69 and sentinel.address in failed.stderr
    sentinel.revive()
    worker.wait_log(REGISTERED)


def test_doctor_names_a_master_that_needs_no_replica(leat, watched, base_config):
    """With sentinels, a master that accepts writes without its replicas may have a task run twice at once after a
    failover: leat doctor notes it until min-replicas-to-write is set."""
    base_config.update(merged(base_config, watched.sections()))
    Queue(watched.master.client()).load()
    said = leat('doctor').stdout
    assert 'NOTE lone-master: ' in said and 'min-replicas-to-write' in said, said
    watched.master.ask('CONFIG', 'SET', 'min-replicas-to-write', '1')
    assert 'lone-master' not in leat('doctor').stdout
