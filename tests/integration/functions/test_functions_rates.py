"""Rates of the queue and of lanes: exact over all workers, and nobody asks before something can start."""
import time
from collections import Counter

import pytest
import redis

from harness.functions import invariants
from harness.polling import wait_until

WORKERS = ('w1', 'w2', 'w3')


@pytest.fixture(autouse=True)
def worker(queue):
    for name in WORKERS:
        queue.register(name)
    yield
    invariants.check(queue)


class Drive:
    """Workers with four slots each and tasks that take no time: each claims when it starts, when something has
    ended, and at the time that its last claim told; never else."""

    def __init__(self, queue, workers=WORKERS):
        self.queue, self.ask = queue, {name: 0 for name in workers}
        self.starts, self.claims = [], 0
        self.slept_s = 0  # so long in all nobody asked when it was time, since the machine was busy

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
    """The burst at once, then the rate, to 5 %. A start may come late by 0.1 s and loses nothing by it, so that as
    much comes on top of the burst."""
    late = rate * 0.1
    first = min(at for at, of in drive.starts if lane in (None, of))
    assert drive.within(first, first + 1, lane) <= burst + late + 1
    whole = drive.within(first + 500, first + 500 + seconds * 1000, lane)
    assert whole <= 1.05 * rate * seconds + 1, whole
    assert whole >= rate * (0.95 * seconds - drive.slept_s) - 1, (whole, drive.slept_s)
    assert drive.within(first, first + seconds * 1000, lane) <= burst + late + rate * seconds * 1.05 + 1


@pytest.mark.parametrize('rate, burst', [('20/s', 40), ('1200/m', 1), ('200/s', 10)])
def test_the_queues_rate(queue, rate, burst):
    """Three workers, a backlog of plain tasks: the burst, then exactly so many; and no claim in vain but for those
    of the workers that were not quick enough for a token."""
    queue.conf_set('rate', rate)
    queue.conf_set('burst', burst)
    fill(queue, 1500)
    drive = Drive(queue).run(4)
    assert_rate(drive, 3, 200 if rate == '200/s' else 20, burst)
    assert drive.claims <= len(WORKERS) * (len(drive.starts) + 3)


@pytest.mark.parametrize('gone', [0, 20])
def test_many_workers_do_not_all_ask_at_each_token(queue, gone):
    """Thirty that wait: a few ask for each token, not all, and none is lost; also where most of them fall silent
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


def test_a_worker_without_room_is_not_counted_on(queue):
    """Who has begun all that it asked for is told of the next token; who waits with room has that one, too."""
    queue.conf_set('rate', '5/s')
    fill(queue, 20)
    full = queue.claim('w1', 1)
    assert len(full['tasks']) == 1
    replies = [queue.claim('w2', 1) for _ in range(4)]
    assert [reply['why'] for reply in replies] == ['rate'] * 4
    times = [round((reply['closed'] - full['closed']) / 200) for reply in replies]
    assert times == [0, 0, 0, 1] and queue.claim('w1', 0)['closed'] == full['closed']


def test_a_rate_counts_tasks_of_every_way(queue):
    """Of lanes, plain ones and retried ones together."""
    queue.conf_set('rate', '50/s')
    fill(queue, 100)
    fill(queue, 100, lane='a')
    for task in queue.begin('w1', 1):
        queue.finish('w1', task, 'retry', delay=0)
    drive = Drive(queue).run(3)
    first = drive.starts[0][0] + 500
    whole = drive.within(first, first + 2000)
    assert 95 - 50 * drive.slept_s <= whole <= 105, (whole, drive.slept_s)
    counts = Counter(lane for _, lane in drive.starts)
    assert abs(counts['a'] - counts['']) <= 3


@pytest.mark.parametrize('how', ['function', 'XADD'])
def test_rates_of_lanes(queue, how):
    """Each its own, over all workers; a lane without one takes what it gets."""
    queue.conf_set('lane:slow', '1, -, 20/s, 5')
    queue.conf_set('lane:fast', '1, -, 100/s')
    for lane, count in (('slow', 200), ('fast', 500), ('free', 300)):
        if how == 'function':
            fill(queue, count, lane=lane)
        else:
            queue.redis.eval(
                "for i = 1, ARGV[2] do redis.call('XADD', KEYS[1], '*', 'command', 'x', 'lane', ARGV[1]) end",
                1, queue.stream, lane, count)
    drive = Drive(queue).run(4)
    assert_rate(drive, 3, 20, 5, 'slow')
    assert_rate(drive, 3, 100, 1, 'fast')
    assert Counter(lane for _, lane in drive.starts)['free'] == 300


def test_a_lane_with_rate_and_cap(queue):
    """Both hold: the cap while tasks run, the rate when they end."""
    queue.conf_set('lane:a', '1, 2, 1000/s, 100')
    fill(queue, 10, lane='a')
    tasks = queue.begin('w1', 10)
    assert len(tasks) == 2
    queue.conf_set('lane:a', '1, 2, 1/h, 1')
    for task in tasks:
        queue.finish('w1', task)
    assert sum(len(queue.begin('w1', 10)) for _ in range(3)) == 1


def test_what_never_began_took_no_token(queue):
    """A task of a rated lane that was read and handed back: its token is still there."""
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
    """The claim tells when the next may start."""
    queue.conf_set('rate', rate)
    queue.add(*[{'command': 'x'}] * 2)
    reply = queue.claim('w1', 2)
    assert len(reply['tasks']) == 1 and reply['why'] == 'rate'
    assert -1 <= wait_s * 1000 - (reply['closed'] - reply['now']) <= 101


def test_a_burst_is_saved_up_again(queue):
    """After a while without tasks the whole burst is there, and no more than that."""
    queue.conf_set('rate', '100/s')
    queue.conf_set('burst', 20)
    fill(queue, 100)
    assert 20 <= len(queue.begin('w1', 50)) <= 31
    now = queue.now()
    wait_until(lambda: queue.now() >= now + 350)
    assert 20 <= len(queue.begin('w1', 50)) <= 31


def test_a_closed_gate_hands_back_what_a_read_brought(queue):
    """Nothing is lost, nothing counted; a worker that is free when a token is there gets it."""
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
def test_what_is_no_rate_is_refused(queue, value):
    """Nothing of it is kept."""
    with pytest.raises(redis.ResponseError, match='BADARG rate cannot be set'):
        queue.conf_set('rate', value)
    assert 'rate' not in queue.conf_set()
