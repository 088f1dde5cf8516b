"""The invariants of a queue's keys after every call of a function, as the heads of leat.lua's parts promise
them: each task is in one place; names, lanes, records and times agree; a task that may start wakes a worker."""
from ..queue import pairs, text, trailer

# everything at one moment; packed values come as flat lists
SNAPSHOT = '''
local function unpacked(packed)
  local flat = {}
  for name, value in pairs(packed ~= '' and cmsgpack.unpack(packed) or {}) do
    flat[#flat + 1] = name
    flat[#flat + 1] = value
  end
  return flat
end
local waiting, running = {}, {}
local all = redis.call('HGETALL', KEYS[3])
for i = 1, #all, 2 do
  waiting[#waiting + 1] = { all[i], cmsgpack.unpack(all[i + 1]) }
end
all = redis.call('HGETALL', KEYS[11])
for i = 1, #all, 2 do
  local state, consumer, begun, attempt, fence, tid, moved, bound =
    all[i + 1]:match('^(.)(.-)%z(%d+) (%d+) (%d+) (%S+) (%S+) (.*)$')
  running[#running + 1] = { all[i], state, consumer, tid, moved, unpacked(bound) }
end
local pending, last = {}, {}
for kind, key in pairs({ s = KEYS[1], g = KEYS[10] }) do
  last[#last + 1] = kind
  last[#last + 1] = '0-0'
  if redis.call('EXISTS', key) == 1 then
    for _, info in ipairs(redis.call('XINFO', 'GROUPS', key)) do
      last[#last] = info[8]
      for _, row in ipairs(redis.call('XPENDING', key, info[2], '-', '+', 100000)) do
        pending[#pending + 1] = kind .. row[1]
      end
    end
  end
end
local time = redis.call('TIME')
return {
  redis.call('XRANGE', KEYS[1], '-', '+'), redis.call('XRANGE', KEYS[10], '-', '+'), waiting,
  redis.call('ZRANGE', KEYS[4], '0', '-1', 'WITHSCORES'), redis.call('HGETALL', KEYS[5]),
  redis.call('ZRANGE', KEYS[8], '0', '-1'), redis.call('ZRANGE', KEYS[9], '0', '-1'), running,
  redis.call('HGETALL', KEYS[7]), redis.call('HGETALL', KEYS[6]), redis.call('XRANGE', KEYS[12], '-', '+'),
  pending, last, time[1] * 1000 + math.floor(time[2] / 1000),
}
'''


def id_of(value):
    return tuple(int(part) for part in text(value).split('-'))


class Live:
    """A task that has not ended: its place and its fields."""

    def __init__(self, tid, place, fields):
        self.tid, self.place, self.fields = tid, place, fields

    def get(self, name):
        return self.fields.get(name, b'')

    def __repr__(self):
        return f'Live({self.tid} in {self.place}, {self.fields})'


class Snapshot:
    """A queue's keys, read at one moment."""

    def __init__(self, queue):
        (stream, go, waiting, delayed, names, lanes, laned, running, stats, conf, dead, pending, last,
         now) = queue.redis.eval(SNAPSHOT, len(queue.keys), *queue.keys)
        self.now = now
        self.tasks = []
        for id, fields in stream:
            self.tasks.append(Live(text(id), 's' + text(id), pairs(fields)))
        for id, fields in go:
            self.tasks.append(Live(trailer(fields)['leat.tid'], 'g' + text(id), pairs(fields)))
        for tid, fields in waiting:
            self.tasks.append(Live(text(tid), 'w' + text(tid), pairs(fields)))
        self.dead = [trailer(fields)['leat.tid'] for _, fields in dead]
        self.letters = {'d' + text(id) for id, _ in dead}
        self.delayed = {member: float(score) for member, score in zip(delayed[::2], delayed[1::2])}
        names = dict(zip(names[::2], names[1::2]))
        self.names = {name: value for name, value in names.items() if name[:2] not in (b't:', b'r:')}
        self.index = {text(name)[2:]: text(value) for name, value in names.items() if name[:2] == b't:'}
        self.is_indexed = self.index.pop('', '') == 'done'
        self.lanes = set(lanes)
        # lane, NUL, 20 digits, '-', 20 digits
        self.laned = {}
        for member in laned:
            assert member[-42:-41] == b'\0', member
            ms, sequence = text(member[-41:]).split('-')
            self.laned[f'{int(ms)}-{int(sequence)}'] = member[:-42]
        self.running = {text(token): (text(state), text(consumer), text(tid), text(moved), pairs(bound))
                        for token, state, consumer, tid, moved, bound in running}
        self.stats, self.conf = dict(zip(stats[::2], stats[1::2])), pairs(conf)
        # lanes without settings count as none
        self.has_unlaned = self.conf.get('lanes_only') == b'named'
        self.pending = {text(token) for token in pending}
        self.last = {text(kind): id_of(id) for kind, id in zip(last[::2], last[1::2])}
        self.live = {task.tid: task for task in self.tasks}

    # ---- lanes

    def spec(self, lane):
        own = self.conf.get('lane:' + lane.decode('latin-1')) or (lane and self.conf.get('lane:*'))
        parts = (own or b'').decode().split(',')
        parts = [part.strip() for part in parts]
        return dict(zip(('weight', 'most', 'rate', 'burst'), parts))

    def runs(self, lane):
        return int(self.stats.get(b'r:' + lane, 0))

    def is_capped(self, lane):
        most = self.spec(lane).get('most', '')
        return most not in ('', '-') and self.runs(lane) >= int(most)

    def unread(self):
        """Entries that no worker has read."""
        return [task for task in self.tasks
                if task.place[0] in 'sg' and id_of(task.place[1:]) > self.last[task.place[0]]]

    # ---- checks

    def one_place_each(self):
        tids = [task.tid for task in self.tasks]
        assert len(set(tids)) == len(tids), sorted(tids)
        assert not set(tids) & set(self.dead), set(tids) & set(self.dead)

    def records(self):
        places = {task.place: task for task in self.tasks}
        for token, (state, _, tid, moved, bound) in self.running.items():
            if state == 'm':
                assert moved in places and places[moved].tid == tid, (token, moved)
                continue
            assert token in places and places[token].tid == tid, (token, tid)
            assert token in self.pending, token
            for name in ('id', 'unique', 'unique_for', 'lane'):
                value = bound.get(name, b'')
                unlaned = name == 'lane' and self.has_unlaned and not value
                assert unlaned or value == places[token].get(name), (token, name, bound)

    def held_names(self):
        """Returns the follow-ups: tid → key. A task whose entry was deleted by hand lives in its record."""
        follows = {}
        vanished = {record[2] for record in self.running.values()} - set(self.live)
        for name, value in self.names.items():
            kind, key = name[:2], name[2:]
            if kind == b'n:':
                tid = text(value.split(b' ')[0])
                follows[tid] = key
                task = self.live.get(tid)
                assert task and task.place[0] == 'w' and task.get('unique') == key, (name, value, task)
                assert tid.encode() not in self.delayed and tid not in self.laned, (name, value)
                assert not self.names[b'u:' + key].startswith(b'@'), self.names
            elif kind == b'i:':
                task = self.live.get(text(value))
                assert text(value) in vanished or task and task.get('id') == key, (name, value, task)
            elif value.startswith(b'@'):
                assert b'u:' + key in self.delayed, (name, value)
            else:
                tid, _, token = text(value).partition(' ')
                task = self.live.get(tid)
                assert tid in vanished or task and task.get('unique') == key, (name, value, task)
                record = self.running.get(token)
                assert not token or record and record[0] == 'b' and record[2] == tid, (name, value)
        return follows

    def indexed(self):
        """The index has each task of the requeue stream and each dead letter, and no other place. An entry
        that was deleted by hand may be left in it, if nothing tells whose entry it was."""
        places = {task.tid: task.place for task in self.tasks if task.place[0] == 'g'}
        assert {tid: self.index.get(tid) for tid in places} == places, (places, self.index)
        for tid in self.dead:
            assert self.index.get(tid) in self.letters, (tid, self.index)
        alive = {task.tid for task in self.tasks}
        assert not (set(self.index) - set(places)) & alive, (self.index, alive)

    def unique_tasks(self, follows, asked):
        """At most one task of a key runs, and it holds the key as a running task."""
        for token, (state, _, tid, _, bound) in self.running.items():
            key = bound.get('unique')
            if state != 'm' and key:
                assert self.names.get(b'u:' + key) == f'{tid} {token}'.encode(), (tid, token, self.names)
        # a plain XADD does not check the key before its task starts
        for task in self.tasks:
            key = task.get('unique')
            if key and task.tid in asked and task.tid not in follows:
                assert text(self.names[b'u:' + key]).split(' ')[0] == task.tid, (task, self.names)

    def waiting_tasks(self, follows):
        """Each delayed task waits for exactly one thing, and that exists."""
        waits = {task.tid: task for task in self.tasks if task.place[0] == 'w'}
        for tid, task in waits.items():
            ways = [tid.encode() in self.delayed, tid in self.laned, tid in follows]
            assert sum(ways) == 1, (task, ways)
        unclaimed = {task.tid: task for task in self.tasks if task.place not in self.running}
        for member, score in self.delayed.items():
            if member[:2] == b'x:':
                assert score < 0 and unclaimed[text(member[2:])].get('expires'), member
            else:
                assert score >= 0 and (member[:2] in (b'l:', b'u:') or text(member) in waits), member
        for tid, lane in self.laned.items():
            unlaned = self.has_unlaned and not lane
            assert tid in waits and (unlaned or waits[tid].get('lane') == lane), (tid, lane)

    def lane_counts(self):
        found = {}
        for state, _, _, _, bound in self.running.values():
            if state != 'm' and bound.get('lane'):
                found[bound['lane']] = found.get(bound['lane'], 0) + 1
        counted = {name[2:]: int(value) for name, value in self.stats.items() if name[:2] == b'r:'}
        assert counted == found

    def startable_lanes(self):
        """Lanes with tasks are in the rotation, unless they are at their cap or wait for a token."""
        found = []
        for lane in set(self.laned.values()):
            if self.is_capped(lane):
                continue
            if b'l:' + lane not in self.delayed:
                assert lane in self.lanes, (lane, self.lanes, self.delayed)
                found.append(lane)
        return found

    def a_worker_is_woken(self, startable):
        """A lane that could start a task has an unread entry, or one that was read and that its reader is
        about to name in a claim."""
        if startable and 'paused' not in self.conf:
            unbegun = self.pending - set(self.running)
            assert self.unread() or unbegun, (startable, self.tasks)

    def check(self, asked=()):
        self.one_place_each()
        self.records()
        self.indexed()
        follows = self.held_names()
        self.unique_tasks(follows, asked)
        self.waiting_tasks(follows)
        self.lane_counts()
        self.a_worker_is_woken(self.startable_lanes())


def check(queue, asked=()):
    """Fails if an invariant is violated; returns the snapshot. asked: tids of tasks that leat_enqueue added,
    and of those that started since: they hold their unique keys."""
    snapshot = Snapshot(queue)
    try:
        snapshot.check(asked)
    except AssertionError as error:
        raise AssertionError(f'{error}\n{vars(snapshot)}') from error
    return snapshot
