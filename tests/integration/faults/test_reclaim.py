"""Reclaiming: if it is proved that nothing is left of a dead worker on this host, its tasks run again at
once; otherwise its leases expire first."""
import os
import subprocess

import pytest

from harness import processes
from harness.polling import wait_until
from harness.queue import Queue
from harness.short_leases import (assert_apart, boot_s, cpu_share, pass_time, wait_blocked, wait_empty,
                                  wakeups)
from harness.tasks import wait_succeeded
from harness.worker_locks import NOBODY, WorkerLocks, consumer_of, kill_with_tasks

LONG = {'queue': {'lease': '60s', 'scan': '10s', 'concurrency': 1}}
RARE = {'queue': {'lease': '60s', 'scan': '10m', 'concurrency': 1}}  # only changes of the folder start a reclaim
LEASE_S = 3.0
SHORT = {'queue': {'lease': '3s', 'scan': '200ms', 'concurrency': 1}, 'task': {'kill_grace': '100ms'}}
SOON_S = 10  # far less than the lease


@pytest.fixture
def worker_locks(folder):
    return WorkerLocks(folder / 'state' / 'emails')


def die(worker, heartbeats):
    """Kills a worker with all its tasks. Returns its consumer."""
    consumer = consumer_of(worker)
    kill_with_tasks(worker)
    heartbeats.wait_dead()
    return consumer


def crashed(queue, consumer, count):
    """Claimed tasks of a dead worker."""
    queue.register(consumer, lease=60000)
    tids = []
    for _ in range(0, count, 500):
        tids += queue.add(*[{'command': 'true'}] * min(count - len(tids), 500))
    begun = 0
    while begun < count:
        begun += len(queue.begin(consumer, 1000, begun))
    return tids


# ---- with a proof


def test_next_start_runs_it_at_once(daemon, queue, heartbeats, worker_locks, late):
    """A task runs again long before the lease is over, never beside its first run, and counts a crash; the
    dead worker is in no list, and its lock file is gone."""
    first = daemon(LONG).wait_ready()
    [tid] = queue.add({'command': heartbeats.task(60) + ' & wait'})
    heartbeats.wait_runs(1)
    consumer = die(first, heartbeats)
    worker_locks.put(consumer)
    begun = boot_s()
    second = daemon(LONG).wait_ready()
    runs = heartbeats.wait_runs(2)
    assert_apart(runs)
    assert runs[1].first - begun < SOON_S + late.start()
    assert [(run.tid, run.attempt) for run in runs] == [(tid, 1), (tid, 1)] and runs[0].fence < runs[1].fence
    assert queue.counter('crashes') == 1
    second.wait_log(f'worker {consumer} (dead since 20')
    assert consumer not in queue.worker_heartbeats() and len(queue.worker_heartbeats()) == 1
    wait_until(lambda: consumer not in worker_locks.names())


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root, to start a process of another user')
def test_another_user_cannot_pass_for_a_guard(daemon, queue, heartbeats, worker_locks):
    """A process of another user that has the name and the words of a guard of the dead worker holds nothing up."""
    first = daemon(LONG).wait_ready()
    queue.add({'command': heartbeats.task(60)})
    heartbeats.wait_runs(1)
    consumer = die(first, heartbeats)
    # a shell that waits for commands
    impostor = processes.start(['leat-guard', '-s', consumer], executable='/bin/sh', stdin=subprocess.PIPE,
                               user=65534)
    wait_until(lambda: processes.arguments(impostor.pid)[:3] == ['leat-guard', '-s', consumer])
    worker_locks.put(consumer)
    daemon(LONG).wait_ready().wait_log(': reclaimed 1 task')
    assert_apart(heartbeats.wait_runs(2))
    processes.end(impostor)
    impostor.stdin.close()


def test_idle_worker_of_the_host_reclaims(daemon, queue, client, heartbeats, worker_locks, late):
    """A running worker takes the task over as soon as the proof exists, without a start or a scan."""
    worker_locks.put(NOBODY, dead=False)  # the folder exists
    first = daemon(RARE).wait_ready()
    queue.add({'command': heartbeats.task(60)})
    heartbeats.wait_runs(1)
    second = daemon(RARE).wait_ready()
    wait_blocked(client)
    file = worker_locks.put(consumer_of(first), dead=False, pid=first.pid, lock=True)
    consumer = die(first, heartbeats)
    begun = boot_s()
    os.write(file, f'dead {consumer}\n'.encode())
    os.close(file)
    runs = heartbeats.wait_runs(2)
    assert runs[1].first - begun < SOON_S + late.start()
    second.wait_log(': reclaimed 1 task')


def test_reboot(daemon, queue, worker_locks):
    """A reboot is a proof, too, if the folder is on a disk."""
    crashed(queue, NOBODY, 1)
    worker_locks.put(NOBODY, dead=False, boot='00000000-0000-4000-8000-000000000000')
    worker = daemon(LONG).wait_ready()
    worker.wait_log(f'worker {NOBODY} (no process left): reclaimed 1 task')
    wait_succeeded(queue, 1)


@pytest.mark.parametrize('shift_s', [-3600, 3600, -10 ** 9])
def test_wall_clock_does_not_matter(daemon, queue, worker_locks, shift_s):
    """A change of the wall clock does not matter, because a proof does not depend on time."""
    crashed(queue, NOBODY, 1)
    worker_locks.put(NOBODY)
    path = worker_locks.path / NOBODY
    times = path.stat().st_mtime + shift_s
    os.utime(path, (times, times))
    daemon(LONG).wait_ready().wait_log(': reclaimed 1 task')
    wait_succeeded(queue, 1)


def test_many_pending(daemon, queue, worker_locks):
    """2,500 tasks of one dead worker are all reclaimed, and the worker says so once, also if it may start none."""
    crashed(queue, NOBODY, 2500)
    queue.gate('paused', True)
    worker_locks.put(NOBODY)
    worker = daemon({**LONG, 'queue': {'lease': '60s', 'scan': '10s', 'concurrency': 4}})
    worker.wait_log(': reclaimed 2500 tasks')
    assert queue.counter('crashes') == 2500 and worker.log().count('reclaimed') == 1
    assert len(queue.entries('go')) + queue.redis.hlen(queue.waiting) == 2500 and queue.pending(NOBODY) == []


def test_claimed_ahead(daemon, queue, heartbeats, worker_locks):
    """Tasks that a killed worker had claimed ahead of its slots run again at once."""
    quick = {**LONG, 'task': {'kill_grace': '300ms'}}
    first = daemon(quick).wait_ready()
    tids = queue.add(*[{'command': 'true'}] * 500)

    def ahead():
        done = queue.counter('succeeded')
        return done == len(tids) or (done >= 20 and len(queue.pending()) > 1)

    wait_until(ahead, 600)
    if queue.counter('succeeded') == len(tids):
        pytest.skip('tasks take too long here for any to be claimed ahead')
    consumer = die(first, heartbeats)
    held = len(queue.pending(consumer))
    worker_locks.put(consumer)
    second = daemon(quick).wait_ready()
    if held:
        second.wait_log(f': reclaimed {held} task')
    wait_succeeded(queue, len(tids), 600)
    assert queue.counter('crashes') == held and queue.letters() == []


def test_two_reclaimers(daemon, queue, worker_locks):
    """If two workers find the same lock file, every task moves once."""
    crashed(queue, NOBODY, 1200)
    queue.gate('paused', True)
    worker_locks.put(NOBODY)
    workers = [daemon(LONG), daemon(LONG)]
    wait_until(lambda: NOBODY not in worker_locks.names())
    told = ''.join(worker.wait_ready().log() for worker in workers)
    assert f'worker {NOBODY} (dead since' in told and 'cannot' not in told
    assert queue.counter('crashes') == 1200 and queue.pending(NOBODY) == []
    assert len(queue.entries('go')) + queue.redis.hlen(queue.waiting) == 1200


def test_dead_letter_by_the_last_crash(daemon, queue, worker_locks):
    """A task with its last crash becomes a dead letter, and the worker that reclaims it says so."""
    [tid] = crashed(queue, NOBODY, 1)
    queue.conf_set('max_crashes', 1)
    worker_locks.put(NOBODY)
    worker = daemon({**LONG, 'queue': {'lease': '60s', 'max_crashes': 1}}).wait_ready()
    worker.wait_log(f'task {tid}: not started: crash; dead-lettered')
    [(_, letter)] = queue.letters()
    assert letter['leat.worker'].decode() == NOBODY
    wait_empty(queue)


# ---- without a proof


def test_no_proof_no_reclaim(daemon, queue, heartbeats, worker_locks, late):
    """A free lock alone proves nothing, because the tasks may live: the lease must expire first. The lock
    file is useless by then, and is removed."""
    first = daemon(SHORT).wait_ready()
    queue.add({'command': f'exec setsid -w {heartbeats.task(60)}'})
    heartbeats.wait_runs(1)
    consumer = consumer_of(first)
    killed = boot_s()
    first.kill9_unguarded()
    assert worker_locks.names() == {consumer}
    second = daemon(SHORT).wait_ready()
    second.wait_log(f'worker {consumer} is gone, but its tasks may still be running')
    runs = heartbeats.wait_runs(2)
    assert_apart(runs)
    # the last renewal was at most a third of the lease before
    assert runs[1].first > killed + LEASE_S * 0.6 - late()
    assert 'reclaimed' not in second.log() and second.log().count('may still be running') == 1
    wait_until(lambda: worker_locks.names() == set(), 30 * LEASE_S)
    assert boot_s() > killed + 10 * LEASE_S


def test_locked_though_its_daemon_is_gone(daemon, queue, worker_locks, late):
    """While the guard is at work, the file is checked again soon, but not in a busy loop, and the tasks are
    reclaimed when the proof exists."""
    crashed(queue, NOBODY, 1)
    file = worker_locks.put(NOBODY, dead=False, lock=True)
    worker = daemon(LONG).wait_ready()
    before = wakeups(worker.pid)
    assert cpu_share(worker.pid, 1) < 0.1
    assert wakeups(worker.pid) - before < 100
    assert len(queue.pending(NOBODY)) == 1
    begun = boot_s()
    os.write(file, f'dead {NOBODY}\n'.encode())
    os.close(file)
    wait_succeeded(queue, 1)
    assert boot_s() - begun < SOON_S + late.start()


def test_unknown_worker(daemon, queue, worker_locks):
    """A lock file of a worker that this Redis does not know may belong to another Redis: nothing happens, and
    it stays."""
    worker_locks.put(NOBODY)
    crashed(queue, 'other:1:00000000', 1)
    worker = daemon({'queue': {'lease': '60s', 'scan': '100ms'}}).wait_ready()
    pass_time(0.5)
    assert worker_locks.names() == {NOBODY} and 'reclaimed' not in worker.log()
    assert len(queue.pending()) == 1


def test_other_files_in_the_folder(daemon, queue, worker_locks):
    """Files that are no lock files do no harm."""
    crashed(queue, NOBODY, 1)
    worker_locks.put(NOBODY)
    (worker_locks.path / 'folder').mkdir()
    (worker_locks.path / 'a').write_text('')
    (worker_locks.path / 'b').write_bytes(os.urandom(100000))
    (worker_locks.path / 'link').symlink_to('/etc/passwd')
    os.mkfifo(worker_locks.path / 'fifo')
    daemon(LONG).wait_ready().wait_log(': reclaimed 1 task')
    wait_succeeded(queue, 1)
    wait_until(lambda: worker_locks.names() == {'folder', 'a', 'b', 'link', 'fifo'})


def test_redis_goes_away_meanwhile(daemon, queue, worker_locks, proxy, through_proxy):
    """If the session ends in the middle of a reclaim, the next one continues it."""
    crashed(queue, NOBODY, 300)
    worker_locks.put(NOBODY)
    trap = proxy.trap('leat_requeue', 'after')
    daemon({**LONG, **through_proxy})
    trap.wait()
    wait_succeeded(queue, 300, 60)
    wait_until(lambda: worker_locks.names() == set())
    assert queue.counter('crashes') == 300


# ---- forged by a task of the same user


def test_proof_of_a_living_worker_is_not_believed(daemon, queue, heartbeats, worker_locks):
    """A task replaces the lock file of a living worker by one that proves its death: no worker takes its
    task, which runs once to its end, and that worker logs that its file was replaced."""
    first = daemon({**LONG, 'queue': {'lease': '60s', 'scan': '200ms', 'concurrency': 1}}).wait_ready()
    queue.add({'command': heartbeats.task(3)})
    heartbeats.wait_runs(1)
    consumer = consumer_of(first)
    worker_locks.put(consumer)
    second = daemon({**LONG, 'queue': {'lease': '60s', 'scan': '100ms', 'concurrency': 1}}).wait_ready()
    first.wait_log(f"{consumer}: the worker's lock file was removed or replaced")
    wait_succeeded(queue, 1)
    assert len(heartbeats.runs()) == 1 and queue.counter('crashes') == 0
    assert 'reclaimed' not in second.log() and 'is gone' not in second.log()
    assert first.log().count('lock file was') == 1


def test_death_after_a_forged_proof(daemon, queue, heartbeats, worker_locks):
    """When that worker has died, its task runs again, and never beside its first run."""
    first = daemon(RARE).wait_ready()
    queue.add({'command': beating(heartbeats)})
    heartbeats.wait_runs(2)
    daemon(RARE).wait_ready()
    os.unlink(worker_locks.path / consumer_of(first))
    first.kill9()
    worker_locks.put(consumer_of(first))
    runs = heartbeats.wait_runs(4)
    assert max(run.last for run in runs[:2]) < min(run.first for run in runs[2:])


# ---- with the real guard


def beating(heartbeats, seconds=60):
    """A task in the session that leat gives it, and one more process without a parent, in its own process
    group: without cgroups nothing reaches further."""
    heartbeat = heartbeats.task(seconds, stubborn=True)
    return f"sh -mc '( {heartbeat} & ) &'; exec {heartbeat}"


def test_killed_daemon_restarted_at_once(daemon, queue, heartbeats, worker_locks, late):
    """If only the daemon is killed, and restarted at once, its guards kill the whole task before the next run
    starts, and that is long before the end of the lease."""
    first = daemon(LONG).wait_ready()
    [tid] = queue.add({'command': beating(heartbeats)})
    heartbeats.wait_runs(2)
    consumer, killed = consumer_of(first), boot_s()
    first.kill9()
    second = daemon(LONG).wait_ready()
    runs = heartbeats.wait_runs(4)
    assert max(run.last for run in runs[:2]) < min(run.first for run in runs[2:])
    assert runs[2].first - killed < SOON_S + late.start()
    assert {(run.tid, run.attempt) for run in runs} == {(tid, 1)}
    assert queue.counter('crashes') == 1
    second.wait_log(f'worker {consumer} (dead since 20')
    wait_until(lambda: worker_locks.names() == set())


def test_another_worker_of_the_host(daemon, queue, client, heartbeats, worker_locks, late):
    """The same holds without a restart: another worker of the host runs the task, though it does not scan."""
    first = daemon(RARE).wait_ready()
    queue.add({'command': beating(heartbeats)})
    heartbeats.wait_runs(2)
    daemon(RARE).wait_ready()
    wait_blocked(client)
    killed = boot_s()
    first.kill9()
    runs = heartbeats.wait_runs(4)
    assert max(run.last for run in runs[:2]) < min(run.first for run in runs[2:])
    assert runs[2].first - killed < SOON_S + late.start()


def test_worker_killer_with_long_leases(daemon, queue, heartbeats):
    """A task that kills its daemon each time becomes a dead letter after its crashes, without waiting for a
    lease."""
    worker = daemon(LONG).wait_ready()
    killer, begun = queue.add({'command': f'{heartbeats.task(0.05)}; kill -9 $PPID'})[0], boot_s()

    def over():
        if not worker.running():
            worker.start()
        return queue.letters()

    [(_, letter)] = wait_until(over, 60)
    assert letter['leat.tid'].decode() == killer and letter['leat.cause'] == b'crash'
    assert len(heartbeats.runs(killer)) == 3 and queue.counter('crashes') == 3
    assert boot_s() - begun < 60
    assert_apart(heartbeats.runs(killer))


def test_clean_stop_leaves_nothing(daemon, queue, worker_locks):
    """A clean stop leaves no lock file, and the next worker has nothing to reclaim."""
    first = daemon(LONG).wait_ready()
    assert (worker_locks.path / consumer_of(first)).exists()
    first.terminate()
    assert first.wait_exit() == 0
    assert list(worker_locks.path.iterdir()) == []
    second = daemon(LONG).wait_ready()
    assert (worker_locks.path / consumer_of(second)).exists()
    assert 'reclaimed' not in second.log() and 'may still be' not in second.log()


OTHER_HOST = ['unshare', '--uts', 'sh', '-c', 'echo elsewhere >/proc/sys/kernel/hostname; exec "$@"', 'sh']


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root, to give a worker another host name')
@pytest.mark.parametrize('forged', [{}, {'dead': False, 'boot': '00000000-0000-4000-8000-000000000000'},
                                    {'dead': False}], ids=['dead', 'boot', 'free'])
def test_no_file_ends_a_worker_of_another_host(daemon, queue, heartbeats, worker_locks, forged):
    """Whoever can write to the folder that hosts or containers share can forge a file of a worker that lives on
    another host. It proves nothing: the worker's task is neither killed nor run a second time."""
    far = daemon(LONG, start=False)
    far.prefix = OTHER_HOST
    far.start().wait_ready()
    queue.add({'command': heartbeats.task(60)})
    heartbeats.wait_runs(1)
    consumer = consumer_of(far)
    assert consumer.startswith('elsewhere:')
    near = daemon(LONG).wait_ready()
    worker_locks.put(consumer, **forged)
    near.wait_log(f'worker {consumer} is gone, but its tasks may still be running')
    looked = boot_s()
    wait_until(lambda: heartbeats.runs()[0].last > looked)
    assert len(heartbeats.runs()) == 1 and len(queue.pending(consumer)) == 1
    assert 'reclaimed' not in near.log() and 'that it left behind' not in near.log()


def test_clean_stop_without_redis(daemon, redis_servers, late):
    """A worker that stops while Redis is away cannot say so. It leaves a proof, as a killed one does, so when
    Redis is back, the others of the host do not wait for it to return."""
    server = redis_servers(appendonly='yes', appendfsync='always')
    queue = Queue(server.client()).load()
    own = dict(LONG, redis={'socket': str(server.socket)})
    stays, goes = daemon(own).wait_ready(), daemon(own).wait_ready()
    server.kill()
    goes.wait_log('no session with Redis')
    goes.terminate()
    assert goes.wait_exit() == 0
    stays.wait_log('no session with Redis')
    server.start()
    begun = boot_s()
    queue.add({'command': 'true'})
    wait_succeeded(queue, 1)
    assert boot_s() - begun < SOON_S + late.start()
    stays.wait_log(f'worker {consumer_of(goes)} (dead since 20')
    assert queue.counter('crashes') == 0


def test_stop_without_redis_is_no_crash(daemon, redis_servers, folder):
    """A worker that has to end tasks while Redis is away cannot return them. The next one of the host does, and
    counts no crash."""
    server = redis_servers(appendonly='yes', appendfsync='always')
    queue = Queue(server.client()).load()
    own = dict(LONG, redis={'socket': str(server.socket)}, task={'kill_grace': '100ms'},
               shutdown={'drain': '100ms'})
    first = daemon(own).wait_ready()
    queue.add({'command': f'touch {folder}/begun; exec sleep 60'})
    wait_until((folder / 'begun').exists)
    server.kill()
    first.wait_log('no session with Redis')
    first.terminate()
    assert first.wait_exit() == os.EX_TEMPFAIL
    server.start()
    daemon(own).wait_ready().wait_log('reclaimed 1 task')
    assert queue.counter('crashes') == 0


# ---- the service's own cgroup


def kill_group(group, worker):
    """Kills all at once, guards included, so that no process is left to write the proof."""
    (group / 'cgroup.kill').write_text('1')
    worker.process.wait()


def test_service_killed_as_a_whole(caged, queue, heartbeats, group, worker_locks, late):
    """If systemd kills the unit, there is no proof by the guards, but the group is empty."""
    first = caged(LONG).wait_ready()
    queue.add({'command': f'setsid -w {heartbeats.task(60)} & exec {heartbeats.task(60)}'})
    heartbeats.wait_runs(2)
    consumer, killed = consumer_of(first), boot_s()
    kill_group(group, first)
    assert b'dead' not in (worker_locks.path / consumer).read_bytes()
    second = caged(LONG).wait_ready()
    runs = heartbeats.wait_runs(4)
    assert max(run.last for run in runs[:2]) < min(run.first for run in runs[2:])
    assert runs[2].first - killed < SOON_S + late.start()
    second.wait_log(f'worker {consumer} (no process left): reclaimed 1 task')


def test_another_group_proves_nothing(daemon, queue, group, worker_locks):
    """An empty group is a proof only for workers that were in it."""
    crashed(queue, NOBODY, 1)
    worker_locks.put(NOBODY, dead=False, cgroup='/another')
    worker = daemon(LONG, start=False)
    worker.popen = {'preexec_fn': group.enter}
    worker.start().wait_ready().wait_log(f'worker {NOBODY} is gone, but its tasks may still be running')
    assert len(queue.pending(NOBODY)) == 1
