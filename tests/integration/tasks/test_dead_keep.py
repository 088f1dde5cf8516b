"""Retention of dead letters by age and by number: the right ones are removed, and counted."""
import json

import pytest

from harness.functions.doctor import Doctor
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
        before = queue.redis.xlen(queue.dead)
        cursor = queue.claim('w', 0, 0, cursor)['cursor']
        seen.append(before - queue.redis.xlen(queue.dead))
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


def add_junk(queue, count):
    """Adds tasks that leat_claim refuses, and lets it. Returns the ids of their dead letters."""
    before = set(ids(queue))
    pipe = queue.redis.pipeline(transaction=False)
    for _ in range(count):
        pipe.xadd(queue.stream, {'command': 'x', 'lane': 'x' * 999})
    pipe.execute()
    wait_until(lambda: queue.begin('w', 100) == [] and queue.redis.xlen(queue.stream) == 0)
    return [id for id in ids(queue) if id not in before]


def test_junk_pushes_out_no_task_that_ran(queue, keep):
    """However many tasks are refused, the dead letters of tasks that ran stay. The newest refused ones stay,
    too: a tenth of the number."""
    keep(dead_keep_number=30)
    bury(queue, 30)
    ran = ids(queue)
    junk = add_junk(queue, 500)
    assert len(junk) == 3 and ids(queue) == ran + junk
    assert (queue.counter('dead'), queue.counter('dead_trimmed')) == (530, 497)
    bury(queue, 2)
    assert ids(queue)[:28] == ran[2:] and len(ids(queue)) == 33
    assert len([name for name in queue.redis.hkeys(queue.names) if name[:2] == b'r:']) == 3
    assert Doctor(queue).look() == []


def test_junk_has_the_room_that_is_left(queue, keep):
    """Without other dead letters, refused tasks may have all of the number; they make room for tasks that ran."""
    keep(dead_keep_number=20)
    junk = add_junk(queue, 50)
    assert len(junk) == 20
    bury(queue, 15)
    assert ids(queue)[:5] == junk[-5:] and len(ids(queue)) == 20
    bury(queue, 5)
    assert ids(queue)[:2] == junk[-2:] and len(ids(queue)) == 22


CAUSES = [('exit', False), ('crash', False), ('refused', True), ('cannot-execute', True)]


@pytest.mark.parametrize('cause, counts', CAUSES)
def test_what_counts_as_never_run(queue, keep, cause, counts):
    """A task that a worker refuses never ran, unless it had an attempt before."""
    keep(dead_keep_number=2)
    bury(queue, 2)
    ran = ids(queue)
    queue.add(*[{'command': 'x'}] * 3)
    for task in queue.begin('w', 3):
        assert queue.finish('w', task, 'dead', cause=cause) == 'ok'
    assert (ids(queue)[:2] == ran) == counts
    queue.add({'command': 'x'})
    [task] = queue.begin('w')
    assert queue.finish('w', task, 'retry', delay=1) == 'ok'
    [task] = wait_until(lambda: queue.begin('w'))
    assert queue.finish('w', task, 'dead', cause='refused') == 'ok'
    assert not set(ran[:1]) & set(ids(queue))


def test_expired_and_damaged_tasks_never_ran(queue, keep):
    """They push out nothing that ran, in any state."""
    keep(dead_keep_number=10)
    bury(queue, 10)
    ran = ids(queue)
    for i in range(20):
        queue.redis.xadd(queue.stream, {'command': 'x', 'expires': '1'})
        queue.redis.xadd(queue.go, {'command': 'x', 'leat.fence': 'nan', 'leat.fields': '1'})
    for _ in range(20):
        assert queue.begin('w', 9) == []
    assert ids(queue)[:10] == ran and len(ids(queue)) == 11


def test_refused_tasks_that_were_dropped(queue, keep):
    """An operator deletes some dead letters of refused tasks; the rules hold on."""
    keep(dead_keep_number=10)
    junk = add_junk(queue, 10)
    assert set(queue.dead_drop(*junk[1:9])) == {'ok'}
    assert queue.dead_drop(junk[0]) == ['ok']
    bury(queue, 10)
    ran = ids(queue)[1:]
    assert ids(queue)[0] == junk[9] and len(ran) == 10
    add_junk(queue, 30)
    assert ids(queue)[:10] == ran and 11 <= len(ids(queue)) <= 12
    queue.redis.delete(queue.dead)
    add_junk(queue, 200)
    sweep(queue)
    assert len(ids(queue)) == 10
    assert len([name for name in queue.redis.hkeys(queue.names) if name[:2] == b'r:']) <= 20


@pytest.mark.parametrize('first, following', [('x', '5'), ('7', '2'), ('0', '9007199254740000'), ('nan', 'inf'),
                                              ('-1', '1e9')])
def test_numbers_of_refused_tasks_that_were_changed(queue, keep, first, following):
    """Whatever the counters say, calls end, and the number of dead letters is bounded."""
    keep(dead_keep_number=10)
    add_junk(queue, 10)
    queue.redis.hset(queue.stats, mapping={'unfit_first': first, 'unfit_next': following})
    bury(queue, 10)
    sweep(queue)
    add_junk(queue, 30)
    bury(queue, 10)
    sweep(queue)
    assert 10 <= len(ids(queue)) <= 12


def test_a_lower_number_with_junk(queue, keep):
    """A lower number removes refused tasks first, page by page."""
    keep(dead_keep_number=1000)
    bury(queue, 20)
    ran = ids(queue)
    add_junk(queue, 700)
    queue.conf_set('dead_keep_number', 20)
    sweep(queue)
    assert ids(queue)[:20] == ran and len(ids(queue)) == 22
