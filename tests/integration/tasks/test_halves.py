"""Batches that fail as a whole, on the real daemon: their tasks run again in halves, in the same attempt."""
import math
import signal

import pytest

from harness.batches import add, batched, numbers
from harness.polling import wait_until
from harness.short_leases import is_empty, wait_empty
from harness.tasks import letters, wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')

ONE_SLOT = {'queue': {'concurrency': 1}}
BAD_FAILS = 'grep -qx bad $f.txt && exit 3; exit 0'
WHOLE_FAILS = '[ $LEAT_BATCH = 4 ] && exit 1;'


def sizes(seen):
    return [size for size, _ in seen.all()]


def halves_wait(queue, seen, command):
    """Sections of a worker whose batch of four fails, and whose first half then runs this command."""
    add(queue, *numbers(4))
    return {**ONE_SLOT, **batched(seen.command(f'{WHOLE_FAILS} grep -qx 1 $f.txt && {{ {command}; }}; exit 0'),
                                  kill_grace='300ms')}


def tids_of(queue):
    return [tid.decode() for tid, _ in queue.redis.xrange(queue.stream)]


# ---- which tasks fail

@pytest.mark.parametrize('place', [0, 37, 49, 50, 99])
def test_one_bad_task_of_a_hundred(daemon, queue, seen, place):
    """One bad task of 100 costs at most 2 log2(100) further starts, and only this task fails, when it runs
    alone, in its first attempt."""
    payloads = numbers(100)
    payloads[place] = 'bad'
    tids = add(queue, *payloads)
    daemon({**ONE_SLOT, 'retry': {'permanent': 3}, **batched(seen.command(BAD_FAILS), batch=100)}).wait_ready()
    [letter] = wait_letters(queue)
    wait_succeeded(queue, 99)
    wait_empty(queue)
    starts = seen.all()
    assert starts[0][0] == 100
    assert len(starts) - 1 <= 2 * math.log2(100)
    assert (1, b'bad\n') in starts
    assert letter.own['leat.tid'] == tids[place] and letter.cause == 'exit' and letter.status == '3'
    assert letter.attempts == '1' and queue.counter('retried') == 0 and queue.counter('released') == 0


@pytest.mark.parametrize('end, cause', [
    ('exit 3', 'exit'), ('exit 64', 'exit'), ('kill -9 $$', 'killed'), ('kill -11 $$', 'signal'),
    ('sleep 60', 'timeout')])
def test_one_bad_task_harms_no_other(daemon, queue, seen, end, cause):
    """If a batch fails, by exit status, signal or timeout, its tasks run again in halves, and the bad task
    alone. It fails alone, is retried, and becomes a dead letter; the others succeed in their first attempt."""
    then = f'grep -qx bad $f.txt && {end}; exit 0'
    tids = add(queue, 'a', 'b', 'bad', 'c')
    daemon({**ONE_SLOT, 'retry': {'max_attempts': 2, 'permanent': 64, 'base': '50ms'},
            **batched(seen.command(then), timeout='2s' if cause == 'timeout' else '60s')}).wait_ready()
    [letter] = wait_letters(queue)
    wait_empty(queue)
    permanent = end == 'exit 64'
    assert letter.own['leat.tid'] == tids[2] and letter.cause == cause
    assert len(letter.lines()) == int(letter.attempts) == (1 if permanent else 2)
    assert queue.counter('succeeded') == 3 and queue.counter('retried') == (0 if permanent else 1)
    assert seen.all()[:2] == [(4, b'a\nb\nbad\nc\n'), (2, b'a\nb\n')]
    alone = [text for size, text in seen.all()[2:] if size == 1]
    assert alone == [b'bad\n', b'c\n'] + ([] if permanent else [b'bad\n'])
    assert len(seen.all()) == 2 + len(alone)


def test_all_fail(daemon, queue, seen):
    """If all tasks of a batch fail, each fails alone, and each once."""
    tids = add(queue, *numbers(4))
    worker = daemon({**ONE_SLOT, 'retry': {'permanent': 3}, **batched(seen.command('exit 3'))}).wait_ready()
    found = wait_letters(queue, 4)
    assert [letter.own['leat.tid'] for letter in found] == tids
    assert {letter.attempts for letter in found} == {'1'}
    assert sizes(seen) == [4, 2, 1, 1, 2, 1, 1]
    assert worker.log().count(f'batch {tids[0]}: failed: exit 3 after') == 2
    assert f'batch {tids[2]}: failed: exit 3 after' in worker.log()


def test_fault_that_passes(daemon, queue, seen):
    """If a batch fails once and its halves succeed, no attempt is counted."""
    tids = add(queue, *numbers(4))
    worker = daemon({**ONE_SLOT, **batched(seen.command(WHOLE_FAILS + ' exit 0'))}).wait_ready()
    wait_succeeded(queue, 4)
    assert sorted(text for size, text in seen.all()[1:]) == [b'1\n2\n', b'3\n', b'4\n']
    assert queue.counter('retried') == queue.counter('released') == 0
    log = worker.log()
    assert f'batch {tids[0]}: failed: exit 1 after' in log and 'running 4 of its tasks again in halves' in log
    assert all(f'task {tid}: attempt 1 succeeded: exit 0 after' in log for tid in tids)


def test_reported_tasks_do_not_run_again(daemon, queue, seen):
    """Tasks with a report on descriptor 3 are settled by it; only the others of the failed batch run again."""
    add(queue, *numbers(5))
    then = '[ $LEAT_BATCH = 5 ] || exit 0; printf "1 ok\\n2 dead\\n4 ok\\n" >&3; exit 1'
    daemon({**ONE_SLOT, **batched(seen.command(then))}).wait_ready()
    [letter] = wait_letters(queue)
    wait_succeeded(queue, 4)
    assert seen.all()[1:] == [(1, b'3\n'), (1, b'5\n')]
    assert letter.cause == 'reported' and queue.counter('retried') == 0


def test_half_gets_whole_payloads(daemon, queue, seen):
    """The payloads of a batch are kept until it can no longer run again."""
    payloads = [letter * 300_000 for letter in 'abcd']
    add(queue, *payloads)
    daemon({**ONE_SLOT, **batched(seen.command(WHOLE_FAILS + ' exit 0'))}).wait_ready()
    wait_succeeded(queue, 4)
    assert b''.join(text for _, text in seen.all()[1:]).decode().split() == payloads


def test_output_is_its_own(daemon, queue, folder):
    """The dead letter of a task that failed alone has the output of its own process. Its file has the output
    of each process that had the task."""
    tids = add(queue, 'a', 'b', 'bad', 'c')
    command = 'tr "\\n" " " | tee /dev/fd/2 | grep -q bad && exit 3; exit 0'
    daemon({**ONE_SLOT, 'retry': {'permanent': 3}, 'output': {'to': 'file', 'directory': folder / 'files'},
            **batched(command)}).wait_ready()
    [letter] = wait_letters(queue)
    wait_succeeded(queue, 3)
    assert letter.tail('stderr') == b'bad '
    wanted = ['a b bad c a b ', 'a b bad c a b ', 'a b bad c bad ', 'a b bad c c ']
    assert [(folder / 'files' / f'{tid}.log').read_text() for tid in tids] == wanted


def test_tasks_that_have_to_be_checked(daemon, queue, seen, folder):
    """If check_after names the end of the batch, each of its tasks gets an attempt of its own after its
    check."""
    add(queue, *numbers(3))
    daemon({**ONE_SLOT, **batched(seen.command('[ $LEAT_BATCH = 3 ] && sleep 60; exit 0'), timeout='4s',
                                  check=f'cat >> {folder}/checked; exit 1', check_after='timeout')}).wait_ready()
    wait_succeeded(queue, 3)
    assert sorted((folder / 'checked').read_bytes().split()) == [b'1', b'2', b'3']
    assert sizes(seen) == [3, 1, 1, 1] and queue.counter('retried') == 3


def test_host_fault(daemon, queue, seen, folder):
    """If the program is gone when a half should run, the whole batch goes back, uncounted."""
    program = folder / 'program'
    program.write_text('#!/bin/sh\n' + seen.command(f'rm {program}; exit 1') + '\n')
    program.chmod(0o755)
    add(queue, *numbers(4))
    worker = daemon({**ONE_SLOT, **batched(str(program))}).wait_ready()
    wait_until(lambda: queue.counter('released') >= 4)
    log = worker.log()
    assert log.count('this host cannot run tasks: ') == 1
    assert log.count('released: host, another half of its batch could not run') == 2
    program.write_text('#!/bin/sh\n' + seen.command() + '\n')
    program.chmod(0o755)
    wait_succeeded(queue, 4)
    assert queue.counter('retried') == queue.counter('crashes') == 0


# ---- while a half runs and the other waits

def test_leases_of_all_are_renewed(daemon, queue, seen):
    """Tasks that wait for their half keep their leases for longer than one lease."""
    sections = halves_wait(queue, seen, 'sleep 8')
    daemon({**sections, 'queue': {'lease': '6s', 'concurrency': 1}}).wait_ready()
    wait_succeeded(queue, 4, 40)
    assert sizes(seen) == [4, 2, 1, 1]
    assert all(queue.counter(name) == 0 for name in ('crashes', 'fenced', 'released', 'retried'))


def test_status_counts_those_that_wait(daemon, queue, seen, latch):
    """Tasks that wait for their half are counted as running."""
    daemon({**halves_wait(queue, seen, latch.wait), 'queue': {'lease': '6s', 'concurrency': 1}}).wait_ready()
    wait_until(lambda: sizes(seen) == [4, 2])
    wait_until(lambda: [one['running'] for one in queue.worker_heartbeats().values()] == [4])
    [former] = queue.redis.hvals(queue.workers)
    wait_until(lambda: queue.redis.hvals(queue.workers) != [former])
    assert [one['running'] for one in queue.worker_heartbeats().values()] == [4]
    latch.open()
    wait_succeeded(queue, 4)


def cancel(queue, tid):
    [state] = queue.call_off((tid, queue.show(tid)['row']['token'].decode()), now=True)
    assert state.startswith('asked ')


def test_waiting_task_is_cancelled(daemon, queue, seen, latch):
    """A task that waits for its half is cancelled at once, alone, and never runs again."""
    sections = halves_wait(queue, seen, latch.wait)
    tids = tids_of(queue)
    worker = daemon(sections).wait_ready()
    wait_until(lambda: sizes(seen) == [4, 2])
    cancel(queue, tids[2])
    worker.wait_log(f'task {tids[2]}: attempt 1 ended: cancelled')
    wait_until(lambda: queue.counter('cancelled') == 1)
    assert sizes(seen) == [4, 2]
    latch.open()
    wait_succeeded(queue, 3)
    assert seen.all()[2:] == [(1, b'4\n')]
    assert queue.counter('released') == queue.counter('retried') == 0 and letters(queue) == []


def test_running_task_is_cancelled(daemon, queue, seen, folder):
    """If a task of the running half is cancelled, the other task of this half goes back, uncounted, and the
    half that waits runs."""
    sections = halves_wait(queue, seen, f'[ -e {folder}/go ] || {{ touch {folder}/up; exec sleep 60; }}')
    tids = tids_of(queue)
    daemon(sections).wait_ready()
    wait_until((folder / 'up').exists)
    (folder / 'go').touch()
    cancel(queue, tids[1])
    wait_succeeded(queue, 3)
    wait_empty(queue)
    assert seen.all()[2] == (2, b'3\n4\n') and seen.all()[3:] == [(1, b'1\n')]
    assert queue.counter('released') == 1 and queue.counter('retried') == 0
    assert queue.counter('cancelled') == 1 and letters(queue) == []


def test_waiting_task_loses_its_lease(daemon, queue, client, seen, latch):
    """If the entry of a task that waits for its half is gone, this task does not run again; all others do."""
    sections = halves_wait(queue, seen, latch.wait)
    tids = tids_of(queue)
    worker = daemon({**sections, 'queue': {'lease': '6s', 'concurrency': 1}}).wait_ready()
    wait_until(lambda: sizes(seen) == [4, 2])
    client.xdel(queue.stream, tids[3])
    worker.wait_log(f'task {tids[3]}: attempt 1 ended: lease-lost')
    worker.wait_log(f'task {tids[3]}: vanished; dead-lettered')
    latch.open()
    wait_until(lambda: queue.counter('succeeded') == 3 and is_empty(queue))
    assert seen.all()[2:] == [(1, b'3\n')]
    assert [letter.cause for letter in letters(queue)] == ['vanished']


def test_cut_off_worker_starts_no_half(daemon, queue, proxy, through_proxy, seen, folder):
    """If the worker is cut off from Redis, the running half is killed and the waiting one does not start.
    After the repair all tasks run again, with no attempt used."""
    sections = halves_wait(queue, seen, f'[ -e {folder}/go ] || {{ touch {folder}/up; exec sleep 60; }}')
    tids = tids_of(queue)
    worker = daemon({**sections, **through_proxy, 'queue': {'lease': '4s', 'concurrency': 1}}).wait_ready()
    wait_until((folder / 'up').exists)
    (folder / 'go').touch()
    proxy.silence()
    for tid in tids:
        worker.wait_log(f'task {tid}: attempt 1 ' + ('released: batch' if tid == tids[0] else 'ended: lease-lost'))
    assert sizes(seen) == [4, 2]
    proxy.heal()
    wait_until(lambda: is_empty(queue), 20)
    assert queue.counter('succeeded') == 4 and queue.counter('crashes') == queue.counter('retried') == 0


@pytest.mark.parametrize('drain', ['30s', '0'])
def test_stop(daemon, queue, seen, latch, drain):
    """During the drain the halves go on; after it, all their tasks go back, uncounted."""
    worker = daemon({'shutdown': {'drain': drain}, **halves_wait(queue, seen, latch.wait)}).wait_ready()
    wait_until(lambda: sizes(seen) == [4, 2])
    worker.signal(signal.SIGTERM)
    if drain != '0':
        worker.wait_log('stopping')
        latch.open()
    assert worker.wait_exit() == 0
    assert sizes(seen) == ([4, 2, 1, 1] if drain != '0' else [4, 2])
    assert queue.counter('succeeded') == (4 if drain != '0' else 0)
    assert queue.redis.xlen(queue.go) == (0 if drain != '0' else 4)
    assert queue.counter('retried') == 0 and queue.redis.hlen(queue.running) == 0


def test_killed_worker(daemon, queue, seen):
    """If the worker is killed, each task that ran or waited for its half counts a crash and runs alone."""
    sections = {**halves_wait(queue, seen, 'sleep 60'), 'queue': {'lease': '20s', 'concurrency': 1}}
    first = daemon(sections).wait_ready()
    wait_until(lambda: sizes(seen) == [4, 2])
    first.kill9()
    daemon({'queue': {'lease': '20s'}, **batched(seen.command(), kill_grace='100ms')}).wait_ready()
    wait_succeeded(queue, 4)
    assert queue.counter('crashes') == 4
    assert sizes(seen) == [4, 2, 1, 1, 1, 1]


def test_reload(daemon, queue, seen, latch):
    """After a reload the running half ends as usual. Tasks that wait go back, uncounted, since the new
    configuration may be about other programs."""
    worker = daemon(halves_wait(queue, seen, latch.wait)).wait_ready()
    wait_until(lambda: sizes(seen) == [4, 2])
    worker.reload()
    worker.wait_log('configuration reloaded')
    latch.open()
    wait_succeeded(queue, 4)
    assert worker.log().count('batch, the configuration was reloaded') == 2
    assert queue.counter('released') == 2 and queue.counter('retried') == 0
    assert seen.all()[2:] == [(2, b'3\n4\n')]


def test_failure_after_a_reload(daemon, queue, seen, latch):
    """If a batch fails after a reload, each of its tasks is retried in a process of its own."""
    add(queue, *numbers(3))
    worker = daemon({**ONE_SLOT, **batched(seen.command(f'[ $LEAT_BATCH = 1 ] && exit 0; {latch.wait}; exit 1'))})
    worker.wait_ready()
    wait_until(lambda: sizes(seen) == [3])
    worker.reload()
    worker.wait_log('configuration reloaded')
    latch.open()
    wait_succeeded(queue, 3)
    assert sizes(seen) == [3, 1, 1, 1] and queue.counter('retried') == 3
