"""leat logs -f: a task that runs on another host."""
import fcntl
import os
import signal
import struct
import termios

import pytest

from harness.functions.results import key_of
from harness.polling import wait_until

FAR = 'far.example:1:x'


@pytest.fixture
def far(queue):
    """A function by which a worker of another host starts the next task; its output is written by write."""
    queue.register(FAR)

    def begin():
        [task] = queue.begin(FAR)
        return task

    return begin


def write(queue, task, offset, data, fd=1):
    """Adds live output as a worker does."""
    queue.redis.xadd(key_of(queue, 'output', task.tid), {
        'attempt': 1, 'fence': task.fence, 'offset': offset, 'fd': fd, 'data': data})


def wait_followed(queue, tid):
    """Waits until leat has asked the workers for the output, and then for the result."""
    wanted = b'follow 60000 ' + tid.encode()
    wait_until(lambda: wanted in [fields[1] for _, fields in queue.entries('bell')], 20)
    wait_until(lambda: queue.redis.hexists(queue.awaited, tid), 20)


@pytest.mark.parametrize('outcome', ['success', 'dead'])
@pytest.mark.parametrize('to', ['journal', 'file'])
def test_follow(start, queue, far, folder, to, outcome):
    """leat prints the output as it comes, both outputs apart, and exits with 0 at the end, whatever the end."""
    [tid] = queue.add({'command': 'x'})
    task = far()
    logs = start('logs', '-f', tid, config={'output': {'to': to, 'directory': folder / 'files'}})
    wait_followed(queue, tid)
    write(queue, task, 0, 'one\nt')
    write(queue, task, 5, 'bad\n', 2)
    wait_until(lambda: (logs.out, logs.error) == ('one\nt', 'bad\n'), 20)
    write(queue, task, 9, 'wo\n')
    wait_until(lambda: logs.out == 'one\ntwo\n', 20)
    assert logs.running()
    queue.finish(FAR, task, outcome, **({'cause': 'exit', 'status': '3'} if outcome == 'dead' else {}))
    assert logs.ended() == 0 and (logs.out, logs.error) == ('one\ntwo\n', 'bad\n')


def test_follow_a_waiting_task(start, queue, far, folder):
    """A task that waits is followed through Redis as soon as it runs on another host."""
    [tid] = queue.add({'command': 'x'})
    logs = start('logs', '-f', tid, config={'output': {'to': 'file', 'directory': folder / 'files'}})
    task = far()
    wait_followed(queue, tid)
    write(queue, task, 0, 'one')
    queue.finish(FAR, task)
    assert logs.ended() == 0 and logs.out == 'one'


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_reader_that_stops(start, queue, far, folder, number):
    """A signal ends leat also while nobody reads its output."""
    [tid] = queue.add({'command': 'x'})
    task = far()
    reader, writer = os.pipe()
    most = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)

    def is_full():
        left = fcntl.ioctl(reader, termios.FIONREAD, bytes(4))
        return struct.unpack('i', left)[0] == most
    config = {'output': {'to': 'file', 'directory': folder / 'files'}}
    logs = start('logs', '-f', tid, stdout=writer, config=config)
    os.close(writer)
    wait_followed(queue, tid)
    write(queue, task, 0, 'x' * 4 * most)
    wait_until(is_full, 20)
    logs.process.send_signal(number)
    assert logs.ended() == -number
    os.close(reader)
    queue.finish(FAR, task)


@pytest.mark.parametrize('options', [['-t'], ['-n', 5], ['--attempt', 1], ['--json']])
def test_options(leat, queue, far, folder, options):
    """What Redis does not have is refused."""
    [tid] = queue.add({'command': 'x'})
    task = far()
    config = {'output': {'to': 'file', 'directory': folder / 'files'}}
    done = leat('logs', '-f', *options, tid, config=config)
    assert done.returncode == os.EX_USAGE and done.stdout == ''
    assert done.stderr == (f'leat: task {tid} runs on another host: --times, --json, --attempt and --lines '
                           'work on that host only\n')
    queue.finish(FAR, task)


def test_without_follow(leat, queue, far, folder):
    """Without -f, leat says where the task runs."""
    [tid] = queue.add({'command': 'x'})
    task = far()
    done = leat('logs', tid, config={'output': {'to': 'file', 'directory': folder / 'files'}})
    assert done.returncode == 1 and 'far.example' in done.stderr
    queue.finish(FAR, task)
