"""Rows about cgroups: the cost of a kept cgroup for each start."""

from harness.cgroup import Group
from rig import Daemon, against, spread
from rows import COMMAND, at_least

REQUIRED = "[isolation]\ncgroup = required"


def run(rig, group, tasks):
    """As rows.backlog_run, in a cgroup of its own."""
    rig.server.drop("cgroups")
    rig.server.preload("cgroups", tasks, COMMAND)
    daemon = Daemon(rig, "cgroups", 8, REQUIRED if group else "", enter=group and group.enter)
    try:
        return rig.drain(daemon, 0)
    finally:
        daemon.stop()
        rig.server.drop("cgroups")


def cgroups(rig):
    """Tasks in cgroups and tasks without, in alternation with the floor."""
    rig.need_leatd()
    name = "concurrency 8, a cgroup for each task"
    try:
        group = Group()
    except OSError as error:
        yield f"{name}: skipped", str(error), "", None
        return
    tasks = 3_000 if rig.quick else 20_000
    floors, caged, free = [rig.floor(8, tasks)], [], []
    try:
        for _ in range(3):
            caged.append(run(rig, group, tasks))
            free.append(run(rig, None, tasks))
            floors.append(rig.floor(8, tasks))
    finally:
        group.close()
    rates = against(caged, floors, lambda span: span.rate)
    yield f"{name}: leat, tasks/s", spread([one.rate for one in caged], "{:.0f}"), "", None
    yield f"{name}: tasks/s to the floor's", spread(rates), *at_least(rates, 0.80)
    yield (f"{name}: tasks/s to those without", spread(
        [one.rate / other.rate for one, other in zip(caged, free)]), "", None)
    yield (f"{name}: CPU per task to the floor's", spread(
        against(caged, floors, lambda span: span.cpu_us)), "", None)
    yield (f"{name}: CPU per task to those without", spread(
        [one.cpu_us / other.cpu_us for one, other in zip(caged, free)]), "", None)


CGROUP_ROWS = {"cgroups": cgroups}
