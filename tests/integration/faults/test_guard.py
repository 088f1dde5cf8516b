"""Guards: no process of a task outlives its lease, whatever happens to the daemon, and the tasks of a dead
daemon are killed."""
import os
import signal
import sys
from pathlib import Path

import pytest

from harness import processes
from harness.polling import wait_until
from harness.short_leases import LEASE_S, assert_apart, boot_s, pass_time, wait_blocked
from harness.tasks import first_run, wait_file, wait_succeeded
from harness.worker_locks import WorkerLocks, consumer_of, is_locked

pytestmark = pytest.mark.usefixtures('short_leases')

SURVIVORS = Path(__file__).parents[1] / 'harness' / 'faults' / 'survivors.py'
LONG = {'queue': {'lease': '60s', 'scan': '10s'}, 'task': {'kill_grace': '300ms'}}
SOON_S = 5.0  # far less than that lease
TICK_S = 0.02  # more than the kernel rounds the start time of a process by
MARGIN_S = 0.1  # a guard's margin, for the usual lease here


@pytest.fixture
def worker_locks(folder):
    return WorkerLocks(folder / 'state' / 'emails')


def add(queue, command, **fields):
    return queue.add({'command': command, **fields})[0]


def tree(heartbeats, seconds=60):
    """A task of five processes that ignore TERM: a shell, three of its group, and one in its own group. A
    file tells if the shell goes on after them."""
    heartbeat = heartbeats.task(seconds, stubborn=True)
    return (f"trap '' TERM; {heartbeat} & {heartbeat} & {heartbeat} & set -m; {heartbeat} & wait; "
            f'touch {heartbeats.path}.went-on')


def lock_text(worker_locks, consumer):
    return (worker_locks.path / consumer).read_text()


def assert_dead_with(worker, heartbeats, since, late):
    """The tasks of a dead daemon are dead soon, without going on, and not a lease later."""
    runs = heartbeats.wait_dead()
    assert max(run.last for run in runs) - since < SOON_S + late(), runs
    assert not Path(f'{heartbeats.path}.went-on').exists()
    return runs


# ---- the daemon is killed

def test_tasks_of_a_killed_daemon_die(daemon, queue, heartbeats, worker_locks, late):
    """After kill -9 of the daemon, every process of its tasks' sessions is dead at once, the guards write so
    into the worker's lock file and exit, and the next daemon runs the task without waiting for the lease."""
    worker = daemon({**LONG, 'queue': {'lease': '60s', 'concurrency': 2}}).wait_ready()
    consumer, guards = consumer_of(worker), worker.guards()
    assert len(guards) == 2
    tid = add(queue, tree(heartbeats))
    other = add(queue, tree(heartbeats))
    heartbeats.wait_runs(8)
    killed = boot_s()
    worker.kill9()
    first = assert_dead_with(worker, heartbeats, killed, late)
    wait_until(lambda: not any(processes.alive(pid) for pid in guards))
    assert f'dead {consumer}\n' in lock_text(worker_locks, consumer)
    assert not is_locked(worker_locks.path / consumer)

    second = daemon({**LONG, 'queue': {'lease': '60s', 'concurrency': 1}}).wait_ready()
    second.wait_log(': reclaimed 2 tasks')
    again = heartbeats.wait_runs(12)[8:]
    assert max(run.last for run in first) < min(run.first for run in again)
    assert again[0].first - killed < SOON_S * 3 + late.start()
    assert {run.tid for run in first} == {tid, other} and again[0].fence > max(run.fence for run in first)


@pytest.mark.parametrize('first', [0, 1])
def test_one_guard_and_the_daemon_killed(daemon, queue, heartbeats, worker_locks, late, first):
    """If a guard and then the daemon are killed, the other guard does the work of both."""
    worker = daemon(LONG).wait_ready()
    consumer = consumer_of(worker)
    add(queue, tree(heartbeats))
    heartbeats.wait_runs(4)
    worker.stop()  # so that it has no time to replace the guard
    processes.send(worker.guards()[first], signal.SIGKILL)
    killed = boot_s()
    worker.kill9()
    assert_dead_with(worker, heartbeats, killed, late)
    wait_until(lambda: f'dead {consumer}\n' in lock_text(worker_locks, consumer))


def test_all_killed(daemon, queue, heartbeats, worker_locks):
    """If both guards and the daemon are killed, no one proves that the tasks are dead, and the lease must
    expire."""
    worker = daemon().wait_ready()
    consumer = consumer_of(worker)
    add(queue, f'exec {heartbeats.task(60)}')
    heartbeats.wait_runs(1)
    killed = boot_s()
    worker.kill9_unguarded()
    assert 'dead' not in lock_text(worker_locks, consumer)
    second = daemon().wait_ready()
    runs = heartbeats.wait_runs(2)
    assert_apart(runs)
    assert runs[1].first > killed + LEASE_S / 2
    assert 'reclaimed' not in second.log()


def test_all_killed_and_tasks_survive(daemon, queue, heartbeats, folder, worker_locks):
    """The next daemon on the host kills the surviving tasks that it knows by their environment, long before
    the lease expires. That is no proof: nothing is reclaimed."""
    worker = daemon({**LONG, 'isolation': {'cgroup': 'off'}}).wait_ready()
    consumer = consumer_of(worker)
    add(queue, f'{heartbeats.task(60)} & exec {sys.executable} -S -E {SURVIVORS} {folder}/survivors 3')
    wait_file(folder / 'survivors.all')
    survivors = [int(pid) for pid in (folder / 'survivors').read_text().split()]
    heartbeats.wait_runs(1)
    worker.kill9_unguarded()
    assert all(map(processes.alive, survivors))
    second = daemon({**LONG, 'isolation': {'cgroup': 'off'}})
    second.wait_log(f'worker {consumer}: killed ')
    wait_until(lambda: not any(map(processes.alive, survivors)))
    heartbeats.wait_dead()
    assert 'reclaimed' not in second.log() and len(queue.pending(consumer)) == 1


@pytest.mark.parametrize('batch, cleared', [(None, ''), (2, ''), (None, 'env -i ')],
                         ids=['single', 'batch', 'no environment'])
def test_leader_reaped_before_the_guards_scan(daemon, queue, heartbeats, latch, worker_locks, late, batch,
                                              cleared):
    """A task ends, the daemon is killed before it handles the processes that the task left, and the leader is
    reaped before the guards scan, so that its pid means nothing: the guards find these processes by their
    environment, or because they are older than the daemon's last sign of life, and kill them at once."""
    left = f'{cleared}{heartbeats.task(60)} & {latch.wait}'
    config = {'queue': {'lease': '60s', 'concurrency': 2}, 'isolation': {'cgroup': 'off'},
              'task': {'command': left, 'batch': batch} if batch else {}}
    worker = daemon(config).wait_ready()
    consumer, guards = consumer_of(worker), worker.guards()
    queue.add(*[{'payload': 'x'}] * batch if batch else [{'command': left}])
    heartbeats.wait_runs(1)
    pass_time(TICK_S)
    if cleared:
        queue.add({'command': 'true'})
        wait_until(lambda: queue.counter('succeeded') == 1)
    [leader] = {os.getsid(run.pid) for run in heartbeats.runs()}
    worker.stop()
    latch.open()
    wait_until(lambda: not processes.alive(leader))
    for guard in guards:
        processes.send(guard, signal.SIGSTOP)
    killed = boot_s()
    worker.kill9()
    assert os.waitpid(leader, 0)[0] == leader
    for guard in guards:
        processes.send(guard, signal.SIGCONT)
    assert_dead_with(worker, heartbeats, killed, late)
    wait_until(lambda: f'dead {consumer}\n' in lock_text(worker_locks, consumer))


def test_killed_without_tasks(daemon, queue, worker_locks):
    """If a daemon without tasks is killed, its lock file still gets the proof, and the guards exit with
    success."""
    worker = daemon(LONG).wait_ready()
    consumer, guards = consumer_of(worker), worker.guards()
    worker.kill9()
    # the guards are the test's children now, and their output goes nowhere, so that only the status shows a
    # sanitizer's report
    assert [os.waitpid(pid, 0)[1] for pid in guards] == [0, 0]
    assert f'dead {consumer}\n' in lock_text(worker_locks, consumer)


def test_killed_under_load(daemon, queue, worker_locks, folder):
    """After kill -9 amid short tasks, wherever a start was, no process is left and all is proved; every task
    succeeds."""
    sections = {'queue': {'lease': '60s', 'concurrency': 4, 'max_crashes': 100}}
    count = 400
    queue.add(*[{'command': f'echo $LEAT_TASK $LEAT_FENCE >> {folder}/ran'}] * count)
    for kill_at in (40, 120, 200):
        worker = daemon({**LONG, **sections}).wait_ready()
        consumer = consumer_of(worker)
        wait_until(lambda at=kill_at: queue.counter('succeeded') >= at)
        guards = worker.guards()
        worker.kill9()
        wait_until(lambda name=consumer: f'dead {name}\n' in lock_text(worker_locks, name))
        wait_until(lambda name=consumer: not is_locked(worker_locks.path / name))
        # a guard that exits closes the file before it is dead
        wait_until(lambda those=guards: not any(map(processes.alive, those)))
        assert processes.end_orphans() == 0
    daemon({**LONG, **sections}).wait_ready()
    wait_succeeded(queue, count)


# ---- the daemon is stopped

@pytest.mark.parametrize('network', ['there', 'gone'])
def test_tasks_of_a_stopped_daemon_die_in_time(daemon, queue, client, proxy, through_proxy, heartbeats, late,
                                               network):
    """If the daemon is stopped by SIGSTOP for longer than the lease, with Redis reachable or not, all
    processes of the task are dead before another worker may run it, and after SIGCONT the first worker's
    outcome is refused."""
    first = daemon(through_proxy).wait_ready()
    wait_blocked(client)
    tid = add(queue, tree(heartbeats))
    heartbeats.wait_runs(4)
    stopped = boot_s()
    first.stop()
    if network == 'gone':
        proxy.refuse()
    second = daemon().wait_ready()
    runs = heartbeats.wait_runs(8)
    assert max(run.last for run in runs[:4]) < runs[4].first
    assert max(run.last for run in runs[:4]) < stopped + LEASE_S - MARGIN_S + 0.05 + late()
    fences = [run.fence for run in runs]
    assert fences == [fences[0]] * 4 + [fences[4]] * 4 and fences[0] < fences[4]
    assert {run.tid for run in runs} == {tid} and not Path(f'{heartbeats.path}.went-on').exists()

    if network == 'gone':
        proxy.accept()
    first.cont()
    first.wait_log(f'task {tid}: attempt 1 ended: lease-lost, killed by the guard after')
    pass_time(0.5)
    assert len(heartbeats.runs()) == 8 and len(queue.pending()) == 1
    assert queue.letters() == [] and queue.counter('retried') == queue.counter('succeeded') == 0
    assert second.running() and first.running()


def test_stopped_and_no_other_worker(daemon, queue, client, heartbeats, folder):
    """If no other worker takes over the task of a stopped daemon, the task is killed, requeued with no
    attempt used, and runs again on the same worker."""
    worker = daemon({'queue': {'scan': '10m'}}).wait_ready()
    wait_blocked(client)
    tid = add(queue, f'{first_run(folder)} && exec {heartbeats.task(60, stubborn=True)}; '
                     f'exec {heartbeats.task(0.1)}')
    heartbeats.wait_runs(1)
    worker.stop()
    heartbeats.wait_dead()
    pass_time(LEASE_S)
    worker.cont()
    runs = heartbeats.wait_runs(2)
    assert_apart(runs)
    wait_succeeded(queue, 1)
    assert [(run.tid, run.attempt) for run in runs] == [(tid, 1)] * 2
    assert f'task {tid}: attempt 1 ended: lease-lost, killed by the guard after' in worker.log()
    assert queue.counter('retried') == queue.counter('crashes') == 0


def test_short_stop_costs_nothing(daemon, queue, client, heartbeats):
    """If the stop is shorter than the lease, the task and its renewals go on."""
    worker = daemon({'queue': {'lease': '6s'}}).wait_ready()
    wait_blocked(client)
    add(queue, heartbeats.task(9))
    heartbeats.wait_runs(1)
    worker.stop()
    pass_time(1.5)
    worker.cont()
    wait_succeeded(queue, 1)
    [run] = heartbeats.runs()
    assert run.ended and 'guard' not in worker.log()


def test_batch_dies_in_time(daemon, queue, heartbeats, late):
    """A guard treats the process of several tasks like that of one."""
    worker = daemon({'task': {'command': heartbeats.task(60, stubborn=True), 'batch': 4, 'batch_wait': '500ms'}})
    worker.wait_ready()
    queue.add(*[{'payload': str(number)} for number in range(4)])
    heartbeats.wait_runs(1)
    stopped = boot_s()
    worker.stop()
    runs = heartbeats.wait_dead()
    assert runs[0].last < stopped + LEASE_S + late()
    worker.cont()
    wait_until(lambda: queue.counter('released') == 4)


def test_check_dies_in_time(daemon, queue, heartbeats, late):
    """The check of a task whose worker was lost is killed in time, too."""
    queue.register('gone', lease=round(LEASE_S * 1000))
    add(queue, 'true')
    [task] = queue.begin('gone')
    queue.expire(task.token)
    worker = daemon({'task': {'check': heartbeats.task(60, 1, stubborn=True)}}).wait_ready()
    heartbeats.wait_runs(1)
    stopped = boot_s()
    worker.stop()
    runs = heartbeats.wait_dead()
    assert runs[0].last < stopped + LEASE_S + late()


def test_many_at_once(daemon, queue, heartbeats, late):
    """Sixty tasks at a time are all killed in time."""
    worker = daemon({'queue': {'concurrency': 60, 'lease': '4s'}}).wait_ready()
    queue.add(*[{'command': f"trap '' TERM; {heartbeats.task(60)} & wait"}] * 60)
    heartbeats.wait_runs(60)
    stopped = boot_s()
    worker.stop()
    runs = heartbeats.wait_dead()
    assert max(run.last for run in runs) < stopped + 4 - MARGIN_S + late()


def test_start_that_hangs(caged, queue, group, heartbeats, late):
    """The daemon waits for a child until it executes its program. A child that does not get there, because
    its cgroup is frozen or it is stopped, is killed long before leases are lost: nothing is counted, and
    other tasks go on."""
    worker = caged({'queue': {'lease': '8s', 'concurrency': 2}}).wait_ready()
    add(queue, heartbeats.task(1.5))
    heartbeats.wait_runs(1)
    (group / 'tasks/cgroup.freeze').write_text('1')
    begun = boot_s()
    add(queue, heartbeats.task(0))
    worker.wait_log('this host cannot run tasks: cannot start a process: the call does not return')
    assert boot_s() - begun < 4 + late()  # half the lease
    (group / 'tasks/cgroup.freeze').write_text('0')
    wait_succeeded(queue, 2)
    assert [(run.attempt, run.ended) for run in heartbeats.runs()] == [(1, True)] * 2


@pytest.mark.parametrize('fields', [{}, {'directory': '/tmp'}])
def test_start_that_others_kill(caged, queue, group, fields):
    """A process that somebody kills before it executes its program, such as another task of the same user, is
    one that was killed: its attempt counts, and the worker goes on with other tasks."""
    worker = caged({'queue': {'lease': '60s', 'concurrency': 1}}).wait_ready()
    add(queue, 'exit 0')
    wait_succeeded(queue, 1)
    (group / 'tasks/cgroup.freeze').write_text('1')
    add(queue, 'exit 0', **fields)
    wait_until(worker.descendants)
    processes.send(worker.descendants()[0], signal.SIGKILL)
    worker.wait_log('attempt 1/5 failed: killed by SIGKILL')
    (group / 'tasks/cgroup.freeze').write_text('0')
    wait_succeeded(queue, 2)
    assert 'this host cannot run tasks' not in worker.log() and queue.counter('released') == 0


# ---- processes that escape

def survivors_of(folder):
    wait_file(folder / 'survivors.all')
    return [int(pid) for pid in (folder / 'survivors').read_text().split()]


def test_double_fork_and_setsid(daemon, queue, folder, heartbeats, worker_locks):
    """Without cgroups, descendants in sessions of their own are found by their environment, and are dead
    before the guards say so, and so before the task runs again. Processes that earlier tasks left are not
    touched."""
    worker = daemon({**LONG, 'isolation': {'cgroup': 'off'}}).wait_ready()
    consumer = consumer_of(worker)
    add(queue, f'{sys.executable} -S -E {SURVIVORS} {folder}/left 1 0')
    wait_succeeded(queue, 1)
    add(queue, f'! {first_run(folder)} && cat {folder}/survivors > {folder}/again || '
               f'exec {sys.executable} -S -E {SURVIVORS} {folder}/survivors 5')
    survivors = survivors_of(folder)
    assert len(survivors) == 5 and all(map(processes.alive, survivors))
    worker.kill9()
    wait_until(lambda: f'dead {consumer}\n' in lock_text(worker_locks, consumer))
    assert not any(map(processes.alive, survivors))
    assert processes.alive(int((folder / 'left').read_text()))
    daemon({**LONG, 'isolation': {'cgroup': 'off'}})
    wait_succeeded(queue, 2)
    assert (folder / 'again').read_text().split() == [str(pid) for pid in survivors]


def test_double_fork_and_setsid_if_the_daemon_is_stopped(daemon, queue, folder, late):
    """The same holds if a guard kills one task, because its lease is over."""
    worker = daemon({'isolation': {'cgroup': 'off'}}).wait_ready()
    add(queue, f'exec {sys.executable} -S -E {SURVIVORS} {folder}/survivors 2')
    survivors = survivors_of(folder)
    begun = boot_s()
    worker.stop()
    wait_until(lambda: not any(map(processes.alive, survivors)))
    assert boot_s() - begun < LEASE_S + late()


def test_escape(daemon, queue, folder, heartbeats):
    """A process that has left the session and cleared its environment escapes, which is the documented limit."""
    worker = daemon({**LONG, 'isolation': {'cgroup': 'off'}}).wait_ready()
    add(queue, f'{heartbeats.task(60)} & exec env -i {sys.executable} -S -E {SURVIVORS} {folder}/survivors 1')
    [survivor] = survivors_of(folder)
    heartbeats.wait_runs(1)
    worker.kill9()
    heartbeats.wait_dead()
    assert processes.alive(survivor)
    processes.send(survivor, signal.SIGKILL)


@pytest.mark.parametrize('fault', ['stopped', 'killed', 'guards replaced, stopped'])
def test_nothing_escapes_with_cgroups(caged, queue, group, folder, late, fault):
    """With cgroups every process dies, double-forked ones in sessions of their own too: in time if the daemon
    is stopped, at once if it is killed; also by guards that were started later."""
    worker = caged().wait_ready()
    path = folder / 'survivors'
    add(queue, f'exec {sys.executable} -S -E {SURVIVORS} {path} 15')
    wait_file(folder / 'survivors.all')
    survivors = [int(pid) for pid in path.read_text().split()]
    assert len(survivors) == 15 and all(map(processes.alive, survivors))
    if fault.startswith('guards'):
        replace_guards(worker)
    begun = boot_s()
    if fault == 'killed':
        worker.kill9()
    else:
        worker.stop()
    wait_until(lambda: not any(map(processes.alive, survivors)))
    assert boot_s() - begun < LEASE_S + late()


# ---- the guards themselves

def replace_guards(worker):
    """Kills both guards, one after the other, and waits for their replacements."""
    former = worker.guards()
    for pid in former:
        processes.send(pid, signal.SIGKILL)
    wait_until(lambda: worker.log().count('is ready') >= 2, message=worker.log)
    assert len(worker.guards()) == 2 and not set(former) & set(worker.guards())


def test_replaced_guards_know_what_runs(daemon, queue, heartbeats, late):
    """Killed guards are replaced long before a lease ends; tasks go on, and the new guards enforce leases."""
    lease_s = 1.5 * LEASE_S  # so that the first task keeps it, even if the machine stalls
    worker = daemon({'queue': {'lease': f'{lease_s:.0f}s'}}).wait_ready()
    add(queue, heartbeats.task(1.5))
    heartbeats.wait_runs(1)
    killed = boot_s()
    replace_guards(worker)
    assert boot_s() - killed < lease_s / 2 + late.start()
    worker.wait_log('died; starting another')
    wait_succeeded(queue, 1)
    [run] = heartbeats.runs()
    assert run.ended

    add(queue, tree(heartbeats))
    heartbeats.wait_runs(5)
    worker.log_start = worker.log_path.stat().st_size
    replace_guards(worker)
    stopped = boot_s()
    worker.stop()
    runs = heartbeats.wait_dead()
    assert max(run.last for run in runs) < stopped + lease_s + late()


def test_stopped_guards_are_replaced(daemon, queue, latch):
    """A stopped guard is useless: while tasks run, it is killed and replaced."""
    worker = daemon({'queue': {'lease': '1s'}, 'task': {'kill_grace': '100ms'}}).wait_ready()
    former = worker.guards()
    add(queue, latch.command)
    wait_until(lambda: queue.redis.hlen(queue.running) == 1)
    for pid in former:
        processes.send(pid, signal.SIGSTOP)
    wait_until(lambda: worker.log().count('is ready') >= 2, message=worker.log)
    # they are killed, but on a busy machine their exit may take longer than the start of others
    wait_until(lambda: not any(map(processes.alive, former)))
    assert not set(former) & set(worker.guards())
    latch.open()
    wait_succeeded(queue, 1)
