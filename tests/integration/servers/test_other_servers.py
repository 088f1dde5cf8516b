"""Servers other than Redis 7 or later, and the features of Redis that leat uses."""
import re
from pathlib import Path

import pytest

from harness.polling import wait_until
from harness.queue import Queue
from harness.servers import replicated
from harness.servers.other_server import OtherServer
from harness.tasks import wait_succeeded

ROOT = Path(__file__).resolve().parents[3]
NEEDED = (7, 0, 0)
NEEDS = 'leat needs Redis 7.0 or later, or Valkey'

pytestmark = pytest.mark.usefixtures('quick_tasks')

# ---- servers


def info(version, *more):
    return '\n'.join(['# Server', f'redis_version:{version}', *more, 'run_id:abc', '# Persistence', 'loading:0',
                      'aof_enabled:1', '# Replication', 'role:master', ''])


@pytest.fixture
def other(folder, redis_server, base_config):
    """A function that puts such a server in front of redis_server, for leatd and leat."""
    made = []

    def make(*args):
        made.append(OtherServer(folder / 'other.sock', redis_server.socket, *args))
        base_config['redis']['socket'] = made[-1].path

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize('version, more, words', [
    ('6.2.14', [], ['the server reports Redis version 6.2.14']),
    ('6.3.4', ['executable:/usr/bin/keydb-server'], ['the server reports Redis version 6.3.4']),
    ('7.4.0', ['dragonfly_version:df-v1.21.2'], ['unknown command `FCALL`']),
], ids=['Redis 6', 'KeyDB', 'Dragonfly'])
def test_refused(daemon, leat, redis_server, other, version, more, words):
    """If the server is too old, or claims to be new but has no functions, leatd and leat exit with 78 and say
    what is needed; nothing is written."""
    other(info(version, *more), ('FCALL', 'FUNCTION'))
    worker = daemon()
    assert worker.wait_exit() == 78
    for text in [NEEDS, *words]:
        assert text in worker.log()
    done = leat('enqueue', 'true')
    assert done.returncode == 78 and NEEDS in done.stderr and 'unknown command `FCALL`' in done.stderr
    assert redis_server.client().dbsize() == 0


def test_valkey_passes(daemon, leat, redis_server, other, base_config):
    """Valkey, which reports Redis 7.2.4, has all that is needed."""
    other(info('7.2.4', 'server_name:valkey', 'valkey_version:8.0.1'))
    daemon().wait_ready()
    assert leat('enqueue', 'true').returncode == 0
    queue = Queue(redis_server.client(base_config['redis']['socket']))
    queue.program_add('command', 'true')
    queue.program_add('[{"command": "true"}, {"command": "true", "delay": "1ms"}]', many=True)
    wait_succeeded(Queue(redis_server.client()), 4)


def test_missing_right_of_newer_servers(daemon, leat, other):
    """Redis 7.2 and Valkey have their own texts for a missing right of a function: leatd and leat exit with
    77."""
    other(info('7.2.4', 'server_name:valkey', 'valkey_version:8.1.1'), (), {
        'FCALL': "ERR ACL failure in script: User worker has no permissions to run the 'xgroup|create' command "
                 'script: leat_register, on @user_function:600.'})
    worker = daemon()
    assert worker.wait_exit() == 77 and "no permissions to run the 'xgroup|create' command" in worker.log()
    done = leat('enqueue', 'true')
    assert done.returncode == 77 and 'no permissions' in done.stderr and 'ACL' in done.stderr


def test_sentinel_of_valkey_as_host(daemon, leat, other):
    """INFO of Valkey 8 has server_mode, and that of a sentinel no role: the exit status is 78, and the
    message says so."""
    other(info('7.2.4', 'server_name:valkey', 'valkey_version:8.1.1', 'server_mode:sentinel')
          .replace('role:master\n', ''), ('FCALL', 'FUNCTION'))
    worker = daemon()
    assert worker.wait_exit() == 78 and 'this server is a sentinel' in worker.log()
    assert leat('enqueue', 'true').returncode == 78


@pytest.mark.parametrize('version, warns', [('7.2.6', True), ('7.2.7', False)])
def test_cluster_that_crashes_when_a_slot_moves(daemon, folder, base_config, version, warns):
    """With a Cluster of a Redis that crashes if a slot moves under a blocked read, a worker warns once and
    goes on. A later version gets no warning."""
    node = replicated.Cluster.start_node(folder / 'node', {})
    other = OtherServer(None, node.socket, info(version, 'redis_mode:cluster'))
    try:
        node.ask('CONFIG', 'SET', 'cluster-announce-port', other.port)
        node.ask('CLUSTER', 'ADDSLOTSRANGE', 0, replicated.SLOTS - 1)
        wait_until(lambda: b'cluster_state:ok' in node.ask('CLUSTER', 'INFO'))
        base_config['redis'] = {'cluster': f'127.0.0.1:{other.port}'}
        worker = daemon().wait_log('registered with Redis')
        node.ask('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
        wait_until(lambda: worker.log().count('registered with Redis') == 2)
        assert worker.log().count('Redis bug #13311') == warns
        Queue(node.client()).add({'command': 'true'})
        wait_succeeded(Queue(node.client()), 1)
    finally:
        other.close()
        node.close()


# ---- features

WORD = re.compile(r"""(['"])([A-Z]{2,})\1""")
SPELLING = ('redis/server_command', 'queue/calls', 'queue/lists', 'queue/signature_use', 'queue/result_streams')
ERRORS = {'NOGROUP'}  # also words of Redis


def used_words():
    """Upper-case words in quotes. In Lua, and in the C files that build commands, these are commands and
    keywords among their arguments."""
    lua = '\n'.join(re.sub(r'--.*', '', path.read_text()) for path in ROOT.glob('src/queue/lua/*.lua'))
    c = '\n'.join((ROOT / f'src/{name}.c').read_text() for name in SPELLING)
    return {match[2] for match in WORD.finditer(lua + c)} - ERRORS


def number(since):
    return tuple(int(part) for part in since.decode().split('.'))


def as_dict(flat):
    return dict(zip(flat[::2], flat[1::2]))


def tokens(arguments, since):
    """{token: the version that introduced it} of a command's arguments."""
    found = {}
    for argument in map(as_dict, arguments):
        own = max(since, number(argument[b'since'])) if b'since' in argument else since
        if b'token' in argument:
            for word in argument[b'token'].decode().upper().split():
                found[word] = own
        if b'arguments' in argument:
            found.update(tokens(argument[b'arguments'], own))
    return found


def test_nothing_newer_than_needed(client):
    """Every command, subcommand and option of leat is in this server's COMMAND DOCS and exists since 7.0.0 or
    earlier, so that a test on a newer server finds what 7.0 lacks."""
    client.response_callbacks.clear()
    docs = {name.decode().upper(): as_dict(value)
            for name, value in as_dict(client.execute_command('COMMAND DOCS')).items()}
    words = used_words()
    commands = {word for word in words if word in docs}
    assert {'FCALL', 'FUNCTION', 'XAUTOCLAIM', 'XREADGROUP', 'WAIT', 'HRANDFIELD', 'CLIENT'} <= commands
    since = {word: number(docs[word][b'since']) for word in commands}
    for command in sorted(commands):
        parts = [docs[command]]
        for key, value in as_dict(docs[command].get(b'subcommands', [])).items():
            name = key.decode().upper().split('|')[1]
            if name in words:
                parts.append(as_dict(value))
                since.setdefault(name, number(parts[-1][b'since']))
        for part in parts:
            for token, first in tokens(part.get(b'arguments', []), number(part[b'since'])).items():
                if token in words:
                    since[token] = min(first, since.get(token, first))
    assert sorted(words - set(since)) == [], 'not of Redis, or not known to it'
    assert not {word: first for word, first in since.items() if first > NEEDED}
