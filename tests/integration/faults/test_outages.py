"""Outages of Redis, and pauses of all workers: they are nobody's crash."""
import json
import signal

import pytest

from harness import processes
from harness.polling import wait_until
from harness.short_leases import LEASE_S, SCAN_S, assert_apart, boot_s, pass_time, wait_blocked, wait_empty
from harness.tasks import wait_succeeded

pytestmark = pytest.mark.usefixtures('short_leases')

OUTAGE_S = LEASE_S + 1
WORKERS, OUTAGES = 5, 4
WAKEUPS_KEPT = 16


@pytest.fixture
def durable(redis_server, queue):
    """Redis keeps everything that it has answered."""
    redis_server.restart(appendonly='yes', appendfsync='always')
    queue.redis = redis_server.client()
    queue.load()
    return redis_server


def assert_no_crash(queue, heartbeats, tids):
    assert queue.counter('crashes') == 0 and queue.letters() == []
    for tid in tids:
        runs = heartbeats.runs(tid)
        assert_apart(runs)
        assert {run.attempt for run in runs} == {1}


def test_redis_dies_again_and_again(daemon, queue, durable, heartbeats):
    """Five workers, one task each, and four outages longer than the lease: nothing counts as a crash, and no two
    runs of a task overlap."""
    for _ in range(WORKERS):
        daemon().wait_ready()
    tids = queue.add(*[{'command': heartbeats.task(60)}] * WORKERS)
    heartbeats.wait_runs(WORKERS)
    for outage in range(OUTAGES):
        durable.kill()
        pass_time(OUTAGE_S)
        durable.restart()
        queue.redis = durable.client()
        heartbeats.wait_runs(WORKERS * (outage + 2))
    assert_no_crash(queue, heartbeats, tids)


def heartbeat_ages(queue):
    """Of the workers, youngest first, in leases."""
    beats = [int(one.split()[0]) for one in queue.redis.hvals(queue.workers)]
    return sorted((queue.now() - beat) / 1000 / LEASE_S for beat in beats)


def test_an_outage_shorter_than_the_lease(daemon, queue, durable, heartbeats):
    """The lease of a worker with a task has run out then, that of another one has not. The task is not taken
    from it."""
    daemon().wait_ready()
    tids = queue.add({'command': heartbeats.task(60)})
    heartbeats.wait_runs(1)
    wait_until(lambda: heartbeat_ages(queue)[0] > 0.2)
    daemon().wait_ready()
    wait_until(lambda: heartbeat_ages(queue)[0] < 0.05 and heartbeat_ages(queue)[1] > 0.15)
    queue.redis.config_set('min-replicas-to-write', 1)
    pass_time(0.85 * LEASE_S)
    queue.redis.config_set('min-replicas-to-write', 0)
    heartbeats.wait_runs(2)
    assert_no_crash(queue, heartbeats, tids)


def test_a_long_pause_between_reconnects(daemon, queue, durable, heartbeats):
    """One worker may pause for much longer than the lease before it reconnects. It returns with the others."""
    daemon({'redis': {'backoff_base': '60s', 'backoff_cap': '60s'}}).wait_ready()
    daemon().wait_ready()
    tids = queue.add(*[{'command': heartbeats.task(60)}] * 2)
    heartbeats.wait_runs(2)
    durable.kill()
    pass_time(OUTAGE_S)
    durable.restart()
    queue.redis = durable.client()
    heartbeats.wait_runs(4)
    assert_no_crash(queue, heartbeats, tids)


@pytest.mark.parametrize('name, holding, keys', [
    ('CLIENT', b'SETNAME', {'connect_timeout': 'auto'}),
    ('leat_register', b'', {'command_timeout': f'{2 * LEASE_S:.0f}s'})])
def test_a_return_without_an_answer(daemon, queue, durable, proxy, through_proxy, heartbeats, name, holding, keys):
    """After an outage, a command by which one worker returns is lost, and it may wait for the answer for longer
    than the lease. It returns with the others."""
    daemon({'redis': {**through_proxy['redis'], **keys}}).wait_ready()
    daemon().wait_ready()
    tids = queue.add(*[{'command': heartbeats.task(60)}] * 2)
    heartbeats.wait_runs(2)
    durable.kill()
    lost = proxy.trap(name, 'before', 'hold', holding)
    pass_time(OUTAGE_S)
    durable.restart()
    queue.redis = durable.client()
    lost.wait()
    heartbeats.wait_runs(4)
    assert_no_crash(queue, heartbeats, tids)


def test_all_workers_are_paused(daemon, queue, heartbeats):
    """All workers stop and go on together, as in a virtual machine that is paused."""
    workers = [daemon().wait_ready() for _ in range(WORKERS)]
    tids = queue.add(*[{'command': heartbeats.task(60)}] * WORKERS)
    heartbeats.wait_runs(WORKERS)
    for outage in range(OUTAGES):
        for worker in workers:
            worker.stop()
        pass_time(OUTAGE_S)
        for worker in workers:
            worker.cont()
        heartbeats.wait_runs(WORKERS * (outage + 2))
    assert_no_crash(queue, heartbeats, tids)


def test_slots_are_full_again_after_an_outage(daemon, queue, durable, late):
    """24 tasks of 5 s on 24 slots are done 12 s after an outage: they run beside each other again."""
    for _ in range(3):
        daemon({'queue': {'concurrency': 8}}).wait_ready()
    queue.add(*[{'command': 'exec sleep 5'}] * 24)
    wait_until(lambda: queue.redis.hlen(queue.running) == 24)
    durable.kill()
    pass_time(OUTAGE_S)
    durable.restart()
    queue.redis = durable.client()
    back = boot_s()
    wait_until(lambda: queue.counter('succeeded') == 24, 60)
    assert boot_s() - back <= 12 + late.start()
    assert queue.counter('crashes') == 0


def test_successes_of_an_outage_are_delivered(daemon, queue, durable, heartbeats):
    """A task that ends while Redis is away does not run again, whichever worker returns first."""
    lease_s = 1.5 * LEASE_S  # so that tasks end before, even if the machine stalls
    for _ in range(WORKERS):
        daemon({'queue': {'lease': f'{lease_s:.0f}s'}}).wait_ready()
    queue.add(*[{'command': heartbeats.task(1)}] * WORKERS)
    heartbeats.wait_runs(WORKERS)
    durable.kill()
    heartbeats.wait_dead()
    ended = sum(run.ended for run in heartbeats.runs())
    pass_time(lease_s + 1)
    durable.restart()
    queue.redis = durable.client()
    wait_empty(queue)
    assert ended > 0 and len(heartbeats.runs()) == WORKERS + (WORKERS - ended)
    assert queue.counter('crashes') == 0 and queue.counter('succeeded') == WORKERS


@pytest.mark.parametrize('proved', [True, False])
def test_a_worker_that_dies_in_an_outage(daemon, queue, durable, heartbeats, late, proved):
    """A worker that dies while Redis is away has crashed. If it is proved dead, its task does not wait for
    anything; otherwise it runs again one lease after the end of the outage."""
    lost = daemon().wait_ready()
    queue.add({'command': heartbeats.task(60)})
    [run] = heartbeats.wait_runs(1)
    other = daemon().wait_ready()
    durable.kill()
    if proved:
        lost.kill9()
    else:
        lost.kill9_unguarded()
        processes.send(run.pid, signal.SIGKILL)
    heartbeats.wait_dead()
    pass_time(OUTAGE_S)
    away = boot_s()
    durable.restart()
    queue.redis = durable.client()
    back = boot_s()
    run = heartbeats.wait_runs(2)[-1]
    if proved:
        assert run.first - back < LEASE_S + late.start()
    else:
        assert run.first - away >= LEASE_S and run.first - back < LEASE_S + SCAN_S + 1 + late.start()
    assert queue.counter('crashes') == 1 and run.attempt == 1 and other.running()


def test_redis_forgets_claims(daemon, queue, redis_server, heartbeats):
    """Redis comes back from a snapshot that was taken before the tasks were claimed. Their workers bring them, so
    that they go on, and nobody else starts them."""
    workers = [daemon({'queue': {'concurrency': 3, 'lease': '10s'}}).wait_ready() for _ in range(2)]
    wait_blocked(queue.redis, 2)
    for worker in workers:
        worker.stop()
    tids = queue.add(*[{'command': heartbeats.task(3)}] * 6)
    queue.redis.save()
    for worker in workers:
        worker.cont()
    heartbeats.wait_runs(6)
    redis_server.kill()
    redis_server.restart()
    queue.redis = redis_server.client()
    wait_empty(queue)
    assert sorted(run.tid for run in heartbeats.runs()) == sorted(tids)
    assert all(run.ended for run in heartbeats.runs())
    assert queue.counter('crashes') == 0 and queue.counter('succeeded') == 6


def told(queue, worker, name):
    """What this worker told in its last heartbeat."""
    heartbeats = [json.loads(value.split(b' ', 1)[1]) for value in queue.redis.hvals(queue.workers)]
    return next((one.get(name) for one in heartbeats if one['pid'] == worker.pid), 0)


def wait_heard(queue, worker):
    wait_until(lambda: told(queue, worker, 'joined') == int(queue.redis.hget(queue.stats, 'joined')))


@pytest.mark.parametrize('number', ['1e20', '99999999999999999999', '0x7fffffffffffffff'])
def test_a_number_of_the_newest_worker_that_was_written_by_hand(daemon, queue, base_config, number):
    """It keeps no worker away, neither one that returns nor a new one."""
    one = daemon(base_config).wait_ready()
    queue.redis.hset(queue.stats, 'joined', number)
    queue.redis.client_kill_filter(_type='normal', skipme=True)
    queue.add({'command': 'true'})
    wait_succeeded(queue, 1)
    one.terminate()
    one.wait_exit()
    daemon(base_config).wait_ready()
    queue.add({'command': 'true'})
    wait_succeeded(queue, 2)


def comes_back(queue, redis_server):
    """Redis is killed, and comes back from its last snapshot."""
    redis_server.kill()
    redis_server.restart()
    queue.redis = redis_server.client()


def assert_two_runs(queue, heartbeats):
    """A task runs a second time, after its first run is dead."""
    heartbeats.wait_runs(2)
    # the second one has been seen for a lease, and with it all that the first one wrote meanwhile
    wait_until(lambda: heartbeats.runs()[1].last - heartbeats.runs()[1].first > LEASE_S)
    first, second = heartbeats.runs()
    assert_apart([first, second])
    assert second.fence > first.fence and queue.counter('crashes') == 0


@pytest.mark.parametrize('other_one', ['known', 'unknown', 'behind'])
def test_redis_forgets_a_worker(daemon, queue, redis_server, heartbeats, other_one):
    """Redis comes back from a snapshot that was taken before a worker came and claimed a task. This worker does
    not return. Another one has heard of it, whether the snapshot knows that one or not, and even if it missed the
    first wakeups: it waits until the first run is dead, and its fencing token is greater."""
    other = daemon(start=other_one != 'unknown')
    if other_one != 'unknown':
        other.wait_ready()
        wait_blocked(queue.redis, 1)
        other.stop()
    queue.add({'command': heartbeats.task(60)})
    queue.redis.save()
    if other_one == 'behind':
        queue.conf_set('max_crashes', '3')  # so that its read of the wakeups ends
    forgotten = daemon()
    heartbeats.wait_runs(1)
    if other_one == 'unknown':
        other.start()
    else:
        for _ in range(WAKEUPS_KEPT if other_one == 'behind' else 0):
            queue.conf_set('max_crashes', '3')
        other.cont()
    wait_heard(queue, other)
    forgotten.stop()
    comes_back(queue, redis_server)
    assert_two_runs(queue, heartbeats)


def test_redis_forgets_a_longer_lease(daemon, queue, redis_server, heartbeats):
    """Redis comes back from a snapshot that was taken before the lease was raised and the task claimed. Its worker
    does not return. The other one tells the lease of the task, and waits until it is over."""
    workers = [daemon().wait_ready() for _ in range(2)]
    queue.gate('paused', True)
    queue.add({'command': heartbeats.task(60)})
    queue.redis.save()
    queue.conf_set('lease_ms', int(3000 * LEASE_S))
    wait_until(lambda: {told(queue, worker, 'lease_ms') for worker in workers} == {3000 * LEASE_S})
    queue.gate('paused', False)
    heartbeats.wait_runs(1)
    running_worker(queue, workers).stop()
    comes_back(queue, redis_server)
    queue.gate('paused', False)
    assert_two_runs(queue, heartbeats)


def test_redis_forgets_a_return(daemon, queue, redis_server, heartbeats):
    """Redis comes back from a snapshot that was taken while a worker had been silent for a lease. That worker had
    returned and claimed a task, and does not return now: the other one waits until its task is dead."""
    silent, other = [daemon().wait_ready() for _ in range(2)]
    queue.gate('paused', True)
    queue.add({'command': heartbeats.task(60)})
    silent.stop()
    before = queue.redis.hgetall(queue.workers)
    newest = max(int(value.split()[0]) for value in before.values())
    wait_until(lambda: queue.now() > newest + 1000 * (LEASE_S + 1))
    queue.redis.save()
    silent.cont()
    wait_until(lambda: not set(before.items()) & set(queue.redis.hgetall(queue.workers).items()))
    other.stop()
    queue.gate('paused', False)
    heartbeats.wait_runs(1)
    other.cont()
    silent.stop()
    comes_back(queue, redis_server)
    queue.gate('paused', False)
    assert_two_runs(queue, heartbeats)


def running_worker(queue, workers):
    """The one that has the queue's only task."""
    [record] = queue.redis.hvals(queue.running)
    pid = int(record[1:].split(b'\0')[0].split(b':')[-2])
    return next(worker for worker in workers if worker.pid == pid)
