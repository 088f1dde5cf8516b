"""Tasks that run until the test lets them end: no test has to be faster than a task."""
import fcntl
import os


class Latch:
    """command is what a task waits with; it is one process, and succeeds once the gate is open."""

    def __init__(self, path):
        self._fd = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        self.wait = f'flock -s {path} true'
        self.command = 'exec ' + self.wait

    def open(self):
        """Also for those that come later."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
