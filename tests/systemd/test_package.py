"""The Debian package on a booted machine: install, upgrade under a running task, remove, purge, install again."""
import os
import re
import shutil
import subprocess

import pytest

from harness.daemon import BUILD, is_sanitized
from harness.polling import wait_until
from machine import Machine, NotHere, check_host
from unit import ROOT

pytestmark = pytest.mark.xdist_group("systemd")

QUEUE = "emails"
BUILD_SECONDS = 3600  # on a busy machine


def sources():
    return [path for folder in ("conf", "src", "systemd") for path in (ROOT / folder).rglob("*") if path.is_file()]


@pytest.fixture(scope="session")
def package():
    """The package of this source, which make deb or make repro leaves in the build folder; built here if it is not
    there."""
    if is_sanitized():
        pytest.skip("the package does not contain the build with sanitizers")
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if not shutil.which("dh"):
        pytest.skip("debhelper is not installed")
    newest = max(path.stat().st_mtime for path in sources())
    found = [path for folder in ("deb", "repro/one/deb") for path in (BUILD / folder).glob("leat_*.deb")
             if path.stat().st_mtime >= newest]
    if not found:
        version = subprocess.run(["make", "-s", "print-version"], cwd=ROOT, capture_output=True, text=True,
                                 check=True, env={"PATH": os.environ["PATH"]}).stdout.strip()
        done = subprocess.run(["tests/tools/deb", version, BUILD / "deb"], cwd=ROOT, capture_output=True,
                              text=True, timeout=BUILD_SECONDS, check=False)
        if "no source: there is neither" in done.stderr:
            pytest.skip("not in a git work tree")
        assert done.returncode == 0, done.stderr
        found = list((BUILD / "deb").glob("leat_*.deb"))
    return found[0]


def test_lintian_has_no_complaint(package):
    """lintian finds no error and nothing to warn of in what make deb builds."""
    if not shutil.which("lintian"):
        pytest.skip("lintian is not installed")
    [changes] = package.parent.glob("*.changes")
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", changes], capture_output=True,
                          text=True, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.fixture
def machine(tmp_path_factory, package):
    """A machine without leat, with Redis and the package in /srv."""
    folder = tmp_path_factory.mktemp("package")
    stage = folder / "stage"
    (stage / "srv").mkdir(parents=True)
    shutil.copy(package, stage / "srv/leat.deb")
    [board] = package.parent.glob("leat-board_*.deb")
    shutil.copy(board, stage / "srv/board.deb")
    newer(package, stage / "srv/newer.deb", folder / "unpacked")
    newer(board, stage / "srv/newer-board.deb", folder / "unpacked-board")
    for path in [*package.parent.glob("leat_*.dsc"), *package.parent.glob("leat_*.tar.xz")]:
        shutil.copy(path, stage / "srv")
    try:
        check_host()
        one = Machine(folder, stage)
    except NotHere as why:
        pytest.skip(str(why))
    try:
        # systemd of Debian 13 insists on a user namespace, which a container may not make
        one.run("sh", "-c", "for unit in redis-server leat-board; do d=/run/systemd/system/$unit.service.d; "
                "mkdir -p $d && printf '[Service]\\nPrivateUsers=no\\n' >$d/users.conf || exit 1; done; "
                "rm -f /usr/sbin/policy-rc.d && systemctl daemon-reload && systemctl start redis-server")
        wait_until(lambda: one.run("redis-cli", "ping", check=False).returncode == 0, 60, one.tail)
        yield one
    finally:
        one.close()


def newer(package, target, unpacked):
    """The same package with a higher version."""
    subprocess.run(["dpkg-deb", "-R", package, unpacked], check=True)
    control = unpacked / "DEBIAN/control"
    lines = [line + "+newer" if line.startswith("Version:") else line for line in control.read_text().splitlines()]
    control.write_text("\n".join(lines) + "\n")
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", unpacked, target], check=True, capture_output=True)


def test_the_tests_of_the_package(machine):
    """autopkgtest runs them on a booted machine, with the package installed: the demo, the unit and the board."""
    if not shutil.which("autopkgtest"):
        pytest.skip("autopkgtest is not installed")
    dpkg(machine, "-i", "/srv/leat.deb", "/srv/board.deb")
    # the machine is the container that two of them ask for
    done = machine.run("sh", "-c", "autopkgtest --no-built-binaries --ignore-restrictions=isolation-container "
                       "/srv/leat_*.dsc -- null", check=False, timeout=BUILD_SECONDS)
    said = done.stdout + done.stderr
    results = re.findall(r"^(demo|unit|board) +(PASS|FAIL|SKIP)", said.rpartition("summary")[2], re.M)
    assert (done.returncode, results) == (0, [("demo", "PASS"), ("unit", "PASS"), ("board", "PASS")]), said


def dpkg(machine, *words):
    """What dpkg and the package's scripts say."""
    done = machine.run("env", "DEBIAN_FRONTEND=noninteractive", "dpkg", *words, timeout=BUILD_SECONDS)
    return done.stdout + done.stderr


def left(machine):
    """The paths below folders of the system that are named after leat."""
    found = machine.run("sh", "-c", "find /usr /etc /lib /var/lib /var/log /run -xdev -iname '*leat*' "
                        "! -path '/var/lib/dpkg/*' ! -path '/run/systemd/*' ! -path '/run/credentials/*' -prune")
    return set(found.stdout.split())


def start_worker(machine):
    machine.run("leat", "init", "--service", QUEUE)
    machine.run("systemctl", "enable", "--quiet", "--now", f"leatd@{QUEUE}")
    assert machine.run("leat", "-q", QUEUE, "run", "whoami").stdout == f"leat-{QUEUE}\n"


def test_life_of_the_package(machine):
    """Installed, it works at once. An upgrade starts the new version and ends no task. What is removed stops its
    workers and keeps configurations and results; installed again, it goes on with them. A purge keeps results, and
    says where they are; if the administrator has said so, it leaves nothing."""
    assert left(machine) == set()
    dpkg(machine, "-i", "/srv/leat.deb")
    start_worker(machine)

    # an upgrade while a task runs
    pid = machine.show(f"leatd@{QUEUE}", "MainPID")
    home = machine.path(f"/var/lib/leat-{QUEUE}")
    machine.run("mkfifo", "-m", "666", f"/var/lib/leat-{QUEUE}/go-on")
    tid = machine.run("leat", "-q", QUEUE, "enqueue", "--result-ttl", "1h",
                      "touch begun; cat go-on; echo done").stdout.strip()
    wait_until((home / "begun").exists, 60, machine.tail)
    said = dpkg(machine, "-i", "/srv/newer.deb")
    assert f"leatd@{QUEUE}.service: upgraded to version" in said, said
    assert machine.show(f"leatd@{QUEUE}", "MainPID") != pid
    assert machine.run("ps", "-o", "comm=", "-p", pid).stdout.strip() == "leatd"
    machine.run("sh", "-c", f"echo >/var/lib/leat-{QUEUE}/go-on")
    # id, state, how, attempts
    assert machine.run("leat", "-q", QUEUE, "wait", tid).stdout.split()[:4] == [tid, "succeeded", "exit:0", "1"]
    wait_until(lambda: machine.run("ps", "-p", pid, check=False).returncode != 0, 60, machine.tail)
    assert machine.show(f"leatd@{QUEUE}", "NRestarts") == "0"
    assert machine.show(f"leatd@{QUEUE}", "NeedDaemonReload") == "no"

    # remove, and install again
    dpkg(machine, "-r", "leat")
    assert machine.run("systemctl", "list-units", "--no-legend", "leat*").stdout == ""
    assert machine.run("pgrep", "leatd", check=False).stdout == ""
    kept = {"/etc/leat", f"/etc/sysusers.d/leat-{QUEUE}.conf", "/var/lib/leat", f"/var/lib/leat-{QUEUE}",
            "/etc/logrotate.d/leat"}
    assert kept <= left(machine) and not machine.path("/usr/bin/leat").exists()
    assert "upgraded" not in dpkg(machine, "-i", "/srv/leat.deb")
    machine.run("systemctl", "start", f"leatd@{QUEUE}")
    machine.run("leat", "-q", QUEUE, "run", "ls begun")

    # purge, with the answer that is the default
    said = dpkg(machine, "-P", "leat")
    assert f"/var/lib/leat-{QUEUE}" in said and "/var/log/leat" in said
    folders = {f"/var/{top}/leat{queue}" for top in ("lib", "log") for queue in ("", f"-{QUEUE}")}
    assert left(machine) == folders
    assert (home / "begun").exists()

    # and with the other one; the board goes with its token
    dpkg(machine, "-i", "/srv/leat.deb", "/srv/board.deb")
    start_worker(machine)
    if machine.has_user_namespaces():
        machine.run("systemctl", "enable", "--quiet", "--now", "leat-board")
        wait_until(machine.path("/var/lib/leat-board/token").exists, 60, machine.tail)
    machine.run("debconf-set-selections", input="leat leat/purge_data boolean true\n")
    # everything else is removed although one folder cannot be
    busy = "/var/log/leat/busy"
    machine.run("mkdir", busy)
    machine.run("mount", "-t", "tmpfs", "tmpfs", busy)
    said = dpkg(machine, "-P", "leat", "leat-board")
    assert "leat: kept: /var/log/leat\n" in said
    assert left(machine) == {"/var/log/leat"}
    machine.run("umount", busy)
    assert "leatd@" not in machine.run("systemctl", "list-unit-files", "--no-legend").stdout


def test_life_of_the_board(machine):
    """An upgrade restarts the board if it runs, and does not start it otherwise. It stops if its package is
    removed."""
    if not machine.has_user_namespaces():
        pytest.skip("no user namespaces here, which PrivateUsers= needs, as in a chroot")

    def is_up():
        return machine.run("curl", "-sf", "http://127.0.0.1:9464/healthz", check=False).stdout == "ok\n"
    dpkg(machine, "-i", "/srv/leat.deb", "/srv/board.deb")
    machine.run("leat", "init", "--service", QUEUE)
    dpkg(machine, "-i", "/srv/newer-board.deb")
    assert machine.show("leat-board", "ActiveState") == "inactive"
    machine.run("systemctl", "start", "leat-board")
    wait_until(is_up, 300, machine.tail)
    pid = machine.show("leat-board", "MainPID")
    # the former version: for dpkg, any other one is an upgrade
    dpkg(machine, "-i", "/srv/board.deb")
    wait_until(is_up, 300, machine.tail)
    assert machine.show("leat-board", "MainPID") not in (pid, "0")
    dpkg(machine, "-r", "leat-board")
    assert machine.run("systemctl", "list-units", "--no-legend", "leat-board*").stdout == ""
    assert machine.run("pgrep", "leat-board", check=False).stdout == ""
