"""Cancelled tasks on the real daemon: a running task gets TERM, grace and KILL and is not retried; a task
that has not started never does. Whatever fails meanwhile, the task ends as cancelled."""
import signal

import pytest

from harness.polling import wait_until
from harness.short_leases import pass_time, wait_blocked, wait_empty
from harness.tasks import wait_file

CALM = {'queue': {'lease': '10m', 'scan': '10m', 'concurrency': 1}}  # a heartbeat every 200 s
BRISK = {'queue': {'lease': '6s', 'scan': '300ms'}}


@pytest.fixture(autouse=True)
def calm(base_config):
    base_config['queue'].update(CALM['queue'])
    base_config['task'] = {'kill_grace': '300ms'}
    base_config['retry'] = {'base': '50ms', 'jitter': 'none'}
    base_config['log'] = {'started': 'yes'}


def cancel(leat, *args):
    done = leat('cancel', *args)
    assert done.returncode == 0, done
    return done.stdout


def wait_cancelled(queue, count=1):
    """This many tasks ended as cancelled; there is no dead letter, and no cancel request is left."""
    wait_until(lambda: queue.counter('cancelled') >= count, 60,
               lambda: f'{count} cancelled: {queue.redis.hgetall(queue.stats)}, {queue.places()}')
    assert queue.counter('cancelled') == count and queue.letters() == []
    assert not queue.redis.exists(queue.cancel)


def wait_running(queue, count=1):
    wait_until(lambda: queue.redis.hlen(queue.running) == count, 20,
               lambda: f'{count} run: {queue.redis.hgetall(queue.running)}')


# ---- running tasks

@pytest.mark.parametrize('now', [False, True])
def test_running(daemon, queue, leat, heartbeats, now):
    """The worker learns of the cancel at its next heartbeat, or at once with --now: the task is killed and
    not retried, its names are free, and the log says so."""
    worker = daemon(None if now else BRISK).wait_ready()
    [tid] = queue.add({'command': heartbeats.task(600), 'id': 'label', 'unique': 'key'})
    heartbeats.wait_runs(1)
    assert 'it runs on' in cancel(leat, 'label', *['--now'] * now)
    wait_cancelled(queue)
    wait_empty(queue)
    heartbeats.wait_dead()
    worker.wait_log(f'task {tid}: attempt 1 ended: cancelled')
    assert f'task {tid}: terminating it: cancelled' in worker.log()
    assert queue.enqueue({'command': 'true', 'id': 'label', 'unique': 'key'})[0][0] == 'new'
    wait_empty(queue)
    assert len(heartbeats.runs()) == 1
    worker.terminate()
    assert worker.wait_exit() == 0
    assert '0 retried, 0 dead, 0 returned, 1 cancelled' in worker.log()


def test_a_task_that_ignores_term_is_killed(daemon, queue, leat, heartbeats):
    """SIGKILL follows SIGTERM after the grace."""
    worker = daemon().wait_ready()
    queue.add({'command': heartbeats.task(600, stubborn=True)})
    heartbeats.wait_runs(1)
    cancel(leat, '--now', queue.list('running')[0]['tid'].decode())
    wait_cancelled(queue)
    heartbeats.wait_dead()
    assert 'cancelled after' in worker.log()


def test_exit_0_after_term_is_no_success(daemon, queue, leat, folder):
    """A task that exits with 0 after SIGTERM counts as cancelled."""
    worker = daemon().wait_ready()
    [tid] = queue.add({'command': f"trap 'exit 0' TERM; touch {folder}/on; while :; do sleep 0.02; done"})
    wait_file(folder / 'on', 0)
    cancel(leat, '--now', tid)
    wait_cancelled(queue)
    assert queue.counter('succeeded') == 0
    worker.wait_log(f'task {tid}: attempt 1 ended: cancelled')


@pytest.mark.parametrize('code', [0, 1])
def test_ends_before_its_worker_learns(daemon, queue, leat, latch, code):
    """If the task ends before its worker learns of the cancel, success is success; a failure is not retried,
    and the log tells why."""
    worker = daemon().wait_ready()
    [tid] = queue.add({'command': f'{latch.wait}; exit {code}'})
    wait_running(queue)
    assert 'it runs on' in cancel(leat, tid)
    latch.open()
    wait_empty(queue)
    assert not queue.redis.exists(queue.cancel) and queue.letters() == []
    if code == 0:
        assert queue.counter('succeeded') == 1 and queue.counter('cancelled') == 0
    else:
        assert queue.counter('cancelled') == 1 and queue.counter('retried') == 0
        worker.wait_log(f'task {tid}: cancelled meanwhile; not retried')


def test_during_a_claim(daemon, queue, leat, proxy, through_proxy, heartbeats):
    """A task that is cancelled with --now after its claim, but before its worker has the reply, is killed as
    soon as the reply is there, not with the next heartbeat."""
    daemon(through_proxy).wait_ready()
    wait_blocked(queue.redis)
    trap = proxy.trap('leat_claim', 'after', 'hold', rb'\r\ns[1-9]\d*-\d+\r\n')
    [tid] = queue.add({'command': heartbeats.task(600)})
    trap.wait()
    assert 'at once' in cancel(leat, '--now', tid)
    trap.release()
    wait_cancelled(queue)
    heartbeats.wait_dead()


def test_during_a_renewal(daemon, queue, leat, proxy, through_proxy, heartbeats):
    """If a task is cancelled with --now while an older renewal waits for its reply, another renewal follows."""
    daemon({**through_proxy, 'queue': {'concurrency': 2}}).wait_ready()
    first, second = queue.add(*[{'command': heartbeats.task(600)}] * 2)
    heartbeats.wait_runs(2)
    trap = proxy.trap('leat_renew', 'after', 'hold')
    cancel(leat, '--now', first)
    trap.wait()
    cancel(leat, '--now', second)
    pass_time(0.1)  # for the wakeup
    trap.release()
    wait_cancelled(queue, 2)
    heartbeats.wait_dead()


def test_other_tasks_go_on(daemon, queue, leat, latch, heartbeats):
    """Only the cancelled task is killed."""
    daemon({'queue': {'concurrency': 3}}).wait_ready()
    queue.add({'command': latch.command}, {'command': latch.command})
    [tid] = queue.add({'command': heartbeats.task(600)})
    heartbeats.wait_runs(1)
    wait_running(queue, 3)
    cancel(leat, '--now', tid)
    wait_cancelled(queue)
    assert queue.redis.hlen(queue.running) == 2
    latch.open()
    wait_empty(queue)
    assert queue.counter('succeeded') == 2 and queue.counter('retried') == 0


def test_of_a_batch(daemon, queue, leat, folder):
    """If one task of a batch is cancelled, its process is killed; the other tasks run again with no attempt
    used, and the cancelled one does not."""
    script = f'cat > {folder}/$$; if [ $(ls {folder} | grep -c "^[0-9]") = 1 ]; then exec sleep 600; fi'
    tids = queue.add(*[{'payload': str(number)} for number in range(3)])
    worker = daemon({'task': {'command': script, 'batch': 10, 'batch_format': 'lines',
                              'kill_grace': '300ms'}}).wait_ready()
    wait_running(queue, 3)
    wait_until(lambda: any(path.name.isdigit() and path.stat().st_size == 6 for path in folder.iterdir()))
    cancel(leat, '--now', tids[1])
    wait_cancelled(queue)
    wait_empty(queue)
    assert queue.counter('succeeded') == 2 and queue.counter('retried') == 0
    read = sorted(path.read_text() for path in folder.iterdir() if path.name.isdigit())
    assert read[0] == '0\n1\n2\n' and '1' not in ''.join(read[1:])
    assert 'attempt 2' not in worker.log()


# ---- tasks that have not started

def test_waiting_for_its_batch(daemon, queue, client, leat, folder):
    """A claimed task that waits for its batch never starts, and the others do."""
    worker = daemon({'queue': {'lease': '600s'}, 'task': {
        'command': f'cat >> {folder}/read', 'batch': 4, 'batch_wait': '60s', 'kill_grace': '300ms'}})
    worker.wait_ready()
    wait_blocked(client)
    tids = queue.add({'payload': 'first'}, {'payload': 'second'})
    wait_running(queue, 2)
    cancel(leat, '--now', tids[0])
    wait_cancelled(queue)
    worker.wait_log(f'task {tids[0]}: not started: cancelled')
    queue.add(*[{'payload': 'more'}] * 3)
    wait_empty(queue)
    assert (folder / 'read').read_text() == 'second\nmore\nmore\nmore\n'
    assert f'task {tids[0]}: attempt' not in worker.log()


def test_deferred_poison_candidate(daemon, queue, leat, latch):
    """A poison candidate that runs alone waits until its worker is empty. If it is cancelled it is gone at once,
    and the worker takes other tasks beside the running one."""
    queue.register('gone', max_crashes=2)
    [tid] = queue.add({'command': 'true'})
    queue.begin('gone')
    queue.expire()
    worker = daemon({'queue': {'lease': '60s', 'scan': '300ms', 'concurrency': 2}})
    queue.add({'command': latch.command})
    queue.scan('gone')
    queue.redis.rename(queue.go, 'aside')
    queue.redis.xgroup_create(queue.go, queue.group, '0', mkstream=True)
    worker.wait_ready().wait_log('attempt 1 started')
    for _, fields in queue.redis.execute_command('XRANGE', 'aside', '-', '+'):
        queue.redis.execute_command('XADD', queue.go, '*', *fields)
    queue.redis.delete('aside')
    wait_until(lambda: len(queue.pending()) == 2, 10, lambda: f'it is held: {queue.places()}')
    assert cancel(leat, tid) == f'{tid}: cancelled\n'
    queue.add({'command': 'true'})
    wait_until(lambda: queue.counter('succeeded') == 1, 20, 'another one runs beside')
    assert queue.redis.hlen(queue.running) == 1
    latch.open()
    wait_empty(queue)
    assert f'task {tid}: attempt' not in worker.log() and queue.counter('cancelled') == 1


def test_delivered_to_a_blocked_worker(daemon, queue, leat, proxy, through_proxy):
    """A task that was cancelled on its way to a blocked worker never starts, and the worker goes on."""
    worker = daemon(through_proxy).wait_ready()
    wait_blocked(queue.redis)
    trap = proxy.trap('XREADGROUP', 'after', 'hold')
    [tid] = queue.add({'command': 'true'})
    trap.wait()
    assert cancel(leat, tid) == f'{tid}: cancelled\n'
    trap.release()
    queue.add({'command': 'true'})
    wait_until(lambda: queue.counter('succeeded') == 1)
    wait_empty(queue)
    assert f'task {tid}' not in worker.log()


def test_everywhere_else(daemon, queue, leat, latch, heartbeats):
    """A task that is ready, delayed, between two attempts, in a lane, or waits for a unique key is gone at
    once and never runs."""
    daemon({'retry': {'base': '10m', 'cap': '10m', 'jitter': 'none'}}).wait_ready()
    tids = []
    failing = queue.add({'command': 'exit 1'})
    wait_until(lambda: queue.counter('retried') == 1)
    queue.add({'command': latch.command, 'unique': 'key'})
    wait_running(queue)
    never = {'command': heartbeats.task(0.1)}
    tids += queue.add(never, dict(never, id='label'))
    tids += queue.add(dict(never, unique='other'), due='+600000')
    tids += queue.add(dict(never, lane='blue'), dict(never, lane='green'))
    tids += queue.add(dict(never, unique='key', unique_next='1'))
    said = cancel(leat, *failing, *tids)
    assert said.count(': cancelled\n') == 7
    latch.open()
    wait_empty(queue)
    assert queue.counter('cancelled') == 7 and queue.counter('succeeded') == 1 and heartbeats.runs() == []


# ---- failures in between

@pytest.mark.parametrize('restarted', [False, True])
def test_killed_worker(daemon, queue, leat, heartbeats, restarted):
    """If the worker is killed after the cancel, the task does not run again, wherever it would have."""
    first = daemon({'queue': {'lease': '20s', 'scan': '300ms'}}).wait_ready()
    [tid] = queue.add({'command': heartbeats.task(600), 'id': 'label', 'unique': 'key'})
    heartbeats.wait_runs(1)
    first.stop()
    assert cancel(leat, tid) == f'{tid}: asked, it runs on {next(iter(queue.worker_heartbeats()))}\n'
    first.kill9()
    second = daemon({'queue': {'lease': '20s', 'scan': '300ms'}}, start=not restarted)
    if restarted:
        second.start()
    wait_cancelled(queue)
    wait_empty(queue)
    second.wait_log(f'task {tid}: not started: cancelled')
    assert queue.counter('crashes') == 0 and len(heartbeats.runs()) == 1
    assert queue.enqueue({'command': 'true', 'id': 'label', 'unique': 'key'})[0][0] == 'new'


@pytest.mark.parametrize('name', ['command', 'wakeup', ''])
def test_cut_connection(daemon, queue, leat, proxy, through_proxy, heartbeats, name):
    """If connections break at the cancel, the reply to the registration tells what the wakeup would have
    told."""
    daemon({**through_proxy, 'redis': {**through_proxy['redis'], 'backoff_base': '50ms'}}).wait_ready()
    [tid] = queue.add({'command': heartbeats.task(600)})
    heartbeats.wait_runs(1)
    proxy.refuse()
    proxy.cut(name)
    cancel(leat, '--now', tid)
    proxy.accept()
    if name == 'wakeup':
        # the other connections are closed only with this one
        proxy.cut('')
    wait_cancelled(queue)
    heartbeats.wait_dead()


def test_stopping_worker(daemon, queue, leat, heartbeats):
    """A task that is cancelled while its worker drains is killed and not requeued."""
    worker = daemon({'shutdown': {'drain': '10m'}}).wait_ready()
    [tid] = queue.add({'command': heartbeats.task(600)})
    heartbeats.wait_runs(1)
    worker.signal(signal.SIGTERM)
    worker.wait_log('may finish')
    cancel(leat, '--now', tid)
    assert worker.wait_exit() == 0
    wait_cancelled(queue)
    wait_empty(queue)
