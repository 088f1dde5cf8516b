"""After an outage: who is awaited, and what waits for it, in terms of the functions alone."""
import pytest

from harness.functions.doctor import Doctor
from harness.polling import wait_until
from harness.queue import LIBRARY

LEASE = 60000


WORKERS = 'w1', 'w2', 'w3'


@pytest.fixture(autouse=True)
def workers(queue):
    for name in WORKERS:
        queue.register(name)


def told(queue, number=None, lease=LEASE):
    """The heartbeat of a worker that has heard of all new workers, or of the one with that number, and of that
    lease."""
    joined = queue.redis.hget(queue.stats, 'joined') if number is None else number
    return f'{{"unclaimed":[],"joined":{int(joined)},"lease_ms":{lease}}}'


def begin(queue, consumer):
    queue.add({'command': 'x'})
    [task] = queue.begin(consumer)
    return task.token


def outage(queue, *gone):
    """Nobody has renewed for two leases; those in `gone` have not for longer."""
    late = queue.now() - 2 * LEASE
    for name in queue.redis.hkeys(queue.workers):
        age = 2 * LEASE if name.decode() in gone else 0
        queue.redis.hset(queue.workers, name, f'{late - age} {{}}')
    queue.redis.hset(queue.stats, 'beat', late)
    queue.expire()


def other_server(queue):
    queue.redis.hset(queue.stats, 'server', 'former data')


def end_wait(queue):
    """The lease after the outage has passed."""
    until, rest = queue.redis.hget(queue.stats, 'outage').decode().split(' ', 1)
    assert queue.now() < int(until) <= queue.now() + LEASE
    queue.redis.hset(queue.stats, 'outage', f'{queue.now() - 1} {rest}')


def taken_over(queue):
    before = len(queue.entries('go'))
    queue.scan('w1')
    return len(queue.entries('go')) - before


@pytest.mark.parametrize('first', ['registers', 'renews', 'scans'])
def test_nothing_is_taken_over_before_all_are_back(queue, first):
    """Whatever the first worker does, the others keep their tasks until they have returned. A task that its worker
    does not name is requeued, and no crash is counted."""
    tokens = {name: begin(queue, name) for name in ('w1', 'w2', 'w3')}
    outage(queue)
    if first == 'registers':
        assert queue.register('w1', [tokens['w1']])['lost'] == []
    elif first == 'renews':
        assert queue.renew('w1', [tokens['w1']])['lost'] == []
    assert taken_over(queue) == 0
    assert queue.register('w2', [tokens['w2']])['lost'] == []
    assert taken_over(queue) == 0
    queue.register('w3')
    queue.renew('w1', [tokens['w1']])
    assert taken_over(queue) == 0 and len(queue.entries('go')) == 1
    assert not queue.redis.hexists(queue.stats, 'outage')
    assert queue.counter('crashes') == 0


def short_outage(queue, share):
    """Nobody has renewed for that share of a lease; w2 was the last but one by nearly a third of a lease."""
    last = queue.now() - int(share * LEASE)
    for name in queue.redis.hkeys(queue.workers):
        queue.redis.hset(queue.workers, name, f'{last - (LEASE // 3 if name == b"w2" else 0)} {{}}')
    queue.redis.hset(queue.stats, 'beat', last)


@pytest.mark.parametrize('share', [0.45, 0.7, 0.95])
def test_an_outage_shorter_than_the_lease(queue, share):
    """The leases of some workers have run out, and those of others have not: all return with what they have."""
    token = begin(queue, 'w2')
    short_outage(queue, share)
    queue.expire()
    queue.register('w1')
    assert taken_over(queue) == 0
    assert queue.register('w2', [token])['lost'] == []
    queue.register('w3')
    assert not queue.redis.hexists(queue.stats, 'outage') and queue.counter('crashes') == 0


def pass_by(queue, leases, silence):
    """So many leases pass. In the last ones, `silence`, nobody sends a heartbeat; those that were there last send
    one before."""
    passed, quiet = int(leases * LEASE), int(silence * LEASE)
    beat = int(queue.redis.hget(queue.stats, 'beat'))
    for name, packed in queue.redis.hgetall(queue.workers).items():
        last, rest = packed.decode().split(' ', 1)
        last = queue.now() - quiet if int(last) >= beat else int(last) - passed
        queue.redis.hset(queue.workers, name, f'{last} {rest}')
    until, rest = queue.redis.hget(queue.stats, 'outage').decode().split(' ', 1)
    queue.redis.hset(queue.stats, 'outage', f'{int(until) - passed} {rest}')
    queue.redis.hset(queue.stats, 'beat', queue.now() - quiet)


@pytest.mark.parametrize('gap, share, number', [
    (0.02, 0.95, 1), (0.1, 0.95, 1), (0.15, 0.6, 1), (0.15, 0.99, 1),
    (0.02, 0.45, 4), (0.1, 0.5, 4), (0.08, 0.7, 4), (0.05, 0.99, 4)])
def test_short_outages_soon_after_another(queue, gap, share, number):
    """w2 could not return in any of the times between them. It returns after the last, and has not crashed."""
    token = begin(queue, 'w2')
    outage(queue)
    for name in ('w1', 'w3'):
        queue.register(name)
    for _ in range(number):
        pass_by(queue, gap + share, share)
        for name in ('w1', 'w3'):
            queue.register(name)
        queue.expire()
        assert taken_over(queue) == 0
    pass_by(queue, 0.15, 0)
    assert taken_over(queue) == 0
    assert queue.register('w2', [token])['lost'] == []
    assert queue.counter('crashes') == 0


@pytest.mark.parametrize('share', [0.45, 0.7, 0.95])
def test_late_heartbeats_hide_no_dead_worker(queue, share):
    """If all heartbeats of those that are left are late, the tasks of a dead worker are taken over all the
    same."""
    begin(queue, 'w2')
    short_outage(queue, 0.5)
    queue.expire()
    queue.redis.hdel(queue.workers, 'w3')
    queue.renew('w1')
    leases = 0
    while taken_over(queue) == 0:
        leases += share
        assert leases < 12
        pass_by(queue, share, share)
        queue.renew('w1')
        queue.expire()
    assert leases > 1 and queue.counter('crashes') == 1


def test_a_worker_that_does_not_return_has_crashed(queue):
    """A lease after the outage, the tasks of a missing worker are taken over, with a crash."""
    begin(queue, 'w2')
    outage(queue)
    queue.register('w1')
    queue.register('w3')
    assert taken_over(queue) == 0
    end_wait(queue)
    assert taken_over(queue) == 1 and queue.counter('crashes') == 1


def test_a_worker_that_is_proved_dead_is_not_awaited(queue):
    """Its tasks are requeued at once, with a crash, and the outage ends without it."""
    begin(queue, 'w2')
    outage(queue)
    queue.register('w1')
    queue.register('w3')
    assert queue.requeue('w2', died=True) == (1, 0)
    assert queue.counter('crashes') == 1 and not queue.redis.hexists(queue.stats, 'outage')


def silent_outage(queue):
    """w2 is silent for longer than the two leases of the doctor, however fast this is."""
    outage(queue)
    queue.redis.hset(queue.workers, 'w2', f'{queue.now() - 2 * LEASE - 1000} {{}}')


def repaired(queue, worker='w2'):
    doctor = Doctor(queue)
    found = [one for one in doctor.look() if one.what == ('consumer', worker)]
    return [state for _, state in doctor.repair(found)]


def test_a_repair_waits_for_the_workers(queue):
    """After an outage, the repair of a silent worker leaves it its tasks for a lease, whether a worker has
    returned yet or not. It returns meanwhile: no crash is counted. It does not: the next repair takes them."""
    token = begin(queue, 'w2')
    silent_outage(queue)
    waits = ['left it may return, as after an outage; repeat the repair in 60 s']
    assert repaired(queue) == waits and repaired(queue) == waits
    queue.register('w1')
    assert repaired(queue) == waits
    assert queue.register('w2', [token])['lost'] == []
    assert repaired(queue) == []
    silent_outage(queue)
    assert repaired(queue) == waits
    end_wait(queue)
    assert repaired(queue) == ['repaired'] and queue.counter('crashes') == 1


def test_a_repair_without_any_worker(queue):
    """A repair is no heartbeat: the lease that it gives the workers to return ends, and then it takes their
    tasks."""
    begin(queue, 'w2')
    silent_outage(queue)
    [wait] = repaired(queue)
    assert wait.startswith('left ')
    span = LEASE + 1  # all that has been written is older by that
    until, rest = queue.redis.hget(queue.stats, 'outage').decode().split(' ', 1)
    queue.redis.hset(queue.stats, 'outage', f'{int(until) - span} {rest}')
    queue.redis.hset(queue.stats, 'beat', int(queue.redis.hget(queue.stats, 'beat')) - span)
    assert repaired(queue) == ['repaired']


def test_a_worker_that_was_gone_before_is_not_awaited(queue):
    """A worker that had not renewed for a lease when all others still did does not hold them up."""
    begin(queue, 'w3')
    outage(queue, 'w3')
    queue.register('w1')
    assert taken_over(queue) == 0
    queue.register('w2')
    assert taken_over(queue) == 1


def test_a_worker_that_names_lost_tasks_is_not_back(queue):
    """While a worker names a task that it has lost, a process of that task may live: it is awaited until it names
    only tasks that Redis knows."""
    token = begin(queue, 'w2')
    outage(queue)
    queue.redis.xdel(queue.stream, token[1:])
    for name in ('w1', 'w3'):
        queue.register(name)
    assert queue.register('w2', [token])['lost'] == [token]
    assert queue.redis.hexists(queue.stats, 'outage')
    queue.renew('w2')
    assert not queue.redis.hexists(queue.stats, 'outage')


def test_another_outage_before_all_are_back(queue):
    """A worker that was still awaited when the next outage began is awaited after it, too."""
    token = begin(queue, 'w3')
    outage(queue)
    queue.register('w1')
    beat = queue.now() - LEASE - 1000  # of w1, which alone was back then
    queue.redis.hset(queue.workers, 'w1', f'{beat} {{}}')
    queue.redis.hset(queue.stats, mapping={'beat': beat, 'outage': f'{beat + LEASE} 0 w2 w3'})
    queue.register('w1')
    assert taken_over(queue) == 0
    assert queue.register('w3', [token])['lost'] == []


def test_another_server_stops_all_starts(queue):
    """If the server, or its data, is another one, it may have forgotten claims: nothing starts until all workers
    are back; then those that wait are woken."""
    begin(queue, 'w2')
    queue.add({'command': 'x'})
    other_server(queue)
    queue.register('w1', heartbeat=told(queue))
    assert queue.claim('w1', 1)['why'] == 'outage' and taken_over(queue) == 0
    queue.register('w2')
    assert queue.claim('w1', 1)['why'] == 'outage'
    queue.register('w3')
    assert queue.wakeups()[-1] == 'conf'
    assert len(queue.begin('w1')) == 1


def test_another_server_stops_starts_for_one_lease(queue):
    """A worker that does not return holds up the others for one lease."""
    queue.add({'command': 'x'})
    other_server(queue)
    now = queue.register('w1')['now']
    assert queue.claim('w1', 1)['closed'] == now + LEASE
    queue.redis.hset(queue.conf, 'outage_until', now)
    assert len(queue.begin('w1')) == 1


@pytest.mark.parametrize('first', ['w1', 'w3'])
def test_a_longer_lease_that_redis_has_forgotten(queue, first):
    """Redis comes back from before the lease was raised: once a worker tells the longer one, nothing starts, and
    nothing is taken over, for as long as that. A lease that no worker could have stays without effect."""
    begin(queue, 'w2')
    queue.add({'command': 'x'})
    other_server(queue)
    queue.register(first, heartbeat=told(queue, lease='"x"'))
    now = queue.register('w1', heartbeat=told(queue, lease=3 * LEASE))['now']
    queue.register('w3', heartbeat=told(queue))
    assert queue.claim('w1', 1)['closed'] == now + 3 * LEASE
    queue.expire()
    assert taken_over(queue) == 0
    until, rest = queue.redis.hget(queue.stats, 'outage').decode().split(' ', 1)
    assert int(until) == now + 3 * LEASE
    queue.register('w2', heartbeat=told(queue))
    assert len(queue.begin('w1')) == 1


def test_a_longer_lease_matters_only_after_redis_has_forgotten(queue):
    """A worker that was away while the lease was lowered holds up nobody."""
    queue.register('w1', heartbeat=told(queue, lease=3 * LEASE))
    begin(queue, 'w2')
    queue.expire()
    queue.register('w1', heartbeat=told(queue, lease=3 * LEASE))
    queue.redis.hset(queue.stats, 'beat', queue.now())
    assert taken_over(queue) == 1


def test_a_silent_worker_is_awaited_if_redis_has_forgotten(queue):
    """A worker that was silent for a lease when the snapshot was made may have returned after it."""
    queue.add({'command': 'x'})
    late = queue.now() - 3 * LEASE
    queue.redis.hset(queue.workers, 'w3', f'{late} {{}}')
    other_server(queue)
    for name in ('w1', 'w2'):
        queue.register(name, heartbeat=told(queue))
    assert closed_for_a_lease(queue, 'w1')
    queue.register('w3', heartbeat=told(queue))
    assert len(queue.begin('w1')) == 1


def test_the_only_worker_waits_for_nobody(queue):
    """A worker that is alone in the queue takes tasks at once, even from another server."""
    for name in ('w2', 'w3'):
        queue.requeue(name)
    queue.add({'command': 'x'})
    other_server(queue)
    queue.register('w1', heartbeat=told(queue))
    assert len(queue.begin('w1')) == 1


def closed_for_a_lease(queue, consumer):
    claim = queue.claim(consumer, 1)
    return claim['why'] == 'outage' and 0 < claim['closed'] - claim['now'] <= LEASE


@pytest.mark.parametrize('first', ['w1', 'w2', 'unknown'])
def test_a_forgotten_worker_is_waited_for(queue, first):
    """Redis comes back without a worker that came after the snapshot. One worker that has heard of it, or that
    worker itself, tells, even if another one that has not heard of it was first: nothing starts for one lease."""
    queue.add({'command': 'x'})
    known = queue.register('w1')['joined']
    unknown = known + 1
    other_server(queue)
    if first == 'w2':
        queue.register('w2', heartbeat=told(queue))
    queue.register('new')
    queue.register('w1' if first == 'w2' else first, heartbeat=told(queue, unknown))
    for name in WORKERS:
        queue.register(name, heartbeat=told(queue, known))
        assert closed_for_a_lease(queue, name)
    assert queue.register('w1', heartbeat=told(queue, unknown))['joined'] >= unknown
    queue.redis.hset(queue.conf, 'outage_until', queue.now())
    assert len(queue.begin('w1')) == 1


def test_a_forgotten_worker_of_a_queue_without_others(queue):
    """The snapshot is from before all workers: the first that returns has heard of another one."""
    newest = queue.register('w1')['joined']
    queue.redis.delete(queue.workers)
    queue.redis.hdel(queue.stats, 'server', 'joined', 'beat')
    queue.add({'command': 'x'})
    queue.register('w1', heartbeat=told(queue, newest))
    assert closed_for_a_lease(queue, 'w1')


def test_all_known_workers_are_dead(queue):
    """Nobody who has heard of all workers has returned: nothing starts for one lease."""
    queue.add({'command': 'x'})
    other_server(queue)
    queue.register('new')
    for name in WORKERS:
        queue.requeue(name, died=True)
    assert closed_for_a_lease(queue, 'new')


def test_a_worker_that_stops_or_returns_is_not_new(queue):
    """Only a worker that Redis does not know gets a number, and each number is greater than all before."""
    one = queue.register('w1')['joined']
    assert queue.register('w1')['joined'] == one
    queue.requeue('w2')
    assert queue.register('w1')['joined'] == one
    two = queue.register('w4')['joined']
    assert two > one and queue.entries('bell')[-1][1][:2] == [b'why', b'joined %d' % two]


def test_each_wakeup_has_the_number_of_the_newest_worker(queue):
    """So a worker that has missed some wakeups still hears of all new workers."""
    newest = queue.register('w4')['joined']
    for _ in range(20):
        queue.gate('paused', True)
    assert {fields[3] for _, fields in queue.entries('bell')} == {b'%d' % newest}


def test_a_queue_without_workers_waits_for_nobody(queue):
    """The first worker after a pause of the service takes over at once what nobody holds."""
    token = begin(queue, 'w1')
    outage(queue, 'w1', 'w2', 'w3')
    queue.redis.delete(queue.workers)
    queue.register('w4')
    assert queue.pending() == [token] and queue.scan('w4') and queue.pending() == []


# ---- if Redis forgets claims

def forget(queue):
    """Redis comes back from a snapshot that was taken before any of the entries was delivered."""
    for key in (queue.stream, queue.go):
        queue.redis.execute_command('XGROUP', 'SETID', key, queue.group, '0')
        for consumer in ('w1', 'w2', 'w3'):
            queue.redis.execute_command('XGROUP', 'DELCONSUMER', key, queue.group, consumer)
    queue.redis.delete(queue.running)
    other_server(queue)


def test_a_forgotten_claim_is_known_again(queue):
    """A worker that registers brings its task: nobody starts it, although it is delivered again; its lease runs
    from then on, and its success counts."""
    token = begin(queue, 'w2')
    forget(queue)
    queue.register('w1', heartbeat=told(queue))
    fence = (queue.now() + LEASE) * 1000
    assert queue.register('w2', [token], heartbeat=f'{{"unclaimed":[],"fence":{fence}}}')['lost'] == []
    assert b' 1 %d ' % fence in queue.redis.hget(queue.running, token)
    queue.register('w3', heartbeat=told(queue))
    assert queue.begin('w1', 5) == [] and queue.pending('w2') == [token]
    assert queue.renew('w2', [token], heartbeat=told(queue))['lost'] == []
    assert queue.finish('w2', token) == 'ok'
    assert queue.entries('stream') == queue.entries('go') == [] and queue.redis.hlen(queue.running) == 0


def test_an_id_of_the_future_may_be_that_of_another_task(queue):
    """A producer chose an id that is ahead of the clock. After Redis has forgotten the entry, another one may get
    that id: the worker does not bring its task."""
    queue.redis.xadd(queue.stream, {'command': 'x'}, id=f'{queue.now() + LEASE}-0')
    [task] = queue.begin('w2')
    forget(queue)
    heartbeat = f'{{"unclaimed":[],"fence":{task.fence}}}'
    assert queue.register('w2', [task.token], heartbeat=heartbeat)['lost'] == [task.token]


@pytest.mark.parametrize('outcome', ['success', 'release', 'dead'])
def test_a_task_that_ends_before_it_is_delivered_again(queue, outcome):
    """Its entry is gone with it."""
    token = begin(queue, 'w2')
    forget(queue)
    queue.register('w2', [token], heartbeat=told(queue))
    assert queue.finish('w2', token, outcome) == 'ok'
    assert queue.entries('stream') == [] and len(queue.entries('go')) == (outcome == 'release')


def test_a_worker_that_dies_after_it_brought_its_task(queue):
    """The task is delivered again and given back; when the lease of its worker has run out, it is taken over, with
    a crash."""
    token = begin(queue, 'w2')
    forget(queue)
    for name in ('w1', 'w3'):
        queue.register(name, heartbeat=told(queue))
    queue.register('w2', [token], heartbeat=told(queue))
    assert queue.begin('w1', 5) == [] and taken_over(queue) == 0
    queue.expire()
    assert taken_over(queue) == 1 and queue.counter('crashes') == 1


def test_an_unclaimed_entry_is_not_brought(queue):
    """A worker that has only read an entry has no claim on it."""
    queue.add({'command': 'x'})
    [token] = queue.block('w2')
    forget(queue)
    assert queue.register('w2', [token], heartbeat=f'{{"unclaimed":["{token}"]}}')['lost'] == [token]


def test_a_restored_claim_counts_in_its_lane(queue):
    """A lane's cap holds for a task that was brought, too."""
    queue.conf_set('lane:a', '1, 1')
    queue.add({'command': 'x', 'lane': 'a'}, {'command': 'y', 'lane': 'a'})
    [task] = queue.begin('w2')
    queue.finish('w2', task, 'release')
    [task] = queue.begin('w2')
    queue.redis.hdel(queue.stats, 'r:a')
    forget(queue)
    queue.register('w2', [task.token], heartbeat=told(queue))
    for name in ('w1', 'w3'):
        queue.register(name, heartbeat=told(queue))
    assert queue.begin('w1', 5) == []
    assert queue.finish('w2', task) == 'ok' and len(queue.begin('w1', 5)) == 1


def test_a_forgotten_claim_of_a_known_delivery(queue):
    """Redis may come back from between the delivery of an entry and its claim. The lane's counter counts the task,
    and the worker's mark names the poison candidate."""
    queue.conf_set('lane:a', '1, 1')
    queue.add({'command': 'x', 'lane': 'a'}, {'command': 'y', 'lane': 'a'})
    [task] = queue.begin('w2')
    queue.expire()
    queue.scan('w1')
    [token] = queue.block('w2')
    queue.redis.copy(queue.stats, 'before')
    [task] = queue.claim('w2', 0, named=[token])['tasks']
    queue.redis.copy('before', queue.stats, replace=True)
    queue.redis.hdel(queue.running, token)
    other_server(queue)
    queue.register('w2', [token], heartbeat=told(queue))
    assert queue.redis.hget(queue.stats, 'r:a') == b'1'
    assert queue.redis.hget(queue.stats, 'c:w2') == token.encode()
    assert queue.finish('w2', task) == 'ok' and not queue.redis.hexists(queue.stats, 'r:a')


def test_a_forgotten_claim_holds_its_key_again(queue):
    """While a task that was brought runs, the next one of its key follows it."""
    [tid] = queue.add({'command': 'x', 'unique': 'k', 'unique_next': '1'})
    [task] = queue.begin('w2')
    queue.redis.hset(queue.names, 'u:k', tid)  # as before the claim
    forget(queue)
    queue.register('w2', [task.token], heartbeat=told(queue))
    [(what, following)] = queue.enqueue({'command': 'y', 'unique': 'k', 'unique_next': '1'})
    assert (what, following != tid) == ('new', True)
    assert queue.finish('w2', task) == 'ok' and list(queue.places()) == [following]


def test_a_claim_of_an_entry_that_the_call_has_added(queue):
    """A claim may read the clock a moment before it adds the entry that it then claims. The claim is known again
    even if the entry's id has a later millisecond."""
    source = LIBRARY.read_text()
    added = "redis.call('XADD', key, '*', unpack(list))"
    assert source.count(added) == 1
    wait = "local ms = q.now_us + 1000 repeat local t = redis.call('TIME') until t[1] * 1e6 + t[2] > ms "
    queue.load(source.replace('local id = ' + added, f'{wait} local id = {added}'))
    queue.add({'command': 'x'}, due='+1')
    wait_until(lambda: queue.now() > int(queue.redis.zrange(queue.delayed, 0, 0, withscores=True)[0][1]))
    [task] = queue.begin('w2')
    assert task.token[0] == 'g' and int(task.token[1:].split('-')[0]) * 1000 <= task.fence
    forget(queue)
    heartbeat = f'{{"unclaimed":[],"fence":{task.fence}}}'
    assert queue.register('w2', [task.token], heartbeat=heartbeat)['lost'] == []
    assert queue.finish('w2', task) == 'ok'


@pytest.mark.parametrize('how', ['named', 'put back'])
@pytest.mark.parametrize('why', ['outage', 'hold', 'paused', 'drained'])
def test_a_worker_reads_its_own_task_again(queue, why, how):
    """A worker reads a task that it runs while nothing may start: it keeps the task, and nobody else starts it,
    whether a claim names it or the worker puts it back."""
    token = begin(queue, 'w2')
    if why == 'outage':
        forget(queue)
        queue.register('w2', [token], heartbeat=told(queue))
    else:
        queue.redis.xgroup_destroy(queue.stream, queue.group)
        queue.register('w2', [token])
        queue.call('gate', {'paused': 'paused'}.get(why, 'drain:*'), int(why != 'hold'))
    assert queue.block('w2') == [token]
    if why in ('paused', 'drained'):
        queue.redis.hdel(queue.conf, 'hold_until')
    if how == 'named':
        assert queue.claim('w2', named=[token])['why'] == why
    else:
        assert queue.call('finish', queue.group, 'w2', token, 'release', 1, 'unclaimed', '1') == [b'ok']
    assert queue.pending('w2') == [token] and queue.entries('go') == []
    assert queue.renew('w2', [token], heartbeat=told(queue))['lost'] == [] and queue.finish('w2', token) == 'ok'


def test_what_was_read_in_vain_is_not_lost(queue):
    """A worker that reads a claimed entry while nothing may start, or leaves with it, gives it back."""
    token = begin(queue, 'w2')
    forget(queue)
    queue.register('w2', [token], heartbeat=told(queue))
    queue.register('w1', heartbeat=told(queue))
    assert queue.block('w1') == [token]
    assert queue.claim('w1', named=[token])['why'] == 'outage' and queue.pending('w2') == [token]
    queue.redis.execute_command('XCLAIM', queue.stream, queue.group, 'w3', 0, token[1:])
    queue.register('w3', heartbeat=told(queue))
    assert queue.pending('w2') == [token]
    queue.redis.execute_command('XCLAIM', queue.stream, queue.group, 'w1', 0, token[1:])
    queue.requeue('w1')
    assert queue.pending('w2') == [token] and queue.finish('w2', token) == 'ok'
