"""leat enqueue and leat run sign tasks for workers that require signatures."""
import json
import os
import stat
import time

import pytest

from harness.functions.signing import Key, signature
from harness.queue import text
from harness.tasks import wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')
EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_OSERR, EX_CONFIG = 64, 65, 66, 71, 78


@pytest.fixture
def key(folder):
    return Key(folder, '2026a')


@pytest.fixture
def other(folder):
    return Key(folder, '2026b')


@pytest.fixture
def required(key, other):
    return {'security': {'signatures': 'required', 'key_files': f'{key.entry} {other.entry}'}}


def sent(queue):
    """The fields of the tasks in the stream, in order."""
    return [{text(flat[i]): flat[i + 1] for i in range(0, len(flat), 2)} for _, flat in queue.entries('stream')]


def fields_of(shown):
    """The fields of leat show --json, as input of leat enqueue --json-lines."""
    return {field['name']: field['value'] for field in shown['fields']}


def is_good(fields, key):
    """Whether the signature of these fields is right, by an HMAC other than leat's."""
    given = text(fields['signature'])
    return given == signature(key.secret, key.name, given.split(':')[2], 'emails', fields)


def test_signed_tasks_run(daemon, leat, required, queue, folder):
    """Single tasks, lines, JSON, a delayed task and leat run all run on a worker that requires signatures."""
    daemon(required).wait_ready()
    out = f'>> {folder}/out'

    def enqueue(*args, **options):
        done = leat('enqueue', *args, config=required, **options)
        assert done.returncode == 0, done.stderr
    enqueue('--payload', 'x', '--field', 'A=b', f'echo one {out}')
    enqueue('--delay', '1', f'echo two {out}')
    enqueue('--file', '-', input=''.join(f'echo line {out}\n' for _ in range(700)))
    enqueue('--file', '-', '--json-lines', input=json.dumps(
        {'command': f'wc -c {out}', 'payload_base64': 'AP8=', 'unique': 'u', 'lane': 'a'}))
    done = leat('run', 'echo three', config=required)
    assert (done.returncode, done.stdout) == (0, 'three\n'), done.stderr
    wait_succeeded(queue, 704, 300)
    assert len((folder / 'out').read_text().splitlines()) == 703


def test_which_key(leat, required, queue, key, other, folder):
    """The key is the configuration's first, or the named one, from there or from a file, and the signature is
    right."""
    third = Key(folder, 'third')
    here = os.path.relpath(third.path)
    for args in ([], ['--sign', '2026b'], ['--sign', f'third:{third.path}'], ['--sign', f'third:{here}']):
        assert leat('enqueue', *args, 'true', config=required).returncode == 0
    off = {'security': {'key_files': other.entry}}
    assert leat('enqueue', '--sign', '2026b', 'true', config=off).returncode == 0
    assert leat('enqueue', 'true', config=off).returncode == 0
    tasks = sent(queue)
    for fields, by in zip(tasks, (key, other, third, third, other)):
        assert is_good(fields, by)
    assert 'signature' not in tasks[5]
    nonces = {text(fields['signature']).split(':')[2] for fields in tasks[:5]}
    assert len(nonces) == 5 and all(len(nonce) == 32 for nonce in nonces)


def test_validity(leat, required, queue):
    """A signature is valid for a day from the due time, or as --valid says; a given not_after is kept."""
    day = 86400
    for args in (['true'], ['--valid', '1h', 'true'], ['--delay', '30d', 'true'], ['--at', '@1', 'true'],
                 ['--field', 'not_after=4000000000', 'true']):
        assert leat('enqueue', *args, config=required).returncode == 0
    now = time.time()
    rows = {}
    for fields in sent(queue):
        rows[len(rows)] = int(fields['not_after']) - now
    assert abs(rows[0] - day) < 60 and abs(rows[1] - 3600) < 60 and abs(rows[2] - day) < 60
    assert rows[3] > 4e9 - now - 1
    [tid] = queue.redis.hkeys(queue.waiting)
    shown = fields_of(json.loads(leat('show', text(tid), '--json', config=required).stdout))
    assert abs(int(shown['not_after']) - now - 31 * day) < 60


@pytest.mark.parametrize('valid', ['0', '500ms', '366d', '500d'])
def test_too_long_and_too_short(leat, required, queue, valid):
    """A validity that workers would refuse is not sent."""
    done = leat('enqueue', '--valid', valid, 'true', config=required)
    assert done.returncode == EX_USAGE and 'use one from 1s to 365d' in done.stderr
    assert queue.places() == {}
    assert leat('enqueue', '--valid', '365d', 'true', config=required).returncode == 0
    done = leat('enqueue', '--valid', '365d', 'true')
    assert done.returncode == EX_USAGE and '--valid needs --sign' in done.stderr


def test_an_expired_dead_letter_can_be_signed_again(daemon, leat, required, key, queue, client, folder):
    """The fields of a dead letter that expired can be enqueued again: --sign replaces the signature and the
    time."""
    daemon(required).wait_ready()
    client.xadd('emails', key.sign({'command': f'echo $TASK_A > {folder}/out', 'A': 'b'}, valid=-5))
    wait_letters(queue)
    [letter] = json.loads(leat('dead', 'show', '--all', '--json').stdout)
    line = json.dumps(fields_of(letter))
    done = leat('enqueue', '--file', '-', '--json-lines', '--sign', '2026a', input=line, config=required)
    assert done.returncode == 0, done.stderr
    wait_succeeded(queue, 1)
    assert (folder / 'out').read_text() == 'b\n'
    # unchanged, it is refused again
    assert leat('enqueue', '--file', '-', '--json-lines', input=line, config=required).returncode == 0
    assert 'expired at' in wait_letters(queue, 2)[1].reason


def broken(folder, key):
    closed = Key(folder, 'closed')
    closed.path.chmod(stat.S_IRUSR | stat.S_IROTH)
    shared = Key(folder, 'shared')
    shared.path.chmod(0o660)
    return closed


@pytest.mark.parametrize('sign, code, said', [
    ('nobody', EX_USAGE, "has no key 'nobody'; use --sign NAME:FILE"),
    ('a:/none', EX_NOINPUT, '/none: No such file'),
    ('closed:FOLDER/closed.key', EX_NOINPUT, 'is accessible to all users'),
    ('shared:FOLDER/shared.key', EX_NOINPUT, 'is writable by its group; run: '),
    ('a b:FOLDER/2026a.key', EX_NOINPUT, 'name of a key'),
    (':FOLDER/2026a.key', EX_NOINPUT, 'name of a key'),
])
def test_no_such_key(leat, required, queue, folder, key, sign, code, said):
    """Without the key nothing is sent, and the message says why."""
    broken(folder, key)
    for args in (['enqueue', '--sign', sign.replace('FOLDER', str(folder)), 'true'],
                 ['enqueue', '--file', '-', '--sign', sign.replace('FOLDER', str(folder))],
                 ['run', '--sign', sign.replace('FOLDER', str(folder)), 'true']):
        done = leat(*args, config=required)
        assert done.returncode == (125 if args[0] == 'run' else code)
        assert said in done.stderr and key.secret not in done.stderr
    assert queue.places() == {}


def test_other_commands_need_no_keys(leat, folder, queue):
    """A user who must not read the keys can read and control, but not enqueue."""
    config = {'security': {'signatures': 'required', 'key_files': f'a:{folder}/none'}}
    queue.register('w1')
    for args in (['status'], ['list'], ['dead', 'list'], ['doctor']):
        done = leat(*args, config=config)
        assert 'none' not in done.stderr and done.returncode < 64, done.stderr
    assert leat('enqueue', 'true', config=config).returncode == EX_NOINPUT


def test_nothing_unsigned_is_imported(leat, required, queue, client):
    """leat import says that workers would refuse unsigned tasks, and takes nothing."""
    client.lpush('jobs', 'true')
    done = leat('import', 'jobs', '--field', 'command', config=required)
    assert done.returncode == EX_CONFIG and 'signatures = required' in done.stderr
    assert client.llen('jobs') == 1 and queue.places() == {}


def test_libcrypto_cannot_be_loaded(leat, required, key, queue, folder):
    """libcrypto is loaded for signing only: leat says if it cannot be, sends nothing, and works without keys."""
    if 'built without TLS' not in leat('status', config={'redis': {'tls': 'yes'}}).stderr:
        pytest.skip('with TLS, libcrypto comes with libssl')
    (folder / 'libcrypto.so.3').write_bytes(b'')
    broken = {'LD_LIBRARY_PATH': str(folder)}
    done = leat('enqueue', 'true', config=required, env=broken)
    assert done.returncode == EX_OSERR and 'libcrypto cannot be loaded' in done.stderr
    assert queue.places() == {}
    assert leat('enqueue', 'true', env=broken).returncode == 0


def test_listed_commands(leat, queue):
    """An unlisted name, or words after a listed one, are refused before anything is sent."""
    config = {'security': {'commands': 'listed'}, 'command.thumbs': {'program': 'true', 'arguments': '{SIZE}'}}
    assert leat('enqueue', '--field', 'SIZE=64', 'thumbs', config=config).returncode == 0
    done = leat('enqueue', 'thumb', config=config)
    assert done.returncode == EX_DATAERR and 'no [command.thumb]' in done.stderr
    done = leat('enqueue', 'thumbs', '--big', config=config)
    assert done.returncode == EX_USAGE and 'with --field' in done.stderr
    done = leat('enqueue', 'thumbs', config=config)
    assert done.returncode == EX_DATAERR and 'field SIZE is missing' in done.stderr
    done = leat('enqueue', '--field', 'SIZE=1', '--file', '-', input='thumbs\nrm -rf x\n', config=config)
    assert done.returncode == EX_DATAERR and '-:2: the configuration has no [command.rm -rf x]' in done.stderr
    assert [text(fields['command']) for fields in sent(queue)] == ['thumbs', 'thumbs']


def test_a_listed_command_may_need_the_signature(daemon, leat, required, queue, folder):
    """{signature} and {not_after} in a listed command are filled in by the signing, for one task or many."""
    required['security']['commands'] = 'listed'
    program = folder / 'show'
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {folder}/out\n')
    program.chmod(0o755)
    config = {**required, 'command.show': {'program': str(program), 'arguments': '{not_after} {signature}'}}
    daemon(config).wait_ready()
    assert leat('enqueue', 'show', config=config).returncode == 0
    assert leat('enqueue', '--file', '-', input='show\n', config=config).returncode == 0
    wait_succeeded(queue, 2)
    lines = [line.split() for line in (folder / 'out').read_text().splitlines()]
    assert [line[0].isdigit() and ':2026a:' in line[1] for line in lines] == [True, True]
    done = leat('enqueue', 'show', config={**config, 'security': {'commands': 'listed'}})
    assert done.returncode == EX_DATAERR and 'field not_after is missing' in done.stderr
