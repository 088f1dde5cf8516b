"""Lanes: the order of their tasks, caps, and that no client's tasks block another's."""
from collections import Counter

import pytest
import redis

from harness.functions import invariants

SLOTS = 8
MANY = 20_000
ODD = ['a b', 'a:b', 'l:x', 'a,b', 'ä', 'a\1', '\1', '\xff\xfe', 'new\nline', '%d', 'x' * 200, '[', '(', '-', '+']


@pytest.fixture(autouse=True)
def worker(queue):
    queue.register('w1')
    queue.register('w2')
    yield
    waiting = queue.redis.hlen(queue.waiting)
    # a check of very many tasks finds nothing more and takes many seconds
    assert waiting == 0 or waiting + queue.redis.xlen(queue.stream) > MANY or invariants.check(queue)


def laned(lane, count=1, **fields):
    return [dict(command=lane, lane=lane, **fields) for _ in range(count)]


def fill(queue, lane, count):
    for begin in range(0, count, 500):
        queue.add(*laned(lane, min(500, count - begin)))


def lane_of(task):
    return task.fields.get('lane', b'').decode()


def run(queue, starts, slots=SLOTS, began=None):
    """Runs one worker with this many slots: a task starts when another ends. Returns their lanes in order."""
    lanes, running = [], []
    while len(lanes) < starts:
        tasks = queue.begin('w1', slots - len(running), busy=len(running))
        if not tasks and not running:
            break
        for task in tasks:
            lanes.append(lane_of(task))
            if began:
                began(task)
        running += tasks
        queue.finish('w1', running.pop(0))
    for task in running:
        queue.finish('w1', task)
    return lanes[:starts]


def pile_up(queue, lane, count, how):
    """This many tasks wait in the lane, added by the function or by plain XADD."""
    if how == 'function':
        fill(queue, lane, count)
    else:
        queue.redis.eval(
            "for i = 1, ARGV[2] do redis.call('XADD', KEYS[1], '*', 'command', 'x', 'lane', ARGV[1]) end",
            1, queue.stream, lane, count)


# ---- order

def test_weights(queue):
    """In 8,000 starts, lanes of weight 1, 2 and 5 get their shares within 2 %."""
    weights = {'a': 1, 'b': 2, 'c': 5}
    for lane, weight in weights.items():
        queue.conf_set('lane:' + lane, weight)
        fill(queue, lane, weight * 1100)
    counts = Counter(run(queue, 8000))
    for lane, weight in weights.items():
        assert abs(counts[lane] - weight * 1000) <= weight * 20, counts


def test_weights_in_every_stretch(queue):
    """The shares hold in any 80 consecutive starts."""
    for lane, weight in {'a': 1, 'b': 2, 'c': 5}.items():
        queue.conf_set('lane:' + lane, weight)
        fill(queue, lane, weight * 100)
    lanes = run(queue, 640, slots=1)
    for begin in range(0, 640, 80):
        counts = Counter(lanes[begin:begin + 80])
        assert all(abs(counts[lane] - share) <= 2 for lane, share in {'a': 10, 'b': 20, 'c': 50}.items()), counts


def test_fractions_of_a_weight(queue):
    """A weight of 0.5 gets half of what a weight of 1 gets."""
    queue.conf_set('lane:a', '0.5')
    fill(queue, 'a', 200)
    fill(queue, 'b', 300)
    assert abs(Counter(run(queue, 300))['a'] - 100) <= 2


def test_a_strict_lane_goes_first(queue):
    """Tasks of a strict lane start first, also if they came after hundreds of others; two strict lanes share."""
    fill(queue, 'a', 100)
    run(queue, 20)
    for lane in ('now', 'too'):
        queue.conf_set('lane:' + lane, 'strict')
        fill(queue, lane, 10)
    queue.redis.xadd('emails', {'command': 'plain'})
    lanes = run(queue, 30, slots=1)
    # one may have been requeued before
    assert Counter(lanes[:21])['now'] == Counter(lanes[:21])['too'] == 10
    assert abs(Counter(lanes[:10])['now'] - 5) <= 1


@pytest.mark.parametrize('weight, least', [('strict', 300), ('1000', 299)])
def test_many_tasks_at_once(queue, weight, least):
    """A claim of hundreds of tasks keeps the order of lanes, too."""
    queue.conf_set('lane:a', weight)
    fill(queue, 'a', 1000)
    for _ in range(300):
        queue.redis.xadd(queue.stream, {'command': 'plain'})
    tasks = queue.begin('w1', 300)
    assert len(tasks) == 300 and Counter(map(lane_of, tasks))['a'] >= least


@pytest.mark.parametrize('before, after', [('strict', '1'), ('1', 'strict'), ('strict', '')])
def test_a_lane_that_changes_its_kind(queue, before, after):
    """A lane whose kind changes shares, or goes first, from the change on, whatever it was when its tasks
    came."""
    queue.conf_set('lane:a', before)
    fill(queue, 'a', 100)
    fill(queue, 'b', 100)
    run(queue, 20, slots=1)
    queue.conf_set('lane:a', after)
    lanes = run(queue, 41, slots=1)[1:]
    assert Counter(lanes)['a'] == 40 if after == 'strict' else abs(Counter(lanes)['a'] - 20) <= 1
    # the clocks of both kinds are unchanged
    queue.conf_set('lane:c', 'strict')
    fill(queue, 'c', 5)
    fill(queue, 'd', 5)
    assert Counter(run(queue, 6, slots=1))['c'] >= 5 - (after == 'strict') * 3


def test_first_come_first_served_within_a_lane(queue):
    """Tasks start in the order in which they came, retried tasks too."""
    tids = [tid for _ in range(20) for tid in queue.add(*laned('a'))]
    [first] = queue.begin('w1')
    queue.finish('w1', first, 'retry', delay=0)
    order = []
    while len(order) < 20:
        for task in queue.begin('w1', 3):
            order.append(task.tid)
            queue.finish('w1', task)
    # one was requeued before the first came back
    assert sorted(order[:2]) == tids[:2] and order[2:] == tids[2:]


def test_a_lane_joins_at_the_present(queue):
    """A lane that gets tasks again neither makes up for idle time nor waits."""
    fill(queue, 'a', 600)
    run(queue, 300)
    fill(queue, 'b', 100)
    lanes = run(queue, 100, slots=1)
    assert abs(Counter(lanes)['b'] - 50) <= 1 and 'b' in lanes[:3]


def test_clocks_that_have_come_far(queue):
    """The clock of lanes with small weights comes to its end some day. While no lane waits, it starts again, and
    lanes take turns as ever."""
    far = 2e11
    queue.redis.hset(queue.stats, mapping={'clock': far, 'clock_strict': far, 'stream_tag': far})
    queue.conf_set('lane:s', 'strict')
    queue.add(*laned('a', 9), *laned('b', 9), *laned('s', 2))
    for _ in range(9):
        queue.redis.xadd(queue.stream, {'command': 'plain'})
    lanes = run(queue, 20, slots=1)
    assert lanes[:2] == ['s', 's'] and min(Counter(lanes[2:]).values()) >= 5, lanes
    assert float(queue.redis.hget(queue.stats, 'clock')) < far / 2


@pytest.mark.parametrize('weight, tag', [
    ('1', 'inf'), ('1', 1e15), ('1', 1e6), ('1', -4e11),
    ('strict', '-1e300'), ('strict', 9e15), ('strict', -6e11)])
def test_a_turn_that_somebody_has_changed(queue, weight, tag):
    """The next scan mends it: then it keeps neither its lane nor the others from their turns."""
    for lane in 'ab':
        queue.conf_set('lane:' + lane, weight)
    queue.add(*laned('a', 100), *laned('b', 100))
    queue.redis.zadd(queue.lanes, {'a': tag})
    queue.finish('w1', *queue.scan('w1', 1)[1])
    assert abs(Counter(run(queue, 60, slots=1))['a'] - 30) <= 2


def test_a_turn_of_the_stream_that_somebody_has_changed(queue):
    """The same of that of the tasks without a lane."""
    queue.add(*laned('a', 20))
    queue.redis.hset(queue.stats, 'stream_tag', 2e11)
    queue.redis.xadd(queue.stream, {'command': 'plain'})
    queue.scan('w1')
    assert '' in run(queue, 5, slots=1)


def test_a_lane_that_empties_has_no_advantage(queue):
    """A lane that empties after each start and joins again gets no more than its share."""
    fill(queue, 'a', 300)
    queue.add(*laned('b'))

    def refill(task):
        if lane_of(task) == 'b':
            queue.add(*laned('b'))

    assert Counter(run(queue, 300, slots=1, began=refill))['b'] <= 151


def test_the_plain_stream_is_a_lane(queue):
    """A backlog of plain XADDs and lanes share alike; neither starves."""
    queue.redis.eval("for i = 1, 500 do redis.call('XADD', KEYS[1], '*', 'command', 'x') end", 1, 'emails')
    fill(queue, 'a', 500)
    fill(queue, 'b', 500)
    counts = Counter(run(queue, 300))
    assert all(abs(counts[lane] - 100) <= 2 for lane in ('', 'a', 'b')), counts


def test_a_stream_that_was_empty_joins_at_the_present(queue):
    """Hundreds of reads of an empty stream, beside a heavy lane, do not count against the stream."""
    queue.conf_set('lane:a', 1000)
    fill(queue, 'a', 500)
    for _ in range(200):
        for task in queue.begin('w1', 2):
            queue.finish('w1', task)
    queue.conf_set('lane:a', 1)
    queue.redis.eval("for i = 1, 50 do redis.call('XADD', KEYS[1], '*', 'command', 'x') end", 1, 'emails')
    fill(queue, 'a', 50)
    assert abs(Counter(run(queue, 40, slots=1))[''] - 20) <= 2


def test_lanes_and_stream_take_turns_also_one_at_a_time(queue):
    """A task that is requeued to wake a worker does not jump the queue, and scans of busy workers pile
    nothing up."""
    fill(queue, 'a', 50)
    busy = queue.begin('w1', 2)
    for _ in range(20):
        queue.claim('w1', 0, 2, 'g0-0')
        queue.scan('w2')
    queue.add(*laned('b'))
    assert 'b' in run(queue, 3, slots=1) and len(busy) == 2
    assert queue.finish('w1', busy[0]) == 'ok'


# ---- times

def test_delayed_tasks_of_a_lane(queue):
    """A delayed task that is due waits for its lane's turn."""
    fill(queue, 'a', 20)
    tids = queue.add(*laned('b', 10), due='+60000')
    assert 'b' not in run(queue, 5, slots=1)
    for tid in tids:
        queue.redis.zadd(queue.delayed, {tid: 1})
    lanes = run(queue, 10, slots=1)
    assert abs(Counter(lanes)['b'] - 5) <= 1


def test_retried_tasks_of_a_lane(queue):
    """A retried task waits for its lane's turn; a released one goes on at once."""
    queue.add(*laned('a', 3))
    [task] = queue.begin('w1')
    queue.finish('w1', task, 'retry', delay=0)
    fill(queue, 'b', 10)
    lanes = run(queue, 8, slots=1)
    assert abs(Counter(lanes)['a'] - 3) <= 1
    [task] = queue.begin('w1')
    queue.finish('w1', task, 'release')
    assert task.tid in [again.tid for again in queue.begin('w1', 2)]


@pytest.mark.parametrize('how', ['due', 'retried letters'])
def test_plain_tasks_in_numbers_hold_up_no_lane(queue, how):
    """If thousands of plain tasks come due, or are retried, at once, a lane's task starts among the first."""
    tids = []
    for _ in range(4):
        tids += queue.add(*[{'command': 'x'}] * 500, due='+60000')
    for begin in range(0, 2000, 500):
        queue.redis.zadd(queue.delayed, {tid: 1 for tid in tids[begin:begin + 500]})
    if how == 'retried letters':
        while queue.redis.xlen(queue.dead) < 2000:
            for task in queue.begin('w1', 100):
                queue.finish('w1', task, 'dead', cause='exit')
        ids = [id for id, _ in queue.letters()]
        for begin in range(0, 2000, 100):
            queue.dead_retry(*ids[begin:begin + 100])
    queue.add(*laned('a', 2))
    assert 'a' in run(queue, SLOTS + 1)


def test_expired_tasks_of_a_lane_block_no_other(queue):
    """Expired tasks become dead letters, some in each call, and the tasks behind them start."""
    queue.conf_set('lane:a', '1, 1')
    queue.add(*laned('a', 300, expires='1'), *laned('a', 2))
    lanes = []
    for _ in range(20):
        lanes += [lane_of(task) for task in queue.begin('w1', 4)]
    assert lanes == ['a'] and len(queue.letters()) == 300 - 1 + 1


# ---- names

@pytest.mark.parametrize('name', ODD)
def test_a_lanes_name_is_any_bytes(queue, name):
    """A lane whose name looks like leat's own, or like the beginning of another's, takes no other lane's tasks or
    settings."""
    raw = name.encode('latin-1')
    others = [raw[:-1], raw + b'x', raw + b'\1']
    queue.call('conf', b'lane:' + raw, '1, 1')
    tasks = [{'command': 'x', 'lane': lane} for lane in [raw, raw, *others] if 0 < len(lane) <= 200]
    queue.add({'command': 'busy'}, *tasks)
    begun = queue.begin('w1', 10)
    assert len(begun) == len(tasks)
    [mine] = [task for task in begun if task.fields.get('lane') == raw]
    assert queue.redis.hget(queue.stats, b'r:' + raw) == b'1'
    queue.finish('w1', mine)
    [second] = queue.begin('w1', 10)
    assert second.fields['lane'] == raw
    rows = {row['lane'] for row in queue.list('running')}
    assert raw in rows


@pytest.mark.parametrize('name', ['x' * 201, 'a\0b', '\0'])
def test_what_is_no_name_is_refused(queue, name):
    """leat_enqueue refuses such a name, and the claim check does so for a plain XADD; nothing is kept, also
    if the task is retried."""
    with pytest.raises(redis.ResponseError, match='^REFUSED task 1: lane: longer than 200 bytes, or with a NUL'):
        queue.enqueue({'command': 'x', 'lane': name})
    queue.redis.xadd('emails', {'command': 'x', 'lane': name})
    assert queue.begin('w1') == []
    [(letter, fields)] = queue.letters()
    assert fields['leat.cause'] == b'refused' and b'200 bytes' in fields['leat.reason']
    assert queue.dead_retry(letter)[0].startswith('REFUSED lane: longer')
    assert queue.redis.exists(queue.waiting, queue.laned, queue.lanes) == 0


def test_ids_of_every_size(queue):
    """A task with an entry id of its producer's choice, up to 64 bits, comes back out of a lane."""
    queue.conf_set('lane:a', '1, 1')
    queue.redis.xadd('emails', {'command': 'x', 'lane': 'a'}, id='1-1')
    for id in ('99999999999999-7', '18446744073709551615-18446744073709551614'):
        queue.redis.xadd('emails', {'command': 'x', 'lane': 'a'}, id=id)
    ids = []
    for _ in range(3):
        [task] = queue.begin('w1', 3)
        ids.append(task.tid)
        queue.finish('w1', task)
    assert ids == ['1-1', '99999999999999-7', '18446744073709551615-18446744073709551614']


@pytest.mark.parametrize('value', [
    '0', '-1', 'x', '1001', 'nan', '1, x', '1, 0', '1, 1.5', '1, 1, 5', '1, 1, 0/s', '1, 1, 1/s, x',
    '1, 1, 1/s, 1, 1', ', 1', 'strict 1'])
def test_settings_that_mean_nothing_are_refused(queue, value):
    """A setting without a meaning is refused, and nothing is kept."""
    with pytest.raises(redis.ResponseError, match='^BADARG lane:a cannot be set'):
        queue.conf_set('lane:a', value)
    with pytest.raises(redis.ResponseError, match='^BADARG'):
        queue.register('w1', **{'lane:a': value})
    assert 'lane:a' not in queue.conf_set()


@pytest.mark.parametrize('name', ['lane:', 'lane:' + 'x' * 201, 'lane:a\0b'])
def test_settings_of_what_is_no_lane_are_refused(queue, name):
    """The plain stream has no lane settings."""
    with pytest.raises(redis.ResponseError, match='^BADARG'):
        queue.conf_set(name, '1')


# ---- caps

def begin_all(queue, *workers):
    """Each worker claims as many tasks as it can."""
    tasks = []
    for worker in workers:
        for _ in range(3):
            tasks += [(worker, task) for task in queue.begin(worker, 10)]
    return tasks


def runs(queue, lane='a'):
    return queue.counter('r:' + lane)


@pytest.mark.parametrize('how', ['function', 'XADD'])
def test_a_cap_counts_over_all_workers(queue, how):
    """Never more than three tasks of the lane run, whichever worker claims; other tasks go on."""
    queue.conf_set('lane:a', '1, 3')
    pile_up(queue, 'a', 50, how)
    queue.add(*laned('b', 5))
    tasks = begin_all(queue, 'w1', 'w2')
    assert Counter(lane_of(task) for _, task in tasks) == {'a': 3, 'b': 5}
    assert runs(queue) == 3
    done = 3
    while done < 50:
        worker, task = [(worker, task) for worker, task in tasks if lane_of(task) == 'a'][0]
        queue.finish(worker, task)
        tasks.remove((worker, task))
        tasks += begin_all(queue, 'w2', 'w1')
        now = sum(lane_of(task) == 'a' for _, task in tasks)
        done += 1
        assert now == runs(queue) == min(3, 50 - done + 3), done


# how one of three running tasks ends, and how many of the lane then run that hold a slot
FATES = {
    'retry': lambda q, task: q.finish('w1', task, 'retry', delay=60000),
    'dead': lambda q, task: q.finish('w1', task, 'dead', cause='exit'),
    'release': lambda q, task: q.finish('w1', task, 'release'),
    'cancelled': lambda q, task: q.finish('w1', task, 'cancelled'),
    'expiry': lambda q, task: (q.expire(task.token), q.scan('w2')),
    'late success': lambda q, task: (q.expire(task.token), q.scan('w2'), q.finish('w1', task)),
    'vanished': lambda q, task: (q.redis.xdel(q.go if task.token[0] == 'g' else q.stream, task.token[1:]),
                                 q.renew('w1', [task.token])),
    'vanished, scan': lambda q, task: (q.redis.xdel(q.go if task.token[0] == 'g' else q.stream, task.token[1:]),
                                       q.expire(task.token), q.scan('w2')),
    'last crash': lambda q, task: (q.conf_set('max_crashes', 1), q.expire(task.token), q.scan('w2')),
}


@pytest.mark.parametrize('fate', FATES)
def test_a_cap_is_exact_whatever_becomes_of_a_task(queue, fate):
    """The slot becomes free exactly once: one task starts, and no more."""
    queue.conf_set('lane:a', '1, 3')
    queue.add(*laned('a', 20))
    mine = queue.begin('w1', 10)
    assert len(mine) == 3
    FATES[fate](queue, mine[0])
    assert runs(queue) == 2
    assert sum(len(queue.begin('w2', 10)) for _ in range(3)) == 1 and runs(queue) == 3
    assert queue.finish('w1', mine[0]) in ('gone', 'fenced')
    assert sum(len(queue.begin('w2', 10)) for _ in range(3)) == 0 and runs(queue) == 3


@pytest.mark.parametrize('step', ['died', 'left', 'registers'])
def test_a_worker_that_goes_frees_its_slots(queue, step):
    """The three slots of a worker that leaves become free at once, and the next three tasks start, requeued
    ones among them."""
    queue.conf_set('lane:a', '1, 3')
    queue.add(*laned('a', 20))
    assert len(queue.begin('w1', 10)) == 3
    if step == 'registers':
        queue.register('w1')
    else:
        queue.requeue('w1', died=step == 'died')
    assert runs(queue) == 0
    assert sum(len(queue.begin(worker, 10)) for worker in ('w2', 'w3', 'w4', 'w5')) == 3 == runs(queue)


def test_a_cap_that_is_changed(queue):
    """After a lower cap nothing starts until enough tasks have ended; a higher cap, or none, takes effect at
    once."""
    queue.conf_set('lane:a', '1, 4')
    queue.add(*laned('a', 20))
    tasks = queue.begin('w1', 10)
    queue.conf_set('lane:a', '1, 2')
    for task in tasks[:2]:
        queue.finish('w1', task)
        assert queue.begin('w1', 10) == []
    queue.finish('w1', tasks[2])
    assert len(queue.begin('w1', 10)) == 1 == runs(queue) - 1
    queue.conf_set('lane:a', '1, 5')
    assert sum(len(queue.begin('w1', 10)) for _ in range(3)) == 3
    queue.conf_set('lane:a', '')
    assert sum(len(queue.begin('w1', 10)) for _ in range(2)) == 12


# ---- the default

def started(queue, *lanes):
    """How many tasks of each lane run after workers have claimed what they can."""
    begin_all(queue, 'w1', 'w2')
    return {lane: runs(queue, lane) for lane in lanes}


@pytest.mark.parametrize('how', ['function', 'XADD'])
def test_a_default_for_lanes_without_settings(queue, how):
    """lane:* binds each lane that has no settings of its own, but no tasks without a lane; leat_lanes shows it."""
    queue.conf_set('lane:*', '1, 1')
    queue.conf_set('lane:own', '1')
    for lane in ('a', 'b', '*', 'own'):
        pile_up(queue, lane, 4, how)
    queue.add(*[{'command': 'true'}] * 5)
    assert started(queue, 'a', 'b', '*', 'own') == {'a': 1, 'b': 1, '*': 1, 'own': 4}
    shown = {name: (row['settings'], row['waiting']) for name, row in queue.lane_rows().items()}
    assert shown == {**dict.fromkeys([b'*', b'a', b'b'], (b'1, 1', 3)), b'own': (b'1', 0)}


def test_a_default_that_is_changed(queue):
    """A changed default applies at once to lanes that waited for a slot or a token of the old one, and again to a
    lane that loses its own settings."""
    queue.conf_set('lane:*', '1, 1')
    queue.conf_set('lane:own', '1, 2')
    for lane in ('a', 'b', 'own'):
        queue.add(*laned(lane, 9))
    assert started(queue, 'a', 'b', 'own') == {'a': 1, 'b': 1, 'own': 2}
    queue.conf_set('lane:*', '1, 3')
    assert started(queue, 'a', 'b', 'own') == {'a': 3, 'b': 3, 'own': 2}
    queue.conf_set('lane:own', '')
    assert started(queue, 'own') == {'own': 3}
    queue.conf_set('lane:*', '1, -, 1/h')
    assert started(queue, 'a', 'b') == {'a': 4, 'b': 4}
    queue.conf_set('lane:*', '')
    assert started(queue, 'a', 'b', 'own') == {'a': 9, 'b': 9, 'own': 9}


def test_a_default_for_very_many_lanes(queue):
    """A changed default reaches a first page of lanes at once, and the rest with the next scan."""
    queue.conf_set('lane:*', '1, -, 1/h')
    for number in range(0, 1500, 50):
        queue.add(*[task for i in range(50) for task in laned(f'client {number + i:04}', 2)])
    while queue.begin('w1', 100):
        pass
    queue.conf_set('lane:*', '')
    assert queue.redis.hget(queue.stats, 'rejoin') == b'client 0999'
    queue.scan('w1')
    assert queue.redis.hget(queue.stats, 'rejoin') is None
    while queue.begin('w2', 100):
        pass
    assert [runs(queue, f'client {number:04}') for number in (0, 999, 1000, 1499)] == [2] * 4


def test_one_that_was_passed_on_keeps_its_late_success_in_its_lane(queue):
    """If the lease expired while the lane was full again, the task waits unclaimed, and its late success ends
    it there."""
    queue.conf_set('lane:a', '1, 1')
    queue.add(*laned('a', 2, unique_for='1h'))
    [task] = queue.begin('w1')
    queue.redis.xadd('emails', {'command': 'quick', 'lane': 'a'})
    quick = queue.block('w2')
    queue.expire(task.token)
    queue.scan('w2')
    assert queue.claim('w2', 0, named=quick)['tasks'] and queue.begin('w2', 1) == []
    assert queue.places()[task.tid] == ['waiting']
    assert queue.finish('w1', task) == 'ok' and task.tid not in queue.places()
    assert queue.counter('succeeded') == 1


# ---- large numbers

@pytest.mark.parametrize('how', ['function', 'XADD'])
def test_100000_of_one_lane_hold_up_no_other(queue, how):
    """One task of lane B behind 100,000 of lane A starts within slots + 1 starts, also if all are claimed at
    once."""
    pile_up(queue, 'a', 100_000, how)
    running = queue.begin('w1', SLOTS)
    assert len(running) == SLOTS
    queue.add(*laned('b', 20))
    began = []
    for task in running:
        queue.finish('w1', task)
        began += [lane_of(task) for task in queue.begin('w1', 1)]
    began += [lane_of(task) for task in queue.begin('w2', 1)]
    assert 'b' in began and len(began) == SLOTS + 1
    assert 'b' in [lane_of(task) for task in queue.begin('w2', SLOTS + 1)]


@pytest.mark.parametrize('how', ['function', 'XADD', 'plain'])
@pytest.mark.parametrize('heavy', ['a', 'z'])
@pytest.mark.parametrize('before', [0, 1, 2, 7])
def test_a_task_of_another_lane_is_next(queue, how, heavy, before):
    """Of a lane with many tasks at most one more starts before the first task of another lane: the one that was
    already put up for a worker. It does not matter which name sorts first."""
    if how == 'plain':
        queue.redis.eval("for i = 1, 50 do redis.call('XADD', KEYS[1], '*', 'command', 'x') end", 1, queue.stream)
    else:
        pile_up(queue, heavy, 50, how)
    run(queue, before, slots=1)
    queue.add(*laned('b'))
    assert 'b' in run(queue, 2, slots=1)


def test_hundreds_of_lanes(queue):
    """With 20 tasks in each of 300 lanes, and one lane that is refilled at each start, each lane gets 10 ± 1 of
    the first 3,000 starts, and the refilled one at most two shares."""
    for number in range(0, 300, 5):
        queue.add(*[task for i in range(5) for task in laned(f'client {number + i}', 20)])

    def refill(_):
        if queue.redis.zcount(queue.laned, 0, 0) and not queue.redis.zrangebylex(
                queue.laned, b'[greedy\0', b'(greedy\1', 0, 1):
            queue.add(*laned('greedy'))

    queue.add(*laned('greedy'))
    counts = Counter(run(queue, 3000, began=refill))
    greedy = counts.pop('greedy')
    assert greedy <= 2 * 3000 / 301
    assert len(counts) == 300 and set(counts.values()) <= {9, 10, 11}


def test_very_many_lanes_that_can_start_nothing(queue, client):
    """A lane behind hundreds that wait for a token is reached, because a claim in vain is told to go on."""
    lanes = [f'slow {number:03}' for number in range(350)]
    for lane in lanes:
        queue.conf_set('lane:' + lane, '1000, -, 1/h')
    queue.add({'command': 'busy'}, *[task for lane in lanes for task in laned(lane, 2)])
    while True:
        tasks = queue.begin('w1', 100)
        if len(tasks) < 100:
            break
    for lane in lanes:
        client.zadd(queue.lanes, {lane: 0})
    queue.add(*laned('free', 3))
    client.xgroup_setid(queue.go, 'leat', '$')
    client.xtrim(queue.go, 0)
    seen, claims = [], 0
    while not seen:
        rung = queue.entries('bell')
        seen = [lane_of(task) for task in queue.begin('w2')]
        claims += 1
        assert seen or queue.entries('bell') != rung
    assert seen == ['free'] and claims <= 4
    client.flushall()
