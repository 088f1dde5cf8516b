"""leat_tell: each dead letter is handed to one worker, which runs the dead-letter hook, at least once."""
import pytest
import redis

from harness.polling import wait_until

TELLERS = 'tellers'


@pytest.fixture(autouse=True)
def told(queue):
    """A worker asks for dead letters from now on."""
    queue.register('w')
    assert queue.tell() == ([], [])


def dead_letter(queue, *tasks, **result):
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
    """Makes all pending dead letters idle for this long."""
    for row in queue.redis.execute_command('XPENDING', queue.dead, TELLERS, '-', '+', 1000):
        queue.redis.execute_command(
            'XCLAIM', queue.dead, TELLERS, row[1], 0, row[0], 'IDLE', ms, 'RETRYCOUNT', row[3],
            'JUSTID')


def test_a_dead_letter_with_its_fields(queue):
    """leat_tell gives the cause and the task's fields unchanged, without the payload."""
    before = queue.now()
    [tid] = dead_letter(queue, [('command', 'make x'), ('client', b'a\xff\0b'), ('payload', 'p' * 9000)],
                        stderr=b'no\0space\n', cause='exit', status='3', reason='why')
    [letter], _ = queue.tell()
    assert letter['tid'] == tid and letter['fields'] == {'command': b'make x',
                                                         'client': b'a\xff\0b'}
    assert (letter['cause'], letter['status'], letter['reason'], letter['attempts'],
            letter['worker'], letter['stderr']) == (
                b'exit', b'3', b'why', b'1', b'w', b'no\0space\n')
    assert letter['enqueued'] == int(tid.split('-')[0]) and letter['fence'] >= before * 1000


def test_each_to_one(queue):
    """Dead letters come in order, as many as are asked for, each to one worker; one that is done never comes
    again."""
    dead = dead_letter(queue, *[{'command': f'x{i}'} for i in range(25)])
    first, _ = queue.tell(10)
    assert [one['tid'] for one in first] == dead[:10]
    assert tids(queue.tell(10, 5000)) == dead[10:20]
    assert tids(queue.tell(0)) == []
    assert tids(queue.tell(10, done=['+' + one['id'] for one in first])) == dead[20:]
    assert len(pending(queue)) == 15 and queue.status()['total_notified'] == 10
    assert queue.tell(done=['+' + first[0]['id']]) == ([], []) and queue.counter('told') == 10


def test_old_dead_letters_are_not_handed_out(queue):
    """A dead letter that is older than the first call is not handed out."""
    queue.redis.xgroup_destroy(queue.dead, TELLERS)
    queue.redis.hdel(queue.stats, 'told_id')
    dead_letter(queue, {'command': 'a'}, {'command': 'b'})
    assert queue.tell() == ([], [])
    [tid] = dead_letter(queue)
    assert tids(queue.tell()) == [tid]


def test_a_worker_that_died_in_the_hook(queue):
    """If the worker dies, another gets the dead letter after the first worker's timeout, not after the
    caller's, and older dead letters come first."""
    [tid] = dead_letter(queue)
    assert tids(queue.tell(1, 20000)) == [tid]
    pass_time(queue, 15000)
    assert queue.tell(1, 2000) == ([], [])
    [young] = dead_letter(queue)
    pass_time(queue, 25000)
    assert tids(queue.tell(5, 2000)) == [tid, young]
    assert queue.tell() == ([], [])


def test_returned(queue):
    """A worker that stops returns its dead letter to the next worker at once."""
    dead = dead_letter(queue, {'command': 'a'}, {'command': 'b'})
    [a, b], _ = queue.tell()
    queue.tell(0, done=['-' + b['id'], '+' + a['id']])
    assert tids(queue.tell(5, 3600000)) == [dead[1]]
    assert queue.tell() == ([], [])


def test_given_up(queue):
    """After three lost workers the dead letter is given up, because the hook itself may be what kills them."""
    [tid] = dead_letter(queue)
    for _ in range(3):
        assert tids(queue.tell()) == [tid]
        pass_time(queue)
    assert queue.tell() == ([], [tid]) and pending(queue) == []
    assert queue.status()['total_notify_failed'] == 1 and len(queue.letters()) == 1
    assert queue.tell() == ([], [])


@pytest.mark.parametrize('how', ['retry', 'drop', 'trim', 'del'])
def test_a_removed_dead_letter_is_not_handed_out(queue, how):
    """A dead letter that is retried, dropped, trimmed or deleted by hand leaves nothing pending."""
    dead_letter(queue, {'command': 'a'}, {'command': 'b'})
    [a, b], _ = queue.tell()
    if how == 'retry':
        assert queue.dead_retry(a['id'], b['id']) == ['ok', 'ok']
    elif how == 'drop':
        assert queue.dead_drop(a['id'], b['id']) == ['ok', 'ok']
    elif how == 'trim':
        queue.conf_set('dead_keep_number', 1)
        dead_letter(queue)
        dead_letter(queue)
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
    """If the stream of dead letters is deleted, the next dead letter is handed out, and none twice."""
    dead_letter(queue)
    [letter], _ = queue.tell()
    queue.redis.delete(queue.dead)
    # ids are times in ms: the id of a new stream could be the old one
    wait_until(lambda: queue.now() > int(letter['id'].split('-')[0]))
    [tid] = dead_letter(queue)
    assert tids(queue.tell()) == [tid] and queue.tell() == ([], [])


def test_a_lost_group(queue):
    """After XGROUP DESTROY, dead letters that were handed out are not handed out again, and the others are."""
    dead_letter(queue)
    queue.tell()
    queue.redis.xgroup_destroy(queue.dead, TELLERS)
    [tid] = dead_letter(queue)
    assert tids(queue.tell()) == [tid]


def test_fields_of_any_size(queue):
    """Fields that do not fit into an environment are left out, and too many fields are packed."""
    dead_letter(queue, [('command', 'x' * 3000000), ('small', 'y')])
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
    """If the key has another type, the call gets an error and writes nothing."""
    queue.redis.delete(queue.dead)
    queue.redis.set(queue.dead, 'x')
    with pytest.raises(redis.ResponseError, match='WRONGTYPE'):
        queue.tell()
