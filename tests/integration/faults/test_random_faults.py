"""Many tasks under random faults: nothing is lost, nothing is left, and only a kill makes a task run again.
tests/chaos has the full checker."""
import random

import pytest

from harness.polling import wait_until
from harness.short_leases import assert_apart, boot_s, is_empty, pass_time, wait_empty

pytestmark = pytest.mark.usefixtures('short_leases')

SEED = 1
TASKS, FAILING = 500, 50
FAULTS_S = 14
LEASE = '4s'  # on a busy machine a worker may stall for a second or two
CALM_LEASE = '12s'  # which no worker loses by a stall
CLOCK_S = 0.02  # resolution of /proc/uptime, which tasks can read without a process


class History:
    """The tasks' records: BEGIN or END, tid, fencing token, pid of the worker, time."""

    def __init__(self, path):
        self.path = path

    def task(self, seconds, fails_once):
        say = f'read now rest < /proc/uptime; echo %s $LEAT_TASK $LEAT_FENCE $LEAT_WORKER $now >> {self.path}; '
        line = say % 'BEGIN' + f'sleep {seconds:.3f}; '
        if fails_once:
            line += 'test $LEAT_ATTEMPT -gt 1 || exit 1; '
        return line + say % 'END'

    def read(self):
        """{tid: [(kind, fence, pid, seconds)]}, in order."""
        found = {}
        for line in self.path.read_text().split('\n')[:-1]:
            kind, tid, fence, worker, now = line.split(' ')
            pid = int(worker.split(':')[1])
            found.setdefault(tid, []).append((kind, int(fence), pid, float(now)))
        return found


def add_one(queue, number, task, randomly):
    """Adds a task in one of three ways. Returns its tid."""
    fields = {'command': task, 'NUMBER': number}
    if number % 3 == 0:
        return queue.redis.xadd(queue.stream, fields).decode()
    due = f'+{randomly.randrange(1500)}' if number % 3 == 1 else 0
    return queue.add(fields, due=due)[0]


def break_one(workers, ways, randomly):
    """Kills a worker, which is started again a little later, or cuts its connections. Returns the killed
    worker and the time: {pid: seconds}."""
    number = randomly.randrange(len(workers))
    if randomly.random() < 0.4:
        ways[number].cut(randomly.choice(['', 'work', 'command']))
        return {}
    killed = workers[number].pid
    when = boot_s()  # nothing that follows from it is earlier
    workers[number].kill9()
    pass_time(randomly.uniform(0, 0.5))
    workers[number].start()
    return {killed: when}


def assert_explained(history, failing, kills):
    """Every run of a task beyond the first follows its own failure, or the kill of the worker that started
    the previous run. (A process may write BEGIN some time after that.)"""
    for tid, events in history.items():
        begins = [(pid, now) for kind, _, pid, now in events if kind == 'BEGIN']
        unexplained = tid in failing
        for (pid, _), (_, later) in zip(begins, begins[1:]):
            if pid in kills and kills[pid] <= later + CLOCK_S:
                continue
            assert unexplained, f'{tid} ran again: {events}, kills: {kills}'
            unexplained = False


def test_many_tasks_under_faults(daemon, queue, proxy, second_proxy, folder):
    """500 tasks, 10 % of which fail once, run on two workers of four slots that are killed and cut off at
    random: in the end each has succeeded, nothing is left, and only kills explain further runs."""
    randomly = random.Random(SEED)
    history, ways = History(folder / 'history'), [proxy, second_proxy]
    sections = {'queue': {'concurrency': 4, 'max_crashes': 1000, 'lease': CALM_LEASE}}
    workers = [daemon({**sections, 'redis': {'socket': way.path}}).wait_ready() for way in ways]
    failing_numbers = set(randomly.sample(range(TASKS), FAILING))
    tids, kills = [], {}
    begun, next_fault = boot_s(), 1.0
    while (now := boot_s() - begun) < FAULTS_S or len(tids) < TASKS:
        while len(tids) < min(TASKS, TASKS * now / (FAULTS_S - 2)):
            task = history.task(randomly.uniform(0, 0.12), len(tids) in failing_numbers)
            tids.append(add_one(queue, len(tids), task, randomly))
        if now >= next_fault:
            kills.update(break_one(workers, ways, randomly))
            next_fault += randomly.uniform(0.5, 1.5)
        pass_time(0.02)

    wait_until(lambda: is_empty(queue), 90,
               lambda: f'{queue.status()}, {queue.places()}')
    found = history.read()
    assert set(found) == set(tids) and len(set(tids)) == TASKS
    assert all(any(kind == 'END' for kind, *_ in events) for events in found.values())
    assert queue.letters() == [] and queue.counter('succeeded') == TASKS
    assert_explained(found, {tids[number] for number in failing_numbers}, kills)
    for worker in workers:
        worker.terminate()
        assert worker.wait_exit() == 0
    wait_empty(queue)
    assert queue.redis.hlen(queue.workers) <= len(kills)


class Network:
    """Faults that kill no process. Each lasts for a while, and several may overlap."""

    def __init__(self, queue, server, ways, randomly):
        self.queue, self.server, self.ways, self.randomly = queue, server, ways, randomly
        self.healing = []  # (when, what to call)

    def begin(self):
        """Begins a fault; a fault of a worker's connection lasts up to more than a lease."""
        way = self.randomly.choice(self.ways)
        kind = self.randomly.choice(['cut', 'silent', 'deaf', 'dumb', 'refused', 'stopped', 'group'])
        lasts = self.randomly.uniform(0.1, 6)
        if any(end == way.heal or end == way.accept for _, end in self.healing):
            kind = 'cut'
        if kind == 'cut':
            way.cut(self.randomly.choice(['', 'work', 'command', 'wakeup']))
        elif kind in ('silent', 'deaf', 'dumb'):
            way.silence(to_server=kind != 'deaf', to_client=kind != 'dumb')
            self.healing.append((boot_s() + lasts, way.heal))
        elif kind == 'refused':
            way.refuse()
            self.healing.append((boot_s() + lasts, way.accept))
        elif kind == 'stopped':
            self.server.stop()
            pass_time(self.randomly.uniform(0.1, 1.5))
            self.server.cont()
        else:
            self.queue.redis.execute_command('XGROUP', 'DESTROY', self.queue.stream, 'leat')

    def heal(self, everything=False):
        for item in list(self.healing):
            if everything or item[0] <= boot_s():
                self.healing.remove(item)
                item[1]()


def test_two_runs_never_overlap(daemon, queue, redis_server, proxy, second_proxy, heartbeats):
    """100 tasks of up to 5 s run on two workers whose connections fail in every way, while the group is
    destroyed at times: no two runs of a task overlap, fencing tokens grow, no attempt is used up, each task
    succeeds and nothing is left."""
    randomly, ways = random.Random(SEED), [proxy, second_proxy]
    sections = {'queue': {'concurrency': 6, 'max_crashes': 1000, 'lease': LEASE}}
    workers = [daemon({**sections, 'redis': {'socket': way.path}}).wait_ready() for way in ways]
    network = Network(queue, redis_server, ways, randomly)
    tids, tasks, begun, next_fault = [], 100, boot_s(), 0.5
    while (now := boot_s() - begun) < FAULTS_S or len(tids) < tasks:
        while len(tids) < min(tasks, tasks * now / (FAULTS_S - 2)):
            length = randomly.choice([0.02, 0.1, 0.3, 1, randomly.uniform(1, 5)])
            line = heartbeats.task(f'{length:.2f}', stubborn=randomly.random() < 0.5)
            tids.append(add_one(queue, len(tids), line, randomly))
        if now >= next_fault:
            network.begin()
            next_fault += randomly.uniform(0.3, 1.5)
        network.heal()
        pass_time(0.02)

    network.heal(everything=True)
    wait_until(lambda: is_empty(queue), 120,
               lambda: f'{queue.status()}, {queue.places()}')
    runs = heartbeats.runs()
    assert {run.tid for run in runs} == set(tids) and queue.letters() == []
    for tid in tids:
        mine = [run for run in runs if run.tid == tid]
        assert_apart(mine)
        assert mine[-1].ended and {run.attempt for run in mine} == {1}
        assert [run.fence for run in mine] == sorted({run.fence for run in mine}), mine
    assert queue.counter('succeeded') == len(tids)
    assert all(worker.running() for worker in workers)
