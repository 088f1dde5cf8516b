"""Hostile fields have no effect on the real daemon, and it stays small."""
import json

import pytest

from harness.daemon import is_sanitized, merged
from harness.polling import wait_until
from harness.queue import LIBRARY
from harness.short_leases import wait_empty
from harness.tasks import (environment, letters, resident_kib, wait_file, wait_letters,
                           wait_succeeded)

pytestmark = pytest.mark.usefixtures('quick_tasks')

# on a busy machine Redis needs long for large tasks
PATIENT = {'redis': {'command_timeout': '5m'}, 'queue': {'lease': '15m'}}


def xadd(client, *flat):
    """Calls XADD directly, because redis-py accepts no name twice."""
    return client.execute_command('XADD', 'emails', '*', *flat).decode()


NAMES = {
    'exported function': b'BASH_FUNC_x%%',
    'newline': b'a\nLD_PRELOAD',
    'equals sign': b'LD_PRELOAD=/x',
    'empty': b'',
    'NUL': b'a\0b',
    'dash': b'a-b',
    'not UTF-8': b'\xff\xfe',
    'letters of others': 'größe'.encode(),
    'escape sequence': b'\x1b]0;owned\x07',
    'long': b'n' * 201,
    'very long': b'n' * 200000,
    'leat.tid': b'leat.tid',
    'leat.fields': b'leat.fields',
    'leat.': b'leat.',
}


@pytest.mark.parametrize('name', NAMES)
def test_name_refused(daemon, client, queue, folder, name):
    """A name that cannot be a variable, or that forges one of leat's, makes a complete dead letter with the
    reason, without a run, and the log has one record per line."""
    worker = daemon().wait_ready()
    xadd(client, 'command', f'touch {folder}/ran', NAMES[name], '1')
    [letter] = wait_letters(queue)
    assert letter.cause == 'refused' and letter.reason.startswith('field '), letter.own
    assert letter.fields == [b'command', f'touch {folder}/ran'.encode(), NAMES[name], b'1']
    assert len(letter.reason) < 300 and letter.reason.isprintable()
    worker.wait_log('refused')
    assert '\x1b' not in worker.log() and '\nLD_PRELOAD' not in worker.log()
    assert not (folder / 'ran').exists()
    wait_empty(queue)


def test_harmless_names(daemon, client, queue, folder):
    """LD_PRELOAD, BASH_ENV, ENV, PATH, IFS and the like become only TASK_… variables."""
    daemon({'task': {'shell': '/bin/bash'}}).wait_ready()
    (folder / 'evil').write_text(f'touch {folder}/owned\n')
    evil = {'LD_PRELOAD': '/nonexistent.so', 'LD_LIBRARY_PATH': '/x', 'BASH_ENV': f'{folder}/evil',
            'ENV': f'{folder}/evil', 'PATH': '/x', 'IFS': 'a', 'SHELLOPTS': 'xtrace', 'PS4': '$(id)',
            'PROMPT_COMMAND': 'id', 'HOME': '/x', 'LEAT_TASK': 'forged', 'TASK_x': 'y',
            '1': 'digit', '_': 'underscore'}
    client.xadd('emails', {'command': f'env -0 > {folder}/out; bash -c true', **evil})
    wait_succeeded(queue, 1)
    found = environment(folder / 'out')
    assert not (folder / 'owned').exists()
    for name, value in evil.items():
        assert found.pop(f'TASK_{name}'.encode()) == value.encode()
    assert found[b'PATH'] == b'/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
    assert found[b'LEAT_TASK'] != b'forged' and found[b'HOME'] != b'/x'
    assert not {name for name in found if name.startswith((b'LD_', b'BASH_E', b'ENV', b'IFS'))}


def test_values_are_data(daemon, client, queue, folder):
    """Values reach a configured command as data: quotes, substitutions, newlines."""
    daemon({'task': {'command': f'printf %s "$TASK_v" > {folder}/new; mv {folder}/new {folder}/out'}}
           ).wait_ready()
    value = f"'; touch {folder}/owned; \"$(touch {folder}/owned)`touch {folder}/owned`\n\\\xff%s"
    xadd(client, 'v', value.encode('latin-1'))
    assert wait_file(folder / 'out') == value.encode('latin-1')
    wait_succeeded(queue, 1)
    assert not (folder / 'owned').exists()


def test_command_that_looks_like_an_option(daemon, client, queue):
    """A command that begins with - or + is no option of the shell."""
    daemon({'retry': {'max_attempts': 1}}).wait_ready()
    xadd(client, 'command', '-c "echo no"')
    xadd(client, 'command', '+x')
    found = wait_letters(queue, 2)
    assert {letter.status for letter in found} == {'127'}
    assert all(letter.tail('stdout') == b'' for letter in found)


@pytest.mark.parametrize('doubled', ['command', 'payload', 'id', 'x', 'timeout'])
def test_doubled_fields(daemon, client, queue, folder, doubled):
    """A field that is given twice is refused, because readers might take different values."""
    daemon().wait_ready()
    flat = ['command', f'touch {folder}/ran'] if doubled != 'command' else []
    flat += [doubled, f'touch {folder}/ran', doubled, 'true']
    xadd(client, *flat)
    [letter] = wait_letters(queue)
    assert letter.cause == 'refused' and letter.reason == f'field {doubled} is given twice'
    assert letter.fields == [part.encode() for part in flat]
    assert not (folder / 'ran').exists()


def test_nul_in_values(daemon, client, queue, folder):
    """NUL in a value that becomes a variable is refused; in the payload and the id it is kept."""
    daemon().wait_ready()
    xadd(client, 'command', f'touch {folder}/ran', 'x', b'a\0b')
    [letter] = wait_letters(queue)
    assert 'field x holds a NUL' in letter.reason and not (folder / 'ran').exists()
    xadd(client, 'command', f'cat > {folder}/new; mv {folder}/new {folder}/out', 'payload', b'a\0b')
    assert wait_file(folder / 'out') == b'a\0b'


@pytest.mark.parametrize('size, runs', [(131071 - 7, True), (131071 - 6, False), (131072, False)])
def test_long_value(daemon, client, queue, folder, size, runs):
    """A variable may be as long as the kernel allows, to the byte; longer ones are refused."""
    daemon({'retry': {'max_attempts': 1}}).wait_ready()
    xadd(client, 'command', f'printf %s "$TASK_x" | wc -c > {folder}/out', 'x', b'v' * size)
    if runs:
        wait_succeeded(queue, 1)
        assert int((folder / 'out').read_text()) == size
    else:
        [letter] = wait_letters(queue)
        assert letter.cause == 'refused' and 'put it into payload' in letter.reason
        assert letter.fields[3] == b'v' * size


def test_longest_command(daemon, client, queue):
    """A command as long as the kernel allows runs, and one byte more is refused."""
    daemon({'retry': {'max_attempts': 1}}).wait_ready()
    for size in (131071, 131072):
        xadd(client, 'command', 'true #' + 'x' * (size - 6))
    [letter] = wait_letters(queue)
    assert letter.cause == 'refused' and 'longer than 131071' in letter.reason
    wait_succeeded(queue, 1)


def test_many_fields(daemon, client, queue, folder):
    """1,000 fields run; 1,001, 5,000 and 100,000 are refused, and no byte of them is lost."""
    daemon().wait_ready()
    command = ['command', f'env | grep -c ^TASK_f > {folder}/out']
    for count in (1000, 1001, 5000, 100000):
        xadd(client, *command, *[part for i in range(count - 1) for part in (f'f{i}', i)])
    wait_succeeded(queue, 1)
    assert (folder / 'out').read_text() == '999\n'
    found = wait_letters(queue, 3)
    assert all(letter.cause == 'refused' and letter.reason == 'more than 1000 fields'
               for letter in found)
    packed = [letter.bytes[b'leat.packed'] for letter in found]
    for last, one in zip((b'999', b'4998', b'99998'), packed):
        assert b'f0' in one and one.endswith(last)
    wait_empty(queue)


def test_many_long_fields(daemon, client, queue, folder):
    """A task whose fields are too large for an environment is refused before the kernel refuses it."""
    daemon().wait_ready()
    big = b'v' * 100000
    xadd(client, 'command', f'touch {folder}/a', *[part for i in range(10) for part in (f'x{i}', big)])
    xadd(client, 'command', f'touch {folder}/b', *[part for i in range(11) for part in (f'x{i}', big)])
    [letter] = wait_letters(queue)
    assert letter.cause == 'refused' and '1 MiB' in letter.reason
    wait_succeeded(queue, 1)
    assert (folder / 'a').exists() and not (folder / 'b').exists()


def test_forged_trailer(daemon, client, queue, folder):
    """A producer that imitates leat's own fields in its entry gains nothing: neither attempts nor another
    task's id are read from them."""
    daemon().wait_ready()
    tid = xadd(client, 'command', f'touch {folder}/ran', 'leat.tid', '1-1', 'leat.attempts', '-5',
               'leat.crashes', '0', 'leat.fence', '99', 'leat.enqueued', '0', 'leat.fields', '1')
    [letter] = wait_letters(queue)
    assert letter.cause == 'refused' and letter.tid == tid and 'reserved' in letter.reason
    assert not (folder / 'ran').exists() and len(letter.fields) == 14


def test_not_utf8_everywhere(daemon, client, queue, folder, leat):
    """If command, value and id are not UTF-8, the task runs, and the log and leat escape them."""
    worker = daemon({'retry': {'max_attempts': 1}}).wait_ready()
    xadd(client, b'command', b"printf '%s' \"\xff$TASK_x\" > " + str(folder).encode() + b'/out; exit 1',
         'x', b'\xc3\x28', 'id', b'\xf0\x9f\x1b[31m')
    [letter] = wait_letters(queue)
    assert (folder / 'out').read_bytes() == b'\xff\xc3\x28'
    assert letter.fields[5] == b'\xf0\x9f\x1b[31m'
    worker.wait_log('; dead-lettered')
    assert '\x1b' not in worker.log()
    shown = leat('dead', 'show', letter.tid)
    assert shown.returncode == 0 and '\x1b' not in shown.stdout
    rows = leat('dead', 'list', '--json')
    assert rows.returncode == 0 and json.loads(rows.stdout.splitlines()[0])


@pytest.mark.skipif(is_sanitized(), reason='AddressSanitizer keeps what was freed')
def test_payloads_of_running_tasks(daemon, client, queue, latch, folder):
    """The payload of a running task is in its stdin, and the daemon is as small as before."""
    worker = daemon(merged(PATIENT, {'queue': {'concurrency': 3}})).wait_ready()
    xadd(client, 'command', 'true')
    wait_succeeded(queue, 1)
    before = resident_kib(worker.pid)
    for number in range(2):
        xadd(client, 'command', f'echo > {folder}/{number}; {latch.wait}; wc -c >> {folder}/size',
             'payload', b'p' * (24 << 20))
        wait_file(folder / str(number), timeout=600)

    wait_until(lambda: resident_kib(worker.pid) < before + 8 * 1024,
               message=lambda: f'{before} KiB before, {resident_kib(worker.pid)} KiB then')
    latch.open()
    wait_until(lambda: wait_file(folder / 'size').split() == [b'%d' % (24 << 20)] * 2, 600)


@pytest.mark.skipif(is_sanitized(), reason='AddressSanitizer keeps what was freed')
def test_memory_stays_bounded(daemon, client, queue):
    """After payloads of 64 MiB, and refused values, the daemon is as small as before, even if no other task
    comes."""
    worker = daemon(merged(PATIENT, {'queue': {'concurrency': 2}})).wait_ready()
    xadd(client, 'command', 'true')
    wait_succeeded(queue, 1)
    before = resident_kib(worker.pid)
    for _ in range(2):
        xadd(client, 'command', 'cat >/dev/null', 'payload', b'p' * (64 << 20))
        xadd(client, 'command', 'true', 'x', b'v' * (16 << 20))
        xadd(client, 'command', 'true', *[part for i in range(5000) for part in (f'f{i}', 'v' * 100)])
    wait_succeeded(queue, 3, 600)
    assert len(letters(queue)) == 4
    wait_until(lambda: resident_kib(worker.pid) < before + 8 * 1024,
               message=lambda: f'{before} KiB before, {resident_kib(worker.pid)} KiB then')


def test_a_task_that_cannot_be_decoded(daemon, client, queue, folder):
    """If Redis answers one of the claimed tasks in another form, it becomes a dead letter, and the others run."""
    source = LIBRARY.read_text()
    answer = 'task.fence, task.enqueued, fields }'
    assert source.count(answer) == 1
    queue.load(source.replace(answer, "fields[2] == 'bad' and 'x' or " + answer))
    for name in ('bad', f'echo >> {folder}/ran', 'bad', f'echo >> {folder}/ran'):
        xadd(client, 'command', name)
    worker = daemon({'queue': {'concurrency': 4}}).wait_ready()
    found = wait_letters(queue, 2)
    assert all(letter.cause == 'refused' and 'cannot be read' in letter.reason for letter in found)
    assert [letter.fields[1] for letter in found] == [b'bad'] * 2
    wait_succeeded(queue, 2)
    assert 'unexpected reply' not in worker.log()
    wait_empty(queue)
