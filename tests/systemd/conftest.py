"""One machine for all tests here, in which each takes a queue of its own."""
import re

import pytest

from machine import Machine, NotHere, check_host
from harness.polling import wait_until
from unit import SOCKET, Unit, install


@pytest.fixture(scope="session")
def machine(tmp_path_factory):
    """Booted, leat installed, its user made, a redis-server running."""
    try:
        check_host()
        folder = tmp_path_factory.mktemp("machine")
        stage = folder / "stage"
        stage.mkdir()
        install(stage)
        machine = Machine(folder, stage)
    except NotHere as why:
        pytest.skip(str(why))
    try:
        machine.run("systemd-sysusers", "leat.conf")
        machine.run("systemd-tmpfiles", "--create", "leat.conf")
        machine.run("systemd-run", "--unit=test-redis", "-p", "RuntimeDirectory=test-redis", "redis-server",
                    "--port", "0", "--unixsocket", SOCKET, "--unixsocketperm", "777", "--save", "",
                    "--dir", "/run/test-redis")
        wait_until(lambda: machine.run("redis-cli", "-s", SOCKET, "ping", check=False).returncode == 0,
                   20, machine.tail)
        yield machine
    finally:
        machine.close()


@pytest.fixture
def unit(machine, request):
    """A configured unit that is not started yet."""
    name = re.sub(r"\W", "", request.node.name.replace("test_", ""))[:40]
    one = Unit(machine, name).configure()
    yield one
    machine.run("systemctl", "kill", "-s", "KILL", one.unit, check=False)
    machine.run("systemctl", "stop", one.unit, check=False)
    machine.run("systemctl", "reset-failed", one.unit, check=False)
