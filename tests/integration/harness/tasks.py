"""Shared by tests of the daemon's behaviour: short times, and views of the outcomes of tasks."""
import os
import re
from pathlib import Path

import pytest

from .polling import PATIENCE_S, wait_until
from .queue import trailer
from .short_leases import is_empty

QUICK = {
    'redis': {'backoff_base': '50ms', 'backoff_cap': '400ms'},
    'queue': {'lease': '5s', 'scan': '500ms', 'concurrency': 4},
    'task': {'kill_grace': '300ms'},
    'retry': {'base': '50ms', 'jitter': 'none'},
}

# one record of the log: time, queue, priority, message
LINE = re.compile(r'^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) leatd(?:\[emails\])? (\w+): (.*)$')


def first_run(folder):
    """A shell command that succeeds in the first run of each task."""
    return f'mkdir {folder}/ran-$LEAT_TASK 2>/dev/null'


class Letter:
    """A dead letter: the task's fields, a flat list, and leat's own."""

    def __init__(self, fields):
        self.own = trailer(fields)
        self.bytes = {name: value for name, value in zip(fields[::2], fields[1::2])}
        self.fields = fields[:int(self.own['leat.fields']) * 2]

    def __getattr__(self, name):
        """cause, status, reason, attempts … as text, or ''."""
        return self.own.get('leat.' + name, '')

    def tail(self, stream):
        return self.bytes.get(b'leat.' + stream.encode(), b'')

    def lines(self):
        """The history: [(attempt, worker, begun, ended, cause, status)]; times in ms."""
        rows = [line.split(' ') for line in self.history.splitlines()]
        return [(int(row[0]), row[1], int(row[2]), int(row[3]), row[4], row[5]) for row in rows]


def letters(queue):
    return [Letter(fields) for _, fields in queue.entries('dead')]


def wait_letters(queue, count=1, timeout=PATIENCE_S):
    wait_until(lambda: len(queue.entries('dead')) >= count, timeout,
               lambda: f'{count} dead letters: {queue.places()}, {queue.redis.hgetall(queue.running)}')
    found = letters(queue)
    assert len(found) == count
    return found


def wait_succeeded(queue, count, timeout=PATIENCE_S):
    """Waits until this many tasks have succeeded, and nothing is left of any."""
    wait_until(lambda: queue.counter('succeeded') >= count and is_empty(queue), timeout,
               lambda: f'{count} successes: {queue.redis.hgetall(queue.stats)}, {queue.places()}')
    assert queue.counter('succeeded') == count


def wait_file(path, size=1, timeout=PATIENCE_S):
    """The file's bytes, as soon as it has this size."""
    wait_until(lambda: path.exists() and path.stat().st_size >= size, timeout, f'{path} is written')
    return path.read_bytes()


def environment(path):
    """The output of env -0, as a dict of bytes."""
    entries = path.read_bytes().split(b'\0')[:-1]
    return dict(entry.split(b'=', 1) for entry in entries)


def records(log):
    """[(time, priority, message)]; every line must be a record, except a last one that is being written."""
    found = []
    for line in log[:log.rfind('\n') + 1].splitlines():
        match = LINE.match(line)
        assert match, f'not a record: {line!r}'
        found.append(match.groups())
    return found


def open_files(pid):
    """How many descriptors a process has. Only root may list those of a daemon; newer kernels (6.2) tell
    their number to all."""
    try:
        return len(os.listdir(f'/proc/{pid}/fd'))
    except PermissionError:
        count = os.stat(f'/proc/{pid}/fd').st_size
        if count == 0:
            pytest.skip('only root may count the descriptors of a daemon here')
        return count


def status_of(pid, name):
    """A value of /proc/PID/status."""
    for line in Path(f'/proc/{pid}/status').read_text().splitlines():
        if line.startswith(name + ':'):
            return line.split(':', 1)[1].strip()
    raise AssertionError(f'no {name}')


def resident_kib(pid):
    return int(status_of(pid, 'VmRSS').split()[0])


def resident_task(work):
    """A [task] with resident processes, each for one task: shells that run the line `work` with each $payload."""
    return {'command': 'echo ready >&3; number=0; while read -r payload; do number=$((number + 1)); '
                       f'{work} </dev/null 3>&-; echo "$number ok" >&3; done',
            'resident': 'yes', 'batch_format': 'lines', 'resident_tasks': 1}
