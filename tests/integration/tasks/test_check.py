"""[task] check on the real daemon: whether a task was already done when its worker was lost."""
import pytest

from harness.polling import wait_until
from harness.short_leases import LEASE_S, MARGIN_S, boot_s, wait_empty
from harness.tasks import environment, letters, wait_letters, wait_succeeded

LONG_LEASE_MS = 20_000

LINES = 'cat > {0}/$1.new; env -0 > {0}/$1.env; mv {0}/$1.new {0}/$1; echo $1 >> {0}/order'


@pytest.fixture(autouse=True)
def patient(base_config, short_leases):
    """Everything but the lease is short: no lease expires, even if the machine stalls, unless a test makes it."""
    base_config['queue']['lease'] = f'{LONG_LEASE_MS}ms'


@pytest.fixture
def script(folder):
    """A shell line that records its input under a name, and then goes on: script(name, then)."""
    (folder / 'note').write_text('#!/bin/sh\n' + LINES.format(folder) + '\n')
    (folder / 'note').chmod(0o755)
    return lambda name, then='exit 0': f'{folder}/note {name}; {then}'


def checked(script, says, **task):
    """Sections with a command, and a check that ends like this."""
    return {'task': {'command': script('ran'), 'check': script('checked', says), **task}}


def add_crashed(queue, lease=LONG_LEASE_MS, **fields):
    """Adds a task whose worker was lost while it ran. Returns its tid."""
    queue.register('gone', lease=lease)
    [tid] = queue.add(fields or {'payload': 'x'})
    [task] = queue.begin('gone')
    queue.expire(task.token)
    return tid


def order(folder):
    path = folder / 'order'
    return path.read_text().split() if path.exists() else []


# ---- when the check runs

def test_only_after_a_lost_worker(daemon, queue, folder, script):
    """A task that never ran is not checked, and neither is one that failed by itself."""
    sections = checked(script, 'exit 0')
    sections['task']['command'] = script('ran', 'test $LEAT_ATTEMPT = 2')
    daemon(sections).wait_ready()
    queue.add({'payload': 'x'})
    wait_succeeded(queue, 1)
    assert order(folder) == ['ran', 'ran']


def test_without_a_check_it_runs(daemon, queue, folder, script):
    """Without a check, a task whose worker was lost runs again."""
    add_crashed(queue)
    daemon({'task': {'command': script('ran')}}).wait_ready()
    wait_succeeded(queue, 1)
    assert order(folder) == ['ran']


def test_after_kill_9(daemon, queue, folder, script):
    """A task that was done does not run twice, although its worker was killed before it could report it."""
    sections = checked(script, f'test -e {folder}/done')
    sections['task']['command'] = script('ran', f'touch {folder}/done; sleep 60')
    first = daemon(sections).wait_ready()
    [tid] = queue.add({'payload': 'x'})
    wait_until((folder / 'done').exists)
    first.kill9()
    second = daemon(sections).wait_ready()
    wait_succeeded(queue, 1)
    assert order(folder) == ['ran', 'checked']
    assert queue.counter('crashes') == 1
    second.wait_log(f'task {tid}: attempt 1 succeeded: the check says it is done')


@pytest.mark.parametrize('after, end', [('timeout', 'sleep 60'), ('lost, killed', 'kill -9 $$')])
def test_after_a_timeout_or_a_kill(daemon, queue, folder, script, after, end):
    """A run that hung after its effect, or was killed, does not run again if check_after names that end."""
    sections = checked(script, f'test -e {folder}/done', check_after=after, timeout='4s')
    sections['task']['command'] = script('ran', f'touch {folder}/done; {end}')
    daemon(sections).wait_ready()
    queue.add({'payload': 'x'})
    wait_succeeded(queue, 1)
    assert order(folder) == ['ran', 'checked'] and queue.counter('retried') == 1


@pytest.mark.parametrize('after', ['lost', 'lost killed'])
def test_not_after_other_ends(daemon, queue, folder, script, after):
    """After an end that check_after does not name, the task runs again without a check."""
    sections = checked(script, 'exit 0', check_after=after, timeout='4s')
    sections['task']['command'] = script('ran', 'test $LEAT_ATTEMPT = 2 || sleep 60')
    daemon(sections).wait_ready()
    queue.add({'payload': 'x'})
    wait_succeeded(queue, 1)
    assert order(folder) == ['ran', 'ran']


def test_any_earlier_attempt_counts(daemon, queue, folder, script):
    """After a timeout the check runs until it has decided, and again after a later failure."""
    sections = checked(script, 'exit 1', check_after='timeout', timeout='4s')
    sections['task']['command'] = script('ran', 'case $LEAT_ATTEMPT in 1) sleep 60;; 2) exit 1;; esac')
    daemon(sections).wait_ready()
    queue.add({'payload': 'x'})
    wait_succeeded(queue, 1)
    assert order(folder) == ['ran', 'checked', 'ran', 'checked', 'ran']


# ---- results of the check

def test_done_already(daemon, queue, folder, script):
    """Exit status 0: the task has succeeded without running, and the log says so."""
    tid = add_crashed(queue)
    worker = daemon(checked(script, 'exit 0')).wait_ready()
    wait_succeeded(queue, 1)
    assert order(folder) == ['checked']
    assert letters(queue) == [] and queue.counter('retried') == 0
    [line] = [line for line in worker.log().splitlines() if 'cause=done' in line]
    assert f'task {tid}: attempt 1 succeeded: the check says it is done after' in line
    assert '; not run' in line


def test_to_run(daemon, queue, folder, script):
    """Exit status 1: the task runs in the same attempt, with the same environment and payload as the check."""
    tid = add_crashed(queue, payload=b'one\0two', size='big', id='order 7')
    daemon(checked(script, 'exit 1')).wait_ready()
    wait_succeeded(queue, 1)
    assert order(folder) == ['checked', 'ran']
    assert (folder / 'checked').read_bytes() == (folder / 'ran').read_bytes() == b'one\0two'
    before, after = environment(folder / 'checked.env'), environment(folder / 'ran.env')
    deadlines = float(before.pop(b'LEAT_DEADLINE')), float(after.pop(b'LEAT_DEADLINE'))
    assert before == after
    assert before[b'LEAT_TASK'].decode() == tid and before[b'LEAT_ATTEMPT'] == b'1'
    assert before[b'TASK_size'] == b'big' and before[b'LEAT_ID'] == b'order 7'
    assert deadlines[1] - deadlines[0] > 500  # each has its own: 30 s and 10 min
    assert queue.counter('retried') == 0


def test_task_with_a_command_of_its_own(daemon, queue, folder, script):
    """A task with its own command is checked, too."""
    add_crashed(queue, command=script('own'), payload='x')
    daemon({'task': {'check': script('checked', 'exit 1')}}).wait_ready()
    wait_succeeded(queue, 1)
    assert order(folder) == ['checked', 'own']


def test_in_a_queue_of_batches(daemon, queue, folder, script):
    """In a queue with batches, the check gets the input of a single task."""
    add_crashed(queue, payload='line')
    daemon(checked(script, 'exit 1', batch=10)).wait_ready()
    wait_succeeded(queue, 1)
    assert order(folder) == ['checked', 'ran']
    assert (folder / 'checked').read_bytes() == (folder / 'ran').read_bytes() == b'line\n'
    assert environment(folder / 'checked.env')[b'LEAT_BATCH'] == b'1'


@pytest.mark.parametrize('says, reason', [
    ('exit 2', 'exit 2'), ('exit 64', 'exit 64'), ('kill -9 $$', 'killed by SIGKILL'), ('sleep 60', 'timeout')])
def test_does_not_know(daemon, queue, folder, script, says, reason):
    """After any other status, a signal, or its own timeout, the check runs again after the pause of [retry],
    up to max_attempts; then the task is a dead letter with the cause check, and never runs."""
    tid = add_crashed(queue)
    sections = {'retry': {'max_attempts': 3, 'permanent': 64, 'base': '200ms', 'factor': 2,
                          'jitter': 'none'},
                **checked(script, says, check_timeout='4s' if reason == 'timeout' else '20s')}
    daemon(sections).wait_ready()
    [letter] = wait_letters(queue)
    wait_empty(queue)
    assert order(folder) == ['checked'] * 3
    assert letter.own['leat.tid'] == tid and letter.cause == 'check' and letter.reason == reason
    assert letter.attempts == '3' and queue.counter('retried') == 2
    lines = [line for line in letter.lines() if line[4] != 'crash']
    assert [line[4] for line in lines] == ['check'] * 3
    pauses = [later[2] - earlier[3] for earlier, later in zip(lines, lines[1:])]
    assert pauses[0] >= 200 and pauses[1] >= 400


def test_knows_later(daemon, queue, folder, script):
    """An undecided check runs again, and then the task runs."""
    add_crashed(queue)
    daemon(checked(script, f'test -e {folder}/asked && exit 1; touch {folder}/asked; exit 3')
           ).wait_ready()
    wait_succeeded(queue, 1)
    assert order(folder) == ['checked', 'checked', 'ran']
    assert environment(folder / 'ran.env')[b'LEAT_ATTEMPT'] == b'2'


def test_missing_check_is_a_host_fault(daemon, queue, folder, script):
    """A check that cannot be executed uses no attempt and makes no dead letter."""
    add_crashed(queue)
    sections = {'retry': {'max_attempts': 1},
                'task': {'command': script('ran'), 'check': f'{folder}/missing x'}}
    worker = daemon(sections).wait_ready()
    worker.wait_log('this host cannot run tasks')
    (folder / 'missing').write_text('#!/bin/sh\nexit 1\n')
    (folder / 'missing').chmod(0o755)
    wait_succeeded(queue, 1)
    assert order(folder) == ['ran'] and letters(queue) == []


# ---- processes and output of the check

def test_the_check_is_gone_before_the_task_starts(daemon, queue, folder, script):
    """Processes that the check left in its group are killed before the task starts. Its output is in the log
    as the check's, and not in the task's dead letter."""
    add_crashed(queue)
    sections = checked(script, f'echo asked; (while :; do sleep 0.02; echo >> {folder}/left; done) & '
                               f'until [ -s {folder}/left ]; do sleep 0.02; done; exit 1')
    sections['task']['command'] = (f'a=$(wc -c < {folder}/left); sleep 0.3; '
                                   f'test $a = $(wc -c < {folder}/left) || touch {folder}/met; echo ran; exit 1')
    sections['retry'] = {'max_attempts': 1}
    worker = daemon(sections).wait_ready()
    [letter] = wait_letters(queue)
    assert not (folder / 'met').exists()
    assert letter.cause == 'exit' and letter.tail('stdout') == b'ran\n'
    lines = [line for line in worker.log().splitlines() if 'stream=stdout' in line]
    assert [' asked ' in line for line in lines] == [True, False]


def test_dead_letter_has_the_check_s_output(daemon, queue, script):
    """The dead letter of a task that died of its check has the check's output."""
    add_crashed(queue)
    daemon({'retry': {'max_attempts': 1}, **checked(script, 'echo why >&2; exit 7')}).wait_ready()
    [letter] = wait_letters(queue)
    assert letter.tail('stderr') == b'why\n'


# ---- leases and stops

def test_lease_is_renewed(daemon, queue, folder, script):
    """A check that takes longer than the lease keeps it, and the task runs once."""
    add_crashed(queue, lease=6000)
    daemon({'queue': {'lease': '6s'}, **checked(script, 'sleep 8; exit 1')}).wait_ready()
    wait_succeeded(queue, 1, 40)
    assert order(folder) == ['checked', 'ran']
    assert queue.counter('crashes') == 1 and queue.counter('fenced') == 0


def test_cut_off_while_checking(daemon, queue, folder, proxy, through_proxy, script, heartbeats, late):
    """If the worker is cut off from Redis, the check is dead before the lease ends; after the repair it runs
    again with no attempt used."""
    lease_s = 2 * LEASE_S  # so that it does not end before the fault, even if the machine stalls
    add_crashed(queue, lease=round(lease_s * 1000))
    says = f'[ -e {folder}/go ] && exit 1; exec {heartbeats.task(60, stubborn=True)}'
    daemon({**through_proxy, 'queue': {'lease': f'{lease_s:.0f}s'}, **checked(script, says)}).wait_ready()
    heartbeats.wait_runs(1)
    (folder / 'go').touch()
    begun = boot_s()
    proxy.silence()
    [run] = heartbeats.wait_dead()
    # the last renewal was sent before the fault began
    assert run.last < begun + lease_s - 2 * MARGIN_S + 0.05 + late() and not run.ended
    assert order(folder) == ['checked']
    proxy.heal()
    wait_until(lambda: queue.counter('succeeded') == 1, 20)
    wait_empty(queue)
    assert order(folder) == ['checked', 'checked', 'ran']
    assert environment(folder / 'ran.env')[b'LEAT_ATTEMPT'] == b'1'
    assert queue.counter('retried') == 0


def test_cancel_while_checking(daemon, queue, folder, script):
    """If a task is cancelled during its check, the check is killed, and the task never runs."""
    tid = add_crashed(queue)
    says = f'trap "touch {folder}/told; exit 1" TERM; touch {folder}/up; while :; do sleep 0.02; done'
    daemon(checked(script, says, kill_grace='5s')).wait_ready()
    wait_until((folder / 'up').exists)
    token = queue.show(tid)['row']['token'].decode()
    [state] = queue.call_off((tid, token), now=True)
    assert state.startswith('asked ')
    wait_until((folder / 'told').exists)
    wait_empty(queue)
    assert order(folder) == ['checked'] and letters(queue) == []
    assert queue.counter('retried') == 0 and queue.counter('succeeded') == 0


@pytest.mark.parametrize('drain', ['30s', '0'])
def test_stop_while_checking(daemon, queue, folder, script, drain):
    """A check, and the task after it, may end during the drain; after it the check is killed and the task
    requeued uncounted."""
    add_crashed(queue)
    worker = daemon({'shutdown': {'drain': drain}, **checked(
        script, f'touch {folder}/up; until [ -e {folder}/go ]; do sleep 0.02; done; exit 1')}
    ).wait_ready()
    wait_until((folder / 'up').exists)
    worker.terminate()
    if drain != '0':
        worker.wait_log('stopping')
        (folder / 'go').touch()
    assert worker.wait_exit() == 0
    assert order(folder) == (['checked', 'ran'] if drain != '0' else ['checked'])
    assert queue.counter('succeeded') == (drain != '0')
    assert queue.redis.xlen(queue.go) == (drain == '0') and queue.pending() == []
    assert queue.counter('retried') == 0 and queue.counter('crashes') == 1


def test_reload_takes_the_command_away(daemon, queue, folder, script):
    """If a reload removes the command during the check, the task is judged again."""
    add_crashed(queue)
    says = f'touch {folder}/up; until [ -e {folder}/go ]; do sleep 0.02; done; exit 1'
    worker = daemon(checked(script, says)).wait_ready()
    wait_until((folder / 'up').exists)
    text = worker.config_path.read_text()
    worker.config_path.write_text(
        '\n'.join(line for line in text.splitlines() if not line.startswith('command')) + '\n')
    worker.reload()
    worker.wait_log('configuration reloaded')
    (folder / 'go').touch()
    [letter] = wait_letters(queue)
    assert letter.cause == 'refused' and order(folder) == ['checked']
    assert worker.running()
