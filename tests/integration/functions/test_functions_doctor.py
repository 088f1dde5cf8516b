"""leat_doctor and leat_repair: each kind of damage is found and repaired without losing a task,
also if any one write of the repair fails."""
import pytest
import redis

from harness.functions.damages import ALSO, CASES, NO_TASK, claimed, make_dead_consumer, settle, silence
from harness.functions.doctor import Doctor, Finding
from harness.functions.failing import Failing
from harness.queue import Queue, text, trailer


@pytest.fixture(params=CASES)
def case(request):
    return (request.param, *CASES[request.param])


def clean(queue, before=''):
    left = Doctor(queue).look()
    assert left == [], (before, left)


def test_damage_is_found_and_repaired(queue, case):
    """Each kind of damage is found as what it is; after the repair nothing is wrong and no task is lost."""
    name, kind, make, after = case
    made = make(queue)
    doctor = Doctor(queue)
    found = doctor.look()
    assert {one.kind for one in found} - ALSO.get(name, set()) == {kind}, found
    assert doctor.look() == found or repr(doctor.look()) == repr(found)
    answers = doctor.repair(found)
    assert {state for _, state in answers} <= {'repaired', 'gone'}, answers
    # a consequence: a name whose task the repair has just ended
    Doctor(queue).repair()
    clean(queue, name)
    after(queue, made)
    if kind != 'group':
        clean(queue, name)


def test_one_repair_of_a_task_that_is_never_due(queue):
    """leat doctor --repair ends with 'all were repaired': so nothing is left of it, and the task can start."""
    _, make, after = CASES['never due']
    tid = make(queue)
    assert [state for _, state in Doctor(queue).repair()] == ['repaired']
    clean(queue)
    after(queue, tid)


def test_looking_writes_nothing(queue, case):
    """leat_doctor changes no key."""
    def contents():
        # a hash is dumped in any order
        return {key: queue.redis.hgetall(key) if queue.redis.type(key) == b'hash' else queue.redis.dump(key)
                for key in queue.redis.keys()}
    case[2](queue)
    before = contents()
    Doctor(queue).look()
    assert contents() == before


def test_each_write_of_a_repair_fails_once(client, case):
    """If write N of the repair fails, for each N, no task is in two places or in none, and repeating the
    repair succeeds."""
    name, kind, make, after = case
    queue = Queue(client)
    failing, at = Failing(queue), 0
    while True:
        at += 1
        made = make(queue)
        doctor = Doctor(queue)
        found = [one for one in doctor.look() if one.kind == kind]
        there = set(queue.places())
        failing.at(at)
        states, reached = [], False
        for one in found:
            states.append(repair_one(doctor, one))
            reached = reached or failing.writes() >= at
        failing.off()
        places = queue.places()
        assert all(len(found) == 1 for found in places.values()), (name, at, places)
        assert there <= set(places), (name, at, there, places)
        for _ in range(3):
            Doctor(queue).repair()
        clean(queue, (name, at, states))
        after(queue, made)
        queue.redis.flushall()
        if not reached:
            break
    assert at > 1


def repair_one(doctor, one):
    try:
        return doctor.repair([one])[0][1]
    except redis.ResponseError as error:
        assert 'INJECTED' in str(error)
        return str(error)


@pytest.mark.parametrize('and_on', [False, True])
def test_all_writes_fail_from_one_on(client, case, and_on):
    """If every write from write N on fails, the undoing ones included, no task is lost."""
    name, kind, make, _ = case
    queue = Queue(client)
    failing, at, reached = Failing(queue), 0, True
    while reached:
        at += 1
        make(queue)
        doctor = Doctor(queue)
        found = [one for one in doctor.look() if one.kind == kind]
        there, reached = set(queue.places()), False
        failing.at(at, and_on=and_on)
        for one in found:
            repair_one(doctor, one)
            reached = reached or failing.writes() >= at
        failing.off()
        assert there <= set(queue.places()), (name, at)
        queue.redis.flushall()


def busy(queue):
    """A queue with tasks in every state, in many lanes and with many names."""
    queue.register('w1', lease=60000)
    queue.conf_set('lane:capped', '1, 1')
    queue.conf_set('lane:rated', '1, -, 1/h')
    for lane in ('a', 'b', 'capped', 'rated'):
        queue.add(*[{'command': 'true', 'lane': lane, 'id': f'{lane}{i}', 'unique': f'{lane}-{i}'}
                    for i in range(30)])
    queue.add(*[{'command': 'true', 'id': f'later{i}'} for i in range(30)], due='+600000')
    queue.add(*[{'command': 'true', 'id': f'plain{i}'} for i in range(150)])
    queue.add({'command': 'true', 'unique': 'kept', 'unique_for': '1h'})
    tasks = queue.begin('w1', 60)
    for outcome, task in zip(['success', 'retry', 'dead', 'release', 'cancelled'] * 6, tasks):
        queue.finish('w1', task, outcome, cause='exit', status='1', delay=600000)
    queue.register('w2')
    queue.begin('w2', 20)
    queue.expire(*queue.pending('w2')[:10])
    queue.scan('w1', 5)
    [holder] = claimed(queue, {'command': 'true', 'unique': 'followed'}, consumer='w3')[-1:]
    queue.block('w4', 5)


def test_a_healthy_queue_has_no_findings(queue):
    """A queue with ready, running, delayed, retried, released, dead, cancelled, expired, deferred and
    unclaimed tasks has no finding."""
    busy(queue)
    assert Doctor(queue).look() == []


def test_an_unused_queue(queue):
    """An unused queue has no finding but that no worker has ever registered."""
    assert [one.kind for one in Doctor(queue).look()] == ['unbegun']
    queue.add({'command': 'true', 'id': 'label'})
    assert [one.kind for one in Doctor(queue).look()] == ['unbegun']


def test_a_follow_up_keeps_its_due_time(queue):
    """A follow-up that its key has lost follows the holder again, and is not due before its time."""
    [holder] = claimed(queue, {'command': 'true', 'unique': 'k'})
    [tid] = queue.add({'command': 'true', 'unique': 'k', 'unique_next': '1'}, due='4102444800000')
    queue.redis.hdel(queue.names, 'n:k')
    Doctor(queue).repair()
    assert queue.held()[b'n:k'] == f'{tid} 4102444800000'.encode()
    queue.finish('w1', holder)
    assert queue.show(tid)['row']['state'] == b'delayed' and Doctor(queue).look() == []


def test_a_task_that_moves_is_never_an_orphan(queue):
    """The names of a task that moves between the stream, the requeue stream and waiting are no finding, and a
    finding that no longer holds is not repaired."""
    orphans = [Finding([b'name', name, b'']) for name in (b'i:label', b'u:k')]
    [task] = claimed(queue, {'command': 'true', 'id': 'label', 'unique': 'k'})
    doctor = Doctor(queue)
    for outcome in ('release', 'retry', 'release'):
        assert doctor.look() == [] and doctor.second(orphans) == ['gone', 'gone']
        queue.finish('w1', task, outcome, cause='exit', status='1', delay=0 if outcome == 'release' else 600000)
        assert doctor.look() == [] and doctor.second(orphans) == ['gone', 'gone']
        if outcome == 'retry':
            queue.redis.zadd(queue.delayed, {task.tid: 1})
        [task] = queue.begin('w1')
    # the names belong to another task by then
    assert queue.finish('w1', task) == 'ok'
    assert queue.held() == {}
    queue.add({'command': 'true', 'id': 'label'}, {'command': 'false', 'unique': 'k'})
    assert doctor.second(orphans) == ['gone', 'gone']
    queue.redis.delete(queue.stream)
    queue.call('init', queue.group)
    assert doctor.second(orphans) == ['repaired', 'repaired']


def test_nothing_is_an_orphan_before_older_entries_are_indexed(queue):
    """As long as a task may be in the requeue stream unseen, its names are no finding. The repair completes the
    index first, in bounded steps, and then knows."""
    queue.register('w1')
    queue.redis.hset(queue.names, mapping={'i:label': NO_TASK, 'i:living': '7-7', 't:': 'g0-0'})
    queue.redis.xadd(queue.go, {'command': 'true', 'id': 'living', 'leat.tid': '7-7', 'leat.fields': '2'})
    pipe = queue.redis.pipeline()
    for number in range(2500):
        pipe.xadd(queue.go, {'command': 'true', 'leat.tid': f'8-{number}', 'leat.fields': '1'})
    pipe.execute()
    doctor = Doctor(queue)
    found = doctor.look()
    assert [one.what for one in found] == [('index', 't:')]
    assert [doctor.second(found) for _ in range(5)] == [['more'], ['more'], ['more'], ['repaired'], ['gone']]
    assert len(queue.index()) == 2501 and queue.index()['7-7'] == 'g' + queue.entries('go')[0][0]
    assert [one.what for one in doctor.look()] == [('name', 'i:label')]


def test_lane_members_with_a_score_are_listed_once(queue):
    """Members of laned that somebody has given a score, below or above 0, are found, each once."""
    queue.register('w1')
    queue.add({'command': 'true', 'lane': 'a'}, {'command': 'true', 'lane': 'b'}, {'command': 'true', 'lane': 'c'})
    queue.add(*[{'command': 'true', 'lane': 'a'}] * 2)
    members = queue.redis.zrange(queue.laned, 0, -1)
    for member, score in zip(members, (-1, 5)):
        queue.redis.zadd(queue.laned, {member: score})
    found = [one.subject for one in Doctor(queue).look() if one.kind == 'laned']
    assert sorted(found) == sorted(members[:2])


def test_a_consumer_that_returns_is_left_alone(queue):
    """If a silent consumer sends a heartbeat before the repair, the repair takes nothing from it."""
    make_dead_consumer(queue)
    doctor = Doctor(queue)
    found = [one for one in doctor.look() if one.kind == 'consumer']
    queue.renew('w1')
    assert doctor.repair(found)[0][1] == 'gone'
    assert len(queue.pending('w1')) == 2


def test_a_leased_entry_of_a_silent_consumer_stays(queue):
    """An entry that somebody gave to the consumer recently is not reclaimed, and the consumer stays."""
    make_dead_consumer(queue)
    token = queue.pending('w1')[0]
    queue.redis.execute_command(
        'XCLAIM', queue.stream, queue.group, 'w1', 0, token[1:], 'IDLE', 0, 'JUSTID')
    queue.redis.execute_command('XGROUP', 'CREATECONSUMER', queue.stream, queue.group, 'w1')
    doctor = Doctor(queue)
    found = [one for one in doctor.look() if one.kind == 'consumer']
    for one, state in doctor.repair(found):
        assert state in ('gone', 'left some of its entries still have a lease')
    assert token in queue.pending('w1')


def test_a_consumer_with_many_entries(queue):
    """The entries of a dead consumer are reclaimed in bounded steps."""
    queue.register('w1', lease=1000)
    queue.add(*[{'command': 'true'} for _ in range(250)])
    queue.block('w1', 250)
    silence(queue, 'w1')
    doctor = Doctor(queue)
    [one] = [one for one in doctor.look() if one.kind == 'consumer']
    assert doctor.second([one]) == ['more']
    assert 0 < queue.redis.xlen(queue.go) <= 100
    assert doctor.repair([one]) == [(one, 'repaired')]
    assert len(settle(queue)) == 250
    assert queue.counter('crashes') == 0


def test_reclaiming_counts_crashes(queue):
    """Reclaiming counts a crash for each claimed task, and none for a task that was only delivered."""
    [task] = make_dead_consumer(queue)
    Doctor(queue).repair()
    assert queue.counter('crashes') == 1
    own = [trailer(fields) for _, fields in queue.entries('go')]
    assert sorted((one['leat.crashes'], one['leat.tid'] == task.tid) for one in own) == [
        ('0', False), ('1', True)]


def test_a_consumer_without_a_heartbeat(queue, wait_until):
    """A consumer that read the stream by hand and never sent a heartbeat is judged by the group's idle time."""
    queue.register('w1', lease=5000)
    [tid] = queue.add({'command': 'true'})
    queue.block('someone')
    assert Doctor(queue).look() == []

    def repaired():
        queue.renew('w1')
        return [(one.what, state) for one, state in Doctor(queue).repair()]
    assert wait_until(repaired, 20) == [(('consumer', 'someone'), 'repaired')]
    assert settle(queue) == [tid]


def test_a_stream_of_another_program(queue):
    """If the stream has another program's group, or the configuration another group, leat_doctor says so and
    judges nothing beyond it. It does not advise to remove the group that the queue belongs to."""
    queue.register('w1')
    queue.redis.hset(queue.names, 'i:label', NO_TASK)
    queue.redis.xgroup_create(queue.stream, 'others', '0')
    assert [one.what for one in Doctor(queue).look()] == [('foreign', 'others')]
    queue.redis.xgroup_destroy(queue.stream, 'others')
    other = Queue(queue.redis, group='mine')
    assert [one.kind for one in Doctor(other).look()] == ['other-group']
    queue.redis.delete(queue.names)
    queue.redis.set(queue.names, 'x')
    with pytest.raises(redis.ResponseError, match='WRONGTYPE .*names'):
        Doctor(queue).look()


def test_damaged_conf(queue):
    """Values that leat_conf would refuse are found, and left to the operator."""
    queue.register('w1')
    queue.redis.hset(queue.conf, mapping={'lease_ms': 'soon', 'lane:a': 'heavy', 'protocol': '9'})
    doctor = Doctor(queue)
    found = doctor.look()
    assert sorted(one.what for one in found) == [
        ('conf', 'lane:a'), ('conf', 'lease_ms'), ('conf', 'protocol')]
    assert {state for _, state in doctor.repair(found)} == {'left it has to be repaired by hand'}


def test_arguments_are_checked(queue):
    """Malformed cursors, kinds and numbers of arguments are refused."""
    for args in (['nothing'], ['names 0 0'], ['names 101 0'], ['']):
        with pytest.raises(redis.ResponseError, match='BADARG'):
            queue.call('doctor', queue.group, *args)
    for args in (['kind', 'x', ''], ['name', 'x'], ['name', 'x', ''] * 101):
        try:
            [answer] = queue.call('repair', queue.group, '', *args)
            assert 'BADARG' in text(answer)
        except redis.ResponseError as error:
            assert 'BADARG' in str(error)


def test_pages_are_bounded(queue):
    """Large tasks make short pages, and no page exceeds its limit by much."""
    queue.register('w1')
    queue.add(*[{'command': 'true', 'payload': 'x' * 200000} for _ in range(60)], due='+600000')
    cursor, sizes = 'waiting 10 ', []
    while cursor.startswith('waiting'):
        cursor, rows = queue.call('doctor', queue.group, cursor)
        cursor = text(cursor)
        assert rows == []
        sizes.append(cursor.split()[1])
    assert '1' in sizes or '2' in sizes


def test_a_running_task_without_a_record(queue):
    """After DEL of the records, doctor finds each running task until its worker renews; a repair leaves it."""
    [task] = claimed(queue)
    queue.redis.delete(queue.running)
    queue.register('w1', [task.token], heartbeat='{"unclaimed": []}')
    clean(queue)
    queue.redis.delete(queue.running)
    queue.expire(task.token)
    [found] = Doctor(queue).look()
    assert (found.kind, text(found.subject)) == ('unrecorded', task.token) and task.tid in found.detail
    assert [state[:4] for _, state in Doctor(queue).repair()] == ['left']
    queue.renew('w1', [task.token], heartbeat='{"unclaimed": []}')
    clean(queue)


@pytest.mark.parametrize('heartbeat', ['{}', '{"unclaimed": ["TOKEN"]}'])
def test_an_entry_that_is_not_claimed_yet(queue, heartbeat):
    """An entry that its worker has not claimed, or of an older worker that does not tell, is no finding."""
    queue.register('w1')
    queue.add({'command': 'true'})
    [token] = queue.block('w1')
    queue.renew('w1', [token], heartbeat.replace('TOKEN', token))
    queue.expire(token)
    clean(queue)
