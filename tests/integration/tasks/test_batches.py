"""Batches on the real daemon: one process runs several tasks, and each keeps its own state."""
import json
import re
import signal

import pytest

from harness.batches import add, batched, numbers
from harness.polling import wait_until
from harness.short_leases import is_empty, pass_time, wait_blocked, wait_empty
from harness.tasks import (letters, resident_kib, wait_file, wait_letters,
                           wait_succeeded)

pytestmark = pytest.mark.usefixtures('quick_tasks')

FOREVER = '1h'  # no test outlasts this wait, which is a tenth of the lease
LONG_LEASE = {'queue': {'lease': '10m'}}


# ---- input of a batch

def test_lines(daemon, queue, seen):
    """batch_format = lines: the input is each payload and a newline, in the order of the queue. A payload's
    own last newline ends its line, and an empty payload is an empty line."""
    queue.add({'payload': 'one'}, {'payload': 'two\n'}, {'size': '0'},
              {'payload': b'f\xffo\0ur'}, {'payload': '\n'})
    daemon(batched(seen.command())).wait_ready()
    wait_succeeded(queue, 5)
    assert seen.all() == [(5, b'one\ntwo\n\nf\xffo\0ur\n\n')]


def test_nul(daemon, queue, seen):
    """batch_format = nul: the input is each payload and a NUL; newlines are plain bytes."""
    queue.add({'payload': 'one\n'}, {'size': '0'}, {'payload': b'\xff\n\n'})
    daemon(batched(seen.command(), form='nul')).wait_ready()
    wait_succeeded(queue, 3)
    assert seen.all() == [(3, b'one\n\0\0\xff\n\n\0')]


def test_json(daemon, queue, seen):
    """batch_format = json: the input is an object per line with tid, attempt, id and fields. Bytes that are
    not UTF-8 are under base64, and no value is lost or taken for another field."""
    tids = queue.add({'payload': 'ü\n\0"x"', 'size': '5', 'id': 'order 7'}, {'size': ''},
                     [('payload', b'\xff\xfe'), ('id', b'\x80'), ('payload_base64', 'mine')])
    daemon(batched(seen.command(), form='json')).wait_ready()
    wait_succeeded(queue, 3)
    [(count, text)] = seen.all()
    assert count == 3 and text.endswith(b'\n')
    assert [json.loads(line) for line in text.split(b'\n')[:-1]] == [
        {'tid': tids[0], 'attempt': 1, 'id': 'order 7',
         'fields': {'payload': 'ü\n\0"x"', 'size': '5', 'id': 'order 7'}},
        {'tid': tids[1], 'attempt': 1, 'fields': {'size': ''}},
        {'tid': tids[2], 'attempt': 1, 'fields': {'payload_base64': 'mine'},
         'base64': {'payload': '//4=', 'id': 'gA=='}},
    ]


@pytest.mark.parametrize('form, payload, reason', [
    ('lines', b'a\nb', 'holds a newline'), ('lines', b'\n\n', 'holds a newline'),
    ('nul', b'a\0', 'holds a NUL byte'), ('nul', b'a\0b', 'holds a NUL byte')])
def test_a_payload_with_a_separator(daemon, queue, seen, form, payload, reason):
    """A payload that contains the format's separator becomes a dead letter and never runs; the other tasks
    run."""
    add(queue, 'before', payload, 'after')
    daemon(batched(seen.command(), form=form)).wait_ready()
    [letter] = wait_letters(queue)
    assert letter.cause == 'refused' and reason in letter.reason
    wait_until(lambda: queue.counter('succeeded') == 2)
    end = b'\n' if form == 'lines' else b'\0'
    assert seen.all() == [(2, b'before' + end + b'after' + end)]


def test_input_is_sealed(daemon, queue, folder):
    """No process can change the input."""
    daemon(batched(f'(echo x > /dev/stdin) 2>/dev/null; cat > {folder}/out')).wait_ready()
    add(queue, 'one')
    wait_succeeded(queue, 1)
    assert (folder / 'out').read_bytes() == b'one\n'


def test_environment(daemon, queue, seen):
    """LEAT_BATCH is the number of tasks; variables of a single task are set only for a batch of one."""
    daemon(batched(seen.command(), batch=2)).wait_ready()
    wait_blocked(queue.redis)
    queue.add(*[{'size': 'big', 'id': 'x%d' % number} for number in range(3)])
    wait_succeeded(queue, 3)
    own = {b'LEAT_TASK', b'LEAT_ID', b'LEAT_ATTEMPT', b'LEAT_MAX_ATTEMPTS', b'LEAT_FENCE',
           b'LEAT_ENQUEUED_AT', b'TASK_size'}
    found = {values[b'LEAT_BATCH']: set(values) for values in seen.environments()}
    assert set(found) == {b'1', b'2'} and found[b'1'] - found[b'2'] == own
    assert not found[b'2'] - found[b'1']
    assert {b'LEAT_QUEUE', b'LEAT_WORKER', b'LEAT_DEADLINE'} <= found[b'2']


def test_descriptors(daemon, queue, folder):
    """The process can write to descriptor 3 and has no other one beyond the standard ones; without batches
    there is no descriptor 3."""
    program = folder / 'program'
    program.write_text('import os\nfor fd in range(100):\n    try:\n        os.fstat(fd); print("fd", fd)\n'
                       '    except OSError:\n        pass\n')
    for batch, descriptors in ((10, 4), (1, 3)):
        add(queue, 'x')
        worker = daemon(batched(f'/usr/bin/python3 -IS {program}', batch=batch)).wait_ready()
        wait_empty(queue)
        worker.terminate()
        assert worker.wait_exit() == 0
        assert [f'fd {fd} ' in worker.log() for fd in range(6)] == [fd < descriptors for fd in range(6)]


# ---- start of a batch

def test_full_batches_start_at_once(daemon, queue, client, seen):
    """A full batch starts at once; the remaining tasks wait for batch_wait."""
    daemon({**LONG_LEASE, **batched(seen.command(), batch=3, wait=FOREVER)}).wait_ready()
    wait_blocked(client)
    add(queue, *numbers(7))
    wait_until(lambda: queue.counter('succeeded') == 6)
    pass_time(0.3)
    assert sorted(seen.all()) == [(3, b'1\n2\n3\n'), (3, b'4\n5\n6\n')]
    add(queue, '8', '9')
    wait_succeeded(queue, 9)
    assert seen.all()[-1] == (3, b'7\n8\n9\n')


def test_partly_filled_batch_waits(daemon, queue, client, seen):
    """A batch that is not full starts when its first task has waited for batch_wait, and contains tasks that
    came meanwhile."""
    daemon({**LONG_LEASE, **batched(seen.command(), wait='4s')}).wait_ready()
    wait_blocked(client)
    begun = queue.now()
    add(queue, '1')
    wait_until(lambda: queue.redis.hlen(queue.running) == 1)
    add(queue, '2')
    add(queue, '3')
    wait_succeeded(queue, 3)
    assert queue.now() - begun > 3900
    assert seen.all() == [(3, b'1\n2\n3\n')]


def test_no_wait(daemon, queue, client, seen):
    """batch_wait = 0: the tasks of one claim start at once."""
    daemon(batched(seen.command(), wait='0')).wait_ready()
    wait_blocked(client)
    add(queue, '1', '2')
    wait_succeeded(queue, 2)
    add(queue, '3')
    wait_succeeded(queue, 3)
    assert seen.all()[-1] == (1, b'3\n')


def test_wait_is_bounded_by_the_lease(daemon, queue, client, seen):
    """However long batch_wait is, a batch waits for a tenth of the lease at most, and keeps its leases."""
    daemon({'queue': {'lease': '20s'},
            **batched(seen.command('sleep 3'), wait=FOREVER, kill_grace='2s')}).wait_ready()
    wait_blocked(client)
    add(queue, '1')
    wait_succeeded(queue, 1)
    assert len(seen.all()) == 1 and queue.counter('crashes') == 0


def test_claims_no_more_than_fit(daemon, queue, folder):
    """concurrency counts processes: the worker claims at most slots × batch tasks."""
    daemon({'queue': {'concurrency': 2}, **batched(
        f'echo $LEAT_BATCH >> {folder}/up; cat > /dev/null; until [ -e {folder}/go ];'
        ' do sleep 0.02; done', batch=3)}).wait_ready()
    add(queue, *numbers(20))
    wait_file(folder / 'up', 4)
    pass_time(0.3)
    assert (folder / 'up').read_text() == '3\n3\n'
    assert queue.redis.hlen(queue.running) == 6 and len(queue.pending()) == 6
    (folder / 'go').touch()
    wait_succeeded(queue, 20)


def test_large_payloads(daemon, queue, folder):
    """A batch of 8 MiB is full, so that its size is bounded."""
    command = f'echo $LEAT_BATCH $(wc -c) >> {folder}/sizes'
    add(queue, *['x' * (3 << 20)] * 5)
    daemon({'queue': {'concurrency': 1}, **batched(command, batch=100)}).wait_ready()
    wait_succeeded(queue, 5, 60)
    rows = [tuple(map(int, line.split())) for line in (folder / 'sizes').read_text().splitlines()]
    assert sum(count for count, _ in rows) == 5
    assert all(count <= 2 and size == count * (3 << 20) + count for count, size in rows)


@pytest.mark.parametrize('sections, fields', [
    ({'retry': {'max_attempts': 1}}, {}),
    ({}, {'max_attempts': '1'}),
    ({}, {'timeout': '30s'}),
], ids=['no attempt left', "no attempt left, the task's own", 'a timeout of its own'])
def test_runs_in_a_process_of_its_own(daemon, queue, seen, sections, fields):
    """A task that a batch cannot carry runs alone, also if it is between others."""
    add(queue, '1', **fields)
    add(queue, '2', **fields)
    daemon({**sections, **batched(seen.command())}).wait_ready()
    wait_succeeded(queue, 2)
    assert sorted(seen.all()) == [(1, b'1\n'), (1, b'2\n')]


def test_own_timeout(daemon, queue, folder):
    """A task's own timeout ends it, as without batches."""
    daemon(batched('exec sleep 60')).wait_ready()
    add(queue, 'x', timeout='200ms', max_attempts='1')
    [letter] = wait_letters(queue)
    assert letter.cause == 'timeout'


def test_reload(daemon, queue, client, seen):
    """A reload switches batches on and off."""
    worker = daemon(batched(seen.command(), batch=1)).wait_ready()
    text = worker.config_path.read_text()
    for batch, sizes in (('5', [5]), ('1', [0] * 5)):
        worker.config_path.write_text(text.replace('batch = 1\n', f'batch = {batch}\n'))
        before, told = len(seen.all()), worker.log().count('configuration reloaded')
        worker.reload()
        wait_until(lambda: worker.log().count('configuration reloaded') > told)
        wait_blocked(client)
        client.delete(queue.stats)
        add(queue, *numbers(5))
        wait_succeeded(queue, 5)
        assert [count for count, _ in seen.all()[before:]] == sizes


def test_a_waiting_worker_takes_a_whole_batch(daemon, queue, client, seen):
    """Tasks that come together to a worker that waits for some are one batch, each time."""
    daemon(batched(seen.command(), batch=5)).wait_ready()
    for number in range(1, 11):
        wait_blocked(client)
        add(queue, *numbers(5))
        wait_succeeded(queue, 5 * number)
    assert [count for count, _ in seen.all()] == [5] * 10


# ---- end of a batch

def test_other_success_codes(daemon, queue):
    """An exit status in [retry] success finishes a batch as 0 does."""
    add(queue, *numbers(3))
    daemon({'retry': {'success': '9'}, **batched('cat >/dev/null; exit 9')}).wait_ready()
    wait_succeeded(queue, 3)
    assert queue.counter('retried') == 0


def test_verdicts(daemon, queue, seen):
    """Lines on descriptor 3 decide single tasks: ok and dead are final, retry makes another attempt, and the
    others run again if the process fails. Dead letters and the log have the reasons."""
    tids = add(queue, *numbers(5))
    then = (r'[ $LEAT_BATCH = 1 ] || printf "1 ok\n2\tdead  no \033such user \n3 retry busy\n5 ok" >&3;'
            ' [ $LEAT_BATCH = 1 ]')
    worker = daemon({'queue': {'concurrency': 1}, **batched(seen.command(then))}).wait_ready()
    [letter] = wait_letters(queue)
    wait_empty(queue)
    assert letter.own['leat.tid'] == tids[1] and letter.cause == 'reported'
    assert letter.reason == r'no \x1bsuch user ' and letter.attempts == '1'
    assert queue.counter('succeeded') == 4 and queue.counter('retried') == 1
    assert sorted(seen.all()[1:]) == [(1, b'3\n'), (1, b'4\n')]
    log = worker.log()
    assert f'task {tids[0]}: attempt 1 succeeded: reported ok after' in log
    assert f'task {tids[2]}: attempt 1/5 failed: reported retry, busy after' in log
    assert f'task {tids[3]}: attempt 1 succeeded: exit 0 after' in log
    assert f'task {tids[4]}: attempt 1 succeeded: reported ok after' in log


@pytest.mark.parametrize('end, cause', [('exit 0', 'exit 0'), ('kill -9 $$', 'killed by SIGKILL'),
                                        ('sleep 60', 'timeout')])
def test_verdicts_count_however_the_batch_ends(daemon, queue, end, cause):
    """A verdict counts, however the batch ends, and no task is finished before the end."""
    tids = add(queue, *numbers(2))
    timeout = '4s' if cause == 'timeout' else '60s'
    worker = daemon({'retry': {'base': '1h', 'cap': '1h'}, **batched(
        f'[ $LEAT_BATCH = 1 ] || echo 1 ok >&3; {end}', timeout=timeout)}).wait_ready()
    worker.wait_log(f'task {tids[0]}: attempt 1 succeeded: reported ok')
    state = '1 succeeded' if end == 'exit 0' else '1/5 failed'
    worker.wait_log(f'task {tids[1]}: attempt {state}: {cause}')
    wait_until(lambda: queue.counter('succeeded') + queue.counter('retried') == 2)
    assert queue.counter('retried') == (end != 'exit 0')


def test_last_verdict_counts(daemon, queue):
    """A later line about a task replaces an earlier one, with its reason."""
    add(queue, '1', '2')
    daemon(batched('echo 1 dead wrong >&3; echo 1 ok >&3; echo 2 ok >&3; echo 2 dead >&3')
           ).wait_ready()
    [letter] = wait_letters(queue)
    wait_empty(queue)
    assert letter.cause == 'reported' and letter.reason == '' and queue.counter('succeeded') == 1


def test_verdict_of_one(daemon, queue):
    """The process of a task that runs alone can decide it, too; a retry without attempts left makes a dead
    letter."""
    daemon(batched('echo 1 retry later >&3')).wait_ready()
    add(queue, 'x', max_attempts='1')
    [letter] = wait_letters(queue)
    assert letter.cause == 'reported' and letter.reason == 'later'


def test_dead_letters_keep_the_output(daemon, queue):
    """A task that was reported dead has the output of its batch; one that succeeded does not."""
    tids = add(queue, *numbers(3), result_ttl='1h')
    daemon(batched('echo out; echo err >&2; echo 2 dead >&3; printf "3 dead" >&3')).wait_ready()
    for letter in wait_letters(queue, 2):
        assert letter.tail('stdout') == b'out\n' and letter.tail('stderr') == b'err\n'
    wait_until(lambda: queue.counter('succeeded') == 1)
    results = [b''.join(queue.redis.xrange(key)[0][1]) for key in queue.redis.keys('*:result:*')]
    assert len(results) == 3, tids
    assert sorted(b'out\n' in result for result in results) == [False, True, True]


def test_invalid_verdicts_are_ignored(daemon, queue, folder):
    """Lines that are no verdicts are logged, up to a limit, and change nothing; an endless line costs no
    memory."""
    garbage = [b'', b'ok', b'0 ok', b'3 ok', b'-1 ok', b'1', b'1 OK', b'1 okay', b'99999999999999999 ok',
               b' 1 dead', b'1:dead', b'\xff\0\x1b[31m']
    lines = b'\n'.join(garbage) + b'\n' + b'1 ok ' + b'x' * 5000 + b'\n1 dead last\n' + b'y' * 100
    add(queue, '1', '2')
    (folder / 'garbage').write_bytes(lines)
    worker = daemon(batched(f'cat {folder}/garbage >&3; head -c 50000000 /dev/zero >&3')).wait_ready()
    [letter] = wait_letters(queue)
    wait_empty(queue)
    assert letter.reason == 'last' and queue.counter('succeeded') == 1
    log = worker.log()
    assert log.count('descriptor 3: ') == 11 and 'descriptor 3: 4 more lines ignored' in log
    assert r'descriptor 3: 1 okay: ignored' in log and '\x1b' not in log
    assert resident_kib(worker.pid) < 100_000


def test_output_of_a_batch_in_the_log(daemon, queue):
    """Lines of a batch's process name the batch by its first task, and so do the ends of its tasks."""
    tids = add(queue, '1', '2')
    worker = daemon(batched('cat')).wait_ready()
    wait_succeeded(queue, 2)
    lines = [line for line in worker.log().splitlines() if 'stream=stdout' in line]
    assert len(lines) == 2
    assert all(f'batch_id={tids[0]}' in line and 'task=' not in line for line in lines)
    for tid in tids:
        [end] = [line for line in worker.log().splitlines() if f'task {tid}: attempt 1 succeeded: exit' in line]
        assert f'batch_id={tids[0]}' in end


def test_host_faults_count_nothing(daemon, queue, folder, seen):
    """A missing program is a host fault: the whole batch is requeued, with one record."""
    program = folder / 'program'
    add(queue, *numbers(5))
    worker = daemon(batched(str(program))).wait_ready()
    worker.wait_log('this host cannot run tasks')
    wait_until(lambda: queue.counter('released') >= 5)
    assert worker.log().count('this host cannot run tasks') == 1
    program.write_text('#!/bin/sh\n' + seen.command() + '\n')
    program.chmod(0o755)
    wait_succeeded(queue, 5)
    assert queue.counter('retried') == 0 and queue.counter('crashes') == 0
    # it probes with one task
    assert seen.all()[0][0] == 1


# ---- leases, stops, lost workers

def test_leases_of_all_are_renewed(daemon, queue, seen):
    """A batch that runs longer than the lease keeps all of its tasks."""
    add(queue, *numbers(30))
    daemon({'queue': {'lease': '6s', 'concurrency': 1},
            **batched(seen.command('sleep 8'), batch=30, kill_grace='100ms')}).wait_ready()
    wait_succeeded(queue, 30, 40)
    assert len(seen.all()) == 1
    assert queue.counter('crashes') == queue.counter('fenced') == queue.counter('released') == 0


def test_one_lost_lease_ends_the_batch(daemon, queue, client, folder):
    """If the entry of one task is gone, the process of its batch is killed at once; the others are requeued
    uncounted and run again, and earlier verdicts count."""
    tids = add(queue, *numbers(4))
    command = (f'echo 1 ok >&3; trap "" TERM;'
               f' [ -e {folder}/go ] || {{ echo $$ > {folder}/pid; sleep 60; }}; cat >> {folder}/out')
    worker = daemon({'queue': {'lease': '6s', 'concurrency': 1}, **batched(command)}).wait_ready()
    wait_file(folder / 'pid')
    (folder / 'go').touch()
    client.xdel(queue.stream, tids[2])
    worker.wait_log(f'task {tids[2]}: killing it: lease lost')
    worker.wait_log(f'ended with task {tids[2]}')
    wait_until(lambda: queue.counter('succeeded') == 3 and is_empty(queue))
    assert sorted((folder / 'out').read_bytes().split()) == [b'2', b'4']
    assert queue.counter('released') == 2
    assert queue.counter('crashes') == queue.counter('retried') == 0
    assert [letter.cause for letter in letters(queue)] == ['vanished']


def test_cancelled_task_ends_its_batch(daemon, queue, folder):
    """If one task of a batch is cancelled, its process gets SIGTERM; the others are requeued uncounted and
    run again, and the cancelled one never does."""
    tids = add(queue, *numbers(3))
    command = (f'[ -e {folder}/up ] && {{ cat >> {folder}/out; exit; }}; trap "touch {folder}/told; exit 1" TERM;'
               f' touch {folder}/up; while :; do sleep 0.02; done')
    daemon({'queue': {'concurrency': 1}, **batched(command, kill_grace='2s')}).wait_ready()
    wait_until((folder / 'up').exists)
    token = queue.show(tids[1])['row']['token'].decode()
    [state] = queue.call_off((tids[1], token), now=True)
    assert state.startswith('asked ')
    wait_until((folder / 'told').exists)
    wait_empty(queue)
    assert sorted((folder / 'out').read_bytes().split()) == [b'1', b'3']
    assert queue.counter('succeeded') == 2 and queue.counter('retried') == 0 and letters(queue) == []


def test_cut_off_worker_ends_its_batch(daemon, queue, proxy, through_proxy, folder):
    """If the worker is cut off from Redis, the batch is killed before its leases end; after the repair all
    tasks run again with no attempt used."""
    add(queue, *numbers(3))
    command = (f'[ -e {folder}/go ] && {{ cat >> {folder}/out; exit; }}; trap "touch {folder}/told; exit 1" TERM;'
               f' touch {folder}/up; while :; do sleep 0.02; done')
    daemon({**through_proxy, 'queue': {'lease': '4s', 'concurrency': 1},
            **batched(command, kill_grace='1500ms')}).wait_ready()
    wait_until((folder / 'up').exists)
    (folder / 'go').touch()
    proxy.silence()
    wait_until((folder / 'told').exists)
    proxy.heal()
    wait_until(lambda: is_empty(queue), 20)
    assert (folder / 'out').read_bytes() == b'1\n2\n3\n'
    assert queue.counter('succeeded') == 3 and queue.counter('crashes') == queue.counter('retried') == 0


def test_killed_worker(daemon, queue, seen):
    """If the worker is killed, each task of its batch counts a crash and runs again alone."""
    add(queue, *numbers(4))
    first = daemon({'queue': {'lease': '20s', 'concurrency': 1}, **batched(
        seen.command('sleep 60'), kill_grace='100ms')}).wait_ready()
    wait_until(lambda: len(seen.all()) == 1)
    first.kill9()
    daemon({'queue': {'lease': '20s'}, **batched(seen.command(), kill_grace='100ms')}).wait_ready()
    wait_succeeded(queue, 4)
    assert queue.counter('crashes') == 4
    assert [count for count, _ in seen.all()] == [4, 1, 1, 1, 1]


def test_stop_while_waiting(daemon, queue, client, seen):
    """Tasks that wait for a full batch are requeued at once, uncounted, at a stop."""
    worker = daemon({**LONG_LEASE, **batched(seen.command(), wait=FOREVER)}).wait_ready()
    wait_blocked(client)
    add(queue, *numbers(3))
    wait_until(lambda: queue.redis.hlen(queue.running) == 3)
    worker.terminate()
    assert worker.wait_exit() == 0
    assert queue.redis.xlen(queue.go) == 3 and queue.pending() == []
    assert seen.all() == []
    daemon(batched(seen.command())).wait_ready()
    wait_succeeded(queue, 3)
    (count, lines), = seen.all()
    assert count == 3 and sorted(lines.split()) == [b'1', b'2', b'3']


@pytest.mark.parametrize('drain', ['30s', '0'])
def test_stop_while_running(daemon, queue, folder, drain):
    """A batch may end during the drain; after it, it is killed and requeued as a whole."""
    add(queue, *numbers(3))
    worker = daemon({'shutdown': {'drain': drain}, **batched(
        f'touch {folder}/up; until [ -e {folder}/go ]; do sleep 0.02; done')}).wait_ready()
    wait_until((folder / 'up').exists)
    worker.signal(signal.SIGTERM)
    if drain != '0':
        worker.wait_log('stopping')
        (folder / 'go').touch()
    assert worker.wait_exit() == 0
    assert queue.counter('succeeded') == (3 if drain != '0' else 0)
    assert queue.redis.xlen(queue.go) == (0 if drain != '0' else 3)
    assert queue.counter('retried') == 0 and queue.redis.hlen(queue.running) == 0


def test_many_that_cannot_share(daemon, queue, folder):
    """Tasks that need a process each do not pile up at one worker, and batches run beside them."""
    add(queue, *numbers(300), max_attempts='1')
    add(queue, *numbers(300))
    daemon({'queue': {'concurrency': 2}, **batched(
        f'cat > /dev/null; echo $LEAT_BATCH >> {folder}/sizes', batch=50)}).wait_ready()
    most = 0

    def over():
        nonlocal most
        most = max(most, queue.redis.hlen(queue.running))
        return queue.counter('succeeded') == 600

    wait_until(over, 60)
    sizes = [int(line) for line in (folder / 'sizes').read_text().split()]
    assert sizes.count(1) >= 300 and sum(sizes) == 600 and max(sizes) > 10
    assert most <= 2 * 50 + 16
    assert queue.counter('crashes') == queue.counter('retried') == 0


def test_status_counts_tasks(daemon, queue, leat, folder, manager):
    """The worker's heartbeat has the numbers of running tasks, of those that may run, and of slots; leat status
    shows the first two. The worker's log and its status line count slots and tasks by these names."""
    add(queue, *numbers(4))
    worker = daemon({'queue': {'lease': '6s', 'concurrency': 2}, **batched(
        f'until [ -e {folder}/go ]; do sleep 0.02; done', kill_grace='100ms', batch=4)},
        env=manager.environment()).wait_ready()
    worker.wait_log('ready: queue emails, 2 slots of up to 4 tasks')

    def heartbeat():
        return [(one['running'], one['capacity'], one['slots']) for one in queue.worker_heartbeats().values()]

    wait_until(lambda: heartbeat() == [(4, 8, 2)], 10, lambda: f'4 of 8 run: {heartbeat()}')
    assert ' 4/8 ' in leat('status').stdout
    wait_until(lambda: re.search(r'running: [12] of 2 slots busy with 4 tasks; ', manager.having('STATUS')[-1]), 5,
               lambda: manager.messages)
    (folder / 'go').touch()
    wait_succeeded(queue, 4)
