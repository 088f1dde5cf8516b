"""leat wait prints the ends of few and of many tasks as they come, across failures of Redis."""
import json
import os
import subprocess
import time

import pytest

from harness import processes
from harness.daemon import program, write_config
from harness.functions.results import key_of, result_of
from harness.latch import Latch
from harness.polling import PATIENCE_S
from harness.queue import Queue, text
from harness.short_leases import pass_time
from harness.tasks import wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')

EX_UNAVAILABLE, EX_TEMPFAIL = 69, 75


@pytest.fixture
def wait_awaited(client, queue, wait_until):
    """A function that waits until a client awaits this many tasks in a blocking read."""
    def wait(count=1):
        wait_until(lambda: client.hlen(queue.awaited) == count and any(
            one['cmd'] == 'xread' and 'b' in one['flags'] and not one['name']
            for one in client.client_list()), 20, lambda: f'{client.hgetall(queue.awaited)}')
    return wait


def latch(folder, name='latch'):
    """A shell line that waits until the test opens the latch, with what follows."""
    one = Latch(folder / name)
    return one.wait, one.open


# ---- one task

def test_success_and_death(daemon, queue, start, wait_awaited, folder):
    """Each task gets a line as soon as it has ended; the exit status is 1 if one is dead."""
    daemon().wait_ready()
    line, go = latch(folder)
    good, bad = queue.add({'command': f'{line}; exit 0'},
                          {'command': 'exit 3', 'max_attempts': 2})
    waiting = start('wait', good, bad)
    wait_letters(queue)
    wait_awaited()
    go()
    assert waiting.ended() == 1
    rows = {row[0]: row[1:4] for row in waiting.lines()}
    assert rows == {good: ['succeeded', 'exit:0', '1'], bad: ['dead', 'exit:3', '2']}
    assert waiting.error == ''


def test_a_refused_task_had_no_attempt(daemon, queue, leat):
    """A task that the worker refuses was not tried: its result says so, as its dead letter does."""
    daemon().wait_ready()
    [tid] = queue.add({'command': 'true', 'timeout': 'soon', 'result_ttl': '1m'})
    wait_letters(queue)
    assert ['attempts', '0'] in [line.split() for line in leat('dead', 'show', tid).stdout.splitlines()]
    assert leat('wait', tid).stdout.split()[:4] == [tid, 'dead', 'refused', '0']
    assert json.loads(leat('wait', '--json', tid).stdout)['attempts'] == 0


def test_all_succeed(daemon, queue, start, folder, wait_awaited):
    """The exit status is 0 if all succeed; a task may be named twice, and by its label."""
    daemon().wait_ready()
    line, go = latch(folder)
    [tid] = queue.add({'command': line, 'id': 'order 17', 'result_ttl': '1m'})
    waiting = start('wait', 'order 17', tid, tid)
    wait_awaited()
    go()
    assert waiting.ended() == 0
    rows = waiting.lines()
    assert [row[:4] for row in rows] == [[tid, 'succeeded', 'exit:0', '1']] * 3
    assert sorted(row[5:] for row in rows) == [[], [], ['order', '17']]


def test_json(daemon, queue, start):
    """JSON has all that is known, one object per line."""
    daemon({'retry': {'success': '3'}}).wait_ready()
    [tid] = queue.add({'command': 'echo out; echo err >&2; exit 3', 'result_ttl': '1m', 'id': 'a'})
    wait_succeeded(queue, 1)
    waiting = start('wait', '--json', tid)
    assert waiting.ended() == 0
    row = json.loads(waiting.out)
    assert row.pop('worker').count(':') == 2
    assert 0 < row.pop('begun_ms') <= row.pop('ended_ms')
    assert 0 <= row.pop('duration_ms') < 20000
    assert set(row.pop('usage')) >= {'cpu_us', 'max_rss'}
    assert row == {'tid': tid, 'state': 'succeeded', 'cause': 'success', 'status': '3',
                   'attempts': 1, 'stdout': 'out\n', 'stderr': 'err\n'}


def test_tasks_that_ended_before(daemon, queue, leat, wait_until):
    """A result or a dead letter gives the outcome; without either, the task is unknown, like one that never
    existed."""
    daemon().wait_ready()
    kept, forgotten, dead, brief = queue.add(
        {'command': 'true', 'result_ttl': '1h'}, {'command': 'true'},
        {'command': 'kill -9 $$', 'max_attempts': 1}, {'command': 'true', 'result_ttl': '250ms'})
    wait_letters(queue)
    wait_succeeded(queue, 3)
    wait_until(lambda: result_of(queue, brief) is None, 10)
    done = leat('wait', kept, forgotten, dead, brief, '17-1', 'label')
    assert done.returncode == 1
    rows = [line.split() for line in done.stdout.splitlines()]
    assert {row[0]: row[1:3] for row in rows} == {
        kept: ['succeeded', 'exit:0'], forgotten: ['unknown', '-'], brief: ['unknown', '-'],
        dead: ['dead', 'killed:SIGKILL'], '17-1': ['unknown', '-'], 'label': ['unknown', '-']}
    assert not queue.redis.exists(queue.awaited)


@pytest.mark.parametrize('place', ['delayed', 'ready', 'running'])
def test_cancelled(queue, start, wait_awaited, place):
    """A cancelled task is reported in whatever state it was."""
    queue.register('w1')
    [tid] = queue.add({'command': 'x'}, due='+600000' if place == 'delayed' else 0)
    task = queue.begin('w1')[0] if place == 'running' else None
    waiting = start('wait', tid)
    wait_awaited()
    queue.call('cancel', queue.group, 0, tid, '' if place == 'delayed' else 's' + tid)
    if task:
        queue.finish('w1', task, 'cancelled')
    assert waiting.ended() == 1
    assert waiting.lines()[0][:3] == [tid, 'cancelled', '-']


def test_expired(daemon, queue, start):
    """A task that was not started in time is dead."""
    [tid] = queue.add({'command': 'x', 'expires': '1'})
    daemon().wait_ready()
    waiting = start('wait', tid)
    assert waiting.ended() == 1
    assert waiting.lines()[0][:3] == [tid, 'dead', 'expired']


def test_lost_worker(daemon, queue, start, wait_awaited, folder, wait_until):
    """If the worker is killed, the task runs again elsewhere and then ends."""
    first = daemon({'queue': {'lease': '8s'}}).wait_ready()
    [tid] = queue.add({'command': f'[ -e {folder}/x ] || {{ touch {folder}/x; sleep 60; }}'})
    wait_until(lambda: (folder / 'x').exists())
    waiting = start('wait', tid)
    wait_awaited()
    first.kill9()
    processes.end_orphans()
    daemon({'queue': {'lease': '8s'}}).wait_ready()
    assert waiting.ended() == 0
    assert waiting.lines()[0][:2] == [tid, 'succeeded']


def test_retried_dead_letter(queue, start, wait_awaited):
    """For a retried dead letter, leat waits for the new end, and ignores the former one."""
    queue.register('w1')
    [tid] = queue.add({'command': 'x', 'result_ttl': '1h'})
    queue.finish('w1', queue.begin('w1')[0], 'dead', cause='exit', status='1')
    queue.dead_retry(queue.letters()[0][0])
    waiting = start('wait', tid)
    wait_awaited()
    queue.finish('w1', queue.begin('w1')[0])
    assert waiting.ended() == 0


# ---- many tasks

def test_ids_from_stdin(daemon, queue, start, folder):
    """Ids come one per line; empty lines are skipped, and the last one needs no newline."""
    daemon().wait_ready()
    tids = queue.add(*[{'command': 'true', 'result_ttl': '1m'}] * 3)
    (folder / 'ids').write_text(f'{tids[0]}\n\n{tids[1]}\n{tids[2]}')
    with open(folder / 'ids', 'rb') as ids:
        waiting = start('wait', '-', stdin=ids)
    assert waiting.ended() == 0
    assert sorted(row[0] for row in waiting.lines()) == sorted(tids)


def test_no_ids_from_stdin(start, queue):
    """Without any id the wait is over."""
    assert start('wait', '-').ended() == 0


def test_many_tasks(daemon, queue, start, wait_awaited):
    """One wait covers 200 tasks while a worker runs them."""
    tids = queue.add(*[{'command': 'true'}] * 200)
    waiting = start('wait', *tids)
    wait_awaited(200)
    daemon({'queue': {'concurrency': 8}}).wait_ready()
    assert waiting.ended(300) == 0
    rows = waiting.lines()
    assert sorted(row[0] for row in rows) == sorted(tids)
    assert {row[1] for row in rows} == {'succeeded'}


def test_more_tasks_than_one_read_takes(queue, start, wait_awaited, wait_until):
    """With 2,500 tasks, more than one blocking read takes, each end is reported, wherever its key is in the
    list."""
    queue.register('w1')
    tids = [tid for _ in range(5) for tid in queue.add(*[{'command': 'x'}] * 500)]
    waiting = start('wait', *tids)
    wait_awaited(2500)
    tasks = [task for _ in range(3) for task in queue.begin('w1', 1000)]
    for at in range(2400, -1, -100):
        queue.finish_many('w1', [queue.result(task.token) for task in tasks[at:at + 100]])
    assert waiting.ended(60) == 0
    assert sorted(row[0] for row in waiting.lines()) == sorted(tids)
    assert not queue.redis.exists(queue.awaited)


def test_lines_come_at_once(daemon, queue, start, wait_awaited, folder, wait_until):
    """A task that has ended is reported while others run."""
    daemon().wait_ready()
    line, go = latch(folder)
    first, go_first = latch(folder, 'first')
    slow, quick = queue.add({'command': line}, {'command': first})
    waiting = start('wait', slow, quick)
    wait_awaited(2)
    go_first()
    wait_until(lambda: waiting.lines() and waiting.lines()[0][0] == quick, 20)
    go()
    assert waiting.ended() == 0


# ---- blocking, time and failures

def calls(client):
    """How often each command ran that a waiting leat might use."""
    stats = client.info('commandstats')
    return [stats.get('cmdstat_' + name, {}).get('calls', 0) for name in ('xread', 'fcall', 'xrange')]


def test_nothing_is_polled(queue, start, wait_awaited, wait_until, client):
    """While no task ends, leat sends nothing."""
    queue.register('w1')
    tids = queue.add(*[{'command': 'x'}] * 2)
    waiting = start('wait', *tids)
    wait_awaited(2)
    everything = start('wait', '--all')
    wait_awaited(3)

    def is_quiet(seconds):
        before = calls(client)
        pass_time(seconds)
        return calls(client) == before

    # a new wait checks the queue once more, and a second later whether any task can start
    wait_until(lambda: is_quiet(1.2))
    assert is_quiet(1)
    assert waiting.running() and everything.running()


def test_timeout(queue, leat):
    """At the timeout leat exits with 75 and a message; tasks that had ended were reported."""
    queue.register('w1')
    done, left = queue.add({'command': 'x', 'result_ttl': '1m'}, {'command': 'x'})
    queue.finish('w1', queue.begin('w1')[0])
    result = leat('wait', '--timeout', '5', done, left)
    assert result.returncode == EX_TEMPFAIL
    assert result.stdout.startswith(done) and left not in result.stdout
    assert result.stderr == 'leat: 1 of 2 tasks did not end within 5s\n'
    result = leat('wait', '--timeout', '5s', '--all')
    assert result.returncode == EX_TEMPFAIL
    assert '1 ready, 0 running, 0 retrying' in result.stderr


@pytest.mark.parametrize('args', [[], ['--all', '1-1'], ['--timeout', 'x', '1-1'], ['--jsn', '1-1']])
def test_usage(leat, args):
    """A wrong command line is refused before leat connects."""
    assert leat('wait', *args, config={'redis': {'socket': '/nowhere'}}).returncode == 64


def test_redis_is_away_at_first(leat):
    """If Redis is away at the start, leat fails like all commands."""
    done = leat('wait', '1-1', config={'redis': {'socket': '/nowhere'}})
    assert done.returncode == EX_UNAVAILABLE and 'cannot connect' in done.stderr


@pytest.mark.parametrize('what', ['ids', '--all'])
def test_broken_connection(queue, start, wait_awaited, proxy, through_proxy, wait_until,
                           what):
    """After a broken connection leat connects again, and reports the tasks that ended meanwhile."""
    queue.register('w1')
    tids = queue.add(*[{'command': 'x'}] * 3)
    tasks = queue.begin('w1', 3)
    config = {'redis': {**through_proxy['redis'], 'backoff_cap': '200ms'}}
    waiting = start('wait', *(tids if what == 'ids' else ['--all']), config=config)
    wait_awaited(3 if what == 'ids' else 1)
    queue.finish('w1', tasks[0])
    if what == 'ids':
        wait_until(lambda: len(waiting.lines()) == 1, 20)
    proxy.refuse()
    wait_until(lambda: '; retrying' in waiting.error, 20)
    queue.finish('w1', tasks[1])
    pass_time(0.5)
    proxy.accept()
    wait_until(lambda: len(proxy.connections) == 1, 20)
    if what == 'ids':
        wait_until(lambda: len(waiting.lines()) == 2, 20)
    queue.finish('w1', tasks[2])
    assert waiting.ended() == 0
    assert waiting.error.count('\n') == 1


def test_silent_connection(queue, start, wait_awaited, proxy, through_proxy, wait_until):
    """--timeout also counts while Redis is away."""
    queue.register('w1')
    [tid] = queue.add({'command': 'x'})
    waiting = start('wait', '--timeout', '8s', tid, config=through_proxy)
    wait_awaited()
    proxy.refuse()
    assert waiting.ended() == EX_TEMPFAIL
    assert '1 of 1 tasks did not end' in waiting.error


@pytest.mark.parametrize('what', ['id', '--all'])
def test_timeout_without_an_answer(queue, start, wait_awaited, proxy, through_proxy, what):
    """--timeout ends the wait soon also if Redis does not answer."""
    queue.register('w1')
    [tid] = queue.add({'command': 'x'})
    config = {'redis': {**through_proxy['redis'], 'command_timeout': '1h'}}
    waiting = start('wait', '--timeout', '8s', tid if what == 'id' else what, config=config)
    wait_awaited()
    proxy.silence()
    assert waiting.ended() == EX_TEMPFAIL
    assert 'after 8s' in waiting.error or '1 of 1 tasks did not end' in waiting.error


def test_timeout_without_any_answer(queue, start, proxy, through_proxy):
    """If Redis has never told how full the queue is, leat does not say that it is not empty."""
    queue.register('w1')
    trap = proxy.trap('leat_status', action='hold')
    config = {'redis': {**through_proxy['redis'], 'command_timeout': '2s'}}
    waiting = start('wait', '--timeout', '1s', '--all', config=config)
    trap.wait()
    assert waiting.ended() == EX_TEMPFAIL
    assert waiting.error.endswith('leat: Redis did not tell within 1s whether the queue is empty\n')
    trap.release()


def test_restarted_redis(redis_servers, wait_until, start):
    """If Redis is killed and comes back with its tasks, the wait goes on."""
    server = redis_servers(appendonly='yes', appendfsync='always')
    queue = Queue(server.client()).load()
    queue.register('w1')
    [tid] = queue.add({'command': 'x'})
    config = {'redis': {'socket': server.socket, 'backoff_cap': '200ms'}}
    waiting = start('wait', tid, config=config)
    wait_until(lambda: queue.redis.hlen(queue.awaited) == 1, 20)
    server.kill()
    wait_until(lambda: '; retrying' in waiting.error, 20)
    server.restart()
    queue = Queue(server.client()).load()
    queue.finish('w1', queue.begin('w1')[0])
    assert waiting.ended() == 0


@pytest.mark.parametrize('args', [['wait', '1-1'], ['attach', '1-1']])
def test_functions_that_only_an_administrator_loads(client, queue, wait_until, start, args):
    """If the functions are missing and load_library is never, leat says what to do, and waits until they are
    there."""
    client.function_delete('leat')
    waiting = start(*args, config={'queue': {'load_library': 'never'}, 'redis': {'backoff_cap': '200ms'}})
    wait_until(lambda: '; retrying; load the function library: run leat init' in waiting.error, 20)
    queue.load()
    assert waiting.ended() in (1, 125)
    assert waiting.error.count('retrying') == 1


@pytest.mark.parametrize('args, status', [
    (['wait', '1-1'], EX_UNAVAILABLE), (['wait', '--all'], EX_UNAVAILABLE), (['attach', '1-1'], 125)])
def test_a_replica_by_name(redis_servers, start, args, status):
    """If the configuration names a server that is a replica, waiting would not end: leat says so and exits."""
    server = redis_servers()
    Queue(server.client()).load()
    server.client().replicaof('127.0.0.1', '1')
    waiting = start(*args, config={'redis': {'socket': server.socket, 'backoff_cap': '200ms'}})
    assert waiting.ended() == status
    assert 'this server is not the master of the queue: set [redis] to the master' in waiting.error


@pytest.mark.parametrize('what', ['ids', '--all'])
def test_a_server_that_becomes_a_replica(redis_servers, wait_until, start, what):
    """If a server that leat has waited at loses its role, it may get it back: the wait goes on."""
    server = redis_servers()
    queue = Queue(server.client()).load()
    queue.register('w1')
    [tid] = queue.add({'command': 'x'})
    waiting = start('wait', tid if what == 'ids' else '--all',
                    config={'redis': {'socket': server.socket, 'backoff_cap': '200ms'}})
    wait_until(lambda: queue.redis.hlen(queue.awaited) == 1, 20)
    server.client().replicaof('127.0.0.1', '1')
    server.client().client_kill_filter(_type='normal', skipme=True)
    wait_until(lambda: '; retrying' in waiting.error, 20)
    server.client().replicaof('no', 'one')
    queue.finish('w1', queue.begin('w1')[0])
    assert waiting.ended() == 0


def test_deleted_by_hand(queue, start, wait_awaited, proxy, through_proxy):
    """A task that was deleted by hand is noticed at the next check, and is unknown."""
    queue.register('w1')
    [tid] = queue.add({'command': 'x'})
    waiting = start('wait', tid, config=through_proxy)
    wait_awaited()
    queue.redis.xdel(queue.stream, tid)
    proxy.cut()
    assert waiting.ended() == 1
    assert waiting.lines()[0][:3] == [tid, 'unknown', '-']


def test_closed_pipe(queue, folder, base_config):
    """leat ends if nothing reads its lines."""
    queue.register('w1')
    first, _ = queue.add({'command': 'x', 'result_ttl': '1m'}, {'command': 'x'})
    path = write_config(folder / 'pipe.ini', base_config)
    argv = [program('leat'), '-c', str(path), 'wait', first, '17-1']
    reader, writer = os.pipe()
    with subprocess.Popen(argv, stdout=writer, stderr=subprocess.PIPE) as process:
        os.close(reader)
        os.close(writer)
        queue.finish('w1', queue.begin('w1')[0])
        assert process.wait(timeout=4 * PATIENCE_S) == 74


def test_a_result_that_is_broken(queue, start, wait_awaited, client):
    """Foreign content of a result's stream does not crash leat."""
    queue.register('w1')
    [tid] = queue.add({'command': 'x'})
    waiting = start('wait', tid)
    wait_awaited()
    client.xadd(key_of(queue, 'result', tid), {'state': 'odd', 'attempt': 'many', 'status': b'\xff'})
    assert waiting.ended() == 1
    assert waiting.lines()[0][1:4] == ['dead', ':\\xff', '-']


@pytest.mark.parametrize('command', [['wait', '1-1'], ['wait', '--all'], ['run', 'true']])
def test_rights(daemon, queue, client, leat, command):
    """The queue's keys suffice; without the keys of results, leat says that Redis denies it."""
    daemon().wait_ready()
    client.execute_command('ACL', 'SETUSER', 'all', 'on', '>a', '+@all', '-@admin', '~emails', '~{emails}:*')
    client.execute_command('ACL', 'SETUSER', 'some', 'on', '>b', '+@all', '-@admin', '~emails',
                           *['~' + key for key in queue.keys])
    done = leat(*command, config={'redis': {'user': 'all', 'password': 'a'}})
    assert done.returncode == (1 if '1-1' in command else 0), done.stderr
    queue.add({'command': 'sleep 600'})
    done = leat(*command, config={'redis': {'user': 'some', 'password': 'b'}})
    assert done.returncode == (125 if command[0] == 'run' else 77) and 'ACL' in done.stderr, done.stderr


# ---- the whole queue

def test_all(daemon, queue, start, wait_awaited, folder, wait_until):
    """--all waits until no task is ready, running or waiting for a retry; delayed tasks do not count."""
    line, go = latch(folder)
    queue.add({'command': line}, {'command': '[ $LEAT_ATTEMPT = 2 ]'}, *[{'command': 'true'}] * 20)
    queue.add({'command': 'x'}, due='+600000')
    waiting = start('wait', '--all')
    wait_awaited()
    daemon().wait_ready()
    wait_until(lambda: queue.counter('succeeded') == 21, 20)
    assert waiting.running()
    go()
    assert waiting.ended() == 0
    assert waiting.out == 'empty: 22 succeeded, 0 dead, 0 cancelled meanwhile; 1 delayed\n'


def test_all_with_dead_letters(daemon, queue, leat, start, wait_awaited, folder):
    """The exit status is 1 if tasks died during the wait, and 0 if they died before."""
    daemon({'retry': {'max_attempts': 1}}).wait_ready()
    queue.add({'command': 'exit 1'})
    wait_letters(queue)
    assert leat('wait', '--all').returncode == 0
    line, go = latch(folder)
    queue.add({'command': f'{line}; exit 1'}, {'command': 'true'})
    waiting = start('wait', '--all', '--json')
    wait_awaited()
    go()
    assert waiting.ended() == 1
    assert json.loads(waiting.out)['dead'] == 1


def test_all_of_an_empty_queue(leat, queue):
    """An empty queue ends the wait, also before the first worker."""
    done = leat('wait', '--all')
    assert (done.returncode, done.stderr) == (0, '')


def test_status_is_read_a_few_times_a_second(daemon, queue, start, client, wait_awaited):
    """However fast tasks end, leat reads the status only a few times a second."""
    queue.add(*[{'command': 'true'}] * 500)
    waiting = start('wait', '--all')
    wait_awaited()
    client.config_resetstat()
    begun = queue.now()
    daemon({'queue': {'concurrency': 8}}).wait_ready()
    assert waiting.ended(300) == 0
    # each status read comes with one read of the wakeup stream; the worker reads its own once
    assert calls(client)[0] <= (queue.now() - begun) / 250 + 4


# ---- why no task starts

@pytest.mark.parametrize('command', ['run', 'wait', 'all'])
def test_no_worker_reads_the_queue(daemon, queue, start, client, wait_until, command):
    """leat says once that no worker reads the queue. A worker that comes ends the wait, and nothing more is
    said."""
    words = {'run': ['run', 'true'], 'wait': ['wait', 'x'], 'all': ['wait', '--all']}[command]
    if command != 'run':
        queue.add({'command': 'true', 'id': 'x'})
    waiting = start(*words)
    wait_until(lambda: waiting.error, 10)
    daemon().wait_ready()
    assert waiting.ended() == 0
    assert waiting.error.startswith('leat: queue emails has no worker: ')
    assert len(waiting.error.splitlines()) == 1


@pytest.mark.parametrize('pause_name, heartbeat, said', [
    ('paused', '{}', 'is paused'), ('drain:w1', '{}', 'are drained'),
    (None, '{"state": "host-fault"}', 'can start tasks now')])
def test_no_task_can_start(queue, start, wait_until, pause_name, heartbeat, said):
    """leat says so if there are workers, but the queue is paused, their hosts are drained, or no worker can
    run tasks."""
    queue.register('w1:1:a', heartbeat=heartbeat)
    queue.add({'command': 'true', 'id': 'x'})
    if pause_name:
        queue.gate(pause_name, True)
    waiting = start('wait', '--timeout', '10m', 'x')
    wait_until(lambda: waiting.error, 10)
    assert said in waiting.error and len(waiting.error.splitlines()) == 1


def test_busy_workers_are_not_reported(queue, start, wait_until, client):
    """If workers are only busy, leat checks the queue and says nothing."""
    queue.register('w1:1:a')
    queue.add({'command': 'true', 'id': 'x'})
    client.config_resetstat()
    waiting = start('wait', 'x')
    wait_until(lambda: client.info('commandstats').get('cmdstat_xread', {}).get('calls', 0) >= 2, 10)
    assert waiting.error == ''


@pytest.mark.parametrize('how', ['enqueued', 'XADD', 'all'])
def test_tasks_that_expire_while_somebody_waits(start, queue, how):
    """leat wait ends tasks that have not started in time, if no worker does: by id, of a plain XADD too, and with
    --all."""
    task = {'command': 'true', 'expires': f'{queue.now() / 1000 + 0.5:.3f}'}
    tid = text(queue.redis.xadd(queue.stream, task)) if how == 'XADD' else queue.add(task)[0]
    wait = start('wait', *(['--all'] if how == 'all' else [tid]))
    wait.ended()
    [(_, letter)] = queue.letters()
    assert (text(letter['leat.tid']), letter['leat.cause']) == (tid, b'expired')


def test_a_task_that_runs_and_expires_before_its_retry(daemon, start, queue, wait_until, wait_awaited):
    """leat wait sees it, if the task has failed since and no worker runs any more."""
    worker = daemon({'retry': {'base': '10m', 'cap': '10m'}}).wait_ready()
    began = time.monotonic()
    [tid] = queue.add({'command': 'sleep 1; false', 'max_attempts': '2',
                       'expires': f'{queue.now() / 1000 + 5:.3f}'})
    wait_until(lambda: queue.redis.hlen(queue.running) == 1)
    waiting = start('wait', tid)
    wait_awaited()
    wait_until(lambda: queue.counter('retried') == 1)
    worker.terminate()
    assert waiting.ended() == 1 and time.monotonic() - began < 40
    assert waiting.lines()[0][:3] == [tid, 'dead', 'expired']
