"""Resident processes: their configuration, and the traces of harness/handler.py."""
import json
from pathlib import Path

from .polling import wait_until

HANDLER = Path(__file__).with_name('handler.py')


def lines(path):
    """The whole lines of a file that may not exist yet."""
    return path.read_text().split('\n')[:-1] if path.exists() else []


class Handlers:
    """The resident processes of a test."""

    def __init__(self, folder):
        self.folder = folder / 'handlers'
        self.folder.mkdir()

    def command(self, *habits):
        return ' '.join(['exec /usr/bin/python3 -IS', str(HANDLER), str(self.folder), *map(str, habits)])

    def config(self, *habits, slots=1, batch=1, form='json', **task):
        # however busy the machine is, a process has the time to start, and to end by itself
        return {'queue': {'concurrency': slots, 'lease': '5m'},
                'task': {'command': self.command(*habits), 'resident': 'yes', 'batch': batch,
                         'batch_format': form, 'resident_start_timeout': '10m', 'kill_grace': '1m', **task}}

    def up(self):
        """The pids of all processes so far, in the order of their starts."""
        return [int(line.split()[0]) for line in lines(self.folder / 'up')]

    def records(self):
        return [json.loads(line) for line in lines(self.folder / 'records')]

    def ends(self):
        """The pids of those that have read the end of their standard input."""
        return [int(line) for line in lines(self.folder / 'ends')]

    def wait_up(self, count):
        wait_until(lambda: len(self.up()) >= count, message=lambda: f'{count} processes: {self.up()}')
        return self.up()

    def wait_records(self, count):
        wait_until(lambda: len(self.records()) >= count,
                   message=lambda: f'{count} records: {self.records()}')
        return self.records()
