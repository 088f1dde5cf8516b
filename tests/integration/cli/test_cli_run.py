"""leat run: a command on a worker, as if it ran here."""
import array
import fcntl
import os
import select
import signal
import subprocess
import termios
import time

import pytest

from harness import processes
from harness.daemon import merged, program, write_config
from harness.functions.results import HOLDS_DATA, key_of
from harness.latch import Latch
from harness.tasks import wait_file, wait_letters

pytestmark = pytest.mark.usefixtures('quick_tasks')

TIMED_OUT, FAILED, CANCELLED = 124, 125, 130


def latch(folder, name='latch'):
    """A shell line that waits until the test opens the latch."""
    one = Latch(folder / name)
    return one.wait, one.open


def tid_of(queue):
    """The one task that runs."""
    [row] = queue.list('running')
    return row['tid'].decode()


# ---- like a local command

@pytest.mark.parametrize('line, status', [
    ('true', 0), ('exit 3', 3), ('exit 255', 255), ('exit 126', 126), ('no-such-program', 127),
    ('kill -KILL $$', 137), ('kill -TERM $$', 143), ('kill -SEGV $$', 139), ('kill -40 $$', 168)])
def test_exit_status(daemon, leat, queue, line, status):
    """leat exits with the command's own status, or 128 and the signal's number."""
    daemon().wait_ready()
    assert leat('run', line).returncode == status


def test_same_as_a_local_shell(daemon, leat, queue, folder):
    """Output and status are the same as when a shell runs the command here: the bytes of both outputs, the
    order within each, and no added newline."""
    daemon().wait_ready()
    line = r"printf 'a\0b\377\n'; printf 'x\0\r' >&2; echo second; printf end; exit 7"
    here = subprocess.run(['/bin/sh', '-c', line], capture_output=True, check=False)
    there = leat('run', line, input=b'')
    assert (there.stdout, there.stderr, there.returncode) == (here.stdout, here.stderr, here.returncode)


def test_arguments_are_quoted(daemon, leat, queue):
    """Several arguments reach the program unchanged; one is a shell line."""
    daemon().wait_ready()
    words = ['a b', "it's", '$HOME', '*', '', 'x;y', '`id`', 'ü\n', '-n', '\\', '!', '"']
    done = leat('run', '--', 'printf', '%s|', *words)
    assert (done.stdout, done.returncode) == ('|'.join(words) + '|', 0)
    assert leat('run', 'echo $((6 * 7)) | tr 4 x').stdout == 'x2\n'
    assert leat('run', 'sh', '-c', 'echo "$0" "$1"', 'zero', 'a b').stdout == 'zero a b\n'


@pytest.mark.parametrize('option', [['--stdin'], ['--payload', '-']])
def test_stdin(daemon, leat, queue, option):
    """With --stdin the command reads leat's stdin, byte for byte; without, nothing."""
    daemon().wait_ready()
    data = bytes(range(256)) * 1000
    done = leat('run', *option, '--', 'cat', input=data)
    assert done.stdout == data
    # the data is there before leat is, which a short command would not wait for
    reader, writer = os.pipe()
    os.write(writer, b'x')
    os.close(writer)
    done = leat('run', '--', 'cat', stdin=reader)
    os.close(reader)
    assert (done.stdout, done.returncode) == ('', 0)
    assert done.stderr == 'leat: the command does not get stdin, which has data; pass it with --stdin\n'
    assert 'stdin' not in leat('run', '--payload', 'y', '--', 'cat', input='x').stderr


def test_stdin_that_is_not_meant(daemon, leat, queue, folder):
    """An empty pipe, a file that a loop reads, and a pipe that nobody writes to get no note about stdin."""
    daemon().wait_ready()
    path = folder / 'lines'
    path.write_text('one\ntwo\n')
    with path.open('rb', buffering=0) as lines:
        assert 'with --stdin' in leat('run', 'true', input=None, stdin=lines).stderr
        lines.read(4)
        assert leat('run', 'true', input=None, stdin=lines).stderr == ''
    assert leat('run', 'true', input='').stderr == ''


def test_a_slow_writer_of_stdin(daemon, start, queue, folder, wait_until):
    """Data that comes after the start is noted at the end."""
    daemon().wait_ready()
    line, go = latch(folder)
    reader, writer = os.pipe()
    run = start('run', line, stdin=reader)
    os.close(reader)
    wait_until(lambda: queue.list('running'), 20)
    os.write(writer, b'x')
    go()
    assert run.ended() == 0 and 'with --stdin' in run.error
    os.close(writer)


def test_statuses_of_leat_are_not_those_of_the_command(daemon, leat, queue):
    """A command may use the numbers of sysexits; leat's own failures have another one."""
    daemon().wait_ready()
    for number in (64, 69, 75, 78):
        assert leat('run', f'exit {number}').returncode == number
    assert leat('run', 'true', config={'nonsense': {'key': '1'}}).returncode == FAILED
    assert leat('run', '--help').returncode == 0


def test_output_comes_while_it_runs(daemon, start, queue, folder, wait_until):
    """Output is printed before the command has ended, stdout and stderr apart."""
    daemon().wait_ready()
    line, go = latch(folder)
    run = start('run', f'printf one; printf two >&2; {line}; printf three')
    wait_until(lambda: (run.out, run.error) == ('one', 'two'), 20)
    assert run.running()
    go()
    assert run.ended() == 0
    assert (run.out, run.error) == ('onethree', 'two')


def test_ten_megabytes(daemon, start, queue, folder):
    """10 MB of output arrive byte for byte before leat ends."""
    daemon({'output': {'to': 'discard'}}).wait_ready()
    run = start('run', f'head -c 10000000 /dev/urandom | tee {folder}/copy')
    assert run.ended(60) == 0
    assert run.raw == (folder / 'copy').read_bytes() and run.error == ''


def test_last_output_is_not_lost(daemon, leat, queue):
    """Output that the command writes right before its exit is printed before leat ends, each time."""
    daemon({'output': {'to': 'discard'}}).wait_ready()
    for _ in range(20):
        done = leat('run', 'head -c 200000 /dev/zero; head -c 70000 /dev/zero >&2')
        assert (len(done.stdout), len(done.stderr), done.returncode) == (200000, 70000, 0)


def test_success_codes(daemon, leat, queue):
    """An exit status that the queue counts as success is still leat's exit status."""
    daemon({'retry': {'success': '3'}}).wait_ready()
    assert leat('run', 'exit 3').returncode == 3
    assert queue.letters() == []


def test_command_of_the_config(daemon, leat, queue):
    """If the configuration has the command, it runs with the given payload."""
    config = {'task': {'command': 'echo $TASK_SIZE; cat'}}
    daemon(config).wait_ready()
    done = leat('run', '--field', 'SIZE=7', '--stdin', input='x', config=config)
    assert (done.stdout, done.returncode) == ('7\nx', 0)


# ---- other outcomes

def test_retries(daemon, leat, queue):
    """leat run makes one attempt, unless --max-attempts is set; it says how each attempt ended and when the
    next starts."""
    daemon({'retry': {'base': '100ms'}}).wait_ready()
    line = 'echo $LEAT_ATTEMPT; [ $LEAT_ATTEMPT = 3 ] || exit 4'
    once = leat('run', line)
    assert (once.stdout, once.stderr, once.returncode) == ('1\n', '', 4)
    done = leat('run', '--max-attempts', '3', line)
    assert (done.stdout, done.returncode) == ('1\n2\n3\n', 0)
    first, second, third, fourth = done.stderr.splitlines()
    assert first.endswith('attempt 1: exit 4; retrying in 100ms')
    assert ': attempt 2 on ' in second and ': attempt 3 on ' in fourth
    assert third.endswith('attempt 2: exit 4; retrying in 200ms')


def test_timeout(daemon, leat, queue):
    """A timeout gives 124, as timeout(1) does, and the output until then."""
    daemon().wait_ready()
    done = leat('run', '--timeout', '3s', 'echo begun; exec sleep 60')
    assert (done.stdout, done.returncode) == ('begun\n', TIMED_OUT)
    assert done.stderr.endswith(': timeout\n')


def test_expired(daemon, start, queue, proxy, through_proxy, wait_until):
    """If the worker does not start the task in time, leat says so."""
    # leat itself would end the task at that time: it does not hear of the task before the worker has done it
    trap = proxy.trap('leat_enqueue', action='hold')
    config = merged(through_proxy, {'redis': {'command_timeout': '10m'}})
    run = start('run', '--expires', '1', 'true', config=config)
    trap.wait()
    tid = queue.entries('stream')[0][0]
    wait_until(lambda: queue.now() > int(tid.split('-')[0]) + 2000, 20)
    daemon().wait_ready()
    [letter] = wait_letters(queue)
    assert letter.cause == 'expired'
    trap.release()
    assert run.ended() == FAILED and 'expired' in run.error


def test_refused(daemon, leat, queue):
    """A task that the worker refuses, or that leat refuses before, is reported."""
    daemon({'task': {'command': 'true'}}).wait_ready()
    done = leat('run', 'true')
    assert done.returncode == FAILED and 'refused' in done.stderr
    assert leat('run', '--field', 'a b=c', 'true').returncode == FAILED


def test_worker_is_killed(daemon, start, queue, folder, wait_until):
    """If the worker dies, the command runs again elsewhere; leat says so, and prints its output."""
    first = daemon({'queue': {'lease': '8s'}}).wait_ready()
    run = start('run', f'[ -e {folder}/x ] && {{ echo $LEAT_FENCE; exit 9; }}; touch {folder}/x; '
                f'echo $LEAT_FENCE; exec sleep 60')
    wait_until(lambda: run.out.endswith('\n'), 20)
    first.kill9()
    processes.end_orphans()
    daemon({'queue': {'lease': '8s'}}).wait_ready()
    assert run.ended() == 9
    assert len(run.out.splitlines()) == 2 and 'the previous worker was lost' in run.error


def test_every_worker_is_killed(daemon, start, queue, wait_until):
    """After max_crashes lost workers the task is a dead letter with the cause crash."""
    config = {'queue': {'lease': '8s', 'max_crashes': 1}}
    first = daemon(config).wait_ready()
    run = start('run', 'echo begun; exec sleep 60')
    wait_until(lambda: run.out == 'begun\n', 20)
    first.kill9()
    processes.end_orphans()
    daemon(config).wait_ready()
    assert run.ended() == FAILED and ': crash: ' in run.error


def test_worker_stops(daemon, start, queue, folder, wait_until):
    """A worker that stops returns the task to the queue, and it runs again elsewhere."""
    config = {'shutdown': {'drain': '0'}}
    first = daemon(config).wait_ready()
    line, go = latch(folder)
    run = start('run', f'echo $LEAT_ATTEMPT; {line}')
    wait_until(lambda: run.out == '1\n', 20)
    first.terminate()
    run.wait_error('it will run again')
    daemon(config).wait_ready()
    wait_until(lambda: run.out == '1\n1\n', 20)
    go()
    assert run.ended() == 0


def test_deleted_by_hand(start, queue, wait_until, proxy, through_proxy):
    """A task that was deleted by hand is reported as lost at the next check."""
    run = start('run', 'true', config=through_proxy)
    wait_until(lambda: queue.redis.xlen(queue.stream) == 1, 20)
    queue.redis.delete(queue.stream)
    # leat knows that the task is enqueued, and follows it
    wait_until(lambda: any('b' in one['flags'] for one in queue.redis.client_list()))
    proxy.cut()
    assert run.ended() == FAILED and 'no longer queued, and no result was kept' in run.error


# ---- Ctrl-C

def test_interrupt(daemon, start, queue, folder, wait_until):
    """The first signal cancels: the command gets SIGTERM at once, and its last output is printed."""
    daemon({'task': {'kill_grace': '20s'}, 'queue': {'lease': '60s'}}).wait_ready()
    run = start('run', 'trap "echo bye; exit 5" TERM; echo begun; while :; do sleep 0.05; done')
    wait_until(lambda: run.out == 'begun\n', 20)
    run.process.send_signal(signal.SIGINT)
    assert run.ended() == CANCELLED
    assert run.out == 'begun\nbye\n' and run.error.endswith(': cancelled\n')
    assert queue.letters() == [] and queue.counter('retried') == 0


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_interrupt_while_it_waits(start, queue, wait_until, number):
    """A task that has not started is removed at once."""
    queue.register('w1')
    run = start('run', 'true')
    wait_until(lambda: queue.redis.xlen(queue.stream) == 1, 20)
    run.process.send_signal(number)
    assert run.ended() == CANCELLED
    assert queue.redis.xlen(queue.stream) == 0


def test_interrupt_of_a_retry(daemon, start, queue):
    """A task that waits for its next attempt is removed at once."""
    daemon({'retry': {'base': '60s', 'cap': '60s'}}).wait_ready()
    run = start('run', '--max-attempts', '2', 'exit 1')
    run.wait_error('retrying in')
    run.process.send_signal(signal.SIGINT)
    assert run.ended() == CANCELLED
    assert queue.places() == {}


def test_interrupt_of_a_requeued_task(start, queue, wait_until):
    """A task in the requeue stream is found there and removed."""
    queue.register('w1')
    run = start('run', 'true')
    wait_until(lambda: queue.redis.xlen(queue.stream) == 1, 20)
    [task] = queue.begin('w1')
    queue.finish('w1', task, 'release')
    run.process.send_signal(signal.SIGINT)
    assert run.ended() == CANCELLED
    assert queue.redis.xlen(queue.go) == 0


def test_second_interrupt(daemon, start, queue, wait_until, folder):
    """The second signal ends leat at once; the task is stopped nevertheless."""
    daemon({'task': {'kill_grace': '20s'}, 'queue': {'lease': '60s'}}).wait_ready()
    run = start('run', f'trap "" TERM; echo begun; touch {folder}/up; while :; do sleep 0.05; done')
    wait_until(lambda: run.out == 'begun\n', 20)
    tid = tid_of(queue)
    run.process.send_signal(signal.SIGINT)
    run.wait_error(f'cancelling task {tid}; interrupt again to end without waiting for it')
    wait_until(lambda: queue.redis.sismember(queue.cancel, tid), 20)
    run.process.send_signal(signal.SIGINT)
    assert run.ended() == CANCELLED
    assert f'task {tid} is being cancelled; leat does not wait for its end' in run.error


def test_two_signals_at_once(start, queue, wait_until):
    """If a wrapper passes on the signal that leat gets, too, the task is cancelled nevertheless."""
    run = start('run', 'true')
    wait_until(lambda: queue.redis.xlen(queue.stream) == 1, 20)
    run.process.send_signal(signal.SIGSTOP)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        run.process.send_signal(number)
    assert run.ended() == CANCELLED and queue.places() == {}


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_interrupt_while_it_is_enqueued(start, queue, proxy, through_proxy, number):
    """If the signal comes after Redis has taken the task and before leat knows, the task is cancelled."""
    trap = proxy.trap('leat_enqueue', action='hold')
    run = start('run', 'true', config=through_proxy)
    trap.wait()
    run.process.send_signal(number)
    trap.release()
    assert run.ended() == CANCELLED and 'cancelling task' in run.error
    assert queue.places() == {} and queue.counter('cancelled') == 1


def test_it_succeeds_before_the_cancel(start, queue, wait_until):
    """If the task succeeds before the cancel, leat exits with success."""
    queue.register('w1')
    run = start('run', 'true')
    wait_until(lambda: queue.redis.xlen(queue.stream) == 1, 20)
    [task] = queue.begin('w1')
    run.process.send_signal(signal.SIGINT)
    wait_until(lambda: queue.redis.scard(queue.cancel) == 1, 20)
    queue.finish('w1', task)
    assert run.ended() == 0


def test_another_user_cancels(daemon, start, queue, wait_until):
    """leat run says that another user cancelled the task."""
    daemon().wait_ready()
    run = start('run', 'echo begun; exec sleep 60')
    wait_until(lambda: run.out == 'begun\n', 20)
    queue.call('cancel', queue.group, 1, tid_of(queue), '')
    assert run.ended() == CANCELLED and run.error.endswith(': cancelled\n')


def test_ignored_signals_stay_ignored(daemon, start, queue, folder, wait_until):
    """Ignored signals stay ignored, as in the background of a shell without job control."""
    daemon().wait_ready()
    line, go = latch(folder)
    run = start('run', f'echo begun; {line}',
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    wait_until(lambda: run.out == 'begun\n', 20)
    run.process.send_signal(signal.SIGINT)
    go()
    assert run.ended() == 0


# ---- failures

@pytest.mark.parametrize('when', ['refuse', 'cut'])
def test_broken_connection(daemon, start, queue, proxy, through_proxy, folder, wait_until, when):
    """After a broken connection leat connects again; no output is lost or printed twice."""
    daemon().wait_ready()
    line, go = latch(folder)
    config = {'redis': {**through_proxy['redis'], 'backoff_cap': '200ms'}}
    run = start('run', f'echo one; {line}; echo two; exit 6', config=config)
    wait_until(lambda: run.out == 'one\n', 20)
    if when == 'refuse':
        proxy.refuse()
        run.wait_error('; retrying')
        go()
        wait_letters(queue)
        proxy.accept()
    else:
        proxy.cut()
        go()
    assert run.ended() == 6
    assert run.out == 'one\ntwo\n'


def test_worker_reconnects(daemon, start, queue, proxy, through_proxy, wait_until):
    """If the worker's connection breaks while the command writes, no output is lost or printed twice."""
    daemon(through_proxy).wait_ready()
    traps = [proxy.trap('leat_output', when='after', holding=HOLDS_DATA) for _ in range(2)]
    run = start('run', 'for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.05; done')
    for trap in traps:
        trap.wait()
    assert run.ended() == 0
    assert run.out == ''.join(f'{i}\n' for i in range(1, 10)) and run.error == ''


def test_interrupt_while_redis_is_away(daemon, start, queue, proxy, through_proxy, wait_until):
    """The second signal ends leat, whatever Redis does."""
    daemon().wait_ready()
    run = start('run', 'echo begun; exec sleep 60', config=through_proxy)
    wait_until(lambda: run.out == 'begun\n', 20)
    proxy.refuse()
    run.wait_error('; retrying')
    run.process.send_signal(signal.SIGINT)
    run.wait_error('cancelling task')
    run.process.send_signal(signal.SIGINT)
    assert run.ended() == CANCELLED and 'is left running; leat cancel stops it' in run.error


def test_interrupt_that_waits_for_redis(daemon, start, queue, proxy, through_proxy, wait_until):
    """A cancel that failed is sent as soon as Redis is back."""
    daemon().wait_ready()
    config = {'redis': {**through_proxy['redis'], 'backoff_cap': '200ms'}}
    run = start('run', 'echo begun; exec sleep 60', config=config)
    wait_until(lambda: run.out == 'begun\n', 20)
    proxy.refuse()
    run.wait_error('; retrying')
    run.process.send_signal(signal.SIGINT)
    run.wait_error('cannot connect')
    proxy.accept()
    assert run.ended() == CANCELLED and run.error.endswith(': cancelled\n')


def test_interrupt_whose_cancel_is_lost(daemon, start, proxy, through_proxy, wait_until):
    """If only the connection for the cancel breaks, leat sends the cancel again while everything else goes
    on."""
    daemon().wait_ready()
    trap = proxy.trap('leat_cancel', when='before')
    run = start('run', 'echo begun; while :; do sleep 0.1; echo; done', config=through_proxy)
    wait_until(lambda: 'begun' in run.out, 20)
    run.process.send_signal(signal.SIGINT)
    trap.wait()
    assert run.ended() == CANCELLED and run.error.endswith(': cancelled\n')


def test_second_interrupt_with_a_full_pipe(daemon, start, through_proxy, proxy, wait_until):
    """If nothing reads leat's output and the second signal comes during the cancel, leat ends."""
    daemon({'output': {'to': 'discard'}}).wait_ready()
    trap = proxy.trap('leat_cancel', action='hold')
    reader, writer = os.pipe()
    size, unread = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096), array.array('i', [0])
    run = start('run', 'exec yes', config=through_proxy, stdout=writer)
    wait_until(lambda: fcntl.ioctl(reader, termios.FIONREAD, unread) == 0 and unread[0] == size, 20)
    run.process.send_signal(signal.SIGINT)
    trap.wait()
    run.process.send_signal(signal.SIGINT)
    trap.release()
    assert run.ended() == CANCELLED and 'is being cancelled; leat does not wait for its end' in run.error
    os.close(reader)
    os.close(writer)


def test_second_interrupt_without_an_answer(daemon, start, through_proxy, proxy, wait_until):
    """If Redis does not answer the request to cancel, the second signal ends leat soon nevertheless."""
    daemon().wait_ready()
    trap = proxy.trap('leat_cancel', action='hold')
    config = {'redis': {**through_proxy['redis'], 'command_timeout': '1h'}}
    run = start('run', 'echo begun; exec sleep 60', config=config)
    wait_until(lambda: run.out == 'begun\n', 20)
    run.process.send_signal(signal.SIGINT)
    trap.wait()
    run.process.send_signal(signal.SIGINT)
    assert run.ended() == CANCELLED
    assert 'may go on, since Redis has not answered; leat cancel stops it' in run.error
    trap.release()


def test_lost_output_is_counted(start, queue, wait_until):
    """leat counts bytes that were trimmed from the stream before it read them."""
    queue.register('w1')
    run = start('run', 'true')
    wait_until(lambda: queue.redis.xlen(queue.stream) == 1, 20)
    [task] = queue.begin('w1')
    output = key_of(queue, 'output', task.tid)
    queue.redis.xadd(output, {'attempt': 1, 'fence': 1, 'offset': 0, 'fd': 1, 'data': 'one\n'})
    queue.redis.xadd(output, {'attempt': 1, 'fence': 1, 'offset': 104, 'fd': 1, 'data': 'two\n'})
    wait_until(lambda: run.out == 'one\ntwo\n', 20)
    assert ': 100 bytes of output lost' in run.error
    queue.redis.xadd(output, {'odd': 'x'})
    queue.redis.xadd(output, {'attempt': 9, 'fence': 1, 'offset': 108, 'fd': 7, 'data': 'x'})
    queue.finish('w1', task)
    assert run.ended() == 0 and run.out == 'one\ntwo\n'


def test_stale_worker(start, queue, wait_until):
    """Output of an attempt that was taken over by another worker is not printed."""
    queue.register('w1')
    run = start('run', 'true')
    wait_until(lambda: queue.redis.xlen(queue.stream) == 1, 20)
    [task] = queue.begin('w1')
    output = key_of(queue, 'output', task.tid)
    queue.redis.xadd(output, {'attempt': 1, 'fence': 2, 'offset': 0, 'fd': 1, 'data': 'new'})
    queue.redis.xadd(output, {'attempt': 1, 'fence': 1, 'offset': 0, 'fd': 1, 'data': 'stale'})
    queue.finish('w1', task)
    assert run.ended() == 0 and run.out == 'new'


def test_closed_pipe(daemon, folder, base_config, queue, wait_until):
    """If leat's stdout is closed, as with head, the command is ended."""
    daemon({'output': {'to': 'discard'}}).wait_ready()
    path = write_config(folder / 'pipe.ini', base_config)
    reader, writer = os.pipe()
    with subprocess.Popen([program('leat'), '-c', str(path), 'run', 'exec yes'], stdout=writer,
                          stderr=subprocess.PIPE) as process:
        os.close(writer)
        wait_until(lambda: select.select([reader], [], [], 0)[0], 20)
        assert os.read(reader, 4) == b'y\ny\n'
        os.close(reader)
        assert process.wait(30) == FAILED
    wait_until(lambda: queue.counter('cancelled') == 1, 20)


# ---- the command line

def test_the_task_exists_already(leat, start, queue, wait_until):
    """With --id nothing runs if a task with that label exists."""
    queue.register('w1')
    run = start('run', '--id', 'nightly', 'true')
    wait_until(lambda: queue.redis.xlen(queue.stream) == 1, 20)
    done = leat('run', '--id', 'nightly', 'true')
    assert done.returncode == FAILED and 'has the same label or unique key' in done.stderr
    assert run.running()


def test_options_of_the_task(start, queue, wait_until):
    """The task has the fields that leat enqueue would set, and those that run needs unless they were given."""
    run = start('run', '--timeout', '5m', '--max-attempts', '4', '--max-output', '1M',
                '--result-ttl', '2m', '--field', 'A=1', 'x y')
    wait_until(lambda: queue.redis.xlen(queue.stream) == 1, 20)
    [(_, fields)] = queue.entries('stream')
    assert dict(zip(fields[::2], fields[1::2])) == {
        b'timeout': b'5m', b'max_attempts': b'4', b'max_output': b'1M', b'result_ttl': b'2m', b'A': b'1',
        b'command': b'x y', b'live': b'1'}
    assert run.running()


@pytest.mark.parametrize('args', [[], ['--result-ttl', '59s', 'true'], ['--jsn', 'true'], ['--stdin=x', 'true'],
                                  ['--stdin', '--payload', 'x', 'true'], ['echo > x', '--stdin']])
def test_usage(leat, args):
    """A wrong command line is refused before leat connects."""
    assert leat('run', *args, config={'redis': {'socket': '/nowhere'}}).returncode == FAILED


def test_redis_is_away_at_first(leat, folder):
    """If Redis is away at the start, nothing is enqueued."""
    assert leat('run', 'true', config={'redis': {'socket': '/nowhere'}}).returncode == FAILED
    assert leat('run', '--payload-file', folder / 'none', 'true').returncode == FAILED


def test_full_queue(leat, queue):
    """If the queue is full, leat says so and exits as for all its failures."""
    queue.register('w1', max_length=1)
    queue.add({'command': 'x'})
    assert leat('run', 'true').returncode == FAILED


def test_left_behind(daemon, start, queue, folder, wait_until):
    """If leat itself is killed, the task goes on."""
    daemon().wait_ready()
    line, go = latch(folder)
    run = start('run', f'echo begun; {line}; echo x > {folder}/done')
    wait_until(lambda: run.out == 'begun\n', 20)
    run.process.kill()
    run.ended()
    go()
    wait_file(folder / 'done')


@pytest.mark.parametrize('why', ['no worker', 'paused'])
def test_expires_without_a_worker_that_could_start_it(start, daemon, queue, why):
    """--expires ends the wait at its time if no worker runs, and on a paused queue: exit code 125, and a dead
    letter with the cause expired. 500ms is half a second."""
    if why == 'paused':
        queue.call('gate', 'paused', 1)
        daemon().wait_ready()
    began = time.monotonic()
    run = start('run', '--expires', '500ms', 'true')
    # it does not wait for the end of a blocking read, which takes 20 seconds
    assert run.ended() == FAILED and 0.5 <= time.monotonic() - began < 19
    [(_, letter)] = queue.letters()
    assert letter['leat.cause'] == b'expired' and queue.counter('expired') == 1
    assert 'expired' in run.error


def test_expires_before_a_retry(start, daemon, queue, wait_until):
    """The same of a task that has failed once and waits for its retry, while no worker runs."""
    worker = daemon({'retry': {'base': '10m', 'cap': '10m'}}).wait_ready()
    began = time.monotonic()
    run = start('run', '--max-attempts', '2', '--expires', '3s', 'sleep 1; false')
    wait_until(lambda: 'retrying in' in run.error and queue.counter('retried') == 1, 20)
    worker.terminate()
    assert run.ended() == FAILED and 3 <= time.monotonic() - began < 40
    [(_, letter)] = queue.letters()
    assert (letter['leat.cause'], letter['leat.attempts']) == (b'expired', b'1')
