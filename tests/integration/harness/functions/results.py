"""Results and live output in Redis."""
from ..polling import wait_until
from ..queue import pairs, text

# The bytes of a leat_output call with data: the whole argument, because the worker's name in an attempt's
# first entry ends in hexadecimal digits, which may be fd too.
HOLDS_DATA = rb'\r\nfd\r\n'


def key_of(queue, kind, tid):
    """The key of a task's result or output."""
    return queue.stats[:-len('stats')] + f'{kind}:{tid}'


def result_of(queue, tid):
    """{name: text} of the task's result, or None."""
    entries = queue.redis.execute_command('XRANGE', key_of(queue, 'result', tid), '-', '+')
    assert len(entries) <= 1
    return {name: text(value) for name, value in pairs(entries[0][1]).items()} if entries else None


def wait_result(queue, tid, timeout=20.0):
    return wait_until(lambda: result_of(queue, tid), timeout,
                      lambda: f'the result of {tid}: {queue.places()}')


def result_keys(queue):
    """The keys of all results."""
    return sorted(queue.redis.scan_iter(key_of(queue, 'result', '*')))


class Output:
    """A task's live output: its entries as dicts; data is bytes, everything else text."""

    def __init__(self, entries):
        self.entries = [{name: value if name == 'data' else text(value)
                         for name, value in pairs(fields).items()} for fields in entries]

    def data(self, fd, attempt=None):
        """The output of one descriptor."""
        return b''.join(one['data'] for one in self.entries if one.get('fd') == str(fd)
                        and attempt in (None, int(one['attempt'])))

    def ends(self):
        """[(attempt, verdict, how)]"""
        return [(int(one['attempt']), one['ended'], one['how'])
                for one in self.entries if 'ended' in one]

    def dropped(self):
        """The number of bytes that were lost, by the entries."""
        return sum(int(one.get('dropped', 0)) for one in self.entries)


def follow(queue, tid):
    """The task's live output in Redis."""
    found = queue.redis.execute_command('XRANGE', key_of(queue, 'output', tid), '-', '+')
    return Output(fields for _, fields in found)


class Reader:
    """Follows a task's live output as a reader must: repeated data counts once, and missing data is counted."""

    def __init__(self, queue, tid):
        self.key, self.redis, self.last = key_of(queue, 'output', tid), queue.redis, '0-0'
        self.data, self.lost, self.twice, self.offset, self.ended = {'1': b'', '2': b''}, 0, 0, 0, None

    def read(self):
        """Reads the new entries; returns whether the attempt has ended."""
        while True:
            found = self.redis.execute_command('XREAD', 'COUNT', 200, 'STREAMS', self.key, self.last)
            if not found:
                return self.ended
            for id, fields in found[0][1]:
                self.last = text(id)
                self._take({name: value if name == 'data' else text(value)
                            for name, value in pairs(fields).items()})

    def _take(self, entry):
        data, offset = entry.get('data', b''), int(entry['offset'])
        known = min(max(self.offset - offset, 0), len(data))
        self.twice += known
        data, offset = data[known:], offset + known
        self.lost += max(offset - self.offset, 0)
        self.offset = max(offset, self.offset) + len(data)
        if data:
            self.data[entry['fd']] += data
        self.ended = entry.get('ended')
