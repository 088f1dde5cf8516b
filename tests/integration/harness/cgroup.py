"""A cgroup of the test's own, in which it starts daemons: what a service manager would delegate."""
import contextlib
import itertools
import os
from pathlib import Path

from .polling import wait_until

_numbers = itertools.count()


def find_mount():
    """Where cgroup v2 is mounted with its root, or None."""
    for line in Path('/proc/self/mountinfo').read_text().splitlines():
        fields, tags = line.split(' - ')
        if tags.split()[0] == 'cgroup2' and fields.split()[3] == '/':
            return Path(fields.split()[4])
    return None


def enable_controllers(mount):
    """Without systemd, which sees to it, nobody may have enabled them for groups below."""
    if Path('/run/systemd/system').exists():
        return
    for name in (mount / 'cgroup.controllers').read_text().split():
        with contextlib.suppress(OSError):
            (mount / 'cgroup.subtree_control').write_text(f'+{name}')


class Group:
    """Groups below are found by name: group / 'tasks'."""

    def __init__(self):
        """OSError, with the reason, where none can be made."""
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
        """For preexec_fn: the process that calls it moves here."""
        with contextlib.suppress(OSError):
            (self.path / 'cgroup.procs').write_text('0')
            return
        # a daemon before has enabled controllers below: then nobody can be in the group itself
        for place in (self.path / 'tasks', self.path):
            for name in (place / 'cgroup.subtree_control').read_text().split() if place.exists() else []:
                (place / 'cgroup.subtree_control').write_text(f'-{name}')
        (self.path / 'cgroup.procs').write_text('0')

    def below(self):
        """The groups in it, relative, as they are now."""
        found = []
        for place, folders, _ in os.walk(self.path):
            found += [str((Path(place) / name).relative_to(self.path)) for name in folders]
        return sorted(found)

    def pids(self, name='.'):
        """Processes in it or in one below, and in none below that."""
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
