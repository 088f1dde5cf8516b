"""leat attach: follows a task that runs already, on whichever worker."""
import os
import signal

import pytest

from harness import processes
from harness.functions.results import follow, key_of, wait_result
from harness.queue import Queue
from harness.tasks import wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')

TIMED_OUT, FAILED, CANCELLED = 124, 125, 130


@pytest.fixture
def files(folder, base_config):
    """A function that returns what the workers have read of a task's output."""
    base_config['output'] = {'to': 'file', 'directory': folder / 'files'}

    def read(tid):
        path = next(folder.glob(f'files/**/{tid}*'), None)
        return path.read_bytes() if path else b''

    return read


def wait_running(queue, wait_until, count=1):
    wait_until(lambda: len(queue.list('running')) == count, 20)


def awaited(queue, wait_until, tid):
    """Waits until leat has asked for the result of the task, which it does after it has asked for its output."""
    wait_until(lambda: queue.redis.hexists(queue.awaited, tid), 20)


# ---- tasks that run

def test_output_and_status(daemon, start, queue, latches, wait_until):
    """Of a task that was added without leat run, leat prints what it has written, what it writes then, both
    outputs apart, and exits with its status."""
    daemon().wait_ready()
    first, last = latches(), latches()
    [tid] = queue.add({'command': f'printf one; printf bad >&2; {first.wait}; printf two; {last.wait}; exit 7',
                       'max_attempts': 1})
    wait_running(queue, wait_until)
    attach = start('attach', tid)
    wait_until(lambda: (attach.out, attach.error) == ('one', 'bad'), 20)
    first.open()
    wait_until(lambda: attach.out == 'onetwo', 20)
    assert attach.running()
    last.open()
    assert attach.ended() == 7 and (attach.out, attach.error) == ('onetwo', 'bad')


@pytest.mark.parametrize('line, fields, status', [
    ('true', {}, 0), ('exit 3', {'max_attempts': 1}, 3), ('kill -TERM $$', {'max_attempts': 1}, 143),
    ('exec sleep 60', {'timeout': '3s', 'max_attempts': 1}, TIMED_OUT)])
def test_a_task_that_has_not_started(daemon, start, queue, wait_until, line, fields, status):
    """leat waits for the start, prints all output, however short the task is, and has the status of leat run for
    the same end."""
    queue.register('none')
    [tid] = queue.add({'command': f'echo begun; {line}', **fields})
    attach = start('attach', tid)
    awaited(queue, wait_until, tid)
    daemon().wait_ready()
    assert attach.ended() == status and attach.out == 'begun\n'


def test_a_worker_that_runs_already(daemon, start, queue, wait_until):
    """A worker that was there before knows who is followed when it starts the task."""
    daemon().wait_ready()
    queue.call('gate', 'paused', 1)
    [tid] = queue.add({'command': 'head -c 100000 /dev/zero'})
    attach = start('attach', tid)
    awaited(queue, wait_until, tid)
    queue.call('gate', 'paused', 0)
    assert attach.ended() == 0 and len(attach.raw) == 100000


def test_a_task_of_leat_run(daemon, start, queue, latches, wait_until):
    """A leat run that was killed, as by a broken ssh, is continued: all output from the start, and the exit
    status."""
    daemon().wait_ready()
    latch = latches()
    run = start('run', f'head -c 100000 /dev/zero; {latch.wait}; echo end; exit 5')
    wait_until(lambda: len(run.raw) == 100000, 20)
    [row] = queue.list('running')
    tid = row['tid'].decode()
    run.process.kill()
    attach = start('attach', tid)
    wait_until(lambda: len(attach.raw) == 100000, 20)
    latch.open()
    assert attach.ended() == 5 and attach.raw == bytes(100000) + b'end\n' and attach.error == ''


def test_a_batch_on_a_paused_queue(daemon, start, queue, latches, folder, wait_until):
    """A batch sends no output while it runs. leat knows all the same that the task does not wait for the queue."""
    latch = latches()
    command = f'cat > {folder}/begun; {latch.wait}'
    queue.register('none')
    [tid, _] = queue.add({'payload': 'one'}, {'payload': 'two'})
    daemon({'task': {'command': command, 'batch': 2, 'batch_wait': '10s'}}).wait_ready()
    wait_until((folder / 'begun').exists, 20)
    queue.call('gate', 'paused', 1)
    [waiting] = queue.add({'payload': 'three'})
    attach, other = start('attach', tid), start('attach', waiting)
    wait_until(lambda: 'is paused' in other.error, 20)
    awaited(queue, wait_until, tid)
    latch.open()
    assert attach.ended() == 0 and attach.error == ''


def test_a_tail_is_left(daemon, start, queue, latches, files, wait_until):
    """Of long output before, leat prints the end, and says how much is missing."""
    daemon({'dead': {'output_tail': '1K'}}).wait_ready()
    latch = latches()
    [tid] = queue.add({'command': f'head -c 1000000 /dev/zero; printf end; {latch.command}'})
    wait_until(lambda: len(files(tid)) == 1000003, 20)
    attach = start('attach', tid)
    wait_until(lambda: attach.raw.endswith(b'end'), 20)
    latch.open()
    assert attach.ended() == 0
    shown = len(attach.raw)
    assert 1024 <= shown <= 2048
    assert f'its first {1000003 - shown} bytes of output are not shown' in attach.error


def test_a_megabyte(daemon, start, queue, latches, wait_until):
    """1 MiB that is written while leat follows arrives byte for byte."""
    daemon({'output': {'to': 'discard'}}).wait_ready()
    latch = latches()
    [tid] = queue.add({'command': f'{latch.wait}; head -c 1048576 /dev/zero; exit 2', 'max_attempts': 1})
    wait_running(queue, wait_until)
    attach = start('attach', tid)
    wait_until(lambda: follow(queue, tid).entries, 20)
    latch.open()
    assert attach.ended(60) == 2 and attach.raw == bytes(1048576) and attach.error == ''


def test_a_retry(daemon, start, queue, latches, wait_until):
    """A task that is tried again while leat follows: leat says so, and prints the output of both attempts."""
    daemon({'retry': {'base': '100ms'}}).wait_ready()
    latch = latches()
    [tid] = queue.add({'command': f'echo $LEAT_ATTEMPT; {latch.wait}; [ $LEAT_ATTEMPT = 2 ]'})
    wait_running(queue, wait_until)
    attach = start('attach', tid)
    wait_until(lambda: attach.out == '1\n', 20)
    latch.open()
    assert attach.ended() == 0 and attach.out == '1\n2\n'
    first, second = attach.error.splitlines()
    assert 'attempt 1: exit 1; retrying in' in first and 'attempt 2 on ' in second


def test_a_lost_worker(daemon, start, queue, latches, wait_until):
    """If the worker dies, leat prints the output of the next one, whose fence is greater."""
    config = {'queue': {'lease': '8s'}}
    first = daemon(config).wait_ready()
    latch = latches()
    [tid] = queue.add({'command': f'echo $LEAT_FENCE; {latch.wait}'})
    wait_running(queue, wait_until)
    attach = start('attach', tid)
    wait_until(lambda: attach.out.endswith('\n'), 20)
    first.kill9()
    processes.end_orphans()
    daemon(config).wait_ready()
    wait_until(lambda: len(attach.out.splitlines()) == 2, 30)
    latch.open()
    assert attach.ended() == 0 and 'the previous worker was lost' in attach.error


def test_stale_worker(start, queue, wait_until):
    """Output of an attempt that was taken over by another worker is not printed."""
    queue.register('w1')
    [tid] = queue.add({'command': 'x'})
    [task] = queue.begin('w1')
    output = key_of(queue, 'output', tid)
    queue.redis.xadd(output, {'attempt': 1, 'fence': 2, 'offset': 10, 'fd': 1, 'data': 'new'})
    queue.redis.xadd(output, {'attempt': 1, 'fence': 1, 'offset': 0, 'fd': 1, 'data': 'stale'})
    attach = start('attach', tid)
    awaited(queue, wait_until, tid)
    queue.finish('w1', task)
    assert attach.ended() == 0 and attach.out == 'new'
    assert attach.error == f'leat: task {tid}: its first 10 bytes of output are not shown\n'


def test_two_followers(daemon, start, queue, latches, wait_until):
    """Two followers get the same output, and a second one what the first has got before."""
    daemon().wait_ready()
    latch, last = latches(), latches()
    [tid] = queue.add({'command': f'echo one; {latch.wait}; echo two; {last.wait}'})
    wait_running(queue, wait_until)
    attach = start('attach', tid)
    wait_until(lambda: attach.out == 'one\n', 20)
    latch.open()
    wait_until(lambda: attach.out == 'one\ntwo\n', 20)
    other = start('attach', tid)
    wait_until(lambda: other.out == 'one\ntwo\n', 20)
    last.open()
    assert (attach.ended(), other.ended()) == (0, 0)


# ---- the end of following

@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_interrupt(daemon, start, queue, latches, wait_until, number):
    """The first signal ends leat, and the task goes on."""
    daemon().wait_ready()
    latch = latches()
    [tid] = queue.add({'command': f'echo one; {latch.command}', 'result_ttl': '1h'})
    wait_running(queue, wait_until)
    attach = start('attach', tid)
    wait_until(lambda: attach.out == 'one\n', 20)
    attach.process.send_signal(number)
    assert attach.ended() == CANCELLED and f'task {tid} goes on; leat cancel stops it' in attach.error
    latch.open()
    assert wait_result(queue, tid)['state'] == 'success'


def test_interrupt_without_redis(daemon, start, queue, proxy, through_proxy, latches, wait_until):
    """A signal also ends a leat that has lost Redis before it could ask for the output."""
    daemon().wait_ready()
    latch = latches()
    [tid] = queue.add({'command': latch.wait})
    wait_running(queue, wait_until)
    trap = proxy.trap('leat_follow', when='before', action='hold')
    attach = start('attach', tid, config=through_proxy)
    trap.wait()
    proxy.refuse()
    wait_until(lambda: 'retrying' in attach.error, 20)
    attach.process.send_signal(signal.SIGINT)
    assert attach.ended() == CANCELLED
    latch.open()


def test_closed_pipe(daemon, start, queue, latches, wait_until):
    """If nobody reads the output any longer, leat ends, and the task goes on."""
    daemon({'output': {'to': 'discard'}}).wait_ready()
    latch = latches()
    reader, writer = os.pipe()
    [tid] = queue.add({'command': f'{latch.wait}; echo one', 'result_ttl': '1h'})
    wait_running(queue, wait_until)
    attach = start('attach', tid, stdout=writer)
    os.close(writer)
    os.close(reader)
    wait_until(lambda: follow(queue, tid).entries, 20)
    latch.open()
    assert attach.ended() == FAILED
    assert wait_result(queue, tid)['state'] == 'success'


def test_a_follower_that_dies(daemon, queue, latches, files, wait_until):
    """When the time of a follower is over, the worker sends nothing more. A later one gets the end of what was
    written meanwhile, and no byte comes twice."""
    daemon().wait_ready()
    first, second, last = latches(), latches(), latches()
    steps = f'printf one; {first.wait}; printf two; {second.wait}; printf three; {last.wait}'
    [tid] = queue.add({'command': steps})
    wait_until(lambda: files(tid) == b'one', 20)
    queue.call('follow', 1, tid)
    wait_until(lambda: follow(queue, tid).data(1) == b'one', 20)
    seen = queue.now()
    wait_until(lambda: queue.now() > seen + 100, 20)
    first.open()
    wait_until(lambda: files(tid) == b'onetwo', 20)
    queue.call('follow', 60000, tid)
    wait_until(lambda: follow(queue, tid).data(1) == b'onetwo', 20)
    second.open()
    wait_until(lambda: follow(queue, tid).data(1) == b'onetwothree', 20)
    entries = follow(queue, tid).entries
    assert [one.get('data', 'begun') for one in entries] == ['begun', b'one', 'begun', b'two', b'three']
    assert [one['offset'] for one in entries] == ['0', '0', '3', '3', '6']


def test_broken_connection(daemon, start, queue, proxy, through_proxy, latches, wait_until):
    """After a broken connection leat connects and asks for the output again; none is lost or printed twice."""
    daemon().wait_ready()
    latch = latches()
    [tid] = queue.add({'command': f'echo one; {latch.wait}; echo two; exit 6', 'max_attempts': 1})
    wait_running(queue, wait_until)
    config = {'redis': {**through_proxy['redis'], 'backoff_cap': '200ms'}}
    attach = start('attach', tid, config=config)
    wait_until(lambda: attach.out == 'one\n', 20)
    proxy.cut()
    wanted = b'follow 60000 ' + tid.encode()
    wait_until(lambda: [fields[1] for _, fields in queue.entries('bell')].count(wanted) == 2, 20)
    latch.open()
    assert attach.ended() == 6 and attach.out == 'one\ntwo\n'


def test_a_check_that_breaks(daemon, start, queue, proxy, through_proxy, latches, wait_until):
    """If the connection breaks while leat looks for the task, leat says so once, connects again and goes on."""
    daemon().wait_ready()
    latch = latches()
    [tid] = queue.add({'command': f'echo one; {latch.wait}; exit 6', 'max_attempts': 1})
    wait_running(queue, wait_until)
    trap = proxy.trap('leat_await')
    attach = start('attach', tid, config=through_proxy)
    trap.wait()
    wait_until(lambda: attach.out == 'one\n', 20)
    latch.open()
    assert attach.ended() == 6
    [line] = attach.error.splitlines()
    assert line.startswith('leat: cannot wait for the tasks: ') and line.endswith('; retrying')


def test_too_few_rights(start, queue):
    """A user who may ask for the output, but not for the end, gets an error."""
    queue.register('w1')
    [tid] = queue.add({'command': 'true'})
    queue.redis.execute_command('ACL', 'SETUSER', 'few', 'on', '>secret', '~*', '+@all', '-hset')
    attach = start('attach', tid, config={'redis': {'user': 'few', 'password': 'secret'}})
    assert attach.ended() == FAILED
    refused, left = attach.error.splitlines()
    assert 'the ACL of that user' in refused and f'task {tid} goes on' in left


@pytest.mark.parametrize('why', ['follow 60000 1-0\0', b'follow 60000 \xff', 'follow 60000 ' + 'x' * 100000])
def test_hostile_wakeups(daemon, queue, why):
    """Who may add tasks may also write wakeups; none keeps a worker from its start."""
    queue.register('w1')
    queue.redis.xadd(queue.bell, {'why': why})
    daemon().wait_ready()


# ---- tasks that have ended, and other names

def test_ended_before(daemon, leat, queue):
    """For a task that has ended, leat has the status of its dead letter or its result; without one, 125."""
    daemon().wait_ready()
    dead, kept, gone = queue.add({'command': 'exit 4', 'max_attempts': 1}, {'command': 'true', 'result_ttl': '1h'},
                                 {'command': 'true'})
    wait_letters(queue)
    wait_result(queue, kept)
    wait_succeeded(queue, 2)
    assert leat('attach', dead).returncode == 4
    assert leat('attach', kept).returncode == 0
    for unknown in gone, '99-0', 'no-such-label':
        done = leat('attach', unknown)
        assert done.returncode == FAILED and 'no longer queued, and no result was kept' in done.stderr


def test_labels_and_prefixes(daemon, start, leat, queue, latches, wait_until):
    """A task is also found by its label, and by the first digits of its id."""
    daemon().wait_ready()
    latch = latches()
    assert leat('enqueue', '--id', 'order-17', f'echo one; {latch.command}').returncode == 0
    wait_running(queue, wait_until)
    [row] = queue.list('running')
    both = [start('attach', name) for name in ('order-17', row['tid'].decode().split('-')[0])]
    for one in both:
        wait_until(lambda one=one: one.out == 'one\n', 20)
    latch.open()
    assert [one.ended() for one in both] == [0, 0]


def test_usage(leat):
    """All failures of leat itself have one status, as in leat run."""
    assert leat('attach').returncode == FAILED
    assert leat('attach', '1-0', '2-0').returncode == FAILED
    assert leat('attach', '1-0', config={'nonsense': {'key': '1'}}).returncode == FAILED
    assert leat('attach', '--help').returncode == 0


def test_cancelled(daemon, start, queue, latches, wait_until):
    """leat says that another user cancelled the task."""
    daemon().wait_ready()
    [tid] = queue.add({'command': f'echo one; {latches().command}'})
    wait_running(queue, wait_until)
    attach = start('attach', tid)
    wait_until(lambda: attach.out == 'one\n', 20)
    queue.call('cancel', queue.group, 1, tid, '')
    assert attach.ended() == CANCELLED and attach.error.endswith(': cancelled\n')


def test_moved(leat, queue):
    """leat says where a task is that was moved to another queue."""
    other = Queue(queue.redis, 'mails').load()
    other.register('v1')
    [tid] = queue.add({'command': 'true', 'result_ttl': '1h'})
    [state] = queue.change(tid, to=other)
    attach = leat('attach', tid)
    assert attach.returncode == CANCELLED
    assert attach.stderr == f'leat: task {tid}: cancelled: moved to mails as {state.split()[1]}\n'
