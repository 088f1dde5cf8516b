"""Rows about resident processes: tasks without a start of their own, against the floor of starts."""

from rig import Daemon, against, spread
from rows import at_least

SLOTS = 2


def run(rig, tasks, in_hand):
    """As rows.backlog_run, with resident processes that do nothing."""
    command = rig.tools / "resident"
    rig.server.drop("resident")
    rig.server.preload("resident", tasks, "x", field="payload")
    daemon = Daemon(rig, "resident", SLOTS,
                    f"[task]\ncommand = exec {command.resolve()}\nresident = yes\nbatch = {in_hand}")
    try:
        return rig.drain(daemon, 0)
    finally:
        daemon.stop()
        rig.server.drop("resident")


def residents(rig):
    """Tasks of two resident processes, in alternation with the floor of two slots."""
    rig.need_leatd()
    tasks, starts = (20_000, 2_000) if rig.quick else (100_000, 20_000)
    floors, one, many = [rig.floor(SLOTS, starts)], [], []
    for _ in range(3):
        one.append(run(rig, tasks, 1))
        many.append(run(rig, tasks, 16))
        floors.append(rig.floor(SLOTS, starts))
    for name, spans, bar in (("1 task in hand", one, 3), ("16 tasks in hand", many, 5)):
        rates = against(spans, floors, lambda span: span.rate)
        yield f"resident, 2 slots, {name}: tasks/s", spread([span.rate for span in spans], "{:.0f}"), "", None
        yield f"resident, 2 slots, {name}: tasks/s to the floor's", spread(rates), *at_least(rates, bar)
        yield (f"resident, 2 slots, {name}: Redis's CPU per task, µs",
               spread([span.redis_us for span in spans], "{:.1f}"), "", None)


RESIDENT_ROWS = {"residents": residents}
