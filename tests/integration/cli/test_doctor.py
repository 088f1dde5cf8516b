"""leat doctor: what it finds in a queue and around it, what it repairs, and what it prints."""
import json
import resource
import subprocess

import pytest
import redis

from harness.daemon import is_sanitized, program, write_config
from harness.functions.damages import ALSO, CASES, make_acked, settle
from harness.polling import wait_until
from harness.queue import LIBRARY, Queue
from harness.servers.acl import ROOT_LOGIN, suggested_users, write_acl

OK, LEFT, REPAIRED, EX_UNAVAILABLE, EX_NOPERM, EX_CONFIG = 0, 1, 2, 69, 77, 78


@pytest.fixture
def closed(redis_servers, folder):
    """A function that starts a server on which only users of leat.acl and root may do something."""
    path = write_acl(folder / 'leat.acl', suggested_users()['root'])

    def start(**options):
        server = redis_servers(include=path, **options)
        server.login = ROOT_LOGIN
        return server
    return start


@pytest.fixture
def redis_server(closed):
    """A server with an append-only file, so that nothing is wrong with it."""
    return closed(appendonly='yes')


@pytest.fixture
def base_config(base_config):
    base_config['redis'].update(user='root', password='root')
    return base_config


def has_loaded(server):
    """Whether Redis has loaded its files."""
    try:
        return server.client().ping()
    except (redis.ConnectionError, redis.BusyLoadingError):
        return False


@pytest.fixture
def doctor(leat):
    """A function that returns the exit code, and the findings by kind."""
    def run(*args, **options):
        done = leat('doctor', '--json', *args, **options)
        assert done.stderr == '', done.stderr
        page = json.loads(done.stdout)
        assert page['healthy'] == (page['left'] == 0 and page['complete'])
        return done.returncode, {one['kind']: one for one in page['findings']}
    return run


def states(finding):
    return {example['state'] for example in finding['examples']}


def test_a_healthy_queue(doctor, leat, queue):
    """A healthy queue, and an unused one, has no findings and exit status 0, as text and as JSON."""
    code, found = doctor()
    assert (code, list(found), found['unbegun']['note']) == (OK, ['unbegun'], True)
    queue.register('w1')
    queue.add({'command': 'true', 'id': 'label', 'lane': 'a'})
    assert doctor() == (OK, {}) and doctor('--repair') == (OK, {})
    done = leat('doctor')
    assert (done.returncode, done.stdout) == (OK, 'emails: no problems found\n')


@pytest.mark.parametrize('name', CASES)
def test_each_damage(doctor, leat, queue, name):
    """Each kind of damage is found (1), explained and repaired (2), and then nothing is wrong (0)."""
    kind, make, after = CASES[name]
    made = make(queue)
    queue.redis.hset(queue.conf, 'lease_ms', 60000)  # the file's value
    code, found = doctor()
    assert code == LEFT and kind in found and set(found) <= {kind} | ALSO.get(name, set())
    assert states(found[kind]) == {'found'} and found[kind]['repaired'] == 0
    page = leat('doctor').stdout
    assert f'FOUND {kind}: ' in page and found[kind]['meaning'] in page
    assert 'leat doctor --repair ' + found[kind]['repair'] in page
    code, found = doctor('--repair')
    assert code == REPAIRED and states(found[kind]) == {'repaired'}, found
    assert found[kind]['repaired'] == found[kind]['count']
    assert doctor('--repair')[0] in (OK, REPAIRED)
    code, found = doctor()
    assert (code, found) == (OK, {})
    after(queue, made)


def test_the_page_says_what_was_done(leat, queue):
    """The text says which findings were repaired and how, and clearly if a task will run again."""
    make_acked(queue)
    done = leat('doctor', '--repair')
    assert done.returncode == REPAIRED
    assert done.stdout.startswith('emails: 1 finding, 1 repaired, 0 left\n')
    assert 'REPAIRED acked: ' in done.stdout and 'REQUEUES THE TASK' in done.stdout
    assert 'not claimed' in done.stdout


def test_many_findings_are_counted_and_a_few_are_shown(doctor, leat, queue):
    """Thousands of orphans are all counted and repaired, and the text stays short. Subjects may have any
    bytes."""
    queue.register('w1')
    queue.redis.hset(queue.names, mapping={b'u:\xff\x1b\0%d' % i: '5-5' for i in range(3000)})
    queue.redis.hset(queue.names, mapping={f'i:{i}': '6-6' for i in range(10)})
    page = leat('doctor').stdout
    assert ', 3010 times\n' in page and 'and 3005 more' in page and len(page.splitlines()) < 20
    assert '\x1b' not in page
    code, found = doctor('--repair')
    assert (code, found['name']['repaired'], len(found['name']['examples'])) == (REPAIRED, 3010, 20)
    assert queue.held() == {}


# ---- around the queue

def test_servers_that_can_lose_tasks(doctor, closed, queue):
    """Eviction, a missing append-only file, a replica, and a server that does not tell are reported."""
    def look(server, **options):
        return doctor(config={'redis': {'socket': server.socket, **options}})
    one = closed(maxmemory='100mb', maxmemory_policy='allkeys-lru')
    Queue(one.client()).load()
    code, found = look(one)
    assert (code, set(found)) == (LEFT, {'eviction', 'snapshots-only', 'unbegun'})
    one.client().execute_command('ACL', 'SETUSER', 'shy', 'on', '>word', '~*', '+@all', '-info')
    code, found = look(one, user='shy', password='word')
    assert (code, set(found)) == (OK, {'no-info', 'unbegun'})


def test_a_server_that_refused_its_own_data(doctor, daemon, queue, redis_server, folder):
    """If the default user lacks rights, Redis drops what functions wrote when it loads its append-only file. leat
    doctor and the worker say so, and what to do."""
    queue.add({'command': 'true', 'unique': 'a'})
    assert set(doctor()[1]) == {'unbegun'}
    redis_server.kill()
    users = folder / 'leat.acl'
    users.write_text(users.read_text().replace('\nuser default off ~* &* +@all\n', '\nuser default off\n'))
    redis_server.start(wait=False)
    wait_until(lambda: has_loaded(redis_server), message=redis_server.log)
    if queue.places():
        pytest.skip('this version of Redis does not check the rights of the default user')
    code, found = doctor()
    assert code == LEFT and 'leat.acl' in found['refused-data']['advice']
    daemon().wait_log('this Redis can lose tasks: it refused changes')


# what each right lets a client do that does not log in
RIGHTS = {'+xrange ~emails': 'read tasks', '+xadd ~emails': 'add tasks',
          '+function|load': 'replace the functions', '+config|set': 'configure Redis'}


@pytest.mark.parametrize('rights', [*RIGHTS, ' '.join(RIGHTS)])
def test_what_a_client_without_a_login_may_do(doctor, leat, client, queue, rights):
    """The rights of the default user are a fault if the configuration has a password, and a note if it has none.
    To look changes nothing."""
    queue.register('w1')
    client.execute_command('ACL', 'SETUSER', 'default', 'on', 'nopass', 'resetkeys', '-@all', *rights.split())
    before = {key: client.dump(key) for key in client.keys()}, client.config_get()
    code, found = doctor()
    assert (code, list(found)) == (LEFT, ['open'])
    said = [text for right, text in RIGHTS.items() if right in rights]
    assert found['open']['examples'][0]['detail'] == ', '.join(said)
    assert 'leat.acl' in leat('doctor').stdout
    assert ({key: client.dump(key) for key in client.keys()}, client.config_get()) == before
    client.execute_command('ACL', 'SETUSER', 'default', '~*', '+@all')
    code, found = doctor(config={'redis': {'user': None, 'password': None}})
    assert (code, list(found), found['no-password']['note']) == (OK, ['no-password'], True)
    assert found['no-password']['examples'][0]['detail'] == ', '.join(RIGHTS.values())


def test_a_default_user_without_rights(doctor, client, queue):
    """A default user that is off, has another password, or may only use other keys is no finding."""
    queue.register('w1')
    for rules in (['off'], ['on', '>word', '~*', '+@all'], ['resetpass', 'nopass', 'resetkeys', '-@all', '+ping'],
                  ['~other', '+xadd', '+xrange', '+function|list', '+config|get']):
        client.execute_command('ACL', 'SETUSER', 'default', *rules)
        assert doctor() == (OK, {}), rules


def test_a_replica(doctor, redis_servers, folder, wait_until):
    """A replica is reported, and everything that can be checked on it is checked."""
    first = redis_servers(appendonly='yes', port=0)
    second = redis_servers(appendonly='yes')
    Queue(second.client()).load()
    # no server is at that address, but this one is a replica from then on
    second.client().execute_command('REPLICAOF', '127.0.0.1', '1')
    wait_until(lambda: second.client().info()['role'] == 'slave')
    code, found = doctor(config={'redis': {'socket': second.socket, 'user': None, 'password': None}})
    assert code == LEFT and 'replica' in found and 'add tasks' in found['no-password']['examples'][0]['detail']
    assert first.answers()


def test_the_library_is_missing(doctor, leat, client):
    """Checking does not load the library; the repair does, and then checks the rest."""
    client.hset('{emails}:names', 'i:label', '5-5')
    code, found = doctor()
    assert (code, set(found)) == (LEFT, {'library-missing'})
    assert client.execute_command('FUNCTION', 'LIST') == []
    assert 'Not all keys of the queue' in leat('doctor').stdout
    code, found = doctor('--repair')
    assert (code, set(found)) == (REPAIRED, {'library-missing', 'name', 'unbegun'})
    assert doctor()[0] == OK


def source(version):
    text = LIBRARY.read_text()
    start = text.index('local VERSION = ')
    return text[:start] + f'local VERSION = {version} -- ' + text[start:].split('\n', 1)[0] + '\n' + text[
        start:].split('\n', 1)[1]


def test_the_library_is_old(doctor, queue):
    """An old library is found, and replaced by the repair."""
    queue.load(source(0))
    code, found = doctor()
    assert (code, set(found)) == (LEFT, {'library-old'}) and queue.version() == 0
    assert doctor('--repair')[0] == REPAIRED and queue.version() > 0
    assert doctor()[0] == OK


def test_the_library_is_newer(doctor, queue):
    """A newer library is found and never replaced; the rest is checked."""
    queue.load(source(99))
    queue.redis.hset(queue.names, 'i:label', '5-5')
    code, found = doctor('--repair')
    assert (code, set(found)) == (LEFT, {'library-new', 'name', 'unbegun'})
    assert queue.version() == 99 and found['name']['repaired'] == 1


def test_the_library_is_another(doctor, queue):
    """A library of the same version with another text is found, and replaced by the repair."""
    queue.load(LIBRARY.read_text() + '\n-- and more\n')
    code, found = doctor()
    assert (code, set(found)) == (LEFT, {'library-differs', 'unbegun'})
    assert doctor('--repair')[0] == REPAIRED
    assert doctor()[0] == OK


def test_a_user_who_must_not_repair(doctor, queue):
    """If the user may only read, each finding stays with the reason, and Redis is unchanged."""
    queue.register('w1')
    queue.redis.hset(queue.names, 'i:label', '5-5')
    queue.redis.hset(queue.names, 'u:key', '6-6')
    queue.redis.execute_command('ACL', 'SETUSER', 'looker', 'on', '>word', '~*', '+@all', '-hdel')
    before = queue.redis.hgetall(queue.names)
    code, found = doctor('--repair', config={'redis': {'user': 'looker', 'password': 'word'}})
    assert code == LEFT and queue.redis.hgetall(queue.names) == before
    assert states(found['name']) == {'left'} and found['name']['examples'][0]['why']


def test_a_user_who_must_not_examine(leat, queue):
    """If the user must not read the keys, the page does not say that nothing was found."""
    queue.register('w1')
    queue.redis.execute_command('ACL', 'SETUSER', 'worker', 'on', '>word', '~*', '+@all', '-hscan')
    config = {'redis': {'user': 'worker', 'password': 'word'}}
    done = leat('doctor', config=config)
    assert done.returncode == EX_NOPERM and 'cannot examine the queue: ' in done.stderr
    assert done.stdout == ('emails: could not be examined completely\n\n'
                           'Not all keys of the queue were examined.\n')
    page = json.loads(leat('doctor', '--json', config=config).stdout)
    assert not page['complete'] and not page['healthy']


def test_workers_of_several_versions(doctor, queue):
    """Live workers of several versions are a finding; a silent worker does not count."""
    queue.register('web1:1:a', heartbeat='{"host": "web1", "version": "0.1.0"}')
    queue.register('web2:2:b', heartbeat='{"host": "web2", "version": "0.1.0"}')
    assert doctor()[0] == OK
    queue.register('web3:3:c', heartbeat='{"host": "web3", "version": "0.2.0"}')
    code, found = doctor('--repair')
    assert (code, set(found)) == (LEFT, {'version-skew'})
    assert {(one['subject'], one['detail']) for one in found['version-skew']['examples']} == {
        ('0.1.0', '2 workers: web1, web2'), ('0.2.0', '1 worker: web3')}
    queue.redis.hset(queue.workers, 'web3:3:c', f'{queue.now() - 70000} {{"version": "0.2.0"}}')
    assert doctor()[0] == OK


def test_the_file_differs_from_the_shared_settings(doctor, leat, queue):
    """A setting that was changed with leat conf is a note with both values, not a fault; --apply ends it."""
    queue.register('w1', lease=30000, max_length=5)
    assert leat('conf', 'rate', '20/s').returncode == 0
    code, found = doctor('--repair')
    assert (code, set(found), found['conf-differs']['note']) == (OK, {'conf-differs'}, True)
    assert {one['subject']: one['detail'] for one in found['conf-differs']['examples']} == {
        'lease': '30s, the file has 1m', 'max_length': '5, the file has none',
        'rate': '20/s, the file has none'}
    assert leat('conf', '--apply').returncode == 0 and doctor() == (OK, {})
    queue.redis.hset(queue.conf, 'lease_ms', 'soon')
    code, found = doctor('--repair')
    assert [found['conf']['examples'][0][name] for name in ('subject', 'detail')] == ['lease', 'is soon']


def test_keys_of_other_programs(doctor, leat, queue):
    """Another group on the stream, a configuration for another group, and a key of another type are reported."""
    queue.register('w1')
    queue.redis.xgroup_create(queue.stream, 'theirs', '0')
    assert set(doctor('--repair')[1]) == {'foreign'}
    queue.redis.xgroup_destroy(queue.stream, 'theirs')
    code, found = doctor(config={'queue': {'group': 'mine'}})
    assert (code, set(found)) == (LEFT, {'other-group'})
    queue.redis.delete(queue.names)
    queue.redis.set(queue.names, 'x')
    done = leat('doctor')
    assert done.returncode == EX_CONFIG and 'WRONGTYPE' in done.stderr


def test_errors(leat, folder):
    """Without Redis, with a wrong password or with too many arguments, leat doctor fails with a message."""
    assert leat('doctor', config={'redis': {'socket': str(folder / 'none')}}).returncode == EX_UNAVAILABLE
    done = leat('doctor', config={'redis': {'user': 'who', 'password': 'x'}})
    assert done.returncode == EX_NOPERM and done.stdout == ''
    assert leat('doctor', 'please').returncode == 64
    assert '--repair' in leat('doctor', '--help').stdout


# ---- queues in use, and large ones

def test_a_queue_in_use_is_healthy(doctor, daemon, queue, wait_until):
    """While tasks with ids, unique keys and lanes run, fail, are retried and die, repeated checks and repairs
    find nothing, and every task ends."""
    retry = {'base': '20ms', 'cap': '50ms', 'max_attempts': 3}
    daemon({'queue': {'concurrency': 4}, 'retry': retry}).wait_ready()
    daemon({'queue': {'concurrency': 2}}).wait_ready()
    for i in range(150):
        command = ('true', 'exit 1', 'sleep 0.02')[i % 3]
        queue.add({'command': command, 'id': f'id{i}', 'unique': f'key{i}', 'unique_for': '1h',
                   'lane': f'lane{i % 5}', 'max_attempts': '2'})

    def ended():
        code, found = doctor('--repair')
        assert code == OK, found
        return queue.counter('succeeded') == 100 and queue.counter('dead') == 50
    wait_until(ended, 60)
    assert sorted(queue.places().values()) == [['dead']] * 50


def leat_in_little_memory(config, *args):
    """leat's exit code and output; leat fails if it uses more address space than a bounded command needs."""
    def limit():
        if not is_sanitized():
            resource.setrlimit(resource.RLIMIT_AS, (64 << 20, 64 << 20))
    done = subprocess.run([program('leat'), '-c', str(config), *args], capture_output=True, text=True,
                          preexec_fn=limit, check=False)
    assert done.stderr == ''
    return done.returncode, json.loads(done.stdout)


FILL = '''
for i = 1, 25000 do
  local id = 5000 + i .. '-1'
  redis.call('XADD', KEYS[1], id, 'command', 'true', 'id', 's' .. i)
  redis.call('HSET', KEYS[3], 'i:s' .. i, id)
  local tid = 5000 + i .. '-2'
  redis.call('XADD', KEYS[2], tid, 'command', 'true', 'id', 'g' .. i, 'leat.tid', tid, 'leat.fields', '2')
  redis.call('HSET', KEYS[3], 'i:g' .. i, tid, 'u:k' .. i, tid, 't:' .. tid, 'g' .. tid)
  tid = 5000 + i .. '-3'
  redis.call('HSET', KEYS[4], tid, cmsgpack.pack({ 'command', 'true', 'leat.tid', tid, 'leat.fields', '1' }))
  redis.call('ZADD', KEYS[5], 9e14, tid)
end
'''


def test_a_large_queue(base_config, folder, queue):
    """75,000 tasks in the stream, requeued and waiting, with as many names, are checked in short calls and
    little memory, and the few orphans among them are found."""
    queue.register('w1')
    script = queue.redis.register_script(FILL)
    script(keys=[queue.stream, queue.go, queue.names, queue.waiting, queue.delayed])
    for i in range(7):
        queue.redis.hset(queue.names, f'i:orphan{i}', f'77-{i}')
    queue.redis.config_resetstat()
    config = write_config(folder / 'doctor.ini', base_config)
    code, page = leat_in_little_memory(config, 'doctor', '--json', '--repair')
    assert code == REPAIRED and page['repaired'] == 7 and page['left'] == 0
    assert [one['kind'] for one in page['findings']] == ['name']
    assert queue.redis.info('commandstats')['cmdstat_fcall']['calls'] > 1000
    assert settle(queue, 'w2')
