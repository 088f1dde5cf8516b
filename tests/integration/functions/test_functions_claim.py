"""leat_claim, the one check before a task starts: which tasks start, in which order, and which are dropped,
deferred or requeued."""
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


def poison_candidate(queue, command='bad', crashes=1):
    """A poison candidate that runs alone: a task that has lost `crashes` workers and may not lose another one, in
    the requeue stream."""
    [tid] = queue.add({'command': command})
    for _ in range(crashes):
        [task] = queue.begin('w2')
        assert task.tid == tid
        queue.expire(task.token)
        queue.scan('w1')
    queue.conf_set('max_crashes', crashes + 1)
    return tid


def test_go_comes_before_the_stream(queue):
    """A requeued task does not wait behind the backlog."""
    [first, second, third] = queue.add(*[{'command': 'x'}] * 3)
    [task] = queue.begin('w1')
    queue.finish('w1', task, 'release')
    assert tids(queue.begin('w1', 3)) == [first, second, third]


def test_one_claim_keeps_the_order(queue):
    """Tasks with and without a label or a unique key start in the order in which they were added."""
    added = queue.add({'id': 'a', 'command': 'x'}, {'command': 'x'}, {'unique': 'b', 'command': 'x'},
                      {'command': 'x'}, {'id': 'c', 'command': 'x'})
    assert tids(queue.begin('w1', 5)) == added


def test_due_tasks_come_before_the_stream(queue):
    """Delayed tasks that are due are promoted in the order of their times, as many as are wanted."""
    [ready] = queue.add({'command': 'ready'})
    late, early = queue.add({'command': 'late'}, {'command': 'early'}, due='+60000')
    queue.redis.zadd(queue.delayed, {late: 20, early: 10})
    reply = queue.claim('w1', 1)
    assert tids(reply['tasks']) == [early] and reply['next_due'] == 20
    assert tids(queue.begin('w1', 5)) == [late, ready]
    assert queue.claim('w1', 1)['next_due'] == 0


def test_the_attempt_counts_when_it_begins(queue):
    """A released task keeps its attempt number, a retried one gets the next; the fencing token always grows."""
    queue.add({'command': 'x'})
    [first] = queue.begin('w1')
    assert first.attempt == 1
    queue.finish('w1', first, 'release')
    [second] = queue.begin('w1')
    assert second.attempt == 1 and second.fence > first.fence
    queue.finish('w1', second, 'retry')
    [third] = queue.begin('w1')
    assert third.attempt == 2 and third.fence > second.fence


@pytest.mark.parametrize('ahead_us, is_kept', [(10 ** 12, True), (10 ** 15, False)])
def test_a_fence_from_the_future(queue, ahead_us, is_kept):
    """If Redis's clock was set back, tokens go on from the greatest one that a worker knows. One that no clock can
    have made, such as that of a forged task, leaves room for the tokens of other tasks."""
    fence = queue.now() * 1000 + ahead_us
    queue.register('w1', heartbeat=f'{{"unclaimed":[],"fence":{fence}}}')
    queue.add({'command': 'x'})
    assert (queue.begin('w1')[0].fence > fence) == is_kept


def test_wanting_none_begins_none(queue):
    """A full worker that names tokens or scans gets no new tasks."""
    queue.add({'command': 'x'})
    assert queue.begin('w1', 0) == []


def test_thousands_at_once(queue):
    """One claim takes more tasks than one Lua unpack, in one call and in several."""
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
    """A call stops if its reply is large enough, and the next one goes on."""
    queue.add(*[{'command': 'x', 'payload': b'x' * 4 * MIB}] * 30)
    first = queue.begin('w1', 30)
    assert 4 <= len(first) <= 12
    seen = len(first)
    while seen < 30:
        seen += len(queue.begin('w1', 30)) or pytest.fail('nothing more came')


def test_expired_tasks_are_dead_lettered_unstarted(queue):
    """A task whose expires is in the past becomes a dead letter with that cause, without an attempt, and the
    next task is claimed."""
    dead, alive, odd = queue.add(
        {'command': 'x', 'expires': '1', 'id': 'label'}, {'command': 'y', 'expires': '99999999999'},
        {'command': 'z', 'expires': 'never'})
    assert tids(queue.begin('w1', 3)) == [alive, odd]
    [(_, letter)] = queue.letters()
    assert (letter['leat.tid'].decode(), letter['leat.cause']) == (dead, b'expired')
    assert letter['leat.attempts'] == b'0' and queue.held() == {}


def test_expired_ones_do_not_use_up_the_call(queue):
    """One call passes many expired tasks to find one that may start."""
    queue.add(*[{'command': 'x', 'expires': '1'}] * 50)
    [alive] = queue.add({'command': 'y'})
    assert tids(queue.begin('w1', 1)) == [alive]


def test_too_many_fields_are_refused_with_every_byte_kept(queue, client):
    """A task of 5,000 fields, added with XADD, becomes a dead letter, and leat_show still gives all fields."""
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
def test_too_many_fields_on_every_other_path(queue, client, how):
    """An entry with too many fields becomes a dead letter on every path that would write it again, and stops
    no call."""
    if how == 'alone':
        poison_candidate(queue)
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


def test_named_tokens_are_claimed_once(queue):
    """A task that the blocking read delivered starts with the claim that names its token, and naming it again
    changes nothing. A task that another worker has claimed, that is gone or was never read does not start."""
    queue.add(*[{'command': 'x'}] * 3)
    [mine] = queue.block('w1')
    [other] = queue.block('w2')
    queue.claim('w2', 0, named=[other])
    unread = 's' + queue.entries('stream')[2][0]
    reply = queue.claim('w1', 0, named=[mine, mine, other, unread, 's1-1'])
    assert [task.token for task in reply['tasks']] == [mine]
    assert queue.claim('w1', 0, 1, named=[mine])['tasks'] == []
    assert queue.renew('w1', [mine])['lost'] == []
    assert queue.redis.hlen(queue.running) == 2


def test_the_first_claim_gets_an_unclaimed_task(queue):
    """If two workers name one entry, the first starts the task and holds its lease; the other gets nothing."""
    queue.add({'command': 'x'})
    [token] = queue.block('w2')
    [task] = queue.claim('w1', 0, named=[token])['tasks']
    assert queue.pending('w1') == [token]
    late = queue.claim('w2', 0, named=[token])
    assert late['tasks'] == [] and late['held'] == []
    assert queue.finish('w1', task) == 'ok'


@pytest.mark.parametrize('field', [
    {}, {'id': 'a'}, {'unique': 'a'}, {'lane': 'a'}, {'result_ttl': '1m'}, {'expires': '9999999999'},
    {'expires': '1'}, {'payload': 'x' * 65536}, {str(i): 'x' for i in range(40)}, {'lane': 'x' * 201},
], ids=lambda field: '-'.join([*field, *(value[:2] for value in field.values())])[:20])
def test_one_named_entry_beside_nothing(queue, client, field):
    """A claim that names one entry and asks for nothing else does the same as one that also asks for tasks."""
    answers = []
    for wanted in 0, 1:
        client.xadd(queue.stream, {'command': 'x', **field})
        [token] = queue.block('w1', 1)
        reply = queue.claim('w1', wanted, named=[token])
        running = [packed.split()[4:] for packed in client.hvals(queue.running)]
        [entry] = client.xpending_range(queue.stream, queue.group, '-', '+', 1) or [None]
        answers.append((len(reply['tasks']), [task.fields for task in reply['tasks']], reply['held'], running,
                        entry and entry[1], client.hlen(queue.names) - client.xlen(queue.dead)))
        for task in reply['tasks']:
            assert task.token == token and task.attempt == 1
            assert queue.finish('w1', task, 'success') == 'ok'
        assert client.hlen(queue.running) == 0 and client.xlen(queue.stream) == 0
    assert answers[0] == answers[1]


def test_a_named_entry_gets_a_whole_lease(queue, wait_until):
    """The lease begins with the claim, not with the delivery, because the reply may have waited in the
    socket."""
    queue.add({'command': 'x'})
    [token] = queue.block('w1')
    id = token[1:]
    queue.redis.execute_command('XCLAIM', 'emails', 'leat', 'w1', 0, id, 'IDLE', 59000, 'JUSTID')
    queue.claim('w1', 0, named=[token])
    [[_, _, idle, _]] = queue.redis.execute_command('XPENDING', 'emails', 'leat', '-', '+', 1)
    assert idle < 30000


def test_a_named_entry_that_was_taken_over_is_not_claimed(queue):
    """A worker whose reply waited in the socket for longer than the lease does not get the task."""
    [tid] = queue.add({'command': 'x'})
    [token] = queue.block('w1')
    queue.expire()
    queue.scan('w2')
    assert queue.claim('w1', 0, named=[token])['tasks'] == []
    [task] = queue.begin('w2')
    assert (task.tid, task.attempt, task.crashes) == (tid, 1, 0)


def test_a_named_entry_that_was_deleted(queue, client):
    """An entry that was deleted between delivery and claim does not start and leaves nothing pending."""
    queue.add({'command': 'x'})
    [token] = queue.block('w1')
    client.xdel('emails', token[1:])
    assert queue.claim('w1', 1, named=[token])['tasks'] == []
    assert queue.pending() == [] and queue.letters() == []


def test_a_lost_reply_costs_no_attempt(queue):
    """If a claim's reply is lost, the strict register requeues the task without counting an attempt."""
    [tid] = queue.add({'command': 'x'})
    queue.begin('w1')
    queue.register('w1')
    [task] = queue.begin('w2')
    assert (task.tid, task.attempt, task.crashes) == (tid, 1, 0)


def test_one_expired_lease_behind_a_thousand_live_ones(queue):
    """The scan follows its cursor through all pages in one round, and then its cursor is empty."""
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
    """The tasks of a dead worker move in calls of bounded size, each once."""
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
    """The next call treats entries that the scan claimed but did not move as expired."""
    # these calls are slow on a busy machine: that must not pass for an outage
    queue.redis.hset(queue.conf, 'lease_ms', 600000)
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


def test_the_scan_takes_a_workers_own_expired_entries_too(queue):
    """A worker's own expired leases are requeued by the same rules, whichever worker scans."""
    queue.add({'command': 'x'}, {'command': 'y'})
    [task] = queue.begin('w1')
    queue.block('w1')
    queue.expire()
    queue.scan('w1')
    assert {row['command']: row['crashes'] for row in queue.list('ready')} == {b'x': 1, b'y': 0}
    assert queue.renew('w1', [task.token])['lost'] == [task.token]


def test_crashes_end_in_the_dead_letters_after_the_budget(queue):
    """If max_crashes is 3, the third lost worker makes the task a dead letter with the cause crash."""
    [tid] = queue.add({'command': 'kill', 'id': 'label'})
    for crash in range(3):
        [task] = queue.begin('w2')
        assert task.crashes == crash and task.attempt == 1
        queue.expire()
        queue.scan('w1')
    [(_, letter)] = queue.letters()
    assert (letter['leat.tid'].decode(), letter['leat.cause']) == (tid, b'crash')
    assert letter['leat.crashes'] == b'3' and letter['leat.attempts'] == b'0'
    assert queue.places() == {tid: ['dead']} and queue.held() == {}
    assert queue.redis.hlen(queue.running) == 0


def test_a_poison_candidate_runs_alone(queue):
    """A poison candidate starts on an empty worker only, and tasks read after it are requeued. A busy worker
    defers it if no other worker is empty, and starts it when it names it while empty."""
    tid = poison_candidate(queue)
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


def test_a_poison_candidate_finds_an_idle_worker(queue):
    """Each busy worker requeues a poison candidate once, and an idle worker starts it. It may then be passed
    on as often again."""
    tid = poison_candidate(queue)
    for name in ('w3', 'w4'):
        queue.register(name)
    for _ in range(2):
        for name in ('w1', 'w2', 'w3'):
            reply = queue.claim(name, 1, busy=1)
            assert reply['tasks'] == reply['held'] == [] and len(queue.entries('go')) == 1
        [task] = queue.begin('w4', 1)
        assert task.tid == tid and queue.finish('w4', task, 'release') == 'ok'


def wait_deferred(queue):
    """The next claim gets a task that was read just now."""
    return wait_until(lambda: [row for row in queue.list('running') if row['state'] == b'held'])


def test_a_poison_candidate_without_an_empty_worker(queue):
    """If all workers are busy, the last one defers the poison candidate; naming it again keeps it there until
    another worker is idle and scans."""
    tid = poison_candidate(queue)
    assert queue.claim('w1', 1, busy=1)['held'] == []
    [held] = queue.claim('w2', 1, busy=1)['held']
    assert queue.claim('w2', 1, busy=1, named=[held])['held'] == [held]
    [row] = wait_deferred(queue)
    assert (row['tid'].decode(), row['worker']) == (tid, b'w2')
    queue.claim('w1', 0, busy=1, cursor=SCAN_START)
    queue.claim('w2', 0, busy=0, cursor=SCAN_START)
    assert queue.pending() == [held]
    queue.claim('w1', 0, busy=0, cursor=SCAN_START)
    assert queue.pending() == [] and queue.renew('w2', [held])['lost'] == [held]
    assert tids(queue.begin('w1', 1)) == [tid]
    assert [row['state'] for row in queue.list('running')] == [b'running']


def test_poison_candidates_in_a_row_start_one_by_one(queue):
    """A worker gets one of many poison candidates that run alone, and the others stay for other workers."""
    queue.conf_set('max_crashes', 2)
    queue.add(*[{'command': 'bad'}] * 4)
    queue.begin('w2', 4)
    queue.expire()
    queue.scan('w1')
    [first] = queue.begin('w1', 4)
    [second] = queue.begin('w2', 4)
    assert first.tid != second.tid and len(queue.entries('go')) == 4
    assert all(task.crashes == 1 for task in (first, second))


def test_neighbours_of_a_poison_task_survive(queue):
    """If one of eight tasks kills the worker each time, the other seven lose one crash and no attempt."""
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
    """A claim without the group gets NOGROUP and changes no key: a due delayed task stays where it is."""
    queue.add({'command': 'x'}, due='+60000')
    client.zadd(queue.delayed, {client.zrange(queue.delayed, 0, 0)[0]: 1})
    client.execute_command('XGROUP', 'DESTROY', queue.go, 'leat')
    before = {key: client.dump(key) for key in client.keys()}
    for cursor in ('', 'g0-0'):
        with pytest.raises(redis.ResponseError, match='^NOGROUP'):
            queue.claim('w1', 1, cursor=cursor)
    assert {key: client.dump(key) for key in client.keys()} == before


def test_started_tasks_are_answered_even_if_the_rest_fails(queue, client):
    """If only the stream's group is missing, the claim starts the due task from the requeue stream, and the
    next claim fails."""
    [tid] = queue.add({'command': 'x'}, due='+60000')
    client.zadd(queue.delayed, {tid: 1})
    client.execute_command('XGROUP', 'DESTROY', 'emails', 'leat')
    assert tids(queue.begin('w1', 2)) == [tid]
    with pytest.raises(redis.ResponseError, match='^NOGROUP'):
        queue.begin('w1', 2)


def test_a_recreated_group_pauses_claims_for_a_lease(queue, client):
    """If the group is destroyed while a task runs, nothing starts for one lease. The task stays with its worker:
    another worker that reads it then gives it back."""
    [running, waiting] = queue.add({'command': 'a'}, {'command': 'b'})
    [task] = queue.begin('w1')
    client.execute_command('XGROUP', 'DESTROY', 'emails', 'leat')
    reply = queue.register('w2')
    closed = queue.claim('w2', 5, cursor='g0-0')
    assert closed['closed'] == reply['now'] + 60000 and closed['tasks'] == []
    assert closed['cursor'] == '', 'the scan waits while no task may start'
    assert queue.register('w1', [task.token])['lost'] == []
    client.hset(queue.conf, 'hold_until', queue.now() - 1)
    assert tids(queue.begin('w2', 5)) == [waiting] and task.tid == running
    assert queue.pending('w1') == [task.token] and queue.renew('w1', [task.token])['lost'] == []
    assert queue.begin('w2', 5) == [] and queue.finish('w1', task) == 'ok'


@pytest.mark.parametrize('blocked', [False, True])
def test_a_running_task_that_is_delivered_again(queue, client, blocked):
    """If the group is recreated, a worker that reads a task that it runs itself does not start it again: it
    keeps the task, and the lease holds."""
    [tid] = queue.add({'command': 'a'})
    [task] = queue.begin('w1')
    client.execute_command('XGROUP', 'DESTROY', 'emails', 'leat')
    assert queue.register('w1', [task.token])['lost'] == [] and queue.pending() == []
    client.hset(queue.conf, 'hold_until', queue.now() - 1)
    named = queue.block('w1', 5) if blocked else []
    assert queue.claim('w1', 5, 1, named=named)['tasks'] == [] and task.tid == tid
    assert queue.pending('w1') == [task.token] and queue.renew('w1', [task.token])['lost'] == []
    assert queue.finish('w1', task) == 'ok' and queue.places() == {}


def test_a_paused_claim_requeues_named_tasks(queue, client):
    """A task that the blocking read delivered while claims are paused goes to the requeue stream, unclaimed."""
    queue.add({'command': 'x'})
    [token] = queue.block('w1')
    client.hset(queue.conf, 'hold_until', queue.now() + 60000)
    reply = queue.claim('w1', 1, named=[token, 's1-1'])
    assert reply['closed'] and queue.pending() == [] and len(queue.entries('go')) == 1
    assert queue.redis.hlen(queue.running) == 0


def test_one_bad_entry_does_not_stop_the_others(queue, client):
    """A record and entries that leat did not write stop no other task from being claimed and reclaimed. An entry
    whose fields of leat cannot be read becomes a dead letter with all that it has."""
    queue.add({'command': 'a'}, {'command': 'b'})
    [task] = queue.begin('w1')
    client.hset(queue.running, task.token, b'\0garbage')
    client.xadd(queue.go, {'leat.tid': '', 'leat.fields': '-1'})
    client.xadd(queue.go, {'command': 'x', 'leat.fields': '99'})
    queue.expire()
    _, tasks = queue.scan('w2', 9)
    assert {task.fields['command'] for task in tasks} == {b'a', b'b'}
    letters = [fields for _, fields in queue.letters()]
    assert [(fields['leat.cause'], fields['leat.damaged'], fields.get('command')) for fields in letters] == [
        (b'damaged', b'leat.fields -1', None), (b'damaged', b'leat.fields 99', b'x')]


def test_records_without_an_entry_are_swept(queue, client):
    """If the stream is deleted while tasks run, the sweep ends them as vanished and frees their names; a
    moved task's record goes with its new entry."""
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
    assert client.hlen(queue.running) == 0 and queue.held() == {}
    assert [letter['leat.cause'] for _, letter in queue.letters()] == [b'vanished']


def test_silent_consumers_are_deleted(queue, client):
    """A consumer is deleted after ten leases without a heartbeat if nothing is pending for it; one that holds
    a task stays."""
    queue.add({'command': 'x'})
    queue.begin('w2')
    queue.register('w3')
    for consumer in ('w2', 'w3'):
        client.hset(queue.workers, consumer, '1 {}')
    client.hdel(queue.stats, 'swept')
    queue.scan('w1')
    assert set(client.hkeys(queue.workers)) == {b'w1', b'w2'}


def test_a_host_that_never_returns(queue, client):
    """The tasks of a host that never returns are reclaimed, and then its consumer is deleted from both
    groups."""
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
    """A malformed call gets an error of leat and claims nothing."""
    with pytest.raises(redis.ResponseError, match='BADARG'):
        queue.call('claim', *args)
    assert queue.pending() == []


def test_claim_reports_its_dead_letters(queue):
    """The claim reports the dead letters that it writes, because only its caller can log them."""
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
    """A waiting task that cannot be decoded stays where it is and is tried again later."""
    damaged, = queue.add({'command': 'x'}, due='+1')
    queue.redis.hset(queue.waiting, damaged, b'\xc1 not msgpack')
    queue.redis.zadd(queue.delayed, {damaged: 1})
    fine, = queue.add({'command': 'y'})
    assert [task.tid for task in queue.begin('w1', 5)] == [fine]
    assert queue.redis.hexists(queue.waiting, damaged)
    assert queue.redis.zscore(queue.delayed, damaged) > queue.now()
