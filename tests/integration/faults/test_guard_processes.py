"""The guards as processes: their signals and descriptors, failures to start them, and what they leave behind."""
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from harness import processes
from harness.polling import wait_until
from harness.short_leases import pass_time, wait_blocked
from harness.tasks import wait_file, wait_succeeded
from harness.worker_locks import WorkerLocks, consumer_of, is_locked

pytestmark = pytest.mark.usefixtures('short_leases')


@pytest.fixture
def worker_locks(folder):
    return WorkerLocks(folder / 'state' / 'emails')


def add(queue, command, **fields):
    return queue.add({'command': command, **fields})[0]


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root, to look at the descriptors of the daemon')
def test_no_guard_can_be_started(daemon, queue, client, latch, folder, manager):
    """If a guard cannot be replaced, the worker claims nothing and says so; running tasks go on. As soon as a
    guard can be started, the worker claims again."""
    worker = daemon({'queue': {'concurrency': 2}}, env=manager.environment()).wait_ready()
    wait_blocked(client)
    add(queue, latch.command)
    wait_until(lambda: queue.redis.hlen(queue.running) == 1)
    rows = Path(f'/proc/{worker.pid}/limits').read_text().splitlines()
    [before] = [row for row in rows if 'open files' in row]
    hard = before.split()[4]
    # one process may start, which is enough for a status but not for a guard
    wait_until(lambda: any('1 of 2 slots busy' in text for text in manager.having('STATUS')),
               message=lambda: f'{manager.messages}')
    looks = []
    wait_until(lambda: looks.append(set(map(int, os.listdir(f'/proc/{worker.pid}/fd')))) or len(looks) > 20)
    taken = set.intersection(*looks)
    limit(worker.pid, f'{min(set(range(len(taken) + 1)) - taken) + 1}:{hard}')
    processes.send(worker.guards()[0], signal.SIGKILL)
    worker.wait_log('no guard over running tasks')
    assert 'Too many open files' in worker.log() and 'claiming nothing' in worker.log()
    wait_until(lambda: 'no guard over running tasks' in manager.having('STATUS')[-1])
    add(queue, f'echo > {folder}/second')
    pass_time(0.5)
    assert not (folder / 'second').exists()
    limit(worker.pid, f'{hard}:{hard}')
    wait_file(folder / 'second')
    wait_until(lambda: 'no guard' not in manager.having('STATUS')[-1])
    latch.open()
    wait_succeeded(queue, 2)
    assert len(worker.guards()) == 2


def test_guards_that_die_repeatedly(daemon, queue):
    """A guard that dies at its start is replaced at once a few times, and then after growing pauses in which
    the worker claims nothing: there is no loop of starts and no flood of records."""
    worker = daemon().wait_ready()

    def pauses():
        return [int(pause) for pause in re.findall(
            'no guard over running tasks: it keeps dying; claiming nothing, retrying in ([0-9]+) s', worker.log())]

    def kill_at_work(times):
        processes.send(worker.guards()[0], signal.SIGKILL)
        wait_until(lambda: worker.log().count('guard 1 is ready') >= times or pauses(), message=worker.log)

    for times in range(1, 5):
        kill_at_work(times)
    assert worker.log().count('guard 1 died; starting another') == 3
    wait_until(lambda: worker.log().count('guard 1 is ready') >= 4, message=worker.log)
    add(queue, 'true')
    wait_succeeded(queue, 1)
    processes.send(worker.guards()[0], signal.SIGKILL)
    wait_until(lambda: len(pauses()) == 2, message=worker.log)
    # it is twice as long; so is each pause after a guard that was slow to start
    assert pauses()[1] >= 2 * pauses()[0]


def limit(pid, files):
    subprocess.run(['prlimit', f'--pid={pid}', f'--nofile={files}'], check=True)


def test_guards_ignore_signals(daemon, queue, heartbeats):
    """Signals that end other processes do not end a guard. It has its own session and name, and only the
    descriptors that it needs, none of the daemon's connections among them."""
    worker = daemon().wait_ready()
    guards = worker.guards()
    for pid in guards:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE,
                       signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP, signal.SIGRTMIN):
            processes.send(pid, number)
        assert os.getsid(pid) == pid
        assert processes.arguments(pid)[:3] == ['leat-guard', 'emails', consumer_of(worker)]
        if os.geteuid() == 0:
            names = [os.readlink(f'/proc/{pid}/fd/{fd}') for fd in os.listdir(f'/proc/{pid}/fd')]
            assert sum(name.startswith('socket:') for name in names) == 1 and len(names) <= 8, names
    add(queue, heartbeats.task(0.1))
    wait_succeeded(queue, 1)
    assert worker.guards() == guards


def test_leaves_nothing_behind(daemon, queue, worker_locks):
    """After a clean stop there is no guard and no lock file."""
    worker = daemon().wait_ready()
    guards, consumer = worker.guards(), consumer_of(worker)
    assert is_locked(worker_locks.path / consumer)
    lines = dict(line.split(' ', 1) for line in (worker_locks.path / consumer).read_text().splitlines())
    assert lines['worker'] == consumer and lines['pid'] == str(worker.pid)
    assert set(lines) == {'worker', 'boot', 'pid', 'cgroup'}
    add(queue, 'true')
    wait_succeeded(queue, 1)
    worker.terminate()
    assert worker.wait_exit() == 0
    assert not any(processes.alive(pid) for pid in guards)
    assert list(worker_locks.path.iterdir()) == []


def test_unclean_stop(daemon, queue, redis_server, heartbeats, worker_locks):
    """If Redis does not learn of a stop, the stop is not clean: the lock file stays, with the proof, so that
    the next worker need not wait."""
    worker = daemon({'shutdown': {'drain': '100ms'}, 'redis': {'command_timeout': '30s'}}).wait_ready()
    consumer = consumer_of(worker)
    add(queue, heartbeats.task(60))
    heartbeats.wait_runs(1)
    redis_server.stop()
    worker.terminate()
    wait_until(lambda: worker.process.poll() is not None or worker.signal(signal.SIGTERM))
    assert worker.process.returncode == 75
    redis_server.cont()
    wait_until(lambda: f'dead {consumer}\n' in (worker_locks.path / consumer).read_text())
    heartbeats.wait_dead()


def test_state_folder_that_cannot_be_made(daemon, queue, heartbeats, folder):
    """Without a folder for lock files the worker says so once, and everything else works."""
    (folder / 'file').touch()
    worker = daemon({'isolation': {'state': f'{folder}/file'}}).wait_ready()
    assert worker.log().count('if this worker dies') == 1
    add(queue, heartbeats.task(60))
    heartbeats.wait_runs(1)
    worker.kill9()
    heartbeats.wait_dead()
    daemon().wait_ready()
    first, second = heartbeats.wait_runs(2)
    assert first.fence < second.fence


def test_configured_state_folder(daemon, queue, folder):
    """[isolation] state is the folder of the lock files."""
    worker = daemon({'isolation': {'state': f'{folder}/elsewhere'}}).wait_ready()
    assert (folder / 'elsewhere' / 'emails' / consumer_of(worker)).exists()
    assert not (folder / 'state').exists()


def test_started_by_hand():
    """The program refuses to be started by hand as a guard."""
    from harness.daemon import program
    done = subprocess.run(['leat-guard', 'a', 'b', '0'], executable=program('leatd'), stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=20, check=False)
    assert done.returncode == 1
