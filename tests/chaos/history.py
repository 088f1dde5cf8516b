"""The history, as JSON lines: a file for each writer, each event with its time `t` in ns of CLOCK_BOOTTIME,
its name `e`, and for tasks their number `n`. tests/chaos/checker.py lists the events."""
import json
import threading
import time


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Writer:
    """One file. Threads may share it."""

    def __init__(self, path):
        self._file = open(path, 'a', encoding='utf-8', buffering=1)
        self._lock = threading.Lock()

    def say(self, event, at=None, **values):
        line = json.dumps({'t': at or now_ns(), 'e': event, **values})
        with self._lock:
            self._file.write(line + '\n')

    def close(self):
        self._file.close()


def read_file(path):
    """Its events. An incomplete line of a writer that was killed, or still writes, is ignored."""
    for line in path.read_text().split('\n'):
        if line.endswith('}'):
            yield json.loads(line)


def read(paths):
    """All events of these files, in the order of their times."""
    return sorted((event for path in paths for event in read_file(path)), key=lambda event: event['t'])
