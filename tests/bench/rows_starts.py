"""Rows about starts of programs: of the command, and of tasks."""

from rig import Daemon, against, spread
from rows import COMMAND, at_most


def enqueue_start(rig):
    """The CPU of one leat enqueue, in alternation with that of the shortest program."""
    rig.need_leatd()
    starts = 200 if rig.quick else 500
    daemon = Daemon(rig, "start", 1)
    try:
        # the daemon loads the functions
        daemon.wait_idle()
    finally:
        daemon.stop()
    program = [str(rig.leat), "-c", str(daemon.config), "enqueue", COMMAND]
    floors, leats = [rig.floor(1, starts)], []
    for _ in range(5):
        leats.append(rig.floor(1, starts, *program))
        floors.append(rig.floor(1, starts))
    rig.server.drop("start")
    used = [one.cpu_us / 1000 for one in leats]
    yield f"{COMMAND}: CPU, ms", spread([one.cpu_us / 1000 for one in floors]), "", None
    yield "leat enqueue: CPU, ms", spread(used), *at_most(used, 1.2)
    yield ("leat enqueue: CPU to that of the shortest program",
           spread(against(leats, floors, lambda one: one.cpu_us)), "", None)


START_ROWS = {"enqueue_start": enqueue_start}
