"""Resident processes on the real daemon: their start, the records that they get, and their reports."""
import re

import pytest

from harness.batches import add
from harness.polling import wait_until
from harness.tasks import letters, wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')


# ---- start

def test_one_process_gets_all_tasks(daemon, queue, handlers):
    """A process starts for the slot before there are tasks, and gets all of them. At a stop it reads the end
    of the file."""
    worker = daemon(handlers.config()).wait_ready()
    handlers.wait_up(1)
    tids = add(queue, *['ok'] * 20)
    wait_succeeded(queue, 20)
    records = handlers.records()
    assert [record['index'] for record in records] == list(range(1, 21))
    assert {record['tid'] for record in records} == set(tids)
    assert {record['pid'] for record in records} == set(handlers.up()) and len(handlers.up()) == 1
    worker.terminate()
    assert worker.wait_exit() == 0
    assert handlers.ends() == handlers.up()


def test_one_for_each_slot(daemon, queue, handlers, folder):
    """Each slot has its process, and they work at the same time."""
    daemon(handlers.config(slots=3)).wait_ready()
    add(queue, *[f'hold {folder}/go'] * 3)
    records = handlers.wait_records(3)
    assert len({record['pid'] for record in records}) == 3
    (folder / 'go').touch()
    wait_succeeded(queue, 3)
    assert len(handlers.up()) == 3


def test_slow_start(daemon, queue, folder, handlers):
    """While a process starts, no task is claimed for it."""
    command = f'until [ -e {folder}/go ]; do sleep 0.01; done; {handlers.command()}'
    daemon(handlers.config(command=command)).wait_ready()
    add(queue, 'ok')
    wait_until(lambda: queue.redis.hlen(queue.workers) == 1)
    assert queue.redis.hlen(queue.running) == 0
    (folder / 'go').touch()
    wait_succeeded(queue, 1)
    assert queue.counter('retried') == 0


def test_never_ready(daemon, queue, handlers):
    """A process that does not write "ready" in time is ended; the log says which line is missing, and the task
    is not touched."""
    add(queue, 'ok')
    worker = daemon(handlers.config('silent', resident_start_timeout='4s')).wait_ready()
    worker.wait_log('has not written "ready" on descriptor 3')
    assert 'echo ready >&3' in worker.log()
    assert len(handlers.wait_up(2)) >= 2 and not handlers.records()
    assert queue.redis.hlen(queue.running) == 0 and not letters(queue)


def test_fails_to_start(daemon, queue, handlers):
    """A process that exits before it is ready is started again after a pause, and the log says why."""
    add(queue, 'ok')
    worker = daemon(handlers.config('broken', 7)).wait_ready()
    worker.wait_log('ended before it wrote "ready": exit 7; starting another in 1 s')
    worker.wait_log('exit 7; starting another in 2 s')
    assert queue.redis.hlen(queue.running) == 0 and queue.counter('retried') == 0


@pytest.mark.parametrize('command', ['/nowhere/program', 'nowhere-program'])
def test_cannot_be_started(daemon, queue, handlers, command):
    """A command that this host cannot execute is a fault of the host."""
    add(queue, 'ok')
    worker = daemon(handlers.config(command=command)).wait_ready()
    worker.wait_log('this host cannot run tasks: ')
    assert queue.redis.hlen(queue.running) == 0 and not letters(queue)


# ---- records

def test_json_has_all_that_the_environment_has(daemon, queue, handlers):
    """A record has what the environment of a single task has."""
    daemon(handlers.config(timeout='1h')).wait_ready()
    [tid] = queue.add([('payload', 'ok'), ('size', 'ü'), ('id', 'order 7'), ('raw', b'\xff'),
                       ('max_attempts', '9')])
    wait_succeeded(queue, 1)
    [record] = handlers.records()
    now = queue.now() / 1000
    assert abs(record.pop('enqueued_at') - now) < 3600
    assert abs(record.pop('deadline') - now - 3600) < 3600
    assert record.pop('fence') > 0 and record.pop('pid')
    assert record == {'index': 1, 'tid': tid, 'attempt': 1, 'max_attempts': 9, 'id': 'order 7',
                      'fields': {'payload': 'ok', 'size': 'ü', 'id': 'order 7', 'max_attempts': '9'},
                      'base64': {'raw': '/w=='}}


@pytest.mark.parametrize('form, end', [('lines', b'\n'), ('nul', b'\0')])
def test_lines_and_nul(daemon, queue, folder, handlers, form, end):
    """With lines and nul, a record is the payload and its end."""
    program = folder / 'program'
    program.write_text('import os, sys\n'
                       'os.write(3, b"ready\\n")\n'
                       'for number, byte in enumerate(iter(lambda: os.read(0, 2), b""), 1):\n'
                       f'    open("{folder}/seen", "ab").write(byte)\n'
                       '    os.write(3, b"%d ok\\n" % number)\n')
    daemon(handlers.config(form=form, command=f'exec /usr/bin/python3 -IS {program}')).wait_ready()
    add(queue, 'a', 'b')
    wait_succeeded(queue, 2)
    assert (folder / 'seen').read_bytes() == b'a' + end + b'b' + end


def test_environment(daemon, queue, folder, handlers):
    """The environment names the worker and no task, and says how many tasks the process may have."""
    command = f'env > {folder}/env; {handlers.command()}'
    daemon(handlers.config(command=command, batch=5)).wait_ready()
    add(queue, 'ok')
    wait_succeeded(queue, 1)
    names = dict(line.split('=', 1) for line in (folder / 'env').read_text().splitlines())
    assert names['LEAT_BATCH'] == '5' and 'LEAT_WORKER' in names
    assert not {'LEAT_TASK', 'LEAT_ATTEMPT', 'LEAT_FENCE', 'LEAT_DEADLINE'} & set(names)


def test_large_records(daemon, queue, handlers):
    """Records larger than a pipe arrive whole."""
    daemon(handlers.config()).wait_ready()
    payloads = [f'nothing {number}' * 50000 for number in range(3)]
    add(queue, *payloads)
    wait_succeeded(queue, 3)
    assert [record['fields']['payload'] for record in handlers.records()] == payloads


# ---- reports

def test_reports(daemon, queue, handlers):
    """ok, exit, retry and dead take effect at once, and the process lives on. Rules for exit codes hold."""
    daemon({**handlers.config(), 'retry': {'max_attempts': 2, 'permanent': 66, 'success': 9}}).wait_ready()
    add(queue, 'ok', 'exit 0', 'exit 9', 'exit 66 no such user', 'dead not mine', 'exit 5 twice', 'retry later')
    found = {letter.bytes[b'payload'].decode(): letter for letter in wait_letters(queue, 4)}
    assert queue.counter('succeeded') == 3 and queue.counter('retried') == 2
    assert [(found[payload].cause, found[payload].status, found[payload].reason, found[payload].attempts)
            for payload in ('exit 66 no such user', 'dead not mine', 'exit 5 twice', 'retry later')] == [
        ('exit', '66', 'no such user', '1'), ('reported', '', 'not mine', '1'),
        ('exit', '5', 'twice', '2'), ('reported', '', 'later', '2')]
    assert len(handlers.up()) == 1 and len(handlers.records()) == 9


def test_exit_127_is_a_report(daemon, queue, handlers):
    """A reported exit code is never taken for a command that cannot be executed."""
    worker = daemon({**handlers.config(), 'retry': {'max_attempts': 1}}).wait_ready()
    add(queue, 'exit 127')
    [letter] = wait_letters(queue)
    assert (letter.cause, letter.status) == ('exit', '127') and 'cannot run' not in worker.log()


def test_stray_reports(daemon, queue, handlers):
    """Reports for a task that is over, or that has not come, are ignored, and the log says so."""
    worker = daemon({**handlers.config(), 'retry': {'max_attempts': 1}}).wait_ready()
    add(queue, 'early 2 ok', 'early 1 dead', 'twice')
    wait_succeeded(queue, 3)
    assert not letters(queue) and len(handlers.up()) == 1
    for text in ('descriptor 3: 2 ok: ignored', 'descriptor 3: 1 dead: ignored', 'descriptor 3: 3 ok: ignored'):
        worker.wait_log(text)
    assert 'write "INDEX ok"' in worker.log()


# ---- several tasks in hand

def test_several_in_hand(daemon, queue, handlers):
    """With batch = N, a process has up to N tasks at a time, and may answer them in any order."""
    daemon(handlers.config('backwards', batch=4)).wait_ready()
    add(queue, 'ok', 'ok', 'dead last', 'ok')
    [letter] = wait_letters(queue)
    wait_until(lambda: queue.counter('succeeded') == 3)
    assert letter.reason == 'last' and len(handlers.up()) == 1


def test_no_more_than_batch(daemon, queue, handlers, folder):
    """No process has more than N tasks, and the worker claims no more than they can have."""
    daemon(handlers.config('backwards', batch=3, slots=2, timeout='none')).wait_ready()
    handlers.wait_up(2)
    add(queue, *[f'hold {folder}/go'] * 20)
    wait_until(lambda: queue.redis.hlen(queue.running) == 6)
    assert len(queue.pending()) == 6
    (folder / 'go').touch()
    wait_until(lambda: queue.counter('succeeded') >= 18)
    pids = [record['pid'] for record in handlers.records()]
    assert len(set(pids)) == 2


def test_last_attempt_is_alone(daemon, queue, handlers):
    """With several tasks in hand, another one could cost a task its last attempt: it gets its own process."""
    daemon({**handlers.config(batch=4), 'retry': {'max_attempts': 2}}).wait_ready()
    add(queue, 'exit 1')
    wait_letters(queue)
    first, second = handlers.records()
    assert (first['attempt'], second['attempt'], second['index']) == (1, 2, 1)
    assert first['pid'] != second['pid']


# ---- processes of their own

def test_process_of_its_own(daemon, queue, handlers):
    """A task with a directory of its own gets a process of its own, which reads one record and then the end of
    the file."""
    daemon(handlers.config()).wait_ready()
    [resident] = handlers.wait_up(1)
    queue.add({'payload': 'ok', 'directory': '/tmp'})
    wait_succeeded(queue, 1)
    [record] = handlers.records()
    assert record['index'] == 1 and handlers.ends() == [record['pid']] != [resident]


def test_own_process_needs_a_report(daemon, queue, handlers):
    """A process of a task's own has failed without a report, also with exit status 0."""
    daemon({**handlers.config(), 'retry': {'max_attempts': 1}}).wait_ready()
    queue.add({'payload': 'end 0', 'directory': '/tmp'}, {'payload': 'ok', 'directory': '/tmp'},
              {'payload': 'exit 4 why', 'directory': '/tmp'})
    found = {letter.bytes[b'payload'].decode(): letter for letter in wait_letters(queue, 2)}
    wait_until(lambda: queue.counter('succeeded') == 1)
    assert (found['end 0'].cause, found['end 0'].reason) == ('no-verdict', 'exit 0')
    assert (found['exit 4 why'].cause, found['exit 4 why'].status) == ('exit', '4')


def test_usage(daemon, queue, handlers):
    """The CPU time of a task is what the process used while it had the task."""
    daemon(handlers.config()).wait_ready()
    add(queue, 'burn 300;dead first', 'dead second')
    used = {letter.reason: int(re.search(r'cpu_us (\d+)', letter.usage)[1]) for letter in wait_letters(queue, 2)}
    assert used['first'] >= 300000 > used['second']
