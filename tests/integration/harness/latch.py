"""Tasks that run until the test lets them end, so that no test must be faster than a task."""
import fcntl
import os


class Latch:
    """A task waits with command, which is one process and succeeds when the latch is open."""

    def __init__(self, path):
        self._fd = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        self.wait = f'flock -s {path} true'
        self.command = 'exec ' + self.wait

    def open(self):
        """Opens it, also for later tasks."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
