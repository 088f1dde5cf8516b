"""Poison candidates and real workers: tasks that were lost with their worker do not hold up the others, and a task
that kills every worker ends as a dead letter without harm to the others."""
import statistics
import time

import pytest

from harness.polling import wait_until

SECTIONS = {'queue': {'concurrency': 8, 'lease': '6s', 'scan': '1s'}, 'task': {'kill_grace': '1s'}}
LOST, LOST_S = 8, 3
QUICK, APART_MS = 200, 100


def add_quick_tasks(queue, path):
    """Adds tasks of 20 ms that become due one after the other and note when they start. Returns when each is due
    (ms)."""
    begin = round(time.time() * 1000) + APART_MS
    due = {}
    for at in range(begin, begin + QUICK * APART_MS, APART_MS):
        [(_, tid)] = queue.enqueue({'command': f'echo $LEAT_TASK $(date +%s%3N) >> {path}; sleep 0.02'}, due=at)
        due[tid] = at
    return due


@pytest.mark.parametrize('proved', [True, False])
def test_quick_tasks_go_on_after_the_loss_of_a_worker(daemon, queue, folder, late, latch, proved):
    """One of two workers is killed with 8 tasks, which take 3 s on the other one. Tasks of 20 ms start beside
    them: after 0.5 s in the median, and after 4 s at the latest."""
    lost = daemon(SECTIONS).wait_ready()
    queue.add(*[{'command': f'{latch.wait}; exec sleep {LOST_S}'}] * LOST)
    wait_until(lambda: queue.redis.hlen(queue.running) == LOST)
    other = daemon(SECTIONS).wait_ready()
    due = add_quick_tasks(queue, folder / 'started')
    lost.kill9() if proved else lost.kill9_unguarded()
    latch.open()
    wait_until(lambda: queue.counter('succeeded') == LOST + QUICK, 120, other.log)
    started = {}  # a task whose worker stalls may run again
    for line in (folder / 'started').read_text().splitlines():
        started.setdefault(*line.split())
    waits = [(int(ms) - due[tid]) / 1000 for tid, ms in started.items()]
    print(f'waits: median {statistics.median(waits):.3f} s, worst {max(waits):.3f} s')
    assert len(waits) == QUICK and queue.counter('crashes') == LOST
    assert statistics.median(waits) <= 0.5 + late.start() and max(waits) <= 4 + late.start()


KILLS_ITS_WORKER = 'echo >> {}; sleep 0.5; kill -9 $(echo $LEAT_WORKER | cut -d: -f2); sleep 60'


@pytest.mark.parametrize('workers, killers', [(1, 1), (2, 1), (2, 3)])
def test_tasks_that_kill_every_worker(daemon, queue, folder, workers, killers):
    """They become dead letters after max_crashes workers, however many there are, or after one more if a crash was
    another's first. The tasks beside them succeed. With one killer, its first crash is counted for all, the second
    for it alone, and the third time it runs alone."""
    sections = {'queue': {'concurrency': 4, 'lease': '10s', 'scan': '300ms'}, 'task': {'kill_grace': '500ms'}}
    bad = queue.add(*[{'command': KILLS_ITS_WORKER.format(folder / 'runs')}] * killers)
    others = queue.add(*[{'command': f'echo $LEAT_TASK >> {folder}/others; exec sleep 0.7'}] * 20)
    running = [daemon(sections) for _ in range(workers)]
    lost = 0

    def has_ended():
        nonlocal lost
        for index, worker in enumerate(running):
            if not worker.running():
                lost += 1
                running[index] = daemon(sections)
        return queue.counter('succeeded') == len(others) and len(queue.letters()) == killers

    wait_until(has_ended, 180, lambda: f'all end: {queue.places()}')
    letters = [letter for _, letter in queue.letters()]
    assert {letter['leat.tid'].decode() for letter in letters} == set(bad)
    assert {(letter['leat.cause'], letter['leat.crashes']) for letter in letters} == {(b'crash', b'3')}
    assert lost <= (3 if killers == 1 else 4 * killers)
    assert set((folder / 'others').read_text().split()) == set(others)
    if killers == 1:
        assert len((folder / 'runs').read_text().splitlines()) == 3 and queue.counter('crashes') <= 3 + 3
