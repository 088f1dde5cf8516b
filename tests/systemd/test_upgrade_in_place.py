"""Upgrades in place under systemd: it follows the main process, and stop, reload and watchdog hold for all."""
import os

import pytest

from harness.polling import wait_until
from harness.short_leases import boot_s

pytestmark = pytest.mark.xdist_group("systemd")

PATIENT = {"queue": {"lease": "60s", "concurrency": 4}, "isolation": {"cgroup": "required"},
           "retry": {"max_attempts": 1}, "task": {"timeout": "1h"}}

# the longest task: how many upgrades it survives, and for how many seconds it runs at least
UPGRADES = int(os.environ.get("LEAT_UPGRADES", "5"))
SECONDS = float(os.environ.get("LEAT_UPGRADE_SECONDS", "0"))
LINE_S = max(0.02, SECONDS / 3000)  # it writes a line this often


def upgrade(unit):
    """leat upgrade; returns the new main process as soon as systemd knows it."""
    machine, before = unit.machine, unit.pid()
    # an update gives the program a new file, here one of another length
    machine.run("sh", "-ec", "cp -p /usr/bin/leatd /usr/bin/leatd.new; echo >> /usr/bin/leatd.new; "
                "mv /usr/bin/leatd.new /usr/bin/leatd")
    done = machine.run("leat", "-q", unit.name, "upgrade")
    assert f"{unit.unit}.service: upgraded to version" in done.stdout
    wait_until(lambda: unit.pid() != before, message=machine.tail)
    return unit.pid()


def path_of(unit, name):
    return f"/var/lib/leat/{unit.name}.{name}"


def command(unit, name, before=""):
    """A task that writes its worker, and ends when the file NAME.go is there."""
    file = path_of(unit, name)
    return f"{before} echo $LEAT_WORKER > {file}.new; mv {file}.new {file}; " \
           f"while ! [ -e {file}.go ]; do sleep 0.05; done"


def start_task(unit, name):
    """Adds the task, waits until it runs, and returns the process id of its worker."""
    unit.add(command(unit, name))
    path = unit.machine.path(path_of(unit, name))
    wait_until(path.exists, 60, unit.machine.tail)
    return int(path.read_text().split(":")[-2])


def let_go(unit, name):
    unit.machine.path(path_of(unit, name) + ".go").touch()


def is_alive(unit, pid):
    return unit.machine.run("kill", "-0", pid, check=False).returncode == 0


def test_task_survives_upgrades(unit):
    """A task that writes all the time survives several upgrades, each to a new file of the program: it runs once,
    and the journal has each of its lines once. Tasks in between run in the new processes. systemd restarts
    nothing, and a stop leaves nothing. LEAT_UPGRADES=10 LEAT_UPGRADE_SECONDS=600: ten upgrades in ten minutes."""
    unit.configure(**PATIENT).start()
    machine, first = unit.machine, unit.pid()
    file = path_of(unit, "long")
    long = unit.add(f"touch {file}; i=0; while ! [ -e {file}.go ]; do i=$((i+1)); echo line $i; sleep {LINE_S}; "
                    f"done; echo $i > {file}.count")
    wait_until(machine.path(file).exists, 60, machine.tail)
    pids, begun = [first], boot_s()
    for number in range(UPGRADES):
        pids.append(upgrade(unit))
        assert start_task(unit, f"short{number}") == pids[-1]
        let_go(unit, f"short{number}")
        unit.event("TASK_SUCCEEDED", count=number + 1, timeout=120)
        if number:  # all but the first and the last process end with their tasks
            wait_until(lambda: not is_alive(unit, pids[number]), 60, machine.tail)
        wait_until(lambda: boot_s() >= begun + SECONDS * (number + 1) / UPGRADES, SECONDS + 60)
    assert len(set(pids)) == UPGRADES + 1 and is_alive(unit, first)
    program = machine.run("stat", "-Lc", "%i", f"/proc/{pids[-1]}/exe", "/usr/bin/leatd").stdout.split()
    assert program[0] == program[1]
    let_go(unit, "long")
    ended = unit.event("TASK_SUCCEEDED", count=UPGRADES + 1, timeout=120)
    assert {record["LEAT_ATTEMPT"] for record in ended} == {"1"}
    wait_until(lambda: not is_alive(unit, first), message=machine.tail)
    count = int(machine.path(file + ".count").read_text())
    lines = unit.event("TASK_OUTPUT", f"LEAT_TASK={long}", count=count)
    assert [record["MESSAGE"] for record in lines] == [f"line {i + 1}" for i in range(count)]
    assert machine.run("leat", "-q", unit.name, "logs", long).stdout.splitlines() == \
        [f"line {i + 1}" for i in range(count)]
    assert (unit.show("NRestarts"), unit.show("ActiveState")) == ("0", "active")
    path = "/sys/fs/cgroup" + unit.show("ControlGroup")
    machine.run("systemctl", "stop", unit.unit)
    assert unit.show("Result") == "success", machine.tail()
    assert not machine.path(path).exists()
    assert machine.run("ls", "-A", f"/run/leat/{unit.name}").stdout == ""


def test_stop_and_reload(unit):
    """A reload reaches both processes and changes none. A stop waits for the task of the former one."""
    unit.configure(**PATIENT, shutdown={"drain": "100s"}).start()
    machine = unit.machine
    old = start_task(unit, "long")
    new = upgrade(unit)
    machine.run("systemctl", "reload", unit.unit)
    unit.event("CONFIG_RELOADED", count=2)
    assert unit.pid() == new and is_alive(unit, old)
    machine.run("systemctl", "stop", "--no-block", unit.unit)
    unit.event("WORKER_STOPPING", count=2)
    unit.event("WORKER_STOPPED")
    assert unit.show("ActiveState") == "deactivating" and is_alive(unit, old)
    let_go(unit, "long")
    machine.wait_show(unit.unit, "ActiveState", lambda state: state == "inactive")
    assert unit.show("Result") == "success", machine.tail()
    assert len(unit.event("TASK_SUCCEEDED")) == 1


def test_crash_of_the_main_process(unit):
    """systemd notices the death of a main process that was not started by it, ends the service, and starts it
    again; the tasks of both processes run again at once."""
    unit.configure(**PATIENT).drop_in("[Service]\nRestartSec=100ms\n").start()
    machine = unit.machine
    start_task(unit, "long")
    new = upgrade(unit)
    assert start_task(unit, "short") == new
    for name in ("long", "short"):
        machine.path(path_of(unit, name)).unlink()
    machine.run("kill", "-KILL", new)
    wait_until(lambda: unit.show("NRestarts") == "1", 60, machine.tail)
    for name in ("long", "short"):  # one after the other, since each may have caused the crash
        let_go(unit, name)
    for name in ("long", "short"):
        wait_until(machine.path(path_of(unit, name)).exists, 60, machine.tail)
    unit.event("TASK_SUCCEEDED", count=2)
    assert unit.show("NRestarts") == "1" and unit.pid() != new


def test_hung_main_process(unit):
    """The watchdog of systemd watches the new process."""
    unit.configure(**PATIENT).drop_in("[Service]\nWatchdogSec=8s\nRestartSec=100ms\n").start()
    new = upgrade(unit)
    unit.machine.run("kill", "-STOP", new)
    wait_until(lambda: unit.show("NRestarts") == "1", 60, unit.machine.tail)
    wait_until(lambda: unit.pid() not in (0, new), 60, unit.machine.tail)


def test_main_process_named_by_a_task(unit):
    """systemd believes the main process only: a task of the same user cannot name another one, or say that the
    service stops."""
    unit.configure(**PATIENT).start()
    before = unit.pid()
    unit.add("export NOTIFY_SOCKET=/run/systemd/notify; systemd-notify MAINPID=$$; systemd-notify STOPPING=1")
    unit.event("TASK_SUCCEEDED")
    assert (unit.pid(), unit.show("ActiveState")) == (before, "active")
    unit.add("true")
    unit.event("TASK_SUCCEEDED", count=2)


def test_broken_program(unit):
    """A program that crashes leaves the service as it is: the same main process, no restart."""
    unit.configure(**PATIENT).start()
    machine, before = unit.machine, unit.pid()
    machine.run("sh", "-ec", "cp -p /usr/bin/leatd /usr/bin/leatd.good; "
                "printf '#!/bin/sh\\nkill -SEGV $$\\n' > /usr/bin/leatd.new; chmod 755 /usr/bin/leatd.new; "
                "mv /usr/bin/leatd.new /usr/bin/leatd")
    try:
        done = machine.run("leat", "-q", unit.name, "upgrade", check=False)
    finally:
        machine.run("mv", "/usr/bin/leatd.good", "/usr/bin/leatd")
    assert done.returncode == 70 and "it ended before it was ready" in done.stderr
    assert (unit.pid(), unit.show("NRestarts"), unit.show("ActiveState")) == (before, "0", "active")
    unit.add("true")
    unit.event("TASK_SUCCEEDED")
    assert upgrade(unit) != before


# a program that says that it is ready, and has ended when systemd hears of it; its child holds the socket until
# then
CRASHES_LATE = """#!/usr/bin/python3 -IS
import os, socket, struct
side = socket.socket(fileno=3)
side.setblocking(True)
if os.fork() > 0:
    os._exit(3)
while os.getppid() != 1:
    pass
side.send(struct.pack("12I", 2, *[0] * 11) + b"9.9.8".ljust(32, b"\\0") + bytes(256))
while struct.unpack_from("I", side.recv(4096))[0] != 4:
    pass
"""


def test_program_that_crashes_late(unit):
    """If the new program crashes just when it takes over, the former one is still the main process for systemd.
    Its tasks end as ever, and then the service starts again, with whatever is installed."""
    unit.configure(**PATIENT).drop_in("[Service]\nRestartSec=100ms\n").start()
    machine, before = unit.machine, unit.pid()
    assert start_task(unit, "long") == before
    machine.run("cp", "-p", "/usr/bin/leatd", "/usr/bin/leatd.good")
    machine.path("/usr/bin/leatd.new").write_text(CRASHES_LATE)
    machine.run("sh", "-ec", "chmod 755 /usr/bin/leatd.new; mv /usr/bin/leatd.new /usr/bin/leatd")
    try:
        machine.run("leat", "-q", unit.name, "upgrade", check=False)
    finally:
        machine.run("mv", "/usr/bin/leatd.good", "/usr/bin/leatd")
    let_go(unit, "long")
    wait_until(lambda: unit.pid() not in (0, before), 60, machine.tail)
    unit.add("true")
    unit.event("TASK_SUCCEEDED", count=2)


def test_only_root(unit):
    """Another user cannot upgrade, and is told who can."""
    unit.configure().start()
    done = unit.machine.run("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups",
                            "leat", "-q", unit.name, "upgrade", check=False)
    assert done.returncode == 77 and "run leat upgrade as root" in done.stderr
