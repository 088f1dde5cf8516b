"""A leatd that is upgraded in place, and the processes that replace each other."""
import os
import re
import shutil
import signal

from . import processes
from .daemon import BUILD
from .polling import wait_until

NEXT = BUILD / 'tests/next/leatd'  # the version 9.9.9, whose packets have more members
FAR = BUILD / 'tests/far/leatd'    # the version 99.0.0, whose packets today's program does not understand


class Service:
    """The processes of one service, oldest first. The program that an upgrade starts is a file of the test."""

    def __init__(self, folder, daemon, manager):
        """daemon: not started; manager: what it notifies."""
        self.daemon, self.manager = daemon, manager
        self.path = folder / 'installed' / 'leatd'
        self.path.parent.mkdir()
        self.path.parent.chmod(0o755)
        self.install(daemon.program)
        daemon.program = str(self.path)
        daemon.popen.update(start_new_session=True)  # so that the clean-up finds what it leaves
        daemon.start().wait_ready()
        self.pids = [daemon.pid]

    def install(self, program):
        """Replaces the installed program, as a package does."""
        fresh = self.path.with_name('fresh')
        shutil.copy(program, fresh)
        self.rename(fresh)

    def install_script(self, text):
        fresh = self.path.with_name('fresh')
        fresh.write_text(text)
        fresh.chmod(0o755)
        self.rename(fresh)

    def rename(self, fresh):
        fresh.rename(self.path)

    @property
    def main(self):
        return self.pids[-1]

    def ask(self):
        """Asks for an upgrade, and returns at once."""
        os.kill(self.main, signal.SIGUSR2)

    def upgrade(self):
        """Returns when another process is the main one, with its id."""
        before = len(self.manager.having('MAINPID'))
        self.ask()
        wait_until(lambda: self.manager.having('MAINPID')[before:], message=self.daemon.log)
        self.pids.append(int(self.manager.having('MAINPID')[-1]))
        return self.main

    def refused(self):
        """Asks for an upgrade that must fail; returns why."""
        before = self.reasons()
        self.ask()
        wait_until(lambda: len(self.reasons()) > len(before), message=self.daemon.log)
        assert alive(self.main)
        return self.reasons()[-1]

    def reasons(self):
        """Why upgrades have failed so far."""
        return re.findall(r'(?:no upgrade|upgrade to \S+ failed): (.*)', self.daemon.log())

    def wait_ended(self, pid):
        wait_until(lambda: not alive(pid), message=lambda: f'{pid} ends: {self.daemon.log()}')

    def terminate(self):
        os.kill(self.main, signal.SIGTERM)

    def living(self):
        return [pid for pid in self.pids if alive(pid)]


def alive(pid):
    """Reaps it if it has ended: it is a child of this process, as it would be one of the service manager."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass
    return processes.alive(pid)
