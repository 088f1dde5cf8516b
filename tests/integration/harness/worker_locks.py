"""Lock files of workers, by which a worker finds dead ones on its host: made here as daemon and guard make
them."""
import fcntl
import os
import re
import socket
import subprocess
from pathlib import Path

from . import processes

BOOT_ID = Path('/proc/sys/kernel/random/boot_id').read_text().strip()
HOST = re.sub('[^a-zA-Z0-9.-]', '_', socket.gethostname())
NOBODY = f'{HOST}:2147483647:00c0ffee'  # no process has this id


def gone_pid():
    """The pid of a process that has just ended."""
    process = subprocess.Popen(['true'])
    process.wait()
    return process.pid


def is_locked(path):
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(file)


class WorkerLocks:
    """The folder of a queue's lock files."""

    def __init__(self, folder):
        self.path = folder

    def names(self):
        """The names of files that no living worker locks. A file that a worker is making begins with a dot
        and is left alone, because the worker could not lock a file that is being checked."""
        if not self.path.exists():
            return set()
        return {path.name for path in self.path.glob('[!.]*') if not is_locked(path)}

    def put(self, consumer, dead=True, boot=BOOT_ID, pid=None, cgroup='-', lock=False):
        """Writes a file in one step; with lock, locks it and returns its descriptor."""
        self.path.mkdir(parents=True, exist_ok=True)
        making = self.path / f'.{consumer}'
        file = os.open(making, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        if lock:
            fcntl.flock(file, fcntl.LOCK_EX)
        lines = [f'worker {consumer}', f'boot {boot}', f'pid {pid or gone_pid()}', f'cgroup {cgroup}']
        lines += [f'dead {consumer}'] * dead
        os.write(file, ''.join(line + '\n' for line in lines).encode())
        os.rename(making, self.path / consumer)
        if not lock:
            os.close(file)
            return None
        return file


def consumer_of(daemon):
    """The name of a daemon's incarnation."""
    return daemon.wait_log('registered with Redis as ').log().split('registered with Redis as ')[1].split()[0]


def kill_with_tasks(daemon):
    """Kills the daemon and all its tasks, as its guard would."""
    below = daemon.descendants()
    daemon.kill9()
    for pid in below:
        processes.send(pid, 9)
