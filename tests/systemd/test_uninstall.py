"""UNINSTALLING in leatd.8 as an administrator follows it."""
import re
import shlex
import shutil

import pytest

from harness.daemon import is_sanitized
from unit import ROOT

pytestmark = pytest.mark.xdist_group("systemd")

KEPT = ("/etc/leat", "/srv", "/tmp", "/work", "/root", "/home")


def commands():
    """The commands of the section, in order."""
    text = (ROOT / "src/daemon/leatd.8").read_text().split(".Sh UNINSTALLING\n")[1].split("\n.Sh ")[0]
    return re.findall(r"^(?:\.Dl )?[#$] (.*)", text, re.M)


def left(machine):
    """What is named after leat, but for configurations."""
    kept = " -o ".join(f"-path {path}" for path in KEPT)
    found = machine.run("sh", "-c", f"find / -xdev \\( {kept} \\) -prune -o -iname '*leat*' -print").stdout
    return {path for path in found.split() if not path.startswith(str(ROOT))}


def test_nothing_is_left(fresh_machine):
    """The commands as they are written leave nothing but /etc/leat, on the host and in Redis; while workers run,
    and with tasks in a queue."""
    machine = fresh_machine
    for name in ("Makefile", "conf", "systemd", "src"):
        source, target = ROOT / name, machine.path(f"/srv/leat/{name}")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    shutil.rmtree(machine.path("/usr/lib/leat-tests"))  # the harness has put them there
    for queue in ("emails", "Mapped"):
        machine.run("leat", "init", "--service", queue)
    machine.run("leat", "init", "--service", "common", "--shared")
    # leat-board's unit needs a user namespace, and a sanitizer cannot work within its limits
    board = ("leat-board",) if machine.has_user_namespaces() and not is_sanitized() else ()
    machine.run("systemctl", "enable", "--now", "leatd@emails", "leatd@common", "leatd@Mapped", *board)
    machine.run("leat", "-q", "emails", "run", "echo > result")
    machine.run("leat", "-q", "common", "run", "echo > result")
    machine.run("leat", "-q", "emails", "enqueue", "--delay", "1h", "true")
    made = {"/usr/bin/leat", "/var/lib/leat", "/var/lib/leat-emails", "/etc/sysusers.d/leat-emails.conf"}
    assert made <= left(machine)
    assert machine.run("redis-cli", "keys", "*").stdout.split()
    for command in commands():
        for queue in ("emails", "common", "Mapped") if "QUEUE" in command else ("",):
            argv, given = ["sh", "-ec", "cd /srv/leat; " + command.replace("QUEUE", queue)], ""
            if command.startswith("leat destroy"):
                # it asks at a terminal
                argv, given = ["script", "--quiet", "--return", "-c", shlex.join(argv), "/dev/null"], "y\n"
            machine.run(*argv, input=given)
    assert left(machine) == set()
    assert machine.run("redis-cli", "keys", "*").stdout.split() == []
    assert machine.run("redis-cli", "function", "list").stdout.split() == []
    assert "leat" not in machine.run("getent", "passwd").stdout + machine.run("getent", "group").stdout
    assert machine.path("/etc/leat/emails.ini").exists()
    assert machine.run("systemctl", "list-units", "--all", "--no-legend", "leat*").stdout == ""
