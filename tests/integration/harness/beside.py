"""A leat that runs in the background of the test."""
import subprocess

from . import processes
from .polling import wait_until


class Beside:
    """A background process whose output goes to files: `out` and `error` are its output so far."""

    def __init__(self, folder, number, argv, **options):
        self.paths = [folder / f'beside-{number}.{name}' for name in ('out', 'error')]
        files = {'stdin': subprocess.DEVNULL}
        with open(self.paths[0], 'wb') as out, open(self.paths[1], 'wb') as error:
            files.update(stdout=out, stderr=error)
            self.process = processes.start(argv, **dict(files, **options))

    @property
    def out(self):
        return self.paths[0].read_text()

    @property
    def raw(self):
        """The output as bytes."""
        return self.paths[0].read_bytes()

    @property
    def error(self):
        return self.paths[1].read_text()

    def lines(self):
        """[[word …] …]"""
        return [line.split() for line in self.out.splitlines()]

    def running(self):
        return self.process.poll() is None

    def told(self):
        """Its output, and the state of its processes."""
        return f'{self.out}{self.error}{processes.told(self.process)}'

    def wait_error(self, text, timeout=20):
        wait_until(lambda: text in self.error, timeout, lambda: f'leat says {text!r}: {self.error}')

    def ended(self, timeout=30):
        """Waits for its exit status."""
        wait_until(lambda: not self.running(), timeout, lambda: f'leat ends: {self.error}')
        return self.process.returncode
