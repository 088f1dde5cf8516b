"""The functions of leat.lua as a worker, a producer or an operator calls them."""
import json

from .daemon import BUILD

LIBRARY = BUILD / 'leat.lua'
PROTOCOL = 1
PRODUCER_KEYS = 9
SCAN_START = 'g0-0'
MAX_FINISH = 100

# in the order of leat.lua
KEYS = ('stream', 'bell', 'waiting', 'delayed', 'names', 'conf', 'stats', 'lanes', 'laned',
        'go', 'running', 'dead', 'workers', 'cancel', 'awaited')


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def pairs(flat):
    """{name, value …} as a dict with text keys; the values stay bytes."""
    return {text(flat[i]): flat[i + 1] for i in range(0, len(flat), 2)}


def flat_fields(task):
    """A task, given as dict or as list of pairs, as a flat list."""
    items = task.items() if isinstance(task, dict) else task
    return [part for item in items for part in item]


class Task:
    """A claimed task."""

    def __init__(self, row):
        self.token, self.tid = text(row[0]), text(row[1])
        self.attempt, self.crashes, self.fence = row[2:5]
        self.enqueued = int(row[5])
        self.flat = row[6]
        self.fields = pairs(row[6])

    def __repr__(self):
        return f'Task({self.token}, tid {self.tid}, attempt {self.attempt}, crashes {self.crashes})'


class Queue:
    """Names the keys of one queue and calls its functions."""

    def __init__(self, client, stream='emails', group='leat'):
        self.redis, self.group = client, group
        tagged = '{' in stream and stream.index('{') + 1 < stream.find('}', stream.index('{'))
        prefix = stream if tagged else '{' + stream + '}'
        for name in KEYS:
            setattr(self, name, stream if name == 'stream' else f'{prefix}:{name}')
        self.keys = [getattr(self, name) for name in KEYS]
        self.history = f'{prefix}:history'

    # ---- the library

    def load(self, source=None):
        self.redis.execute_command('FUNCTION', 'LOAD', 'REPLACE', source or LIBRARY.read_text())
        return self

    def call(self, function, *args):
        """Calls any function, checks the protocol, and returns the rest of the reply."""
        count = PRODUCER_KEYS if function == 'enqueue' else len(self.keys)
        reply = self.redis.execute_command(
            'FCALL', 'leat_' + function, count, *self.keys[:count], *args)
        assert reply[0] == PROTOCOL, reply
        return reply[1:]

    def version(self):
        reply = self.redis.execute_command('FCALL', 'leat_version', 0)
        assert reply[0] == PROTOCOL
        return reply[1]

    # ---- producers

    def enqueue(self, *tasks, due=0):
        """Each task is a dict or a list of pairs; due is 0, '+MS' or unix ms, for all of them. Returns
        [(what, tid)]."""
        args = []
        for task in tasks:
            flat = flat_fields(task)
            args += [due, len(flat) // 2, *flat]
        reply = self.call('enqueue', *args)
        return [(text(reply[i]), text(reply[i + 1])) for i in range(0, len(reply), 2)]

    def program_add(self, *args, many=False):
        """leat_add or leat_add_many, as programs call them: with the stream alone. Returns [(what, tid)]."""
        reply = self.redis.execute_command('FCALL', 'leat_add_many' if many else 'leat_add', 1, self.stream, *args)
        return [(text(reply[i]), text(reply[i + 1])) for i in range(0, len(reply), 2)]

    def add(self, *tasks, **options):
        """Enqueues tasks that must be new; returns their tids."""
        answers = self.enqueue(*tasks, **options)
        assert all(what == 'new' for what, _ in answers), answers
        return [tid for _, tid in answers]

    # ---- workers

    def register(self, consumer, tokens=(), lease=60000, max_crashes=3, max_length=0, heartbeat='{}',
                 dead_keep=0, dead_keep_number=0, **seeds):
        """seeds: further names of conf, such as rate."""
        seeds = dict(lease_ms=lease, max_crashes=max_crashes, max_length=max_length,
                     dead_keep_ms=dead_keep, dead_keep_number=dead_keep_number, **seeds)
        flat = [part for pair in seeds.items() for part in pair]
        now, lease, lost, cancelled, more, bell, ruling, *joined = self.call(
            'register', self.group, consumer, heartbeat, len(seeds), *flat, *tokens)
        ruling = {name: text(value) for name, value in pairs(ruling).items()}
        return {'now': int(now), 'lease': lease, 'lost': [text(t) for t in lost],
                'cancelled': [text(t) for t in cancelled], 'ruling': ruling,
                'more': more, 'bell': text(bell), 'joined': int(joined[0]) if joined else 0,
                'kept': (int(ruling['dead_keep_ms']), int(ruling['dead_keep_number']))}

    def claim(self, consumer, wanted=1, busy=0, cursor='', named=()):
        now, lease, closed, why, due, cursor, tasks, held, buried, *more = self.call(
            'claim', self.group, consumer, wanted, busy, cursor, *named)
        return {'now': int(now), 'lease': lease, 'closed': int(closed), 'why': text(why),
                'next_due': int(due),
                'cursor': text(cursor), 'tasks': [Task(row) for row in tasks],
                'held': [text(token) for token in held],
                'buried': {text(tid): text(cause) for tid, cause in zip(buried[::2], buried[1::2])},
                'causes': {text(token): text(all) for token, all, *_ in more[0]} if more else {},
                'reasons': [text(reason) for reason in more[1]] if len(more) > 1 else []}

    def begin(self, consumer, wanted=1, busy=0):
        """The tasks of a claim."""
        return self.claim(consumer, wanted, busy)['tasks']

    def scan(self, consumer, wanted=0):
        """Follows the scan for expired leases for one round; returns the last claim and all tasks that were
        claimed on the way. If one of them runs alone, it asks for no more."""
        cursor, tasks = SCAN_START, []
        while cursor:
            more = 0 if any(task.crashes for task in tasks) else wanted - len(tasks)
            reply = self.claim(consumer, more, len(tasks), cursor)
            tasks += reply['tasks']
            cursor = reply['cursor']
        return reply, tasks

    def block(self, consumer, count=1, client=None):
        """Does what the worker's blocking read does, without the block; returns tokens."""
        client = client or self.redis
        reply = client.execute_command(
            'XREADGROUP', 'GROUP', self.group, consumer, 'COUNT', count, 'STREAMS', self.go,
            self.stream, '>', '>')
        kinds = {self.go: 'g', self.stream: 's'}
        return [kinds[text(key)] + text(entry[0]) for key, entries in reply or [] for entry in entries]

    def renew(self, consumer, tokens=(), heartbeat='{}'):
        now, lease, lost, cancelled, growth, *more = self.call('renew', self.group, consumer, heartbeat, *tokens)
        return {'now': int(now), 'lease': lease, 'lost': [text(token) for token in lost],
                'cancelled': [text(token) for token in cancelled], 'dead_growth': growth,
                'ended': [text(one) for one in more[0]] if more else []}

    @staticmethod
    def result(token, outcome='success', again=False, delay=0, duration=0, ttl=0, **texts):
        """The arguments of one attempt in finish; texts: cause, status, reason, stdout, stderr."""
        delays = outcome == 'retry' or outcome == 'release' and delay
        told = {**texts, 'duration_us': duration or '', 'again': '1' if again else '',
                'result_ttl_ms': ttl or '', 'delay_ms': delay if delays else ''}
        told = [(name, value) for name, value in told.items() if value != '']
        return [token, outcome, len(told), *(part for pair in told for part in pair)]

    def finish_many(self, consumer, results, records=()):
        """records: for the history, of each success."""
        args = [part for result in results for part in result]
        args += ['successes', b''.join(records)] if records else []
        return [text(state) for state in self.call('finish', self.group, consumer, *args)]

    def finish(self, consumer, task, outcome='success', **result):
        """Finishes one attempt, a Task or a token; returns its state."""
        token = getattr(task, 'token', task)
        records = [result.pop('history')] if outcome == 'success' and 'history' in result else []
        return self.finish_many(consumer, [self.result(token, outcome, **result)], records)[0]

    def requeue(self, consumer, died=False):
        """How many entries moved, and whether more are left."""
        return self.requeued(consumer, died)[:2]

    def requeued(self, consumer, died=False):
        """The same, whether the consumer was known, and {tid: cause} of tasks that ended."""
        moved, more, known, buried = self.call('requeue', self.group, consumer, int(died))
        return moved, more, bool(known), {
            text(tid): text(cause) for tid, cause in zip(buried[::2], buried[1::2])}

    def tell(self, wanted=10, wait=60000, done=()):
        """Dead letters for the hook: [{id, tid, …}], and the tids of those given up. done: '+ID', '-ID'."""
        letters, given_up = self.call('tell', wanted, wait, *done)
        names = ('cause', 'status', 'reason', 'attempts', 'worker', 'stderr')
        return [{'id': text(row[0]), 'tid': text(row[1]), 'fence': row[2], 'enqueued': int(row[3]),
                 'fields': pairs(row[5]), **dict(zip(names, row[4]))} for row in letters], [
                     text(tid) for tid in given_up]

    # ---- operators

    def conf_set(self, *args):
        return {name: text(value) for name, value in pairs(self.call('conf', *args)).items()}

    def dead_retry(self, *ids):
        return [text(state) for state in self.call('dead_retry', *ids)]

    def dead_drop(self, *ids):
        return [text(state) for state in self.call('dead_drop', *ids)]

    def call_off(self, *tasks, now=False):
        """leat_cancel. Each task is a tid, a label, or a pair (tid, token); returns a state for each."""
        pairs_of = [task if isinstance(task, tuple) else (task, '') for task in tasks]
        args = [part for pair in pairs_of for part in pair]
        return [text(state) for state in self.call('cancel', self.group, int(now), *args)]

    def change(self, *tasks, to=None, due='', fields=(), without=()):
        """leat_change: fields get these values, and those of `without` are removed. Tasks: as in call_off. to: the
        queue that they go to. Returns a state for each."""
        changes = [part for name, value in dict(fields).items() for part in ('+' + name, value)]
        changes += [part for name in without for part in ('-' + name, '')]
        pairs_of = [task if isinstance(task, tuple) else (task, '') for task in tasks]
        keys = self.keys + (to.keys if to else [])
        reply = self.redis.execute_command('FCALL', 'leat_change', len(keys), *keys, self.group, due,
                                           len(changes) // 2, *changes,
                                           *[part for pair in pairs_of for part in pair])
        assert reply[0] == PROTOCOL, reply
        return [text(state) for state in reply[1:]]

    def gate(self, name, close, *by):
        """Whether it was so already."""
        return bool(self.call('gate', name, int(close), *by)[0])

    def wakeups(self):
        """The reasons in the wakeup stream, oldest first, without the numbers of new workers."""
        reasons = [text(fields[1]) for _, fields in self.entries('bell')]
        return [reason for reason in reasons if not reason.startswith('joined')]

    def status(self):
        now, figures, workers, conf, busy, seen = self.call('status', self.group)
        return {'now': int(now), 'workers': pairs(workers), 'conf': pairs(conf), 'busy': pairs(busy),
                'figures': {name: text(value) for name, value in pairs(seen).items()},
                **{name: int(value) for name, value in pairs(figures).items()}}

    def lane_rows(self, limit=100):
        """{name: row of the lane}, page by page."""
        cursor, rows = '', {}
        while True:
            cursor, page = self.call('lanes', cursor, limit)
            rows.update({row['lane']: row for row in map(pairs, page)})
            if not cursor:
                return rows

    def list(self, what, limit=100):
        """All rows, page by page."""
        cursor = {'ready': 'g0-0', 'dead': '0-0', 'done': 'd+'}.get(what, '0')
        rows = []
        while cursor:
            cursor, page = self.call('list', self.group, what, cursor, limit)
            cursor = text(cursor)
            rows += [pairs(row) for row in page]
        return rows

    def show(self, tid):
        """{row, fields, history}, or None."""
        cursor = ''
        while True:
            reply = self.call('show', self.group, tid, cursor)
            if len(reply) > 1:
                return {'row': pairs(reply[1]), 'fields': reply[2], 'history': text(reply[3])}
            cursor = text(reply[0])
            if not cursor:
                return None

    # ---- reads of Redis without the functions

    def held(self):
        """The ids and unique keys that tasks hold: names without the index, and without the dead letters of tasks
        that never ran."""
        return {name: value for name, value in self.redis.hgetall(self.names).items()
                if not name.startswith((b't:', b'r:'))}

    def forget_index(self):
        """From now on, what is in the requeue stream and what is dead was put there by a library without an
        index."""
        self.redis.hdel(self.names, 't:', *[name for name in self.redis.hkeys(self.names) if name[:2] == b't:'])

    def index(self):
        """{tid: place} of the indexed tasks."""
        return {text(name)[2:]: text(value) for name, value in self.redis.hgetall(self.names).items()
                if name.startswith(b't:') and name != b't:'}

    def now(self):
        seconds, microseconds = self.redis.time()
        return seconds * 1000 + microseconds // 1000

    def entries(self, name):
        """[(id, flat fields)] of the stream, the requeue stream, dead letters or wakeups."""
        found = self.redis.execute_command('XRANGE', getattr(self, name), '-', '+')
        return [(text(id), fields) for id, fields in found]

    def letters(self):
        """Dead letters: [(id, dict of fields)]."""
        return [(id, pairs(fields)) for id, fields in self.entries('dead')]

    def pending(self, consumer=None):
        """Pending tokens, for one consumer or for all."""
        tokens = []
        for kind, key in (('g', self.go), ('s', self.stream)):
            rows = self.redis.execute_command(
                'XPENDING', key, self.group, '-', '+', 100000, *([consumer] if consumer else []))
            tokens += [kind + text(row[0]) for row in rows]
        return tokens

    def counter(self, name):
        return int(self.redis.hget(self.stats, name) or 0)

    def worker_heartbeats(self):
        heartbeats = self.redis.hgetall(self.workers)
        return {text(name): json.loads(text(heartbeat).split(' ', 1)[1]) for name, heartbeat in heartbeats.items()}

    def expire(self, *tokens):
        """Makes the leases of these entries, or of all pending ones, expire, by their idle time."""
        for token in tokens or self.pending():
            key = self.go if token[0] == 'g' else self.stream
            owner = self.redis.execute_command('XPENDING', key, self.group, token[1:], token[1:], 1)
            self.redis.execute_command(
                'XCLAIM', key, self.group, owner[0][1], 0, token[1:], 'IDLE', 10 ** 9, 'JUSTID')

    def places(self):
        """The places of tasks: {tid: [place …]}; a place is 'stream', 'go', 'waiting' or 'dead'."""
        found = {}
        for name in ('stream', 'go', 'dead'):
            for id, fields in self.entries(name):
                tid = trailer(fields).get('leat.tid', id) if name != 'stream' else id
                found.setdefault(tid, []).append(name)
        for tid in self.redis.hkeys(self.waiting):
            found.setdefault(text(tid), []).append('waiting')
        return found


def trailer(fields):
    """leat's own fields behind a task's, as text, or {}."""
    if len(fields) < 2 or fields[-2] != b'leat.fields':
        return {}
    own = fields[int(fields[-1]) * 2:]
    return {text(own[i]): own[i + 1].decode(errors='replace') for i in range(0, len(own), 2)}
