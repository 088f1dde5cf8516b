"""Tasks on the real daemon: their input and environment, and their outcomes."""
import hashlib
import os
import signal
import time

import pytest

from harness.daemon import merged, write_config
from harness.polling import wait_until
from harness.short_leases import wait_empty
from harness.tasks import environment, letters, wait_file, wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')


# ---- ways into the queue

def test_plain_xadd_runs(daemon, client, folder):
    """A task that was added by plain XADD, before the first worker, runs and leaves nothing in Redis."""
    tid = client.xadd('emails', {'command': f'echo done > {folder}/out'}).decode()
    worker = daemon().wait_ready()
    wait_file(folder / 'out')
    wait_until(lambda: client.xlen('emails') == 0)
    assert client.exists('{emails}:running', '{emails}:waiting', '{emails}:dead') == 0
    worker.wait_log(f'task {tid}: attempt 1 succeeded: exit 0')


def test_fcall_runs(daemon, client, queue, folder):
    """A task of a bare FCALL of leat_enqueue runs, and its id is answered."""
    daemon().wait_ready()
    reply = client.execute_command(
        'FCALL', 'leat_enqueue', 9, *queue.keys[:9], '0', '1', 'command',
        f'echo $LEAT_TASK > {folder}/out')
    assert reply[:2] == [1, b'new']
    assert wait_file(folder / 'out').strip() == reply[2]
    wait_succeeded(queue, 1)


# ---- standard input

def bytes_of(size):
    """Every byte value, NUL and newlines included, without a period of a buffer's size."""
    return (bytes(range(256)) + b'\0\0leat')[:size] * (size // 262 + 1) if size else b''


@pytest.mark.parametrize('size', [0, 1, 131072, 64 << 20])
def test_payload_is_stdin(daemon, queue, folder, size):
    """The payload is the task's stdin, byte for byte, whatever its size."""
    payload = bytes_of(size)[:size]
    # a claim that takes longer than the timeout, and a task that takes so long to arrive that too little of its
    # lease is left, are repeated
    daemon({'redis': {'command_timeout': '2m'}, 'queue': {'lease': '15m'}}).wait_ready()
    queue.add({'command': f'sha256sum > {folder}/out', 'payload': payload})
    digest = wait_file(folder / 'out', 64, 120).split()[0].decode()
    assert digest == hashlib.sha256(payload).hexdigest()
    wait_succeeded(queue, 1)


def test_payload_cannot_be_changed(daemon, queue, folder):
    """Several readers in one task see the same payload from its beginning, and no process can write to it."""
    daemon().wait_ready()
    queue.add({'payload': b'one\0two', 'command':
               f'cat /dev/stdin > {folder}/first; (echo x > /dev/stdin) 2>/dev/null;'
               f' cat /dev/stdin > {folder}/again; echo > {folder}/done'})
    wait_file(folder / 'done')
    assert (folder / 'first').read_bytes() == (folder / 'again').read_bytes() == b'one\0two'


@pytest.mark.parametrize('config, fields', [
    ({'task': {'stdin': 'null'}}, {'payload': b'unread'}),
    ({}, {}),
], ids=['stdin = null', 'no payload'])
def test_stdin_null(daemon, queue, folder, config, fields):
    """Without a payload, or with stdin = null, a task reads /dev/null."""
    daemon(config).wait_ready()
    queue.add({'command': f'(wc -c; readlink /proc/self/fd/0) > {folder}/out', **fields})
    wait_until(lambda: wait_file(folder / 'out').count(b'\n') == 2)
    assert (folder / 'out').read_bytes() == b'0\n/dev/null\n'


# ---- environment

def test_environment(daemon, queue, folder):
    """A task's environment is what the manual lists, without the daemon's own variables; the second attempt
    has its number and a greater fencing token."""
    home = {'HOME': '/root-of-test', 'USER': 'tester', 'LOGNAME': 'tester', 'LANG': 'C.UTF-8'}
    foreign = {'SECRET': 'x', 'LD_LIBRARY_PATH': '/nowhere', 'TASK_FORGED': 'x', 'LEAT_TASK': 'x'}
    daemon({'task': {'directory': folder, 'timeout': '30s',
                     'environment': ['COLOUR=blue = green', 'LANG=de_AT']},
            'retry': {'max_attempts': 7}}, env={**home, **foreign}).wait_ready()
    line = f'env -0 > {folder}/new; mv {folder}/new {folder}/env-$LEAT_ATTEMPT'
    before = time.time()
    [tid] = queue.add({'command': f'{line}; test $LEAT_ATTEMPT = 2', 'id': 'order 7', 'size': 'big',
                       'Text_2': 'ü\n"$(id)"', 'empty': ''})
    wait_succeeded(queue, 1)
    first, second = environment(folder / 'env-1'), environment(folder / 'env-2')
    [worker] = queue.redis.hkeys(queue.workers)

    # times and what is made of them are compared separately
    fence = int(first.pop(b'LEAT_FENCE'))
    enqueued, deadline = first.pop(b'LEAT_ENQUEUED_AT'), float(first.pop(b'LEAT_DEADLINE'))
    assert enqueued.replace(b'.', b'') == tid.split('-')[0].encode()
    assert before + 29 < deadline < time.time() + 31
    own = {
        'PATH': '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'SHELL': '/bin/sh',
        'PWD': str(folder), **home, 'LANG': 'de_AT', 'COLOUR': 'blue = green',
        'LEAT_TASK': tid, 'LEAT_ID': 'order 7', 'LEAT_QUEUE': 'emails', 'LEAT_ATTEMPT': '1',
        'LEAT_MAX_ATTEMPTS': '7', 'LEAT_WORKER': worker.decode(),
        'TASK_size': 'big', 'TASK_Text_2': 'ü\n"$(id)"', 'TASK_empty': '',
    }
    assert first == {name.encode(): value.encode() for name, value in own.items()}
    assert second[b'LEAT_ATTEMPT'] == b'2' and int(second[b'LEAT_FENCE']) > fence > 1e15
    assert second[b'LEAT_ENQUEUED_AT'] == enqueued and float(second[b'LEAT_DEADLINE']) > deadline
    assert set(second) == set(first) | {b'LEAT_ENQUEUED_AT', b'LEAT_DEADLINE', b'LEAT_FENCE'}


def test_no_deadline_without_timeout(daemon, queue, folder):
    """timeout = none: LEAT_DEADLINE is unset unless the task has its own timeout."""
    daemon({'task': {'timeout': 'none'}}).wait_ready()
    queue.add({'command': f'env -0 > {folder}/a'},
              {'command': f'env -0 > {folder}/b', 'timeout': '5s'})
    wait_succeeded(queue, 2)
    assert b'LEAT_DEADLINE' not in environment(folder / 'a')
    assert b'LEAT_DEADLINE' in environment(folder / 'b')


def test_environment_without_a_shell(daemon, queue, folder):
    """A simple command that needs no shell has the same variables as one with a shell."""
    daemon({'task': {'directory': folder}}).wait_ready()
    script = folder / 'script'
    script.write_text(f'#!/bin/sh\nenv -0 > {folder}/new.$$\nmv {folder}/new.$$ $1\n')
    script.chmod(0o755)
    queue.add({'command': f'{script} {folder}/plain', 'x': '1'},
              {'command': f': ; {script} {folder}/shell', 'x': '1'})
    wait_succeeded(queue, 2)
    plain, shell = environment(folder / 'plain'), environment(folder / 'shell')
    assert set(plain) == set(shell)
    assert {name for name in plain if plain[name] != shell[name]} <= {
        b'LEAT_TASK', b'LEAT_DEADLINE', b'LEAT_ENQUEUED_AT'}


def test_config_command(daemon, queue, folder):
    """The configured command runs for every task, with its fields and payload; a task with its own command is
    refused and never runs."""
    daemon({'task': {'command': f'cat > {folder}/new; mv {folder}/new "{folder}/$TASK_name"'}}
           ).wait_ready()
    queue.add({'name': 'a b', 'payload': 'text'})
    assert wait_file(folder / 'a b') == b'text'
    queue.add({'name': 'c', 'command': f'touch {folder}/forbidden'})
    [letter] = wait_letters(queue)
    assert letter.cause == 'refused' and 'brings a command' in letter.reason
    assert not (folder / 'forbidden').exists() and not (folder / 'c').exists()


# ---- end of a task

@pytest.mark.parametrize('code, config, outcome', [
    (0, {}, 'succeeded'),
    (3, {'success': '3'}, 'succeeded'),
    (0, {'success': '3'}, 'succeeded'),
    (4, {'success': '3, 5-9'}, 'retried'),
    (7, {'success': '3, 5-9'}, 'succeeded'),
    (64, {'permanent': '64-78, 100'}, 'dead'),
    (100, {'permanent': '64-78, 100'}, 'dead'),
    (79, {'permanent': '64-78, 100'}, 'retried'),
    (127, {}, 'retried'),
])
def test_exit_codes(daemon, queue, code, config, outcome):
    """[retry] success and permanent decide about exit codes."""
    daemon({'retry': {'base': '1h', 'cap': '1h', **config}}).wait_ready()
    queue.add({'command': f'exit {code}'})
    wait_until(lambda: queue.counter(outcome) == 1)
    others = {'succeeded', 'retried', 'dead'} - {outcome}
    assert all(queue.counter(other) == 0 for other in others)
    assert len(letters(queue)) == (outcome == 'dead')


def test_backoff(daemon, queue, late):
    """Without jitter the pauses are base · factor^n up to the cap, and the dead letter has them."""
    daemon({'retry': {'base': '100ms', 'factor': '2.5', 'cap': '400ms', 'max_attempts': 4,
                      'jitter': 'none'}}).wait_ready()
    queue.add({'command': 'exit 9'})
    [letter] = wait_letters(queue)
    lines = letter.lines()
    assert [line[0] for line in lines] == [1, 2, 3, 4]
    pauses = [later[2] - earlier[3] for earlier, later in zip(lines, lines[1:])]
    for pause, wanted in zip(pauses, (100, 250, 400)):
        assert wanted <= pause < wanted + 500 + 1000 * late.start(), pauses
    wait_empty(queue)


def test_full_jitter(daemon, queue):
    """With full jitter the pauses vary between zero and the computed pause."""
    daemon({'retry': {'base': '1h', 'cap': '1h', 'jitter': 'full'}}).wait_ready()
    before = queue.now()
    queue.add(*[{'command': 'false'}] * 30)
    wait_until(lambda: queue.counter('retried') == 30)
    pauses = [(due - before) / 3600e3 for _, due in
              queue.redis.zrange(queue.delayed, 0, -1, withscores=True)]
    assert len(pauses) == 30 and all(0 <= pause < 1.01 for pause in pauses)
    assert min(pauses) < 0.4 and max(pauses) > 0.6


def test_own_max_attempts(daemon, queue, folder):
    """A task's own max_attempts overrides the configured one, up or down."""
    daemon({'retry': {'max_attempts': 3, 'base': '1ms'}}).wait_ready()
    for name, most in (('one', 1), ('five', 5)):
        queue.add({'command': f'echo $LEAT_MAX_ATTEMPTS >> {folder}/{name}; false',
                   'max_attempts': most})
    wait_letters(queue, 2)
    assert (folder / 'one').read_text().split() == ['1']
    assert (folder / 'five').read_text().split() == ['5'] * 5


def test_dead_letter_keeps_every_byte(daemon, queue, folder):
    """A dead letter has every field unchanged, in order, and the task's end: cause, status, attempts, worker,
    times, history, and exactly the last 4 KiB of both outputs."""
    output = bytes_of(20000)[:20000]
    (folder / 'text').write_bytes(output)
    fields = [('command', f'cat {folder}/text; tac {folder}/text >&2; exit 5'), ('id', b'\xff\0id'),
              ('payload', bytes_of(1 << 20)), ('z', b'\xfe\xff last first'), ('a', ''),
              ('max_attempts', '2')]
    worker = daemon({'retry': {'base': '20ms'}}).wait_ready()
    before = queue.now()
    [tid] = queue.add(fields)
    [letter] = wait_letters(queue)
    flat = [part.encode() if isinstance(part, str) else part for field in fields for part in field]
    assert letter.fields == flat
    assert (letter.cause, letter.status, letter.attempts) == ('exit', '5', '2')
    assert letter.tid == tid and letter.enqueued == tid.split('-')[0]

    # worker and times
    [consumer] = queue.redis.hkeys(queue.workers)
    assert letter.worker == consumer.decode() and f':{worker.pid}:' in letter.worker
    assert os.uname().nodename in letter.worker
    first, second = letter.lines()
    assert before <= int(letter.enqueued) <= first[2] <= first[3] < second[2] <= second[3]
    assert second[2] == int(letter.begun) and second[3] <= int(letter.died) <= queue.now()
    for number, line in enumerate((first, second), 1):
        assert line[:2] == (number, letter.worker) and line[4:] == ('exit', '5')

    # the output
    assert letter.tail('stdout') == output[-4096:]
    backwards = b''.join(reversed(output.splitlines(keepends=True)))
    assert len(letter.tail('stderr')) == 4096 and len(backwards) == len(output)
    assert queue.held() == {} and queue.places() == {tid: ['dead']}


@pytest.mark.parametrize('size, kept', [(99, 99), (100, 100), (101, 100), (200, 100), (100000, 100)])
def test_output_tail(daemon, queue, folder, size, kept):
    """[dead] output_tail limits the kept output, to the byte."""
    output = bytes_of(size)[:size]
    (folder / 'text').write_bytes(output)
    daemon({'dead': {'output_tail': 100}, 'retry': {'max_attempts': 1}}).wait_ready()
    queue.add({'command': f'cat {folder}/text; false'})
    [letter] = wait_letters(queue)
    assert letter.tail('stdout') == output[-kept:] and letter.tail('stderr') == b''


# ---- timeouts and signals

def test_timeout_is_term_then_kill(daemon, queue, late):
    """A task past its timeout gets TERM, and KILL after the grace; the cause is timeout."""
    daemon({'task': {'timeout': '10m'}}).wait_ready()
    queue.add({'command': "trap '' TERM; exec sleep 60", 'timeout': '4s', 'max_attempts': 1})
    [letter] = wait_letters(queue)
    [(_, _, begun, ended, cause, _)] = letter.lines()
    assert letter.cause == cause == 'timeout'
    assert 4300 <= ended - begun < 6000 + 1000 * late.start()
    wait_empty(queue)


def test_timeout_term_is_enough(daemon, queue):
    """If the task ends at TERM, leat waits no longer; whatever its exit status, it has timed out."""
    daemon({'task': {'timeout': '4s', 'kill_grace': '20s'}, 'queue': {'lease': '60s'},
            'retry': {'max_attempts': 1}}).wait_ready()
    queue.add({'command': "trap 'echo bye; exit 0' TERM; sleep 60 & wait"})
    [letter] = wait_letters(queue)
    [(_, _, begun, ended, cause, _)] = letter.lines()
    assert cause == 'timeout' and 4000 <= ended - begun < 20000
    assert letter.tail('stdout') == b'bye\n'


def test_timeout_is_retried(daemon, queue, folder):
    """A timeout uses one attempt, and the next one may succeed."""
    daemon({'task': {'timeout': '4s'}}).wait_ready()
    queue.add({'command': f'echo >> {folder}/runs; test $LEAT_ATTEMPT = 2 || exec sleep 60'})
    wait_succeeded(queue, 1)
    assert (folder / 'runs').read_text() == '\n\n' and queue.counter('retried') == 1


@pytest.mark.parametrize('started_in', ['/', 'folder'])
def test_directory(daemon, queue, folder, started_in):
    """Tasks start in their home, here /, wherever the daemon was started; after a reload in [task] directory."""
    worker = daemon(start=False, env={'HOME': '/'})
    worker.popen = {'cwd': started_in if started_in == '/' else folder}
    worker.start().wait_ready()
    queue.add({'command': f'pwd > {folder}/first'})
    assert wait_file(folder / 'first', 2) == b'/\n'
    write_config(worker.config_path, merged(worker.sections, {'task': {'directory': folder}}))
    worker.reload()
    worker.wait_log('reloaded')
    queue.add({'command': 'pwd > second'})
    assert wait_file(folder / 'second', len(str(folder)) + 1) == f'{folder}\n'.encode()


@pytest.mark.parametrize('number', [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM])
def test_signal_death(daemon, queue, number):
    """A task that dies of a signal has failed, with the signal as its status; for a KILL that leat did not
    send, the cause says so."""
    worker = daemon({'retry': {'max_attempts': 1}}).wait_ready()
    queue.add({'command': f'kill -{int(number)} $$'})
    [letter] = wait_letters(queue)
    cause = 'killed' if number == signal.SIGKILL else 'signal'
    assert (letter.cause, letter.status) == (cause, number.name), letter.own
    worker.wait_log(number.name)


# ---- due times

def test_delayed_task(daemon, queue, folder, late):
    """A delayed task starts when it is due: never before, and not much later."""
    daemon().wait_ready()
    before = queue.now()
    queue.add({'command': f'date +%s.%N > {folder}/new; mv {folder}/new {folder}/out'}, due='+700')
    began = float(wait_file(folder / 'out')) * 1000
    assert before + 700 <= began < before + 700 + 400 + 1000 * late.start()


def test_expired_task(daemon, queue, client, folder):
    """A task whose `expires` has passed becomes a dead letter without a start; one that has time runs."""
    daemon().wait_ready()
    now = time.time()
    tid = client.xadd('emails', {'command': f'touch {folder}/late', 'expires': f'{now - 1:.3f}'})
    client.xadd('emails', {'command': f'touch {folder}/fine', 'expires': f'{now + 60:.3f}'})
    [letter] = wait_letters(queue)
    assert letter.cause == 'expired' and letter.tid == tid.decode() and letter.attempts == '0'
    wait_succeeded(queue, 1)
    assert (folder / 'fine').exists() and not (folder / 'late').exists()


def test_id_exists(daemon, queue, folder, latch):
    """An id is in use while its task exists, retries included, and free after its end."""
    daemon().wait_ready()
    task = {'id': 'mail-1', 'command': f'echo >> {folder}/runs; test $LEAT_ATTEMPT = 2 && {latch.wait}'}
    [tid] = queue.add(task)
    assert queue.enqueue(task) == [('exists', tid)]
    wait_until(lambda: queue.counter('retried') == 1)
    assert queue.enqueue(task) == [('exists', tid)]
    latch.open()
    wait_succeeded(queue, 1)
    [(state, again)] = queue.enqueue(task)
    assert state == 'new' and again != tid
    wait_succeeded(queue, 2)
    assert (folder / 'runs').read_text().count('\n') == 4


# ---- refused tasks

REFUSED = {
    'no command': ({'size': '1'}, 'no command'),
    'empty command': ({'command': ''}, 'empty'),
    'NUL in command': ({'command': b'echo \0'}, 'NUL'),
    'long command': ({'command': 'true ' + 'x' * 131072}, 'longer than 131071'),
    'bad timeout': ({'command': 'RUN', 'timeout': 'soon'}, 'timeout'),
    'NUL in timeout': ({'command': 'RUN', 'timeout': b'5s\0'}, 'timeout'),
    'bad max_attempts': ({'command': 'RUN', 'max_attempts': '0'}, 'max_attempts'),
    'bad expires': ({'command': 'RUN', 'expires': 'never'}, 'expires'),
    'bad unique_for': ({'command': 'RUN', 'unique_for': 'soon'}, 'unique_for'),
    'bad result_ttl': ({'command': 'RUN', 'result_ttl': '5 s'}, 'result_ttl'),
}


@pytest.mark.parametrize('name', REFUSED)
def test_refused(daemon, queue, client, folder, name):
    """A task that cannot run as it says becomes a complete dead letter with the reason, and never runs."""
    fields, reason = REFUSED[name]
    fields = {key: f'touch {folder}/ran' if value == 'RUN' else value
              for key, value in fields.items()}
    worker = daemon().wait_ready()
    tid = client.xadd('emails', fields).decode()
    [letter] = wait_letters(queue)
    assert letter.cause == 'refused' and reason in letter.reason, letter.own
    assert len(letter.lines()) <= 1 and letter.tid == tid
    assert letter.fields == [part if isinstance(part, bytes) else part.encode()
                             for item in fields.items() for part in item]
    # the log does not have the reason of a refusal by the claim check
    worker.wait_log('refused' if name == 'bad lane' else reason)
    wait_empty(queue)
    assert not (folder / 'ran').exists() and queue.counter('retried') == 0
