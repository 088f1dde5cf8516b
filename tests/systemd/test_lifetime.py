"""Tasks while systemd stops, kills and restarts the daemon in the middle of work."""
import pytest

from harness.polling import wait_until
from harness.short_leases import Heartbeats, assert_apart
from unit import TOOLS, inside

pytestmark = pytest.mark.xdist_group("systemd")

PYTHON = "/usr/bin/python3 -IS"
COUNT = 15  # survivors
# no lease of these tests expires by itself
PATIENT = {"queue": {"lease": "60s"}, "task": {"kill_grace": "300ms"}, "isolation": {"cgroup": "required"}}


def home(unit, name):
    """The path of a task's file, as the task names it."""
    return f"/var/lib/leat/{unit.name}.{name}"


def read(unit, name):
    path = unit.machine.path(home(unit, name))
    return path.read_text() if path.exists() else ""


def group(unit):
    """The unit's cgroup, as a path inside."""
    return "/sys/fs/cgroup" + unit.show("ControlGroup")


def survive(unit, *code):
    return f"exec {PYTHON} {TOOLS}/survivors.py {home(unit, 'survivors')} {COUNT} {' '.join(map(str, code))}"


def wait_survivors(unit):
    """Their pids, as soon as all of them exist."""
    def there():
        pids = read(unit, "survivors").split()
        return pids if len(pids) == COUNT else None
    return wait_until(there, 60, unit.machine.tail)


def is_alive(unit, pid):
    """A zombie counts as dead."""
    try:
        return unit.machine.path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def alive(unit, pids):
    return [pid for pid in pids if is_alive(unit, pid)]


class Beating:
    """A task whose first run ends only if all its processes are killed, among them one with heartbeats that
    has left group and session and ignores TERM; its second run writes heartbeats for a moment and succeeds."""

    def __init__(self, unit):
        self.unit = unit
        self.heartbeats = Heartbeats(unit.machine.path(home(unit, "beats")))
        heartbeat = f"{PYTHON} {TOOLS}/heartbeat.py {home(unit, 'beats')}"
        self.task = unit.add(f"mkdir {home(unit, 'ran')} || exec {heartbeat} 0.1; "
                             f"setsid setsid {heartbeat} 3600 0 stubborn & exec tail -f /dev/null")
        self.heartbeats.wait_runs(1, 60)

    def wait_again(self):
        """The second run starts long before the lease is over, and after the first was dead."""
        [ended] = self.unit.event("TASK_SUCCEEDED", timeout=45)
        assert ended["LEAT_TASK"] == self.task
        first, second = self.heartbeats.runs()
        assert_apart([first, second])
        assert second.ended and not alive(self.unit, [first.pid])


def assert_nothing_left(unit):
    """After a stop there is no cgroup, so no process, and no lock file that another worker has not read."""
    path = group(unit)
    unit.machine.run("systemctl", "stop", unit.unit)
    assert unit.show("Result") == "success", unit.machine.tail()
    assert not inside(unit.machine, path)()
    assert unit.machine.run("ls", "-A", f"/run/leat/{unit.name}").stdout == ""


# ---- cgroups

def test_cgroups_of_tasks(unit):
    """Under the unit's Delegate= each task runs in its own cgroup in the unit's; the daemon and its guards
    are in another one."""
    unit.configure(**PATIENT).start()
    for _ in range(2):
        unit.add(f"sed -n s/^0:://p /proc/self/cgroup; while ! [ -e {home(unit, 'go')} ]; do sleep 0.05; done")
    lines = unit.event("TASK_OUTPUT", count=2)
    unit.machine.path(home(unit, "go")).touch()
    own = unit.show("ControlGroup")
    assert own.endswith(f"/{unit.unit}.service")
    assert sorted(line["MESSAGE"] for line in lines) == [f"{own}/tasks/{place}" for place in range(2)]
    of_daemon = unit.machine.run("cat", f"{group(unit)}/daemon/cgroup.procs").stdout.split()
    assert str(unit.pid()) in of_daemon and len(of_daemon) > 1
    unit.event("TASK_SUCCEEDED", count=2)
    assert_nothing_left(unit)


def test_no_survivors_of_a_timeout(unit):
    """Double-forked processes in sessions of their own are gone before the timeout is reported."""
    unit.configure(**PATIENT, retry={"max_attempts": 1}).start()
    unit.add(survive(unit), "timeout", "10s")
    pids = wait_survivors(unit)
    [dead] = unit.event("TASK_DEAD")
    assert dead["LEAT_CAUSE"] == "timeout"
    assert alive(unit, pids) == []
    assert_nothing_left(unit)


# ---- the end of the daemon

@pytest.mark.parametrize("who, mode", [("main", "process"), ("main", "mixed"), ("all", "mixed")])
def test_kill(unit, who, mode):
    """Tasks of a killed daemon are dead before they run again, at once and not a lease later. The next start
    knows it from the unit's empty cgroup, or from the guards, if systemd (KillMode=process) leaves that to
    them."""
    unit.configure(**PATIENT).drop_in(f"[Service]\nRestartSec=100ms\nKillMode={mode}\n").start()
    beating = Beating(unit)
    unit.machine.run("systemctl", "kill", "-s", "KILL", f"--kill-who={who}", unit.unit)
    beating.wait_again()
    [adopted] = unit.event("ADOPTED")
    assert adopted["LEAT_COUNT"] == "1"
    assert mode == "mixed" or "dead since" in adopted["MESSAGE"]
    assert unit.show("NRestarts") == "1"
    assert_nothing_left(unit)


def test_watchdog_restarts_a_hung_worker(unit):
    """systemd kills a daemon that hangs, with its tasks, and starts it again; the task runs again at once."""
    unit.configure(**PATIENT).drop_in("[Service]\nWatchdogSec=8s\nRestartSec=100ms\n").start()
    before = unit.pid()
    beating = Beating(unit)
    unit.machine.run("kill", "-STOP", before)
    beating.wait_again()
    assert unit.pid() != before and unit.show("NRestarts") == "1"
    assert_nothing_left(unit)


def test_stop_in_the_middle_of_work(unit):
    """Of the running tasks one ends within the drain and counts; the other is killed with all its survivors
    and requeued, and so are tasks that have not started. The next start runs them, with no attempt used."""
    unit.configure(**PATIENT, shutdown={"drain": "10s"}, retry={"max_attempts": 1}).start()
    machine, go = unit.machine, home(unit, "go")
    fast = unit.add(f"while ! [ -e {go} ]; do sleep 0.05; done")
    unit.add(f"mkdir {home(unit, 'ran')} || exit 0; {survive(unit)}")
    for _ in range(3):
        unit.add("true")
    pids = wait_survivors(unit)
    path = group(unit)
    machine.run("systemctl", "stop", "--no-block", unit.unit)
    unit.event("WORKER_STOPPING")
    machine.path(go).touch()
    [ended] = unit.event("TASK_SUCCEEDED")
    assert ended["LEAT_TASK"] == fast
    machine.wait_show(unit.unit, "ActiveState", lambda state: state == "inactive")
    assert unit.show("Result") == "success", machine.tail()
    figures = unit.figures()
    assert (figures["ready"], figures["running"], figures["dead"]) == (4, 0, 0)
    assert alive(unit, pids) == [] and not inside(machine, path)()
    unit.start()
    unit.event("TASK_SUCCEEDED", count=5)
    assert unit.figures()["dead"] == 0
    assert_nothing_left(unit)


def test_upgrade_under_load(unit):
    """While tasks come in, the program is replaced and the unit restarted again and again: each task runs to
    its end once, never twice at a time, and no attempt is used up."""
    count, machine = 200, unit.machine
    unit.configure(**PATIENT, retry={"max_attempts": 1}).configure(queue={"concurrency": 4}).start()
    where = home(unit, "work")
    machine.run("install", "-d", "-o", "leat", where)
    work = (f'exec 9>{where}/$LEAT_TASK; flock -n 9 || echo $LEAT_TASK >>{where}/overlaps; sleep 0.1; '
            f'echo $LEAT_TASK >>{where}/ends')
    machine.path("/run/work").write_text(work)
    leat = f"leat -c /etc/leat/{unit.name}.ini"
    machine.run("systemd-run", f"--unit={unit.name}-producer", "--collect", "sh", "-c",
                f"for i in $(seq {count}); do {leat} enqueue \"$(cat /run/work)\"; done")
    ends = machine.path(f"{where}/ends")
    for restarts in range(1, 3):
        wait_until(lambda: ends.exists() and len(ends.read_text().split()) > 40 * restarts, 60, machine.tail)
        # a running program is never overwritten: it gets a new file, here one of another length
        machine.run("sh", "-ec", "cp -p /usr/bin/leatd /usr/bin/leatd.new; echo >> /usr/bin/leatd.new; "
                    "mv /usr/bin/leatd.new /usr/bin/leatd")
        before = unit.pid()
        machine.run("systemctl", "restart", unit.unit)
        assert unit.pid() != before
        program = machine.run("stat", "-Lc", "%i", f"/proc/{unit.pid()}/exe", "/usr/bin/leatd").stdout.split()
        assert program[0] == program[1]
    ended = unit.event("TASK_SUCCEEDED", count=count, timeout=120)
    assert len({record["LEAT_TASK"] for record in ended}) == count == len(ended)
    assert sorted(ends.read_text().split()) == sorted(record["LEAT_TASK"] for record in ended)
    assert not machine.path(f"{where}/overlaps").exists()
    wait_until(lambda: unit.figures()["running"] == 0, 20, machine.tail)
    figures = unit.figures()
    assert (figures["ready"], figures["running"], figures["dead"]) == (0, 0, 0)
    assert unit.show("NRestarts") == "0"
    assert_nothing_left(unit)
