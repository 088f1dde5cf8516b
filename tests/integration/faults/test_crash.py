"""leatd is killed at each of its calls, before or after it, while tasks succeed, fail and are retried, die, leave
processes behind, share a process and are renewed. The next one on the host finishes the work: no task is lost or
counted twice, no two runs of one overlap, whatever they have left, and nothing of the dead one stays.
Here at some calls; `make inject` goes through them all."""
import contextlib
import fcntl
import os

import pytest

from harness.faults.crash import Crash
from harness.polling import wait_until

WHEN = pytest.mark.parametrize('when', ['before', 'after'])


@WHEN
def test_work(daemon, queue, folder, injector, heartbeats, when):
    """While it works; whoever inherits what it has started reaps that at once, as process 1 does."""
    Crash(daemon, queue, folder, injector, heartbeats).sweep((240,), when)


@WHEN
def test_batches(daemon, queue, folder, injector, heartbeats, when):
    """The same where tasks share a process."""
    Crash(daemon, queue, folder, injector, heartbeats, batch=True).sweep((40,), when)


@WHEN
def test_start(daemon, queue, folder, injector, heartbeats, when):
    """From its start on, with tasks that wait for it."""
    Crash(daemon, queue, folder, injector, heartbeats).sweep((50,), when, early=True)


@WHEN
def test_cgroups(caged, queue, folder, group, injector, heartbeats, when):
    """Tasks have cgroups, of which none is left."""
    Crash(caged, queue, folder, injector, heartbeats, inherited=False).sweep((60,), when)
    assert group.below() == ['daemon'] and not group.is_populated()


def has_open(pid, path):
    for name in os.listdir(f'/proc/{pid}/fd'):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(f'/proc/{pid}/fd/{name}') == str(path):
                return True
    return False


def test_lock_that_outlives_its_daemon(caged, group):
    """What a killed daemon was just starting has its descriptors for a moment yet, and with them the lock on the
    cgroups: the next one waits for that, and does not take it for another daemon."""
    tasks = group / 'tasks'
    tasks.mkdir()
    lock = os.open(tasks, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    worker = caged()
    wait_until(lambda: has_open(worker.pid, tasks), message=worker.log)
    os.close(lock)
    assert 'tasks have cgroups in' in worker.wait_ready().log()
