"""leat_tell: each dead letter is handed to one worker that tells of it, at least once."""
import pytest
import redis

from harness.polling import wait_until

TELLERS = 'tellers'


@pytest.fixture(autouse=True)
def told(queue):
    """Somebody wants to be told from now on."""
    queue.register('w')
    assert queue.tell() == ([], [])


def bury(queue, *tasks, **result):
    queue.add(*(tasks or [{'command': 'x'}]))
    result = {'cause': 'exit', 'status': '3', 'reason': 'exit 3', **result}
    tids = []
    for task in queue.begin('w', len(tasks) or 1):
        assert queue.finish('w', task, 'dead', **result) == 'ok'
        tids.append(task.tid)
    return tids


def tids(answer):
    letters, given_up = answer
    assert given_up == []
    return [letter['tid'] for letter in letters]


def pending(queue):
    return [row[0].decode() for row in queue.redis.execute_command(
        'XPENDING', queue.dead, TELLERS, '-', '+', 1000)]


def pass_time(queue, ms=10 ** 7):
    """Makes all that is handed out idle for so long."""
    for row in queue.redis.execute_command('XPENDING', queue.dead, TELLERS, '-', '+', 1000):
        queue.redis.execute_command(
            'XCLAIM', queue.dead, TELLERS, row[1], 0, row[0], 'IDLE', ms, 'RETRYCOUNT', row[3],
            'JUSTID')


def test_a_letter_with_all_that_is_told(queue):
    """What it died of and the task's fields as they are, without the payload."""
    [tid] = bury(queue, [('command', 'make x'), ('client', b'a\xff\0b'), ('payload', 'p' * 9000)],
                 stderr=b'no\0space\n', cause='exit', status='3', reason='why')
    [letter], _ = queue.tell()
    assert letter['tid'] == tid and letter['fields'] == {'command': b'make x',
                                                         'client': b'a\xff\0b'}
    assert (letter['cause'], letter['status'], letter['reason'], letter['attempts'],
            letter['worker'], letter['stderr']) == (
                b'exit', b'3', b'why', b'1', b'w', b'no\0space\n')
    assert letter['enqueued'] == int(tid.split('-')[0]) and letter['fence'] == 1


def test_each_to_one(queue):
    """In order, so many as are asked for, nobody gets what another has; told, it is settled."""
    dead = bury(queue, *[{'command': f'x{i}'} for i in range(25)])
    first, _ = queue.tell(10)
    assert [one['tid'] for one in first] == dead[:10]
    assert tids(queue.tell(10, 5000)) == dead[10:20]
    assert tids(queue.tell(0)) == []
    assert tids(queue.tell(10, done=['+' + one['id'] for one in first])) == dead[20:]
    assert len(pending(queue)) == 15 and queue.status()['total_told'] == 10
    assert queue.tell(done=['+' + first[0]['id']]) == ([], []) and queue.counter('told') == 10


def test_old_letters_are_not_told(queue):
    """Those that were there before the first who wanted to be told."""
    queue.redis.xgroup_destroy(queue.dead, TELLERS)
    queue.redis.hdel(queue.stats, 'told_id')
    bury(queue, {'command': 'a'}, {'command': 'b'})
    assert queue.tell() == ([], [])
    [tid] = bury(queue)
    assert tids(queue.tell()) == [tid]


def test_a_worker_that_died_over_it(queue):
    """After its own time, not after that of who asks, another is given the letter, older first."""
    [tid] = bury(queue)
    assert tids(queue.tell(1, 20000)) == [tid]
    pass_time(queue, 15000)
    assert queue.tell(1, 2000) == ([], [])
    [young] = bury(queue)
    pass_time(queue, 25000)
    assert tids(queue.tell(5, 2000)) == [tid, young]
    assert queue.tell() == ([], [])


def test_given_back(queue):
    """A worker that stops leaves it to the next at once."""
    dead = bury(queue, {'command': 'a'}, {'command': 'b'})
    [a, b], _ = queue.tell()
    queue.tell(0, done=['-' + b['id'], '+' + a['id']])
    assert tids(queue.tell(5, 3600000)) == [dead[1]]
    assert queue.tell() == ([], [])


def test_given_up(queue):
    """What tells of it may be what takes the workers down: after three it is enough."""
    [tid] = bury(queue)
    for _ in range(3):
        assert tids(queue.tell()) == [tid]
        pass_time(queue)
    assert queue.tell() == ([], [tid]) and pending(queue) == []
    assert queue.status()['total_told_in_vain'] == 1 and len(queue.letters()) == 1
    assert queue.tell() == ([], [])


@pytest.mark.parametrize('how', ['retry', 'drop', 'trim', 'del'])
def test_a_letter_that_goes_is_not_told_any_more(queue, how):
    """Nothing of it stays pending: retried, dropped, too old, or deleted by hand."""
    bury(queue, {'command': 'a'}, {'command': 'b'})
    [a, b], _ = queue.tell()
    if how == 'retry':
        assert queue.dead_retry(a['id'], b['id']) == ['ok', 'ok']
    elif how == 'drop':
        assert queue.dead_drop(a['id'], b['id']) == ['ok', 'ok']
    elif how == 'trim':
        queue.conf_set('dead_keep_number', 1)
        bury(queue)
        bury(queue)
        queue.redis.hdel(queue.stats, 'swept')
        queue.scan('w')
        queue.tell()
    else:
        queue.redis.xdel(queue.dead, a['id'], b['id'])
        pass_time(queue)
        assert queue.tell() == ([], [])
    assert a['id'] not in pending(queue) and b['id'] not in pending(queue)
    assert queue.tell(done=['+' + a['id'], '-' + b['id']])[1] == []


def test_a_deleted_stream(queue):
    """DEL of the dead letters: the next that is written is told, and none twice."""
    bury(queue)
    [letter], _ = queue.tell()
    queue.redis.delete(queue.dead)
    # ids are times in milliseconds: a new stream could begin with the same
    wait_until(lambda: queue.now() > int(letter['id'].split('-')[0]))
    [tid] = bury(queue)
    assert tids(queue.tell()) == [tid] and queue.tell() == ([], [])


def test_a_lost_group(queue):
    """XGROUP DESTROY: what was handed out is not told again, what was not is."""
    bury(queue)
    queue.tell()
    queue.redis.xgroup_destroy(queue.dead, TELLERS)
    [tid] = bury(queue)
    assert tids(queue.tell()) == [tid]


def test_fields_of_any_size(queue):
    """More than an environment holds stays out of the answer; too many fields are packed."""
    bury(queue, [('command', 'x' * 3000000), ('small', 'y')])
    [letter], _ = queue.tell()
    assert letter['fields'] == {'small': b'y'}
    flat = [part for i in range(1100) for part in (f'f{i}', 'x')]
    queue.redis.execute_command('XADD', 'emails', '*', *flat)
    queue.begin('w')
    [letter], _ = queue.tell()
    assert letter['cause'] == b'refused' and letter['fields'] == {}


@pytest.mark.parametrize('args', [['x', 1], [1, -1], [1001, 1], [1, 1, '1-1'], [1, 1, '+-'],
                                  [1, 1, '+1'], [1, 1, '=1-1'], [1]])
def test_bad_arguments(queue, args):
    with pytest.raises(redis.ResponseError, match='^BADARG'):
        queue.call('tell', *args)


def test_another_type(queue):
    """Somebody's string under the name: an error, nothing else."""
    queue.redis.delete(queue.dead)
    queue.redis.set(queue.dead, 'x')
    with pytest.raises(redis.ResponseError, match='WRONGTYPE'):
        queue.tell()
