"""No call of a function holds up Redis for much longer than one large task needs, and limits of size hold."""
import time
from collections import Counter

import pytest
import redis

from harness.functions.damages import settle
from harness.functions.invariants import check
from harness.functions.lists import intake
from harness.queue import LIBRARY, Queue, text

MOVED = 16 << 20  # bytes after which a call stops
SHARE = 8  # of these, and of large tasks: enough, and sooner done
BIG = b'b' * ((20 << 20) // SHARE)  # more than a call moves
LIMIT = 100000


@pytest.fixture
def queue(client):
    """The queue `emails`; calls stop after a share of the usual bytes."""
    source, whole = LIBRARY.read_text(), f'local MOVE_BYTES = {MOVED} '
    assert source.count(whole) == 1
    return Queue(client).load(source.replace(whole, f'local MOVE_BYTES = {MOVED // SHARE} '))


def add_plain(queue, *payloads):
    return [text(queue.redis.xadd(queue.stream, {'command': 'true', 'payload': payload})) for payload in payloads]


def sizes(tasks):
    return [len(task.fields.get('payload', b'')) for task in tasks]


def test_one_large_entry_for_each_claim(queue):
    """A claim reads entries one by one, and after a large one no other."""
    queue.register('w1')
    add_plain(queue, BIG, BIG, b'x', BIG, *[b'x'] * 9, BIG, BIG)
    claims = []
    while sum(map(len, claims)) < 15:
        claims.append(sizes(queue.begin('w1', 8)))
    assert all(sum(size == len(BIG) for size in claim) <= 1 for claim in claims), claims
    assert claims[0] == [len(BIG)]


def test_small_entries_are_read_together(queue):
    """After 80 small tasks, a claim reads small entries together."""
    queue.register('w1')
    for _ in range(2):
        add_plain(queue, *[b'x'] * 40)
        assert len(queue.begin('w1', 40)) == 40
    before = queue.redis.info('commandstats')['cmdstat_xreadgroup']['calls']
    add_plain(queue, *[b'x'] * 40)
    assert len(queue.begin('w1', 40)) == 40
    assert queue.redis.info('commandstats')['cmdstat_xreadgroup']['calls'] - before < 6
    add_plain(queue, BIG, b'x', b'x')
    assert len(queue.begin('w1', 40)) == 3
    add_plain(queue, b'x', BIG, BIG, BIG)
    assert sizes(queue.begin('w1', 40)) == [1, len(BIG)]


def test_a_small_task_before_large_ones(queue):
    """While nothing is known of a queue's tasks, a small one at the head brings no more than one large one."""
    queue.register('w1')
    add_plain(queue, b'x', BIG, BIG, BIG)
    assert sizes(queue.begin('w1', 8)) == [1, len(BIG)]


def test_large_tasks_that_are_old_news(queue):
    """Large tasks may be in the requeue stream for longer than one is remembered."""
    queue.register('w1')
    add_plain(queue, BIG, BIG, BIG)
    for task in take_all(queue, 3):
        queue.finish('w1', task, 'release')
    queue.redis.hset(queue.conf, 'sizes', queue.now() - 1)
    assert sizes(queue.begin('w1', 8)) == [len(BIG)]


def test_a_large_task_from_a_lane(queue):
    """A large task that gets its turn is remembered, however long it has waited."""
    queue.register('w1')
    queue.conf_set('lane:a', '1, 1')
    queue.add(*[{'command': 'true', 'lane': 'a', 'payload': BIG}] * 2)
    [task] = queue.begin('w1')
    queue.redis.hdel(queue.conf, 'sizes')
    queue.finish('w1', task)
    assert int(queue.redis.hget(queue.conf, 'sizes')) > queue.now()


def test_large_tasks_in_lanes(queue):
    """A claim takes one large task from the lanes, and the next claim the next one."""
    queue.register('w1')
    queue.conf_set('lane:a', '1, 9')
    queue.add({'command': 'first'}, *[{'command': 'true', 'lane': 'a', 'payload': BIG}] * 3)
    found = [sizes(queue.begin('w1', 8)) for _ in range(3)]
    assert sum(map(len, found)) == 4 and all(found.count(len(BIG)) <= 1 for found in found)


def test_entries_of_many_empty_fields(queue):
    """Values cost Redis time even if they have no bytes: a call reads one entry of very many."""
    queue.register('w1')
    for _ in range(3):
        queue.redis.execute_command('XADD', queue.stream, '*', *['', ''] * 300000)
    assert [len(queue.claim('w1', 8)['buried']) for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize('name', ['unique_for', 'result_ttl'])
def test_long_durations(queue, name):
    """A text of many bytes is no duration. A plain XADD does not get it into a lease record, which each renewal
    reads."""
    queue.register('w1')
    value = '0' * 201 + '1h'
    with pytest.raises(redis.ResponseError, match=f'REFUSED task 1: {name}: not a duration'):
        queue.add({'command': 'true', 'unique': 'k', name: value})
    queue.redis.xadd(queue.stream, {'command': 'true', 'unique': 'k', name: value})
    [task] = queue.begin('w1')
    assert queue.redis.hstrlen(queue.running, task.token) < 200
    assert queue.finish('w1', task) == 'ok' and queue.held() == {}


def test_named_tokens_that_were_not_looked_at(queue):
    """A claim that names large entries returns the tokens that it has not read, and the next call takes them."""
    queue.register('w1')
    add_plain(queue, BIG, BIG, b'x')
    named, found = queue.block('w1', 3), []
    while named:
        reply = queue.call('claim', queue.group, 'w1', 0, 0, '', *named)
        found.append(len(reply[6]))
        named = [text(token) for token in reply[11]] if len(reply) > 11 else []
    assert found == [1, 1, 1]


def test_hand_back_after_a_reconnect(queue):
    """A registration requeues large entries that never reached the worker, a few for each call."""
    queue.register('w1')
    add_plain(queue, BIG, BIG, BIG)
    queue.block('w1', 3)
    calls = 1
    while queue.register('w1')['more']:
        calls += 1
    assert calls == 3 and queue.redis.xlen(queue.go) == 3 and queue.pending() == []
    assert sizes(queue.begin('w2', 8)) == [len(BIG)]


def take_all(queue, number):
    tasks = []
    while len(tasks) < number:
        tasks += queue.begin('w1', number - len(tasks), len(tasks))
    return tasks


@pytest.mark.parametrize('outcome, more', [('retry', {'delay': 1000}), ('release', {}),
                                           ('dead', {'cause': 'exit'})])
def test_many_ends_in_one_call(queue, outcome, more):
    """leat_finish moves one large task in a call, ends all that succeeded, and asks for the others again."""
    queue.register('w1')
    small = queue.redis.xadd(queue.stream, {'command': 'true'})
    add_plain(queue, BIG, BIG, BIG)
    tasks = take_all(queue, 4)
    tasks.sort(key=lambda task: task.tid == text(small))
    answers = []
    while tasks:
        args = [arg for task in tasks for arg in (queue.result(task.token) if task.tid == text(small)
                                                  else queue.result(task.token, outcome, **more))]
        answers.append([text(state) for state in queue.call('finish', queue.group, 'w1', *args)])
        tasks = [task for task, state in zip(tasks, answers[-1]) if state == 'later']
    assert answers == [['ok', 'later', 'later', 'ok'], ['ok', 'later'], ['ok']]
    assert queue.pending() == [] and len(queue.places()) == 3


def test_named_tokens_while_paused(queue):
    """While the queue is paused, a claim requeues one large entry that it names, and returns the other tokens."""
    queue.register('w1')
    add_plain(queue, BIG, BIG, b'x')
    named, calls = queue.block('w1', 3), 0
    queue.call('gate', 'paused', 1)
    while named:
        assert queue.redis.xlen(queue.go) == calls
        reply = queue.call('claim', queue.group, 'w1', 0, 0, '', *named)
        named, calls = [text(token) for token in reply[11]] if len(reply) > 11 else [], calls + 1
    assert calls == 3 and queue.pending() == [] and queue.redis.xlen(queue.go) == 3


def register_again(queue, tokens, fence):
    """Registers until that is done; returns, for each call, how many records there are and what is lost."""
    found, more = [], True
    while more:
        assert len(found) < 9
        reply = queue.register('w1', tokens, heartbeat='{"unclaimed": [], "fence": %d}' % fence)
        more = reply['more']
        found.append((queue.redis.hlen(queue.running), reply['lost']))
    return found


def test_records_restored_at_a_registration(queue):
    """A registration writes the lost records of large running tasks a few for each call, and loses no task. Calls
    come to an end even if no record can be restored."""
    queue.register('w1')
    add_plain(queue, BIG, BIG, BIG)
    tasks = take_all(queue, 3)
    tokens = [task.token for task in tasks]
    queue.redis.delete(queue.running)
    assert register_again(queue, tokens, 1) == [(0, [])]
    assert register_again(queue, tokens, tasks[-1].fence) == [(1, []), (2, []), (3, [])]


def test_follow_ups_of_tasks_that_succeed_together(queue):
    """leat_finish makes one large follow-up ready in a call, and the next claim the others. A page of a list has
    one, too."""
    queue.register('w1')
    queue.add(*[{'command': 'true', 'unique': key} for key in 'abc'])
    first = queue.begin('w1', 3)
    queue.add(*[{'command': 'true', 'unique': key, 'unique_next': '1', 'payload': BIG} for key in 'abc'])
    cursor, page = queue.call('list', queue.group, 'following', '0', 10)
    assert len(page) == 1 and cursor
    assert len({row['tid'] for row in queue.list('following')}) == len(queue.list('following')) == 3
    assert queue.finish_many('w1', [queue.result(task.token) for task in first]) == ['ok'] * 3
    assert queue.redis.xlen(queue.go) == 1 and queue.redis.zcard(queue.delayed) == 2
    assert check(queue).names.keys() == {b'u:a', b'u:b', b'u:c'}
    while len(queue.redis.hkeys(queue.running)) < 3:
        assert len(queue.begin('w1', 3)) <= 1


def test_dead_letters_that_make_room(queue):
    """Small tasks that die push large dead letters out, one in a call."""
    queue.register('w1', dead_keep_number=3)
    for payload in [BIG] * 3:
        add_plain(queue, payload)
        queue.finish('w1', *queue.begin('w1'), outcome='dead', cause='exit')
    add_plain(queue, *[b'x'] * 3)
    ends = [queue.result(task.token, 'dead', cause='exit') for task in queue.begin('w1', 3)]
    assert queue.finish_many('w1', ends) == ['ok', 'later', 'later']
    assert [len(letter['payload']) for _, letter in queue.letters()] == [len(BIG), len(BIG), 1]


def test_a_sweep_of_large_tasks(queue):
    """A sweep of the records of attempts that were lost reads one large task in a call."""
    queue.register('w1')
    add_plain(queue, BIG, BIG, BIG)
    take_all(queue, 3)
    queue.expire()
    while queue.pending():
        queue.scan('w1')
    queue.redis.hdel(queue.stats, 'swept')
    reply = {'cursor': 's0-0'}
    while reply['cursor'][:1] == 's':
        reply = queue.claim('w1', 0, 0, reply['cursor'])
    before = queue.redis.info('commandstats')['cmdstat_xrange']['calls']
    queue.claim('w1', 0, 0, reply['cursor'])
    assert queue.redis.info('commandstats')['cmdstat_xrange']['calls'] - before == 1
    assert queue.redis.hlen(queue.running) == 3


def test_a_repair_of_large_tasks(queue):
    """leat_repair handles one large task in a call."""
    queue.register('w1')
    add_plain(queue, BIG, BIG, BIG)
    tokens = queue.block('w1', 3)
    for token in tokens:
        queue.redis.xack(queue.stream, queue.group, token[1:])

    def repair(*tokens):
        args = [arg for token in tokens for arg in ('acked', token, '')]
        states = queue.call('repair', queue.group, '', *args)
        return ['later' if state == b'more' else text(state) for state in states]
    assert page_on(repair, *tokens) == [['repaired', 'later', 'later'], ['repaired', 'later'], ['repaired']]


def page_on(act, *ids):
    """Calls act with the ids that it has not looked at until there are none. Returns its answers to each call."""
    answers = []
    while ids:
        answers.append(act(*ids))
        assert answers[-1][0] != 'later'
        ids = [id for id, state in zip(ids, answers[-1]) if state == 'later']
    return answers


def test_many_cancelled_in_one_call(queue):
    """leat_cancel reads one large task in a call, wherever it is, and asks for the others again."""
    queue.register('w1')
    waiting = queue.add(*[{'command': 'true', 'payload': BIG}] * 2, due='+100000')
    [first, small, second, last] = add_plain(queue, BIG, b'x', BIG, b'x')
    assert page_on(queue.call_off, first, small, second, *waiting, last) == [
        ['cancelled'] + ['later'] * 5, ['cancelled'] * 2 + ['later'] * 3, ['cancelled', 'later', 'later'],
        ['cancelled', 'later'], ['cancelled']]
    assert queue.places() == {}


def test_large_tasks_that_expire_before_a_cancel(queue):
    """A cancel looks at one task at least, however many large ones expire."""
    queue.register('w1')
    expired = queue.add(*[{'command': 'true', 'payload': BIG, 'expires': '1'}] * 3)
    tids = add_plain(queue, b'x', b'x')
    assert page_on(queue.call_off, *tids) == [['cancelled', 'later'], ['cancelled']]
    assert [tid for tid, places in queue.places().items() if places == ['dead']] == expired[:2]


@pytest.mark.parametrize('name, packed', [('dead_retry', 'REFUSED'), ('dead_drop', 'ok')])
def test_many_dead_letters_in_one_call(queue, name, packed):
    """leat_dead_retry and leat_dead_drop read one large dead letter in a call, also if its task has too many
    fields, and ask for the others again."""
    queue.register('w1')
    add_plain(queue, BIG, b'x')
    queue.redis.xadd(queue.stream, {f'f{number}': BIG[:20000 // SHARE] for number in range(1001)})
    while len(queue.letters()) < 3:
        for task in queue.begin('w1', 8):
            queue.finish('w1', task, 'dead', cause='exit')
    ids = {text(letter['leat.cause']) + str(len(letter.get('payload', b''))): id for id, letter in queue.letters()}
    ids = ids['refused0'], ids[f'exit{len(BIG)}'], ids['exit1']
    answers = page_on(getattr(queue, name), *ids)
    assert [[state.split()[0] for state in answer] for answer in answers] == [
        [packed, 'later', 'later'], ['ok', 'later'], ['ok']]


def test_status_reads_one_large_task(queue):
    """leat_status reads one large task at most to say since when the oldest waits and when the next is due."""
    queue.register('w1')
    add_plain(queue, BIG, BIG)
    [task] = queue.begin('w1')
    queue.finish('w1', task, 'release')
    due = int(time.time() * 1000) + 100000
    queue.add({'command': 'true', 'payload': BIG}, due=due)
    before = queue.redis.info('commandstats')['cmdstat_xrange']['calls']
    status = queue.status()
    assert queue.redis.info('commandstats')['cmdstat_xrange']['calls'] == before + 1
    assert status['next_due_ms'] == due and status['ready'] == 2 and status['total_enqueued'] == 3


def test_pages_of_large_tasks(queue):
    """A page of a list or of dead letters for the hook has one large task."""
    queue.register('w1')
    add_plain(queue, BIG, BIG)
    cursor, page = queue.call('list', queue.group, 'ready', 's0-0', 10)
    assert len(page) == 1 and cursor
    assert len(queue.list('ready')) == 2
    queue.tell()
    for _ in range(2):
        [task] = queue.begin('w1')
        queue.finish('w1', task, 'dead', cause='exit')
    assert [len(queue.tell(9)[0]) for _ in range(3)] == [1, 1, 0]  # without their payloads


def large_tasks_everywhere(queue):
    """Three large tasks in each place: running, in the requeue stream, delayed, dead; each has a unique key.
    The lease is long, because a busy machine takes minutes for all that."""
    queue.register('w1', lease=600000)
    for outcome in ('dead', 'retry', 'running', 'release'):
        for number in range(3):
            queue.redis.xadd(queue.stream, {'command': 'true', 'payload': BIG, 'unique': f'{outcome}-{number}'})
        tasks = take_all(queue, 3)
        while tasks and outcome != 'running':
            delay = 10 ** 6 * (outcome == 'retry')
            assert queue.finish('w1', tasks.pop(), outcome, cause='exit', delay=delay) == 'ok'


def test_doctor_of_large_tasks(queue):
    """A page of leat_doctor looks at one large task, wherever it is. It finds what it found before."""
    large_tasks_everywhere(queue)
    for number in range(3):
        queue.redis.hdel(queue.names, f'u:running-{number}')
        queue.redis.sadd(queue.cancel, f'{number}-5')
    pages, found, cursor = Counter(), [], 'start'
    while cursor:
        pages[cursor.split()[0]] += 1
        cursor, rows = queue.call('doctor', queue.group, cursor)
        cursor = text(cursor)
        found += [text(row[0]) for row in rows]
    assert sorted(found) == ['cancel'] * 3 + ['unnamed'] * 3
    for part in ('entriesg', 'entriess', 'running', 'waiting', 'names', 'placesg', 'placesd'):
        assert pages[part] >= 3, pages


def test_the_limit_for_producers(queue):
    """leat_enqueue and leat_add refuse what is larger than max_task, with both sizes, before they write anything,
    and take what is as large."""
    queue.register('w1', max_task=LIMIT)
    fits = 'x' * (LIMIT - len('commandtrue' + 'payload'))
    queue.add({'command': 'true', 'payload': fits})
    for add in (queue.add, lambda task: queue.program_add(*[part for pair in task.items() for part in pair])):
        with pytest.raises(redis.ResponseError, match=f'REFUSED task 1: larger than max_task: it has {LIMIT + 1} '
                           f'bytes, at most {LIMIT} are'):
            add({'command': 'true', 'payload': fits + 'x'})
    assert queue.redis.xlen(queue.stream) == 1
    before = queue.redis.hgetall(queue.conf)
    with pytest.raises(redis.ResponseError, match='REFUSED task 1: larger than max_task'):
        queue.add({'command': 'true', 'payload': BIG})
    assert queue.redis.hgetall(queue.conf) == before
    queue.conf_set('max_task', 0)
    queue.add({'command': 'true', 'payload': fits + 'x'})


def test_the_limit_for_plain_entries(queue):
    """What a plain XADD has added becomes a dead letter with the head of its fields and its size, which is not
    enqueued again; the tasks beside it run. A hundred of them do not keep one call busy."""
    queue.register('w1', max_task=LIMIT)
    queue.redis.xadd(queue.stream, {'command': 'true', 'unique': 'k', 'payload': b'p' * LIMIT, 'last': '1'})
    [small] = add_plain(queue, b'x')
    reply = queue.claim('w1', 8)
    assert [task.tid for task in reply['tasks']] == [small] and 'larger than max_task' in reply['reasons'][0]
    [(letter, fields)] = queue.letters()
    size = LIMIT + len('commandtrueuniquekpayloadlast1')
    assert fields['leat.cause'] == b'refused' and int(fields['leat.size']) == size
    assert fields['command'] == b'true' and set(fields['payload']) == {ord('p')} and len(fields['payload']) < 4096
    assert queue.dead_retry(letter)[0].startswith('REFUSED')
    assert not queue.redis.hexists(queue.names, 'u:k')
    assert queue.finish('w1', reply['tasks'][0]) == 'ok'
    add_plain(queue, *[BIG] * 3)
    assert len(queue.claim('w1', 8)['buried']) == 1
    assert settle(queue) == [] and len(queue.letters()) == 4


@pytest.mark.parametrize('kind', ['list', 'zset'])
@pytest.mark.parametrize('lane', ['', 'a lane'])
def test_the_limit_for_items(queue, kind, lane):
    """A larger item, due now or later, in a lane or not, becomes a dead letter as well, and holds no unique key;
    those around it become tasks."""
    queue.register('w1', max_task=LIMIT)
    large = b'p' * LIMIT
    if kind == 'list':
        queue.redis.lpush('items', b'before', large, b'behind')
    else:
        queue.redis.zadd('items', {b'before': 1, large + b'*4102444800': 2, b'behind': 3})
    assert intake(queue, 'items', lane=lane, unique=True, kind=kind, marks=kind == 'zset')['added'] == 3
    for tid in queue.redis.zrange(queue.delayed, 0, -1):
        queue.redis.zadd(queue.delayed, {tid: 1})
    assert len(settle(queue)) == 2
    [(_, fields)] = queue.letters()
    assert fields['leat.cause'] == b'refused' and int(fields['leat.size']) > LIMIT
    assert len(fields['payload']) < 4096
    assert not [name for name in queue.redis.hkeys(queue.names) if name.startswith(b'u:')]
    check(queue)


@pytest.mark.parametrize('value', ['-1', '1', '65535', 'x', '1e300', '0.5'])
def test_limits_that_are_none(queue, value):
    """max_task is 0 or at least 64 KiB."""
    with pytest.raises(redis.ResponseError, match='BADARG max_task cannot be set'):
        queue.conf_set('max_task', value)
    queue.redis.hset(queue.conf, 'max_task', value)
    queue.add({'command': 'true', 'payload': 'x' * 65000})


LABELS = {'id': ['long', '1769860800123-0', '9999999999999-1000000000', '18446744073709551615-7'],
          'unique': ['long']}


@pytest.mark.parametrize('name, value', [(name, value) for name, values in LABELS.items() for value in values])
def test_labels_and_keys_that_are_refused(queue, name, value):
    """Labels and unique keys have at most 1 KiB, and no label has the form of a tid; the producers' functions
    and the claim refuse the others."""
    value = 'x' * 1025 if value == 'long' else value
    queue.register('w1')
    with pytest.raises(redis.ResponseError, match=f'REFUSED task 1: {name}: '):
        queue.add({'command': 'true', name: value})
    queue.redis.xadd(queue.stream, {'command': 'true', name: value})
    assert queue.begin('w1') == []
    [(letter, fields)] = queue.letters()
    assert fields['leat.cause'] == b'refused' and text(fields['leat.reason']).startswith(f'{name}: ')
    assert queue.dead_retry(letter)[0].startswith('REFUSED')
    assert {key[:2] for key in queue.redis.hkeys(queue.names)} == {b't:'}


@pytest.mark.parametrize('value', ['x' * 1024, '1-1', '123456789012-1', 'a1769860800123-0', '2026-11-23'])
def test_labels_that_are_taken(queue, value):
    queue.register('w1')
    [tid] = queue.add({'command': 'true', 'id': value, 'unique': value})
    assert queue.call('await', 1000, value)[1] == tid.encode() and queue.call_off(value) == ['cancelled']


def test_a_decoy_hides_no_task(queue):
    """A label of the form of a task's id, from a plain XADD or an older version, does not stand for that task."""
    queue.register('w1')
    [tid] = queue.add({'command': 'true'})
    decoy = text(queue.redis.xadd(queue.stream, {'command': 'decoy', 'id': tid}))
    queue.redis.hset(queue.names, f'i:{tid}', decoy)
    assert queue.show(tid)['row']['tid'] == tid.encode()
    assert queue.call('await', 1000, tid)[1] == tid.encode()
    assert queue.call_off(tid) == ['cancelled']
    assert queue.places() == {decoy: ['stream']}
