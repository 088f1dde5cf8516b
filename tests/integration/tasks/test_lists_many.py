"""[intake] with many items, many lists and many workers, and with workers that are killed."""
import time
from collections import Counter

import pytest

from harness.daemon import is_sanitized
from harness.functions.lists import Output, watched, watching
from harness.polling import wait_until
from harness.short_leases import wait_empty

SLOTS = 4


@pytest.fixture
def output(folder):
    return Output(folder / 'output')


@pytest.fixture(autouse=True)
def intake(base_config, short_leases, output):
    base_config['queue']['concurrency'] = SLOTS
    base_config['task']['command'] = output.command
    base_config['intake'] = {'lists': 'work', 'prefix': 'work:', 'scan': '200ms'}


def test_a_worker_is_killed_during_thousands_of_items(daemon, client, queue, output):
    """If one of two workers is killed while 3,000 items are pushed, no item is lost, and only tasks that it
    had claimed may run twice."""
    total, step = (1_000, 20) if is_sanitized() else (3_000, 50)
    killed, other = daemon().wait_ready(), daemon().wait_ready()
    for first in range(0, total, step):
        pipeline = client.pipeline(transaction=False)
        for number in range(first, first + step):
            pipeline.lpush('work' if number % 2 else f'work:{number % 10}', number)
        pipeline.execute()
        if first == total // 2:
            wait_until(lambda: output.lines())
            killed.kill9()
    wait_empty(queue, 900)
    assert not client.keys('work*')
    ran = Counter(map(int, output.lines()))
    assert sorted(ran) == list(range(total))
    twice = [number for number, times in ran.items() if times > 1]
    assert len(twice) <= 10 * SLOTS and max(ran.values()) <= 2, twice
    assert queue.entries('dead') == [] and other.running()


def test_order_is_kept_by_many_workers(daemon, client, queue, output):
    """If four workers take from one list at once, the queue has the items in the list's order, each once."""
    for _ in range(4):
        daemon({'task': {'command': 'sleep 60'}, 'queue': {'concurrency': 1},
                'shutdown': {'drain': '10ms'}}).wait_ready()
    total = 4_000
    for first in range(0, total, 50):
        client.lpush('work', *range(first, first + 50))
    wait_until(lambda: client.xlen(queue.stream) == total)
    assert [int(fields[1]) for _, fields in queue.entries('stream')] == list(range(total))


def test_a_thousand_clients(daemon, client, output):
    """Each client has its own list, and most lists come and go: every item runs, and a known list is watched."""
    worker = daemon({'queue': {'scan': '1s'}}).wait_ready()
    names = [f'work:client-{n}' for n in range(1000)]
    pipeline = client.pipeline(transaction=False)
    for name in names:
        pipeline.lpush(name, name)
    pipeline.execute()
    wait_until(lambda: len(output.lines()) == 1000, 60.0, lambda: f'{len(output.lines())} lines')
    assert sorted(output.lines()) == sorted(names)
    wait_until(lambda: watched(client) >= 1000)
    # known lists need no scan, also after a reload
    text = worker.config_path.read_text()
    worker.config_path.write_text(text.replace('scan = 200ms', 'scan = 1h'))
    worker.reload()
    worker.wait_log('configuration reloaded')
    wait_until(lambda: watching(client) == 1 and watched(client) >= 1000)
    for name in names[::97]:
        client.lpush(name, 'again')
    wait_until(lambda: output.lines().count('again') == len(names[::97]))
    worker.terminate()
    assert worker.wait_exit() == 0


def test_most_workers_leave_a_busy_list_alone(daemon, client, queue):
    """Eight workers learn of each item, but under a stream of items most of them leave the list to the faster
    one."""
    for _ in range(8):
        daemon({'task': {'command': 'true'}, 'intake': {'scan': '1h'}}).wait_ready()
    wait_until(lambda: watching(client) == 8)
    client.config_resetstat()
    begun, pushed = time.monotonic(), 0
    while time.monotonic() < begun + 3:
        client.lpush('work', pushed)
        pushed += 1
        wait_until(lambda: not client.exists('work'))
    looks = client.info('commandstats')['cmdstat_llen']['calls']
    # 6.1 on a very busy machine
    assert looks < 7 * pushed
    wait_empty(queue, 60.0)
