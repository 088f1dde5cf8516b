"""Rows about lanes: the cost of their number, and the latency of a task with a lane."""

import statistics

from harness.queue import Queue
from rig import Daemon, Stamps, encode, spread
from rows import COMMAND, Notes, at_most, words_of
from rows_latency import worker_times

MANY = 10_000


def claims_us(rig, lanes, tasks, starts):
    """Redis's time for one claim of one task, with this many tasks in this many lanes."""
    client = rig.server.client
    queue = Queue(client, "lanes").load(rig.library.read_bytes())
    queue.register("bench")
    queue.add({"command": COMMAND})
    for begin in range(0, tasks, 1_000):
        queue.add(*[{"command": COMMAND, "lane": f"lane {number % lanes}"}
                    for number in range(begin, begin + 1_000)])
    used, claimed = 0, 0
    while claimed < starts:
        client.config_resetstat()
        begun = [queue.begin("bench") for _ in range(50)]
        used += client.info("commandstats")["cmdstat_fcall"]["usec"]
        claimed += 50
        queue.finish_many("bench", [queue.result(task.token) for one in begun for task in one])
    rig.server.drop("lanes")
    return used / claimed


def lanes(rig):
    """The price of a claim with one lane and with very many."""
    starts = 1_000 if rig.quick else 4_000
    one, many = [], []
    for _ in range(3):
        one.append(claims_us(rig, 1, 2 * MANY, starts))
        many.append(claims_us(rig, MANY, 2 * MANY, starts))
    ratios = [far / near for far, near in zip(many, one)]
    yield "a claim from one lane, µs", spread(one, "{:.1f}"), "", None
    yield f"a claim from {MANY:,} lanes, µs", spread(many, "{:.1f}"), "", None
    yield f"a claim from {MANY:,} lanes to one from one", spread(ratios), *at_most(ratios, 2)


def enqueue_call(daemon, stamps, **fields):
    """leat_enqueue of a task that stamps, as it is sent."""
    task = {"command": " ".join(stamps.program), **fields}
    return encode(*words_of(lambda: Queue(Notes(), daemon.queue).enqueue(task)))


def lane_latency(rig):
    """An idle queue: a task with a lane goes straight to the worker that waits."""
    rig.need_leatd()
    stamps = Stamps(rig)
    daemon = Daemon(rig, "laned", 1)
    rounds, each = (3, 30) if rig.quick else (6, 50)
    without, within = enqueue_call(daemon, stamps), enqueue_call(daemon, stamps, lane="a")
    plain, laned = [], []
    try:
        daemon.wait_idle()
        for _ in range(rounds):
            plain.append(worker_times(rig, daemon, stamps, without, each))
            laned.append(worker_times(rig, daemon, stamps, within, each))
    finally:
        daemon.stop()
        stamps.close()
        rig.server.drop("laned")
    for name, blocks in (("without a lane", plain), ("with one", laned)):
        median = statistics.median(sum(blocks, []))
        yield f"enqueue to first instruction, µs: {name}", f"{median:.0f}", "", None
    ratios = [statistics.median(one) / statistics.median(other) for one, other in zip(laned, plain)]
    yield "enqueue to first instruction: with a lane to without", spread(ratios), *at_most(ratios, 1.1)


LANE_ROWS = {"lanes": lanes, "lane_latency": lane_latency}
