"""leat explain: every reason why a task, a lane or the queue does not run, each made by real functions or a
real worker."""
import json
import os
import shlex
import shutil

import pytest

from harness.functions.damages import packed
from harness.functions.history import record
from harness.polling import wait_until
from harness.short_leases import wait_blocked

RUNS, BLOCKED, UNKNOWN, EX_USAGE = 0, 1, 2, 64
TASK = {'command': 'true'}
HOUR_MS = 3600000
LEASE_MS = HOUR_MS  # no worker becomes silent while a test waits for the machine
BROKEN = {'task': {'command': '/none/program'}}


class Explained:
    """The answer of leat explain --json."""

    def __init__(self, done):
        assert done.returncode in (RUNS, BLOCKED, UNKNOWN) and done.stderr == '', done
        self.code, self.page = done.returncode, json.loads(done.stdout)
        self.verdict = self.page['verdict']
        self.reasons = {row['reason']: row for row in self.page['reasons']}
        self.blocking = [row['reason'] for row in self.page['reasons'] if row['blocks']]

    def __repr__(self):
        return f'{self.code} {self.page}'


@pytest.fixture
def explain(leat):
    return lambda *words, **options: Explained(leat('explain', '--json', *words, **options))


def register(queue, name, **options):
    return queue.register(name, lease=LEASE_MS, **options)


@pytest.fixture
def idle(queue):
    """A worker that has a free slot, and so is no reason for anything."""
    return register(queue, 'web1:1:a')


def add(queue, **fields):
    return queue.add({**TASK, **fields})[0]


def heartbeat(**values):
    return json.dumps({'host': 'web1', 'pid': 1, **values})


def text_of(explained, name):
    return explained.reasons[name]['text']


# ---- the queue: functions alone

def test_an_open_queue(explain, queue, idle):
    """If a worker has a free slot, nothing stops the queue."""
    add(queue)
    answer = explain()
    assert (answer.code, answer.verdict, answer.blocking) == (RUNS, 'open', [])
    assert answer.reasons['tasks']['ready'] == 1 and list(answer.reasons) == ['tasks']


def test_no_worker(explain, queue):
    """Without a worker, a task and the queue are blocked."""
    tid = add(queue)
    for answer in explain(), explain(tid):
        assert (answer.code, answer.verdict, answer.blocking) == (BLOCKED, 'blocked', ['no-worker'])
        assert text_of(answer, 'no-worker').endswith(': systemctl start leatd@emails')


def test_silent_workers(explain, queue):
    """Workers that send no heartbeat block; the answer names each and says for how long."""
    register(queue, 'web1:1:a')
    register(queue, 'web2:2:b')
    for name in 'web1:1:a', 'web2:2:b':
        queue.redis.hset(queue.workers, name, f'{queue.now() - 2 * HOUR_MS} {{}}')
    answer = explain()
    assert answer.code == BLOCKED and answer.blocking == ['silent', 'silent']
    assert 'silent for 2h' in text_of(answer, 'silent')
    assert {row.get('host') for row in answer.page['reasons']} >= {'web1', 'web2'}


def test_paused(explain, queue, idle):
    """A pause blocks tasks that wait; the answer says since when, and who did it. A running task runs."""
    running = add(queue)
    queue.begin('web1:1:a')
    waiting = add(queue)
    queue.gate('paused', 1, 'alice@web1')
    assert 'the queue was paused now' not in text_of(explain(waiting), 'paused')
    queue.redis.hset(queue.conf, 'paused', f'{queue.now() - 3 * HOUR_MS} alice@web1')
    answer = explain(waiting)
    assert (answer.code, answer.verdict, answer.blocking) == (BLOCKED, 'blocked', ['paused'])
    assert answer.reasons['paused']['by'] == 'alice@web1'
    assert '3h' in text_of(answer, 'paused') and 'by alice@web1; ' in text_of(answer, 'paused')
    assert explain(running).verdict == 'runs' and explain().blocking == ['paused']


@pytest.mark.parametrize('host', ['web1', '*'])
def test_drained(explain, queue, idle, host):
    """A drained host blocks if no other host has a worker. The command that is named undoes it."""
    tid = add(queue)
    queue.gate(f'drain:{host}', 1, 'bob@web9')
    answer = explain(tid)
    assert answer.code == BLOCKED and answer.blocking == ['drained']
    drained = answer.reasons['drained']
    assert (drained['host'], drained['by']) == ('web1', 'bob@web9') and drained['since_ms'] > 0
    wanted = 'run: leat undrain ' + ('--all' if host == '*' else 'web1')
    assert drained['text'].endswith(wanted)
    queue.gate('drain:web1', 1, 'bob@web9')
    assert text_of(explain(tid), 'drained').endswith(wanted)
    register(queue, 'web2:2:b')
    assert explain(tid).code == (RUNS if host == 'web1' else BLOCKED)


@pytest.mark.parametrize('host, words', [("x;id'$(id)", []), ('--all', ['--'])])
def test_words_of_commands(explain, queue, host, words):
    """People copy a command of a text into a shell, and whoever may write to the key of workers chooses the names
    of hosts: one that a shell would take for more than a word is quoted, and one that is named like an option
    undrains no other host."""
    register(queue, f'{host}:1:a', heartbeat=heartbeat(host=host))
    queue.gate(f'drain:{host}', 1, 'bob@web9')
    answer = explain(add(queue))
    assert shlex.split(answer.reasons['drained']['text'].split('run: ')[1]) == [
        'leat', 'undrain', *words, host]


def test_full_workers(explain, queue):
    """A worker without a free slot delays tasks, and does not block them, whatever state the others are in."""
    register(queue, 'web1:1:a', heartbeat=heartbeat(slots=1, capacity=1, state='running'))
    register(queue, 'web2:2:b', heartbeat=heartbeat(host='web2', slots=1, capacity=1, state='host-fault',
                                                    trouble='no program "x"'))
    add(queue)
    queue.begin('web1:1:a')
    answer = explain(add(queue))
    assert (answer.code, answer.verdict, answer.blocking) == (RUNS, 'will-run', [])
    assert (answer.reasons['full']['running'], answer.reasons['full']['most']) == (1, 1)
    assert answer.reasons['host-fault']['trouble'] == 'no program "x"'


@pytest.mark.parametrize('state, reason', [
    ('draining', 'stopping'), ('lease-short', 'lease-short'), ('outcome-kept', 'outcome-kept'),
    ('pressed', 'pressed'), ('host-fault', 'host-fault'), ('starting', 'starting')])
def test_states_of_workers(explain, queue, state, reason):
    """A worker that takes no tasks blocks if no other one does, also if it is of a version without details."""
    register(queue, 'web1:1:a', heartbeat=heartbeat(slots=4, capacity=4, state=state))
    answer = explain(add(queue))
    assert answer.code == BLOCKED and answer.blocking == [reason]
    assert answer.reasons[reason]['host'] == 'web1'


def test_many_workers(explain, queue):
    """Of very many workers, only the first are named, and the others counted."""
    for number in range(50):
        register(queue, f'web{number}:1:a', heartbeat=heartbeat(host=f'web{number}', state='pressed'))
    answer = explain()
    assert len([name for name in answer.blocking if name == 'pressed']) == 20
    assert answer.reasons['more-workers']['workers'] == 30


def test_rate(explain, queue, idle):
    """If the queue's rate is used up, the answer says when the next task starts."""
    queue.conf_set('rate', '1/h')
    add(queue)
    queue.begin('web1:1:a')
    answer = explain(add(queue))
    assert (answer.code, answer.blocking) == (RUNS, [])
    rate = answer.reasons['rate']
    assert rate['rate'] == '1/h' and 0 < rate['next_ms'] - answer.page['now_ms'] <= HOUR_MS
    queue.conf_set('rate', '')
    assert 'rate' not in explain(add(queue)).reasons


def test_a_lost_group(explain, queue, idle):
    """After the group was created again, nothing starts for a lease."""
    tid = add(queue)
    queue.redis.xgroup_destroy(queue.stream, queue.group)
    register(queue, 'web1:1:a')
    answer = explain(tid)
    assert answer.code == RUNS and 0 < answer.reasons['hold']['until_ms'] - answer.page['now_ms'] <= LEASE_MS


def test_an_outage(explain, queue, idle):
    """After Redis was replaced, nothing starts until all workers have returned; the answer names them."""
    register(queue, 'web2:2:b')
    tid = add(queue)
    queue.redis.hset(queue.stats, 'server', 'former data')
    joined = queue.redis.hget(queue.stats, 'joined').decode()
    register(queue, 'web1:1:a', heartbeat=f'{{"unclaimed":[],"joined":{joined}}}')
    answer = explain(tid)
    assert answer.code == RUNS and answer.reasons['outage']['until_ms'] > answer.page['now_ms']
    assert 'not back yet: web2:2:b' in text_of(answer, 'outage')


def test_groups(explain, queue, idle):
    """A second consumer group blocks. A configuration with another group than the workers is warned of."""
    tid = add(queue)
    other = explain(tid, config={'queue': {'group': 'theirs'}})
    assert other.reasons['group']['group'] == queue.group
    queue.redis.xgroup_create(queue.stream, 'foreign')
    answer = explain(tid)
    assert answer.blocking == ['other-group'] and answer.reasons['other-group']['groups'] == 1


# ---- a lane

def test_lane_full(explain, queue, idle):
    """A lane at its cap: how many run, which, on which worker, and the place of the task in the lane."""
    queue.conf_set('lane:archive', '1, 2')
    tids = queue.add(*[{**TASK, 'lane': 'archive'}] * 5)
    assert len(queue.begin('web1:1:a', 5)) == 2
    answer = explain(tids[3])
    assert (answer.code, answer.verdict) == (RUNS, 'will-run')
    full, turn = answer.reasons['lane-full'], answer.reasons['lane-turn']
    assert (full['lane'], full['running'], full['most']) == ('archive', 2, 2)
    assert full['text'] == f'lane archive runs 2 of 2: {tids[0]} (on web1:1:a), {tids[1]} (on web1:1:a)' \
        or full['text'] == f'lane archive runs 2 of 2: {tids[1]} (on web1:1:a), {tids[0]} (on web1:1:a)'
    assert (turn['before'], turn['waiting']) == (1, 3)
    lane = explain('--lane', 'archive')
    assert (lane.code, lane.verdict, lane.page['lane']) == (RUNS, 'open', 'archive')
    assert lane.reasons['lane-full']['running'] == 2 and lane.reasons['lane-turn']['waiting'] == 3


def test_lane_rate(explain, queue, idle):
    """A lane whose rate is used up: when its next task starts."""
    queue.conf_set('lane:archive', '1, -, 1/h')
    tids = queue.add(*[{**TASK, 'lane': 'archive'}] * 3)
    assert [task.tid for task in queue.begin('web1:1:a', 3)] == tids[:1]
    for answer in explain(tids[1]), explain('--lane', 'archive'):
        rate = answer.reasons['lane-rate']
        assert answer.code == RUNS and rate['settings'] == '1, -, 1/h'
        assert 0 < rate['next_ms'] - answer.page['now_ms'] <= HOUR_MS


def test_turn_of_lanes(explain, queue, idle):
    """A lane that is not next: how many lanes have an earlier turn."""
    add(queue)
    [first, _] = queue.add({**TASK, 'lane': 'a'}, {**TASK, 'lane': 'a'})
    queue.conf_set('lane:slow', '0.01')
    tid = add(queue, lane='slow')
    assert explain(tid).reasons['lane-turn']['lanes_before'] == 1
    assert explain(first).reasons['lane-turn']['lanes_before'] == 0
    assert 'this lane is next' in text_of(explain(first), 'lane-turn')


def test_turn_of_moved_tasks(explain, queue, idle):
    """A task that is next to start waits for no lane, and a lane whose last task was moved away delays none."""
    moved, lane, other = (add(queue), *queue.add({**TASK, 'lane': 'a'}, {**TASK, 'lane': 'b'}))
    assert queue.change(moved, fields={'lane': 'b'}) == ['ok ' + moved]
    assert queue.change(lane, fields={'lane': 'b'}) == ['ok ' + lane]
    assert 'lane-turn' not in explain(moved).reasons
    assert explain(other).reasons['lane-turn']['lanes_before'] == 0


def test_lanes_without_tasks(explain, queue, idle):
    """A lane with settings and without tasks is empty; a lane that nobody knows is unknown, also if a
    delayed task will enter it, and the reason says so."""
    queue.conf_set('lane:archive', '1, 2')
    answer = explain('--lane', 'archive')
    assert (answer.code, answer.verdict) == (RUNS, 'open') and 'empty' in answer.reasons
    queue.add({**TASK, 'lane': 'later'}, due='+300000')
    for lane in 'none', 'later':
        answer = explain('--lane', lane)
        assert (answer.code, answer.verdict) == (UNKNOWN, 'unknown')
        assert 'a task that is delayed or retried enters its lane when it is due' in text_of(answer, 'unknown')


def test_no_lane(leat, explain, queue, idle):
    """An empty name means the tasks without a lane, which are never unknown; enqueue and list mean the same."""
    answer = explain('--lane', '')
    assert (answer.code, answer.verdict) == (RUNS, 'open') and 'empty' in answer.reasons
    assert leat('explain', '--lane', '').stdout.startswith('tasks without a lane: open\n')
    tid = leat('enqueue', '--lane', '', 'true').stdout
    assert leat('list', '--lane', '', '--format', '{tid}').stdout == tid


# ---- a task

def test_due(explain, queue, idle):
    """A delayed task is due at a time."""
    [tid] = queue.add(TASK, due='+300000')
    answer = explain(tid)
    assert (answer.code, answer.verdict, list(answer.reasons)) == (RUNS, 'will-run', ['due'])
    assert 0 < answer.reasons['due']['due_ms'] - answer.page['now_ms'] <= 300000
    assert text_of(answer, 'due').startswith('it is due in ')
    assert answer.page['task']['tid'] == tid and answer.page['history'] == []


def test_next_due(explain, queue, idle):
    """When the queue's next task is due, though a key is released before it."""
    queue.add(TASK, due='+300000')
    add(queue, unique='k', unique_for='60')
    [task] = queue.begin('web1:1:a')
    queue.finish('web1:1:a', task)
    answer = explain()
    assert 200000 < answer.reasons['tasks']['due_ms'] - answer.page['now_ms'] <= 300000


def test_retry(explain, queue, idle):
    """A task that failed: its next attempt, and how the last one ended."""
    tid = add(queue)
    [task] = queue.begin('web1:1:a')
    queue.finish('web1:1:a', task, 'retry', delay=300000, cause='exit', status='3')
    answer = explain(tid)
    assert answer.code == RUNS and text_of(answer, 'retry').startswith('it failed: attempt 2 is due in')
    attempt = answer.reasons['attempt']
    assert (attempt['attempt'], attempt['cause'], attempt['status']) == (1, 'exit', '3')
    assert 'on web1:1:a' in attempt['text'] and attempt['text'].endswith(': exit 3')
    assert answer.page['history'][0]['status'] == '3'


def test_missing_program(explain, queue, idle):
    """A task that was returned since its program is missing: how often it was tried."""
    tid = add(queue)
    [task] = queue.begin('web1:1:a')
    queue.finish('web1:1:a', task, 'release', delay=300000)
    answer = explain(tid)
    assert answer.code == RUNS and answer.reasons['no-program']['tries'] == 1


def test_follower(explain, queue, idle):
    """A task that follows the holder of its unique key waits for it, on whichever worker it runs."""
    holder = add(queue, unique='k')
    queue.begin('web1:1:a')
    tid = add(queue, unique='k', unique_next='1')
    answer = explain(tid)
    unique = answer.reasons['unique']
    assert answer.code == RUNS and (unique['holder'], unique['worker']) == (holder, 'web1:1:a')
    said = f'it waits for the end of {holder}, which holds the unique key k, and runs on web1:1:a'
    assert unique['text'] == said


def test_taken_key(explain, queue, idle):
    """A plain XADD whose unique key another task holds, or one has held, will be refused."""
    holder = add(queue, unique='k', unique_for='1h')
    tid = queue.redis.xadd(queue.stream, {**TASK, 'unique': 'k'}).decode()
    answer = explain(tid)
    assert (answer.code, answer.blocking) == (BLOCKED, ['unique-taken'])
    assert answer.reasons['unique-taken']['holder'] == holder
    [task] = queue.begin('web1:1:a')
    queue.finish('web1:1:a', task)
    taken = explain(tid).reasons['unique-taken']
    assert taken['blocks'] and 0 < taken['until_ms'] - queue.now() <= HOUR_MS


def test_expiry(explain, queue, idle):
    """A task with an end: it starts before it. If its retry is due later, it never starts."""
    now_s = queue.now() // 1000
    tid = add(queue, expires=now_s + 600)
    answer = explain(tid)
    assert answer.code == RUNS and answer.reasons['expiry']['expires_ms'] == (now_s + 600) * 1000
    [task] = queue.begin('web1:1:a')
    queue.finish('web1:1:a', task, 'retry', delay=6000000, cause='exit', status='3')
    answer = explain(tid)
    assert (answer.code, answer.blocking) == (BLOCKED, ['expiry']) and 'never starts' in text_of(answer, 'expiry')
    gone = queue.redis.xadd(queue.stream, {**TASK, 'expires': now_s - 10}).decode()
    assert explain(gone).blocking == ['expiry'] and 'it expired' in text_of(explain(gone), 'expiry')


def test_refused(explain, queue, idle):
    """A task that no worker will take, with the reason that the dead letter will have."""
    queue.conf_set('max_task', '65536')
    tid = queue.redis.xadd(queue.stream, {**TASK, 'payload': 'x' * 70000}).decode()
    answer = explain(tid)
    assert (answer.code, answer.blocking) == (BLOCKED, ['refused'])
    queue.begin('web1:1:a')
    [(_, letter)] = queue.letters()
    assert answer.reasons['refused']['refusal'] == letter['leat.reason'].decode()


def test_damaged(explain, queue, idle):
    """A waiting task that cannot be read."""
    [tid] = queue.add(TASK, due='+300000')
    queue.redis.hset(queue.waiting, tid, packed('odd'))
    answer = explain(tid)
    assert (answer.code, answer.blocking) == (BLOCKED, ['damaged'])


def lost_once(queue, number):
    """Tasks that were lost with a worker that is gone."""
    register(queue, 'gone:1:a')
    tids = queue.add(*[TASK] * number)
    assert len(queue.begin('gone:1:a', number)) == number
    assert queue.requeue('gone:1:a', died=True)[1] == 0
    return tids


def test_postponed(explain, queue, idle):
    """A poison candidate waits for another one to end; the answer names that one and its worker."""
    first, second = lost_once(queue, 2)
    assert [task.tid for task in queue.begin('web1:1:a', 4)] == [first]
    answer = explain(second)
    postponed = answer.reasons['postponed']
    assert answer.code == RUNS and (postponed['crashes'], postponed['since_ms'] > 0) == (1, True)
    assert postponed['text'].endswith(f'such tasks run now: {first} (on web1:1:a)')


def test_alone(explain, queue, idle):
    """A task before its last crash waits for a worker that runs nothing, and says which worker keeps it."""
    queue.conf_set('max_crashes', '2')
    [tid] = lost_once(queue, 1)
    answer = explain(tid)
    assert answer.code == RUNS and 'worker' not in answer.reasons['alone']
    assert queue.claim('web1:1:a', 1, busy=1)['held'] != []
    alone = explain(tid).reasons['alone']
    assert (alone['worker'], alone['crashes']) == ('web1:1:a', 1)


def test_read(explain, queue, idle):
    """A worker has read the entry and not claimed it yet."""
    tid = add(queue)
    queue.block('web1:1:a')
    answer = explain(tid)
    assert answer.code == RUNS and answer.reasons['read']['worker'] == 'web1:1:a'


def test_running_and_cancelled(explain, queue, idle):
    """A running task: its attempt and worker; then that somebody has asked to cancel it."""
    tid = add(queue, id='order-17')
    queue.begin('web1:1:a')
    answer = explain('order-17')
    assert (answer.code, answer.verdict, list(answer.reasons)) == (RUNS, 'runs', ['running'])
    assert (answer.reasons['running']['attempt'], answer.reasons['running']['worker']) == (1, 'web1:1:a')
    queue.call_off(tid)
    assert 'cancel-asked' in explain(tid).reasons


def takeover_in(queue, answer):
    return answer.reasons['worker-lost']['takeover_ms'] - queue.now()


def test_lost_worker(explain, queue, idle):
    """A running task whose worker is silent: when others take it over, and that there is no other."""
    tid = add(queue)
    queue.begin('web1:1:a')
    queue.redis.hset(queue.workers, 'web1:1:a', f'{queue.now() - 2 * HOUR_MS} {{}}')
    answer = explain(tid)
    assert (answer.code, answer.blocking) == (BLOCKED, ['silent'])
    assert 0 < takeover_in(queue, answer) <= LEASE_MS
    queue.expire()
    register(queue, 'web2:2:b')
    answer = explain(tid)
    assert answer.code == RUNS and takeover_in(queue, answer) <= 0
    assert answer.reasons['worker-lost']['text'].endswith('now, since its lease has ended')


def test_a_takeover_waits(explain, queue, idle):
    """After an outage, and after the lease was shortened, the takeover is promised for when it may come."""
    tid = add(queue)
    queue.begin('web1:1:a')
    queue.redis.hset(queue.workers, 'web1:1:a', f'{queue.now() - 2 * LEASE_MS} {{}}')
    queue.expire()
    queue.redis.hset(queue.stats, 'beat', queue.now() - 3 * LEASE_MS // 2)
    assert LEASE_MS - 5000 < takeover_in(queue, explain(tid)) <= LEASE_MS
    queue.renew('web2:2:b')
    assert LEASE_MS - 5000 < takeover_in(queue, explain(tid)) <= LEASE_MS
    queue.redis.hdel(queue.stats, 'outage')
    assert takeover_in(queue, explain(tid)) <= 0
    # queue.expire() has made the entry idle for 10 ** 9 ms
    queue.redis.hset(queue.conf, mapping={'floor_ms': 10 ** 9 + HOUR_MS, 'floor_until': queue.now() + 2 * HOUR_MS})
    assert 0 < takeover_in(queue, explain(tid)) <= HOUR_MS
    queue.redis.hset(queue.conf, 'floor_until', queue.now() + 20000)
    assert 0 < takeover_in(queue, explain(tid)) <= 20000


def test_dead(explain, queue, idle):
    """A dead letter, by its task's id and by that of its entry: cause and reason, and every attempt."""
    tid = add(queue)
    [task] = queue.begin('web1:1:a')
    queue.finish('web1:1:a', task, 'dead', cause='exit', status='65', reason='bad data')
    [(dead_id, _)] = queue.letters()
    for name in tid, 'd' + dead_id:
        answer = explain(name)
        assert (answer.code, answer.verdict) == (BLOCKED, 'dead')
        dead = answer.reasons['dead']
        assert (dead['cause'], dead['status']) == ('exit', '65')
        assert ': exit 65: bad data; ' in dead['text'] and dead['text'].endswith(f'leat dead retry {tid}')
        assert answer.reasons['attempt']['attempt'] == 1


@pytest.mark.parametrize('outcome, code, verdict', [
    ('success', RUNS, 'succeeded'), ('cancelled', BLOCKED, 'cancelled')])
def test_results(explain, queue, idle, outcome, code, verdict):
    """A task that is gone is known as long as its result is kept."""
    tid = add(queue, result_ttl='1h')
    [task] = queue.begin('web1:1:a')
    queue.finish('web1:1:a', task, outcome)
    answer = explain(tid)
    assert (answer.code, answer.verdict) == (code, verdict)
    assert answer.reasons[verdict]['ended_ms'] > 0


@pytest.mark.parametrize('fields', [{}, {'result_ttl': '1h'}])
def test_cancelled_attempt(explain, queue, idle, fields):
    """A task that was cancelled while it ran: the attempt that ended so, by its result and by the history."""
    queue.redis.hset(queue.conf, 'history', '100')
    tid = add(queue, **fields)
    for outcome, more in (('retry', {'delay_ms': 0}), ('cancelled', {})):
        [task] = queue.begin('web1:1:a')
        queue.finish('web1:1:a', task, outcome, **more)
    answer = explain(tid)
    assert answer.verdict == 'cancelled' and answer.reasons['cancelled']['attempt'] == 2
    assert answer.reasons['cancelled']['text'].endswith(' on web1:1:a, attempt 2: cancelled')


def test_moved(explain, queue, idle):
    """The history says where a task has gone that was moved to another queue."""
    queue.redis.xadd(queue.history, {'r': record('1600000000000-0', outcome='cancelled', cause='cancelled',
                                                 reason='moved to mails as 1600000000001-0')})
    answer = explain('1600000000000-0')
    assert answer.verdict == 'cancelled'
    assert answer.reasons['cancelled']['text'].endswith(': cancelled: moved to mails as 1600000000001-0')


def test_unknown(explain, queue, idle):
    """A task that nobody knows, also if its id has no form of one."""
    for name in '1769860800000-0', '1769860', 'nobody':
        answer = explain(name)
        assert (answer.code, answer.verdict, answer.blocking) == (UNKNOWN, 'unknown', ['unknown'])


def test_prefixes(leat, explain, queue, idle):
    """The prefix of one id is enough, of a dead letter or an ended task; a whole id and a label are preferred
    to it."""
    def tid_of(name):
        return explain(name).page['task']['tid']
    dead = add(queue)
    [task] = queue.begin('web1:1:a')
    queue.finish('web1:1:a', task, 'dead', cause='exit', status='65')
    queue.redis.xadd(queue.history, {'r': record('1600000000000-0')})
    queue.redis.xadd(queue.history, {'r': record('1600000000001-0')})
    assert tid_of(dead[:13]) == dead and explain(dead[:13]).verdict == 'dead'
    assert tid_of('1600000000000') == '1600000000000-0' and explain('1600000000000').verdict == 'succeeded'
    done = leat('explain', '160000000000')
    assert done.returncode == EX_USAGE and 'several ids begin so' in done.stderr
    labelled = add(queue, id='1600000000000')
    assert tid_of('1600000000000') == labelled


def test_label_of_a_dead_letter(explain, queue, idle):
    """The label of a dead letter finds the newest one, as with leat show."""
    for _ in range(2):
        tid = add(queue, id='order-17')
        [task] = queue.begin('web1:1:a')
        queue.finish('web1:1:a', task, 'dead', cause='exit', status='65')
    answer = explain('order-17')
    assert answer.verdict == 'dead' and answer.page['task']['tid'] == tid


def test_before_the_index_is_complete(explain, queue, idle):
    """As long as tasks of an older library are not indexed, the answer does not claim that there is none."""
    tid = lost_once(queue, 1)[0]
    queue.forget_index()
    answer = explain(tid)
    assert answer.code == UNKNOWN and 'still being indexed' in text_of(answer, 'unknown')


# ---- the command

def test_text(leat, queue, idle):
    """The text has a line for each reason; those that block come first, and bytes of tasks are escaped."""
    queue.conf_set('lane:x\x1b[31m', '1, 1')
    [_, tid] = queue.add(*[{**TASK, 'lane': 'x\x1b[31m', 'id': 'red\x1b'}, {**TASK, 'lane': 'x\x1b[31m'}])
    queue.begin('web1:1:a')
    queue.gate('paused', 1, 'alice@web1')
    done = leat('explain', tid)
    assert done.returncode == BLOCKED and done.stderr == ''
    first, *lines = done.stdout.splitlines()
    assert first == f'task {tid}: blocked'
    assert lines[0].startswith('  ! the queue was paused ') and all(line.startswith('  - ') for line in lines[1:])
    assert '\x1b' not in done.stdout and '\\x1b[31m runs 1 of 1' in done.stdout
    assert leat('explain', 'red\x1b').stdout.splitlines()[0].startswith('task red\\x1b, ')
    assert leat('explain').stdout.splitlines()[0] == 'queue emails: blocked'


def test_nothing_is_written(leat, queue, idle, client):
    """The command changes no key, whatever it explains, and calls a function that may not write."""
    queue.conf_set('rate', '2/m')
    queue.conf_set('lane:a', '1, 1, 2/m')
    tids = queue.add(*[{**TASK, 'lane': 'a', 'expires': queue.now() // 1000 - 5}] * 2, TASK)
    # a clock that was set back leaves times that a writing function would repair
    client.hset(queue.stats, mapping={'tat': queue.now() * 2000, 't:a': queue.now() * 2000})
    client.hset(queue.conf, 'hold_until', queue.now() * 2)

    def dump():
        return {key: client.dump(key) for key in client.keys('*')}
    before = dump()
    for words in [], ['--lane', 'a'], *([tid] for tid in tids), ['none']:
        assert leat('explain', *words).returncode in (RUNS, BLOCKED, UNKNOWN)
    assert dump() == before
    words = [len(queue.keys), *queue.keys, queue.group, 'queue', '']
    assert client.execute_command('FCALL_RO', 'leat_explain', *words)[0] == 1


@pytest.mark.parametrize('words', [['1-1', '2-2'], ['--lane', 'a', '1-1']])
def test_usage(leat, queue, words):
    """One thing at a time."""
    done = leat('explain', *words)
    assert done.returncode == EX_USAGE and 'give one task id, or --lane, or nothing' in done.stderr


def test_many_tasks_cost_nothing(queue, idle, client):
    """The function looks up what it needs: with many tasks of every kind it takes no longer than with few."""
    def cost(*args):
        best = None
        for _ in range(20):
            client.execute_command('CONFIG', 'RESETSTAT')
            queue.call('explain', queue.group, *args)
            stats = client.info('commandstats')
            spent = stats['cmdstat_fcall']['usec']
            calls = sum(row['calls'] for row in stats.values())
            best = (spent, calls) if best is None else min(best, (spent, calls))
        return best
    queue.conf_set('lane:a', '1, 1')
    some = queue.add(*[{**TASK, 'lane': 'a', 'unique': f'k{i}'} for i in range(3)])
    queue.begin('web1:1:a')
    queue.add(*[TASK] * 10)
    few = cost('task', some[2])[1], cost('queue', '')[1], cost('lane', 'a')[1]
    for part in range(20):
        queue.add(*[{**TASK, 'lane': 'a', 'unique': f'{part}-{i}'} for i in range(250)])
        queue.add(*[TASK] * 250, due='+600000')
        queue.add(*[TASK] * 250)
    assert (cost('task', some[2])[1], cost('queue', '')[1], cost('lane', 'a')[1]) == few


def test_as_operator_of_the_acl(queue, client, leat, idle):
    """See test_redis_acl: here only that a user without the right is told so."""
    client.execute_command('ACL', 'SETUSER', 'nobody', 'on', '>x', '+@connection', '+info', '+time')
    done = leat('explain', config={'redis': {'user': 'nobody', 'password': 'x'}})
    assert done.returncode == 77 and done.stdout == ''


# ---- real workers

def test_a_worker_with_a_broken_host(daemon, explain, queue):
    """A worker whose host lacks the program says in its heartbeat what is missing."""
    daemon(BROKEN).wait_ready()
    [tid] = queue.add({'x': '1'})
    answer = wait_until(lambda: 'host-fault' in (found := explain(tid)).blocking and found)
    trouble = answer.reasons['host-fault']['trouble']
    assert 'this host cannot run tasks' in trouble and '/none/program' in trouble


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which('unshare'), reason='needs root, to mount over /proc')
def test_a_worker_under_pressure(daemon, explain, queue, folder):
    """A worker under pressure says which limit is exceeded."""
    load = folder / 'loadavg'
    load.write_text(f'{os.cpu_count() * 9.0:.2f} 0.00 0.00 1/200 4711\n')
    one = daemon({'admission': {'load': '100%'}}, start=False)
    one.prefix = ['unshare', '--mount', 'sh', '-c', f'mount --bind {load} /proc/loadavg && exec "$@"', 'sh']
    one.start().wait_ready()
    tid = add(queue)
    answer = wait_until(lambda: (found := explain(tid)).blocking == ['pressed'] and found)
    assert answer.reasons['pressed']['trouble'] == 'host under pressure: load'


def test_a_full_worker(daemon, explain, queue, latch, client):
    """A worker with one slot that is taken; when it is free, the next task runs."""
    daemon({'queue': {'concurrency': 1}}).wait_ready()
    wait_blocked(client)
    first = add(queue, command=latch.command)
    wait_until(lambda: explain(first).verdict == 'runs')
    second = add(queue, result_ttl='1h')
    answer = wait_until(lambda: 'full' in (found := explain(second)).reasons and found)
    assert (answer.code, answer.verdict) == (RUNS, 'will-run')
    latch.open()
    wait_until(lambda: explain(second).verdict == 'succeeded')
