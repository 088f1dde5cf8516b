"""conf/leat.acl: each of its users can do its work, and nothing else."""
import json
import re
import subprocess
from pathlib import Path

import pytest
import redis

from harness.functions.lists import watched, watching
from harness.functions.signing import Key
from harness.polling import wait_until
from harness.queue import LIBRARY, Queue
from harness.servers.acl import acl_text, ask
from harness.servers.server import PROGRAM, RedisServer
from harness.tasks import wait_file, wait_letters, wait_succeeded

ROOT = Path(__file__).resolve().parents[3]


def acl_lines():
    """The users of the file except for default, with which these tests themselves log in."""
    return [line for line in acl_text().splitlines() if line.startswith('user ') and ' default ' not in line]


def words_of(line):
    """The words of a user's line, a selector as one."""
    return re.findall(r'\([^)]*\)|\S+', line)


def login(role):
    return {'user': f'emails-{role}', 'password': role}


@pytest.fixture
def users(client):
    for line in acl_lines():
        client.execute_command('ACL', 'SETUSER', *words_of(line)[1:])
    client.execute_command('ACL', 'LOG', 'RESET')


@pytest.fixture
def as_role(redis_server, users):
    def connect(role):
        return redis_server.client(username=f'emails-{role}', password=role)
    return connect


@pytest.fixture
def config(base_config, users):
    """A function that writes a configuration for a user of the file; by default a worker's."""
    base_config['queue']['load_library'] = 'never'
    return lambda role, **sections: {'redis': login(role), **sections}


def denied(client, role):
    """The commands that Redis refused this user, with their keys."""
    found = []
    for row in client.execute_command('ACL', 'LOG', '100'):
        row = row if isinstance(row, dict) else dict(zip(row[::2], row[1::2]))
        row = {str(k, 'ascii') if isinstance(k, bytes) else k: v for k, v in row.items()}
        if row['username'] in (f'emails-{role}', f'emails-{role}'.encode()):
            found.append((row['reason'], row['context'], row['object']))
    # newer versions of redis-py try it, and go on without it; Redis 7.0 does not know the right
    found = [one for one in found if one[2] not in ('client|setinfo', b'client|setinfo')]
    return found


@pytest.fixture
def init(leat, config, folder):
    """Runs leat init as the administrator, with the workers' configuration."""
    path = folder / 'admin.password'
    path.write_text('admin\n')
    path.chmod(0o600)

    def run(*words, role='admin'):
        return leat('init', '--user', f'emails-{role}', '--password-file', path, *words, config=config('worker'))
    return run


# ---- the file

@pytest.mark.parametrize('way', ['aclfile', 'include'])
def test_redis_reads_the_file(folder, way):
    """Redis reads the file as an aclfile without its comments, and includes it with them."""
    hashed = acl_text('thumbnails')
    path = folder / 'leat.acl'
    path.write_text(hashed if way == 'include' else
                    ''.join(line + '\n' for line in hashed.splitlines() if line.startswith('user ')))
    server = RedisServer(folder, **{way: path}).start()
    try:
        client = server.client(username='thumbnails-producer', password='producer')
        assert client.xadd('thumbnails', {'command': 'true'})
        # without a login nothing is allowed, and RESET takes the login away
        with client.client() as single:
            assert ask(single, 'RESET') in (b'RESET', 'RESET')
            with pytest.raises(redis.RedisError, match='NOAUTH|Authentication required'):
                server.client().xadd('thumbnails', {'command': 'true'})
            with pytest.raises(redis.RedisError, match='NOAUTH|Authentication required'):
                ask(single, 'XADD', 'thumbnails', '*', 'command', 'true')
    finally:
        server.close()


def has_loaded(client):
    """Whether Redis has loaded its files. Until then it refuses this call."""
    try:
        return client.xlen('emails') >= 0
    except redis.BusyLoadingError:
        return False


@pytest.mark.parametrize('way', ['aclfile', 'include'])
def test_redis_loads_what_functions_wrote(folder, way):
    """With the file, a Redis that is killed finds each task in its append-only file again. Without a login nothing
    is allowed then, either."""
    path = folder / 'leat.acl'
    path.write_text(acl_text() if way == 'include' else
                    ''.join(line + '\n' for line in acl_text().splitlines() if line.startswith('user ')))
    server = RedisServer(folder, **{way: path}, appendonly='yes', appendfsync='always').start()
    try:
        admin = server.client(username='emails-admin', password='admin')
        admin.execute_command('FUNCTION', 'LOAD', LIBRARY.read_text())
        for options in (['delay', '1h'], ['unique', 'a']):
            server.client(username='emails-enqueuer', password='enqueuer').execute_command(
                'FCALL', 'leat_add', 1, 'emails', 'command', 'true', *options)
        server.kill()
        server.restart()
        board = server.client(username='emails-board', password='board')
        wait_until(lambda: has_loaded(board), message=server.log)
        assert (board.hlen('{emails}:waiting'), board.xlen('emails')) == (1, 1), server.log()
        with pytest.raises(redis.RedisError, match='NOAUTH|Authentication required'):
            server.client().xadd('emails', {'command': 'true'})
    finally:
        server.close()


def said_commands(folder):
    """The commands of the file's head for a second queue and for an aclfile, with the paths of the test."""
    head = (ROOT / 'conf/leat.acl').read_text().split('\nuser ')[0]
    second, clear, append = (re.search(pattern, head, re.M).group(1) for pattern in (
        r'^# +(sed -e .*)$', r'^# +(sed -i .*)$', r'^# +(grep .*)$'))

    def placed(command):
        return command.replace('/etc/redis/', f'{folder}/').replace('QUEUE', 'mails')
    return placed(second), placed(clear), placed(append)


@pytest.mark.parametrize('way', ['aclfile', 'include'])
def test_two_queues(folder, way):
    """With the commands that the file names, Redis accepts the users of two queues, and an aclfile loses its own
    default user."""
    second, clear, append = said_commands(folder)
    (folder / 'leat.acl').write_text(acl_text('thumbnails'))
    users = folder / 'users.acl'
    users.write_text('user default on nopass ~* &* +@all\nuser theirs on nopass ~* +get\n')
    for command in (f'{second} >mails.acl', clear, append, append.replace('leat.acl', 'mails.acl')):
        subprocess.run(['sh', '-ec', command], cwd=folder, check=True, timeout=60)
    files = [folder / 'leat.acl', folder / 'mails.acl'] if way == 'include' else [users]
    main = folder / 'redis.conf'
    main.write_text(''.join(f'{way} {path}\n' for path in files))
    server = RedisServer(folder, include=main).start()
    try:
        for queue in ('thumbnails', 'mails'):
            client = server.client(username=f'{queue}-producer', password='producer')
            assert client.xadd(queue, {'command': 'true'})
        with pytest.raises(redis.RedisError, match='NOAUTH|Authentication required'):
            server.client().xadd('mails', {'command': 'true'})
        if way == 'aclfile':
            assert server.client(username='theirs', password='x').get('x') is None
    finally:
        server.close()


def test_redis_does_not_start_without_passwords(folder):
    """A file without passwords gives access to no one."""
    done = subprocess.run([PROGRAM, '--port', '0', '--include', ROOT / 'conf/leat.acl'],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and 'HASH_OF_ADMIN' in done.stdout + done.stderr


KEY_NAMES = {'STREAM': 'emails', **{name: '{emails}:' + name.lower() for name in (
    'BELL', 'WAITING', 'DELAYED', 'NAMES', 'CONF', 'STATS', 'LANES', 'LANED', 'GO', 'RUNNING', 'DEAD', 'WORKERS',
    'CANCEL', 'AWAITED')}}
OPERATORS_PARTS = {'doctor.lua', 'repair.lua', 'view.lua', 'operators.lua'}
# what they use to read, to write and to undo
HELPERS = {'hash_set': ('HGET', 'HSET', 'HDEL'), 'hash_drop': ('HGET', 'HDEL', 'HSET'),
           'zset_put': ('ZSCORE', 'ZADD', 'ZREM'), 'zset_drop': ('ZSCORE', 'ZREM', 'ZADD')}
WRITES = {'HSET', 'HSETNX', 'HDEL', 'HINCRBY', 'ZADD', 'ZREM', 'SADD', 'SREM', 'XADD', 'XDEL', 'XACK', 'XCLAIM'}


def uses_of_the_library():
    """{(part, command, key)} of the calls that name their key."""
    uses = set()
    for path in sorted((ROOT / 'src/queue/lua').glob('*.lua')):
        text = path.read_text()
        for command, sub, key in re.findall(
                r"redis\.p?call\('([A-Z]+)', (?:'(GROUPS|STREAM|CONSUMERS|CREATE|DELCONSUMER)', )?q\[([A-Z]+)\]",
                text):
            uses.add((path.name, f'{command} {sub}'.strip(), key))
        for command, key in re.findall(r"scanning\('([A-Z]+)', ([A-Z]+)", text):
            uses.add((path.name, command, key))
        for helper, commands in HELPERS.items():
            for key in re.findall(helper + r'\(q, ([A-Z]+)', text):
                uses |= {(path.name, command, key) for command in commands}
        uses |= {(path.name, 'XADD', key) for key in re.findall(r'add_entry\(q, q\[([A-Z]+)\]', text)}
    return uses


def queue_version():
    """The VERSION of the built library."""
    return int(re.search(r'^local VERSION = (\d+)', LIBRARY.read_text(), re.M)[1])


def dry_run(client, role, command, key):
    """Whether the user may use the command on the key."""
    for count in range(6):
        words = [*command.split(), key, *['1'] * count]
        try:
            answer = client.execute_command('ACL', 'DRYRUN', f'emails-{role}', *words)
        except redis.ResponseError as error:
            assert 'number of arguments' in str(error), (words, error)
            continue
        return answer in (b'OK', 'OK') or answer
    raise AssertionError(f'{command}: how many arguments?')


@pytest.mark.parametrize('role', ['operator', 'worker'])
def test_the_file_knows_every_command_of_the_library(client, users, role):
    """A user may use each command of its functions on each key that the library names with it: otherwise workers
    with those rights fail."""
    uses = {(command, KEY_NAMES[key]) for part, command, key in uses_of_the_library()
            if role == 'operator' or part not in OPERATORS_PARTS}
    assert len(uses) > 60
    refused = {use: answer for use in uses if (answer := dry_run(client, role, *use)) is not True}
    expected = {('XADD', 'emails')}  # only producers and [intake] add entries there
    if role == 'worker':  # leat_await, and figures for operators
        expected |= {('HRANDFIELD', '{emails}:awaited'), ('ZCARD', '{emails}:lanes'), ('ZCARD', '{emails}:laned'),
                     ('ZLEXCOUNT', '{emails}:laned')}
    assert set(refused) - expected == set(), refused


def test_the_enqueuer_has_what_its_functions_use_and_deletes_nothing(client, users):
    """An enqueuer may use what the producers' functions use, except for the undoing of writes; it only reads the
    settings, and has no command that deletes."""
    for key in list(KEY_NAMES.values())[:9]:
        for command in ('XDEL', 'HDEL', 'ZREM', 'DEL', 'UNLINK', 'EXPIRE', 'XTRIM', 'RENAME', 'XACK', 'XCLAIM'):
            assert dry_run(client, 'enqueuer', command, key) is not True, (command, key)
    for command in WRITES:
        assert dry_run(client, 'enqueuer', command, '{emails}:conf') is not True, command
    uses = {(command, KEY_NAMES[key]) for part, command, key in uses_of_the_library() if part == 'enqueue.lua'}
    undo = {'XDEL', 'HDEL', 'ZREM'}
    refused = {use for use in uses if use[0] not in undo and dry_run(client, 'enqueuer', *use) is not True}
    assert uses and refused == set()


# ---- leat init

def test_init(init, client):
    """leat init loads the functions and makes the group, once."""
    done = json.loads(init('--json').stdout)
    assert done['loaded'] is True and done['group_made'] is True and done['version'] >= 1
    assert init().stdout == (f'function library, version {done["version"]}: already loaded\n'
                             'group leat of emails: already exists\n')
    assert [info['name'] for info in client.xinfo_groups('emails')] == [b'leat']
    assert denied(client, 'admin') == []


def test_a_worker_waits_for_init(init, config, leat, client, daemon):
    """A worker that may not load the functions says that it waits for them, and starts as soon as they exist."""
    worker = daemon(config('worker')).wait_log('the function library is missing and load_library is never')
    assert leat('status', config=config('operator')).returncode == 78
    assert json.loads(init('--json').stdout)['loaded'] is True
    worker.wait_ready()
    assert [info['name'] for info in client.xinfo_groups('emails')] == [b'leat']
    assert denied(client, 'admin') == []


def test_init_after_an_upgrade(init, as_role, queue):
    """An older library is replaced; a newer one stays."""
    newest = queue.version()
    text = LIBRARY.read_text()
    for version, loaded in ((0, True), (newest + 5, False)):
        queue.load(re.sub(r'^local VERSION = \d+', f'local VERSION = {version}', text, flags=re.M))
        done = json.loads(init('--json').stdout)
        assert done['loaded'] is loaded and done['version'] == max(version, newest)


def test_an_older_library(daemon, config, leat, queue):
    """A call that an older library does not know fails with 76, and the message says that the library is older
    and who replaces it. A worker says that it waits."""
    queue.load(LIBRARY.read_text().replace(f'VERSION = {queue.version()} ', 'VERSION = 1 ')
               .replace('ALL_KEYS = 15', 'ALL_KEYS = 14'))
    done = leat('list', config=config('operator'))
    assert done.returncode == 76, done
    assert f'the function library in Redis has version 1, this leat needs {queue_version()}' in done.stderr
    assert 'expected 14 keys' in done.stderr and 'run leat init as an administrator' in done.stderr
    assert leat('enqueue', 'true', config=config('enqueuer')).returncode == 0  # all that it knows still works
    worker = daemon(config('worker')).wait_log('the function library is older than this leatd')
    assert 'run leat init as an administrator' in worker.log()


def test_a_user_without_the_right_to_load(daemon, leat, config, base_config, client):
    """With load_library = auto, the message names load_library = never and leat init; exit status 77."""
    client.execute_command('FUNCTION', 'FLUSH')
    worker = daemon(config('worker', queue={'load_library': 'auto'}))
    assert worker.wait_exit() == 77
    advice = 'run leat init as an administrator and set [queue] load_library = never'
    assert 'loading the function library: NOPERM' in worker.log() and advice in worker.log()
    done = leat('list', config=config('operator', queue={'load_library': 'auto'}))
    assert done.returncode == 77 and advice in done.stderr


def test_init_without_the_right(init, config, leat, queue, client, folder):
    """If the user must not load functions, leat says so with 77, whether they are missing or old; a usage
    error gives 64, and a file that others can read 78."""
    client.execute_command('FUNCTION', 'FLUSH')
    assert leat('init', config=config('worker')).returncode == 77
    text = LIBRARY.read_text()
    queue.load(re.sub(r'^local VERSION = \d+', 'local VERSION = 0', text, flags=re.M))
    done = leat('init', config=config('worker'))
    assert done.returncode == 77 and 'cannot replace version 0' in done.stderr, done.stderr
    assert queue.version() == 0
    assert leat('init', '--user', 'x', config=config('worker')).returncode == 64
    assert leat('init', 'x', config=config('worker')).returncode == 64
    (folder / 'open').write_text('x')
    (folder / 'open').chmod(0o644)
    done = leat('init', '--password-file', folder / 'open', config=config('worker'))
    assert done.returncode == 78 and 'chmod' in done.stderr
    wrong = init(role='worker')
    assert wrong.returncode == 77, wrong


# ---- worker

def test_a_worker_has_the_rights_it_needs(init, daemon, config, client, folder, redis_server):
    """With load_library = never Redis refuses nothing that a worker does."""
    assert init().returncode == 0
    queue = Queue(client)
    queue.register('lost', lease=5000, dead_keep_number=2, dead_keep=3600000)
    queue.add({'command': 'true'})
    queue.expire(queue.begin('lost')[0].token)
    worker = daemon(config(
        'worker', queue={'concurrency': 4, 'scan': '200ms', 'lease': '5s', 'history': '7d'},
        task={'kill_grace': '300ms'},
        retry={'base': '10ms', 'max_attempts': 2}, limits={'rate': '200/s', 'burst': 50},
        dead={'keep_number': 2, 'keep': '1h', 'notify': f'echo $LEAT_TASK >>{folder}/told'},
        lanes={'b': '2, 1'})).wait_ready()
    queue.add(*[{'command': 'exit 1'}] * 5)
    queue.add({'command': 'true', 'unique': 'k', 'id': 'one', 'lane': 'a', 'result_ttl': '1h'},
              {'command': 'echo out', 'live': '1', 'lane': 'b'})
    queue.add({'command': 'true'}, due='+100')
    client.xadd('emails', {'command': 'true'})
    [tid] = queue.add({'command': 'sleep 1000'})
    wait_until(lambda: queue.counter('succeeded') == 5 and queue.counter('dead') == 5,
               message=lambda: (client.hgetall(queue.stats), worker.log()))
    wait_until(lambda: queue.counter('dead_trimmed') == 3)
    assert queue.call_off(tid, now=True)
    wait_until(lambda: queue.counter('cancelled') == 1)
    wait_file(folder / 'told')
    assert len(queue.list('done')) == 5 + 5 + 1

    # a lost group, an expired task, and broken connections
    client.execute_command('XGROUP', 'DESTROY', 'emails', 'leat')
    worker.wait_log('group was lost')
    client.xadd('emails', {'command': 'true'})
    wait_until(lambda: queue.counter('succeeded') == 6)
    client.xadd('emails', {'command': 'true', 'expires': '1ms'})
    client.client_kill_filter(_type='normal')
    client.xadd('emails', {'command': 'true'})
    wait_until(lambda: queue.counter('succeeded') == 7, message=worker.log)
    worker.terminate()
    assert worker.wait_exit() == 0
    refused = [what for what in denied(client, 'worker') if what[2] not in (b'client|kill', 'client|kill')]
    assert refused == []


def test_a_worker_that_requires_signatures(init, daemon, config, client, folder):
    """A worker may record used signatures."""
    assert init().returncode == 0
    key, queue = Key(folder, 'a'), Queue(client)
    worker = daemon(config('worker', security={'signatures': 'required', 'key_files': key.entry})).wait_ready()
    signed = key.sign({'command': 'true'})
    client.xadd('emails', signed)
    wait_succeeded(queue, 1)
    client.zadd('{emails}:seen_until', {'old': 1})
    client.xadd('emails', signed)
    wait_letters(queue)
    assert client.zscore('{emails}:seen_until', 'old') is None
    assert denied(client, 'worker') == [] and worker.running()


def rights_for_lists():
    """The selector that the file names for [intake], and what Redis needs to notify leatd."""
    return re.search(r'one more selector.*?^# +(\(.*?\))$.*?^# +(\+subscribe .*?)$', acl_text(),
                     re.S | re.M).groups()


def test_the_optional_rights_for_lists(init, daemon, config, client):
    """With the rights that the file names for [intake], a worker takes items from lists, and Redis notifies it."""
    assert init().returncode == 0
    selector, notices = rights_for_lists()
    client.execute_command('ACL', 'SETUSER', 'emails-worker', selector, *notices.split(), '+scan')
    intake = {'lists': 'work', 'prefix': 'work:', 'field': 'command', 'scan': '300ms'}
    worker = daemon(config('worker', intake=intake)).wait_ready()
    wait_until(lambda: watching(client) == 1 and watched(client) >= 1,
               message=lambda: (denied(client, 'worker'), worker.log()))
    for key in ('work', 'work:a', 'work:b'):
        client.lpush(key, 'true')
    wait_until(lambda: Queue(client).counter('succeeded') == 3,
               message=lambda: (denied(client, 'worker'), worker.log()))
    worker.terminate()
    assert worker.wait_exit() == 0
    assert denied(client, 'worker') == [] and 'does not notify' not in worker.log()


def test_the_manual_names_the_rights_for_lists():
    """leatd(8) names the commands of the file, but for those that a worker has for the stream."""
    manual = (ROOT / 'src/daemon/leatd.8').read_text()
    named = re.search(r'right to use the keys of the lists, these commands:\n\.Ql (.*)', manual).group(1).split()
    granted = ' '.join(rights_for_lists()).strip('(').replace(')', '').split()
    wanted = {word for word in granted if word[0] == '+'} - {'+fcall', '+xadd'} | {'+scan'}
    assert set(named) == wanted


@pytest.mark.parametrize('fill, rights', [
    (['RPUSH', 'old', 'a', 'b'], '+llen +lrange +ltrim'),
    (['ZADD', 'old', '1', 'a', '2', 'b'], '+zcard +zrange +zrem'),
    (['SADD', 'old', 'a', 'b'], '+scard +sscan +srem')])
def test_the_optional_rights_for_import(init, leat, config, client, fill, rights):
    """With the rights that the file names for leat import, an operator imports keys of each kind."""
    assert init().returncode == 0
    said = ' '.join(acl_text().replace('#', '').split())
    selector = re.search(r'for lists (\(.*?\)) for sorted sets', said).group(1)
    assert '+llen +lrange +ltrim' in selector and rights in said
    selector = selector.replace('+llen +lrange +ltrim', rights).replace('~KEY', '~old')
    client.execute_command(*fill)
    client.execute_command('ACL', 'SETUSER', 'emails-operator', selector)
    done = leat('import', 'old', '--field', 'command', config=config('operator'))
    assert done.returncode == 0, (done, denied(client, 'operator'))
    assert not client.exists('old') and len(Queue(client).places()) == 2
    assert denied(client, 'operator') == []


FORBIDDEN = [
    'FUNCTION LOAD x', 'FUNCTION DELETE leat', 'FUNCTION FLUSH', 'FUNCTION RESTORE x', 'FUNCTION DUMP',
    'EVAL x 0', 'SCRIPT LOAD x', 'CONFIG GET *', 'CONFIG SET dir /', 'KEYS *', 'SCAN 0', 'RANDOMKEY',
    'FLUSHALL', 'FLUSHDB', 'ACL LIST', 'ACL SETUSER me', 'CLIENT LIST', 'CLIENT KILL ID 1', 'MONITOR',
    'DEBUG SLEEP 0', 'SHUTDOWN', 'SAVE', 'MIGRATE h 1 k 0 1', 'REPLICAOF a 1', 'MODULE LIST', 'PUBLISH a b',
    'SUBSCRIBE a', 'SWAPDB 0 1', 'SELECT 1', 'XTRIM emails MAXLEN 0', 'XTRIM {emails}:go MAXLEN 0',
    'XGROUP DESTROY emails leat', 'XGROUP SETID emails leat 0', 'XSETID emails 1-1', 'DUMP emails',
    'RESTORE emails 0 x', 'SORT emails', 'COPY emails {emails}:x', 'RENAME emails {emails}:x', 'UNLINK emails',
    'XADD other * a b', 'XADD emails2 * a b', 'GET {email}:x', 'DEL other', 'HSET {other}:conf a b',
    'XRANGE other - +', 'XREAD STREAMS other 0', 'FCALL leat_version 1 other', 'XADD {emails * a b',
]


@pytest.mark.parametrize('role', ['worker', 'operator', 'enqueuer', 'producer', 'admin'])
def test_forbidden_commands(as_role, init, client, role):
    """No user of the file can do more to Redis, to the functions or to foreign keys; only the administrator
    can load functions. (ACL DRYRUN asks Redis without an effect.)"""
    assert init().returncode == 0
    for line in FORBIDDEN:
        if role == 'admin' and line == 'FUNCTION LOAD x':
            continue
        words = line.split()
        try:
            answer = client.execute_command('ACL', 'DRYRUN', f'emails-{role}', *words)
        except redis.ResponseError as error:
            raise AssertionError(f'{line}: {error}') from error
        assert answer != b'OK', line
    # and as the user itself
    mine = as_role(role)
    for words in (['XTRIM', 'emails', 'MAXLEN', '0'], ['XGROUP', 'DESTROY', 'emails', 'leat'], ['KEYS', '*'],
                  ['XADD', 'other', '*', 'a', 'b']):
        with pytest.raises(redis.ResponseError, match='permission|No permissions'):
            mine.execute_command(*words)


def test_functions_cannot_reach_another_queue(as_role, init):
    """leat's functions give a worker or operator no access to another queue's keys."""
    assert init().returncode == 0
    for role in ('worker', 'operator', 'enqueuer'):
        other = Queue(as_role(role), 'other')
        for call in (lambda: other.enqueue({'command': 'x'}), lambda: other.register('w')):
            with pytest.raises(redis.ResponseError, match='NOPERM|permission|No permissions'):
                call()


# ---- producers

def test_a_plain_producer_can_only_add(as_role, queue, client):
    """A plain producer may only XADD to the stream."""
    assert as_role('producer').xadd('emails', {'command': 'true'})
    user = client.execute_command('ACL', 'GETUSER', 'emails-producer')
    user = user if isinstance(user, dict) else dict(zip([str(k, 'ascii') for k in user[::2]], user[1::2]))
    assert user['commands'] in (b'-@all +xadd', '-@all +xadd')
    for line in ('XLEN emails', 'XRANGE emails - +', 'XREAD STREAMS emails 0', 'XDEL emails 1-1',
                 'XADD {emails}:go * a b', 'XADD {emails}:dead * a b', 'FCALL leat_version 0', 'INFO',
                 'TYPE emails'):
        assert client.execute_command('ACL', 'DRYRUN', 'emails-producer', *line.split()) != b'OK', line


def test_an_enqueuer(leat, config, init, client, daemon, folder):
    """An enqueuer can use every option of leat enqueue; it cannot read other tasks, and cannot write to the
    streams itself."""
    assert init().returncode == 0
    daemon(config('worker')).wait_ready()
    for words in (['true'], ['--delay', '1ms', 'true'], ['--unique', 'k', '--lane', 'a', '--id', 'x', 'true']):
        done = leat('enqueue', *words, config=config('enqueuer'))
        assert done.returncode == 0, done.stderr
    wait_succeeded(Queue(client), 3)
    assert denied(client, 'enqueuer') == []
    for line in ('XADD {emails}:go * a b', 'XRANGE emails - +', 'XREAD STREAMS emails 0',
                 'HGETALL {emails}:waiting'):
        assert client.execute_command('ACL', 'DRYRUN', 'emails-enqueuer', *line.split()) != b'OK', line


def test_leat_run_as_an_enqueuer(leat, config, init, client, daemon):
    """An enqueuer may not read the output of a task: leat run says that the task was added and goes on."""
    assert init().returncode == 0
    daemon(config('worker')).wait_ready()
    done = leat('run', 'true', config=config('enqueuer'))
    assert done.returncode == 125 and 'cannot follow the task' in done.stderr
    assert re.search(r'^leat: task \d+-\d+ was added and goes on; ', done.stderr, re.M)
    wait_succeeded(Queue(client), 1)


def test_a_program_as_enqueuer(as_role, init, client, daemon, config):
    """leat_add and leat_add_many need the rights of leat_enqueue and no others, and another queue is out of
    reach."""
    assert init().returncode == 0
    daemon(config('worker')).wait_ready()
    mine = Queue(as_role('enqueuer'))
    mine.program_add('command', 'true', 'lane', 'a', 'unique', 'k', 'unique_next', '1', 'id', 'x')
    more = [{'command': 'true', 'delay': '1ms'}, {'command': 'true', 'lane': 'a'}]
    mine.program_add(json.dumps(more), many=True)
    wait_succeeded(Queue(client), 3)
    assert denied(client, 'enqueuer') == []
    for many, args in ((False, ['command', 'true']), (True, ['[{"command": "true"}]'])):
        with pytest.raises(redis.ResponseError, match='NOPERM|permission|No permissions'):
            Queue(as_role('enqueuer'), 'other').program_add(*args, many=many)
    assert not client.exists('other')


def test_a_program_with_too_few_rights(queue, client, redis_server):
    """A user without access to one of the derived keys is refused before anything is written."""
    for missing in queue.keys[1:9]:
        client.execute_command('ACL', 'SETUSER', 'few', 'reset', 'on', '>few', '+@all',
                               *['~' + key for key in queue.keys[:9] if key != missing])
        few = Queue(redis_server.client(username='few', password='few'))
        with pytest.raises(redis.ResponseError, match="can't access at least one of the keys|ACL failure"):
            few.program_add('command', 'true', 'id', 'x', 'lane', 'a')
        assert not client.keys()


# ---- operators

def test_an_operator_can_use_every_command(leat, config, init, client, daemon, folder):
    """An operator can use every command but init."""
    assert init().returncode == 0
    queue = Queue(client)
    daemon(config('worker', retry={'max_attempts': 1}, queue={'scan': '200ms'})).wait_ready()

    def run(*words, expect=(0,), input=None):
        done = leat(*words, config=config('operator'), input=input)
        assert done.returncode in expect, (words, done, denied(client, 'operator'))
        return done.stdout

    run('run', 'echo', 'hello')
    tid = run('enqueue', '--result-ttl', '1h', 'true').split()[0]
    run('wait', tid)
    run('enqueue', '--file', '-', input='exit 1\nexit 2\n')
    wait_letters(queue, 2)
    later = run('enqueue', '--delay', '1h', '--lane', 'a', 'true').split()[0]
    for words in (['status'], ['status', '--lanes', '3'], ['list'], ['list', '--state', 'dead'],
                  ['show', later], ['explain', later], ['dead', 'list'],
                  ['dead', 'show', 'd' + queue.letters()[0][0]], ['conf'], ['conf', 'rate', '100/s'],
                  ['conf', 'lane:a', '2'], ['pause', '--wait'], ['resume'], ['drain', '--all'],
                  ['undrain', '--all'], ['move', '--lane', 'b', later],
                  ['edit', later, '--unset', 'lane', '--unique', 'u', '--expires', '9h'], ['pause'],
                  ['now', later],
                  ['cancel', later], ['resume'], ['wait', '--all', '--timeout', '30s']):
        run(*words)
    for words in [], [tid], ['--lane', 'a'], [queue.letters()[0][0]], [later]:
        run('explain', *words, expect=(0, 1, 2))
    run('dead', 'drop', '--all', '--yes')
    run('doctor', expect=(0, 1))
    client.hset(queue.running, 's1-1', b'Xdamaged')
    client.zadd(queue.delayed, {'1-1': 5})
    run('doctor', '--repair', expect=(0, 1, 2))
    (folder / 'export').write_text(run('export'))
    run('import', '--export', folder / 'export')
    assert denied(client, 'operator') == []


def test_an_operator_needs_more_rights_to_destroy_the_queue(leat, config, init, client):
    """leat destroy needs a selector that the file names. Without SCAN it leaves results. The manual gives both
    rights."""
    page = (ROOT / 'src/cli/man/leat-destroy.1').read_text()
    assert '.Dl ACL SETUSER thumbnails-operator +scan (+unlink ~thumbnails ~{thumbnails}:*)\n' in page
    assert init().returncode == 0
    queue = Queue(client)
    queue.add({'command': 'true'})
    client.set('{emails}:result:1-1', 'x')
    for rights, code, left in ((), 77, True), (['(+unlink ~emails ~{emails}:*)'], 0, False), (['+scan'], 0, False):
        client.execute_command('ACL', 'SETUSER', 'emails-operator', *rights)
        done = leat('destroy', 'emails', '--yes', config=config('operator'))
        assert done.returncode == code, done.stderr
        assert ('may not SCAN' in done.stderr) == (code == 0 and rights != ['+scan'])
        assert client.exists(queue.stream, queue.conf) == 2 * left
        assert client.exists('{emails}:result:1-1') == (rights != ['+scan'])
