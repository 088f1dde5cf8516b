"""The wall clock of a worker or of Redis is set by an hour: no worker exceeds its own deadline, which does
not depend on a wall clock, and the effects of a step of Redis's clock are fenced and counted."""
import time
from datetime import datetime

import pytest

from harness.daemon import is_sanitized
from harness.faults.wall import Wall
from harness.polling import wait_until
from harness.short_leases import LEASE_S, boot_s
from harness.tasks import wait_file, wait_succeeded

pytestmark = pytest.mark.usefixtures('short_leases')

HOUR_S = 3600
SOON_S = 20  # far less than that
MORE_LEASE_S = 1.5 * LEASE_S  # for tasks that must keep it, even if the machine stalls
ONE, TWO = ({'queue': {'concurrency': slots, 'lease': f'{MORE_LEASE_S:.0f}s'}} for slots in (1, 2))
both_ways = pytest.mark.parametrize('step_s', [HOUR_S, -HOUR_S], ids=['ahead', 'back'])


@pytest.fixture
def wall(folder):
    return Wall(folder / 'wall')


@pytest.fixture
def redis_server(redis_servers, wall):
    """A server whose clock is `wall`."""
    return redis_servers(prefix=wall.words())


def add(queue, command, **fields):
    return queue.add({'command': command, **fields})[0]


# ---- of a worker

@pytest.mark.skipif(is_sanitized(), reason='AddressSanitizer wants to be the first library')
@both_ways
def test_of_a_worker(daemon, queue, folder, proxy, through_proxy, heartbeats, late, step_s):
    """Running tasks go on, and retries and timeouts come at their time; cut off from Redis, the worker kills
    its tasks exactly when it would without the step."""
    own = Wall(folder / 'own')
    worker = daemon({**through_proxy, **TWO}, env=own.env).wait_ready()
    tid = add(queue, heartbeats.task(60, stubborn=True))
    heartbeats.wait_runs(1)
    own.set(step_s)
    begun = boot_s()
    add(queue, '[ $LEAT_ATTEMPT = 2 ]')
    add(queue, 'sleep 60', timeout='200ms', max_attempts='1')
    wait_until(lambda: queue.counter('succeeded') == 1 and queue.counter('dead') == 1)
    assert boot_s() - begun < SOON_S + late.start()

    begun = boot_s()
    proxy.silence()
    [run] = heartbeats.wait_dead()
    margin_s = MORE_LEASE_S / 20
    assert begun + MORE_LEASE_S / 3 < run.last < begun + MORE_LEASE_S - margin_s + 0.05 + late()
    assert run.tid == tid and queue.counter('fenced') == 0
    worker.wait_log('attempt 1 ended: lease-lost')
    said = datetime.fromisoformat(worker.log().splitlines()[-1].split()[0].replace('Z', '+00:00'))
    assert abs(said.timestamp() - time.time() - step_s) < HOUR_S / 2


# ---- of Redis

def test_of_redis_ahead(daemon, queue, wall, heartbeats):
    """All leases seem to have expired, as after an outage: all workers renew, and no task runs twice."""
    daemon(ONE).wait_ready()
    tids = [add(queue, heartbeats.task(MORE_LEASE_S + 0.3))]
    heartbeats.wait_runs(1)
    daemon(ONE).wait_ready()
    tids.append(add(queue, heartbeats.task(MORE_LEASE_S + 0.3)))
    heartbeats.wait_runs(2)
    wall.set(HOUR_S)
    wait_succeeded(queue, 2)
    assert sorted((run.tid, run.ended) for run in heartbeats.runs()) == sorted((tid, True) for tid in tids)
    assert queue.counter('crashes') == queue.counter('fenced') == 0


def test_of_redis_back(daemon, queue, wall, heartbeats, folder):
    """No task runs twice; new tasks run, and running ones are renewed."""
    daemon(TWO).wait_ready()
    daemon(TWO).wait_ready()
    add(queue, heartbeats.task(MORE_LEASE_S + 0.3))
    heartbeats.wait_runs(1)
    wall.set(-HOUR_S)
    add(queue, f'echo > {folder}/second')
    wait_file(folder / 'second')
    wait_succeeded(queue, 2)
    [run] = heartbeats.runs()
    assert run.ended and queue.counter('crashes') == 0 and queue.counter('fenced') == 0


def test_rate_after_a_step_back(queue, wall):
    """The queue's rate does not wait until the clock is where it was."""
    queue.register('a')
    queue.conf_set('rate', '12/m')
    queue.add(*[{'command': 'true'}] * 2)
    assert len(queue.begin('a', 2)) == 1
    wall.set(-HOUR_S)
    closed = queue.claim('a', 1)
    assert closed['why'] == 'rate' and closed['closed'] - closed['now'] < 6000
    wait_until(lambda: queue.begin('a'))


def test_fencing_tokens_after_a_step_back(queue, wall):
    """A token is greater than the last one of the task even if the clock was set back in between. If Redis has
    forgotten the last one as well, the worker that was given it tells it."""
    queue.register('a')
    queue.add({'command': 'true'})
    [first] = queue.begin('a')
    queue.finish('a', first, 'release')
    wall.set(-HOUR_S)
    [second] = queue.begin('a')
    assert second.fence == first.fence + 1
    wall.set(-2 * HOUR_S)
    queue.register('b', heartbeat=f'{{"unclaimed":[],"fence":{second.fence}}}')
    queue.add({'command': 'true'})
    [other] = queue.begin('b')
    assert other.fence == second.fence + 1


def test_leases_after_a_step_back(queue, wall):
    """The lease of a worker that is gone ends one lease after the clock was set back, and not when the clock is
    where it was. A worker that is there loses nothing."""
    for name in ('gone', 'there', 'other'):
        queue.register(name, lease=5000)
    queue.add(*[{'command': 'true'}] * 2)
    [lost], [kept] = queue.begin('gone'), queue.begin('there')
    wall.set(-HOUR_S)

    def scan():
        assert queue.renew('there', [kept.token])['lost'] == []
        return queue.scan('other', 1)[1]
    [again] = wait_until(scan)
    assert again.tid == lost.tid and again.fence > lost.fence
    assert queue.finish('there', kept) == 'ok'


def test_hold_after_a_step_back(queue, wall):
    """The pause after a recreated group does not last longer either."""
    queue.register('a', lease=5000)
    queue.redis.xgroup_destroy(queue.stream, queue.group)
    queue.register('a', lease=5000)
    queue.add({'command': 'true'})
    wall.set(-HOUR_S)
    closed = queue.claim('a', 1)
    assert closed['why'] == 'hold' and 0 < closed['closed'] - closed['now'] < 6000
    assert queue.claim('a', 1)['closed'] == closed['closed']
    wait_until(lambda: queue.begin('a'))
