"""leat_doctor, leat_recheck and leat_repair: each damage is made, found, and put right without losing a
task; every write of each repair is made to fail once."""
import struct

import pytest
import redis

from harness.doctor import Doctor
from harness.failing import Failing
from harness.queue import Queue, text, trailer

LONG = 10 ** 9
NO_TASK = '5-5'


def packed(*parts):
    """What cmsgpack writes for a list of texts."""
    data = struct.pack('>BH', 0xdc, len(parts))
    for part in parts:
        data += struct.pack('>BH', 0xda, len(part)) + part.encode()
    return data


def begun(queue, *tasks, consumer='w1'):
    queue.register(consumer)
    queue.add(*(tasks or [{'command': 'true'}]))
    return queue.begin(consumer, 10)


def delete_entry(queue, task):
    queue.redis.xdel(queue.go if task.token[0] == 'g' else queue.stream, task.token[1:])


def drop_lease(queue, task):
    queue.redis.xack(queue.stream, queue.group, task.token[1:])


def settle(queue, consumer='w9'):
    """A worker runs what there is to the end; answers the tids that it ran."""
    queue.register(consumer)
    ran = []
    for _ in range(9):
        queue.expire()
        queue.scan(consumer)
        for task in queue.begin(consumer, 100):
            ran.append(task.tid)
            assert queue.finish(consumer, task) == 'ok'
    return ran


# ---- each makes one damage; what it answers is given to its `after`, which runs behind the repair

def make_dangling(queue):
    [task] = begun(queue, {'command': 'true', 'id': 'label'})
    delete_entry(queue, task)
    return task


def is_letter(cause):
    def after(queue, task):
        tid = getattr(task, 'tid', task)
        [(_, letter)] = queue.letters()
        assert (text(letter['leat.tid']), text(letter['leat.cause'])) == (tid, cause)
        assert queue.redis.hlen(queue.running) == 0 and queue.pending() == []
        assert queue.redis.hlen(queue.names) == 0
    return after


def make_dangling_unbegun(queue):
    queue.register('w1')
    [tid] = queue.add({'command': 'true'})
    queue.block('w1')
    queue.redis.xdel(queue.stream, tid)


def nothing_left(queue, _):
    assert queue.places() == {} and queue.pending() == [] and queue.redis.hlen(queue.running) == 0


def make_acked(queue):
    queue.register('w1')
    [tid] = queue.add({'command': 'true'})
    queue.block('w1')
    queue.redis.xack(queue.stream, queue.group, tid)
    return tid


def runs_again(queue, tid):
    assert settle(queue) == [tid]


def make_acked_begun(queue):
    [task] = begun(queue, {'command': 'true', 'unique': 'k', 'lane': 'a'})
    drop_lease(queue, task)
    return task


def is_leased_again(queue, task):
    """Not put up: its worker may run it still, and may end it."""
    assert queue.pending('w1') == [task.token] and queue.redis.xlen(queue.go) == 0
    assert queue.renew('w1', [task.token])['lost'] == []
    assert queue.finish('w1', task) == 'ok'
    assert queue.places() == {} and queue.redis.hlen(queue.names) == 0


def silence(queue, consumer):
    """No sign of it for long, as the group and the beats have it."""
    for token in queue.pending(consumer):
        key = queue.go if token[0] == 'g' else queue.stream
        queue.redis.execute_command(
            'XCLAIM', key, queue.group, consumer, 0, token[1:], 'IDLE', LONG, 'JUSTID')
    queue.redis.hset(queue.workers, consumer, '1 {}')


def make_dead_consumer(queue):
    """Its lease is so short that the group's own idle time has passed it."""
    queue.register('w1', lease=1000)
    queue.add({'command': 'true'}, {'command': 'false'})
    tasks = queue.begin('w1', 1)
    queue.block('w1')
    silence(queue, 'w1')
    return tasks


def is_adopted(queue, _):
    assert queue.pending() == [] and queue.redis.xlen(queue.go) == 2
    groups = [info['name'] for key in (queue.go, queue.stream)
              for info in queue.redis.xinfo_consumers(key, queue.group)]
    assert b'w1' not in groups and not queue.redis.hexists(queue.workers, 'w1')
    assert len(settle(queue)) == 2


def make_vanished(queue):
    [task] = begun(queue, {'command': 'true', 'id': 'label', 'lane': 'a'})
    drop_lease(queue, task)
    delete_entry(queue, task)
    return task


def make_moved(queue):
    [task] = begun(queue)
    queue.register('w2')
    queue.expire()
    queue.scan('w2')
    [(id, _)] = queue.entries('go')
    queue.redis.xdel(queue.go, id)


def make_record(queue):
    queue.register('w1')
    queue.redis.hset(queue.running, 's1-1', 'not a record')
    queue.redis.hset(queue.running, b'\x00junk', b'b\x00\xff')


def make_lane_count(queue):
    """A lane of one slot, which nobody has but the counter."""
    queue.register('w1')
    queue.conf_set('lane:a', '1, 1')
    queue.redis.hset(queue.stats, 'r:a', 1)
    return queue.add({'command': 'true', 'lane': 'a'})[0]


def make_lane_uncounted(queue):
    [task] = begun(queue, {'command': 'true', 'lane': 'a'})
    queue.redis.hdel(queue.stats, 'r:a')
    return task


def is_counted(queue, task):
    assert queue.counter('r:a') == 1
    assert queue.finish('w1', task) == 'ok'
    assert not queue.redis.hexists(queue.stats, 'r:a')


def make_empty_lane(queue):
    queue.register('w1')
    queue.redis.zadd(queue.lanes, {'gone': 1})


def fill_lane(queue):
    queue.register('w1')
    queue.add({'command': 'first'}, {'command': 'true', 'lane': 'a'})
    [tid] = queue.add({'command': 'true', 'lane': 'a'})
    return tid


def make_lost_lane(queue):
    fill_lane(queue)
    queue.redis.zrem(queue.lanes, 'a')
    return len(queue.places())


def all_run(queue, count):
    assert len(settle(queue)) == count


def make_laned(queue):
    queue.register('w1')
    queue.redis.zadd(queue.laned, {b'a\0' + b'0' * 19 + b'5-' + b'0' * 19 + b'5': 0, b'bad': 0})


def make_damaged(queue):
    [tid] = delayed(queue)
    queue.redis.hset(queue.waiting, tid, b'\x93\xff\xfe')
    return tid


def keeps_the_bytes(queue, tid):
    [(id, letter)] = queue.letters()
    assert letter['leat.damaged'] == b'\x93\xff\xfe' and letter['leat.cause'] == b'damaged'
    assert 'REFUSED' in queue.dead_retry(id)[0]
    assert queue.redis.zcard(queue.delayed) == 0 and queue.redis.hlen(queue.waiting) == 0


def delayed(queue, *tasks):
    queue.register('w1')
    return queue.add(*(tasks or [{'command': 'true'}]), due='+600000')


def make_waiting(queue):
    [tid] = delayed(queue, {'command': 'true', 'unique': 'k', 'id': 'label'})
    queue.redis.zrem(queue.delayed, tid)
    return tid


def make_waiting_nameless(queue):
    tid = make_waiting(queue)
    queue.redis.delete(queue.names)
    return tid


def is_up_with_names(queue, tid):
    assert queue.redis.hgetall(queue.names) == {b'u:k': tid.encode(), b'i:label': tid.encode()}
    assert settle(queue) == [tid]
    assert queue.redis.hlen(queue.names) == 0


def make_waiting_in_lane(queue):
    tid = fill_lane(queue)
    [member] = [one for one in queue.redis.zrange(queue.laned, 0, -1)
                if one.endswith(tid.split('-')[1].encode())]
    queue.redis.zrem(queue.laned, member)
    return 3


def following(queue):
    """(the holder, which runs, its follow-up's tid)"""
    [holder] = begun(queue, {'command': 'true', 'unique': 'k'})
    [tid] = queue.add({'command': 'again', 'unique': 'k', 'unique_next': '1'})
    return holder, tid


def make_waiting_following(queue):
    pair = following(queue)
    queue.redis.hdel(queue.names, 'n:k')
    return pair


def follows_again(queue, pair):
    holder, tid = pair
    assert queue.redis.hget(queue.names, 'n:k') == f'{tid} 0'.encode()
    assert queue.finish('w1', holder) == 'ok'
    assert settle(queue) == [tid]


def make_delayed(queue):
    queue.register('w1')
    queue.redis.zadd(queue.delayed, {NO_TASK: LONG, 'junk': 5})


def make_id(queue):
    queue.register('w1')
    queue.redis.hset(queue.names, 'i:label', NO_TASK)


def make_unique(queue):
    queue.register('w1')
    queue.redis.hset(queue.names, mapping={
        'u:one': NO_TASK, 'u:two': f'{NO_TASK} s{NO_TASK}', 'u:three': 'junk', 'u:four\0\n': NO_TASK})


def no_names(queue, _):
    assert queue.redis.hlen(queue.names) == 0


def make_unique_followed(queue):
    """The holder is gone without a trace, and its follow-up waits for it."""
    holder, tid = following(queue)
    drop_lease(queue, holder)
    delete_entry(queue, holder)
    queue.redis.hdel(queue.running, holder.token)
    return tid


def make_until(queue):
    queue.register('w1')
    queue.redis.hset(queue.names, 'u:k', f'@{queue.now() + 600000} 1-1')


def is_due(queue, _):
    assert queue.redis.zscore(queue.delayed, 'u:k') > queue.now()
    assert queue.enqueue({'command': 'true', 'unique': 'k'})[0][0] == 'exists'


def make_until_past(queue):
    queue.register('w1')
    queue.redis.hset(queue.names, 'u:k', '@1000 1-1')


def make_following_nobody(queue):
    holder, tid = following(queue)
    queue.redis.hdel(queue.names, 'u:k')
    queue.finish('w1', holder)
    return tid


def make_following_gone(queue):
    queue.register('w1')
    queue.redis.hset(queue.names, 'n:k', f'{NO_TASK} 0')


def make_holder(queue):
    [tid] = delayed(queue, {'command': 'true', 'unique': 'k'})
    queue.redis.hset(queue.names, 'u:k', f'{tid} s{NO_TASK}')
    return tid


def is_held(queue, tid):
    assert queue.redis.hget(queue.names, 'u:k') == tid.encode()


def make_cancel(queue):
    queue.register('w1')
    queue.redis.sadd(queue.cancel, NO_TASK, 'junk')


def make_awaited(queue):
    queue.register('w1')
    queue.redis.hset(queue.awaited, mapping={NO_TASK: '1000', '*': 'x'})


def no_key(name):
    def after(queue, _):
        assert not queue.redis.exists(getattr(queue, name))
    return after


def make_group(queue):
    queue.register('w1')
    [tid] = queue.add({'command': 'true'})
    queue.redis.xgroup_destroy(queue.stream, queue.group)
    queue.redis.xgroup_destroy(queue.go, queue.group)
    return tid


def is_read_again(queue, tid):
    assert queue.status()['conf']['hold_until']
    queue.redis.hdel(queue.conf, 'hold_until')
    assert settle(queue) == [tid]


CASES = {
    'entry deleted': ('dangling', make_dangling, is_letter('vanished')),
    'entry deleted, un-begun': ('dangling', make_dangling_unbegun, nothing_left),
    'acked': ('acked', make_acked, runs_again),
    'acked, begun': ('acked', make_acked_begun, is_leased_again),
    'dead consumer': ('consumer', make_dead_consumer, is_adopted),
    'record without entry': ('vanished', make_vanished, is_letter('vanished')),
    'moved to nowhere': ('moved', make_moved, nothing_left),
    'record damaged': ('record', make_record, nothing_left),
    'lane counted full': ('lane-count', make_lane_count, runs_again),
    'lane not counted': ('lane-count', make_lane_uncounted, is_counted),
    'lane without tasks': ('empty-lane', make_empty_lane, no_key('lanes')),
    'lane without a turn': ('lost-lane', make_lost_lane, all_run),
    'lane member without a task': ('laned', make_laned, no_key('laned')),
    'waiting task damaged': ('damaged', make_damaged, keeps_the_bytes),
    'waiting without an index': ('waiting', make_waiting, is_up_with_names),
    'waiting without index and names': ('waiting', make_waiting_nameless, is_up_with_names),
    'waiting, not in its lane': ('waiting', make_waiting_in_lane, all_run),
    'waiting, its follow-up mark gone': ('waiting', make_waiting_following, follows_again),
    'due without a task': ('delayed', make_delayed, no_key('delayed')),
    'id without a task': ('name', make_id, no_names),
    'unique key without a task': ('name', make_unique, no_names),
    'unique key without a task, followed': ('name', make_unique_followed, runs_again),
    'refused for ever': ('name', make_until, is_due),
    'refused longer than it should': ('name', make_until_past, no_names),
    'follows nobody': ('name', make_following_nobody, runs_again),
    'follow-up gone': ('name', make_following_gone, no_names),
    'holder does not run': ('holder', make_holder, is_held),
    'cancel of nothing': ('cancel', make_cancel, no_key('cancel')),
    'awaited by nobody': ('awaited', make_awaited, no_key('awaited')),
    'group gone': ('group', make_group, is_read_again),
}
# what one damage entails besides
ALSO = {
    'unique key without a task': {'holder'}, 'unique key without a task, followed': {'holder', 'lane-count'},
    'refused for ever': set(), 'waiting task damaged': set(), 'record without entry': {'name'},
    'entry deleted': {'name'},
}


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
        assert state in ('gone', 'left some of its entries are leased')
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
    assert {state for _, state in doctor.repair(found)} == {'left it is for people'}


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
