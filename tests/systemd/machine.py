"""A machine with a real systemd, booted on an overlay of this one; needs root."""
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))

from harness.polling import wait_until  # noqa: E402

CGROUPS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd")


class NotHere(Exception):
    """This machine does not allow to boot one, for the given reason."""


def check_host():
    """Raises NotHere if something is missing, before anything is tried."""
    if os.geteuid() != 0:
        raise NotHere("needs root")
    for program in ("systemd-nspawn", "unshare", "nsenter"):
        if not shutil.which(program):
            raise NotHere(f"{program} is not installed")


def children(pid):
    path = Path(f"/proc/{pid}/task/{pid}/children")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [int(child) for child in path.read_text().split()]
    return []


class Machine:
    """Boots in the constructor, with the files below `stage` added; close() ends it."""

    _numbers = itertools.count()  # several machines can run at the same time

    def __init__(self, folder, stage):
        check_host()
        self.name = f"leat-{os.getpid()}-{next(self._numbers)}"
        room = folder / "room"
        room.mkdir()
        self.log_path = folder / "console"
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", str(HERE / "boot"), str(room),
                 self.name, str(stage)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.init = 0
        try:
            wait_until(self._booted, 120, lambda: "the machine boots; console:\n" + self.console())
        except BaseException:
            self.close()
            raise

    def console(self):
        return self.log_path.read_text(errors="replace")

    def _booted(self):
        if self.process.poll() is not None:
            lines = self.console().strip().splitlines() or ["no output"]
            raise NotHere(f"no systemd can be booted here: {lines[-1]}")
        for child in children(self.process.pid):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if Path(f"/proc/{child}/comm").read_text().strip() == "systemd":
                    self.init = child
        if not self.init:
            return False
        state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
        return state in ("running", "degraded")

    def run(self, *argv, check=True, timeout=180, **options):
        """Runs a program inside; stdout and stderr are text."""
        done = subprocess.run(
            ["nsenter", "-t", str(self.init), "-m", "-u", "-i", "-n", "-p", "-r", "-w", "--", *map(str, argv)],
            capture_output=True, text=True, timeout=timeout, check=False,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"},
            **({"stdin": subprocess.DEVNULL} if "input" not in options else {}), **options)
        if check and done.returncode != 0:
            raise AssertionError(
                f"{argv} ended with {done.returncode}\n{done.stdout}{done.stderr}{self.tail()}")
        return done

    def has_user_namespaces(self):
        """Whether there are any, which PrivateUsers= needs: in a chroot there are none."""
        return self.run("unshare", "-U", "true", check=False).returncode == 0

    def tail(self):
        """The end of the machine's journal, for messages."""
        return self.run("journalctl", "-n", "60", "--no-pager", "-o", "short-precise", check=False).stdout

    def path(self, inside):
        """The path, as seen from here, of a path inside."""
        return Path(f"/proc/{self.init}/root{inside}")

    def show(self, unit, name):
        """One property of a unit."""
        return self.run("systemctl", "show", "-P", name, unit).stdout.strip()

    def wait_show(self, unit, name, wanted, timeout=20):
        """Waits until the property has a value that wanted(value) accepts, and returns it."""
        def there():
            value = self.show(unit, name)
            return [value] if wanted(value) else None
        return wait_until(there, timeout, lambda: (
            f"{name} of {unit} is {self.show(unit, name)!r}\n{self.tail()}"))[0]

    def journal(self, *matches):
        """The matching records, oldest first, each a dict of its fields."""
        text = self.run("journalctl", "--no-pager", "-q", "-o", "json", "--all", *matches).stdout
        return [json.loads(line) for line in text.splitlines()]

    def wait_journal(self, *matches, count=1, timeout=20):
        """Waits for this many matching records."""
        def there():
            records = self.journal(*matches)
            return records if len(records) >= count else None
        return wait_until(there, timeout, lambda: f"{count} records of {matches}\n{self.tail()}")

    def close(self):
        """Ends the machine with all processes in it."""
        if self.process.poll() is None:
            for pid in (self.init, self.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    if pid:
                        os.kill(pid, signal.SIGKILL)
            self.process.wait()
        for top in CGROUPS:
            wait_until(lambda top=top: remove_cgroup(Path(top) / self.name), 10, f"{top} is empty")


def remove_cgroup(top):
    """Removes a cgroup and those below it; returns False while there are processes in it."""
    for folder, _, _ in os.walk(top, topdown=False):
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return True
