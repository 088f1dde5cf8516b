"""What each user of conf/leat.acl can do at worst on a server that includes the file: the table of ACCESS RIGHTS
in leat-protocol(7), line by line."""
import re
from pathlib import Path

import pytest
import redis

from harness.functions.history import record
from harness.polling import wait_until
from harness.queue import LIBRARY, Queue, text
from harness.servers.acl import ROOT_LOGIN, ask, suggested_users, write_acl
from harness.servers.replicated import NAME, Sentinel, Server, start_on_free_port

MANUAL = Path(__file__).resolve().parents[3] / 'src/queue/leat-protocol.7'
FAR_MS = 9 * 10 ** 15
DENIED = 'permission|No permissions'


@pytest.fixture
def redis_server(redis_servers, folder):
    """A server with the file, on which the test itself logs in as root."""
    server = redis_servers(include=write_acl(folder / 'leat.acl', suggested_users()['root']))
    server.login = ROOT_LOGIN
    return server


@pytest.fixture
def as_role(redis_server):
    return lambda role: redis_server.client(username=f'emails-{role}', password=role)


@pytest.fixture
def base_config(redis_server):
    return {'redis': {'socket': redis_server.socket, 'user': 'emails-operator', 'password': 'operator'},
            'queue': {'name': 'emails', 'load_library': 'never'}}


# ---- the worst cases: each gets the attacker's connection and the queue of root

def runs_any_command(mine, queue):
    mine.xadd(queue.stream, {'command': 'evil'})
    assert queue.begin('w1')[0].fields['command'] == b'evil'


def trims_the_stream(mine, queue):
    queue.add({'command': 'a'}, {'command': 'b'})
    mine.execute_command('XADD', queue.stream, 'MAXLEN', '0', '*', 'command', 'c')
    assert queue.places() == {}


def blocks_the_stream(mine, queue):
    mine.execute_command('XADD', queue.stream, f'{2 ** 64 - 1}-{2 ** 64 - 1}', 'command', 'a')
    with pytest.raises(redis.ResponseError, match='last possible ID|exhausted|equal or smaller'):
        queue.add({'command': 'b'})


def ignores_the_length_limit(mine, queue):
    queue.redis.hset(queue.conf, 'max_length', '1')
    for _ in range(3):
        mine.xadd(queue.stream, {'command': 'a'})
    assert queue.redis.xlen(queue.stream) == 3


def length_and(text):
    """A text of less than 256 bytes as MessagePack has it."""
    head = bytes([0xa0 + len(text)]) if len(text) < 32 else bytes([0xd9, len(text)])
    return head + text.encode()


def waiting_task(queue, **fields):
    return queue.add({'command': 'good', **fields}, due='+3600000')[0]


def lists_waiting_tasks(mine, queue):
    delayed, [_, laned] = waiting_task(queue), queue.add({'command': 'good'}, {'command': 'good', 'lane': 'a'})
    assert [text(one) for one in mine.zrange(queue.delayed, 0, -1)] == [delayed]
    [member] = mine.zrange(queue.laned, 0, -1)
    lane, halves = member.split(b'\0')
    assert lane == b'a' and [int(half) for half in halves.split(b'-')] == [int(half) for half in laned.split('-')]


def learns_the_id_that_was_read(mine, queue):
    queue.add({'command': 'good', 'result_ttl': '1h'})
    [task] = queue.begin('w1')
    [group] = mine.xinfo_groups(queue.stream)
    assert text(group['last-delivered-id']) == task.tid


def reads_a_waiting_task(mine, queue):
    assert b'good' in mine.hget(queue.waiting, waiting_task(queue))


def replaces_a_waiting_task(mine, queue):
    tid = waiting_task(queue)
    mine.hset(queue.waiting, tid, mine.hget(queue.waiting, tid).replace(b'good', b'evil'))
    mine.zadd(queue.delayed, {tid: 1})
    assert queue.begin('w1')[0].fields['command'] == b'evil'


def destroys_a_waiting_task(mine, queue):
    tid = waiting_task(queue)
    mine.hset(queue.waiting, tid, 'x')
    mine.zadd(queue.delayed, {tid: 1})
    assert queue.begin('w1') == []


def delays_for_ever(mine, queue):
    [tid] = queue.add({'command': 'good'}, due='+1')
    mine.zadd(queue.delayed, {tid: FAR_MS})
    wait_until(lambda: queue.now() > int(tid.split('-')[0]) + 1)
    assert queue.begin('w1') == []


def forges_a_result_by_a_task(mine, queue):
    [tid] = queue.add({'command': 'good', 'result_ttl': '1h'})
    [running] = queue.begin('w1')
    forged = waiting_task(queue, result_ttl='1h')
    packed = mine.hget(queue.waiting, forged)
    mine.hset(queue.waiting, forged, packed.replace(length_and(forged), length_and(tid)))
    mine.zadd(queue.delayed, {forged: 1})
    queue.register('w2')
    [other] = queue.begin('w2')
    assert (other.tid, other.fields['command']) == (tid, b'good') and other.token != running.token
    queue.finish('w2', other, stdout='forged')
    assert b'forged' in str(queue.redis.xrange('{emails}:result:' + tid)).encode()


def runs_a_task_twice(mine, queue):
    tid, copy = waiting_task(queue), waiting_task(queue)
    mine.hset(queue.waiting, copy, mine.hget(queue.waiting, tid))
    mine.zadd(queue.delayed, {tid: 1, copy: 1})
    queue.register('w2')
    [[one], [other]] = queue.begin('w1'), queue.begin('w2')
    assert one.tid == other.tid == tid and one.token != other.token


def runs_a_running_task(mine, queue):
    [tid] = queue.add({'command': 'good'})
    queue.begin('w1')
    mine.xadd(queue.go, {'command': 'good', 'leat.tid': tid, 'leat.fence': '0', 'leat.fields': '1'})
    queue.register('w2')
    assert [task.tid for task in queue.begin('w2')] == [tid]
    assert queue.places() == {tid: ['stream', 'go']}, queue.places()


def blocks_the_requeue_stream(mine, queue):
    queue.add({'command': 'good'})
    [task] = queue.begin('w1')
    mine.execute_command('XADD', queue.go, f'{2 ** 64 - 1}-{2 ** 64 - 1}', 'command', 'x')
    assert 'exhausted' in queue.finish('w1', task, 'release')


def blocks_the_dead_letters(mine, queue):
    queue.add({'command': 'good'})
    [task] = queue.begin('w1')
    mine.execute_command('XADD', queue.dead, f'{2 ** 64 - 1}-{2 ** 64 - 1}', 'command', 'x')
    assert 'exhausted' in queue.finish('w1', task, 'dead', cause='exit')
    assert queue.pending('w1') == [task.token]


def keeps_tasks_of_lost_workers(mine, queue):
    [tid] = queue.add({'command': 'good'})
    queue.begin('w1')
    queue.expire()
    queue.register('w2')
    mine.hset(queue.stats, 'outage', f'{queue.now() + 60000} 0 0 nobody')
    assert queue.scan('w2', 1)[1] == [] and queue.pending('w1') == ['s' + tid]


def stops_all_starts(mine, queue):
    [tid] = queue.add({'command': 'good'})
    mine.hset(queue.stats, mapping={'outage': f'{queue.now() + 60000} 3 0 nobody', 'beat': '1'})
    queue.renew('w1')
    assert queue.claim('w1')['why'] == 'outage' and queue.places() == {tid: ['stream']}


def deletes_dead_letters(mine, queue):
    queue.conf_set('dead_keep_number', '5')
    queue.add(*[{'command': 'good'}] * 5)
    tasks = queue.begin('w1', 5)
    for task in tasks:
        queue.finish('w1', task, 'dead', cause='exit')
    known = [f'{letter} {text(fields["leat.tid"])}' for letter, fields in queue.letters()]
    mine.hset(queue.names, mapping={f'r:{n}': name for n, name in enumerate(known)})
    mine.hset(queue.stats, mapping={'unfit_first': '0', 'unfit_next': '5'})
    for _ in range(5):
        mine.xadd(queue.stream, {'command': 'junk', 'expires': '1'})
    assert queue.begin('w1', 9) == []
    assert [fields['leat.cause'] for _, fields in queue.letters()] == [b'expired'] * 5


def end_tasks(queue, count):
    queue.add(*[{'command': 'good'}] * count)
    tasks = queue.begin('w1', count)
    queue.finish_many('w1', [queue.result(task.token) for task in tasks], [record(task.tid) for task in tasks])


def deletes_the_history(mine, queue):
    queue.conf_set('history', '100')
    end_tasks(queue, 100)
    end_tasks(queue, 20)
    assert len(queue.list('done')) == 120
    mine.hset(queue.stats, 'h:', f'0 {FAR_MS}-0')
    end_tasks(queue, 20)
    assert queue.list('done') == []


def stops_a_lane(mine, queue):
    queue.redis.hset(queue.conf, 'lane:a', '1, 1')
    mine.hincrby(queue.stats, 'r:a', 1)
    queue.add({'command': 'good', 'lane': 'a'})
    assert queue.begin('w1') == []


def delays_a_lane_with_a_rate(mine, queue):
    queue.redis.hset(queue.conf, 'lane:a', '1, -, 1/h, 9')
    mine.zadd(queue.delayed, {'l:a': queue.now() + 3600000})
    queue.add(*[{'command': 'good', 'lane': 'a'}] * 3)  # the lane was empty: the first one does not wait in it
    assert len(queue.begin('w1', 9)) == 1
    queue.add({'command': 'good', 'lane': 'a'})
    assert queue.scan('w1', 9)[1] == []


def lanes_that_start(queue):
    """The lanes of the next 40 tasks, while the lanes a and b and the stream have enough of them."""
    queue.add(*[{'command': 'good', 'lane': lane} for lane in 'ab' * 45])
    queue.add(*[{'command': 'good'}] * 45)
    return {task.fields.get('lane', b'') for _ in range(40) for task in queue.begin('w1')}


def keeps_lanes_from_their_turn(mine, queue):
    queue.add({'command': 'good'}, *[{'command': 'good', 'lane': lane} for lane in 'ab'])
    mine.zadd(queue.lanes, {'a': 'inf'})
    assert lanes_that_start(queue) == {b'', b'b'}
    mine.zadd(queue.lanes, {'a': -4e11})
    assert lanes_that_start(queue) == {b'a'}


def keeps_the_stream_from_its_turn(mine, queue):
    mine.hset(queue.stats, 'stream_tag', '2e11')
    assert lanes_that_start(queue) == {b'a', b'b'}


def takes_names(mine, queue):
    mine.hset(queue.names, 'u:key', '5-5')
    assert queue.enqueue({'command': 'good', 'unique': 'key'}) == [('exists', '5-5')]


def ended_task(queue):
    queue.add({'command': 'good', 'result_ttl': '1h'})
    [task] = queue.begin('w1')
    queue.finish('w1', task, stdout='secret')
    return '{emails}:result:' + task.tid


def reads_a_result(mine, queue):
    found = mine.execute_command('XREAD', 'STREAMS', ended_task(queue), '0')
    assert b'secret' in found[0][1][0][1]


def has_output_sent(mine, queue):
    mine.xadd(queue.bell, {'why': 'follow 60000 5-5'})
    *_, followed = queue.call('register', queue.group, 'w2', '{}', 0)
    assert followed[1] == b'5-5'
    with pytest.raises(redis.ResponseError, match=DENIED):
        mine.execute_command('XREAD', 'STREAMS', '{emails}:output:5-5', '0')


def blocks_the_wakeups(mine, queue):
    mine.execute_command('XADD', queue.bell, f'{2 ** 64 - 1}-{2 ** 64 - 1}', 'why', 'x')
    for call in (lambda: queue.register('w2'), lambda: queue.gate('paused', 1, 'alice@web1')):
        with pytest.raises(redis.ResponseError, match='last possible ID|exhausted|equal or smaller'):
            call()
    queue.redis.delete(queue.bell)
    queue.register('w2')


def reads_all_tasks(mine, queue):
    queue.add({'command': 'good'})
    waiting_task(queue)
    assert b'good' in mine.execute_command('XRANGE', queue.stream, '-', '+')[0][1]
    assert b'good' in list(mine.hgetall(queue.waiting).values())[0]


def discards_tasks(mine, queue):
    [tid] = queue.add({'command': 'good'})
    waiting = waiting_task(queue)
    queue.block('w1')
    assert mine.xack(queue.stream, 'leat', tid) == mine.xdel(queue.stream, tid) == 1
    assert mine.hdel(queue.waiting, waiting) == 1
    assert queue.places() == {}


def adds_to_the_requeue_stream(mine, queue):
    mine.xadd(queue.go, {'command': 'evil'})
    assert queue.begin('w1')[0].fields['command'] == b'evil'


def changes_the_settings(mine, queue):
    queue.add({'command': 'good'})
    mine.hset(queue.conf, 'paused', '1')
    assert queue.claim('w1')['why'] == 'paused'


def forges_a_dead_letter(mine, queue):
    mine.xadd(queue.dead, {'command': 'evil', 'leat.tid': '5-5', 'leat.fields': '1'})
    assert queue.letters()[0][1]['leat.tid'] == b'5-5'
    mine.execute_command('XTRIM', queue.dead, 'MAXLEN', '0')
    assert queue.letters() == []


def forges_the_history(mine, queue):
    mine.xadd('{emails}:history', {'tasks': record('5-5')})
    assert [text(row['tid']) for row in queue.list('done')] == ['5-5']
    mine.execute_command('XADD', '{emails}:history', 'MAXLEN', '0', '*', 'tasks', record('6-6'))
    assert queue.list('done') == []


def forges_a_result(mine, queue):
    mine.xadd('{emails}:result:5-5', {'state': 'success'})
    key = ended_task(queue)
    mine.pexpire(key, 1)
    wait_until(lambda: not queue.redis.exists(key))


def has_signatures_forgotten(mine, queue):
    def asks(tid):
        return queue.redis.execute_command('FCALL', 'leat_once', 2, '{emails}:seen', '{emails}:seen_until',
                                           's' + tid, tid, 'mark', queue.now() + 60000)[1]
    assert [asks('5-5'), asks('6-6')] == [b'ok', b'seen 5-5']
    mine.hdel('{emails}:seen', 'mark')
    assert asks('6-6') == b'ok'


def unblocks_clients(mine, queue):
    with queue.redis.client() as other:
        number = other.client_id()
        other.connection.send_command('XREAD', 'BLOCK', '0', 'STREAMS', 'other', '0')
        wait_until(lambda: mine.execute_command('CLIENT', 'UNBLOCK', number) == 1)
        assert other.connection.read_response() is None


def result_and_output(queue):
    queue.redis.xadd('{emails}:output:5-5', {'stdout': 'secret'})
    return [ended_task(queue), '{emails}:output:5-5']


def ranges_over_results_and_output(mine, queue):
    for key in result_and_output(queue):
        assert 'secret' in str(mine.execute_command('XRANGE', key, '-', '+'))


def reads_results_and_output(mine, queue):
    for key in result_and_output(queue):
        assert 'secret' in str(mine.execute_command('XREAD', 'STREAMS', key, '0'))


def deletes_results(mine, queue):
    assert mine.delete(ended_task(queue)) == 1


def replaces_the_functions(mine, queue):
    source = LIBRARY.read_text().replace('return { PROTOCOL, VERSION }', "redis.call('SET', 'x', 'evil')", 1)
    source = source.replace("{ 'no-writes' }", "{ 'allow-oom' }")
    mine.execute_command('FUNCTION', 'LOAD', 'REPLACE', source)
    queue.redis.execute_command('FCALL', 'leat_version', 0)
    assert queue.redis.get('x') == b'evil'


WORST = {
    'producer': {
        'run any command on the workers: XADD': runs_any_command,
        'delete the tasks of the stream: XADD with MAXLEN': trims_the_stream,
        'block the stream for all producers: XADD with the highest id': blocks_the_stream,
        'fill the memory of Redis: XADD ignores max_length': ignores_the_length_limit,
    },
    'enqueuer': {
        'do what a producer can': trims_the_stream,
        'list the ids of delayed tasks and of tasks in lanes: ZRANGE': lists_waiting_tasks,
        'learn the id of the task that was read last: XINFO GROUPS': learns_the_id_that_was_read,
        'read a waiting task whose id it knows: HGET': reads_a_waiting_task,
        'replace a waiting task whose id it knows: HSET': replaces_a_waiting_task,
        'destroy a waiting task whose id it knows: HSET': destroys_a_waiting_task,
        'delay a waiting task for ever: ZADD': delays_for_ever,
        'stop a lane that has max_running: HINCRBY': stops_a_lane,
        'delay each start of a lane that has a rate: ZADD': delays_a_lane_with_a_rate,
        'keep a lane from its turn, or all others: ZADD': keeps_lanes_from_their_turn,
        'keep tasks without a lane from their turn: HSET': keeps_the_stream_from_its_turn,
        'take unique keys and ids from others: HSET': takes_names,
        'keep the tasks of lost workers from others: HSET': keeps_tasks_of_lost_workers,
        'run a task whose id it knows twice at once: HSET': runs_a_task_twice,
        'keep all tasks from starting: HSET': stops_all_starts,
        'delete dead letters whose ids it knows: HSET': deletes_dead_letters,
        'delete the history: HSET': deletes_the_history,
        'read the result of a task whose id it knows: XREAD': reads_a_result,
        'forge the result of a task whose id it knows: HSET': forges_a_result_by_a_task,
        'have workers send the output of tasks to Redis: XADD': has_output_sent,
        'block the wakeup stream for all: XADD with the highest id': blocks_the_wakeups,
    },
    'worker': {
        'read all tasks: XRANGE, HGETALL': reads_all_tasks,
        'delete and acknowledge all tasks: XDEL, XACK, HDEL': discards_tasks,
        'run any command on the other workers: XADD': adds_to_the_requeue_stream,
        'run a running task once more: XADD': runs_a_running_task,
        'block the requeue stream for all: XADD with the highest id': blocks_the_requeue_stream,
        'block the wakeup stream for all: XADD with the highest id': blocks_the_wakeups,
        'block dead letters for all: XADD with the highest id': blocks_the_dead_letters,
        'change the settings: HSET': changes_the_settings,
        'forge and delete dead letters: XADD, XTRIM': forges_a_dead_letter,
        'forge and delete the history: XADD': forges_the_history,
        'forge and expire results: XADD, PEXPIRE': forges_a_result,
        'have workers forget used signatures: HDEL': has_signatures_forgotten,
        'end the blocking reads of all clients of this Redis: CLIENT UNBLOCK': unblocks_clients,
    },
    'board': {
        'read all tasks: XRANGE, HGETALL': reads_all_tasks,
        'read all results and live output: XRANGE': ranges_over_results_and_output,
    },
    'operator': {
        'read all tasks: XRANGE, HGETALL': reads_all_tasks,
        'read all results and live output: XREAD': reads_results_and_output,
        'delete and acknowledge all tasks: XDEL, XACK, HDEL': discards_tasks,
        'run any command on the workers: XADD': runs_any_command,
        'run a running task once more: XADD': runs_a_running_task,
        'block the requeue stream for all: XADD with the highest id': blocks_the_requeue_stream,
        'block the wakeup stream for all: XADD with the highest id': blocks_the_wakeups,
        'block dead letters for all: XADD with the highest id': blocks_the_dead_letters,
        'change the settings: HSET': changes_the_settings,
        'forge and delete dead letters: XADD, XTRIM': forges_a_dead_letter,
        'forge and delete the history: XADD': forges_the_history,
        'forge and delete results: XADD, DEL': deletes_results,
    },
    'admin': {
        'do what any user that calls functions can, in all queues: FUNCTION LOAD': replaces_the_functions,
    },
}
CASES = [(role, case) for role, cases in WORST.items() for case in cases]


@pytest.mark.parametrize('role, case', CASES, ids=[f'{role}-{case}' for role, case in CASES])
def test_a_worst_case(as_role, queue, role, case):
    """The user can do what the manual says."""
    queue.register('w1')
    WORST[role][case](as_role(role), queue)


def test_the_manual_has_each_worst_case():
    """The table of the manual has these lines and no others."""
    rows, role = [], None
    table = MANUAL.read_text().split('.It Em user Ta Em can , at worst\n')[1].split('.El\n')[0]
    for first, case in re.findall(r'^\.It (?:(\w+) )?Ta (.*)$', table, re.M):
        role = first or role
        rows.append((role, case))
    assert rows == CASES


# ---- what the file prevents

SETTINGS = [('HSET', 'paused', '1'), ('HSETNX', 'paused', '1'), ('HDEL', 'lease_ms'), ('HINCRBY', 'lease_ms', '1')]


def test_an_enqueuer_changes_no_setting(as_role, queue):
    """An enqueuer reads the settings; it changes none, by itself or by a function."""
    queue.register('w1')
    mine = as_role('enqueuer')
    assert mine.hget(queue.conf, 'lease_ms') == b'60000'
    before = queue.redis.hgetall(queue.conf)
    for command, *args in SETTINGS:
        with pytest.raises(redis.ResponseError, match=DENIED):
            mine.execute_command(command, queue.conf, *args)
    for call in (lambda theirs: theirs.conf_set('rate', '1/s'), lambda theirs: theirs.gate('paused', True)):
        with pytest.raises(redis.ResponseError, match=DENIED + '|ACL failure'):
            call(Queue(mine))
    assert queue.redis.hgetall(queue.conf) == before


def test_an_enqueuer_has_no_command_that_deletes(as_role, queue):
    """An enqueuer deletes, takes and acknowledges no task, by itself or by a function."""
    queue.register('w1')
    [tid] = queue.add({'command': 'a'})
    waiting = waiting_task(queue, unique='k', lane='a')
    mine, before = as_role('enqueuer'), queue.places()
    for words in (['XDEL', queue.stream, tid], ['XACK', queue.stream, 'leat', tid],
                  ['XTRIM', queue.stream, 'MAXLEN', 0], ['DEL', queue.stream], ['UNLINK', queue.waiting],
                  ['HDEL', queue.waiting, waiting],
                  ['HDEL', queue.names, 'u:k'], ['ZREM', queue.delayed, waiting], ['PEXPIRE', queue.stream, 1],
                  ['ZREMRANGEBYRANK', queue.delayed, 0, -1], ['RENAME', queue.waiting, queue.stats],
                  ['XREADGROUP', 'GROUP', 'leat', 'x', 'STREAMS', queue.stream, '>'],
                  ['XRANGE', queue.stream, '-', '+'], ['HGETALL', queue.waiting]):
        with pytest.raises(redis.ResponseError, match=DENIED):
            mine.execute_command(*words)
    for call in (lambda theirs: theirs.call_off(tid), lambda theirs: theirs.begin('w1'),
                 lambda theirs: theirs.dead_drop(tid)):
        with pytest.raises(redis.ResponseError, match=DENIED + '|ACL failure'):
            call(Queue(mine))
    assert queue.places() == before


def test_the_board_changes_nothing(as_role, queue):
    """The board's user can neither call a function that writes, by FCALL or FCALL_RO, nor write itself."""
    queue.register('w1')
    [tid] = queue.add({'command': 'a'})
    mine, before = as_role('board'), queue.places()
    for words in (['HSET', queue.conf, 'paused', '1'], ['XADD', queue.stream, '*', 'command', 'evil'],
                  ['HINCRBY', queue.stats, 'dead', 1], ['ZADD', queue.delayed, 1, 'x'],
                  ['SADD', queue.cancel, 'x'],
                  ['FCALL', 'leat_status', 0], ['FCALL_RO', 'leat_dead_drop', 1, queue.stream, tid],
                  ['XREADGROUP', 'GROUP', 'leat', 'x', 'STREAMS', queue.stream, '>'], ['KEYS', '*'], ['INFO'],
                  ['FUNCTION', 'LIST'], ['CONFIG', 'GET', '*'], ['XRANGE', 'other', '-', '+']):
        with pytest.raises(redis.ResponseError, match=DENIED + '|write flag'):
            mine.execute_command(*words)
    assert queue.places() == before


@pytest.mark.parametrize('fence', [2 ** 52, 2 ** 53 - 2, 2 ** 53 - 1])
def test_an_enqueuer_does_not_use_up_fencing_tokens(as_role, queue, fence):
    """A fencing token that an enqueuer has forged, near the greatest that there is, leaves greater ones for each
    further run of other tasks."""
    queue.register('w1')
    mine, tid = as_role('enqueuer'), waiting_task(queue)
    forged = mine.hget(queue.waiting, tid).replace(length_and('leat.fence') + length_and('0'),
                                                   length_and('leat.fence') + length_and(str(fence)))
    mine.hset(queue.waiting, tid, forged)
    mine.zadd(queue.delayed, {tid: 1})
    [task] = queue.begin('w1')
    assert task.fence == fence + 1
    queue.register('w1', [task.token], heartbeat=f'{{"unclaimed":[],"fence":{task.fence}}}')
    other, fences = queue.add({'command': 'a'})[0], []
    for _ in range(3):
        [run] = [found for found in queue.begin('w1') if found.tid == other]
        fences.append(run.fence)
        queue.finish('w1', run, 'release')
    assert fences == sorted(set(fences)) and fences[-1] < 2 ** 53, fences


@pytest.mark.parametrize('key', ['stream', 'bell', 'waiting', 'delayed', 'names', 'stats', 'lanes', 'laned'])
def test_a_refused_enqueue_leaves_no_trace(as_role, queue, key):
    """An enqueuer, who cannot undo a write, leaves nothing behind if another program has taken a key of the queue:
    the call fails before its first write, and names the key."""
    queue.register('w1')
    queue.add({'command': 'a', 'lane': 'a'}, {'command': 'a', 'lane': 'a'})  # the second has to wait
    queue.redis.delete(getattr(queue, key))
    queue.redis.set(getattr(queue, key), 'theirs')
    before = {name: queue.redis.dump(name) for name in queue.redis.keys()}
    mine = Queue(as_role('enqueuer'))
    for task in ({'delay': '1h'}, {'lane': 'a'}, {'id': 'i'}, {'unique': 'u'}, {'expires': str(FAR_MS // 1000)}):
        fields = [part for field in {'command': 'b', **task}.items() for part in field]
        with pytest.raises(redis.ResponseError, match='WRONGTYPE.*' + re.escape(getattr(queue, key))):
            mine.program_add(*fields)
    assert {name: queue.redis.dump(name) for name in queue.redis.keys()} == before


@pytest.mark.parametrize('role', ['worker', 'operator', 'enqueuer', 'producer', 'admin', 'board'])
def test_nobody_deletes_the_queue(as_role, queue, role):
    """No user deletes, expires, renames or overwrites a key with tasks."""
    queue.register('w1')
    queue.add({'command': 'a'})
    waiting_task(queue)
    mine = as_role(role)
    for key in (queue.stream, queue.waiting, queue.conf, queue.go):
        for words in (['DEL', key], ['UNLINK', key], ['PEXPIRE', key, 1], ['RENAME', key, 'other'],
                      ['SET', key, 'x'], ['XTRIM', key, 'MAXLEN', 0], ['XGROUP', 'DESTROY', key, 'leat'],
                      ['RESTORE', key, 0, 'x']):
            with pytest.raises(redis.ResponseError, match=DENIED):
                mine.execute_command(*words)
    assert len(queue.places()) == 2


# ---- the default user is off

def test_without_a_login_nothing_is_allowed(redis_server, queue):
    """A client that does not log in, or that has sent RESET, may do nothing."""
    anonymous = redis.Redis(unix_socket_path=redis_server.socket)
    with pytest.raises(redis.RedisError, match='Authentication required|NOAUTH'):
        anonymous.xadd(queue.stream, {'command': 'evil'})
    with redis_server.client(username='emails-producer', password='producer').client() as mine:
        mine.execute_command('XADD', queue.stream, '*', 'command', 'true')
        ask(mine, 'RESET')
        with pytest.raises(redis.RedisError, match='Authentication required|NOAUTH'):
            ask(mine, 'XADD', queue.stream, '*', 'command', 'evil')
    anonymous.close()
    assert queue.redis.xlen(queue.stream) == 1


def test_replicas_and_sentinels_log_in(folder):
    """The users that the file suggests for replicas and sentinels suffice for a failover."""
    users = suggested_users()
    path = write_acl(folder / 'leat.acl', users['root'], users['replica'], users['sentinel'])
    options = {'include': path, 'masteruser': 'replica', 'masterauth': 'replica'}
    servers = []

    def start(make):
        def one(port):
            server = make(port)
            server.login = {} if isinstance(server, Sentinel) else ROOT_LOGIN
            return server
        servers.append(start_on_free_port(one))
        return servers[-1]
    try:
        master = start(lambda port: Server(folder / 'master', port, **options))
        options['replicaof'] = f'127.0.0.1 {master.port}'
        replica = start(lambda port: Server(folder / 'replica', port, **options))
        wait_until(lambda: replica.is_linked(master), message=replica.log)
        sentinel = start(lambda port: Sentinel(
            folder / 'sentinel', port, master, 1, f'sentinel auth-user {NAME} sentinel',
            f'sentinel auth-pass {NAME} sentinel'))
        sentinel.hurry()
        wait_until(lambda: sentinel.record()['num-slaves'] == '1', message=sentinel.log)
        assert sentinel.record()['flags'] == 'master'
        master.kill()
        wait_until(replica.is_master, 60, message=sentinel.log)
    finally:
        for server in reversed(servers):
            server.close()
