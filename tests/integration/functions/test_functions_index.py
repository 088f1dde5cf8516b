"""The index: where a task is, by its id, in the requeue stream and among the dead letters."""
import pytest

from harness.functions.invariants import check
from harness.polling import wait_until
from harness.queue import pairs, text

PLAIN = {'command': 'true'}
FAILED = dict(cause='exit', status='1')


@pytest.fixture(autouse=True)
def registered(queue):
    queue.register('w1')


def requeued(queue, count=1):
    """Tasks in the requeue stream."""
    tids = queue.add(*[PLAIN] * count)
    for task in queue.begin('w1', count) + queue.begin('w1', max(count - 1000, 0)):
        queue.finish('w1', task, 'release')
    return tids


def dead(queue, count=1, **fields):
    """Dead tasks."""
    tids = queue.add(*[{**PLAIN, **fields}] * count)
    for task in queue.begin('w1', count):
        queue.finish('w1', task, 'dead', **FAILED)
    return tids


def state(queue, tid):
    shown = queue.show(tid)
    return shown and text(shown['row']['state'])


def test_a_first_attempt_that_succeeds_is_never_indexed(queue):
    """A task of the stream that succeeds at once leaves names as they were, at each moment."""
    before = queue.redis.hgetall(queue.names)
    assert before == {b't:': b'done'}
    queue.add(PLAIN, PLAIN)
    for task in queue.begin('w1', 2):
        assert queue.redis.hgetall(queue.names) == before
        queue.renew('w1', [task.token])
        assert queue.finish('w1', task) == 'ok'
        assert queue.redis.hgetall(queue.names) == before


def test_it_follows_a_task_to_each_place(queue):
    """The index has a task exactly while it is in the requeue stream or a dead letter, and leads there."""
    [tid] = queue.add({**PLAIN, 'lane': 'a', 'id': 'label'})
    for outcome in ('release', 'retry', 'dead'):
        [task] = queue.begin('w1')
        queue.finish('w1', task, outcome, **FAILED, delay=0 if outcome == 'release' else 600000)
        check(queue)
        if outcome == 'retry':
            assert queue.index() == {} and state(queue, tid) == 'retrying'
            queue.redis.zadd(queue.delayed, {tid: 1})
    [(id, _)] = queue.entries('dead')
    assert queue.index() == {tid: 'd' + id} and state(queue, tid) == 'dead'
    assert queue.dead_retry(id) == ['ok']
    [task] = queue.begin('w1')
    assert queue.index() == {tid: task.token} and state(queue, tid) == 'running'
    queue.expire()
    queue.scan('w2')
    [(id, _)] = queue.entries('go')
    assert queue.index() == {tid: 'g' + id}
    # a late success
    assert queue.finish('w1', task) == 'ok'
    assert queue.index() == {} and state(queue, tid) is None
    check(queue)


def test_it_forgets_dropped_dead_letters(queue):
    """A dead letter leaves the index when an operator drops it, and when it is removed because of its age or its
    number."""
    dropped, *kept = dead(queue, 3)
    assert queue.dead_drop(queue.letters()[0][0]) == ['ok']
    assert set(queue.index()) == set(kept)
    queue.conf_set('dead_keep_number', 2)
    [new] = dead(queue)
    assert set(queue.index()) == {kept[1], new} and queue.counter('dead_trimmed') == 1
    queue.conf_set('dead_keep_ms', 1)
    last = int(queue.letters()[-1][0].split('-')[0])
    wait_until(lambda: queue.now() > last + 2)
    queue.redis.hdel(queue.stats, 'swept')
    queue.scan('w1')
    assert queue.index() == {} and queue.letters() == [] and queue.counter('dead_trimmed') == 3
    check(queue)


def test_many_old_dead_letters_are_removed_in_bounded_steps(queue):
    """One call removes at most 1,000 dead letters by age, and the scan goes on until all are gone."""
    pipe = queue.redis.pipeline()
    for number in range(2500):
        pipe.xadd(queue.dead, {'leat.tid': f'7-{number}', 'leat.fields': '0'}, id=f'5-{number + 1}')
    pipe.execute()
    queue.forget_index()
    queue.redis.hdel(queue.stats, 'swept')
    queue.scan('w1')
    assert len(queue.index()) == 2500
    queue.conf_set('dead_keep_ms', 1000)
    queue.redis.hdel(queue.stats, 'swept')
    cursor, lengths = 'g0-0', []
    while cursor:
        cursor = queue.claim('w1', 0, 0, cursor)['cursor']
        lengths.append(queue.redis.xlen(queue.dead))
    assert sorted(set(lengths), reverse=True) == [2500, 1500, 500, 0] and queue.index() == {}


def test_the_scan_indexes_older_entries(queue):
    """The scan of a worker indexes the entries of older libraries in bounded steps, also in a paused queue. What
    has moved since is indexed already, and stays as it is."""
    letters, tids = dead(queue, 100), requeued(queue, 1500)
    expected = queue.index()
    assert set(expected) == {*tids, *letters}
    queue.forget_index()
    [task] = queue.begin('w1')
    queue.finish('w1', task, 'release')
    expected[task.tid] = 'g' + queue.entries('go')[-1][0]
    assert queue.index() == {task.tid: expected[task.tid]}
    queue.gate('paused', True)
    cursor, steps = 'g0-0', []
    while cursor:
        cursor = queue.claim('w1', 0, 0, cursor)['cursor']
        steps.append(len(queue.index()))
    assert queue.index() == expected and queue.redis.hget(queue.names, 't:') == b'done'
    assert max(after - before for before, after in zip([1, *steps], steps)) <= 1000


def test_before_older_entries_are_indexed(queue):
    """Until then, show searches page by page, and finds a task in either stream; a cancel needs its token."""
    letters, tids = dead(queue, 150), requeued(queue, 150)
    queue.forget_index()
    assert len(queue.call('show', queue.group, tids[149], '')) == 1
    assert state(queue, tids[149]) == 'ready' and state(queue, letters[149]) == 'dead'
    assert state(queue, '1-1') is None
    assert queue.call_off(tids[149]) == ['gone']
    token = text(queue.show(tids[149])['row']['token'])
    assert queue.call_off((tids[149], token)) == ['cancelled']
    queue.scan('w1')
    assert len(queue.call('show', queue.group, tids[100], '')) > 1


def test_a_damaged_mark_starts_again(queue):
    """If the mark of how far older entries are indexed cannot be read, the scan begins again."""
    [tid] = requeued(queue)
    queue.redis.delete(queue.names)
    queue.redis.hset(queue.names, 't:', 'x\0y')
    queue.scan('w1')
    assert set(queue.index()) == {tid} and queue.redis.hget(queue.names, 't:') == b'done'


def test_a_wrong_index_leads_to_no_other_task(queue):
    """An entry that leads to another task, to nothing or to no place finds no task."""
    [letter], [tid] = dead(queue), requeued(queue)
    places = queue.index()
    for place in (places[tid], places[letter], 'g1-1', 'd1-1', 's' + tid, 'g', 'x1-1', '', 'g9' + '9' * 30 + '-1'):
        queue.redis.hset(queue.names, 't:1-1', place)
        assert state(queue, '1-1') is None and queue.call_off('1-1') == ['gone'], place
        assert queue.call('find', queue.group, 'g0-0', '1-1')[1:] == [1, [], []]
    assert state(queue, tid) == 'ready' and state(queue, letter) == 'dead'


def match(queue, digits):
    cursor, found = '', set()
    while True:
        cursor, tids = queue.call('match', queue.group, cursor, digits)
        found |= {text(tid) for tid in tids}
        if not cursor:
            return found


def test_tasks_whose_ids_begin_with_digits(queue):
    """They are found in each place, and also before older entries are indexed. A label of a living task that is
    the same digits wins."""
    tids = {*dead(queue, 2), *requeued(queue, 2), *queue.add(PLAIN), *queue.add(PLAIN, due='+60000')}
    tids |= set(queue.add({**PLAIN, 'lane': 'a'}, {**PLAIN, 'lane': 'a'}))
    first = min(tids)
    queue.redis.xadd(queue.stream, PLAIN, id='9999999999999-1')
    for _ in range(2):
        assert match(queue, first[:5]) == tids
        assert match(queue, first[:13]) == {tid for tid in tids if tid[:13] == first[:13]}
        assert match(queue, '999999') == {'9999999999999-1'}
        assert match(queue, '111') == match(queue, '1' * 14) == set()
        queue.forget_index()
    [labelled] = queue.add({**PLAIN, 'id': first[:5]})
    assert match(queue, first[:5]) == {labelled}
    for args in (['', 'x'], ['', ''], ['x', '1'], ['', '1*']):
        with pytest.raises(Exception, match='BADARG'):
            queue.call('match', queue.group, *args)


def test_the_dead_letter_after_another_one(queue):
    """Of two dead letters of one task, as after edits by hand, each can be shown."""
    [tid] = dead(queue)
    [(id, fields)] = queue.entries('dead')
    second = text(queue.redis.execute_command('XADD', queue.dead, '*', *fields))
    for wanted, cursor in ((id, 'd0-1'), (second, 'd' + id), (id, 'd0-0')):
        reply = queue.call('show', queue.group, tid, cursor)
        assert text(pairs(reply[1])['dead_id']) == wanted
    assert text(queue.show('d' + second)['row']['dead_id']) == second
