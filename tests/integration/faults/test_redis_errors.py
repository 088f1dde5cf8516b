"""The daemon survives every error that Redis can answer: it logs it once, does not spin, keeps its state, and
goes on by itself after the repair."""
import os
import threading
from contextlib import contextmanager

import pytest
import redis

from harness.polling import wait_until
from harness.queue import KEYS, Queue
from harness.servers.server import DEFAULTS
from harness.short_leases import (LEASE_S, SHORT, assert_apart, boot_s, cpu_share, is_empty, pass_time,
                                  wait_blocked, wait_empty, wakeups)

pytestmark = pytest.mark.usefixtures('short_leases')

BACK_S = 1.5  # after the repair: the longest pause between two tries, and a start
CPU_SHARE, WATCHED_S = 0.05, 1.5
# outages end before the lease, and a busy machine does not count as one
CALM = {'queue': {'lease': '40s', 'scan': '1s', 'concurrency': 1},
        'redis': {'command_timeout': '5s', 'connect_timeout': '5s'}}
OUTAGE = 'no session with Redis'


def outages(worker):
    return worker.log().count(f'warning: {OUTAGE}')


class Faults:
    """Each fault is a context manager: the fault begins inside and is repaired at its end."""

    def __init__(self, server, folder):
        self.server, self.folder, self.client = server, folder, server.client()

    def config(self, name, value):
        self.client.config_set(name, value)

    @contextmanager
    def settings(self, name, value):
        before = self.client.config_get(name)[name]
        self.config(name, value)
        yield
        self.config(name, before)

    def kill_clients(self):
        self.client.execute_command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')

    @contextmanager
    def busy_script(self):
        """A script that does not end: BUSY after a moment."""
        self.config('busy-reply-threshold', 50)
        other = self.server.client()

        def spin():
            try:
                other.eval('while true do end', 0)
            except redis.exceptions.ResponseError:
                pass  # the script is killed
        thread = threading.Thread(target=spin)
        thread.start()
        yield
        self.client.script_kill()
        thread.join()
        self.config('busy-reply-threshold', DEFAULTS['busy-reply-threshold'])

    @contextmanager
    def replica(self):
        """The server becomes a replica without a master: READONLY, and blocked readers are disconnected."""
        self.client.execute_command('REPLICAOF', '127.0.0.1', '1')
        yield
        self.client.execute_command('REPLICAOF', 'NO', 'ONE')

    @contextmanager
    def stale_replica(self):
        """The same, and the server serves nothing without its master: MASTERDOWN."""
        self.config('replica-serve-stale-data', 'no')
        self.client.execute_command('REPLICAOF', '127.0.0.1', '1')
        yield
        self.client.execute_command('REPLICAOF', 'NO', 'ONE')

    @contextmanager
    def failing_save(self):
        """Snapshots cannot be written: MISCONF."""
        obstacle = self.server.folder / 'dump.rdb'
        obstacle.mkdir()
        self.config('save', '3600 1')
        self.client.bgsave()
        wait_until(lambda: self.client.info('persistence')['rdb_last_bgsave_status'] == 'err')
        yield
        obstacle.rmdir()
        self.config('save', '')

    def no_replicas(self):
        return self.settings('min-replicas-to-write', 1)

    @contextmanager
    def no_permission(self):
        """The user may no longer call functions: NOPERM."""
        self.client.execute_command('ACL', 'SETUSER', 'worker', '-fcall')
        yield
        self.client.execute_command('ACL', 'SETUSER', 'worker', '+fcall')

    @contextmanager
    def other_password(self):
        """The user's password was changed and its connections closed: WRONGPASS."""
        self.client.execute_command('ACL', 'SETUSER', 'worker', 'resetpass', '>other')
        self.client.execute_command('CLIENT', 'KILL', 'USER', 'worker')
        yield
        self.client.execute_command('ACL', 'SETUSER', 'worker', 'resetpass', '>secret')

    @contextmanager
    def too_many_clients(self):
        """The server accepts no connection."""
        self.config('maxclients', 1)
        self.kill_clients()
        yield
        self.config('maxclients', 1000)

    @contextmanager
    def no_library(self):
        """The functions are gone, and memory is full, so that they cannot be loaded again."""
        self.config('maxmemory', 1)  # before a worker could load them again
        self.client.execute_command('FUNCTION', 'FLUSH')
        yield
        self.config('maxmemory', 0)

    @contextmanager
    def killed(self):
        """The server is killed and comes back with its data."""
        self.server.kill()
        yield
        self.server.restart()
        self.client = self.server.client()

    @contextmanager
    def loading(self):
        """The server was restarted and reads its data, until the end: LOADING."""
        for number in range(1000):
            self.client.set(f'large:{number}', os.urandom(2000))
        # as a snapshot, because the server answers nothing while it reads a short log of commands
        self.client.bgrewriteaof()
        wait_until(lambda: not self.client.info('persistence')['aof_rewrite_in_progress'])
        self.server.kill()
        self.server.start(wait=False, key_load_delay=100_000,
                          loading_process_events_interval_bytes=1024)
        yield
        self.client = self.server.client()
        self.config('key-load-delay', 0)
        wait_until(self.server.answers)


@pytest.fixture
def faults(redis_server, folder):
    redis_server.restart(appendonly='yes', appendfsync='always',
                         user=['worker', 'on', '>secret', '~*', '&*', '+@all'])
    return Faults(redis_server, folder)


@pytest.fixture
def user(base_config):
    """The daemon logs in as a user of its own."""
    base_config['redis'].update(user='worker', password='secret')


FAULTS = {
    'busy_script': 'BUSY',
    'replica': '',
    'stale_replica': '',
    'failing_save': 'MISCONF',
    'no_replicas': 'NOREPLICAS',
    'no_permission': 'NOPERM',
    'other_password': 'WRONGPASS',
    'too_many_clients': 'max number of clients',
    'no_library': '',
    'killed': '',
    'loading': 'is loading its data',
}


@pytest.mark.parametrize('fault', FAULTS)
@pytest.mark.usefixtures('user')
def test_error_while_running(daemon, faults, redis_server, heartbeats, late, folder, latch, fault):
    """With one task running and another waiting, each error is logged once, costs less than 5 % of a
    processor, and harms neither the daemon nor the ended task's outcome; after the repair all goes on by
    itself."""
    queue = Queue(faults.client).load()
    worker = daemon(CALM).wait_ready()
    wait_blocked(faults.client)
    queue.add({'command': f'touch {folder}/begun; {latch.wait}; {heartbeats.task(0.05)}'},
              {'command': heartbeats.task(0.05)})
    wait_until((folder / 'begun').exists)
    with getattr(faults, fault)():
        worker.wait_log(OUTAGE)
        worker.wait_log(FAULTS[fault])
        latch.open()
        wait_until(lambda: [run.ended for run in heartbeats.runs()] == [True])
        assert cpu_share(worker.pid, WATCHED_S) < CPU_SHARE
        assert len(heartbeats.runs()) == 1
        # at most: the closed connection, the refused one of a server that starts, and the fault
        assert outages(worker) <= 3
    healed = boot_s()
    runs = heartbeats.wait_runs(2)
    assert runs[1].first - healed < BACK_S + late.start()
    queue.redis = redis_server.client()
    wait_empty(queue)
    assert worker.running() and len(heartbeats.runs()) == 2
    assert queue.counter('succeeded') == 2
    assert queue.counter('fenced') == queue.counter('crashes') == 0
    wait_blocked(queue.redis)
    assert worker.log().count('registered with Redis') <= 3


def test_full_memory_stops_only_growth(daemon, faults, heartbeats):
    """On OOM producers are refused, and existing tasks run, with their retries."""
    queue = Queue(faults.client).load()
    worker = daemon({**CALM, 'retry': {'max_attempts': 2}}).wait_ready()
    wait_blocked(faults.client)
    queue.add({'command': heartbeats.task(0.3)}, {'command': heartbeats.task(0.05, 1)})
    heartbeats.wait_runs(1)
    with faults.settings('maxmemory', 1):
        with pytest.raises(redis.exceptions.ResponseError, match='OOM|maxmemory'):
            faults.client.xadd('emails', {'command': 'true'})
        wait_empty(queue)
        assert len(heartbeats.runs()) == 3 and len(queue.letters()) == 1
    queue.add({'command': 'true'})
    wait_empty(queue)
    assert worker.running() and outages(worker) == 0


def test_flushed_library_is_loaded_again(daemon, faults, heartbeats, late):
    """FUNCTION FLUSH alone has the library loaded again at once, without a message to the operator."""
    queue = Queue(faults.client).load()
    worker = daemon().wait_ready()
    wait_blocked(faults.client)
    faults.client.execute_command('FUNCTION', 'FLUSH')
    faults.client.xadd('emails', {'command': heartbeats.task(0.05)})
    flushed = boot_s()
    [run] = heartbeats.wait_runs(1)
    assert run.first - flushed < BACK_S + late.start()
    wait_empty(queue)
    assert worker.running()
    assert 'loading it again' in worker.log() and 'leat init' not in worker.log()


@pytest.mark.parametrize('name', KEYS)
def test_key_of_another_type(daemon, faults, heartbeats, folder, latch, name):
    """If a key of the queue is overwritten with a string while a task runs and then fails, nothing spins;
    after the repair the outcome is sent, and the task becomes one dead letter."""
    queue, client = Queue(faults.client).load(), faults.client
    worker = daemon({'queue': {**CALM['queue'], 'lease': '9s'},
                     'redis': CALM['redis'], 'retry': {'max_attempts': 2}}).wait_ready()
    wait_blocked(client)
    queue.add({'command': f'touch {folder}/begun; {latch.wait}; exec {heartbeats.task(0.05, 1)}', 'id': 'one'})
    wait_until((folder / 'begun').exists)
    key = getattr(queue, name)
    existed = client.exists(key)
    pipe = client.pipeline()
    if existed:
        pipe.rename(key, 'aside')
    pipe.set(key, 'foreign').execute()
    latch.open()
    heartbeats.wait_runs(1)
    wait_until(lambda: heartbeats.runs()[0].ended)
    assert cpu_share(worker.pid, WATCHED_S) < CPU_SHARE
    pipe = client.pipeline()
    pipe.delete(key)
    if existed:
        pipe.rename('aside', key)
    pipe.execute()
    wait_until(lambda: len(queue.letters()) == 1, message=worker.log)
    wait_empty(queue)
    wait_blocked(client)
    assert len(heartbeats.runs()) == 2 and [run.attempt for run in heartbeats.runs()] == [1, 2]
    assert worker.running()
    assert worker.log().count('WRONGTYPE') < 8


# ---- the stream, the group, everything

@pytest.mark.parametrize('busy', [False, True], ids=['idle', 'busy'])
@pytest.mark.parametrize('fault', [
    ['DEL', 'emails'], ['DEL', '{emails}:go'], ['XGROUP', 'DESTROY', 'emails', 'leat'],
    ['XGROUP', 'DESTROY', '{emails}:go', 'leat'], ['RENAME', 'emails', 'elsewhere'],
    ['DEL', '{emails}:conf'], ['FLUSHALL'],
], ids=' '.join)
def test_stream_or_group_is_gone(daemon, queue, client, heartbeats, late, fault, busy):
    """Whatever is deleted, the groups exist again, from 0, within 2 s, and tasks that were enqueued meanwhile
    run, at the latest one lease later; two runs of a task do not overlap."""
    worker = daemon().wait_ready()
    wait_blocked(client)
    length = LEASE_S + 0.5 if busy else 0
    if busy:
        queue.add({'command': heartbeats.task(length, stubborn=True)})
        heartbeats.wait_runs(1)
    pipe = client.pipeline()
    pipe.execute_command(*fault)
    for _ in range(3):
        pipe.xadd('emails', {'command': heartbeats.task(0.1)})
    tids = [answer.decode() for answer in pipe.execute()[1:]]
    begun = boot_s()

    def has_groups():
        return all(client.exists(key) and client.xinfo_groups(key)
                   for key in (queue.stream, queue.go))

    wait_until(has_groups)
    assert boot_s() - begun < 2 + late.start()
    wait_until(lambda: all(any(run.ended for run in heartbeats.runs(tid)) for tid in tids),
               message=worker.log)
    wait_empty(queue)
    assert min(run.first for tid in tids for run in heartbeats.runs(tid)) - begun < (
        2 + LEASE_S + 2 * length + 1 + late.start())
    assert [len(heartbeats.runs(tid)) for tid in tids] == [1, 1, 1]
    # a worker of one slot has no overlapping runs, those of the running task included
    assert_apart(heartbeats.runs())
    assert worker.running()


def test_lost_group_while_another_works(daemon, queue, client, heartbeats):
    """If the group is destroyed while one worker runs a task and another waits, the other recreates it at
    once, and the running task ends where it is: it is not started again, no attempt is used up, and neither
    worker spins."""
    calmer = {'queue': {'lease': '6s'}}
    first = daemon(calmer).wait_ready()
    wait_blocked(client)
    queue.add({'command': heartbeats.task(2.5, stubborn=True)})
    heartbeats.wait_runs(1)
    second = daemon(calmer).wait_ready()
    wait_blocked(client)
    client.execute_command('XGROUP', 'DESTROY', 'emails', 'leat')
    second.wait_log('lost and recreated')
    before = client.info('commandstats')['cmdstat_fcall']['calls']
    wait_empty(queue)
    assert client.info('commandstats')['cmdstat_fcall']['calls'] - before < 200, 'they do not ask all the time'
    assert [(run.attempt, run.ended) for run in heartbeats.runs()] == [(1, True)]
    assert first.running() and second.running()


# ---- at the start

def start_and_exit(daemon, sections=None):
    worker = daemon(sections)
    return worker.wait_exit(), worker.log()


@pytest.mark.parametrize('secret', [{}, {'user': 'worker', 'password': 'wrong'}, {'password': 'x'}])
def test_wrong_credentials_at_start(daemon, faults, secret):
    """With wrong or missing credentials the exit status is 77, and the log says which setting to check."""
    faults.client.config_set('requirepass', 'other')
    code, log = start_and_exit(daemon, {'redis': secret})
    assert code == 77, log
    assert any(word in log for word in ('NOAUTH', 'WRONGPASS')) and 'password' in log
    assert 'wrong' not in log.replace('WRONGPASS', '')


def test_no_permission_at_start(daemon, faults):
    """If the user lacks a right of a worker, the exit status is 77."""
    faults.client.execute_command(
        'ACL', 'SETUSER', 'worker', '-@all', '+@read', '+@connection', '+info')
    code, log = start_and_exit(daemon, {'redis': {'user': 'worker', 'password': 'secret'}})
    assert code == 77 and 'NOPERM' in log, log


def test_foreign_group_at_start(daemon, client):
    """If another program's group reads the stream, the exit status is 78, with a message, and nothing
    changes."""
    client.xadd('emails', {'kind': 'theirs'})
    client.xgroup_create('emails', 'theirs', 0)
    client.xreadgroup('theirs', 'me', {'emails': '>'})
    before = client.dump('emails')
    code, log = start_and_exit(daemon)
    assert code == 78 and 'theirs' in log, log
    assert client.dump('emails') == before and client.keys('*') == [b'emails']


@pytest.mark.parametrize('name', KEYS)
def test_foreign_key_at_start(daemon, queue, client, name):
    """If a key has another type, the exit status is 78, with the key's name, and nothing changes."""
    key = getattr(queue, name)
    client.set(key, 'theirs')
    code, log = start_and_exit(daemon)
    assert code == 78 and key in log and 'WRONGTYPE' in log, log
    assert client.get(key) == b'theirs' and client.keys('*') == [key.encode()]


def test_leat_wait_while_redis_is_busy(faults, leat):
    """leat wait --all fails like all commands if Redis is busy at the start, and knows nothing of the queue."""
    with faults.busy_script():
        done = leat('wait', '--all')
    assert done.returncode == os.EX_TEMPFAIL and 'BUSY' in done.stderr and 'not empty' not in done.stderr


@pytest.mark.parametrize('state', ['killed', 'loading', 'replica', 'busy_script', 'no_replicas'])
def test_redis_not_ready_at_start(daemon, faults, heartbeats, redis_server, late, state):
    """If Redis is away or not ready at the start, the daemon waits, says so, and starts by itself."""
    queue = Queue(faults.client).load()
    queue.add({'command': heartbeats.task(0.05)})
    with getattr(faults, state)():
        worker = daemon().wait_log(OUTAGE)
        assert cpu_share(worker.pid, 1) < CPU_SHARE
        assert heartbeats.runs() == []
    healed = boot_s()
    [run] = heartbeats.wait_runs(1)
    assert run.first - healed < BACK_S + late.start()
    queue.redis = redis_server.client()
    wait_empty(queue)
    assert worker.running()


def test_default_backoff_is_idle(daemon, redis_server, base_config):
    """Without Redis, with the default pauses, the daemon hardly ever wakes up."""
    base_config['redis'].update(dict.fromkeys(SHORT['redis']))
    base_config['queue'].update(lease='60s', scan=None)
    base_config['task']['kill_grace'] = '10s'
    redis_server.close()
    worker = daemon().wait_log(OUTAGE)
    pass_time(1)
    before = wakeups(worker.pid)
    assert cpu_share(worker.pid, WATCHED_S) < 0.01
    assert wakeups(worker.pid) - before < 30
    assert worker.log().count(OUTAGE) == 1


def test_slow_redis_is_not_dead(daemon, queue, proxy, through_proxy, heartbeats):
    """If every command takes 150 ms longer each way, leases are renewed and tasks run once."""
    proxy.delay(0.15)
    worker = daemon({'redis': {**CALM['redis'], **through_proxy['redis']},
                     'queue': {'lease': '9s'}}).wait_ready()
    queue.add({'command': heartbeats.task(4)}, {'command': heartbeats.task(0.05)})
    wait_until(lambda: is_empty(queue), message=worker.log)
    assert len(heartbeats.runs()) == 2 and all(run.ended for run in heartbeats.runs())
    assert outages(worker) == 0


def test_a_master_that_becomes_a_replica(daemon, queue, client):
    """If the server of a waiting worker is demoted, the log says that it is no master, not that a stream was
    deleted; when it is the master again, the worker goes on."""
    worker = daemon().wait_ready()
    wait_blocked(client)
    client.execute_command('REPLICAOF', '127.0.0.1', '1')
    worker.wait_log('this server is not the master of the queue')
    client.execute_command('REPLICAOF', 'NO', 'ONE')
    queue.add({'command': 'true'})
    wait_until(lambda: queue.counter('succeeded') == 1, message=worker.log)
    assert 'was deleted' not in worker.log()


def test_a_refusal_by_the_claim_says_why(daemon, queue, client):
    """A task that the claim refuses is logged with the reason, as its dead letter has it."""
    worker = daemon(start=False)
    queue.register('w9')
    queue.add({'command': 'true', 'unique': 'key'})
    queue.begin('w9')
    tid = client.xadd('emails', {'command': 'true', 'unique': 'key'}).decode()
    worker.start().wait_ready()
    worker.wait_log(f'task {tid}: not started: refused: unique key key is held by ')
    [(_, letter)] = queue.letters()
    assert letter['leat.reason'].decode() in worker.log()


def test_a_label_that_is_too_long(daemon, client, queue, leat):
    """An id that is too long for a variable is refused with its name, before and after it is in the queue."""
    label = 'x' * 1025
    daemon().wait_ready()
    client.xadd('emails', {'command': 'true', 'id': label})
    queue.add({'command': 'true', 'id': label[1:]})
    wait_until(lambda: queue.letters() and queue.counter('succeeded') == 1)
    [(_, letter)] = queue.letters()
    assert (letter['leat.cause'], letter['leat.reason']) == (
        b'refused', b'id: longer than 1024 bytes; shorten it')
