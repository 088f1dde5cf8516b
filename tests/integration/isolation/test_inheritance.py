"""A daemon that inherits bad state keeps none of it, and neither do its tasks."""
import ast
import ctypes
import fcntl
import os
import pty
import resource
import signal
import struct
import termios

import pytest

from harness.polling import wait_until
from harness.tasks import wait_file, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')

LIMIT = 200
# system call numbers; a 32-bit Python has its own
MACHINE = os.uname().machine if ctypes.sizeof(ctypes.c_void_p) == 8 else 'i386'
SIGACTION = {'x86_64': 13, 'aarch64': 134, 's390x': 174, 'i386': 174}[MACHINE]  # rt_sigaction
MASK = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR1, signal.SIGALRM}
IGNORED = [signal.SIGPIPE, signal.SIGHUP, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT,
           signal.SIGCHLD, signal.SIGQUIT, signal.SIGTSTP, signal.SIGRTMIN, signal.SIGRTMAX, 32, 33]


def ignore_raw(number):
    """Also signals 32 and 33, which libc keeps for itself."""
    libc = ctypes.CDLL(None)
    action = (ctypes.c_ulong * 5)(1)
    libc.syscall(SIGACTION, int(number), ctypes.byref(action), None, 8)


def spoil():
    """Runs in the child before exec."""
    for number in IGNORED:
        ignore_raw(number)
    signal.pthread_sigmask(signal.SIG_BLOCK, MASK)
    os.umask(0)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, hard))


@pytest.fixture
def spoiled(daemon, folder):
    """A function that starts a daemon with all of it, and with a terminal and open descriptors."""
    terminal, side = pty.openpty()
    secret = os.open(folder, os.O_RDONLY)
    reader, writer = os.pipe()

    def start(sections=None):
        def before():
            os.setsid()
            fcntl.ioctl(side, termios.TIOCSCTTY, 0)
            spoil()

        worker = daemon(sections, start=False)
        worker.popen = {'preexec_fn': before, 'pass_fds': (secret, reader, writer, side),
                        'stdin': side, 'umask': 0}
        return worker.start().wait_ready()

    yield start
    for fd in (terminal, side, secret, reader, writer):
        os.close(fd)


# cat shows what the shell has passed on: the shell itself blocks signals while it forks, and opens
# descriptors of its own
PRINT_STATE = r'''
(ulimit -Sn; ulimit -Hn; umask; ps -o sid= -o pgid= -o tty= -p $$; echo $$) > $OUT/about
cat /proc/self/status > $OUT/status
touch $OUT/made
>$OUT/done
'''
DESCRIPTORS = '''
import os, sys
found = {}
for fd in os.listdir('/proc/self/fd'):
    try:
        found[int(fd)] = os.readlink(f'/proc/self/fd/{fd}')
    except FileNotFoundError:
        pass
with open(sys.argv[1] + '.new', 'w') as file:
    print(found, file=file)
os.rename(sys.argv[1] + '.new', sys.argv[1])
'''


def descriptors(queue, folder, start=''):
    """The descriptors that are open in a task: {number: name}."""
    (folder / 'look.py').write_text(DESCRIPTORS)
    queue.add({'command': f'{start}/usr/bin/python3 -IS {folder}/look.py {folder}/fds'})
    return ast.literal_eval(wait_file(folder / 'fds').decode())


@pytest.mark.parametrize('kind', ['shell', 'program'])
def test_tasks_inherit_nothing(spoiled, queue, folder, kind):
    """Tasks have an empty signal mask, default dispositions, descriptors 0 to 2, a session without a
    terminal, the configured umask, and the limit of open files that the daemon inherited."""
    if kind == 'shell':
        command = PRINT_STATE.replace('$OUT', str(folder))
    else:
        (folder / 'look').write_text('#!/bin/sh\n' + PRINT_STATE.replace('$OUT', str(folder)))
        (folder / 'look').chmod(0o755)
        command = f'{folder}/look'
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    spoiled({'task': {'umask': '027'}})
    queue.add({'command': command})
    wait_file(folder / 'done', 0)
    names = descriptors(queue, folder, 'exec ' if kind == 'shell' else '')
    wait_succeeded(queue, 2)

    about = (folder / 'about').read_text().split()
    assert about == [str(LIMIT), str(hard), '0027', about[6], about[6], '?', about[6]]
    status = dict(line.split(':\t', 1) for line in (folder / 'status').read_text().splitlines())
    assert int(status['SigBlk'], 16) == 0 and int(status['SigIgn'], 16) == 0
    assert set(names) == {0, 1, 2} and names[0] == '/dev/null'
    assert names[1].startswith('pipe:') and names[2].startswith('pipe:')
    assert (folder / 'made').stat().st_mode & 0o777 == 0o640


def test_daemon_receives_its_signals(spoiled, queue):
    """If TERM, HUP and CHLD were blocked or ignored, the daemon still reloads, notices exits and stops, and a
    terminal's hangup does not kill it."""
    worker = spoiled()
    queue.add({'command': 'exit 0'})
    wait_succeeded(queue, 1)
    worker.reload()
    worker.wait_log('configuration reloaded')
    worker.terminate()
    assert worker.wait_exit() == 0


def test_timeout_with_term_blocked_at_the_start(spoiled, queue):
    """TERM reaches a task whose daemon was started with TERM blocked and ignored."""
    spoiled({'task': {'kill_grace': '20s', 'timeout': '4s'}, 'queue': {'lease': '1m'},
             'retry': {'max_attempts': 1}})
    queue.add({'command': "trap 'echo heard; exit 1' TERM; sleep 60 & wait"})
    wait_until(lambda: queue.counter('dead') == 1)
    [(_, fields)] = queue.entries('dead')
    assert fields[fields.index(b'leat.stdout') + 1] == b'heard\n'


def test_more_tasks_than_the_soft_limit(spoiled, queue, latch):
    """The daemon raises its own limit, and runs more tasks at once than the inherited limit has descriptors."""
    worker = spoiled({'queue': {'concurrency': 150, 'lease': '20s'}})
    queue.add(*[{'command': latch.command}] * 150)
    wait_until(lambda: len(worker.descendants()) == 150,
               message=lambda: f'{len(worker.descendants())} run')
    latch.open()
    wait_succeeded(queue, 150)
    assert queue.counter('released') == 0


def test_closed_standard_descriptors(daemon, queue, folder):
    """If the daemon was started with 0, 1 and 2 closed, its own descriptors do not become the tasks' output,
    and no record goes into a socket."""
    worker = daemon(start=False)
    worker.popen = {'preexec_fn': lambda: [os.close(fd) for fd in (0, 1, 2)]}
    worker.start()
    names = descriptors(queue, folder)
    assert set(names) == {0, 1, 2} and names[0] == '/dev/null'
    assert names[1].startswith('pipe:') and names[2].startswith('pipe:')
    queue.add({'command': f'echo out; echo err >&2; cat > {folder}/out', 'payload': 'in'})
    wait_succeeded(queue, 2)
    assert (folder / 'out').read_text() == 'in' and worker.running()


def test_daemon_is_not_stopped_by_sigpipe(daemon, queue, folder):
    """If the reader of the log goes away, the daemon and its tasks go on."""
    reader, writer = os.pipe()
    worker = daemon(start=False)
    worker.popen = {'stdout': writer, 'stderr': writer}
    worker.start()
    os.close(writer)
    wait_until(lambda: queue.redis.hlen(queue.workers) == 1)
    os.close(reader)
    queue.add(*[{'command': f'echo x; echo >> {folder}/out'}] * 20)
    wait_succeeded(queue, 20)
    assert worker.running()


SCHED_GETATTR = {'x86_64': 315, 'aarch64': 275, 's390x': 346, 'i386': 352}[MACHINE]


def schedule(pid):
    """Its flags, nice value and time slice (ns; 0: this kernel has no slices per process)."""
    told = (ctypes.c_uint8 * 48)()
    assert ctypes.CDLL(None).syscall(SCHED_GETATTR, pid, told, len(told), 0) == 0
    _, _, flags, nice, _, slice_ns = struct.unpack_from('IIQiIQ', bytes(told))
    return flags, nice, slice_ns


@pytest.mark.parametrize('nice', [0, 5, -5])
def test_time_slices(daemon, queue, folder, latch, nice):
    """Daemon and guards run soon though all processors are busy; tasks keep the default schedule."""
    _, _, standard_ns = schedule(os.getpid())
    if standard_ns == 0 or nice < 0 and os.geteuid() != 0:
        pytest.skip('this kernel has no time slices of a process\'s own, or only root may ask for more')
    level = os.nice(0) + nice  # the tests themselves may run with another nice value
    worker = daemon(start=False)
    worker.popen = {'preexec_fn': lambda: os.nice(nice)}
    worker.start().wait_ready()
    for pid in (worker.pid, *worker.guards()):
        assert schedule(pid)[1:] == (level, 1_000_000 if level >= 0 else standard_ns)
    queue.add({'command': f'echo $$ > {folder}/pid; {latch.command}'})
    assert schedule(int(wait_file(folder / 'pid', 2))) == (0, level, standard_ns)
    latch.open()
    wait_succeeded(queue, 1)
