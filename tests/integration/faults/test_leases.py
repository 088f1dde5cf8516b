"""Leases on the real daemon: which worker may run a task, until when, and what a stale worker can still do.

test_guard.py covers the processes of a daemon that was killed or stopped. If they must survive it here, so
that there is something stale to refuse, its guards are killed, too.
"""
import signal
import threading
import time

import pytest

from harness.polling import wait_until
from harness.short_leases import (LEASE_S, MARGIN_S, SCAN_S, assert_apart, boot_s, is_empty,
                                  pass_time, wait_blocked, wait_empty)
from harness.tasks import first_run

pytestmark = pytest.mark.usefixtures('short_leases')

NO_SCAN = {'queue': {'scan': '10m'}}  # so that the next claim is the one that is meant
TELLS = {'log': {'started': 'yes'}}
AGAIN_S = LEASE_S + SCAN_S + 1
NAMES_ENTRY = rb'\r\ns[1-9]\d*-\d+\r\n'  # a claim that names what a blocking read delivered


def add(queue, command, **fields):
    """Enqueues one task. Returns its tid."""
    return queue.add({'command': command, **fields})[0]


def test_kill_grace_longer_than_the_lease(daemon, queue, leat):
    """If the shared lease is set too short for kill_grace, nothing is claimed: the log says what to do, and
    leat status is not healthy and names it. With a longer lease the worker claims again."""
    worker = daemon({'queue': {'lease': '30s'}, 'task': {'kill_grace': '5s'}}).wait_ready()
    queue.call('conf', 'lease_ms', 4000)  # leat conf refuses it
    worker.wait_log('kill_grace (5s) is too long for the queue\'s lease (4s): claiming nothing; '
                    'set kill_grace to 1s800ms or less')
    add(queue, 'true')
    wait_until(lambda: 'no worker can take tasks: lease-short' in leat('status').stdout)
    assert leat('status').returncode == 1 and queue.counter('succeeded') == 0
    assert leat('conf', 'lease', '30s').returncode == 0
    wait_until(lambda: queue.counter('succeeded') == 1)


def test_the_scan_follows_the_shared_lease(daemon, queue, folder, late):
    """Without `scan`, a worker looks for expired leases four times in a lease of the queue, whatever lease its
    file has."""
    queue.register('gone', lease=int(LEASE_S * 1000))
    add(queue, f'touch {folder}/ran')
    assert queue.claim('gone')['tasks']
    claimed = boot_s()
    daemon({'queue': {'lease': '60s', 'scan': None}}).wait_ready()
    wait_until((folder / 'ran').exists)
    assert boot_s() - claimed < LEASE_S * 1.25 + 1 + late.start()


@pytest.mark.parametrize('lease', ['20s', '60s', '30m'])
def test_raised_lease(daemon, queue, client, leat, lease):
    """A longer lease ends no running task: the worker renews at once, and judges former deadlines by the former
    lease until that is answered."""
    worker = daemon().wait_ready()
    add(queue, 'exec tail -f /dev/null')
    wait_until(lambda: client.hlen(queue.running) == 1)
    assert leat('conf', 'lease', lease).returncode == 0
    pass_time(LEASE_S + 1)
    assert client.hlen(queue.running) == 1 and 'lease' not in worker.log().partition('ready')[2]


# ---- a killed daemon

def test_task_of_a_killed_daemon_runs_again(daemon, queue, heartbeats, late):
    """If the daemon is killed while a task runs, another worker runs it within lease + scan + 1 s, with a
    crash."""
    first = daemon(NO_SCAN).wait_ready()
    tid = add(queue, heartbeats.task(0.3))
    add(queue, heartbeats.task(60, stubborn=True))
    heartbeats.wait_runs(2)
    daemon().wait_ready()
    killed = boot_s()
    first.kill9()
    runs = heartbeats.wait_runs(3)
    assert runs[2].tid != tid and runs[2].tid == runs[1].tid
    assert runs[2].first - killed < AGAIN_S + late.start()
    assert runs[2].fence > runs[1].fence and runs[2].attempt == 1
    assert queue.counter('crashes') == 1


@pytest.mark.parametrize('name, when, reruns', [
    ('XREADGROUP', 'after', True),
    ('leat_claim', 'before', True),
    ('leat_claim', 'after', True),
    ('leat_finish', 'before', True),
    ('leat_finish', 'after', False),
])
def test_killed_at(daemon, queue, client, proxy, through_proxy, heartbeats, late, name, when, reruns):
    """If the daemon is killed between two steps, the task runs to its end once more, or was finished; nothing
    is stranded."""
    first = daemon({**through_proxy, **NO_SCAN}).wait_ready()
    wait_blocked(client)
    trap = proxy.trap(name, when, 'hold', NAMES_ENTRY if name == 'leat_claim' else b'')
    tid = add(queue, heartbeats.task(0.05))
    trap.wait()
    killed = boot_s()
    first.kill9()
    proxy.cut()
    daemon().wait_ready()
    finished = name == 'leat_finish'
    if reruns:
        runs = heartbeats.wait_runs(2 if finished else 1)
        assert runs[-1].first - killed < AGAIN_S + late.start()
    wait_empty(queue)
    runs = heartbeats.runs(tid)
    assert len(runs) == 1 + (finished and reruns)
    assert runs[-1].ended and queue.letters() == []
    begun = name == 'leat_claim' and when == 'after' or finished and reruns
    assert queue.counter('crashes') == begun
    assert queue.counter('succeeded') == 1


# ---- a daemon that is cut off

@pytest.mark.parametrize('fault', ['refused', 'silent', 'no replies', 'stopped'])
def test_cut_off_worker_ends_its_tasks(
        daemon, queue, redis_server, proxy, through_proxy, heartbeats, late, fault):
    """If the daemon is cut off from Redis, every process of a task's group is dead before lease − margin,
    even if it ignores SIGTERM; after the repair the task runs again, never at the same time, with no attempt
    used."""
    # a scan in between could find the lease expired before the worker has requeued the task
    worker = daemon({**through_proxy, **NO_SCAN}).wait_ready()
    heartbeat = heartbeats.task(60, stubborn=True)
    add(queue, f"trap '' TERM; {heartbeat} & {heartbeat} & {heartbeat}; wait")
    heartbeats.wait_runs(3)
    begun = boot_s()
    {'refused': proxy.refuse, 'silent': proxy.silence, 'stopped': redis_server.stop,
     'no replies': lambda: proxy.silence(to_server=False)}[fault]()
    runs = heartbeats.wait_dead()
    # the last renewal was sent before the fault began
    assert max(run.last for run in runs) < begun + LEASE_S - MARGIN_S + 0.05 + late()
    worker.wait_log('attempt 1 ended: lease-lost')
    pass_time(0.5)
    assert len(heartbeats.runs()) == 3

    {'refused': proxy.accept, 'silent': proxy.heal, 'stopped': redis_server.cont,
     'no replies': proxy.heal}[fault]()
    runs = heartbeats.wait_runs(6)
    assert max(run.last for run in runs[:3]) < runs[3].first
    assert [run.attempt for run in runs] == [1] * 6
    assert queue.counter('crashes') == 0 and queue.counter('released') == 1


def test_term_comes_first(daemon, queue, proxy, through_proxy, folder, late):
    """A task that is about to lose its lease gets SIGTERM and its grace before SIGKILL."""
    daemon({**through_proxy, 'task': {'kill_grace': '800ms'}}).wait_ready()
    add(queue, f"trap 'echo told > {folder}/told; exit 1' TERM; echo > {folder}/up;"
               " while :; do sleep 0.01; done")
    wait_until((folder / 'up').exists)
    begun = boot_s()
    proxy.silence()
    wait_until((folder / 'told').exists)
    assert boot_s() - begun < LEASE_S - MARGIN_S + late()
    proxy.heal()


def test_redis_down_longer_than_the_lease(daemon, queue, redis_server, heartbeats, late):
    """If Redis is killed and comes back after the lease, tasks were killed before, and no two runs of one
    overlap."""
    redis_server.restart(appendonly='yes', appendfsync='always')
    queue.redis = redis_server.client()
    queue.load()
    workers = [daemon().wait_ready(), daemon().wait_ready()]
    tids = queue.add({'command': heartbeats.task(60)}, {'command': heartbeats.task(60, stubborn=True)})
    heartbeats.wait_runs(2)
    killed = boot_s()
    redis_server.kill()
    runs = heartbeats.wait_dead()
    assert max(run.last for run in runs) < killed + LEASE_S - MARGIN_S + 0.05 + late()
    pass_time(max(0, killed + LEASE_S + 0.5 - boot_s()))
    assert len(heartbeats.runs()) == 2
    redis_server.restart()
    heartbeats.wait_runs(4)
    for tid in tids:
        runs = heartbeats.runs(tid)
        assert_apart(runs)
        assert [run.attempt for run in runs] == [1, 1]
    assert all(worker.running() for worker in workers)


# ---- a daemon that is stopped

@pytest.mark.parametrize('code, outcome', [(0, 'success'), (1, 'retry'), (7, 'dead')])
def test_stopped_worker_is_fenced(daemon, queue, client, heartbeats, latch, folder, code, outcome):
    """If the daemon is stopped for longer than the lease and no guard is left, the outcome of the first
    attempt changes nothing after the second has started; it is counted and logged."""
    policy = {'retry': {'permanent': 7}}
    first = daemon(policy).wait_ready()
    wait_blocked(client)
    tid = add(queue, f'{first_run(folder)} && exec {heartbeats.task(2, code)}; '
                     f'{heartbeats.task(0.1)}; {latch.command}')
    heartbeats.wait_runs(1)
    first.stop()
    first.kill_guards()
    second = daemon(policy).wait_ready()
    begun, other = heartbeats.wait_runs(2)
    assert other.fence > begun.fence
    wait_until(lambda: heartbeats.runs()[0].ended)
    token = queue.pending()
    assert len(token) == 1
    first.cont()
    first.wait_log('outcome rejected: ')
    assert queue.counter('fenced') >= 1
    assert queue.pending() == token and queue.letters() == []
    assert queue.redis.hlen(queue.waiting) == 0 and queue.redis.xlen(queue.go) == 1
    assert begun.tid == other.tid == tid
    latch.open()
    wait_empty(queue)
    assert len(heartbeats.runs()) == 2 and heartbeats.runs()[1].ended
    assert queue.counter('succeeded') == 1, outcome
    assert 'outcome rejected' not in second.log()


def test_stopped_worker_starts_nothing_unchecked(daemon, queue, client, heartbeats):
    """A task in the socket of a stopped worker goes to another one, and the first worker does not start it
    when it continues."""
    first = daemon(TELLS).wait_ready()
    wait_blocked(client)
    first.stop()
    add(queue, heartbeats.task(0.5))
    assert len(queue.pending()) == 1
    daemon().wait_ready()
    [run] = heartbeats.wait_runs(1)
    assert run.attempt == 1
    first.cont()
    wait_empty(queue)
    wait_blocked(client, 2)
    assert len(heartbeats.runs()) == 1 and 'started' not in first.log()
    assert queue.counter('crashes') == 0


@pytest.mark.parametrize('others', [True, False], ids=['passed on', 'still its own'])
def test_old_claim_is_not_started(daemon, queue, client, proxy, through_proxy, heartbeats, others):
    """If a stopped worker reads a claim's reply after the lease, it does not start the task: another worker
    has it by then, or it is requeued and runs with no attempt used."""
    first = daemon({**through_proxy, **NO_SCAN, **TELLS}).wait_ready()
    wait_blocked(client)
    trap = proxy.trap('leat_claim', 'after', 'hold', NAMES_ENTRY)
    add(queue, heartbeats.task(1.5))
    trap.wait()
    first.stop()
    trap.release()
    begun = boot_s()
    if others:
        daemon().wait_ready()
        heartbeats.wait_runs(1)
    else:
        wait_until(lambda: boot_s() > begun + LEASE_S)
    assert len(heartbeats.runs()) == others
    first.cont()
    wait_empty(queue)
    [run] = heartbeats.runs()
    assert run.ended and run.attempt == 1
    assert queue.counter('crashes') == others and queue.counter('succeeded') == 1
    assert first.running() and first.log().count('attempt 1 started') == (not others)


# ---- long tasks, many tasks

def test_long_task_is_renewed(daemon, queue, client, heartbeats, late):
    """A task of four leases is renewed in time: it has one run and one delivery, beside idle workers."""
    # long enough for a busy machine, on which a worker may stall for a second or two
    sections = {'queue': {'lease': '6s'}, 'task': {'kill_grace': '50ms'}}
    daemon(sections).wait_ready()
    daemon(sections).wait_ready()
    wait_blocked(client, 2)
    add(queue, heartbeats.task(24.5))
    heartbeats.wait_runs(1)
    [token] = queue.pending()
    counts, wall_s = set(), time.time() - boot_s()

    def ended():
        rows = client.execute_command('XPENDING', queue.stream, queue.group, '-', '+', 10)
        counts.update(row[3] for row in rows)
        # Redis measures how old a lease is with the wall clock, which may have been set meanwhile
        set_s = time.time() - boot_s() - wall_s
        assert all(row[2] < 3000 + 1000 * (late.start() + max(set_s, 0)) for row in rows), rows
        return is_empty(queue)

    wait_until(ended, 90)
    assert len(counts) == 1 and token[0] == 's'
    assert len(heartbeats.runs()) == 1 and heartbeats.runs()[0].ended
    assert queue.counter('crashes') == queue.counter('fenced') == 0


def test_more_tasks_than_one_renewal_names(daemon, queue, client, late):
    """600 tasks need two renewal calls: all are renewed, cancels arrive by either call, and the worker stops
    cleanly and in time."""
    tasks, lease_s = 600, 3 * LEASE_S
    # without pipes, so that the test needs no more descriptors than others
    worker = daemon({'queue': {'concurrency': tasks, 'lease': f'{lease_s:.0f}s'}, 'output': {'to': 'discard'},
                     'dead': {'output_tail': 0}, 'shutdown': {'drain': '0s'}}).wait_ready()
    tids = []
    while len(tids) < tasks:
        # few in one turn of the loop, because fifty starts may take longer than such a lease on a busy
        # machine
        tids += queue.add(*[{'command': 'sleep 600'}] * 10)
        wait_until(lambda: client.hlen(queue.running) == len(tids))
    pass_time(lease_s)
    assert all(state.startswith('asked') for state in queue.call_off(tids[0], tids[-1]))
    wait_until(lambda: queue.counter('cancelled') == 2)
    assert client.hlen(queue.running) == len(queue.pending()) == tasks - 2
    assert 'lease' not in worker.log()
    began = boot_s()
    worker.terminate()
    assert worker.wait_exit() == 0
    assert boot_s() - began < lease_s + late.start()
    assert queue.counter('released') == tasks - 2 and client.hlen(queue.running) == 0


def test_a_poison_candidate_does_not_wait_for_a_busy_worker(daemon, queue, client, latch, leat, folder):
    """A poison candidate that runs alone and reaches a busy worker is deferred there, which is logged, until
    another worker is idle and runs it at once; the first worker goes on with other tasks beside its own."""
    sections = {'queue': {'concurrency': 2, 'lease': '60s'}}
    queue.register('gone', max_crashes=2)
    tid = add(queue, f'echo $LEAT_WORKER > {folder}/ran')
    [task] = queue.begin('gone')
    busy = daemon(sections).wait_ready()
    add(queue, latch.command)
    wait_until(lambda: client.hlen(queue.running) == 2)
    queue.expire(task.token)
    busy.wait_log('poison candidate: ')
    wait_until(lambda: f'{tid}  held ' in leat('list').stdout, message=lambda: leat('list').stdout)
    idle = daemon(sections).wait_ready()
    wait_until(lambda: queue.counter('succeeded') == 1)
    assert f':{idle.pid}:' in (folder / 'ran').read_text()
    idle.terminate()
    add(queue, 'true')
    wait_until(lambda: queue.counter('succeeded') == 2)
    assert idle.wait_exit() == 0 and client.hlen(queue.running) == 1
    latch.open()
    wait_empty(queue)
    assert queue.counter('crashes') == 1 and queue.letters() == []


def test_a_renewal_without_memory(daemon, queue, client, injector):
    """The renewal is repeated at once, because the next heartbeat would be too late for a task with a long
    grace."""
    daemon({'queue': {'lease': '12s', 'concurrency': 2}, 'task': {'kill_grace': '4500ms'}},
           env=injector.env).wait_ready()
    queue.add({'command': 'exec sleep 7.8'})
    wait_until(lambda: queue.redis.hlen(queue.running) == 1)
    wait_blocked(client)
    injector.arm('alloc', 8)
    wait_until(lambda: queue.counter('succeeded') == 1)
    assert injector.failed == 1 and queue.counter('released') == 0


def test_expired_behind_a_thousand_live(daemon, queue, client, heartbeats, late):
    """A lease that expired behind 1,000 live ones is found within a scan period."""
    queue.register('live', lease=round(LEASE_S * 1000))
    queue.register('gone')
    queue.add(*[{'command': 'true'}] * 1000)
    live = [task.token for task in queue.begin('live', 1000)]
    assert len(live) == 1000
    add(queue, heartbeats.task(0.05))
    [gone] = queue.begin('gone')

    # the live ones are renewed for as long as it takes
    ended = threading.Event()

    def keep_alive():
        while not ended.wait(0.5):
            assert queue.renew('live', live)['lost'] == []

    keeper = threading.Thread(target=keep_alive)
    keeper.start()
    try:
        daemon().wait_ready()
        wait_blocked(client)
        queue.renew('gone', [gone.token])
        begun = boot_s()
        queue.expire(gone.token)
        [run] = heartbeats.wait_runs(1)
    finally:
        ended.set()
        keeper.join()
    # allows for the task's own start; ten scans would take longer
    assert run.first - begun < SCAN_S + 1 + late.start()
    assert run.fence > gone.fence and len(queue.pending('live')) == 1000


# ---- tasks that kill their worker

def test_worker_killer_ends_in_the_dead_letters(daemon, queue, client, heartbeats):
    """A task that kills its worker becomes a dead letter after exactly max_crashes; its neighbour loses
    nothing beyond the first crash."""
    sections = {'queue': {'concurrency': 2, 'max_crashes': 3, 'lease': '60s'}}
    worker = daemon(sections).wait_ready()
    wait_blocked(client)
    neighbour = add(queue, heartbeats.task(0.6))
    killer = add(queue, f'{heartbeats.task(0.1)}; kill -9 $PPID')

    def over():
        if not worker.running():
            worker.start()
        return len(queue.letters()) == 1 and is_empty(queue)

    wait_until(over, 60, lambda: f'the dead letter: {queue.status()}, {heartbeats.runs()}')
    [(_, letter)] = queue.letters()
    assert letter['leat.tid'].decode() == killer
    assert letter['leat.cause'] == b'crash' and letter['leat.crashes'] == b'3'
    assert len(heartbeats.runs(killer)) == 3
    runs = heartbeats.runs(neighbour)
    assert runs[-1].ended and len(runs) <= 2 and runs[-1].attempt == 1
    assert queue.counter('succeeded') == 1


def test_poison_candidate_runs_alone(daemon, queue, heartbeats):
    """A task before its last crash waits until its worker is empty, and nothing starts beside it."""
    queue.register('gone', max_crashes=2)
    crashed = add(queue, heartbeats.task(0.4))
    [task] = queue.begin('gone')
    queue.expire(task.token)
    before = [add(queue, heartbeats.task(0.5)), add(queue, heartbeats.task(0.8))]
    daemon({'queue': {'concurrency': 3, 'lease': '60s'}}).wait_ready()
    after = [add(queue, heartbeats.task(0.1)) for _ in range(4)]
    wait_empty(queue)
    [alone] = heartbeats.runs(crashed)
    assert alone.ended and alone.fence > task.fence
    others = [run for run in heartbeats.runs() if run.tid != crashed]
    assert {run.tid for run in others} == {*before, *after} and len(others) == 6
    assert all(run.last < alone.first or run.first > alone.last for run in others), heartbeats.runs()


# ---- lost replies

@pytest.mark.parametrize('when', ['before', 'after'])
@pytest.mark.parametrize('code, runs', [(0, 1), (1, 2), (7, 1)])
def test_lost_finish(daemon, queue, client, proxy, through_proxy, heartbeats, when, code, runs):
    """If the connection breaks before a finish runs, or its reply is lost, the outcome is sent again and
    counts once."""
    worker = daemon({**through_proxy, 'retry': {'permanent': 7, 'max_attempts': 2}}).wait_ready()
    wait_blocked(client)
    trap = proxy.trap('leat_finish', when)
    tid = add(queue, heartbeats.task(0.05, code))
    trap.wait()
    wait_until(lambda: worker.log().count('registered with Redis') >= 2)
    wait_empty(queue)
    # it is settled after everything that was sent again
    add(queue, 'true')
    wait_empty(queue)
    assert len(heartbeats.runs(tid)) == runs
    assert queue.counter('succeeded') == 1 + (code == 0)
    assert 'outcome rejected' not in worker.log()
    assert len(queue.letters()) == queue.counter('dead') == (code != 0)
    for _, letter in queue.letters():
        assert letter['leat.cause'] == b'exit' and letter['leat.attempts'].decode() == str(runs)
        assert letter['leat.history'].count(b'\n') == runs
    assert queue.counter('fenced') == queue.counter('crashes') == 0


@pytest.mark.parametrize('others', [False, True], ids=['alone', 'passed on, not begun'])
def test_late_success(daemon, queue, client, proxy, through_proxy, heartbeats, latch, others):
    """A success that reaches Redis after its lease still counts if no other attempt has started, even if the
    entry was requeued."""
    lease_s = 1.5 * LEASE_S  # so that the task ends before, even if the machine stalls
    through_proxy['queue'] = {'lease': f'{lease_s:.0f}s'}
    first = daemon(through_proxy).wait_ready()
    wait_blocked(client)
    tid = add(queue, heartbeats.task(0.5))
    heartbeats.wait_runs(1)
    proxy.refuse()
    if others:
        # it scans for expired leases and has no room for the tasks that it finds
        daemon().wait_ready()
        add(queue, f'{heartbeats.task(0.05)}; {latch.wait}')
        heartbeats.wait_runs(2)
        wait_until(lambda: client.xlen(queue.go) == 1)
    else:
        pass_time(lease_s + 0.2)
    [run] = heartbeats.runs(tid)
    assert run.ended
    proxy.accept()
    wait_until(lambda: queue.counter('succeeded') == 1)
    assert client.xlen(queue.go) == 0
    latch.open()
    wait_empty(queue)
    assert len(heartbeats.runs(tid)) == 1
    assert queue.counter('succeeded') == 1 + others
    assert queue.counter('dead') == 0 and 'outcome rejected' not in first.log()


def test_stop_without_redis(daemon, queue, proxy, through_proxy, heartbeats):
    """At SIGTERM without Redis, the daemon kills its tasks in time and exits; the lease does the rest."""
    worker = daemon({**through_proxy, 'shutdown': {'drain': '200ms'}}).wait_ready()
    add(queue, heartbeats.task(60))
    heartbeats.wait_runs(1)
    proxy.refuse()
    worker.signal(signal.SIGTERM)
    assert worker.wait_exit() in (0, 75)
    heartbeats.wait_dead()
    daemon().wait_ready()
    runs = heartbeats.wait_runs(2)
    assert_apart(runs)
    assert runs[1].attempt == 1


def test_deleted_records_and_names_come_back(daemon, queue, leat, latch):
    """After DEL of {queue}:running and {queue}:names while a task runs, doctor says so until the worker's next
    renewal; then no second task with the id is added, and the task's end counts."""
    daemon({'queue': {'lease': '60s'}}).wait_ready()
    [tid] = queue.add({'command': latch.command, 'id': 'label', 'unique': 'key'})
    wait_until(lambda: queue.redis.hlen(queue.running) == 1)
    names = queue.held()
    queue.redis.delete(queue.running, queue.names)
    wait_until(lambda: '"unrecorded"' in leat('doctor', '--json').stdout)
    queue.call('conf', 'lease_ms', 6000)  # the next renewal comes at once
    wait_until(lambda: queue.redis.hlen(queue.running) == 1)
    assert queue.held() == names
    assert queue.enqueue({'command': 'true', 'id': 'label'}) == [('exists', tid)]
    latch.open()
    wait_until(lambda: queue.counter('succeeded') == 1)
    assert queue.held() == {} and queue.redis.hlen(queue.running) == 0
