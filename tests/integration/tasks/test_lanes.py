"""Lanes, caps and rates on real workers: the shared settings, fairness by the tasks' own timestamps, caps
across crashes, and no polling."""
import random
import re
import time

import pytest

from harness.functions import invariants
from harness.polling import wait_until
from harness.short_leases import cpu_share, pass_time, wait_blocked, wait_empty, wakeups
from harness.tasks import wait_letters

KILLS = 50
CAP = 3


@pytest.fixture(autouse=True)
def patient(base_config):
    """Scans and heartbeats are rare, so that nothing is found by chance."""
    base_config['queue'].update(lease='60s', scan='60s', concurrency=1)
    base_config['shutdown'] = {'drain': '10ms'}


@pytest.fixture
def stamps(folder):
    return folder / 'stamps'


def stamp(path, after='true'):
    """A shell line that writes its lane and the wall-clock time."""
    return f'date "+$TASK_LANE %s%N" >> {path}; {after}'


def task(path, lane='', after='true'):
    fields = {'command': stamp(path, after), 'LANE': lane or 'none'}
    return dict(fields, lane=lane) if lane else fields


def stamped(path):
    """[(lane, seconds)] in order."""
    text = path.read_text() if path.exists() else ''
    return [(line.split()[0], int(line.split()[1]) / 1e9) for line in text.splitlines()]


# ---- shared settings

def test_the_first_file_sets_the_shared_settings(daemon, queue, client):
    """The first worker's lanes and rates go into conf; a later worker with others is told, and conf applies."""
    daemon({'limits': {'rate': '20/s', 'burst': 40}, 'lanes': {'big': '2,3', 'a b': 'strict'}}).wait_ready()
    conf = queue.conf_set()
    assert (conf['rate'], conf['burst'], conf['lane:big'], conf['lane:a b']) == ('20/s', '40', '2, 3', 'strict')
    second = daemon({'limits': {'rate': 'none'}, 'lanes': {'big': '2, 4', 'new': '0.5, -, 100/m'}}).wait_ready()
    second.wait_log('lane:big 2, 3 (not 2, 4)')
    assert 'rate 20/s (not none)' in second.log() and 'lane:a b' not in second.log()
    conf = queue.conf_set()
    assert (conf['rate'], conf['lane:big'], conf['lane:new']) == ('20/s', '2, 3', '0.5, -, 100/m')


def test_the_file_sets_a_default(daemon, queue, latch):
    """[lanes] * binds each lane that has no settings of its own."""
    worker = daemon({'lanes': {'*': '1, 1', 'b': '1, 2'}, 'queue': {'concurrency': 9}}).wait_ready()
    queue.add(*[{'command': latch.command, 'lane': lane} for lane in 'aaabbbccc'])
    wait_until(lambda: len(worker.descendants()) == 4)
    pass_time(0.3)
    assert [queue.counter(f'r:{lane}') for lane in 'abc'] == [1, 2, 1]
    latch.open()
    wait_until(lambda: queue.counter('succeeded') == 9)


@pytest.mark.parametrize('sections, only', [
    ({}, 'any'),
    ({'lanes': {'only': 'named', 'big': '2'}}, 'named'),
    ({'security': {'commands': 'listed'}}, 'named'),
    ({'security': {'commands': 'listed'}, 'lanes': {'only': 'any'}}, 'any'),
    ({'security': {'commands': 'listed'}, 'lanes': {'*': '1, 5'}}, 'any'),
], ids=['default', 'named', 'listed', 'listed, any', 'listed, default for lanes'])
def test_lanes_that_tasks_may_name(daemon, queue, leat, folder, sections, only):
    """With only = named, and by default where commands are listed, a task that names a lane without settings
    runs in none, and the log says so. leat conf shows the value, and changes it for the next task."""
    if 'security' in sections:
        sections = {**sections, 'command.:': {'program': '/bin/true'}}
    assert f'lanes_only        {only}' in leat('conf', config=sections).stdout
    worker = daemon(sections).wait_ready()
    assert queue.conf_set()['lanes_only'] == only
    queue.redis.xadd(queue.stream, {'command': ':', 'lane': 'own'})
    queue.redis.xadd(queue.stream, {'command': ':', 'lane': 'big'})
    wait_until(lambda: queue.counter('succeeded') == 2)
    said = 'its lane has no settings, and [lanes] only is named: ignored'
    assert worker.log().count(said) == (only == 'named') + (only == 'named' and 'lanes' not in sections)
    other = 'any' if only == 'named' else 'named'
    assert f'lanes_only        {other}' in leat('conf', 'lanes_only', other).stdout
    assert leat('conf', 'lanes_only', 'some').returncode == 64
    [tid] = [queue.redis.xadd(queue.stream, {'command': ':', 'lane': 'own'}).decode()]
    wait_until(lambda: queue.counter('succeeded') == 3)
    assert (f'task {tid}: {said}' in worker.log()) == (other == 'named')


def test_a_removed_setting_stays_removed(daemon, queue):
    """A worker's file does not restore a setting that an operator removed."""
    sections = {'limits': {'rate': '20/s'}, 'lanes': {'big': '2'}}
    daemon(sections).wait_ready()
    queue.conf_set('lane:big', '')
    queue.conf_set('rate', '')
    daemon(sections).wait_ready().wait_log('lane:big none (not 2)')
    assert queue.conf_set()['lane:big'] == queue.conf_set()['rate'] == ''


def test_a_reload_says_how_lanes_change(daemon, base_config):
    """The settings in force are in Redis; the file only sets those that Redis does not have."""
    worker = daemon({'lanes': {'a': '1'}}).wait_ready()
    text = worker.config_path.read_text()
    worker.config_path.write_text(text.replace('a = 1', 'a = 2') + '[limits]\nrate = 1/s\n')
    worker.reload()
    worker.wait_log('[lanes] a: takes effect only with leat conf --apply')
    worker.wait_log('[limits] rate: takes effect only with leat conf --apply')


def test_lanes_that_were_there_before_any_worker(daemon, queue, stamps):
    """If only the first worker's file makes a lane strict, its waiting tasks start first."""
    queue.add(task(stamps, 'x'))
    queue.add(*[task(stamps, 'a')] * 5, *[task(stamps, 'now')] * 5)
    daemon({'lanes': {'now': 'strict'}}).wait_ready()
    wait_empty(queue)
    lanes = [lane for lane, _ in stamped(stamps)]
    # one may have been claimed before the settings were there
    assert lanes[:6].count('now') == 5


# ---- fairness

@pytest.mark.parametrize('how', ['function', 'XADD'])
@pytest.mark.parametrize('slots', [1, 4])
def test_a_backlog_blocks_no_other_lane(daemon, queue, client, stamps, how, slots):
    """While thousands of tasks wait in lane a, a task of lane b starts within slots + 1 starts."""
    long = task(stamps, 'a', after='sleep 0.03')
    if how == 'function':
        for _ in range(10):
            queue.add(*[long] * 300)
    else:
        with client.pipeline(transaction=False) as pipe:
            for _ in range(3000):
                pipe.xadd(queue.stream, long)
            pipe.execute()
    worker = daemon({'queue': {'concurrency': slots}, 'log': {'started': 'yes'}}).wait_ready()

    def starts():
        return re.findall(r'task (\S+): attempt 1 started', worker.log())

    for _ in range(3):
        began = len(starts())
        wait_until(lambda began=began: len(starts()) >= began + 5)
        [tid] = queue.add(task(stamps, 'b'))
        added = len(starts())
        wait_until(lambda tid=tid: tid in starts())
        # tasks of the same claim may start before it
        assert starts().index(tid) - added <= slots + 1 + slots


@pytest.mark.parametrize('delay_s', [0, 0.002])
@pytest.mark.parametrize('slots', [1, 2])
def test_a_lane_has_its_turn_when_a_slot_is_free_again(daemon, queue, client, stamps, latch, proxy, through_proxy,
                                                       slots, delay_s):
    """Tasks come one at a time until all slots are taken, and then others, without a lane and in a strict one.
    These go first, however far away Redis is."""
    worker = daemon(dict(through_proxy, queue={'concurrency': slots}, lanes={'urgent': 'strict'})).wait_ready()
    proxy.delay(delay_s)
    for count in range(slots):
        wait_blocked(client)
        queue.add({'command': latch.command})
        wait_until(lambda count=count: len(worker.descendants()) == count + 1)
    queue.add(*[task(stamps)] * 5)
    queue.add(*[task(stamps, 'urgent')] * 5)
    latch.open()
    wait_empty(queue)
    order = [lane for lane, _ in stamped(stamps)]
    last = len(order) - order[::-1].index('urgent')
    assert order[:last].count('none') < slots, order  # tasks that start together may write in another order


def wait_for(path, condition, timeout=60):
    wait_until(lambda: condition(stamped(path)), timeout, lambda: stamped(path)[-20:])
    return stamped(path)


def test_an_expired_task_of_a_lane(daemon, queue, stamps):
    """A task that expired before its start becomes a dead letter, and the lane goes on."""
    queue.conf_set('lane:a', '1, 1')
    queue.add(task(stamps, 'a', after='sleep 1'))
    queue.add(dict(task(stamps, 'late'), lane='a', expires=str(time.time() + 0.3)), task(stamps, 'a'))
    daemon().wait_ready()
    [letter] = wait_letters(queue)
    assert letter.cause == 'expired'
    wait_for(stamps, lambda rows: len(rows) == 2)
    assert [lane for lane, _ in stamped(stamps)] == ['a', 'a']


# ---- rates

def between(rows, begin, end, lane=None):
    return sum(begin <= at < end for name, at in rows if lane in (None, name))


def test_a_rate_over_two_workers(daemon, queue, stamps, late):
    """20 tasks a second, after a burst, start within 5 % by the tasks' own timestamps, without a busy loop."""
    queue.add(*[task(stamps)] * 300)
    workers = [daemon({'queue': {'concurrency': 4}, 'limits': {'rate': '20/s', 'burst': 10}}) for _ in range(2)]
    rows = wait_for(stamps, lambda rows: len(rows) >= 15)
    before = [wakeups(worker.pid) for worker in workers]
    share = cpu_share(workers[0].pid, 4)
    after = [wakeups(worker.pid) for worker in workers]
    rows = wait_for(stamps, lambda rows: len(rows) >= 85)
    first = rows[0][1]
    assert abs(between(rows, first + 0.5, first + 3.5) - 60) <= 3 + 20 * late()
    assert between(rows, first, first + 0.1) <= 10 + 4 + 20 * late()
    # each start is a timer, a claim and its reply, the task's start, output and end; the other worker asks,
    # too
    for mine, theirs in zip(before, after):
        assert theirs - mine <= 4 * 20 * 12
    assert share < 0.2


def test_the_rate_of_a_lane(daemon, queue, stamps, late):
    """A lane of 10 tasks a second and one without a rate start as configured, on two workers."""
    queue.conf_set('lane:slow', '1, -, 10/s')
    for _ in range(2):
        daemon({'queue': {'concurrency': 2}}).wait_ready()
    queue.add(*[task(stamps, 'slow')] * 60, *[task(stamps, 'free')] * 60)
    rows = wait_for(stamps, lambda rows: len(rows) == 120)
    slow, free = (sorted(at for lane, at in rows if lane == name) for name in ('slow', 'free'))
    assert abs(between(rows, slow[0] + 0.5, slow[0] + 3.5, 'slow') - 30) <= 3 + 10 * late()
    # on a busy machine, the last tasks of the lane without a rate may start late
    assert len(free) == 60 and free[30] < slow[30]


def test_no_wakeups_while_waiting_for_a_token(daemon, queue, client):
    """If the next start of a queue and a lane is an hour away, workers do nothing between their heartbeats."""
    workers = [daemon().wait_ready() for _ in range(2)]
    queue.conf_set('lane:a', '1, -, 1/h')
    queue.add(*[{'command': 'true', 'lane': 'a'}] * 5)
    wait_blocked(client, 2)
    pass_time(0.3)
    before = [wakeups(worker.pid) for worker in workers]
    assert cpu_share(workers[0].pid, 3) < 0.01
    queue.conf_set('rate', '1/h')
    queue.add(*[{'command': 'true'}] * 3)
    pass_time(0.5)
    assert cpu_share(workers[0].pid, 3) < 0.01
    # two wakeups, the enqueued tasks, a task, and a heartbeat
    assert all(wakeups(worker.pid) - mine <= 40 for worker, mine in zip(workers, before))


# ---- caps across crashes

def at_once(runs):
    """The largest number of them that lived at the same time."""
    moments = sorted([(run.first, 1) for run in runs] + [(run.last, -1) for run in runs])
    most = now = 0
    for _, change in moments:
        now += change
        most = max(most, now)
    return most


def test_a_cap_holds_across_crashes(daemon, queue, client, heartbeats, short_leases, late):
    """Three workers of two slots share a lane with a cap of three: after each of fifty kill -9, with all
    their tasks, no fourth task runs, the count is exact, and in the end every task has run."""
    chance = random.Random(7)
    sections = {'queue': {'concurrency': 2, 'lease': '2s', 'scan': '200ms', 'max_crashes': 1000},
                'task': {'kill_grace': '100ms'}, 'lanes': {'a': f'1, {CAP}'}}
    workers = [daemon(sections).wait_ready() for _ in range(3)]
    queue.add(*[{'command': heartbeats.task(0.4), 'lane': 'a'}] * 60)
    queue.add(*[{'command': 'sleep 0.1'}] * 20)
    for _ in range(KILLS):
        pass_time(chance.uniform(0.05, 0.3))
        victim = chance.randrange(len(workers))
        workers[victim].close()
        workers[victim] = daemon(sections)
        snapshot = invariants.Snapshot(queue)
        snapshot.lane_counts()
        assert snapshot.runs(b'a') <= CAP
    for worker in workers:
        worker.wait_ready()
    wait_empty(queue, 120)
    # if the machine stalls for a lease, no one kills the tasks whose lease it is in time
    assert at_once(heartbeats.runs()) <= CAP or late() > 5
    assert client.hgetall(queue.stats).get(b'r:a') is None
    assert sum(run.ended for run in heartbeats.runs()) >= 60 == len({run.tid for run in heartbeats.runs()})
