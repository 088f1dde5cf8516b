"""The tasks of a run, and the producer that enqueues them while Redis comes and goes."""
import contextlib
import time
import zlib

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from harness.polling import wait_until

KEYS, LANES = 8, 5
ALWAYS = 1000          # this many attempts fail
PERMANENT = 100        # an exit code that is not retried
KILLER_EVERY_S = 20.0
PAYLOAD = 40           # maximum bytes, of all but the large ones
LARGE_EVERY_S = 5.0
MIB = 2 ** 20
AHEAD_MS = 3000        # an id that a producer chooses can be so far ahead of the clock
# what resident processes do wrong, see handler.c
HABITS = ('leave', 'die', 'hang', 'stubborn', 'stop', 'lie', 'tear', 'babble', 'overflow', 'shut-out', 'shut-in',
          'deaf', 'flood', 'stray', 'part')
HABITUAL = 0.025  # share of tasks
FREQUENT, FREQUENTLY = ('twice', 'doze'), 0.08  # these cost little, so there may be many of them
TOO_LONG = 'k' * 2000  # a unique key that no task may have


def mark(payload):
    """The part of a payload that the history keeps, in hex."""
    return payload if len(payload) <= 2 * PAYLOAD else f'{len(payload)} bytes, {zlib.crc32(payload.encode()):08x}'


class Task:
    """A task, and how it is enqueued."""

    def __init__(self, n, randomly):
        self.n, draw = n, randomly.random()
        self.ms = randomly.randrange(50) if draw < 0.92 else (
            randomly.randrange(200, 1000) if draw < 0.99 else randomly.randrange(3000, 5000))
        draw = randomly.random()
        self.fails = 1 if draw < 0.10 else ALWAYS if draw < 0.13 else 0
        self.code = randomly.choice([1, 2, PERMANENT]) if self.fails == ALWAYS else 1
        self.left = randomly.randrange(50, 3000) if randomly.random() < 0.02 else 0
        self.kills = 0
        self.key = f'key-{randomly.randrange(KEYS)}' if randomly.random() < 0.10 else ''
        self.lane = f'lane-{randomly.randrange(LANES)}' if randomly.random() < 0.20 else ''
        self.due = f'+{randomly.randrange(2000)}' if randomly.random() < 0.10 else 0
        # like a producer that does not know the functions
        self.plain = not (self.key or self.lane or self.due) and randomly.random() < 0.5
        self.payload = randomly.randbytes(randomly.randrange(PAYLOAD)).hex()
        # of the plain ones: some have ids that the producer chose, and some may not start
        self.own_id = self.plain and randomly.random() < 0.05
        self.is_bad = self.plain and randomly.random() < 0.01
        self.habit = ''

    def misbehave(self, randomly):
        """As a task of a resident process, which ends with all its descendants."""
        self.left = 0
        draw = randomly.random()
        if draw < HABITUAL + FREQUENTLY and not self.kills:
            self.habit, self.fails = randomly.choice(HABITS if draw < HABITUAL else FREQUENT), 0

    def enlarge(self, randomly, most):
        """Makes it of 1 to this many MiB, mostly near the least."""
        size = int(MIB * most ** (randomly.random() ** 3))
        self.payload = f'{self.n:08x}' * (size // 8)

    def fields(self):
        fields = {'N': self.n, 'MS': self.ms, 'FAILS': self.fails, 'CODE': self.code, 'LEFT': self.left,
                  'KILLS': self.kills, 'payload': self.payload}
        unique = TOO_LONG if self.is_bad else self.key
        fields.update({name: value for name, value in (
            ('unique', unique), ('lane', self.lane), ('HABIT', self.habit)) if value})
        return fields


class Producer:
    """Enqueues `rate` tasks a second, sometimes cancels one, and sometimes pauses the queue."""

    CANCEL, PAUSE = 0.01, 0.002  # chances that one follows a task
    PAUSE_S = 0.5

    def __init__(self, queue, writer, randomly, rate, large, resident=False):
        """large: MiB of the largest task. resident: resident processes run the tasks."""
        self.queue, self._writer, self._randomly, self._rate = queue, writer, randomly, rate
        self._large, self.resident = large, resident
        self.count = self.taken = 0
        self._killer_at, self._large_at, self._paused_until = 5.0, LARGE_EVERY_S, None
        self._recent, self._forgets, self._last_ms = [], 0, 0

    @staticmethod
    def connect(server):
        """A client that sends everything once and notices soon that there is no answer."""
        return server.client(socket_timeout=0.5, socket_connect_timeout=0.5, retry=Retry(NoBackoff(), 0))

    def turn(self, elapsed, forgets):
        """Does everything that is due by now. forgets: how often Redis has forgotten something, such as the end of
        a pause."""
        if forgets != self._forgets:
            self._forgets, self._paused_until = forgets, elapsed
        self._resume(elapsed)
        for _ in range(20):
            if self.count >= elapsed * self._rate:
                break
            task = Task(self.count, self._randomly)
            self.count += 1
            if elapsed >= self._killer_at:
                self._killer_at += KILLER_EVERY_S
                task.kills, task.fails, task.key, task.left = 1, 0, '', 0
                task.ms, task.own_id, task.is_bad = max(task.ms, 200), False, False
            elif elapsed >= self._large_at:
                self._large_at += LARGE_EVERY_S
                task.enlarge(self._randomly, self._large)
            if self.resident:
                task.misbehave(self._randomly)
            if not self._put(task):
                break
            if self._randomly.random() < self.CANCEL and self._recent:
                self._cancel(*self._randomly.choice(self._recent))
            if self._randomly.random() < self.PAUSE and self._paused_until is None:
                self._gate(True, elapsed)

    def _put(self, task):
        """Returns False if there is no answer."""
        self._writer.say('invoke', n=task.n, payload=mark(task.payload), fails=task.fails, code=task.code,
                         kills=task.kills, key=task.key, bad=task.is_bad)
        try:
            if task.plain:
                what = 'new'
                tid = self.queue.redis.xadd(self.queue.stream, task.fields(), id=self._id(task)).decode()
                self._last_ms = int(tid.split('-')[0])
            else:
                what, tid = self.queue.enqueue(task.fields(), due=task.due)[0]
        except redis.exceptions.BusyLoadingError:
            self._writer.say('fail', n=task.n, why='loading')
        except redis.exceptions.ResponseError as error:
            self._writer.say('fail', n=task.n, why=str(error)[:80])
        except redis.exceptions.RedisError as error:
            self._writer.say('info', n=task.n, why=str(error)[:80])
            return False
        else:
            self._writer.say('ok', n=task.n, what=what, tid=tid)
            if what == 'new':
                self.taken += 1
                self._recent = self._recent[-20:] + [(task.n, tid)]
        return True

    def _id(self, task):
        """'*', or an id of the same ms as the last one, or of one ahead of the clock."""
        if not task.own_id or not self._last_ms:
            return '*'
        ahead = int(time.time() * 1000) + self._randomly.randrange(AHEAD_MS)
        return f'{max(self._last_ms, self._randomly.choice([0, ahead]))}-*'

    def _cancel(self, n, tid):
        self._writer.say('cancel', n=n, tid=tid)
        try:
            state = self.queue.call_off(tid, now=self._randomly.random() < 0.5)[0]
        except redis.exceptions.RedisError as error:
            state = 'unknown: ' + str(error)[:80]
        self._writer.say('cancelled', n=n, state=state)

    def _gate(self, close, elapsed):
        # without an answer the queue may be paused
        self._paused_until = elapsed + self.PAUSE_S
        self._writer.say('gate', closes=close)
        with contextlib.suppress(redis.exceptions.RedisError):
            self.queue.gate('paused', close, 'chaos')
            self._paused_until = self._paused_until if close else None

    def _resume(self, elapsed):
        if self._paused_until is not None and elapsed >= self._paused_until:
            self._gate(False, elapsed)

    def stop(self):
        """Resumes the queue; Redis works again, and a worker is about to load the library if necessary."""
        wait_until(self._opened, message='the queue is open')

    def _opened(self):
        with contextlib.suppress(redis.exceptions.RedisError):
            self.queue.gate('paused', False, 'chaos')
            return True
        return False
