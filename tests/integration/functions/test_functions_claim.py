"""leat_claim: the one gate. What begins, in which order, what is dropped, held or put back."""
import pytest
import redis

from harness.polling import wait_until
from harness.queue import SCAN_START

MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def worker(queue):
    queue.register('w1')
    queue.register('w2')


def tids(tasks):
    return [task.tid for task in tasks]


def suspect(queue, command='bad', crashes=1):
    """A task that has taken `crashes` workers down; it stands in go."""
    [tid] = queue.add({'command': command})
    for _ in range(crashes):
        [task] = queue.begin('w2')
        assert task.tid == tid
        queue.expire(task.token)
        queue.scan('w1')
    return tid


def test_go_comes_before_the_stream(queue):
    """A released task is not behind the backlog."""
    [first, second, third] = queue.add(*[{'command': 'x'}] * 3)
    [task] = queue.begin('w1')
    queue.finish('w1', task, 'release')
    assert tids(queue.begin('w1', 3)) == [first, second, third]


def test_due_tasks_come_before_the_stream(queue):
    """Delayed tasks whose time has come go up in the order of their times, as many as asked."""
    [ready] = queue.add({'command': 'ready'})
    late, early = queue.add({'command': 'late'}, {'command': 'early'}, due='+60000')
    queue.redis.zadd(queue.delayed, {late: 20, early: 10})
    reply = queue.claim('w1', 1)
    assert tids(reply['tasks']) == [early] and reply['next_due'] == 20
    assert tids(queue.begin('w1', 5)) == [late, ready]
    assert queue.claim('w1', 1)['next_due'] == 0


def test_the_attempt_counts_when_it_begins(queue):
    """Released, the next attempt has the same number; retried, one more; the fence always grows."""
    queue.add({'command': 'x'})
    [task] = queue.begin('w1')
    assert task.attempt == 1
    queue.finish('w1', task, 'release')
    [task] = queue.begin('w1')
    assert (task.attempt, task.fence) == (1, 2)
    queue.finish('w1', task, 'retry')
    [task] = queue.begin('w1')
    assert (task.attempt, task.fence) == (2, 3)


def test_wanting_none_begins_none(queue):
    """A full worker that names or scans gets no new tasks."""
    queue.add({'command': 'x'})
    assert queue.begin('w1', 0) == []


def test_thousands_at_once(queue):
    """More than one unpack takes, in one call and in several."""
    for _ in range(5):
        queue.add(*[{'command': 'x'}] * 500)
    got = []
    while len(got) < 2500:
        more = queue.begin('w1', 2500)
        assert more
        got += more
    assert len(set(tids(got))) == 2500
    assert queue.redis.hlen(queue.running) == 2500


def test_one_call_answers_a_bounded_number_of_bytes(queue):
    """Large payloads: the call stops where it has enough, and the next one goes on."""
    queue.add(*[{'command': 'x', 'payload': b'x' * 4 * MIB}] * 30)
    first = queue.begin('w1', 30)
    assert 4 <= len(first) <= 12
    seen = len(first)
    while seen < 30:
        seen += len(queue.begin('w1', 30)) or pytest.fail('nothing more came')


def test_expired_tasks_are_buried_unstarted(queue):
    """expires in the past: a dead letter with the cause, no attempt; the next task is answered."""
    dead, alive, odd = queue.add(
        {'command': 'x', 'expires': '1', 'id': 'label'}, {'command': 'y', 'expires': '99999999999'},
        {'command': 'z', 'expires': 'never'})
    assert tids(queue.begin('w1', 3)) == [alive, odd]
    [(_, letter)] = queue.letters()
    assert (letter['leat.tid'].decode(), letter['leat.cause']) == (dead, b'expired')
    assert letter['leat.attempts'] == b'0' and queue.redis.hlen(queue.names) == 0


def test_expired_ones_do_not_use_up_the_call(queue):
    """One call goes through many expired tasks to find a living one."""
    queue.add(*[{'command': 'x', 'expires': '1'}] * 50)
    [alive] = queue.add({'command': 'y'})
    assert tids(queue.begin('w1', 1)) == [alive]


def test_too_many_fields_are_refused_with_every_byte_kept(queue, client):
    """5,000 fields by plain XADD: a dead letter; show still gives all of them."""
    fields = {f'f{i}': f'value {i}' for i in range(5000)}
    tid = client.xadd('emails', fields).decode()
    assert queue.begin('w1', 1) == []
    [(letter, kept)] = queue.letters()
    assert kept['leat.cause'] == b'refused' and b'1000 fields' in kept['leat.reason']
    flat = [part.encode() for pair in fields.items() for part in pair]
    assert queue.show(tid)['fields'] == flat
    assert queue.dead_retry(letter)[0].startswith('REFUSED')
    assert len(queue.letters()) == 1 and queue.pending() == []


@pytest.mark.parametrize('how', ['scan', 'closed', 'register', 'release', 'alone'])
def test_too_many_fields_on_every_other_way(queue, client, how):
    """Wherever such an entry would be written anew, it is buried instead of stopping the call."""
    if how == 'alone':
        suspect(queue)
    client.xadd(queue.go if how == 'alone' else 'emails', {f'f{i}': 'x' for i in range(5000)})
    if how == 'alone':
        assert len(queue.begin('w1', 5)) == 1
    else:
        [token] = queue.block('w1')
    if how == 'scan':
        queue.expire()
        queue.scan('w2')
    elif how == 'closed':
        client.hset(queue.conf, 'hold_until', queue.now() + 60000)
        queue.claim('w1', 0, named=[token])
    elif how == 'register':
        queue.register('w1')
    elif how == 'release':
        assert queue.finish('w1', token, 'release') == 'ok'
    assert [letter['leat.cause'] for _, letter in queue.letters()] == [b'refused']


def test_named_tokens_pass_the_gate_once(queue):
    """What the blocking read brought begins by a claim that names it; naming it again changes
    nothing; what another worker has begun, a gone one and one never read are not begun."""
    queue.add(*[{'command': 'x'}] * 3)
    [mine] = queue.block('w1')
    [other] = queue.block('w2')
    queue.claim('w2', 0, named=[other])
    unread = 's' + queue.entries('stream')[2][0]
    reply = queue.claim('w1', 0, named=[mine, mine, other, unread, 's1-1'])
    assert [task.token for task in reply['tasks']] == [mine]
    again = queue.claim('w1', 0, 1, named=[mine])['tasks']
    assert [(task.token, task.attempt) for task in again] == [(mine, 1)]
    assert queue.redis.hlen(queue.running) == 2


def test_what_nobody_has_begun_is_whose_claim_comes_first(queue):
    """Two workers name one entry: the first begins it and holds its lease, the other gets nothing."""
    queue.add({'command': 'x'})
    [token] = queue.block('w2')
    [task] = queue.claim('w1', 0, named=[token])['tasks']
    assert queue.pending('w1') == [token]
    late = queue.claim('w2', 0, named=[token])
    assert late['tasks'] == [] and late['held'] == []
    assert queue.finish('w1', task) == 'ok'


def test_a_named_entry_gets_a_whole_lease(queue, wait_until):
    """Its reply may have lain in the socket: the lease begins with the claim, not the delivery."""
    queue.add({'command': 'x'})
    [token] = queue.block('w1')
    id = token[1:]
    queue.redis.execute_command('XCLAIM', 'emails', 'leat', 'w1', 0, id, 'IDLE', 59000, 'JUSTID')
    queue.claim('w1', 0, named=[token])
    [[_, _, idle, _]] = queue.redis.execute_command('XPENDING', 'emails', 'leat', '-', '+', 1)
    assert idle < 30000


def test_a_named_entry_that_was_taken_over_is_not_begun(queue):
    """The reply lay in the socket for longer than the lease."""
    [tid] = queue.add({'command': 'x'})
    [token] = queue.block('w1')
    queue.expire()
    queue.scan('w2')
    assert queue.claim('w1', 0, named=[token])['tasks'] == []
    [task] = queue.begin('w2')
    assert (task.tid, task.attempt, task.crashes) == (tid, 1, 0)


def test_a_named_entry_that_was_deleted(queue, client):
    """XDEL between delivery and claim: not begun, and nothing is left pending."""
    queue.add({'command': 'x'})
    [token] = queue.block('w1')
    client.xdel('emails', token[1:])
    assert queue.claim('w1', 1, named=[token])['tasks'] == []
    assert queue.pending() == [] and queue.letters() == []


def test_a_lost_reply_costs_no_attempt(queue):
    """The claim ran, its answer was lost: the strict register puts the task up again, uncounted."""
    [tid] = queue.add({'command': 'x'})
    queue.begin('w1')
    queue.register('w1')
    [task] = queue.begin('w2')
    assert (task.tid, task.attempt, task.crashes) == (tid, 1, 0)


def test_one_expired_lease_behind_a_thousand_live_ones(queue):
    """The scan follows its cursor: all pages are seen in one round, and the cursor ends."""
    for _ in range(2):
        queue.add(*[{'command': 'x'}] * 500)
    assert len(queue.begin('w1', 1000)) == 1000
    [last] = queue.add({'command': 'last'})
    [task] = queue.begin('w1')
    queue.expire(task.token)
    reply, tasks = queue.scan('w2', 1)
    assert tids(tasks) == [last] and reply['cursor'] == ''
    assert (tasks[0].attempt, tasks[0].crashes) == (1, 1)


def test_hundreds_of_expired_leases_are_moved_page_by_page(queue):
    """A dead worker with many tasks; each moves once, in bounded calls."""
    queue.add(*[{'command': 'x'}] * 350)
    before = []
    while len(before) < 350:
        before += queue.begin('w1', 350)
    queue.expire()
    cursor, calls = 'g0-0', 0
    while cursor:
        cursor, calls = queue.claim('w2', 0, cursor=cursor)['cursor'], calls + 1
    assert calls >= 4 and len(queue.entries('go')) == 350 and queue.entries('stream') == []


def test_the_scan_stops_at_a_bounded_number_of_bytes(queue):
    """What it has claimed but not moved is found expired at once by the next call."""
    queue.add(*[{'command': 'x', 'payload': b'x' * 4 * MIB}] * 12)
    while queue.begin('w1', 12):
        pass
    queue.expire()
    first = queue.claim('w2', 0, cursor='s0-0')
    assert 4 <= len(queue.entries('go')) <= 6 and first['cursor'].startswith('s')
    cursor = first['cursor']
    while cursor:
        cursor = queue.claim('w2', 0, cursor=cursor)['cursor']
    assert len(queue.entries('go')) == 12


def test_the_scan_takes_ones_own_expired_entries_too(queue):
    """A worker that slept: what it had passes on by the same rules, whoever scans."""
    queue.add({'command': 'x'}, {'command': 'y'})
    [task] = queue.begin('w1')
    queue.block('w1')
    queue.expire()
    queue.scan('w1')
    assert {row['command']: row['crashes'] for row in queue.list('ready')} == {b'x': 1, b'y': 0}
    assert queue.renew('w1', [task.token])['lost'] == [task.token]


def test_crashes_end_in_the_dead_letters_after_the_budget(queue):
    """max_crashes = 3: three begun attempts that lose their worker, then a letter, cause crash."""
    [tid] = queue.add({'command': 'kill', 'id': 'label'})
    for crash in range(3):
        [task] = queue.begin('w2')
        assert task.crashes == crash and task.attempt == 1
        queue.expire()
        queue.scan('w1')
    [(_, letter)] = queue.letters()
    assert (letter['leat.tid'].decode(), letter['leat.cause']) == (tid, b'crash')
    assert letter['leat.crashes'] == b'3' and letter['leat.attempts'] == b'0'
    assert queue.places() == {tid: ['dead']} and queue.redis.hlen(queue.names) == 0
    assert queue.redis.hlen(queue.running) == 0


def test_a_suspect_runs_alone(queue):
    """A task with crashes behind it begins on an empty worker only, and what was read after it goes
    back; on a busy one, where no other is, it is held, and begins when an empty worker names it."""
    tid = suspect(queue)
    queue.add(*[{'command': 'good'}] * 3)
    reply = queue.claim('w1', 4)
    assert tids(reply['tasks']) == [tid] and reply['held'] == []
    queue.finish('w1', reply['tasks'][0], 'release')
    queue.redis.hdel(queue.workers, 'w2')
    reply = queue.claim('w1', 4, busy=1)
    assert reply['tasks'] == [] and len(reply['held']) == 1
    [held] = reply['held']
    assert queue.claim('w1', 0, busy=1, named=[held])['held'] == [held]
    assert queue.renew('w1', [held])['lost'] == []
    reply = queue.claim('w1', 4, busy=0, named=[held])
    assert tids(reply['tasks']) == [tid]
    assert len(queue.begin('w2', 5)) == 3


def test_a_suspect_finds_an_idle_worker(queue):
    """Busy workers pass it on, each once; who is idle begins it. It may then be passed on as often again."""
    tid = suspect(queue)
    for name in ('w3', 'w4'):
        queue.register(name)
    for _ in range(2):
        for name in ('w1', 'w2', 'w3'):
            reply = queue.claim(name, 1, busy=1)
            assert reply['tasks'] == reply['held'] == [] and len(queue.entries('go')) == 1
        [task] = queue.begin('w4', 1)
        assert task.tid == tid and queue.finish('w4', task, 'release') == 'ok'


def wait_held(queue):
    """What was read just now is on its way to the gate."""
    return wait_until(lambda: [row for row in queue.list('running') if row['state'] == b'held'])


def test_a_suspect_that_nobody_has_room_for(queue):
    """All are busy: who has it last holds it; named again, it stays, until another worker is idle and looks."""
    tid = suspect(queue)
    assert queue.claim('w1', 1, busy=1)['held'] == []
    [held] = queue.claim('w2', 1, busy=1)['held']
    assert queue.claim('w2', 1, busy=1, named=[held])['held'] == [held]
    [row] = wait_held(queue)
    assert (row['tid'].decode(), row['worker']) == (tid, b'w2')
    queue.claim('w1', 0, busy=1, cursor=SCAN_START)
    queue.claim('w2', 0, busy=0, cursor=SCAN_START)
    assert queue.pending() == [held]
    queue.claim('w1', 0, busy=0, cursor=SCAN_START)
    assert queue.pending() == [] and queue.renew('w2', [held])['lost'] == [held]
    assert tids(queue.begin('w1', 1)) == [tid]
    assert [row['state'] for row in queue.list('running')] == [b'running']


def test_suspects_in_a_row_start_one_by_one(queue):
    """Many of them in go: a worker gets one, the others stay for the rest."""
    queue.add(*[{'command': 'bad'}] * 4)
    queue.begin('w2', 4)
    queue.expire()
    queue.scan('w1')
    [first] = queue.begin('w1', 4)
    [second] = queue.begin('w2', 4)
    assert first.tid != second.tid and len(queue.entries('go')) == 4
    assert all(task.crashes == 1 for task in (first, second))


def test_neighbours_of_a_killer_are_not_dragged_along(queue):
    """Eight tasks on one worker, one kills it each time: the others lose one crash, no attempt."""
    tasks = queue.add({'command': 'killer'}, *[{'command': 'good'}] * 7)
    queue.begin('w2', 8)
    queue.expire()
    queue.scan('w1')
    done = 0
    for _ in range(40):
        for task in queue.begin('w2', 8):
            assert task.attempt == 1
            if task.fields['command'] == b'killer':
                queue.expire()
                queue.scan('w1')
            else:
                assert task.crashes <= 1
                done += queue.finish('w2', task) == 'ok'
    assert done == 7 and [l['leat.tid'].decode() for _, l in queue.letters()] == [tasks[0]]


def test_without_the_group_nothing_is_written(queue, client):
    """NOGROUP, and no key has changed: a delayed task that is due stays where it is."""
    queue.add({'command': 'x'}, due='+60000')
    client.zadd(queue.delayed, {client.zrange(queue.delayed, 0, 0)[0]: 1})
    client.execute_command('XGROUP', 'DESTROY', queue.go, 'leat')
    before = {key: client.dump(key) for key in client.keys()}
    for cursor in ('', 'g0-0'):
        with pytest.raises(redis.ResponseError, match='^NOGROUP'):
            queue.claim('w1', 1, cursor=cursor)
    assert {key: client.dump(key) for key in client.keys()} == before


def test_what_begins_is_answered_even_where_the_rest_fails(queue, client):
    """Only the stream's group is missing: the due task begins by way of go, the next one fails."""
    [tid] = queue.add({'command': 'x'}, due='+60000')
    client.zadd(queue.delayed, {tid: 1})
    client.execute_command('XGROUP', 'DESTROY', 'emails', 'leat')
    assert tids(queue.begin('w1', 2)) == [tid]
    with pytest.raises(redis.ResponseError, match='^NOGROUP'):
        queue.begin('w1', 2)


def test_a_recreated_group_keeps_the_gate_shut_for_a_lease(queue, client):
    """The group is destroyed while a task runs: nothing begins before one lease has passed, and
    then the task is put up again once, uncounted; the first worker is told."""
    [running, waiting] = queue.add({'command': 'a'}, {'command': 'b'})
    [task] = queue.begin('w1')
    client.execute_command('XGROUP', 'DESTROY', 'emails', 'leat')
    reply = queue.register('w2')
    closed = queue.claim('w2', 5, cursor='g0-0')
    assert closed['closed'] == reply['now'] + 60000 and closed['tasks'] == []
    assert closed['cursor'] == '', 'where all must wait, the scan is not to go on at once'
    assert queue.register('w1', [task.token])['lost'] == [task.token]
    client.hset(queue.conf, 'hold_until', queue.now() - 1)
    got = queue.begin('w2', 5) + queue.begin('w2', 5)
    assert sorted(tids(got)) == sorted([running, waiting])
    assert all((one.attempt, one.crashes) == (1, 0) for one in got)
    assert queue.finish('w1', task) in ('gone', 'fenced')


def test_closed_puts_back_what_is_named(queue, client):
    """The blocking read brought it, the gate is shut: it goes to go, un-begun."""
    queue.add({'command': 'x'})
    [token] = queue.block('w1')
    client.hset(queue.conf, 'hold_until', queue.now() + 60000)
    reply = queue.claim('w1', 1, named=[token, 's1-1'])
    assert reply['closed'] and queue.pending() == [] and len(queue.entries('go')) == 1
    assert queue.redis.hlen(queue.running) == 0


def test_one_bad_entry_does_not_stop_the_others(queue, client):
    """A record and an entry that nobody of ours wrote: the rest is claimed and reclaimed."""
    queue.add({'command': 'a'}, {'command': 'b'})
    [task] = queue.begin('w1')
    client.hset(queue.running, task.token, b'\0garbage')
    client.xadd(queue.go, {'leat.tid': '', 'leat.fields': '-1'})
    client.xadd(queue.go, {'command': 'x', 'leat.fields': '99'})
    queue.expire()
    _, tasks = queue.scan('w2', 9)
    assert {task.fields.get('command') for task in tasks} == {b'a', b'b', b'x', None}


def test_records_whose_entry_is_gone_are_swept(queue, client):
    """DEL of the stream under running tasks: they are settled as vanished and release their names;
    a moved record goes with the entry it points to."""
    queue.add({'command': 'a', 'id': 'label'}, {'command': 'b'})
    queue.begin('w1')
    [crashed] = queue.begin('w1')
    queue.expire(crashed.token)
    queue.scan('w2')
    client.xtrim(queue.go, maxlen=0, approximate=False)
    client.delete('emails')
    queue.register('w2')
    client.hset(queue.conf, 'hold_until', 0)
    client.hdel(queue.stats, 'swept')
    queue.scan('w2')
    assert client.hlen(queue.running) == 0 and client.hlen(queue.names) == 0
    assert [letter['leat.cause'] for _, letter in queue.letters()] == [b'vanished']


def test_silent_consumers_are_struck_off(queue, client):
    """After ten leases without a beat and with nothing pending; one that holds a task stays."""
    queue.add({'command': 'x'})
    queue.begin('w2')
    queue.register('w3')
    for consumer in ('w2', 'w3'):
        client.hset(queue.workers, consumer, '1 {}')
    client.hdel(queue.stats, 'swept')
    queue.scan('w1')
    assert set(client.hkeys(queue.workers)) == {b'w1', b'w2'}


def test_a_host_that_never_returns(queue, client):
    """What its consumer held is adopted, then the consumer is struck off, of both groups."""
    tids = queue.add({'command': 'x'}, {'command': 'y'})
    queue.begin('w2')
    queue.scan('w1')
    queue.expire()
    client.hset(queue.workers, 'w2', '1 {}')
    client.hdel(queue.stats, 'swept')
    queue.scan('w1')
    assert client.hkeys(queue.workers) == [b'w1']
    for key in (queue.go, queue.stream):
        assert b'w2' not in [info['name'] for info in client.xinfo_consumers(key, 'leat')]
    assert sorted(queue.places()) == sorted(tids)


@pytest.mark.parametrize('args', [
    ['leat', 'w1', 'x', 0, ''], ['leat', 'w1', 1, 'x', ''], ['leat', 'w1', -1, 0, ''],
    ['leat', 'w1', 1, 0, 'x'], ['leat', 'w1', 1, 0, '', 'x1-1'],
])
def test_malformed_calls_are_refused(queue, args):
    """A word of ours, and nothing claimed."""
    with pytest.raises(redis.ResponseError, match='BADARG'):
        queue.call('claim', *args)
    assert queue.pending() == []


def test_claim_tells_of_the_letters_that_it_makes(queue):
    """No worker ran these tasks last: the one that claimed is the only one that can log them."""
    late, = queue.add({'command': 'x', 'expires': '1'})
    lost, = queue.add({'command': 'y'})
    queue.conf_set('max_crashes', 1)
    assert queue.claim('w1', 2)['buried'] == {late: 'expired'}
    queue.expire()
    cursor, buried = 'g0-0', {}
    while cursor:
        reply = queue.claim('w2', 0, 0, cursor)
        cursor = reply['cursor']
        buried.update(reply['buried'])
    assert buried == {lost: 'crash'}


def test_a_damaged_waiting_task_does_not_stop_the_others(queue):
    """One that nobody can read any more stays where it is, and is tried again later."""
    damaged, = queue.add({'command': 'x'}, due='+1')
    queue.redis.hset(queue.waiting, damaged, b'\xc1 not msgpack')
    queue.redis.zadd(queue.delayed, {damaged: 1})
    fine, = queue.add({'command': 'y'})
    assert [task.tid for task in queue.begin('w1', 5)] == [fine]
    assert queue.redis.hexists(queue.waiting, damaged)
    assert queue.redis.zscore(queue.delayed, damaged) > queue.now()
