"""Rates of the queue and of lanes are exact over all workers, and no worker asks before a task can start."""
import time
from collections import Counter

import pytest
import redis

from harness.functions import invariants
from harness.functions.doctor import Doctor
from harness.polling import wait_until

WORKERS = ('w1', 'w2', 'w3')


@pytest.fixture(autouse=True)
def worker(queue):
    for name in WORKERS:
        queue.register(name)
    yield
    invariants.check(queue)


def test_full_buckets_are_forgotten(queue):
    """Any number of lanes may have had the default rate. The sweep forgets those that could start as many tasks at
    once as the burst allows, and no others."""
    queue.conf_set('lane:*', '1, -, 1000/s')
    queue.conf_set('lane:slow', '1, -, 1/h')
    queue.add(*[{'command': 'x', 'lane': lane} for lane in ('a', 'b', 'c', 'slow', 'slow')])
    for task in queue.begin('w1', 9):
        queue.finish('w1', task)

    def buckets():
        queue.redis.hdel(queue.stats, 'swept')
        queue.scan('w1')
        return {name for name in queue.redis.hkeys(queue.stats) if name[:2] == b't:'}
    wait_until(lambda: buckets() == {b't:slow'})
    assert queue.begin('w1', 9) == []


@pytest.mark.parametrize('then', ['scan', 'add', 'repair'])
def test_a_clock_that_was_set_back(queue, then):
    """A lane that waits for a rate token, by a clock that was a day ahead, goes on at the next scan, with its next
    task, or by doctor. It does not wait for a day."""
    queue.conf_set('lane:slow', '1, -, 20/s')
    queue.add(*[{'command': 'x', 'lane': 'slow'}] * 100)
    tids = [task.tid for task in queue.begin('w1', 100)]
    assert queue.redis.zscore(queue.delayed, 'l:slow') is not None and 0 < len(tids) < 99
    ahead = (time.time() + 86400) * 1000
    queue.redis.zadd(queue.delayed, {'l:slow': round(ahead)})
    queue.redis.hset(queue.stats, 't:slow', round(ahead * 1000))
    if then == 'scan':
        queue.redis.hdel(queue.stats, 'swept')
        queue.scan('w1')
    elif then == 'add':
        queue.add({'command': 'x', 'lane': 'slow'})
    else:
        assert Doctor(queue).kinds() == ['lost-lane']
        Doctor(queue).repair()
    wait_until(lambda: queue.begin('w1', 1))


class Drive:
    """Workers with four slots each, and tasks that take no time: each claims at its start, when a task has
    ended, and at the time that its last claim told; never else."""

    def __init__(self, queue, workers=WORKERS):
        self.queue, self.ask = queue, {name: 0 for name in workers}
        self.starts, self.claims = [], 0
        self.slept_s = 0  # how long in all no worker asked though it was time, because the machine was busy

    def turn(self, worker):
        reply = self.queue.claim(worker, 4)
        self.claims += 1
        for task in reply['tasks']:
            self.starts.append((reply['now'], task.fields.get('lane', b'').decode()))
            self.queue.finish(worker, task)
        times = [at for at in (reply['closed'], reply['next_due']) if at]
        if len(reply['tasks']) == 4 and not reply['closed']:
            times.append(reply['now'])
        self.ask[worker] = min(times) if times else float('inf')

    def run(self, seconds):
        end = time.time() * 1000 + seconds * 1000
        while True:
            worker = min(self.ask, key=self.ask.get)
            at = min(self.ask[worker], end)
            wait_until(lambda: time.time() * 1000 >= at, seconds + 10)
            if at >= end:
                return self
            self.slept_s += max(0, time.time() - at / 1000 - 0.02) if at else 0
            self.turn(worker)

    def within(self, begin_ms, end_ms, lane=None):
        return sum(begin_ms <= at < end_ms and lane in (None, of) for at, of in self.starts)


def fill(queue, count, **fields):
    for begin in range(0, count, 500):
        queue.add(*[dict(command='x', **fields)] * min(500, count - begin))


def assert_rate(drive, seconds, rate, burst, lane=None):
    """The burst starts at once, then the rate holds within 5 %. A start may be late by 0.1 s without losing
    its token, so that this much may come on top of the burst."""
    late = rate * 0.1
    first = min(at for at, of in drive.starts if lane in (None, of))
    assert drive.within(first, first + 1, lane) <= burst + late + 1
    whole = drive.within(first + 500, first + 500 + seconds * 1000, lane)
    # tokens from before may be taken in it if the machine was busy
    assert whole <= rate * (1.05 * seconds + drive.slept_s) + 1, (whole, drive.slept_s)
    assert whole >= rate * (0.95 * seconds - drive.slept_s) - 1, (whole, drive.slept_s)
    assert drive.within(first, first + seconds * 1000, lane) <= burst + late + rate * seconds * 1.05 + 1


@pytest.mark.parametrize('rate, burst', [('20/s', 40), ('1200/m', 1), ('200/s', 10)])
def test_the_queues_rate(queue, rate, burst):
    """Three workers start the burst of a backlog at once, then exactly at the rate; only workers that were
    too slow for a token claim in vain."""
    queue.conf_set('rate', rate)
    queue.conf_set('burst', burst)
    fill(queue, 1500)
    drive = Drive(queue).run(4)
    assert_rate(drive, 3, 200 if rate == '200/s' else 20, burst)
    assert drive.claims <= len(WORKERS) * (len(drive.starts) + 3)


@pytest.mark.parametrize('gone', [0, 20])
def test_many_workers_do_not_all_ask_at_each_token(queue, gone):
    """Of thirty waiting workers, a few ask for each token, and none is lost, also if most of them fall silent
    after they were told when to ask."""
    workers = [f'w{number}' for number in range(30)]
    for name in workers:
        queue.register(name)
    queue.conf_set('rate', '200/s')
    fill(queue, 800)
    drive = Drive(queue, workers).run(0.3)
    told = list(drive.ask)
    for name in told[:gone]:
        del drive.ask[name]
    begun, claims, slept_s = len(drive.starts), drive.claims, drive.slept_s
    drive.run(1.5)
    starts = len(drive.starts) - begun
    assert starts >= 200 * (0.95 * 1.5 - drive.slept_s + slept_s) - 1, (starts, drive.slept_s)
    assert drive.claims - claims <= 5 * starts, (drive.claims - claims, starts)


def test_a_full_worker_does_not_reserve_a_token(queue):
    """A worker that has all the tasks that it asked for is told of the next token, and so is a worker that
    waits with room."""
    fill(queue, 100)

    def claims():
        """None if they have lasted until the next token, as on a machine that stalls."""
        for rate in '', '1.25/s':
            queue.conf_set('rate', rate)
        full = queue.claim('w1', 1)
        replies = [queue.claim('w2', 1) for _ in range(4)]
        last = queue.claim('w1', 0)
        return (full, replies, last) if last['now'] < full['closed'] else None

    full, replies, last = wait_until(claims)
    assert len(full['tasks']) == 1
    assert [reply['why'] for reply in replies] == ['rate'] * 4
    times = [round((reply['closed'] - full['closed']) / 800) for reply in replies]
    assert times == [0, 0, 0, 1] and last['closed'] == full['closed']


def test_a_rate_counts_all_kinds_of_tasks(queue):
    """Tasks of lanes, plain tasks and retried ones count together."""
    queue.conf_set('rate', '50/s')
    fill(queue, 100)
    fill(queue, 100, lane='a')
    for task in queue.begin('w1', 1):
        queue.finish('w1', task, 'retry', delay=0)
    drive = Drive(queue).run(3)
    first = drive.starts[0][0] + 500
    whole = drive.within(first, first + 2000)
    assert 95 - 50 * drive.slept_s <= whole <= 105 + 50 * drive.slept_s, (whole, drive.slept_s)
    counts = Counter(lane for _, lane in drive.starts)
    assert abs(counts['a'] - counts['']) <= 3


@pytest.mark.parametrize('how', ['function', 'XADD'])
def test_rates_of_lanes(queue, how):
    """Each lane has its own rate over all workers; a lane without a rate takes what it gets."""
    queue.conf_set('lane:slow', '1, -, 20/s, 5')
    queue.conf_set('lane:fast', '1, -, 100/s')
    for lane, count in (('slow', 200), ('fast', 500), ('free', 300)):
        if how == 'function':
            fill(queue, count, lane=lane)
        else:
            queue.redis.eval(
                "for i = 1, ARGV[2] do redis.call('XADD', KEYS[1], '*', 'command', 'x', 'lane', ARGV[1]) end",
                1, queue.stream, lane, count)
    drive, slept_s = Drive(queue).run(4), 0
    assert_rate(drive, 3, 20, 5, 'slow')
    assert_rate(drive, 3, 100, 1, 'fast')
    while drive.slept_s > slept_s and drive.within(0, float('inf'), 'free') < 300:
        slept_s = drive.slept_s  # the machine was too busy for all of them
        drive.run(1)
    assert drive.within(0, float('inf'), 'free') == 300


def test_a_lane_with_rate_and_cap(queue):
    """The cap holds while tasks run, and the rate when they end."""
    queue.conf_set('lane:a', '1, 2, 1000/s, 100')
    fill(queue, 10, lane='a')
    tasks = queue.begin('w1', 10)
    assert len(tasks) == 2
    queue.conf_set('lane:a', '1, 2, 1/h, 1')
    for task in tasks:
        queue.finish('w1', task)
    assert sum(len(queue.begin('w1', 10)) for _ in range(3)) == 1


def test_an_unclaimed_task_takes_no_token(queue):
    """If a task of a rated lane was read and handed back, its token is still there."""
    queue.conf_set('lane:a', '1, -, 1/h')
    queue.add(dict(command='x', lane='a'))
    [token] = queue.block('w1')
    queue.finish('w1', token, 'release')
    assert len(queue.begin('w2')) == 1
    queue.add(dict(command='x', lane='a'))
    assert queue.begin('w2') == [] and queue.claim('w2', 1)['next_due'] > queue.now() + 3_000_000


@pytest.mark.parametrize('rate, wait_s', [
    ('1/s', 1), ('0.5/s', 2), ('1/m', 60), ('2/min', 30), ('1/h', 3600), ('4/d', 21600), ('1.5/h', 2400)])
def test_units_of_rates(queue, rate, wait_s):
    """The claim tells when the next task may start."""
    queue.conf_set('rate', rate)
    queue.add(*[{'command': 'x'}] * 2)
    reply = queue.claim('w1', 2)
    assert len(reply['tasks']) == 1 and reply['why'] == 'rate'
    assert -1 <= wait_s * 1000 - (reply['closed'] - reply['now']) <= 101


def test_a_burst_is_saved_up_again(queue):
    """After a while without tasks the whole burst is available again, and no more."""
    queue.conf_set('rate', '100/s')
    queue.conf_set('burst', 20)
    fill(queue, 100)
    assert 20 <= len(queue.begin('w1', 50)) <= 31
    now = queue.now()
    wait_until(lambda: queue.now() >= now + 350)
    assert 20 <= len(queue.begin('w1', 50)) <= 31


def test_a_claim_without_a_token_requeues_delivered_tasks(queue):
    """A delivered task that finds no token is not lost and not counted; a worker that is free when a token
    comes gets it."""
    queue.conf_set('rate', '1/h')
    queue.add(*[{'command': 'x'}] * 3)
    assert len(queue.begin('w1')) == 1
    tokens = queue.block('w2', 2)
    reply = queue.claim('w2', 0, named=tokens)
    assert reply['tasks'] == reply['held'] == [] and reply['why'] == 'rate'
    assert queue.status()['ready'] == 2 and queue.pending('w2') == []
    queue.conf_set('rate', '')
    tasks = queue.begin('w3', 5)
    assert len(tasks) == 2 and [task.attempt for task in tasks] == [1, 1]


@pytest.mark.parametrize('value', ['x', '20', '0/s', '-1/s', '20/x', '/s', '1e5/s', '20 / s'])
def test_an_invalid_rate_is_refused(queue, value):
    """An invalid rate is refused, and nothing is kept."""
    with pytest.raises(redis.ResponseError, match='BADARG rate cannot be set'):
        queue.conf_set('rate', value)
    assert 'rate' not in queue.conf_set()
