"""The processes of one worker that is upgraded in place: the main one, and former ones that finish their tasks.
It does what systemd does: it follows MAINPID, and hears of the end of the main process."""
import datetime
import os
import random
import re
import shutil
import signal
import time

from harness import processes
from harness.daemon import program
from harness.notify import NotifySocket
from harness.upgrades import NEXT

TOGETHER_S = 0.1
ANSWER_S = 90  # leatd waits for a third of it
OVER = re.compile(r'^(\S+) .*upgraded from \S+ to \S+: (process|this process)', re.M)
REFUSED = re.compile(rb'(?:no upgrade|upgrade to \S+ failed): (.*)')

# programs that work (checker.WORKS), and scripts that do not
WORKS = {'same': program('leatd'), 'next': str(NEXT)}
BROKEN = {'exits': '#!/bin/sh\nexit 3\n', 'crashes': '#!/bin/sh\nkill -SEGV $$\n', 'is nonsense': 'nonsense',
          'hangs': '#!/bin/sh\nexec sleep 1000\n', 'hangs for a while': '#!/bin/sh\nexec sleep 2\n',
          'says nonsense': '#!/bin/sh\nprintf nonsense >&3; exec sleep 1\n', 'may not run': None}


class Adopted:
    """A child that another process has started: what is used of subprocess.Popen."""

    def __init__(self, pid):
        self.pid, self.returncode = pid, None

    def _wait(self, options):
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, options)
            except ChildProcessError:  # reaped before it was known
                pid, status = self.pid, signal.SIGKILL
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def poll(self):
        return self._wait(os.WNOHANG)

    def wait(self):
        return self._wait(0)

    def send_signal(self, number):
        if self.poll() is None:
            processes.send(self.pid, number)


class Service:
    """Of worker w. Without upgrades it is a daemon and nothing more."""

    def __init__(self, daemon, w, folder, writer):
        self.daemon, self.elders = daemon, []
        self._w, self._writer = w, writer
        self._manager = NotifySocket(folder / f'notify-{w}')
        self._path = folder / f'installed-{w}' / 'leatd'
        self._path.parent.mkdir(mode=0o755)
        self._seen, self._read, self._fates, self._ends = 0, 0, random.Random(w), 0
        self._plan, self._asked, self._what, self._good = [], None, 'same', 'same'
        daemon.program = str(self._path)
        daemon.popen.update(start_new_session=True)  # so that the clean-up finds what it leaves
        daemon.env.update(self._manager.environment())

    def living(self):
        """The processes that run, the main one first."""
        return [one for one in (self.daemon.process, *self.elders) if one and one.poll() is None]

    def pids(self):
        return {one.pid for one in (self.daemon.process, *self.elders) if one}

    def guards(self):
        return [pid for one in self.living() for pid in processes.descendants(one.pid)
                if processes.name(pid) == 'leat-guard']

    def start(self):
        self._install(self._good)
        self._plan, self._asked = [], None
        self.daemon.start()
        self._writer.say('up', w=self._w, pid=self.daemon.pid)

    # ---- upgrades

    def upgrade(self, what):
        """Upgrades one after the other to these programs, keys of WORKS and BROKEN."""
        self._plan += what

    def _install(self, what):
        fresh = self._path.with_name('fresh')
        if what in WORKS:
            shutil.copy(WORKS[what], fresh)
        else:
            fresh.write_text(BROKEN[what] or '')
            fresh.chmod(0o755 if BROKEN[what] else 0o644)
        fresh.rename(self._path)
        self._what, self._good = what, what if what in WORKS else self._good

    def cancel(self):
        """Begins no further upgrade."""
        self._plan = []

    def turn(self, is_up):
        """Asks for the next upgrade of the plan, or waits for the answer to the last one."""
        if self._asked is not None:
            self._hear()
        elif self._plan and is_up:
            self._install(self._plan.pop(0))
            self._read = self.daemon.log_path.stat().st_size
            self._asked = time.monotonic()
            self._writer.say('asked', w=self._w, pid=self.daemon.pid, program=self._what)
            self.daemon.process.send_signal(signal.SIGUSR2)

    def _hear(self):
        with open(self.daemon.log_path, 'rb') as log:
            log.seek(self._read)
            said = REFUSED.search(log.read())
        if said or time.monotonic() > self._asked + ANSWER_S:
            why = said.group(1).decode(errors='replace') if said else 'no answer'
            self._writer.say('refused', w=self._w, pid=self.daemon.pid, program=self._what, why=why,
                             elders=len(self.elders))
            self._asked = None

    def follow(self):
        """Returns [(former, new)]: main processes that were replaced since the last call."""
        self._manager.poll()
        found = []
        for message, sender in list(zip(self._manager.messages, self._manager.senders))[self._seen:]:
            self._seen += 1
            if 'MAINPID' in message and sender == self.daemon.pid:
                former, self.daemon.process = self.daemon.process, Adopted(int(message['MAINPID']))
                self.elders.append(former)
                self._say_up(self.daemon.pid, former.pid)
                self._asked = None
                found.append((former.pid, self.daemon.pid))
        return found

    def _say_up(self, pid, former):
        self._writer.say('up', w=self._w, pid=pid, former=former, program=self._what)

    def _successors(self):
        """Processes that have not taken over, or not told so."""
        mine = [str(self.daemon.config_path), '--take-over']
        return [pid for pid in processes.children() if pid not in self.pids()
                and all(word in processes.arguments(pid) for word in mine)]

    def hand_overs(self):
        """[ms] of upgrades, by the log: from when the former process claims nothing more until the new one claims.
        They log it at the same time, in either order."""
        said = [(datetime.datetime.fromisoformat(at).timestamp(), who)
                for at, who in OVER.findall(self.daemon.log(whole=True))]
        found = []
        while len(said) > 1:
            (since, former), (until, new) = said[:2]
            is_pair = former != new and (former == 'process' or until - since < TOGETHER_S)
            found += [1000 * (until - since)] if is_pair else []
            said = said[2 if is_pair else 1:]
        return found

    # ---- ends

    def bury(self):
        """Forgets former processes that have ended."""
        for one in [one for one in self.elders if one.poll() is not None]:
            self.elders.remove(one)
            self._writer.say('down', w=self._w, pid=one.pid, status=one.returncode)

    def main_has_ended(self):
        """A successor may be in charge without having said so, if the former process died in between: it ends,
        too. systemd would also end former processes; without it they go on."""
        self._plan, self._asked = [], None
        lost, elders = self._successors(), [one for one in self.elders if one.poll() is None]
        elders = elders if self._fates.random() < 0.5 else []
        if lost or elders:
            self._say_kill()
        for pid in lost:
            self._say_up(pid, self.daemon.pid)
            processes.send(pid, signal.SIGKILL)
            self.elders.append(Adopted(pid))
        for one in elders:
            one.send_signal(signal.SIGKILL)

    def _say_kill(self):
        """Its time must not be long before that of the kill."""
        self._ends += 1
        self._writer.say('fault', id=f'service {self._w} {self._ends}', kind='kill', w=self._w)
        self._writer.say('healed', id=f'service {self._w} {self._ends}')

    def kill_in_upgrade(self, share):
        """Kills the main process, its successor or the newest of the former ones."""
        elders = [one.pid for one in self.elders[-1:] if one.poll() is None]
        parts = [[self.daemon.pid], self._successors(), elders]
        there = [part[0] for part in parts if part]
        self._say_kill()
        processes.send(there[int(share * len(there))], signal.SIGKILL)

    def elder(self, share):
        """One of the former processes that run, or None."""
        there = [one for one in self.elders if one.poll() is None]
        return there[int(share * len(there))] if there else None

    def close(self):
        for one in self.elders:
            processes.end(one)
        self.daemon.close()
        self._manager.close()
