"""Effects of the cgroup controllers on tasks, and how leat reports them. Few machines let a test have the
controllers: `make check-nightly` runs this file in a guest."""
import json
import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest

from harness.daemon import is_sanitized
from harness.polling import wait_until
from harness.tasks import wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')

MIB = 1 << 20
PYTHON = '/usr/bin/python3 -IS -c'
ONCE = {'retry': {'max_attempts': 1}}


@pytest.fixture
def bounded(caged, group):
    missing = {'cpu', 'io', 'memory', 'pids'} - set(group.controllers())
    if missing:
        pytest.skip(f'cgroups here have no {", ".join(sorted(missing))}: make check-nightly')
    return caged


def touches(mib):
    """A command that uses this much memory at once, beside the interpreter's own."""
    return f"{PYTHON} 'bytearray({mib} << 20)'"


def usage(leat, tid):
    return json.loads(leat('wait', '--json', tid).stdout)['usage']


def test_rule_for_oom(bounded, queue):
    """[retry] oom decides what follows: here the task is retried, though other failures are permanent."""
    bounded({'retry': {'max_attempts': 3, 'exit.1-255': 'dead', 'oom': 'retry'},
             'isolation': {'memory_max': '64M'}}).wait_ready()
    queue.add({'command': f'[ $LEAT_ATTEMPT -gt 1 ] || exec {touches(200)}'})
    wait_succeeded(queue, 1)


def test_share_of_a_cpu(bounded, queue, group, folder):
    """With cpu_max a task that would use a whole CPU is throttled."""
    bounded({**ONCE, 'isolation': {'cpu_max': '25%'}}).wait_ready()
    burn = f"{PYTHON} 'import time\nwhile time.process_time() < 0.5: pass'"
    queue.add({'command': f'{burn}; cd {group / "tasks/0"}; cat cpu.max cpu.stat > {folder}/stat'})
    wait_succeeded(queue, 1)
    text = (folder / 'stat').read_text()
    assert text.startswith('25000 100000\n') and int(re.search(r'^throttled_usec (\d+)', text, re.M)[1]) > 100_000


def test_accounts(bounded, queue, leat):
    """CPU time and memory of an attempt are in the log, in its result, and in the output of leat for the dead
    letter."""
    worker = bounded(ONCE).wait_ready()
    [tid] = queue.add({'command': f'{touches(50)}; exit 3', 'result_ttl': '1m'})
    [letter] = wait_letters(queue)
    found = usage(leat, tid)
    assert 50 * MIB < found['memory_peak'] < 90 * MIB and found['cpu_us'] > 1000 and found['oom_kills'] == 0
    assert json.loads(leat('dead', 'show', '--json', tid).stdout)['usage'] == found
    [logged] = re.findall(r'memory_peak=(\d+)', worker.log())
    assert int(logged) == found['memory_peak']
    shown = leat('dead', 'show', tid).stdout
    assert re.search(r'^used +cpu \d+\.\d+ s, .*memory 5\dM', shown, re.M), shown


def weighs(group):
    return (group / 'io.weight').exists()


def test_weight_of_io(bounded, queue, group, folder):
    """io_weight is in the cgroup's file, lowered by the task; the next task has the queue's value again."""
    if not weighs(group):
        pytest.skip('this kernel cannot weigh I/O: it was built without CONFIG_BLK_CGROUP_IOCOST')
    bounded({**ONCE, 'queue': {'concurrency': 1}, 'isolation': {'io_weight': '200'}}).wait_ready()
    look = f'cat {group / "tasks/0/io.weight"} >> {folder}/weights'
    for fields in {'io_weight': '50'}, {'io_weight': '300'}, {}:
        queue.add({'command': look, **fields})
    wait_succeeded(queue, 3)
    assert (folder / 'weights').read_text() == 'default 50\ndefault 200\ndefault 200\n'


def test_weight_of_io_without_a_controller(bounded, queue, group):
    """Without the controller a task with io_weight runs without it; a queue with it gets a warning, and with
    cgroup = required the worker does not start."""
    if weighs(group):
        pytest.skip('this kernel weighs I/O')
    worker = bounded(ONCE).wait_ready()
    queue.add({'command': 'true', 'io_weight': '50'})
    wait_succeeded(queue, 1)
    assert 'this host cannot run tasks' not in worker.log()
    worker.terminate()
    assert worker.wait_exit() == 0
    refused = bounded({**ONCE, 'isolation': {'io_weight': '200'}})
    assert refused.wait_exit() == 78 and '[isolation] io_weight: cannot be enforced here' in refused.log()
    warned = bounded({**ONCE, 'isolation': {'io_weight': '200', 'cgroup': 'auto'}}).wait_ready()
    warned.wait_log('[isolation] io_weight: cannot be enforced here')
    queue.add({'command': 'true'})
    wait_succeeded(queue, 2)


def test_accounts_of_io(bounded, queue, leat):
    """The bytes that a task reads from a disk and writes to it are in its result, and do not count for the
    next task."""
    disk = os.environ.get('LEAT_TEST_DISK')
    if not disk:
        pytest.skip('no disk to write to ($LEAT_TEST_DISK): make check-nightly')
    bounded({**ONCE, 'queue': {'concurrency': 1}}).wait_ready()
    copy = (f'dd if={disk} of=/dev/null bs=1M count=3 iflag=direct; '
            f'dd if=/dev/zero of={disk} bs=1M count=2 oflag=direct')
    tids = [queue.add({'command': command, 'result_ttl': '1m'})[0] for command in (copy, 'true', copy)]
    wait_succeeded(queue, 3)
    found = [usage(leat, tid) for tid in tids]
    assert [(one['io_read'], one['io_written']) for one in found] == [
        (3 * MIB, 2 * MIB), (0, 0), (3 * MIB, 2 * MIB)]


def test_memory_of_the_daemon(bounded, queue, group):
    """With many tasks, large payloads and a flood of output the daemon's own cgroup stays small."""
    bounded({**ONCE, 'queue': {'concurrency': 4}}).wait_ready()
    queue.add(*[{'command': 'true'}] * 100)
    queue.add(*[{'command': 'wc -c', 'payload': b'x' * (4 * MIB)}] * 3)
    queue.add({'command': 'yes $(printf %01000d 0) | head -c 8M'})
    wait_succeeded(queue, 104, 120)
    peak = int((group / 'daemon/memory.peak').read_text())
    assert is_sanitized() or peak < 48 * MIB, peak / MIB


def test_memory_that_tasks_leave(bounded, queue):
    """Shared memory that tasks leave behind does not count for the next task in their slot: with less than one
    limit of it each, no task is OOM-killed."""
    left = Path(tempfile.mkdtemp(prefix='leat-test-', dir='/dev/shm'))
    bounded({**ONCE, 'queue': {'concurrency': 1}, 'isolation': {'memory_max': '32M'}}).wait_ready()
    try:
        queue.add(*[{'command': f'fallocate -l 20M {left}/{number}'} for number in range(8)])
        wait_until(lambda: queue.counter('succeeded') + len(queue.letters()) == 8, 120)
        assert [letter['leat.cause'] for _, letter in queue.letters()] == []
    finally:
        shutil.rmtree(left)


def test_empty_files_that_tasks_leave(bounded, queue):
    """The kernel's memory for files in /dev/shm does not count for the next task, even if they are empty."""
    left = Path(tempfile.mkdtemp(prefix='leat-test-', dir='/dev/shm'))
    leave = f"import os\nfor i in range(8000): os.mknod(f'{left}/{{i}}')"
    bounded({**ONCE, 'queue': {'concurrency': 1}, 'isolation': {'memory_max': '16M'}}).wait_ready()
    try:
        queue.add({'command': f'{PYTHON} "{leave}"'}, {'command': touches(8)})
        wait_until(lambda: queue.counter('succeeded') + len(queue.letters()) == 2, 120)
        assert [letter['leat.cause'] for _, letter in queue.letters()] == []
    finally:
        shutil.rmtree(left)
