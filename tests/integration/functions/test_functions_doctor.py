"""leat_doctor, leat_recheck and leat_repair: each damage is made, found, and put right without losing a
task; every write of each repair is made to fail once."""
import pytest
import redis

from harness.functions.damages import ALSO, CASES, NO_TASK, begun, make_dead_consumer, settle, silence
from harness.functions.doctor import Doctor
from harness.functions.failing import Failing
from harness.queue import Queue, text, trailer


@pytest.fixture(params=CASES)
def case(request):
    return (request.param, *CASES[request.param])


def clean(queue, before=''):
    left = Doctor(queue).look()
    assert left == [], (before, left)


def test_damage_is_found_and_repaired(queue, case):
    """It is found, as what it is; after the repair nothing is wrong, and no task is lost."""
    name, kind, make, after = case
    made = make(queue)
    doctor = Doctor(queue)
    found = doctor.look()
    assert {one.kind for one in found} - ALSO.get(name, set()) == {kind}, found
    assert doctor.look() == found or repr(doctor.look()) == repr(found)
    answers = doctor.repair(found)
    assert {state for _, state in answers} <= {'repaired', 'gone'}, answers
    # what followed from it: a name whose task has just been settled
    Doctor(queue).repair()
    clean(queue, name)
    after(queue, made)
    if kind != 'group':
        clean(queue, name)


def test_looking_writes_nothing(queue, case):
    """leat_doctor and leat_recheck leave every key as it is."""
    case[2](queue)
    before = {key: queue.redis.dump(key) for key in queue.redis.keys()}
    doctor = Doctor(queue)
    found = doctor.look()
    doctor.second('recheck', found)
    assert {key: queue.redis.dump(key) for key in queue.redis.keys()} == before


def test_each_write_of_a_repair_fails_once(client, case):
    """Write N of the repair fails, for each N: no task is in two places or in none, and repeated it is
    repaired."""
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
    """From write N on all fail, those that take back too: no task is lost."""
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
    """A queue with tasks in every state that there is, of many lanes and names."""
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
    [holder] = begun(queue, {'command': 'true', 'unique': 'followed'}, consumer='w3')[-1:]
    queue.block('w4', 5)


def test_a_healthy_queue_has_no_findings(queue):
    """Ready, running, delayed, retried, released, dead, cancelled, expired, held and un-begun tasks are all
    as they should be."""
    busy(queue)
    assert Doctor(queue).look() == []


def test_a_queue_that_nobody_has_used(queue):
    """Nothing is wrong with it, and it is said that no worker ever was there."""
    assert [one.kind for one in Doctor(queue).look()] == ['unbegun']
    queue.add({'command': 'true', 'id': 'label'})
    assert [one.kind for one in Doctor(queue).look()] == ['unbegun']


def test_a_task_that_moves_is_never_an_orphan(queue):
    """A name's task passes from the stream to go, to waiting and back to go while it is looked for: the
    second look knows it wherever it is, and so does the repair."""
    [task] = begun(queue, {'command': 'true', 'id': 'label', 'unique': 'k'})
    doctor = Doctor(queue)
    doctor.read_go()
    queue.finish('w1', task, 'release')
    # in go, behind the place to which go was read
    found = [one for page in doctor.pages() for one in page]
    assert [one.what for one in found] == [('name', 'i:label'), ('name', 'u:k')] or [
        one.what for one in found] == [('name', 'u:k'), ('name', 'i:label')]
    assert doctor.second('recheck', found) == ['gone', 'gone']
    assert doctor.second('repair', found) == ['gone', 'gone']
    # waiting
    [task] = queue.begin('w1')
    queue.finish('w1', task, 'retry', cause='exit', status='1', delay=600000)
    assert doctor.second('repair', found) == ['gone', 'gone']
    # in go again, and read there
    queue.redis.zadd(queue.delayed, {task.tid: 1})
    [task] = queue.begin('w1')
    doctor.read_go()
    assert task.tid in doctor.in_go
    # somebody else's name by now: whoever vouched, vouched for another task
    assert queue.finish('w1', task) == 'ok'
    assert queue.redis.hlen(queue.names) == 0
    queue.add({'command': 'true', 'id': 'label'}, {'command': 'false', 'unique': 'k'})
    assert doctor.second('repair', found) == ['gone', 'gone']
    queue.redis.delete(queue.stream)
    assert doctor.second('repair', found) == ['unsure', 'unsure']


def test_go_that_grows_faster_than_it_is_read(queue):
    """Where too much has come into go, nobody can be sure: read on, and ask again."""
    queue.register('w1')
    doctor = Doctor(queue)
    doctor.read_go()
    queue.redis.hset(queue.names, 'i:label', NO_TASK)
    pipe = queue.redis.pipeline()
    for _ in range(1200):
        pipe.xadd(queue.go, {'command': 'true'})
    pipe.execute()
    found = [one for page in doctor.pages() for one in page]
    assert doctor.second('repair', found) == ['unsure']
    doctor.read_go()
    assert doctor.second('repair', found) == ['repaired']


def test_go_that_began_anew_with_lower_ids(queue):
    """A stream that was deleted and counts from an earlier time again is not the one that was read."""
    queue.register('w1')
    queue.redis.xadd(queue.go, {'command': 'true'})
    doctor = Doctor(queue)
    doctor.read_go()
    queue.redis.hset(queue.names, 'i:label', '7-7')
    found = [one for page in doctor.pages() for one in page]
    queue.redis.delete(queue.go)
    queue.redis.xadd(queue.go, {'command': 'true', 'leat.tid': '7-7', 'leat.fields': '1'}, id='5-1')
    assert doctor.second('repair', found) == ['unsure']


def test_a_consumer_that_speaks_again_is_left(queue):
    """Found silent, it beats before the repair: nothing is taken from it."""
    make_dead_consumer(queue)
    doctor = Doctor(queue)
    found = [one for one in doctor.look() if one.kind == 'consumer']
    queue.renew('w1')
    assert doctor.repair(found)[0][1] == 'gone'
    assert len(queue.pending('w1')) == 2


def test_a_leased_entry_of_a_silent_consumer_stays(queue):
    """What somebody gave it lately is not adopted, and the consumer stays."""
    make_dead_consumer(queue)
    token = queue.pending('w1')[0]
    queue.redis.execute_command(
        'XCLAIM', queue.stream, queue.group, 'w1', 0, token[1:], 'IDLE', 0, 'JUSTID')
    queue.redis.execute_command('XGROUP', 'CREATECONSUMER', queue.stream, queue.group, 'w1')
    doctor = Doctor(queue)
    found = [one for one in doctor.suspects() if one.kind == 'consumer']
    for one, state in doctor.repair(found):
        assert state in ('gone', 'left some of its entries still have a lease')
    assert token in queue.pending('w1')


def test_a_consumer_with_many_entries(queue):
    """It is adopted in bounded steps."""
    queue.register('w1', lease=1000)
    queue.add(*[{'command': 'true'} for _ in range(250)])
    queue.block('w1', 250)
    silence(queue, 'w1')
    doctor = Doctor(queue)
    [one] = [one for one in doctor.look() if one.kind == 'consumer']
    assert doctor.second('repair', [one]) == ['more']
    assert 0 < queue.redis.xlen(queue.go) <= 100
    assert doctor.repair([one]) == [(one, 'repaired')]
    assert len(settle(queue)) == 250
    assert queue.counter('crashes') == 0


def test_adoption_counts_crashes(queue):
    """What the dead consumer had begun is a crash, what it had only read is not."""
    [task] = make_dead_consumer(queue)
    Doctor(queue).repair()
    assert queue.counter('crashes') == 1
    own = [trailer(fields) for _, fields in queue.entries('go')]
    assert sorted((one['leat.crashes'], one['leat.tid'] == task.tid) for one in own) == [
        ('0', False), ('1', True)]


def test_a_consumer_that_never_beat(queue, wait_until):
    """Somebody read the stream by hand and went away: the group's own clock tells."""
    queue.register('w1', lease=1000)
    [tid] = queue.add({'command': 'true'})
    queue.block('someone')
    assert Doctor(queue).look() == []

    def repaired():
        queue.renew('w1')
        return [(one.what, state) for one, state in Doctor(queue).repair()]
    assert wait_until(repaired, 20) == [(('consumer', 'someone'), 'repaired')]
    assert settle(queue) == [tid]


def test_what_is_another_programs(queue):
    """A stream with another group, and a configuration with another group: said, and nothing behind it is
    judged."""
    queue.register('w1')
    queue.redis.hset(queue.names, 'i:label', NO_TASK)
    queue.redis.xgroup_create(queue.stream, 'others', '0')
    assert [one.what for one in Doctor(queue).look()] == [('foreign', 'others')]
    queue.redis.xgroup_destroy(queue.stream, 'others')
    other = Queue(queue.redis, group='mine')
    assert {one.kind for one in Doctor(other).look()} == {'foreign', 'other-group'}
    queue.redis.delete(queue.names)
    queue.redis.set(queue.names, 'x')
    with pytest.raises(redis.ResponseError, match='WRONGTYPE .*names'):
        Doctor(queue).look()


def test_damaged_conf(queue):
    """Values that leat_conf would refuse are found; they are for people to set."""
    queue.register('w1')
    queue.redis.hset(queue.conf, mapping={'lease_ms': 'soon', 'lane:a': 'heavy', 'protocol': '9'})
    doctor = Doctor(queue)
    found = doctor.look()
    assert sorted(one.what for one in found) == [
        ('conf', 'lane:a'), ('conf', 'lease_ms'), ('conf', 'protocol')]
    assert {state for _, state in doctor.repair(found)} == {'left it has to be repaired by hand'}


def test_arguments_are_checked(queue):
    """Cursors, kinds and numbers of arguments of other forms are refused."""
    for args in (['nothing'], ['names 0 0'], ['names 101 0'], ['']):
        with pytest.raises(redis.ResponseError, match='BADARG'):
            queue.call('doctor', queue.group, *args)
    for args in (['kind', 'x', ''], ['name', 'x'], ['name', 'x', ''] * 101):
        for function in ('recheck', 'repair'):
            try:
                [answer] = queue.call(function, queue.group, 'tids', *args)
                assert 'BADARG' in text(answer)
            except redis.ResponseError as error:
                assert 'BADARG' in str(error)


def test_pages_are_bounded(queue):
    """Large tasks make short pages, and no page is much longer than it may be."""
    queue.register('w1')
    queue.add(*[{'command': 'true', 'payload': 'x' * 200000} for _ in range(60)], due='+600000')
    cursor, sizes = 'waiting 10 ', []
    while cursor.startswith('waiting'):
        cursor, rows = queue.call('doctor', queue.group, cursor)
        cursor = text(cursor)
        assert rows == []
        sizes.append(cursor.split()[1])
    assert '1' in sizes or '2' in sizes
