"""Cgroups of tasks on the real daemon: no process of a task survives it, whatever it has become. Limits and
accounting that need controllers are left to hosts that have them."""
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness import processes
from harness.polling import wait_until
from harness.short_leases import wait_empty
from harness.system_calls import WITHOUT_CLONE3, forbid
from harness.tasks import first_run, records, wait_file, wait_letters, wait_succeeded
from harness.users import OTHERS, needs_root

pytestmark = pytest.mark.usefixtures('quick_tasks')

COUNT = 15
ONE = {'queue': {'concurrency': 1}}
SURVIVORS = Path(__file__).parents[1] / 'harness' / 'faults' / 'survivors.py'
STAYS = 'tail -f /dev/null > /dev/null'  # if it wrote to a pipe it would end with the reader
WHERE = 'sed -n s/^0:://p /proc/self/cgroup'


@pytest.fixture
def survivors(folder):
    return Survivors(folder / 'survivors')


class Survivors:
    def __init__(self, path):
        self.path = path

    def command(self, *code):
        words = [sys.executable, '-S', '-E', SURVIVORS, self.path, COUNT, *code]
        return 'exec ' + ' '.join(map(str, words))

    def pids(self):
        return [int(pid) for pid in self.path.read_text().split()] if self.path.exists() else []

    def wait(self, count=COUNT):
        wait_until(lambda: len(self.pids()) == count, message=f'{count} survivors')
        return self.pids()

    def alive(self):
        return [pid for pid in self.pids() if processes.alive(pid)]


# ---- survivors

def end_by_timeout(worker, queue, leat, tid):
    pass  # the task's own end


def end_by_cancel(worker, queue, leat, tid):
    assert leat('cancel', '--now', tid).returncode == 0


def end_by_drain(worker, queue, leat, tid):
    worker.terminate()


@pytest.mark.parametrize('end, counter', [
    (end_by_timeout, 'dead'), (end_by_cancel, 'cancelled'), (end_by_drain, 'released')])
def test_no_survivors(caged, queue, leat, group, survivors, end, counter):
    """At a timeout, a cancel or the end of a drain all processes of a task die, double-forked and in sessions
    of their own or not, before the outcome is sent."""
    worker = caged({'retry': {'max_attempts': 1}, 'shutdown': {'drain': 0}}).wait_ready()
    fields = {'timeout': '10s'} if counter == 'dead' else {}
    [tid] = queue.add({'command': survivors.command(), **fields})
    wait_file(survivors.path.with_name('survivors.all'))
    assert len(survivors.alive()) == COUNT
    end(worker, queue, leat, tid)
    wait_until(lambda: queue.counter(counter) == 1)
    assert survivors.alive() == []
    if counter == 'released':
        assert worker.wait_exit() == 0 and group.below() == ['daemon']


def test_no_survivors_of_an_exit(caged, queue, survivors):
    """The processes that a task leaves at its exit are dead before its success counts."""
    caged().wait_ready()
    queue.add({'command': survivors.command(0)})
    wait_succeeded(queue, 1)
    assert len(survivors.pids()) == COUNT and survivors.alive() == []


def test_no_survivors_of_a_lost_lease(caged, queue, short_leases, proxy, through_proxy, survivors):
    """A worker that is cut off from Redis kills all processes of its task."""
    caged(through_proxy).wait_ready()
    queue.add({'command': survivors.command()})
    survivors.wait()
    proxy.refuse()
    wait_until(lambda: not survivors.alive())


def test_output_ends_with_the_task(caged, queue, folder):
    """A survivor that holds the task's output is killed with the task, and the output ends."""
    caged().wait_ready()
    queue.add({'command': f'setsid setsid sh -c "echo $$ > {folder}/pid; exec {STAYS}" &'
               f' until [ -s {folder}/pid ]; do :; done; echo over'})
    wait_succeeded(queue, 1)
    assert not processes.alive(int((folder / 'pid').read_text()))


def test_leftovers_die_first(caged, queue, group, survivors):
    """The processes of a killed worker are dead before the next worker in that cgroup sends anything to
    Redis."""
    first = caged(ONE).wait_ready()
    queue.add({'command': f'{first_run(survivors.path.parent)} || exit 0; {survivors.command()}'})
    wait_file(survivors.path.with_name('survivors.all'))
    pids = survivors.wait()
    first.kill9()
    # a leftover that no guard knows
    stray = processes.start(['tail', '-f', '/dev/null'],
                            preexec_fn=lambda: (group / 'tasks/0/cgroup.procs').write_text('0'))
    second = caged({**ONE, 'shutdown': {'drain': 0}})
    second.wait_log('registered')
    assert not any(map(processes.alive, pids)) and stray.poll() == -signal.SIGKILL
    second.terminate()
    assert second.wait_exit() == 0


@pytest.mark.parametrize('fields', [{'timeout': '8s'}, {}], ids=['timeout', 'exit 3'])
def test_orphans_without_cgroups(daemon, queue, survivors, fields):
    """Without cgroups, a process that left group and session becomes the daemon's child when its parent ends:
    it is found by its environment, killed and reaped before the task's end counts."""
    worker = daemon({'isolation': {'cgroup': 'off'}, 'retry': {'max_attempts': 1}}).wait_ready()
    queue.add({'command': survivors.command(*[] if fields else [3]), **fields})
    wait_until(lambda: queue.counter('dead') == 1)
    # their number at the timeout depends on the machine
    assert survivors.alive() == [] and len(survivors.pids()) in ([COUNT] if not fields else range(1, COUNT + 1))
    wait_until(lambda: not worker.descendants())
    wait_until(lambda: not [pid for pid in survivors.pids() if Path(f'/proc/{pid}').exists()])


def test_other_tasks_are_not_touched(daemon, queue, survivors, folder, latch):
    """Without cgroups, the end of one task touches no process of another task, nor those that a successful
    one has left."""
    daemon({'isolation': {'cgroup': 'off'}, 'retry': {'max_attempts': 1}}).wait_ready()
    queue.add({'command': survivors.command(0)})
    wait_succeeded(queue, 1)
    queue.add({'command': f'echo $$ > {folder}/pid; {latch.wait}'})
    wait_file(folder / 'pid')
    queue.add({'command': 'setsid true & exit 3'})
    wait_until(lambda: queue.counter('dead') == 1)
    assert len(survivors.alive()) == COUNT
    latch.open()
    wait_succeeded(queue, 2)


def test_reclaimed_by_cgroup(caged, queue, group, folder):
    """If daemon and guards are killed at once, only the empty cgroup proves that their task is dead: the next
    worker in it runs the task at once, and not a lease later."""
    slow = {'queue': {'lease': '10m', 'scan': '500ms'}, 'isolation': {'state': folder / 'state'}}
    first = caged(slow).wait_ready()
    queue.add({'command': f'echo $$ >> {folder}/pids; ! {first_run(folder)} || exec {STAYS}'})
    wait_file(folder / 'pids')
    assert len(group.pids('daemon')) > 1
    (group / 'daemon/cgroup.kill').write_text('1')
    assert first.wait_exit() == -signal.SIGKILL
    pid = int((folder / 'pids').read_text())
    wait_until(lambda: group.pids('daemon') == [])
    assert processes.alive(pid)
    second = caged(slow)
    wait_succeeded(queue, 1)
    assert not processes.alive(pid)
    second.wait_log('(no process left): reclaimed ')


def test_not_reclaimed_beside_others(daemon, queue, group, folder):
    """Without task cgroups, nothing is proved as long as any other process is in the cgroup; as soon as it is
    gone, it is."""
    slow = {'queue': {'lease': '10m', 'scan': '200ms'},
            'isolation': {'state': folder / 'state', 'cgroup': 'off'}}
    first = daemon(slow, start=False)
    first.popen = {'preexec_fn': group.enter}
    first.start().wait_ready()
    queue.add({'command': f'echo $$ >> {folder}/pids; ! {first_run(folder)} || exec {STAYS}'})
    task = int(wait_file(folder / 'pids'))
    wait_until(lambda: processes.name(task) == 'tail')  # until then, the shell starts other programs
    # all at once, so that no guard acts; the daemon may be starting one
    others = []
    while more := [pid for pid in group.pids() if pid != task and pid not in others]:
        for pid in more:
            os.kill(pid, signal.SIGSTOP)
        others += more
    for pid in others:
        os.kill(pid, signal.SIGKILL)
    first.wait_exit()
    assert processes.alive(task)
    second = daemon(slow, start=False)
    second.popen = {'preexec_fn': group.enter}
    second.start().wait_log('its tasks may still be running')
    os.kill(task, signal.SIGKILL)
    wait_succeeded(queue, 1)
    assert (folder / 'pids').read_text().count('\n') == 2


# ---- kept groups

def test_groups_are_kept(caged, queue, group, folder):
    """Each task runs in a cgroup of its own, which the next task in its slot finds empty; the daemon is in
    another one."""
    worker = caged(ONE).wait_ready()
    line = f'{{ {WHERE}; wc -l < {group.path}/tasks/0/cgroup.procs; stat -c %i {group.path}/tasks/0; }}'
    queue.add(*[{'command': f'{line} >> {folder}/out'}] * 3)
    wait_succeeded(queue, 3)
    lines = (folder / 'out').read_text().splitlines()
    assert lines[0].endswith(f'/{group.path.name}/tasks/0') and lines[1] == '2'
    if 'memory' in group.controllers():
        del lines[2::3]  # before Linux 6.12 it is created again for the peak of memory
    assert lines == lines[:len(lines) // 3] * 3
    assert worker.pid in group.pids('daemon') and group.pids('.') == []


def test_tasks_beside_each_other(caged, queue, folder, latch):
    """Two tasks at a time are in two cgroups."""
    caged({'queue': {'concurrency': 2}}).wait_ready()
    queue.add(*[{'command': f'{WHERE} >> {folder}/out; {latch.wait}'}] * 2)
    wait_until(lambda: len(wait_file(folder / 'out').split()) == 2)
    latch.open()
    wait_succeeded(queue, 2)
    assert len(set((folder / 'out').read_text().split())) == 2


@pytest.mark.parametrize('damage', [
    'mkdir {0}/below && echo $$ > {0}/below/cgroup.procs',
    'mkdir -p {0}/' + '/'.join(['deep'] * 60),
    '! mkdir $(seq -f {0}/%g 300) 2> /dev/null',  # this many are refused
    'echo 1 > {0}/cgroup.freeze',
    'echo 1 > {0}/../cgroup.freeze',
    'echo 1 > {0}/cgroup.kill',
    f'setsid setsid {STAYS} > /dev/null 2>&1 &',
], ids=['moved', 'made deep groups', 'made many groups', 'froze', 'froze all', 'killed', 'left a process'])
def test_next_task_finds_a_clean_group(caged, queue, group, folder, damage):
    """Whatever a task has done to its cgroup, the next one runs in one that is like new."""
    caged({**ONE, 'retry': {'max_attempts': 1}}).wait_ready()
    queue.add({'command': damage.format(group / 'tasks/0'), 'timeout': '1s'})
    wait_until(lambda: queue.counter('succeeded') + queue.counter('dead') == 1)
    queue.add(*[{'command': f'{WHERE} >> {folder}/out; ls -d {group.path}/tasks/0/*/ >> {folder}/out'}] * 2)
    wait_until(lambda: queue.counter('succeeded') + queue.counter('dead') == 3)
    lines = wait_file(folder / 'out').split()
    assert [line.decode().rsplit('/', 1)[1] for line in lines] == ['0', '0']


def test_nothing_is_left(caged, queue, group):
    """A clean stop leaves no task cgroup, and repeated starts work."""
    for number in range(3):
        worker = caged().wait_ready()
        queue.add(*[{'command': 'true'}] * 5)
        wait_succeeded(queue, 5 * (number + 1))
        worker.terminate()
        assert worker.wait_exit() == 0
        assert group.below() == ['daemon'] and not group.is_populated()


# ---- accounting

# a process in a session of its own, which its parent never waits for, uses CPU time until the task ends
BURNS = ('mkfifo {0}/fifo; setsid sh -c "i=0; while [ \\$i -lt 300000 ]; do i=\\$((i+1)); done; echo > {0}/fifo" &'
         ' read x < {0}/fifo; exit {1}')


def used_cpu(log):
    """Microseconds of each attempt that ended."""
    return [int(found) for found in re.findall(r'cpu_usec=(\d+)', log)]


@pytest.mark.parametrize('code', [0, 3])
def test_usage(caged, queue, leat, folder, code):
    """The CPU time of all processes of a task, waited for or not, is in the log, in its result, and in its
    dead letter."""
    worker = caged({'retry': {'max_attempts': 1}}).wait_ready()
    alone = {'command': 'exit 0', 'result_ttl': '1m'}
    [tid, small] = queue.add({'command': BURNS.format(folder, code), 'result_ttl': '1m'}, alone)
    wait_until(lambda: queue.counter('succeeded') + queue.counter('dead') == 2)
    found = json.loads(leat('wait', '--json', tid).stdout)
    other = json.loads(leat('wait', '--json', small).stdout)['usage']
    assert found['usage']['cpu_us'] - other['cpu_us'] > 50_000 and other['cpu_us'] > 0
    assert found['usage']['max_rss'] > 1 << 19
    wait_until(lambda: found['usage']['cpu_us'] in used_cpu(worker.log()), message=worker.log)
    if code:
        shown = json.loads(leat('dead', 'show', '--json', tid).stdout)
        assert shown['usage'] == found['usage']
        assert re.search(r'^used +cpu \d\.\d+ s, largest process', leat('dead', 'show', tid).stdout, re.M)


def test_usage_without_cgroups(daemon, queue, leat):
    """Without cgroups it is the CPU time of the processes that were waited for."""
    daemon({'isolation': {'cgroup': 'off'}}).wait_ready()
    [tid] = queue.add({'command': 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done', 'result_ttl': '1m'})
    wait_succeeded(queue, 1)
    usage = json.loads(leat('wait', '--json', tid).stdout)['usage']
    assert set(usage) == {'cpu_us', 'max_rss'} and usage['cpu_us'] > 20_000


# ---- start

def test_without_clone3(caged, queue, group, survivors, folder):
    """Without clone3, tasks move into their cgroups by themselves before they execute."""
    if 'Seccomp:' not in Path('/proc/self/status').read_text():
        pytest.skip('this kernel has no seccomp')
    worker = caged(ONE, start=False)
    worker.popen = {'preexec_fn': lambda: (group.enter(), forbid(WITHOUT_CLONE3))}
    worker.start().wait_ready()
    queue.add({'command': f'{WHERE} > {folder}/out'}, {'command': survivors.command(0)},
              {'command': f'{WHERE} >> {folder}/out'})
    wait_succeeded(queue, 3)
    assert (folder / 'out').read_text() == f'/{group.path.name}/tasks/0\n' * 2
    assert len(survivors.pids()) == COUNT and survivors.alive() == []


# ---- auto, required, off

def cgroup_of(pid):
    return re.search('^0::(.*)$', Path(f'/proc/{pid}/cgroup').read_text(), re.M)[1]


@pytest.mark.parametrize('mode', ['not delegated', 'off'])
def test_without_cgroups(daemon, queue, group, folder, mode):
    """In a cgroup that is not delegated, and with off, tasks run in the daemon's own cgroup; the log says so,
    and it is no warning."""
    sections = {'isolation': {'cgroup': 'off'}} if mode == 'off' else {}
    if mode == 'off':
        os.setxattr(group.path, 'user.delegate', b'1')
    worker = daemon(sections, start=False)
    worker.popen = {'preexec_fn': group.enter}
    worker.start().wait_ready()
    queue.add({'command': f'{WHERE} > {folder}/out'})
    wait_succeeded(queue, 1)
    assert (folder / 'out').read_text().strip() == cgroup_of(worker.pid)
    why = '[isolation] cgroup is off' if mode == 'off' else f'{group.path} is not delegated to this service'
    assert group.below() == [] and f'info: tasks have no cgroups: {why}\n' in worker.log()


@pytest.mark.parametrize('mark', ['user.delegate', 'trusted.delegate'])
def test_delegated(daemon, queue, group, folder, mark):
    """auto uses cgroups if the service manager says that the cgroup is delegated."""
    os.setxattr(group.path, mark, b'1')
    worker = daemon(start=False)
    worker.popen = {'preexec_fn': group.enter}
    worker.start().wait_ready()
    queue.add({'command': f'{WHERE} > {folder}/out'})
    wait_succeeded(queue, 1)
    assert cgroup_of(worker.pid) == f'/{group.path.name}/daemon'
    assert (folder / 'out').read_text().startswith(f'/{group.path.name}/tasks/')


NOBODY = 65534


def test_delegated_by_ownership(daemon, queue, client, group, survivors, folder):
    """auto uses the cgroup if it belongs to the daemon's user, who is not root."""
    for name in ('.', 'cgroup.procs', 'cgroup.subtree_control', 'cgroup.threads'):
        os.chown(group / name, NOBODY, NOBODY)
    os.chown(folder, NOBODY, NOBODY)
    os.chmod(client.connection_pool.connection_kwargs['path'], 0o666)

    def become():
        group.enter()
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)

    worker = daemon({'isolation': {'state': folder / 'state'}}, start=False)
    worker.popen = {'preexec_fn': become}
    worker.start().wait_ready()
    queue.add({'command': f'{WHERE} > {folder}/out; id -u >> {folder}/out'}, {'command': survivors.command(0)})
    wait_succeeded(queue, 2)
    where, user = (folder / 'out').read_text().split()
    assert where.startswith(f'/{group.path.name}/tasks/') and user == str(NOBODY)
    assert len(survivors.pids()) == COUNT and survivors.alive() == []
    worker.terminate()
    assert worker.wait_exit() == 0 and group.below() == ['daemon']


def test_required_and_refused(caged, daemon, group):
    """With required leatd does not start if it cannot make cgroups, and says why; with auto it says so and
    goes on."""
    (group / 'cgroup.max.descendants').write_text('0')
    worker = caged()
    assert worker.wait_exit() == 78
    assert re.search(r'error: \[isolation\] cgroup = required: tasks cannot have cgroups: .*cannot create cgroups',
                     worker.log())
    os.setxattr(group.path, 'user.delegate', b'1')
    other = daemon(start=False)
    other.popen = {'preexec_fn': group.enter}
    other.start().wait_ready()
    assert 'warning: tasks have no cgroups: ' in other.log()


def test_one_daemon_per_group(caged, queue, survivors, group):
    """A second daemon in the same cgroup leaves the first one's tasks alone, and does not start."""
    first = caged(ONE).wait_ready()
    queue.add({'command': survivors.command()})
    survivors.wait()
    second = caged()
    assert second.wait_exit() == 78 and 'another leatd runs tasks in it' in second.log()
    assert len(survivors.alive()) == COUNT and first.running()


@needs_root
@pytest.mark.parametrize('is_left', [False, True])
def test_others_cannot_hold_a_group(caged, group, is_left):
    """Another user of the host, or a task that runs as one, cannot lock the folder of tasks, by which daemons know
    that it is in use: the next daemon would run tasks without cgroups, or not start. It can still read the group
    of a task that it knows. A folder that an earlier version has left open to all is closed."""
    if is_left:
        (group / 'tasks').mkdir(0o755)
    caged(ONE).wait_ready()
    other = {'user': OTHERS, 'group': OTHERS, 'extra_groups': [], 'capture_output': True, 'text': True}
    locked = subprocess.run(['flock', '--nonblock', '--shared', group / 'tasks', 'true'], **other)
    assert locked.returncode != 0 and 'Permission denied' in locked.stderr
    assert subprocess.run(['cat', group / 'tasks' / '0' / 'cgroup.events'], **other).returncode == 0


def test_missing_controllers(caged, daemon, group):
    """If no controller enforces a limit, required refuses to start, and auto warns."""
    if 'memory' in group.controllers():
        pytest.skip('this host has the memory controller')
    worker = caged({'isolation': {'memory_max': '64M', 'pids_max': 100}})
    assert worker.wait_exit() == 78
    assert 'error: [isolation] memory_max, pids_max: cannot be enforced here' in worker.log()
    other = daemon({'isolation': {'memory_max': '64M'}}).wait_ready()
    assert 'warning: [isolation] memory_max: cannot be enforced here: tasks have no cgroups' in other.log()


# ---- limits and accounting that need controllers

LIMITS = ('memory.max', 'memory.high', 'pids.max', 'cpu.max', 'cpu.weight')
SIZE = 'import sys; x = bytearray(int(sys.argv[1]) << 20); print(len(x))'


def need(group, *names):
    missing = sorted(set(names) - set(group.controllers()))
    if missing:
        pytest.skip(f'this host has no controllers {", ".join(missing)} for groups of one\'s own')


def allocate(mebibytes):
    return f'{sys.executable} -S -E -c "{SIZE}" {mebibytes}'


def test_limits_of_a_task(caged, queue, group, folder):
    """The queue's limits are in the files of the task's cgroup; a task's own apply if they are lower, and the
    next task has the queue's again."""
    need(group, 'memory', 'pids', 'cpu')
    worker = caged({**ONE, 'isolation': {'memory_max': '64M', 'pids_max': 50, 'cpu_max': '150%'}})
    worker.wait_ready()
    files = ' '.join(f'{group.path}/tasks/0/{name}' for name in LIMITS)
    look = {'command': f'cat {files} | tr "\\n" , >> {folder}/out; echo >> {folder}/out'}
    lower = {'memory_max': '32M', 'memory_high': '16M', 'pids_max': '20', 'cpu_max': '50%', 'cpu_weight': '10'}
    higher = {'memory_max': '1G', 'pids_max': '1000', 'cpu_max': '400%', 'cpu_weight': '1000'}
    queue.add(look, {**look, **lower}, {**look, **higher}, look)
    wait_succeeded(queue, 4)
    own = f'{64 << 20},max,50,150000 100000,100,'
    assert (folder / 'out').read_text().split('\n')[:4] == [
        own, f'{32 << 20},{16 << 20},20,50000 100000,10,', own, own]


@pytest.mark.parametrize('limit', ['much', '1'])
def test_limits_are_checked(caged, queue, limit):
    """A task with an invalid limit is refused. So is one with too little memory for any process: its start would
    fail like one on a host that can run nothing."""
    caged().wait_ready()
    queue.add({'command': 'true', 'memory_max': limit})
    [letter] = wait_letters(queue)
    assert letter.cause == 'refused'
    assert letter.reason == 'memory_max is not a size of at least 1M, such as 512M'


def test_out_of_memory(caged, queue, leat, group, folder, latch):
    """A task that needs more memory than its limit ends with the cause oom, with all its processes; daemon
    and other tasks go on."""
    need(group, 'memory')
    worker = caged({'isolation': {'memory_max': '32M'}, 'retry': {'max_attempts': 1},
                    'queue': {'concurrency': 2}}).wait_ready()
    queue.add({'command': f'echo > {folder}/neighbour; {latch.wait}'})
    wait_file(folder / 'neighbour')
    [tid] = queue.add({'command': f'{STAYS} & echo $! > {folder}/pid; {allocate(500)}; {latch.wait}'})
    [letter] = wait_letters(queue)
    assert letter.cause == 'oom' and not processes.alive(int((folder / 'pid').read_text()))
    latch.open()
    wait_succeeded(queue, 1)
    usage = json.loads(leat('dead', 'show', '--json', tid).stdout)['usage']
    assert usage['oom_kills'] > 0 and worker.running()
    assert usage.get('memory_peak', 32 << 20) <= 32 << 20


def test_too_many_processes(caged, queue, group, folder):
    """pids_max stops a fork bomb."""
    need(group, 'pids')
    caged({'isolation': {'pids_max': 20}}).wait_ready()
    bomb = ('import os\nn = 0\ntry:\n while True:\n  n += 1\n  if not os.fork(): os.read(os.pipe()[0], 1)\n'
            f'except OSError: open("{folder}/out", "w").write(str(n))')
    queue.add({'command': f'exec {sys.executable} -S -E', 'payload': bomb})
    wait_succeeded(queue, 1)
    assert (folder / 'out').read_text() == '20'


def test_memory_peak(caged, queue, leat, group):
    """The peak memory of all processes of a task is reported; a smaller task after it has its own value, or
    none."""
    need(group, 'memory')
    caged(ONE).wait_ready()
    [large, small] = queue.add({'command': f'{allocate(40)} & {allocate(40)}; wait', 'result_ttl': '1m'},
                               {'command': 'true', 'result_ttl': '1m'})
    wait_succeeded(queue, 2)
    [large, small] = [json.loads(leat('wait', '--json', tid).stdout)['usage'] for tid in (large, small)]
    assert large['memory_peak'] > 41 << 20 and large['oom_kills'] == small['oom_kills'] == 0
    assert small.get('memory_peak', 0) < 20 << 20


# ---- failed starts

def test_group_is_removed(caged, queue, group, folder):
    """If the cgroup of a slot is removed, tasks run on, in a new one."""
    caged(ONE).wait_ready()
    queue.add({'command': 'true'})
    wait_succeeded(queue, 1)
    (group / 'tasks/0').rmdir()
    queue.add({'command': f'{WHERE} > {folder}/out'})
    wait_succeeded(queue, 2)
    wait_empty(queue)
    assert (folder / 'out').read_text().endswith('/tasks/0\n')


def test_log_names_the_groups(caged, group):
    """The log says where the cgroups are, and which controllers they have."""
    worker = caged().wait_ready()
    [text] = [text for _, _, text in records(worker.log()) if text.startswith('tasks have cgroups')]
    found = text.split('controllers: ')[1]
    wanted = sorted({'cpu', 'io', 'memory', 'pids'} & set(group.controllers()))
    assert str(group.path) in text and found == (' '.join(wanted) or 'none')
