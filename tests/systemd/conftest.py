"""Machines for tests: one that most tests share, each with its own queue, and a fresh one."""
import contextlib
import re

import pytest

from machine import Machine, NotHere, check_host
from harness.polling import wait_until
from unit import SOCKET, Unit, install


@contextlib.contextmanager
def installed(folder):
    """A booted machine with leat and its user."""
    try:
        check_host()
        stage = folder / "stage"
        stage.mkdir()
        install(stage)
        machine = Machine(folder, stage)
    except NotHere as why:
        pytest.skip(str(why))
    try:
        machine.run("systemd-sysusers", "leat.conf")
        machine.run("systemd-tmpfiles", "--create", "leat.conf")
        yield machine
    finally:
        machine.close()


@pytest.fixture(scope="session")
def machine(tmp_path_factory):
    """The shared machine, with a redis-server. Its queues share the user leat."""
    with installed(tmp_path_factory.mktemp("machine")) as one:
        one.run("systemd-run", "--unit=test-redis", "-p", "RuntimeDirectory=test-redis", "redis-server",
                "--port", "0", "--unixsocket", SOCKET, "--unixsocketperm", "777", "--save", "",
                "--dir", "/run/test-redis")
        wait_until(lambda: one.run("redis-cli", "-s", SOCKET, "ping", check=False).returncode == 0,
                   20, one.tail)
        # queues share the user leat, but for those that leat init --service gives another
        one.path("/etc/systemd/system/leatd@.service.d/00-user.conf").write_text("[Service]\nUser=leat\n")
        one.run("systemctl", "daemon-reload")
        yield one


@pytest.fixture
def fresh_machine(tmp_path_factory):
    """A machine of its own: the host web1 with Debian's Redis service, and no queue."""
    with installed(tmp_path_factory.mktemp("fresh")) as one:
        one.run("hostname", "web1")
        # Debian 13's service has a user namespace, which a container may not make
        one.run("sh", "-c", "d=/run/systemd/system/redis-server.service.d; mkdir -p $d && "
                "printf '[Service]\\nPrivateUsers=no\\n' >$d/users.conf && systemctl daemon-reload")
        one.run("systemctl", "start", "redis-server")
        wait_until(lambda: one.run("redis-cli", "ping", check=False).returncode == 0, 20, one.tail)
        yield one


@pytest.fixture
def unit(machine, request):
    """A configured unit that is not started yet."""
    name = re.sub(r"\W", "", request.node.name.replace("test_", ""))[:40]
    one = Unit(machine, name).configure()
    yield one
    machine.run("systemctl", "kill", "-s", "KILL", one.unit, check=False)
    machine.run("systemctl", "stop", one.unit, check=False)
    machine.run("systemctl", "reset-failed", one.unit, check=False)
