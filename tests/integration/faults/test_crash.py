"""leatd is killed at each of its calls, before or after it, while tasks succeed, fail, are retried, die,
leave processes behind, share a process and are renewed. The next daemon on the host finishes the work: no
task is lost or counted twice, no two runs of one overlap, and nothing is left of the dead daemon. These tests
try some calls; `make inject` tries all."""
import contextlib
import fcntl
import os

import pytest

from harness.faults.crash import Crash
from harness.polling import wait_until

WHEN = pytest.mark.parametrize('when', ['before', 'after'])


@WHEN
def test_work(daemon, queue, folder, injector, heartbeats, late, when):
    """The daemon is killed while it works; a reaper stands in for process 1 and reaps its orphans."""
    Crash(daemon, queue, folder, injector, heartbeats, late).sweep((240,), when)


@WHEN
def test_batches(daemon, queue, folder, injector, heartbeats, late, when):
    """The same holds if tasks share a process."""
    Crash(daemon, queue, folder, injector, heartbeats, late, batch=True).sweep((40,), when)


@WHEN
def test_resident(daemon, queue, folder, injector, heartbeats, late, when):
    """The same holds if a process stays and runs one task after the other."""
    Crash(daemon, queue, folder, injector, heartbeats, late, resident=True).sweep((30,), when)


@WHEN
def test_start(daemon, queue, folder, injector, heartbeats, late, when):
    """The daemon is killed from its start on, with waiting tasks."""
    Crash(daemon, queue, folder, injector, heartbeats, late).sweep((50,), when, early=True)


@WHEN
def test_cgroups(caged, queue, folder, group, injector, heartbeats, late, when):
    """The same holds for tasks with cgroups, and no cgroup is left."""
    Crash(caged, queue, folder, injector, heartbeats, late, inherited=False).sweep((60,), when)
    assert group.below() == ['daemon'] and not group.is_populated()


def has_open(pid, path):
    for name in os.listdir(f'/proc/{pid}/fd'):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(f'/proc/{pid}/fd/{name}') == str(path):
                return True
    return False


def test_lock_that_outlives_its_daemon(caged, group):
    """A process that a killed daemon was just starting has its descriptors for a moment, and with them the
    lock on the cgroups: the next daemon waits for it, and does not take it for another daemon."""
    tasks = group / 'tasks'
    tasks.mkdir()
    lock = os.open(tasks, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    worker = caged()
    wait_until(lambda: has_open(worker.pid, tasks), message=worker.log)
    os.close(lock)
    assert 'tasks have cgroups in' in worker.wait_ready().log()
