"""Workers that cannot fork: each is in a cgroup that limits the number of processes. Needs root."""
import contextlib
import os
from pathlib import Path

from harness.polling import wait_until
from hosts import NotHere

HIERARCHIES = ('/sys/fs/cgroup/pids', '/sys/fs/cgroup')
ENTER = 'echo $$ >"$0" && exec "$@"'


class Forks:
    def __init__(self, name):
        self._folder = None
        for hierarchy in HIERARCHIES:
            folder = Path(hierarchy) / f'leat-chaos-{os.getpid()}-{name}'
            try:
                folder.mkdir()
            except OSError:
                continue
            if (folder / 'pids.max').exists():
                self._folder = folder
                return
            folder.rmdir()
        raise NotHere('no cgroup with the controller pids can be made')

    def prefix(self):
        """Words before a program that runs in it."""
        return ['sh', '-c', ENTER, str(self._folder / 'cgroup.procs')]

    def allow(self, may_fork):
        (self._folder / 'pids.max').write_text('max' if may_fork else '0')

    def close(self):
        """All processes in it have ended."""
        with contextlib.suppress(AssertionError):
            wait_until(self._removed)

    def _removed(self):
        try:
            self._folder.rmdir()
        except OSError:
            return False
        return True


def why_not():
    try:
        Forks('probe').close()
    except NotHere as error:
        return str(error)
    return ''
