"""A seeded random walk over all functions: after each step, every invariant of leat.lua holds."""
import random

import pytest

from harness.functions import invariants

WORKERS = ('w1', 'w2', 'w3')
KEYS = ('k1', 'k2', 'k\0\n3')
LANES = ('', 'plain', 'one', 'three', 'urgent')
LANE_SPECS = {
    'one': ('1, 1', '2, 1', '', '1, 2'), 'three': ('0.5, 3', 'strict, 3', '5, 3'),
    'plain': ('', '3', '1, -, 1000/s, 5', 'strict'), 'urgent': ('strict', '1', ''),
}
STEPS = 2000


class Walk:
    """A queue, the tasks that each worker believes it runs, and the steps that anyone may take."""

    def __init__(self, queue, seed):
        self.queue, self.random = queue, random.Random(seed)
        self.begun = {name: {} for name in WORKERS}  # token → Task
        self.read = {name: [] for name in WORKERS}  # tokens that a blocking read delivered
        self.stale = []  # (worker, token): may be in any state by now
        self.numbers, self.asked = 0, set()
        for name in WORKERS:
            queue.register(name, max_crashes=2)
        for lane, specs in LANE_SPECS.items():
            queue.conf_set('lane:' + lane, specs[0])
        self.steps = [
            (30, self.enqueue), (8, self.xadd), (30, self.claim), (8, self.block), (30, self.finish),
            (4, self.finish_stale), (5, self.expire), (2, self.register), (2, self.requeue), (6, self.cancel),
            (4, self.dead_retry), (2, self.dead_drop), (5, self.come_due), (2, self.conf), (2, self.pause),
            (2, self.vanish), (5, self.renew),
        ]

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, share):
        return self.random.random() < share

    def task(self):
        self.numbers += 1
        fields = {'command': str(self.numbers), 'lane': self.pick(*LANES)}
        if self.chance(0.5):
            fields['unique'] = self.pick(*KEYS)
            fields['unique_next'] = self.pick('', '0', '1', '1')
            fields['unique_for'] = self.pick('', '', '1h')
        if self.chance(0.2):
            fields['id'] = self.pick('i1', 'i2')
        if self.chance(0.05):
            fields['expires'] = '1'
        return {name: value for name, value in fields.items() if value}

    # ---- producers

    def enqueue(self):
        tasks = [self.task() for _ in range(self.pick(1, 1, 1, 2, 5))]
        due = self.pick(0, 0, 0, '+60000', '+1')
        if any('expires' in task for task in tasks):
            due = 0  # otherwise it is refused
        answers = self.queue.enqueue(*tasks, due=due)
        self.asked.update(tid for what, tid in answers if what == 'new')

    def xadd(self):
        self.queue.redis.xadd(self.queue.stream, self.task())

    # ---- workers

    def claim(self):
        """Claims as a worker does: it names the tokens that its read delivered, and obeys the claim check."""
        worker = self.pick(*WORKERS)
        reply = self.queue.claim(worker, self.pick(0, 1, 1, 2, 8), len(self.begun[worker]), '', self.read[worker])
        self.begun[worker].update({task.token: task for task in reply['tasks']})
        self.read[worker] = reply['held']
        if reply['held'] and self.chance(0.5):
            self.queue.finish(worker, self.read[worker].pop(), 'release')

    def block(self):
        worker = self.pick(*WORKERS)
        self.read[worker] += self.queue.block(worker, self.pick(1, 3))

    def finish(self):
        worker = self.pick(*WORKERS)
        if not self.begun[worker]:
            return
        results = []
        number = min(len(self.begun[worker]), self.pick(1, 1, 3))
        for token in self.random.sample(sorted(self.begun[worker]), number):
            outcome = self.pick('success', 'success', 'success', 'retry', 'dead', 'release', 'cancelled')
            results.append(self.queue.result(token, outcome, delay=self.pick(0, 60000)))
            del self.begun[worker][token]
            if self.chance(0.2):
                self.stale.append((worker, token))
        self.queue.finish_many(worker, results)

    def finish_stale(self):
        """An outcome that is sent again, or late."""
        if self.stale:
            worker, token = self.random.choice(self.stale)
            self.queue.finish(worker, token, self.pick('success', 'success', 'retry', 'dead'))
            self.begun[worker].pop(token, None)

    def lose(self, worker):
        self.stale += [(worker, token) for token in self.begun[worker]]
        self.begun[worker], self.read[worker] = {}, []

    def expire(self):
        """A worker stays silent for longer than its lease, and another one scans."""
        worker, other = self.random.sample(WORKERS, 2)
        self.queue.expire(*self.queue.pending(worker))
        self.lose(worker)
        _, tasks = self.queue.scan(other, self.pick(0, 1))
        self.begun[other].update({task.token: task for task in tasks})

    def register(self):
        worker = self.pick(*WORKERS)
        named = [token for token in self.begun[worker] if self.chance(0.7)]
        tasks = self.begun[worker]
        self.lose(worker)
        reply = self.queue.register(worker, named)
        self.begun[worker] = {token: tasks[token] for token in named if token not in reply['lost']}

    def requeue(self):
        worker = self.pick(*WORKERS)
        self.lose(worker)
        self.queue.requeue(worker, died=self.chance(0.7))
        self.queue.register(worker)

    def renew(self):
        worker = self.pick(*WORKERS)
        tokens = list(self.begun[worker]) + self.read[worker]
        reply = self.queue.renew(worker, tokens)
        for token in reply['lost']:
            self.begun[worker].pop(token, None)
        self.read[worker] = [token for token in self.read[worker] if token not in reply['lost']]

    def vanish(self):
        """A running entry is deleted by hand, and a renewal settles it."""
        worker = self.pick(*WORKERS)
        if self.begun[worker]:
            token = self.random.choice(sorted(self.begun[worker]))
            self.queue.redis.xdel(self.queue.go if token[0] == 'g' else self.queue.stream, token[1:])
            assert token in self.queue.renew(worker, [token])['lost'] + [
                one for one in [token] if one not in self.queue.pending()]
            del self.begun[worker][token]

    # ---- operators and time

    def cancel(self):
        tasks = invariants.Snapshot(self.queue).tasks
        if tasks:
            task = self.random.choice(tasks)
            token = task.place if task.place[0] in 'sg' else ''
            self.queue.call('cancel', self.queue.group, self.pick(0, 1), task.tid, token)

    def dead_retry(self):
        ids = [id for id, _ in self.queue.letters()]
        self.queue.dead_retry(*self.random.sample(ids, min(len(ids), self.pick(1, 2))))

    def dead_drop(self):
        ids = [id for id, _ in self.queue.letters()]
        self.queue.dead_drop(*self.random.sample(ids, min(len(ids), 1)))

    def conf(self):
        lane = self.pick(*LANE_SPECS)
        self.queue.conf_set('lane:' + lane, self.pick(*LANE_SPECS[lane]))

    def pause(self):
        self.queue.call('gate', 'paused', 1)
        self.claim()
        self.queue.call('gate', 'paused', 0)

    def come_due(self):
        """Some delayed tasks become due."""
        redis = self.queue.redis
        members = redis.zrangebyscore(self.queue.delayed, 0, '+inf')
        for member in self.random.sample(members, min(len(members), self.pick(1, 5))):
            redis.zadd(self.queue.delayed, {member: 1})
            if member[:2] == b'u:':
                value = redis.hget(self.queue.names, member)
                if value and value[:1] == b'@':
                    redis.hset(self.queue.names, member, b'@1 ' + value.split(b' ')[1])
        if members:
            self.queue.redis.xadd(self.queue.bell, {'why': 'due'})
            self.claim()

    # ---- the whole walk

    def step(self):
        weights = [weight for weight, _ in self.steps]
        [(_, step)] = self.random.choices(self.steps, weights)
        step()
        return step.__name__

    def drain(self):
        """Nothing is added, nothing fails, and every task ends."""
        for worker in WORKERS:
            self.lose(worker)
        for _ in range(100):
            self.queue.register('w9', max_crashes=9)
            redis = self.queue.redis
            for member in redis.zrange(self.queue.delayed, 0, -1):
                redis.zadd(self.queue.delayed, {member: 1})
                if member[:2] == b'u:':
                    redis.hdel(self.queue.names, member) if (
                        redis.hget(self.queue.names, member) or b'').startswith(b'@') else None
            self.queue.expire()
            redis.hdel(self.queue.stats, 'swept')
            self.queue.scan('w9')
            while True:
                tasks = self.queue.begin('w9', 20)
                if not tasks:
                    break
                for task in tasks:
                    assert self.queue.finish('w9', task) == 'ok'
                invariants.check(self.queue)
            if not invariants.Snapshot(self.queue).tasks:
                return
        raise AssertionError(invariants.check(self.queue).tasks)


@pytest.mark.parametrize('seed', [2, 12])
def test_everything_holds_after_each_step(queue, seed):
    """After 2,000 steps over three keys and four lanes, all tasks run to their end, and nothing is left."""
    walk = Walk(queue, seed)
    for number in range(STEPS):
        name = walk.step()
        try:
            invariants.check(queue, walk.asked)
        except AssertionError as error:
            raise AssertionError(f'seed {seed}, step {number}, {name}: {error}') from error
    walk.drain()
    assert [name for name, value in queue.held().items() if value[:1] != b'@'] == []
    assert [name for name in queue.redis.hkeys(queue.stats) if name[:2] == b'r:'] == []
    assert queue.redis.hgetall(queue.running) == {} and queue.redis.zcard(queue.laned) == 0
