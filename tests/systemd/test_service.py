"""Services with a user for each queue: leat init --service makes them, moves queues to them, and a hostile task of
one queue meets a closed door at the others."""
import concurrent.futures
import json
import re
import shutil

import pytest

from harness.polling import wait_until
from unit import ROOT, Unit, inside

pytestmark = pytest.mark.xdist_group("systemd")
PROGRAMS = ("leat", "leatd", "leat-board")


def init(machine, queue, *options, **others):
    return machine.run("leat", "init", "--service", queue, *options, **others)


@pytest.fixture
def own(machine, request):
    """A function that makes a queue with a user of its own: own(name), which is started."""
    made = []

    def make(name, **sections):
        unit = Unit(machine, name)
        made.append(unit)
        init(machine, name)
        return unit.configure(**sections).start()
    yield make
    for unit in made:
        machine.run("systemctl", "kill", "-s", "KILL", unit.unit, check=False)
        machine.run("systemctl", "stop", unit.unit, check=False)


def user_of(machine, unit):
    return machine.run("ps", "-o", "user:40=", "-p", machine.show(unit, "MainPID")).stdout.strip()


def said(unit, command, *fields):
    """What a task prints, line by line."""
    task = unit.add(command, *fields)
    unit.event("TASK_SUCCEEDED", f"LEAT_TASK={task}", timeout=60)
    return unit.machine.run("leat", "-q", unit.name, "logs", task, check=False).stdout.splitlines()


def test_a_new_queue(machine, own):
    """One command makes user, group, drop-in and a first configuration; worker and tasks run as that user, in
    folders of its own that are closed to others."""
    done = init(machine, "alpha")
    assert done.stdout == ("alpha runs as user leat-alpha with /etc/leat/alpha.ini; "
                           "start it: systemctl enable --now leatd@alpha\n")
    assert "name = alpha\n" in machine.path("/etc/leat/alpha.ini").read_text()
    assert machine.run("leatd", "-t", "-q", "alpha").stdout.endswith("ok (checked as user leat-alpha)\n")
    assert machine.run("id", "-Gn", "leat-alpha").stdout.split() == ["leat-alpha", "leat"]
    unit = own("alpha", output={"to": "file"})
    assert user_of(machine, unit.unit) == "leat-alpha"
    assert said(unit, "id -un; pwd; echo $HOME") == ["leat-alpha", *["/var/lib/leat-alpha"] * 2]
    folders = [f"{top}/leat-alpha" for top in ("/var/lib", "/var/log", "/run")]
    assert machine.run("stat", "-c", "%U:%G %a", *folders).stdout.splitlines() == [
        *["leat-alpha:leat-alpha 750"] * 2, "leat-alpha:leat-alpha 755"]
    # again: nothing changes, and what an administrator wrote stays
    before = machine.path("/etc/leat/alpha.ini").read_text()
    init(machine, "alpha")
    assert machine.path("/etc/leat/alpha.ini").read_text() == before
    assert machine.run("logrotate", "-d", "/etc/logrotate.d/leat-alpha").returncode == 0


@pytest.mark.parametrize("queue, user", [
    ("Mail.Out:1", r"leat_mail_out_1_[0-9a-f]{8}"), ("a" * 27, r"leat_a{17}_[0-9a-f]{8}"),
    ("tls", r"leat_tls_[0-9a-f]{8}"), ("b" * 26, r"leat-b{26}")])
def test_names(machine, own, queue, user):
    """Every name of a queue has a user with a portable name of at most 31 bytes."""
    unit = own(queue)
    found = user_of(machine, unit.unit)
    assert re.fullmatch(user, found) and len(found) <= 31
    assert said(unit, "id -un") == [found]


def test_a_taken_name(machine):
    """A user that was made for something else is left alone, and the queue does not get it."""
    machine.run("useradd", "--system", "leat-taken")
    done = init(machine, "taken", check=False)
    assert done.returncode == 73 and "user leat-taken exists and was not made for this queue" in done.stderr
    assert not inside(machine, "/etc/systemd/system/leatd@taken.service.d")()


def test_a_taken_group(machine):
    """Users that are in a group of that name already would be able to read the queue's files: the queue does not
    get it. A group without members is taken, as an interrupted leat init --service leaves it."""
    machine.run("useradd", "--system", "reader")
    for name, join in ("shut", ("gpasswd", "-a", "reader")), ("prime", ("usermod", "reader", "-g")):
        machine.run("groupadd", f"leat-{name}")
        machine.run(*join, f"leat-{name}")
        done = init(machine, name, check=False)
        assert done.returncode == 73 and f"group leat-{name} exists and has members, such as reader" in done.stderr
        assert machine.run("id", f"leat-{name}", check=False).returncode != 0
        assert not inside(machine, f"/etc/systemd/system/leatd@{name}.service.d")()
    machine.run("groupadd", "leat-open")
    init(machine, "open")
    # members that an administrator adds later are no obstacle
    machine.run("gpasswd", "-a", "reader", "leat-open")
    init(machine, "open")


def test_two_queues_with_one_name(machine):
    """Two queues whose mapped names are the same by an accident of the hash do not get one user."""
    first, second = "thumbnails-of-customer-412789", "thumbnails-of-customer-649192"
    init(machine, first)
    done = init(machine, second, check=False)
    assert done.returncode == 73 and "user leat_thumbnails-of-cus_" in done.stderr
    assert f"was not made for this queue: its comment is 'leat queue {first}'" in done.stderr
    assert not inside(machine, f"/etc/systemd/system/leatd@{second}.service.d")()
    init(machine, first)


def test_only_root(machine):
    """Other users are told that it needs root; and options that do not belong together are refused."""
    done = machine.run("setpriv", "--reuid=games", "--clear-groups", "leat", "init", "--service", "x", check=False)
    assert done.returncode == 77 and "only root" in done.stderr
    wrong = ["--shared"], ["--service", "x", "--json"], ["--service", "x", "-q", "y"], ["--service", "../x"]
    for options in wrong:
        assert machine.run("leat", "init", *options, check=False).returncode == 64


def test_without_it(fresh_machine):
    """A queue that nobody gave a user does not start, by accident, as one that others have too."""
    fresh_machine.path("/etc/leat/emails.ini").write_text("[queue]\nname = emails\n")
    done = fresh_machine.run("systemctl", "start", "leatd@emails", check=False)
    assert done.returncode != 0 and "Assertion failed" in done.stderr
    fresh_machine.run("leat", "init", "--service", "emails")
    fresh_machine.run("systemctl", "start", "leatd@emails")
    assert user_of(fresh_machine, "leatd@emails") == "leat-emails"


GROUPS = "/sys/fs/cgroup/leat.slice/leatd@victim.service"
ESCAPES = {
    "signal the worker": "kill -9 {worker}",
    "signal a task": "kill -9 {task}",
    "read the environment of a task": "cat /proc/{task}/environ",
    "read the memory of a task": "dd if=/proc/{task}/mem bs=1 count=1",
    "see a task": "ls /proc/{task}",
    "enter the home": "ls /var/lib/leat-victim",
    "read a file in the home": "cat /var/lib/leat-victim/secret",
    "read the output": "cat /var/log/leat-victim/victim/*",
    "replace a lock file": "mv -f /run/leat-victim/victim/* /tmp",
    "write a lock file": "sh -c ': >/run/leat-victim/victim/x'",
    "open a lock file": "cat /run/leat-victim/victim/*",
    "replace the folder of lock files": "mv /run/leat-victim /run/x",
    "replace the home": "mv /var/lib/leat-victim /var/lib/x",
    "read the configuration": "cat /etc/leat/victim.ini",
    "kill by the cgroup": f"sh -c 'echo 1 >{GROUPS}/cgroup.kill'",
    "enter a cgroup": f"sh -c 'echo 0 >{GROUPS}/tasks/cgroup.procs'",
    "stop the unit": "systemctl --no-ask-password stop leatd@victim",
    "kill by a task's cgroup": f"sh -c 'echo 1 >{GROUPS}/tasks/0/cgroup.kill'",
}


def test_a_hostile_task(machine, own):
    """A task of another queue can neither end, see nor read a worker and its tasks, and cannot make others
    believe that the worker is dead."""
    victim = own("victim", output={"to": "file"}, isolation={"cgroup": "required"}, queue={"scan": "1s"})
    machine.run("chgrp", "leat-victim", "/etc/leat/victim.ini")
    machine.path("/etc/leat/victim.ini").chmod(0o640)
    release = "/run/victim.go"
    running = victim.add("echo mine >secret; echo said; sleep 4321 & echo $! >pid; "
                         f"while ! [ -e {release} ]; do sleep 0.05; done; kill $!")
    wait_until(inside(machine, "/var/lib/leat-victim/pid"), 20, machine.tail)
    task = wait_until(lambda: machine.path("/var/lib/leat-victim/pid").read_text().strip(), 20)
    for name in ("read the environment of a task", "see a task", "enter the home", "read a file in the home",
                 "read the output", "open a lock file", "read the configuration"):  # the commands do what they say
        machine.run("setpriv", "--reuid=leat-victim", "--regid=leat-victim", "--clear-groups", "sh", "-c",
                    ESCAPES[name].format(worker=victim.pid(), task=task))
    for group in ("", "/tasks/0"):
        assert inside(machine, f"{GROUPS}{group}/cgroup.kill")()
    hostile = own("hostile", retry={"max_attempts": 1})
    script = "".join(f"if {command.format(worker=victim.pid(), task=task)} >/dev/null 2>&1; "
                     f"then echo {json.dumps(name)}; fi; " for name, command in ESCAPES.items())
    assert said(hostile, script + "echo tried") == ["tried"]
    machine.path(release).touch()
    victim.event("TASK_SUCCEEDED", f"LEAT_TASK={running}")
    assert victim.show("NRestarts") == "0"


# ---- queues that share the user leat


def test_move(unit):
    """A queue that runs as leat moves: refused without --move, since that stops it; then its task in flight ends
    first, the group of its file becomes the new one, and old output is still found."""
    machine = unit.machine
    unit.configure(output={"to": "file"}, queue={"concurrency": 1}).start()
    assert user_of(machine, unit.unit) == "leat"
    config = f"/etc/leat/{unit.name}.ini"
    machine.run("chgrp", "leat", config)
    machine.path(config).chmod(0o640)
    go = f"/run/{unit.name}.go"
    old = unit.add(f"echo before; while ! [ -e {go} ]; do sleep 0.05; done; id -un")
    wait_until(lambda: "before" in machine.run("leat", "-c", config, "logs", old, check=False).stdout, 20,
               machine.tail)
    refused = init(machine, unit.name, check=False)
    assert refused.returncode == 75 and "is running as user leat: add --move" in refused.stderr
    assert user_of(machine, unit.unit) == "leat"
    with concurrent.futures.ThreadPoolExecutor() as pool:
        moving = pool.submit(init, machine, unit.name, "--move")
        machine.wait_show(unit.unit, "ActiveState", lambda state: state == "deactivating")
        machine.path(go).touch()
        done = moving.result()
    user = f"leat-{unit.name}"
    assert done.stdout == f"{unit.name} runs as user {user} with {config}\n"
    assert user_of(machine, unit.unit) == user
    assert machine.run("leat", "-q", unit.name, "logs", old).stdout == "before\nleat\n"
    assert said(unit, "id -un") == [user]
    assert machine.run("stat", "-c", "%G %a", config).stdout == f"{user} 640\n"
    # and back
    init(machine, unit.name, "--move", "--shared")
    assert user_of(machine, unit.unit) == "leat"


def test_a_move_that_fails(unit):
    """If the worker cannot run as the new user, it runs as before again, and the command says so."""
    machine = unit.machine
    machine.run("redis-cli", "-s", "/run/test-redis/redis.sock", "acl", "setuser", "mover", "on", ">secret", "~*",
                "&*", "+@all")
    machine.run("sh", "-ec", "cd /etc/leat; printf secret >mover; chown leat mover; chmod 600 mover")
    unit.configure(redis={"user": "mover", "password_file": "/etc/leat/mover"}).start()
    done = init(machine, unit.name, "--move", check=False)
    assert done.returncode == 71 and "it runs as user leat again" in done.stderr
    assert user_of(machine, unit.unit) == "leat"
    unit.add("true")
    unit.event("TASK_SUCCEEDED")


def test_an_upgrade_keeps_users(fresh_machine):
    """make install over a version whose unit had the user leat writes drop-ins by which its queues keep it,
    running ones too; it writes none for queues that come later."""
    machine = fresh_machine
    for name in ("Makefile", "conf", "systemd", "src", "README.md", "LICENSE"):
        source, target = ROOT / name, machine.path(f"/srv/leat/{name}")
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    shutil.copytree(machine.path("/usr/bin"), machine.path("/srv/leat/build"), symlinks=True,
                    ignore=lambda folder, names: [name for name in names if name not in PROGRAMS])
    unit = machine.path("/usr/lib/systemd/system/leatd@.service")
    text = unit.read_text()
    unit.write_text("".join(line for line in text.splitlines(True) if "00-user.conf" not in line))
    machine.run("systemctl", "daemon-reload")
    for queue in ("emails", "a.B:c"):
        machine.path(f"/etc/leat/{queue}.ini").write_text("[queue]\nname = emails\n")
    machine.run("systemctl", "start", "leatd@emails", "leatd@a.B:c")
    before = machine.show("leatd@emails", "MainPID")
    for _ in range(2):
        machine.run("make", "-C", "/srv/leat", "install-files", "PREFIX=/usr")
        assert unit.read_text() == text
        assert machine.show("leatd@emails", "MainPID") == before
        machine.run("systemctl", "restart", "leatd@emails", "leatd@a.B:c")
        assert user_of(machine, "leatd@emails") == user_of(machine, "leatd@a.B:c") == "leat"
        before = machine.show("leatd@emails", "MainPID")
        machine.path("/etc/leat/later.ini").write_text("[queue]\nname = later\n")
    assert not inside(machine, "/etc/systemd/system/leatd@later.service.d")()
