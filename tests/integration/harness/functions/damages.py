"""Damage to a queue, by hand or by a fault, and what must be true after the repair."""
import struct

from ..queue import text, trailer

LONG = 10 ** 9
NO_TASK = '5-5'


def packed(*parts):
    """The cmsgpack encoding of a list of texts."""
    data = struct.pack('>BH', 0xdc, len(parts))
    for part in parts:
        part = part if isinstance(part, bytes) else part.encode()
        data += struct.pack('>BH', 0xda, len(part)) + part
    return data


def claimed(queue, *tasks, consumer='w1'):
    queue.register(consumer)
    queue.add(*(tasks or [{'command': 'true'}]))
    return queue.begin(consumer, 10)


def delete_entry(queue, task):
    queue.redis.xdel(queue.go if task.token[0] == 'g' else queue.stream, task.token[1:])


def drop_lease(queue, task):
    queue.redis.xack(queue.stream, queue.group, task.token[1:])


def settle(queue, consumer='w9'):
    """A worker runs all tasks to their end. Returns the tids that it ran."""
    queue.register(consumer)
    ran = []
    for _ in range(9):
        queue.expire()
        queue.scan(consumer)
        for task in queue.begin(consumer, 100):
            ran.append(task.tid)
            assert queue.finish(consumer, task) == 'ok'
    return ran


# ---- each function makes one kind of damage; its result is passed to its `after`, which runs after the repair

def make_dangling(queue):
    [task] = claimed(queue, {'command': 'true', 'id': 'label'})
    delete_entry(queue, task)
    return task


def is_letter(cause):
    def after(queue, task):
        tid = getattr(task, 'tid', task)
        [(_, letter)] = queue.letters()
        assert (text(letter['leat.tid']), text(letter['leat.cause'])) == (tid, cause)
        assert queue.redis.hlen(queue.running) == 0 and queue.pending() == []
        assert queue.held() == {}
    return after


def make_dangling_unclaimed(queue):
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


def make_acked_claimed(queue):
    [task] = claimed(queue, {'command': 'true', 'unique': 'k', 'lane': 'a'})
    drop_lease(queue, task)
    return task


def is_leased_again(queue, task):
    """The task is not requeued, because its worker may still run it, and can finish it."""
    assert queue.pending('w1') == [task.token] and queue.redis.xlen(queue.go) == 0
    assert queue.renew('w1', [task.token])['lost'] == []
    assert queue.finish('w1', task) == 'ok'
    assert queue.places() == {} and queue.held() == {}


def silence(queue, consumer):
    """Makes the consumer silent for long, in the group and in its heartbeats."""
    for token in queue.pending(consumer):
        key = queue.go if token[0] == 'g' else queue.stream
        queue.redis.execute_command(
            'XCLAIM', key, queue.group, consumer, 0, token[1:], 'IDLE', LONG, 'JUSTID')
    queue.redis.hset(queue.workers, consumer, '1 {}')


def make_dead_consumer(queue):
    """The lease is so short that the group's own idle time exceeds it."""
    queue.register('w1', lease=1000)
    queue.add({'command': 'true'}, {'command': 'false'})
    tasks = queue.begin('w1', 1)
    queue.block('w1')
    silence(queue, 'w1')
    return tasks


def is_reclaimed(queue, _):
    assert queue.pending() == [] and queue.redis.xlen(queue.go) == 2
    groups = [info['name'] for key in (queue.go, queue.stream)
              for info in queue.redis.xinfo_consumers(key, queue.group)]
    assert b'w1' not in groups and not queue.redis.hexists(queue.workers, 'w1')
    assert len(settle(queue)) == 2


def make_vanished(queue):
    [task] = claimed(queue, {'command': 'true', 'id': 'label', 'lane': 'a'})
    drop_lease(queue, task)
    delete_entry(queue, task)
    return task


def make_moved(queue):
    [task] = claimed(queue)
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
    """A lane of one slot, which only the counter takes."""
    queue.register('w1')
    queue.conf_set('lane:a', '1, 1')
    queue.redis.hset(queue.stats, 'r:a', 1)
    return queue.add({'command': 'true', 'lane': 'a'})[0]


def make_lane_uncounted(queue):
    [task] = claimed(queue, {'command': 'true', 'lane': 'a'})
    queue.redis.hdel(queue.stats, 'r:a')
    return task


def is_counted(queue, task):
    assert queue.counter('r:a') == 1
    assert queue.finish('w1', task) == 'ok'
    assert not queue.redis.hexists(queue.stats, 'r:a')


def make_lane_count_text(queue):
    queue.register('w1')
    queue.redis.hset(queue.stats, 'r:a', 'many')


def make_figures(queue):
    queue.register('w1')
    queue.redis.hset(queue.stats, mapping={'tids': 'x', 'clock': 'nan', 'swept': '', 'succeeded': '1 2'})


def make_numbers(queue):
    queue.register('w1')
    queue.redis.hset(queue.conf, mapping={
        'hold_until': 'soon', 'fence': '-1', 'floor_ms': '', 'outage_until': '1.5'})


def no_numbers(queue, _):
    assert not {b'hold_until', b'fence', b'floor_ms', b'outage_until'} & set(queue.redis.hkeys(queue.conf))


def make_unreadable(queue):
    queue.register('w1')
    queue.redis.xadd(queue.go, {'command': 'true', 'leat.tid': NO_TASK, 'leat.fence': 'nan', 'leat.fields': '1'})


def is_damaged_letter(queue, _):
    [(_, letter)] = queue.letters()
    assert letter['leat.cause'] == b'damaged' and letter['leat.damaged'] == b'leat.fence nan'
    assert letter['command'] == b'true' and queue.redis.xlen(queue.go) == 0


def make_exhausted(queue):
    queue.register('w1')
    queue.redis.xadd(queue.stream, {'command': 'true'}, id='18446744073709551615-18446744073709551615')
    [task] = queue.begin('w1')
    assert queue.finish('w1', task) == 'ok'


def takes_tasks(queue, _):
    tid = text(queue.redis.xadd(queue.stream, {'command': 'true'}))
    assert abs(int(tid.split('-')[0]) - queue.now()) < 60000 and settle(queue) == [tid]


def make_never_due(queue):
    [tid] = delayed(queue)
    queue.redis.zadd(queue.delayed, {tid: 'inf'})
    return tid


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
    assert queue.held() == {b'u:k': tid.encode(), b'i:label': tid.encode()}
    assert settle(queue) == [tid]
    assert queue.held() == {}


def make_waiting_in_lane(queue):
    tid = fill_lane(queue)
    [member] = [one for one in queue.redis.zrange(queue.laned, 0, -1)
                if one.endswith(tid.split('-')[1].encode())]
    queue.redis.zrem(queue.laned, member)
    return 3


def following(queue):
    """(the running holder, its follow-up's tid)"""
    [holder] = claimed(queue, {'command': 'true', 'unique': 'k'})
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
    assert queue.held() == {}


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


def make_unnamed(queue):
    [task] = claimed(queue, {'command': 'true', 'id': 'label', 'unique': 'k'})
    before = queue.held()
    queue.redis.delete(queue.names)
    return task, before


def is_named(queue, made):
    task, before = made
    assert queue.held() == before
    assert queue.finish('w1', task) == 'ok' and queue.held() == {}


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


def make_index_missing(queue):
    """A released task, and a dead letter, that the index does not have."""
    released, dead = claimed(queue, {'command': 'true'}, {'command': 'false'})
    queue.finish('w1', released, 'release')
    queue.finish('w1', dead, 'dead', cause='exit', status='1')
    queue.redis.hdel(queue.names, 't:' + released.tid, 't:' + dead.tid)
    return released.tid, dead.tid


def is_indexed(queue, tids):
    places = {tid: 'g' + id for id, fields in queue.entries('go') for tid in [trailer(fields)['leat.tid']]}
    places.update({text(fields['leat.tid']): 'd' + id for id, fields in queue.letters()})
    assert queue.index() == places and set(places) == set(tids)
    assert queue.call_off(tids[0]) == ['cancelled'] and queue.show(tids[1])['row']['state'] == b'dead'


def make_index_wrong(queue):
    """Entries of the index that lead nowhere, to another task, or are no place."""
    tids = make_index_missing(queue)
    other = 'g' + queue.entries('go')[0][0]
    queue.redis.hset(queue.names, mapping={
        't:' + tids[0]: 'g5-5', 't:' + tids[1]: other, f't:{NO_TASK}': 'd1-1', 't:a': 'x'})
    return tids


def make_index_gone(queue):
    tids = make_index_missing(queue)
    queue.redis.delete(queue.names)
    return tids


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
    'entry deleted, unclaimed': ('dangling', make_dangling_unclaimed, nothing_left),
    'acked': ('acked', make_acked, runs_again),
    'acked, claimed': ('acked', make_acked_claimed, is_leased_again),
    'dead consumer': ('consumer', make_dead_consumer, is_reclaimed),
    'record without entry': ('vanished', make_vanished, is_letter('vanished')),
    'moved to nowhere': ('moved', make_moved, nothing_left),
    'record damaged': ('record', make_record, nothing_left),
    'lane counted full': ('lane-count', make_lane_count, runs_again),
    'lane not counted': ('lane-count', make_lane_uncounted, is_counted),
    'lane counted in words': ('lane-count', make_lane_count_text, nothing_left),
    'figures in words': ('counter', make_figures, nothing_left),
    'own numbers in words': ('conf', make_numbers, no_numbers),
    'entry unreadable': ('unreadable', make_unreadable, is_damaged_letter),
    'greatest id given': ('exhausted', make_exhausted, takes_tasks),
    'never due': ('delayed', make_never_due, runs_again),
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
    'running, its names gone': ('unnamed', make_unnamed, is_named),
    'cancel of nothing': ('cancel', make_cancel, no_key('cancel')),
    'awaited by nobody': ('awaited', make_awaited, no_key('awaited')),
    'not in the index': ('index', make_index_missing, is_indexed),
    'index leads elsewhere': ('index', make_index_wrong, is_indexed),
    'index gone': ('index', make_index_gone, is_indexed),
    'group gone': ('group', make_group, is_read_again),
}
# further findings that one kind of damage causes
ALSO = {
    'entry unreadable': {'index'},
    'unique key without a task': {'holder'}, 'unique key without a task, followed': {'holder', 'lane-count'},
    'record without entry': {'name'},
    'entry deleted': {'name'},
    'moved to nowhere': {'index'},
}
