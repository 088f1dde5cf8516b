"""Retention of dead letters by age and by number: the right ones are removed, and counted."""
import json

import pytest

from harness.polling import wait_until

DAY_MS = 86400000


def letters_of_ages(queue, *ages_ms):
    """Makes dead letters of these ages, oldest first. Returns their entry ids."""
    now = queue.now()
    return [queue.redis.execute_command(
        'XADD', queue.dead, f'{now - age}-{i}', 'command', f'x{i}', 'leat.tid', f'{i + 1}-0',
        'leat.cause', 'exit', 'leat.fields', '1').decode() for i, age in enumerate(ages_ms)]


def bury(queue, count):
    queue.add(*[{'command': 'x'}] * count)
    for task in queue.begin('w', count):
        assert queue.finish('w', task, 'dead', cause='exit') == 'ok'


def ids(queue):
    return [id for id, _ in queue.letters()]


def sweep(queue):
    """Does what a worker's scan does once in ten leases."""
    queue.redis.hdel(queue.stats, 'swept')
    queue.scan('w')


@pytest.fixture
def keep(queue):
    """A function that registers the first worker, whose configuration counts."""
    def register(**kept):
        return queue.register('w', **kept)
    return register


def test_off_by_default(queue, keep):
    """By default no dead letter is removed, however old and many."""
    keep()
    old = letters_of_ages(queue, *[1000 * DAY_MS] * 200)
    sweep(queue)
    assert ids(queue) == old and queue.status()['total_dead_trimmed'] == 0


def test_by_age(queue, keep):
    """Exactly the dead letters beyond the age are removed, and counted."""
    keep(dead_keep=30 * DAY_MS)
    made = letters_of_ages(queue, 90 * DAY_MS, 31 * DAY_MS, 30 * DAY_MS + 1, 30 * DAY_MS - 60000,
                           DAY_MS, 0)
    sweep(queue)
    assert ids(queue) == made[3:]
    assert queue.status()['total_dead_trimmed'] == 3
    sweep(queue)
    assert ids(queue) == made[3:]


def test_many_by_age(queue, keep):
    """Far more dead letters than one call removes are removed, and no others."""
    keep(dead_keep=DAY_MS)
    now, pipe = queue.now(), queue.redis.pipeline(transaction=False)
    for i in range(25250):
        pipe.execute_command('XADD', queue.dead, f'{now - 2 * DAY_MS}-{i}', 'command', 'x')
    for i in range(77):
        pipe.execute_command('XADD', queue.dead, f'{now - 1000}-{i}', 'command', 'x')
    pipe.execute()
    queue.redis.hdel(queue.stats, 'swept')
    cursor, seen = 'r0', []
    while cursor:
        before = len(queue.entries('dead'))
        cursor = queue.claim('w', 0, 0, cursor)['cursor']
        seen.append(before - len(queue.entries('dead')))
    assert max(seen) <= 10000 and sum(seen) == 25250
    assert len(queue.entries('dead')) == 77 and queue.counter('dead_trimmed') == 25250


def test_by_number(queue, keep):
    """One dead letter too many removes the oldest in the same call; the newest stay."""
    keep(dead_keep_number=5)
    bury(queue, 5)
    five = ids(queue)
    assert queue.counter('dead_trimmed') == 0
    bury(queue, 2)
    assert ids(queue)[:3] == five[2:] and len(ids(queue)) == 5
    assert (queue.counter('dead'), queue.counter('dead_trimmed')) == (7, 2)


def test_a_lower_number(queue, keep):
    """If an operator sets a lower number, the next sweep removes the surplus, whatever its age."""
    keep()
    made = letters_of_ages(queue, *range(5000, 0, -1))
    queue.conf_set('dead_keep_number', 7)
    bury(queue, 1)
    assert len(ids(queue)) == 5001
    sweep(queue)
    assert ids(queue)[:6] == made[-6:] and len(ids(queue)) == 7
    assert queue.counter('dead_trimmed') == 4994


def test_both(queue, keep):
    """The limit that is reached first counts."""
    keep(dead_keep=DAY_MS, dead_keep_number=3)
    made = letters_of_ages(queue, 3 * DAY_MS, 2 * DAY_MS, 400, 300, 200, 100)
    sweep(queue)
    assert ids(queue) == made[3:] and queue.counter('dead_trimmed') == 3


def test_the_queue_s_value_overrides_the_file(queue):
    """The first registration sets the value, later ones learn it, conf changes it, and 0 turns it off."""
    assert queue.register('w', dead_keep=5000, dead_keep_number=9)['kept'] == (5000, 9)
    assert queue.register('w2', dead_keep=7, dead_keep_number=7)['kept'] == (5000, 9)
    queue.conf_set('dead_keep_ms', 0)
    assert queue.register('w')['kept'] == (0, 9)
    made = letters_of_ages(queue, 90 * DAY_MS)
    sweep(queue)
    assert ids(queue) == made


def test_a_failing_trim_stops_nothing(queue, keep):
    """If conf was damaged by hand, the task still becomes a dead letter."""
    keep()
    queue.redis.hset(queue.conf, 'dead_keep_number', 'x')
    bury(queue, 1)
    queue.redis.hset(queue.conf, 'dead_keep_number', '-5')
    bury(queue, 1)
    assert len(ids(queue)) == 2


def test_a_worker_applies_it(queue, daemon, leat):
    """End to end: the file's values apply, old dead letters are removed, leat status has their number, and a
    worker with other values is told."""
    old = letters_of_ages(queue, 40 * DAY_MS, 35 * DAY_MS)
    daemon({'dead': {'keep': '30d', 'keep_number': '1000'}}).wait_ready()
    wait_until(lambda: not set(old) & set(ids(queue)), 20, 'the old letters are dropped')
    status = json.loads(leat('status', '--json').stdout)
    assert status['figures']['total_dead_trimmed'] == 2
    assert (status['conf']['dead_keep_ms'], status['conf']['dead_keep_number']) == (
        30 * DAY_MS, 1000)
    assert 'dead_trimmed 2' in leat('status').stdout
    daemon({'dead': {'keep': '1d'}}).wait_log("queue settings override the config file")
