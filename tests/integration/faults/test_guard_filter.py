"""The filter of system calls of the guards: which processes have it, and that guards do all their work with it, on
older kernels too, and without it."""
import re
import signal
import sys
from pathlib import Path

import pytest

from harness import processes
from harness.polling import wait_until
from harness.short_leases import LEASE_S, boot_s
from harness.system_calls import WITHOUT_PIDFD, WITHOUT_SECCOMP, forbid
from harness.tasks import wait_file
from harness.worker_locks import WorkerLocks, consumer_of

pytestmark = pytest.mark.usefixtures('short_leases')

SURVIVORS = Path(__file__).parents[1] / 'harness' / 'faults' / 'survivors.py'
OFF = {'isolation': {'cgroup': 'off'}}


def filters_of(pid):
    found = re.search(r'^Seccomp_filters:\s*(\d+)$', Path(f'/proc/{pid}/status').read_text(), re.M)
    if not found:
        pytest.skip('this kernel does not count the filters of a process')
    return int(found[1])


def test_who_is_filtered(daemon, queue, folder):
    """Each guard has a filter of its own; leatd and its tasks have none more than they were started with."""
    before = filters_of('self')
    worker = daemon().wait_ready()
    assert [filters_of(pid) for pid in worker.guards()] == [before + 1] * 2
    assert filters_of(worker.pid) == before and 'filter' not in worker.log()
    queue.add({'command': f'cat /proc/self/status > {folder}/status; echo > {folder}/done'})
    wait_file(folder / 'done')
    assert re.search(rf'^Seccomp_filters:\s*{before}$', (folder / 'status').read_text(), re.M)


def test_without_seccomp(daemon, queue, heartbeats, late):
    """On a kernel without seccomp the guards work without a filter. The log says so once, also if guards are
    replaced."""
    before = filters_of('self')
    worker = daemon(start=False)
    worker.popen = {'preexec_fn': lambda: forbid(WITHOUT_SECCOMP)}
    worker.start().wait_ready()
    assert [filters_of(pid) for pid in worker.guards()] == [before + 1] * 2  # that of the test
    processes.send(worker.guards()[0], signal.SIGKILL)
    worker.wait_log('guard 1 is ready')
    assert worker.log().count('guards run without their filter of system calls: ') == 1
    queue.add({'command': heartbeats.task(60, stubborn=True)})
    heartbeats.wait_runs(1)
    stopped = boot_s()
    worker.stop()
    runs = heartbeats.wait_dead()
    assert max(run.last for run in runs) < stopped + LEASE_S + late()


@pytest.mark.parametrize('fault', ['stopped', 'killed'])
@pytest.mark.parametrize('cgroups', [True, False], ids=['cgroups', 'no cgroups'])
def test_old_kernel(request, queue, folder, late, fault, cgroups):
    """On a kernel without pidfds and clone3, too, the guards kill all processes of a task whose daemon is stopped
    or killed, also those in sessions of their own, and prove it."""
    worker = request.getfixturevalue('caged' if cgroups else 'daemon')({} if cgroups else OFF, start=False)
    enter = request.getfixturevalue('group').enter if cgroups else lambda: None
    worker.popen = {'preexec_fn': lambda: (enter(), forbid(WITHOUT_PIDFD))}
    worker.start().wait_ready()
    consumer = consumer_of(worker)
    queue.add({'command': f'exec {sys.executable} -S -E {SURVIVORS} {folder}/survivors 5'})
    wait_file(folder / 'survivors.all')
    survivors = [int(pid) for pid in (folder / 'survivors').read_text().split()]
    assert len(survivors) == 5 and all(map(processes.alive, survivors))
    begun = boot_s()
    if fault == 'killed':
        worker.kill9()
    else:
        worker.stop()
    wait_until(lambda: not any(map(processes.alive, survivors)))
    assert boot_s() - begun < LEASE_S + late()
    if fault == 'killed':
        lock = WorkerLocks(folder / 'state' / 'emails').path / consumer
        wait_until(lambda: f'dead {consumer}\n' in lock.read_text())
