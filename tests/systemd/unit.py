"""leatd@NAME on a booted machine: the files of `make install`, configured and started, with its status and
tasks."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOCKET = "/run/test-redis/redis.sock"
TOOLS = "/usr/lib/leat-tests"  # programs of tasks, where the user leat can read them


def message_id(name):
    """The MESSAGE_ID of a kind of record in src/base/log/log_ids.h."""
    text = (ROOT / "src/base/log/log_ids.h").read_text()
    return re.search(rf'LOG_ID_{name} "([0-9a-f]+)"', text).group(1)


def install(stage):
    build = os.environ.get("LEAT_BUILD", "build")
    if not (ROOT / build / "leatd").exists():
        raise FileNotFoundError(f"{build}/leatd: build it first")
    subprocess.run(["make", "-s", "install-files", f"BUILD={build}", "PREFIX=/usr", f"DESTDIR={stage}"],
                   cwd=ROOT, check=True, env={"PATH": os.environ["PATH"]})
    (stage / TOOLS[1:]).mkdir(parents=True)
    for tool in ("heartbeat.py", "faults/survivors.py"):
        shutil.copy(ROOT / "tests/integration/harness" / tool, stage / TOOLS[1:])
    # under a sanitizer the leak check at exit would use ptrace, which the unit does not allow
    drop_in = stage / "etc/systemd/system/leatd@.service.d/sanitizer.conf"
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text("[Service]\nEnvironment=ASAN_OPTIONS=detect_leaks=0\n")
    # packages of this machine may be where leat would be installed
    shutil.rmtree(stage / "usr/share", ignore_errors=True)


class Unit:
    """leatd@NAME with a configuration of its own."""

    def __init__(self, machine, name):
        self.machine, self.name, self.unit = machine, name, f"leatd@{name}"
        self.sections = {"redis": {"socket": SOCKET}, "queue": {"name": name, "concurrency": 2}}

    def configure(self, **sections):
        for section, values in sections.items():
            self.sections.setdefault(section, {}).update(values)
        lines = []
        for section, values in self.sections.items():
            lines += [f"[{section}]"] + [f"{key} = {value}" for key, value in values.items()]
        self.write("\n".join(lines) + "\n")
        return self

    def write(self, text):
        self.machine.path(f"/etc/leat/{self.name}.ini").write_text(text)

    def drop_in(self, text):
        folder = self.machine.path(f"/etc/systemd/system/{self.unit}.service.d")
        folder.mkdir(exist_ok=True)
        (folder / "test.conf").write_text(text)
        self.machine.run("systemctl", "daemon-reload")
        return self

    def start(self):
        self.machine.run("systemctl", "start", self.unit)
        return self

    def show(self, name):
        return self.machine.show(self.unit, name)

    def pid(self):
        return int(self.show("MainPID"))

    def add(self, command, *fields):
        """Enqueues with plain XADD; returns the task's id."""
        done = self.machine.run("redis-cli", "-s", SOCKET, "xadd", self.name, "*", "command", command,
                                *fields)
        return done.stdout.strip()

    def figures(self):
        """The numbers of leat status."""
        done = self.machine.run("leat", "-c", f"/etc/leat/{self.name}.ini", "status", "--json", check=False)
        return json.loads(done.stdout)["figures"]

    def event(self, name, *matches, **options):
        """Waits for this many records of that kind and queue."""
        return self.machine.wait_journal(f"MESSAGE_ID={message_id(name)}", f"LEAT_QUEUE={self.name}", *matches,
                                         **options)


def inside(machine, path):
    return lambda: machine.path(path).exists()
