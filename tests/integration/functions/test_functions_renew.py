"""leat_renew, leat_register, leat_requeue and leat_conf: leases, and consumers that come and go."""
import pytest
import redis

from harness.queue import Queue


@pytest.fixture(autouse=True)
def worker(queue):
    queue.register('w1')
    queue.register('w2')


def begin(queue, count=1, consumer='w1'):
    for _ in range(0, count, 500):
        queue.add(*[{'command': 'x'}] * min(count, 500))
    tasks = []
    while len(tasks) < count:
        more = queue.begin(consumer, count - len(tasks), len(tasks))
        assert more
        tasks += more
    return tasks


def tokens(tasks):
    return [task.token for task in tasks]


def pending_rows(queue):
    return [row for key in (queue.stream, queue.go)
            for row in queue.redis.execute_command('XPENDING', key, 'leat', '-', '+', 10000)]


def test_a_long_task_is_no_crash_loop(queue):
    """300 renewals over 100 leases leave the delivery count unchanged and the entry in place, and the finish
    counts."""
    [task] = begin(queue)
    for _ in range(300):
        assert queue.renew('w1', [task.token])['lost'] == []
    assert [row[3] for row in pending_rows(queue)] == [1]
    assert queue.finish('w1', task) == 'ok'


def test_renewing_resets_the_idle_time(queue):
    """A renewed entry that had nearly expired has a whole lease again."""
    tasks = begin(queue, 3)
    queue.expire()
    queue.renew('w1', tokens(tasks))
    assert all(row[2] < 30000 for row in pending_rows(queue))
    assert queue.scan('w2', 5)[1] == []


def test_2500_at_once(queue):
    """One call renews more entries than two Lua unpacks take, and reports a lost one among them."""
    tasks = begin(queue, 2500)
    queue.expire(tasks[1234].token)
    queue.scan('w2')
    assert queue.renew('w1', tokens(tasks))['lost'] == [tasks[1234].token]
    assert len(queue.pending('w1')) == 2499


def test_lost_leases(queue, client):
    """A renewal reports as lost, and counts, a task of another worker, one that was requeued, one that is
    settled, and one that never was."""
    mine, other, moved, done = begin(queue, 4)
    client.hdel(queue.running, other.token)
    queue.redis.execute_command('XCLAIM', 'emails', 'leat', 'w2', 0, other.token[1:], 'JUSTID')
    queue.expire(moved.token)
    queue.scan('w2')
    queue.finish('w1', done)
    lost = queue.renew('w1', tokens([mine, other, moved, done]) + ['g1-1'])['lost']
    assert sorted(lost) == sorted(tokens([other, moved, done]) + ['g1-1'])
    assert queue.counter('fenced') == 4


def test_an_expired_lease_is_renewed_before_a_scan(queue):
    """If no worker scanned, the attempt is still the only one."""
    [task] = begin(queue)
    queue.expire()
    assert queue.renew('w1', [task.token])['lost'] == []
    assert queue.scan('w2', 1)[1] == []


def test_an_unclaimed_entry_is_renewed_for_its_reader_only(queue):
    """The reader of a delivered or deferred entry can renew it, and no other worker."""
    queue.add({'command': 'x'})
    [token] = queue.block('w1')
    assert queue.renew('w2', [token])['lost'] == [token]
    assert queue.renew('w1', [token])['lost'] == []


def test_a_deleted_entry_is_settled_when_its_renewal_finds_it(queue, client):
    """If the entry of a running task is deleted, the renewal reports it lost and a dead letter tells why; the
    others are renewed."""
    queue.add({'command': 'x', 'id': 'label'}, {'command': 'y'})
    gone, stays = queue.begin('w1', 2)
    client.xdel('emails', gone.token[1:])
    answer = queue.renew('w1', tokens([gone, stays]))
    assert answer['lost'] == [gone.token] and answer['ended'] == [gone.tid, 'vanished']
    assert queue.renew('w1', [stays.token])['ended'] == []
    [(_, letter)] = queue.letters()
    assert letter['leat.cause'] == b'vanished' and queue.held() == {}
    assert client.hlen(queue.running) == 1 and queue.pending() == [stays.token]


def test_a_broken_dead_letter_stream_does_not_stop_renewals(queue, client):
    """If the dead letters have another type, the other leases are still renewed."""
    gone, stays = begin(queue, 2)
    client.set(queue.dead, 'x')
    client.xdel('emails', gone.token[1:])
    assert queue.renew('w1', tokens([gone, stays]))['lost'] == [gone.token]


def test_the_heartbeat_is_written(queue):
    """The heartbeat has the server's time and the worker's own text."""
    reply = queue.renew('w1', [], heartbeat='{"slots": 8}')
    assert queue.redis.hget(queue.workers, 'w1') == f'{reply["now"]} {{"slots": 8}}'.encode()
    assert queue.worker_heartbeats()['w1'] == {'slots': 8}


# ---- register


def test_register_sets_defaults_and_conf_overrides(queue):
    """The first worker's values hold; a later worker with others learns the values in force."""
    reply = queue.register('w3', lease=5000, max_crashes=7, max_length=9)
    ruling = {'lease_ms': '60000', 'max_crashes': '3', 'max_length': '0', 'dead_keep_ms': '0',
              'dead_keep_number': '0'}
    assert (reply['lease'], reply['ruling']) == (60000, ruling)
    queue.conf_set('max_crashes', 5)
    assert queue.register('w3')['ruling']['max_crashes'] == '5'


def test_register_is_strict(queue):
    """register renews named tokens, requeues unnamed ones without counting, and reports lost ones."""
    tasks = begin(queue, 4)
    queue.finish('w1', tasks[3])
    reply = queue.register('w1', tokens(tasks[:2]) + [tasks[3].token])
    assert reply['lost'] == [tasks[3].token] and reply['more'] == 0
    assert sorted(queue.pending('w1')) == sorted(tokens(tasks[:2]))
    [again] = queue.begin('w2', 5)
    assert (again.tid, again.attempt, again.crashes) == (tasks[2].tid, 1, 0)


def test_a_late_registration_is_refused(queue):
    """A registration that comes after a later one of the same worker, which may have claimed tasks since."""
    queue.register('w1', heartbeat='{"registration":9}')
    queue.register('w1', heartbeat='{"registration":10}')
    [task] = begin(queue)
    with pytest.raises(redis.ResponseError, match='^LATE '):
        queue.register('w1', heartbeat='{"registration":9}')
    assert queue.renew('w1', [task.token])['lost'] == []
    assert queue.register('w1', [task.token], heartbeat='{"registration":11}')['lost'] == []
    queue.register('w2', heartbeat='{"registration":1}')


def test_register_requeues_page_by_page(queue):
    """350 unnamed entries beside 1,100 named ones are requeued in several bounded calls; the named ones stay."""
    kept, dropped = begin(queue, 1100), begin(queue, 350)
    calls = 0
    while queue.register('w1', tokens(kept))['more']:
        calls += 1
    assert calls == 3 and len(queue.entries('go')) == 350
    assert sorted(queue.pending('w1')) == sorted(tokens(kept))
    assert not set(tokens(dropped)) & set(queue.pending())


def test_register_answers_where_to_read_wakeups(queue):
    """A wakeup after the register is not missed."""
    queue.add({'command': 'x'}, due='+60000')
    bell = queue.register('w1')['bell']
    assert bell == queue.entries('bell')[-1][0]
    queue.add({'command': 'x'}, due='+1000')
    assert queue.redis.execute_command('XREAD', 'STREAMS', queue.bell, bell)


def test_a_foreign_stream_is_left_alone(queue, client):
    """A stream with another group is refused with a message, and nothing is written."""
    client.flushdb()
    client.xadd('emails', {'some': 'data'})
    client.xgroup_create('emails', 'others', '0')
    before = {key: client.dump(key) for key in client.keys()}
    with pytest.raises(redis.ResponseError, match='^FOREIGN the stream emails .* others'):
        queue.register('w1')
    assert {key: client.dump(key) for key in client.keys()} == before


def test_a_queue_of_another_group_is_named_so(queue):
    """If the configuration names another group than the queue has, the message says that this is the fault."""
    with pytest.raises(redis.ResponseError, match='^FOREIGN .* group, leat, .* this queue .*: correct '):
        Queue(queue.redis, group='mine').register('w2')


def test_the_group_is_made_from_zero(queue, client):
    """Tasks that were enqueued after FLUSHALL run at once, because none ran before."""
    client.flushall()
    queue.redis.xadd('emails', {'command': 'x'})
    queue.register('w1')
    assert len(queue.begin('w1')) == 1


def test_a_deleted_stream_pauses_claims_for_one_lease(queue, client):
    """If only the stream is deleted, new tasks wait for one lease, because claimed tasks may still run."""
    client.delete('emails')
    client.xadd('emails', {'command': 'x'})
    now = queue.register('w1')['now']
    assert queue.claim('w1', 1)['closed'] == now + 60000
    client.hset(queue.conf, 'hold_until', now)
    assert len(queue.begin('w1')) == 1


def test_a_recreated_group_waits_for_the_longest_lease_in_use(queue, client):
    """If the lease was just shortened, claims wait for the old lease, because claimed tasks may still have
    it."""
    queue.conf_set('lease_ms', 2000)
    client.execute_command('XGROUP', 'DESTROY', 'emails', 'leat')
    now = queue.register('w1')['now']
    assert queue.claim('w1', 1)['closed'] == now + 60000


# ---- requeue


@pytest.mark.parametrize('died', [False, True])
def test_a_consumer_that_is_gone(queue, died):
    """All entries of the consumer are requeued, page by page. A crash is counted only if it died, and only
    for tasks that it had claimed; the consumer is deleted last."""
    begin(queue, 250)
    queue.add({'command': 'un-begun'})
    queue.block('w1')
    moved, more = queue.requeue('w1', died)
    total = moved
    while more:
        moved, more = queue.requeue('w1', died)
        total += moved
    assert total == 251 and len(queue.entries('go')) == 251
    names = [info['name'] for info in queue.redis.xinfo_consumers('emails', 'leat')]
    assert b'w1' not in names and b'w1' not in queue.redis.hkeys(queue.workers)
    seen = queue.list('ready')
    assert sorted({row['crashes'] for row in seen}) == ([0, 1] if died else [0])
    assert sum(row['crashes'] for row in seen) == (250 if died else 0)
    assert {row['attempts'] for row in seen} == {0}


def test_requeue_of_an_unknown_consumer(queue):
    """A requeue for a consumer that never existed moves nothing."""
    assert queue.requeue('stranger') == (0, 0)


# ---- conf


def test_a_shortened_lease_counts_one_old_lease_later(queue):
    """Workers learn of a shortened lease at once, but no task is taken over before the old lease has passed."""
    [task] = begin(queue)
    queue.conf_set('lease_ms', 1000)
    assert queue.renew('w1', [task.token])['lease'] == 1000
    id = task.token[1:]
    queue.redis.execute_command('XCLAIM', 'emails', 'leat', 'w1', 0, id, 'IDLE', 30000, 'JUSTID')
    assert queue.scan('w2', 1)[1] == []
    queue.redis.execute_command('XCLAIM', 'emails', 'leat', 'w1', 0, id, 'IDLE', 60000, 'JUSTID')
    assert len(queue.scan('w2', 1)[1]) == 1


def test_after_two_changes_the_longest_lease_counts(queue):
    """Two changes in a row do not hide the first lease."""
    begin(queue)
    queue.conf_set('lease_ms', 5000)
    queue.conf_set('lease_ms', 1000)
    token = queue.pending()[0][1:]
    queue.redis.execute_command('XCLAIM', 'emails', 'leat', 'w1', 0, token, 'IDLE', 30000, 'JUSTID')
    assert queue.scan('w2', 1)[1] == []


def test_a_damaged_conf_falls_back_to_defaults(queue):
    """If conf has words instead of numbers, every function uses the default."""
    [task] = begin(queue)
    for name in ('lease_ms', 'max_crashes', 'max_length', 'hold_until', 'floor_ms', 'floor_until'):
        queue.redis.hset(queue.conf, name, 'garbage')
    queue.redis.hset(queue.stats, mapping={'swept': 'x', 'retrying': 'x', 'enqueued': 'x'})
    assert queue.register('w1', [task.token])['lease'] == 60000
    queue.add({'command': 'x'})
    queue.expire()
    assert len(queue.scan('w2', 2)[1]) == 2
    assert queue.finish('w1', task, 'retry') in ('gone', 'fenced')
    assert queue.status()['conf']['lease_ms'] == b'garbage'


@pytest.mark.parametrize('call', ['claim', 'renew'])
def test_settings_are_deleted(queue, call):
    """Without settings nobody knows the lease, so a worker has to register, which restores them."""
    queue.register('w1', lease=4000)
    queue.redis.delete(queue.conf)
    with pytest.raises(redis.ResponseError, match='^NOGROUP the settings'):
        getattr(queue, call)('w1')
    assert queue.register('w1', lease=4000)['lease'] == 4000 and getattr(queue, call)('w1')['lease'] == 4000


@pytest.mark.parametrize('args', [
    ['lease_ms', 999], ['lease_ms', 'x'], ['lease_ms'], ['max_crashes', 0], ['protocol', 2],
    ['hold_until', 0], ['x', 1], ['max_length', -1],
])
def test_conf_refuses_what_it_does_not_know(queue, args):
    """leat_conf refuses unknown names and values, and changes nothing."""
    before = queue.conf_set()
    with pytest.raises(redis.ResponseError, match='^BADARG'):
        queue.conf_set(*args)
    assert queue.conf_set() == before


KNOWING = '{"unclaimed": []}'
NAMED = {'command': 'x', 'id': 'label', 'unique': 'key', 'lane': 'a'}


@pytest.mark.parametrize('lost', ['running', 'names', 'both'])
@pytest.mark.parametrize('call', ['renew', 'register'])
def test_a_deleted_record_is_restored(queue, lost, call):
    """After DEL of the records or the names, the next renewal restores them: no second task with the id or key is
    added, and the task's end counts, as ever."""
    queue.add(NAMED)
    [task] = queue.begin('w1')
    before = queue.held()
    for key in {'running': ['running'], 'names': ['names'], 'both': ['running', 'names']}[lost]:
        queue.redis.delete(getattr(queue, key))
    assert getattr(queue, call)('w1', [task.token], heartbeat=KNOWING)['lost'] == []
    assert queue.held() == before and queue.redis.hlen(queue.running) == 1
    assert queue.enqueue(NAMED) == queue.enqueue({'command': 'x', 'unique': 'key'}) == [('exists', task.tid)]
    assert queue.finish('w1', task) == 'ok' and queue.places() == {}
    assert queue.held() == {} and queue.redis.hlen(queue.running) == 0
    assert queue.redis.hget(queue.stats, 'r:a') is None


@pytest.mark.parametrize('heartbeat', ['{}', '{"unclaimed": ["TOKEN"]}', 'junk'])
def test_what_was_not_claimed_gets_no_record(queue, heartbeat):
    """A token that was read but not claimed, or of a worker that does not tell, is renewed without a record."""
    queue.add(dict(NAMED, lane=''))
    [token] = queue.block('w1')
    assert queue.renew('w1', [token], heartbeat.replace('TOKEN', token))['lost'] == []
    assert queue.redis.hlen(queue.running) == 0
    assert [task.token for task in queue.claim('w1', named=[token])['tasks']] == [token]


def test_a_name_that_another_holds_stays(queue):
    """If another task took the id and the key meanwhile, it keeps them."""
    queue.add(NAMED)
    [task] = queue.begin('w1')
    queue.redis.delete(queue.names)
    [(_, other)] = queue.enqueue(NAMED)
    queue.renew('w1', [task.token], heartbeat=KNOWING)
    assert other != task.tid and set(queue.held().values()) == {other.encode()}
