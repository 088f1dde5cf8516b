"""A task that takes too much memory, under systemd. Few hosts give the machine booted here the controllers of
cgroups: `make check-nightly` runs this file in a guest that does."""
import pytest

from harness.polling import wait_until

pytestmark = pytest.mark.xdist_group("systemd")

MIB = 1 << 20
PATIENCE_S = 120  # a machine in a guest is slow


@pytest.mark.parametrize("isolation, drop_in", [
    ({"memory_max": "64M"}, ""), ({}, "MemoryMax=160M\n")], ids=["of its own", "of the unit"])
def test_out_of_memory(unit, isolation, drop_in):
    """If its own limit or the unit's is reached, the task fails with the cause oom, with all its processes;
    other tasks, the daemon and the unit go on. The journal has its memory."""
    if "memory" not in unit.machine.run("cat", "/sys/fs/cgroup/cgroup.controllers").stdout:
        pytest.skip("units have no memory controller here: make check-nightly")
    unit.configure(isolation={"cgroup": "required", **isolation}, retry={"max_attempts": 1})
    unit.drop_in(f"[Service]\n{drop_in}").start()
    group = unit.machine.path("/sys/fs/cgroup" + unit.show("ControlGroup"))
    before, go = unit.pid(), f"/run/{unit.name}.go"
    unit.add(f"echo begun; while ! [ -e {go} ]; do sleep 0.2; done")
    unit.event("TASK_OUTPUT", timeout=PATIENCE_S)
    task = unit.add("python3 -IS -c 'bytearray(400 << 20)'; exec tail -f /dev/null")
    [dead] = unit.event("TASK_DEAD", timeout=PATIENCE_S)
    assert (dead["LEAT_TASK"], dead["LEAT_CAUSE"]) == (task, "oom")
    assert int(dead["LEAT_OOM_KILLS"]) >= 1 and 40 * MIB < int(dead["LEAT_MEMORY_PEAK"]) <= 160 * MIB
    unit.machine.path(go).touch()
    unit.event("TASK_SUCCEEDED", timeout=PATIENCE_S)
    assert unit.pid() == before and unit.show("NRestarts") == "0" and unit.show("ActiveState") == "active"
    wait_until(lambda: unit.figures()["running"] == 0, PATIENCE_S, unit.machine.tail)
    unit.machine.run("systemctl", "stop", unit.unit)
    assert not group.exists()
