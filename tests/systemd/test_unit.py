"""leatd@.service as systemd runs it: the unit, the user and the programs of `make install`, on a machine that
really boots."""
import os
import re
import shutil

import pytest

from harness.daemon import is_sanitized
from harness.polling import wait_until
from unit import ROOT, SOCKET, Unit, inside, message_id

pytestmark = pytest.mark.xdist_group("systemd")


def test_starts_and_tells_its_state(unit):
    """systemctl start returns when the worker is ready; STATUS= is readable text; the user is leat."""
    unit.start()
    assert unit.show("ActiveState") == "active"
    assert unit.show("Type") == "notify"
    assert unit.show("Slice") == "leat.slice"
    unit.machine.wait_show(unit.unit, "StatusText", lambda text: text != "")
    assert unit.machine.run("ps", "-o", "user=", "-p", unit.pid()).stdout.strip() == "leat"


def test_soon_runs_beside_busy_tasks(unit):
    """The unit lets the worker ask for short time slices, of which its tasks get none."""
    unit.start()
    assert "SCHED_RESET_ON_FORK" in unit.machine.run("chrt", "-p", unit.pid()).stdout
    unit.add("chrt -p $$")
    [line, *_] = unit.event("TASK_OUTPUT", count=2)
    assert line["MESSAGE"].endswith(": SCHED_OTHER")


def test_journal_fields(unit):
    """A task's end and its output are records whose fields have queue, task, attempt and stream."""
    unit.start()
    task = unit.add("echo out; echo err >&2; exit 0")
    [ended] = unit.event("TASK_SUCCEEDED")
    assert ended["LEAT_TASK"] == task
    assert ended["LEAT_ATTEMPT"] == "1"
    assert ended["LEAT_EVENT"]
    assert ended["LEAT_EXIT_STATUS"] == "0"
    assert int(ended["LEAT_DURATION_USEC"]) > 0
    assert int(ended["PRIORITY"]) in (5, 6, 7)
    assert ended["_SYSTEMD_UNIT"] == f"{unit.unit}.service"
    lines = unit.event("TASK_OUTPUT", f"LEAT_TASK={task}", count=2)
    assert {(line["LEAT_STREAM"], line["MESSAGE"]) for line in lines} == {("stdout", "out"), ("stderr", "err")}


def test_failures_are_errors(unit):
    """A task without attempts left is an error in the journal, by its status and its priority."""
    unit.configure(retry={"max_attempts": 1}).start()
    task = unit.add("exit 3")
    [dead] = unit.event("TASK_DEAD")
    assert dead["LEAT_TASK"] == task
    assert dead["LEAT_EXIT_STATUS"] == "3"
    assert int(dead["PRIORITY"]) <= 4


def test_reload_takes_new_values(unit):
    """systemctl reload returns when the new file is in use; the process stays the same."""
    unit.configure(retry={"max_attempts": 1}, task={"environment": "COLOUR=red"}).start()
    before = unit.pid()
    unit.configure(task={"environment": "COLOUR=blue"})
    unit.machine.run("systemctl", "reload", unit.unit)
    unit.event("CONFIG_RELOADED")
    unit.add('echo "colour $COLOUR"')
    [line] = unit.event("TASK_OUTPUT")
    assert line["MESSAGE"] == "colour blue"
    assert unit.pid() == before
    assert unit.show("ActiveState") == "active"


def test_reload_of_a_broken_file_changes_nothing(unit):
    """The error in a broken file is logged with its line, and the worker goes on unchanged."""
    unit.start()
    before = unit.pid()
    unit.write("[queue]\nname = x\nconcurency = 3\n")
    unit.machine.run("systemctl", "reload", unit.unit, check=False)
    [told, *_] = unit.event("CONFIG_REJECTED")
    assert f"{unit.name}.ini:3" in told["MESSAGE"]
    unit.add("true")
    unit.event("TASK_SUCCEEDED")
    assert unit.pid() == before
    assert unit.show("ActiveState") == "active"


def test_broken_config_is_not_tried_again(unit):
    """An invalid file fails the start with 78, and systemd does not retry."""
    unit.write("[queue]\nnme = x\n")
    assert unit.machine.run("systemctl", "start", unit.unit, check=False).returncode != 0
    assert unit.show("ExecMainStatus") == "78"
    unit.machine.wait_show(unit.unit, "ActiveState", lambda state: state == "failed")
    assert unit.show("NRestarts") == "0"


def test_check_as_the_user_of_the_unit(unit):
    """leatd -t run as root reads the file as User= of the unit, with its drop-ins."""
    machine = unit.configure().machine
    file = machine.path(f"/etc/leat/{unit.name}.ini")

    def check():
        return machine.run("leatd", "-t", "-q", unit.name, check=False)

    assert check().stdout == f"/etc/leat/{unit.name}.ini: ok (checked as user leat)\n"
    machine.run("chown", "root:games", f"/etc/leat/{unit.name}.ini")
    file.chmod(0o640)
    done = check()
    assert done.returncode == 78 and "cannot open: Permission denied" in done.stdout + done.stderr
    unit.drop_in("[Service]\nUser=games\nGroup=games\n")
    assert check().stdout == f"/etc/leat/{unit.name}.ini: ok (checked as user games)\n"


def test_watchdog_lives_with_a_redis_outage(unit):
    """If Redis does not answer, it is an outage, not a hang: systemd leaves the worker alone."""
    machine = unit.machine
    own = f"/run/{unit.name}"
    machine.run("systemd-run", f"--unit={unit.name}-redis", "-p", f"RuntimeDirectory={unit.name}",
                "redis-server",
                "--port", "0", "--unixsocket", f"{own}/sock", "--unixsocketperm", "777", "--save", "",
                "--dir", own)
    wait_until(inside(machine, f"{own}/sock"), 20, machine.tail)
    unit.configure(redis={"socket": f"{own}/sock", "command_timeout": "500ms"})
    unit.drop_in("[Service]\nWatchdogSec=10s\n").start()
    before = unit.pid()
    machine.run("systemctl", "kill", "-s", "KILL", f"{unit.name}-redis")
    unit.event("REDIS_DOWN")
    # longer than the watchdog's period: a task of systemd's own is the clock
    machine.run("systemd-run", "--wait", "sleep", "12")
    assert unit.pid() == before and unit.show("NRestarts") == "0"


def test_stop_waits_for_running_tasks(unit):
    """systemctl stop lets a task finish, says what it waits for, and ends cleanly."""
    unit.configure(shutdown={"drain": "60s"}).start()
    release = f"/run/{unit.name}.go"
    os.mkfifo(unit.machine.path(release), 0o644)
    task = unit.add(f"echo begun; cat {release}; echo finished")
    unit.event("TASK_OUTPUT")
    unit.machine.run("systemctl", "stop", "--no-block", unit.unit)
    unit.event("WORKER_STOPPING")
    unit.machine.path(release).write_text("")
    [ended] = unit.event("TASK_SUCCEEDED")
    assert ended["LEAT_TASK"] == task
    unit.machine.wait_show(unit.unit, "ActiveState", lambda state: state == "inactive")
    assert unit.show("Result") == "success", unit.machine.tail()
    unit.event("WORKER_STOPPED")


def test_stop_releases_what_does_not_end(unit):
    """A task that outlives the drain is killed and requeued uncounted; TimeoutStopSec is not reached although
    it is shorter than the drain."""
    unit.configure(shutdown={"drain": "3s"}, task={"kill_grace": "300ms"})
    unit.drop_in("[Service]\nTimeoutStopSec=2s\n").start()
    unit.add("trap '' TERM; echo begun; exec tail -f /dev/null")
    unit.event("TASK_OUTPUT")
    unit.machine.run("systemctl", "stop", unit.unit)
    assert unit.show("Result") == "success", unit.machine.tail()
    unit.event("TASK_RELEASED")
    figures = unit.figures()
    assert (figures["ready"], figures["running"], figures["dead"]) == (1, 0, 0)


def test_hardening_does_not_hurt_shell_tasks(unit):
    """Under the unit's restrictions a shell task writes files, starts pipelines and runs python and curl."""
    unit.configure(retry={"max_attempts": 1}).start()
    unit.add("set -e; date > $HOME/file; cat < $HOME/file | sort >/dev/null; touch /tmp/t /var/tmp/t; "
             "python3 -c 'import json, subprocess; subprocess.run([\"true\"], check=True)'; "
             "curl --version >/dev/null; ! touch /etc/x 2>/dev/null; ulimit -n")
    [line] = unit.event("TASK_OUTPUT")
    assert line["MESSAGE"] == "1024"
    unit.event("TASK_SUCCEEDED")


def test_tasks_start_in_the_home(unit):
    """A shell task writes files by relative paths in the home that the unit makes for leat, and so does leat
    run."""
    unit.configure(retry={"max_attempts": 1}).start()
    file = f"{unit.name}.txt"
    unit.add(f"set -e; date > {file}; pwd; printenv HOME PWD; stat -c '%U %a' .")
    lines = [line["MESSAGE"] for line in unit.event("TASK_OUTPUT", count=4)]
    assert lines == ["/var/lib/leat"] * 3 + ["leat 750"]
    assert unit.machine.path(f"/var/lib/leat/{file}").stat().st_size > 0
    unit.machine.run("sh", "-c", "tar -C /etc -c hostname | "
                     f"leat -c /etc/leat/{unit.name}.ini run --stdin 'tar x'")
    assert unit.machine.path("/var/lib/leat/hostname").exists()


def test_password_as_credential(unit):
    """LoadCredential and password_credential pass a password; tasks do not see the credential."""
    machine = unit.machine
    machine.run("redis-cli", "-s", SOCKET, "acl", "setuser", "worker", "on", ">secret", "~*", "&*", "+@all")
    machine.path("/etc/leat/secret").write_text("secret\n")
    machine.path("/etc/leat/secret").chmod(0o600)
    unit.configure(redis={"user": "worker", "password_credential": "redis"})
    unit.drop_in("[Service]\nLoadCredential=redis:/etc/leat/secret\n").start()
    unit.add('echo "seen: ${CREDENTIALS_DIRECTORY:-nothing}"')
    [line] = unit.event("TASK_OUTPUT")
    assert line["MESSAGE"] == "seen: nothing"


def shipped(name):
    return (ROOT / "systemd" / name).read_text()


def example_drop_in(begin):
    """The drop-in in the comments at the end of the unit file whose explanation begins so."""
    lines = shipped("leatd@.service").split(f"# {begin}")[1].splitlines()
    first = lines.index("#   [Service]")
    last = lines.index("#", first)
    return "".join(line.removeprefix("#   ") + "\n" for line in lines[first:last])


def test_tasks_that_gain_rights(unit):
    """With the example of a drop-in for sudo, a program with a set-user-ID bit has the rights of its owner in a
    task; without it, it has not."""
    machine = unit.machine
    machine.run("install", "-m", "4755", "/usr/bin/id", "/usr/local/bin/id-of-root")
    unit.configure(task={"no_new_privileges": "no"}).start()
    unit.add("id-of-root -u")
    assert unit.event("TASK_OUTPUT")[0]["MESSAGE"] == machine.run("id", "-u", "leat").stdout.strip()
    unit.drop_in(example_drop_in("Tasks that use sudo"))
    machine.run("systemctl", "restart", unit.unit)
    unit.add("id-of-root -u")
    assert unit.event("TASK_OUTPUT", count=2)[1]["MESSAGE"] == "0"


def test_tasks_of_another_user(unit):
    """With the drop-in tasks run as another user, without its capabilities: they cannot read the credential
    with the password, the daemon kills them at a timeout, and processes of their session are killed with
    them."""
    machine = unit.machine
    machine.run("redis-cli", "-s", SOCKET, "acl", "setuser", "other", "on", ">secret", "~*", "&*", "+@all")
    machine.path("/etc/leat/other").write_text("secret\n")
    machine.path("/etc/leat/other").chmod(0o600)
    unit.configure(redis={"user": "other", "password_credential": "redis"}, retry={"max_attempts": 1},
                   isolation={"cgroup": "required"},
                   task={"user": "games", "kill_grace": "200ms"})
    unit.drop_in(shipped("leatd-other-user.conf") + "LoadCredential=redis:/etc/leat/other\n").start()
    unit.add("echo $(id -un) $(id -G) $HOME; "
             "grep -h -e CapEff -e CapBnd -e NoNewPrivs /proc/self/status | tr -s '[:space:]' ' '; "
             "! cat /run/credentials/*/redis 2>/dev/null || echo readable; echo said >/dev/stderr")
    lines = [line["MESSAGE"] for line in unit.event("TASK_OUTPUT", count=3)]
    groups = machine.run("id", "-G", "games").stdout.strip()
    home = machine.run("getent", "passwd", "games").stdout.split(":")[5]
    assert sorted(lines) == sorted([f"games {groups} {home}",
                                    "CapEff: 0000000000000000 CapBnd: 00000000000000e0 NoNewPrivs: 1 ", "said"])
    unit.event("TASK_SUCCEEDED")
    unit.add("trap '' TERM; set -m; sleep 1234 & sleep 1234", "timeout", "1s")
    unit.event("TASK_DEAD")
    wait_until(lambda: machine.run("pgrep", "-u", "games", "sleep", check=False).returncode == 1)  # and reaped


OWN_GROUPS = "/sys/fs/cgroup/leat.slice/{unit}.service"
FROM_OTHER_USER = {
    "signal leatd": "kill -0 {worker}",
    "signal a guard": "kill -0 {guard}",
    "read the environment of leatd": "cat /proc/{worker}/environ",
    "read the memory of leatd": "dd if=/proc/{worker}/mem bs=1 count=0",
    "list the descriptors of leatd": "ls /proc/{worker}/fd",
    "read the environment of a guard": "cat /proc/{guard}/environ",
    "list the descriptors of a guard": "ls /proc/{guard}/fd",
    "read the configuration": "cat /etc/leat/{name}.ini",
    "read a credential": "cat /run/credentials/{unit}.service/secret",
    "read the output of a task": "cat /var/log/leat/{name}/*",
    "read a lock file": "cat /run/leat/{name}/*",
    "make a lock file": "touch /run/leat/{name}/other",
    "leave the cgroup": "sh -c 'echo 0 >" + OWN_GROUPS + "/daemon/cgroup.procs'",
    "change a limit": "sh -c 'echo max >" + OWN_GROUPS + "/tasks/0/pids.max'",
    "freeze leatd": "sh -c 'echo 0 >" + OWN_GROUPS + "/daemon/cgroup.freeze'",
}


def test_a_hostile_task_of_another_user(unit):
    """With [task] user, a task cannot end, stop, read or replace anything of its own leatd."""
    machine = unit.machine
    machine.path("/etc/leat/secret").write_text("secret")
    unit.configure(retry={"max_attempts": 1}, isolation={"cgroup": "required"}, task={"user": "games"},
                   output={"to": "file"})
    unit.drop_in(shipped("leatd-other-user.conf") + "LoadCredential=secret:/etc/leat/secret\n").start()
    machine.path(f"/etc/leat/{unit.name}.ini").chmod(0o640)
    guard = machine.run("pgrep", "-x", "-P", str(unit.pid()), "leat-guard").stdout.split()[0]
    names = {"worker": unit.pid(), "guard": guard, "name": unit.name, "unit": unit.unit}
    commands = {name: command.format(**names) for name, command in FROM_OTHER_USER.items()}
    said = unit.add("echo said")
    unit.event("TASK_SUCCEEDED", f"LEAT_TASK={said}")
    for name, command in commands.items():  # the commands do what they say; not all machines have that limit
        if name not in ("leave the cgroup", "change a limit"):
            machine.run("sh", "-c", command)
    script = "".join(f"if {command} >/dev/null 2>&1; then echo '{name}'; fi; "
                     for name, command in commands.items())
    task = unit.add(script + "echo tried")
    unit.event("TASK_SUCCEEDED", f"LEAT_TASK={task}")
    assert logs(unit, task).stdout.splitlines() == ["tried"]


def filters_of(unit, pid):
    status = unit.machine.path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^Seccomp_filters:\s+(\d+)", status, re.M)[1])


@pytest.mark.parametrize("drop_in", [None, "leatd-other-user.conf", "leatd-strict.conf"])
def test_guards_are_filtered(unit, drop_in):
    """With each of the shipped settings of the unit, guards have a filter of their own."""
    if drop_in == "leatd-strict.conf" and not unit.machine.has_user_namespaces():
        pytest.skip("no user namespaces here, which PrivateUsers= needs, as in a chroot")
    if drop_in:
        unit.drop_in(shipped(drop_in))
    unit.configure(task={"user": "games"} if drop_in == "leatd-other-user.conf" else {}).start()
    guards = unit.machine.run("pgrep", "-x", "-P", str(unit.pid()), "leat-guard").stdout.split()
    assert len(guards) == 2
    assert [filters_of(unit, pid) for pid in guards] == [filters_of(unit, unit.pid()) + 1] * 2


def test_users_are_bounded_at_the_start(unit):
    """A leatd that runs tasks as another user can change to that user only: tasks, and so leatd, have a filter
    that allows no user namespace; a reload that names another user is refused and names the restart."""
    machine = unit.machine
    unit.configure(retry={"max_attempts": 1}, isolation={"cgroup": "required"}, task={"user": "games"})
    unit.drop_in(shipped("leatd-other-user.conf")).start()

    def user(number):
        unit.add("id -un")
        return unit.event("TASK_OUTPUT", count=number)[-1]["MESSAGE"]

    assert user(1) == "games"
    unit.add("grep Seccomp_filters /proc/self/status | tr -dc 0-9; echo; ! unshare -U true 2>&1")
    lines = [line["MESSAGE"] for line in unit.event("TASK_OUTPUT", count=3)[1:]]
    assert lines == [str(filters_of(unit, unit.pid())), "unshare: unshare failed: Operation not permitted"]
    unit.configure(task={"user": "news"})
    machine.run("systemctl", "reload", unit.unit, check=False)
    told = unit.event("CONFIG_REJECTED")
    assert "[task] user, group" in told[0]["MESSAGE"] and f"systemctl restart {unit.unit}" in told[0]["MESSAGE"]
    assert user(4) == "games"
    unit.configure(task={"user": "games", "umask": "077"})
    machine.run("systemctl", "reload", unit.unit)
    unit.event("CONFIG_RELOADED")
    assert user(5) == "games"
    unit.configure(task={"user": "news"})
    machine.run("systemctl", "restart", unit.unit)
    assert user(6) == "news"


def test_without_the_drop_in(unit):
    """A user for tasks without the rights for it is an error of the configuration, with what to do."""
    unit.configure(task={"user": "games"})
    unit.machine.run("systemctl", "start", unit.unit, check=False)
    unit.machine.wait_show(unit.unit, "ActiveState", lambda state: state == "failed")
    assert unit.show("ExecMainStatus") == "78"
    [why] = unit.event("CONFIG_REJECTED")
    assert "CAP_SETUID, CAP_SETGID, CAP_KILL" in why["MESSAGE"] and "leatd-other-user.conf" in why["MESSAGE"]


def test_the_strict_drop_in(unit):
    """Tasks that need little work under all restrictions of the drop-in, and these are in force."""
    if not unit.machine.has_user_namespaces():
        pytest.skip("no user namespaces here, which PrivateUsers= needs, as in a chroot")
    # also without clone3
    unit.configure(retry={"max_attempts": 1}, isolation={"cgroup": "required"})
    unit.drop_in(shipped("leatd-strict.conf")).start()
    unit.add("set -e; date > $HOME/file; cat < $HOME/file | sort >/dev/null; touch /tmp/t /var/log/leat/t; "
             "python3 -c 'import json, subprocess; subprocess.run([\"true\"], check=True)'; "
             "for path in /etc/x /usr/x /var/tmp/../x /opt/x; do ! touch $path; done; "
             "! chown games $HOME/file; ! unshare -U true; "
             "! python3 -c 'import mmap; mmap.mmap(-1, 4096, prot=7)'; ! ls /home/* /root", "payload", "x")
    unit.event("TASK_SUCCEEDED")
    unit.add("sleep 60", "timeout", "500ms")
    unit.event("TASK_DEAD")
    assert unit.show("NRestarts") == "0"


def test_wrong_password_is_not_tried_again(unit):
    """Refused credentials end the worker with 77, and an operator must act."""
    unit.configure(redis={"user": "nobody", "password": "wrong"})
    unit.machine.run("systemctl", "start", unit.unit, check=False)
    unit.machine.wait_show(unit.unit, "ActiveState", lambda state: state == "failed")
    assert unit.show("ExecMainStatus") == "77"
    assert unit.show("NRestarts") == "0"


def test_operators_are_in_the_journal(unit):
    """A change by an operator is a record with the user, also behind sudo; a read leaves none."""
    def leat(*words):
        unit.machine.run("env", "SUDO_USER=alice", "leat", "-c", f"/etc/leat/{unit.name}.ini", *words)

    host = unit.machine.run("hostname").stdout.strip()
    unit.configure(retry={"max_attempts": 1}).start()
    task = unit.add("exit 65")
    wait_until(lambda: unit.figures()["dead"] == 1, 20, unit.machine.tail)  # the record comes before the letter
    leat("conf")
    leat("dead", "list")
    leat("conf", "lease", "30s")
    leat("dead", "drop", "--yes", "--all")
    leat("pause")
    leat("pause")
    leat("drain", host)
    waiting = unit.add("true")
    leat("move", "--lane", "a", waiting)
    leat("edit", waiting, "--timeout", "5m", "--unset", "lane", "--delay", "1h")
    leat("now", waiting)
    leat("now", waiting)
    leat("cancel", waiting)
    unit.machine.run("redis-cli", "-s", SOCKET, "lpush", "old", "true", "false")
    leat("import", "--field", "command", "old")
    changed, dropped, paused, drained, *waited, cancelled, imported = unit.event("OPERATOR", count=9)
    assert changed["LEAT_OPERATOR"] == dropped["LEAT_OPERATOR"] == f"alice@{host}"
    assert changed["LEAT_EVENT"] == "operator-conf" and changed["PRIORITY"] == "5"
    assert changed["MESSAGE"] == f"alice@{host} set lease to 30s"
    assert (dropped["LEAT_EVENT"], dropped["LEAT_COUNT"]) == ("operator-dead-drop", "1")
    assert dropped["LEAT_TASK"] == task
    assert paused["MESSAGE"] == f"alice@{host} paused the queue"
    assert drained["MESSAGE"] == f"alice@{host} drained {host}"
    assert [(one["LEAT_EVENT"], one["MESSAGE"]) for one in waited] == [
        ("operator-move", f"alice@{host} moved 1 task to lane a: {waiting}"),
        ("operator-edit", f"alice@{host} edited 1 task (lane, timeout, due time): {waiting}"),
        ("operator-now", f"alice@{host} made 1 task due: {waiting}")]
    assert (cancelled["LEAT_EVENT"], cancelled["LEAT_COUNT"]) == ("operator-cancel", "1")
    assert (imported["LEAT_EVENT"], imported["LEAT_COUNT"]) == ("operator-import", "2")
    assert imported["MESSAGE"] == f"alice@{host} moved 2 items into the queue"


def test_a_periodic_task(machine, request):
    """The example of a timer: its task is enqueued as the user leat, once for many hosts, and runs."""
    unit = Unit(machine, "thumbnails").configure()
    request.addfinalizer(lambda: machine.run("systemctl", "stop", "nightly.timer", "nightly.service", unit.unit))
    for name in ("nightly.service", "nightly.timer"):
        shutil.copy(ROOT / "conf" / name, machine.path("/etc/systemd/system"))
    drop_in = machine.path("/etc/systemd/system/nightly.timer.d")
    drop_in.mkdir()
    (drop_in / "test.conf").write_text("[Timer]\nOnCalendar=\nOnActiveSec=1s\nAccuracySec=100ms\n")
    machine.run("systemctl", "daemon-reload")
    machine.run("sh", "-ec", "cd /var/lib/leat; mkdir thumbnails; touch -d '31 days ago' thumbnails/old; "
                "touch thumbnails/new; chown -R leat: thumbnails")
    machine.run("systemctl", "start", "nightly.timer")
    wait_until(lambda: unit.figures()["ready"] == 1, 20, machine.tail)
    machine.run("systemctl", "start", "nightly.service")
    assert machine.show("nightly.service", "Result") == "success"
    assert unit.figures()["ready"] == 1
    unit.start()
    unit.event("TASK_SUCCEEDED")
    wait_until(lambda: unit.figures()["ready"] == unit.figures()["running"] == 0, 20, machine.tail)
    # another host's timer, when the task is over
    machine.run("systemctl", "start", "nightly.service")
    assert machine.show("nightly.service", "Result") == "success"
    assert unit.figures()["ready"] == unit.figures()["running"] == 0
    assert machine.run("ls", "/var/lib/leat/thumbnails").stdout.split() == ["new"]


def logs(unit, *words, **options):
    return unit.machine.run("leat", "-c", f"/etc/leat/{unit.name}.ini", "logs", *words, check=False, **options)


def test_logs_of_a_task(unit):
    """leat logs prints a task's output from the real journal, each stream apart, and follows it to the end."""
    unit.configure(retry={"max_attempts": 2, "base": "100ms"}).start()
    task = unit.add("echo out $LEAT_ATTEMPT; echo err $LEAT_ATTEMPT >&2; exit 1")
    unit.event("TASK_DEAD", f"LEAT_TASK={task}")
    done = logs(unit, task)
    assert (done.returncode, done.stdout, done.stderr) == (0, "out 1\nout 2\n", "err 1\nerr 2\n")
    slow = unit.add(f"echo begun; while ! [ -e /run/{unit.name}.go ]; do sleep 0.05; done; echo through")
    unit.event("TASK_OUTPUT", f"LEAT_TASK={slow}")
    unit.machine.run("systemd-run", "--on-active=1s", "--timer-property=AccuracySec=100ms", "touch",
                     f"/run/{unit.name}.go")
    done = logs(unit, "-f", slow)
    assert (done.returncode, done.stdout) == (0, "begun\nthrough\n")


def counterfeit(unit, task):
    return (f"LEAT_QUEUE={unit.name}\\nLEAT_TASK={task}\\nLEAT_EVENT=output\\nLEAT_STREAM=stdout\\n"
            "MESSAGE=counterfeit\\n")


def test_logs_of_forgers(unit):
    """leat logs shows nothing that a task has sent to the journal in the name of another task, neither by itself
    nor by a leatd that it runs."""
    unit.configure(isolation={"cgroup": "required"}).start()
    task = unit.add("echo true")
    unit.event("TASK_SUCCEEDED", f"LEAT_TASK={task}")
    record = counterfeit(unit, task)
    unit.add(f"printf '{record}' | logger --journald")
    unit.machine.wait_journal(f"LEAT_TASK={task}", "MESSAGE=counterfeit")
    print(unit.machine.wait_journal(f"LEAT_TASK={task}", "MESSAGE=counterfeit"))
    other = "test-redis-of-a-task"
    config = (f"[queue]\\nname = {unit.name}\\n[redis]\\nsocket = /tmp/{other}\\n"
              "[log]\\ntarget = journal\\n[isolation]\\ncgroup = off\\n")
    unit.add(f"cd /tmp; printf '{config}' >own.ini; redis-server --port 0 --unixsocket /tmp/{other} --save '' "
             f">/dev/null & until redis-cli -s /tmp/{other} ping; do sleep 0.1; done; "
             f"redis-cli -s /tmp/{other} xadd {unit.name} {task} command 'echo counterfeit too'; leatd -c own.ini",
             "timeout", "60s")
    unit.machine.wait_journal(f"LEAT_TASK={task}", "MESSAGE=counterfeit too", timeout=60)
    done = logs(unit, task)
    assert (done.returncode, done.stdout, done.stderr) == (0, "true\n", "")


@pytest.mark.parametrize("cgroup", ["required", "off"])
def test_logs_of_forgers_of_another_user(unit, cgroup):
    """With a user of their own, tasks cannot pass for leatd by any name of their program, nor without cgroups."""
    unit.configure(isolation={"cgroup": cgroup}, task={"user": "games"})
    unit.drop_in(shipped("leatd-other-user.conf")).start()
    task = unit.add("echo true")
    unit.event("TASK_SUCCEEDED", f"LEAT_TASK={task}")
    record = counterfeit(unit, task)
    # it lives on, so that journald can look at it
    send = ("import signal, socket; one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); "
            f"one.sendto(b'{record}', '/run/systemd/journal/socket'); signal.pause()")
    group = f"/sys/fs/cgroup/leat.slice/{unit.unit}.service/daemon/cgroup.procs"
    unit.add("mkdir -p /tmp/usr/bin; cp $(python3 -c 'import sys; print(sys.executable)') /tmp/usr/bin/leatd; "
             f"echo 0 >{group}; exec /tmp/usr/bin/leatd -c \"{send}\"")
    unit.machine.wait_journal(f"LEAT_TASK={task}", "MESSAGE=counterfeit")
    done = logs(unit, task)
    assert (done.returncode, done.stdout, done.stderr) == (0, "true\n", "")


def test_logs_are_not_for_everybody(unit):
    """A user who must not read the journal, or the files, is told so."""
    unit.start()
    task = unit.add("echo x")
    unit.event("TASK_SUCCEEDED", f"LEAT_TASK={task}")
    done = unit.machine.run("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "leat", "-c",
                            f"/etc/leat/{unit.name}.ini", "logs", task, check=False)
    assert done.returncode == 77 and "cannot read this host's journal: permission denied" in done.stderr
    unit.configure(output={"to": "file"})
    unit.machine.run("systemctl", "reload", unit.unit)
    unit.event("CONFIG_RELOADED")
    task = unit.add("echo y")
    unit.event("TASK_SUCCEEDED", f"LEAT_TASK={task}")
    done = unit.machine.run("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "leat", "-c",
                            f"/etc/leat/{unit.name}.ini", "logs", task, check=False)
    assert done.returncode == 77 and 'cannot open the output file' in done.stderr


def test_output_in_files(unit):
    """Files are in the unit's LogsDirectory, owned by the service; leat logs finds them there without
    options, and logrotate removes old ones."""
    unit.configure(output={"to": "file"}).start()
    task = unit.add("seq 3")
    unit.event("TASK_SUCCEEDED", f"LEAT_TASK={task}")
    path = f"/var/log/leat/{unit.name}/{task}.log"
    assert unit.machine.run("stat", "-c", "%U:%G %a", path, "/var/log/leat").stdout.splitlines() == [
        "leat:leat 640", "leat:leat 750"]
    assert logs(unit, task).stdout == "1\n2\n3\n"
    unit.machine.run("touch", "-d", "40 days ago", path)
    unit.machine.path("/run/rotated").write_text(f'logrotate state -- version 2\n"{path}" 2020-1-1-0:0:0\n')
    unit.machine.run("chmod", "600", "/run/rotated")
    unit.machine.run("logrotate", "-s", "/run/rotated", "/etc/logrotate.d/leat")
    assert not inside(unit.machine, path)()


def test_forged_fields(unit):
    """A task's output is one value of its record, even if it looks like fields of the journal's protocol."""
    unit.start()
    task = unit.add("printf 'x\\nLEAT_TASK=9-9\\nMESSAGE=forged\\nPRIORITY=0\\n\\nMESSAGE\\n\\006\\000\\000"
                    "\\000\\000\\000\\000\\000forged\\n<0>forged'")
    unit.event("TASK_SUCCEEDED", f"LEAT_TASK={task}")
    lines = unit.event("TASK_OUTPUT", f"LEAT_TASK={task}", count=7)
    assert {line["PRIORITY"] for line in lines} == {"6"}
    assert unit.machine.journal("LEAT_TASK=9-9") == unit.machine.journal("MESSAGE=forged") == []


def test_flood_in_the_journal(unit):
    """Under floods of several tasks on the real journald no record of the daemon is dropped, and no line of a
    task that wrote little; leases are renewed, and the daemon stays small."""
    unit.configure(queue={"lease": "6s", "concurrency": 4}, task={"kill_grace": "200ms"},
                   retry={"max_attempts": 1}).start()
    unit.add("true")
    unit.event("TASK_SUCCEEDED")
    status = unit.machine.path(f"/proc/{unit.pid()}/status")
    before = resident_kib(status)
    for _ in range(3):
        unit.machine.run("redis-cli", "-s", SOCKET, "xadd", unit.name, "*", "command", "exec yes", "timeout", "6s")
    quiet, largest = [], before
    while unit.figures()["dead"] < 3:
        quiet.append(unit.add("seq 3"))
        unit.event("TASK_SUCCEEDED", f"LEAT_TASK={quiet[-1]}")
        largest = max(largest, resident_kib(status))
    floods = unit.event("TASK_DEAD", count=3)
    assert {record["LEAT_CAUSE"] for record in floods} == {"timeout"}
    for task in quiet:
        assert logs(unit, task).stdout == "1\n2\n3\n"
    assert unit.machine.journal(f"MESSAGE_ID={message_id('LOG_DROPPED')}", f"LEAT_QUEUE={unit.name}") == []
    assert unit.machine.journal(f"MESSAGE_ID={message_id('LEASE_LOST')}", f"LEAT_QUEUE={unit.name}") == []
    assert is_sanitized() or largest < before + 8 * 1024


def resident_kib(status):
    return int(re.search(r"^VmRSS:\s+(\d+)", status.read_text(), re.M)[1])
