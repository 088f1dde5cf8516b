"""A cgroup of the test's own, in which it starts daemons, as a service manager would delegate it."""
import contextlib
import itertools
import os
from pathlib import Path

from .polling import wait_until

_numbers = itertools.count()


def find_mount():
    """The mount point of the root of cgroup v2, or None."""
    for line in Path('/proc/self/mountinfo').read_text().splitlines():
        fields, tags = line.split(' - ')
        if tags.split()[0] == 'cgroup2' and fields.split()[3] == '/':
            return Path(fields.split()[4])
    return None


def enable_controllers(mount):
    """Without systemd, which enables controllers for the groups below, this does."""
    if Path('/run/systemd/system').exists():
        return
    for name in (mount / 'cgroup.controllers').read_text().split():
        with contextlib.suppress(OSError):
            (mount / 'cgroup.subtree_control').write_text(f'+{name}')


class Group:
    """Groups below have names: group / 'tasks'."""

    def __init__(self):
        """Raises OSError with the reason if no cgroup can be made."""
        mount = find_mount()
        if mount is None:
            raise OSError('cgroup v2 is not mounted')
        enable_controllers(mount)
        self.path = mount / f'leat-test-{os.getpid()}-{next(_numbers)}'
        self.path.mkdir()
        if not (self.path / 'cgroup.kill').exists():
            self.path.rmdir()
            raise OSError('no cgroup.kill: Linux 5.14 is needed')

    def __truediv__(self, name):
        return self.path / name

    def controllers(self):
        return (self.path / 'cgroup.controllers').read_text().split()

    def enter(self):
        """For preexec_fn: moves the calling process into the group."""
        with contextlib.suppress(OSError):
            (self.path / 'cgroup.procs').write_text('0')
            return
        # an earlier daemon has enabled controllers below, so that no process can be in the group itself
        for place in (self.path / 'tasks', self.path):
            for name in (place / 'cgroup.subtree_control').read_text().split() if place.exists() else []:
                (place / 'cgroup.subtree_control').write_text(f'-{name}')
        (self.path / 'cgroup.procs').write_text('0')

    def below(self):
        """The current groups in it, as relative paths."""
        found = []
        for place, folders, _ in os.walk(self.path):
            found += [str((Path(place) / name).relative_to(self.path)) for name in folders]
        return sorted(found)

    def pids(self, name='.'):
        """The processes of the group, or of one below it, without those of its children."""
        return [int(pid) for pid in (self.path / name / 'cgroup.procs').read_text().split()]

    def is_populated(self):
        return 'populated 1' in (self.path / 'cgroup.events').read_text()

    def close(self):
        (self.path / 'cgroup.kill').write_text('1')
        wait_until(lambda: not self.is_populated(), message=f'{self.path} is empty')
        for name in sorted(self.below(), key=len, reverse=True):
            with contextlib.suppress(FileNotFoundError):
                (self.path / name).rmdir()
        self.path.rmdir()
