"""[redis] wait_replicas: enqueued tasks and outcomes on a master with a real replica."""
import json

import pytest

from harness.polling import wait_until
from harness.queue import Queue
from harness.tasks import wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')


SHORT = {'redis': {'wait_timeout': '150ms'}}  # for waits that no replica ends


@pytest.fixture
def master(redis_server, queue, base_config):
    base_config['redis'].update({'wait_replicas': '1', 'wait_timeout': '30s', 'command_timeout': '60s'})
    redis_server.client().config_set('repl-diskless-sync-delay', 0)
    return redis_server


@pytest.fixture
def replica(master, redis_servers):
    """A replica that is in step with the master."""
    one = redis_servers()
    one.client().execute_command('REPLICAOF', '127.0.0.1', master.listen())
    wait_until(lambda: master.client().execute_command('WAIT', 1, 100) == 1)
    return one


def unreplicated(queue):
    return queue.status()['total_unreplicated']


def test_healthy(daemon, leat, queue, replica):
    """leat enqueue, and the other commands that enqueue, answer as soon as the replica has the task; the
    worker waits, too, and nothing is logged or counted."""
    enqueued = leat('enqueue', 'true')
    assert replica.client().xlen('emails') == 1
    assert enqueued.returncode == 0 and not enqueued.stderr and enqueued.stdout.strip()
    assert leat('enqueue', '--file', '-', input='true\ntrue\n').returncode == 0
    queue.redis.rpush('old', 'true')
    assert leat('import', '--field', 'command', 'old').returncode == 0
    assert leat('import', '--export', '-', input='').returncode == 0
    assert replica.client().xlen('emails') == 4
    worker = daemon().wait_ready()
    wait_succeeded(queue, 4)
    wait_until(lambda: queue.counter('waited') == 8)
    assert unreplicated(queue) == 0 and 'replicas' not in worker.log()
    assert leat('run', 'exit 3').returncode == 3


def test_enqueue_without_the_replica(leat, start, queue, replica):
    """If the replica is stopped, the task is in the queue, its id is printed, and the exit code is 2; the
    same label gives the same answer again, and success as soon as the replica has it."""
    replica.stop()
    for option in ([], ['--id', 'one'], ['--id', 'one'], ['--json']):
        done = leat('enqueue', *option, 'true', config=SHORT)
        assert done.returncode == 2 and done.stdout.strip()
        assert 'enqueued, but only 0 of 1 replicas have it' in done.stderr
    assert queue.redis.xlen('emails') == 3
    queue.redis.rpush('old', 'a')
    for args in (['enqueue', '--file', '-', 'true'], ['import', '--field', 'command', 'old']):
        done = leat(*args, input='x\n', config=SHORT)
        assert done.returncode == 2 and 'only 0 of 1' in done.stderr
    replica.cont()
    assert leat('enqueue', '--id', 'one', 'true').returncode == 0
    figures = json.loads(leat('status', '--json').stdout)['figures']
    assert figures['total_unreplicated'] == 6 and figures['total_replicas_asked'] == 7


def test_import_of_an_export_without_the_replica(leat, queue, replica):
    """leat import --export says that too few replicas have the tasks, also if it is repeated and adds none."""
    queue.add({'command': 'true'}, {'command': 'true'})
    exported = leat('export').stdout
    queue.redis.delete(*queue.keys)
    replica.stop()
    for count in (2, 0):
        done = leat('import', '--export', '-', input=exported, config=SHORT)
        assert done.stdout.startswith(f'imported {count} tasks') and done.returncode == 2, done
        assert 'only 0 of 1' in done.stderr
    replica.cont()
    done = leat('import', '--export', '-', input=exported)
    assert done.stdout.startswith('imported 0 tasks') and done.returncode == 0, done


def test_run_without_the_replica(daemon, leat, queue, replica):
    """leat run says that too few replicas have its task, and exits with the task's own code."""
    daemon().wait_ready()
    replica.stop()
    done = leat('run', 'echo here; exit 5', config=SHORT)
    assert done.returncode == 5 and done.stdout == 'here\n' and 'only 0 of 1' in done.stderr


def test_worker_without_the_replica(daemon, queue, replica):
    """If the replica is stopped tasks still end; it is logged once, and once more when the replica is back."""
    worker = daemon(SHORT).wait_ready()
    replica.stop()
    queue.add({'command': 'true'})
    wait_until(lambda: unreplicated(queue) == 1)
    queue.add({'command': 'true'}, {'command': 'true'})
    wait_until(lambda: unreplicated(queue) == 3)
    assert worker.log().count('too few replicas') == 1
    assert '0 of 1 replicas within 150ms' in worker.log()
    replica.cont()
    count = 3

    def enough():
        """On a busy machine that short time may be exceeded once more."""
        nonlocal count
        count += len(queue.add({'command': 'true'}))
        wait_succeeded(queue, count)
        return 'enough replicas again' in worker.log()

    wait_until(enough)
    worker.terminate()
    assert worker.wait_exit() == 0


def test_worker_does_not_wait(daemon, queue, replica):
    """While replicas are waited for, claims, renewals and outcomes go on: one slot runs all its tasks, each
    of which would cost a wait."""
    daemon({'redis': {'wait_timeout': '1h', 'command_timeout': '1h'},
            'queue': {'concurrency': 1}}).wait_ready()
    replica.stop()
    queue.add(*[{'command': 'true'} for _ in range(5)])
    wait_succeeded(queue, 5)
    assert unreplicated(queue) == 0
    replica.cont()
    wait_until(lambda: queue.counter('waited') >= 5)


def test_outcomes_survive_a_failover(daemon, folder, queue, latch, master, replica):
    """An outcome that only the lost master had is sent to the new one, and the task does not run twice."""
    current = folder / 'current.sock'
    current.symlink_to(master.socket)
    worker = daemon({'redis': {'socket': str(current), 'wait_timeout': '1h', 'command_timeout': '1h'},
                     'queue': {'lease': '30s'}}).wait_ready()
    queue.add({'command': f'echo ran >> {folder}/ran; {latch.wait}'})
    wait_until((folder / 'ran').exists)
    there = Queue(replica.client())
    wait_until(lambda: there.redis.hlen(there.running) == 1)
    there.redis.execute_command('REPLICAOF', 'NO', 'ONE')  # the old master does not know
    latch.open()
    wait_until(lambda: queue.counter('waited') == 1)  # the worker has had the reply
    master.kill()
    current.unlink()
    current.symlink_to(replica.socket)
    wait_succeeded(there, 1)
    assert (folder / 'ran').read_text() == 'ran\n' and worker.running()


def test_without_the_right_to_wait(daemon, redis_server, queue, replica):
    """If the user lacks +wait, the log says so once, and the worker goes on."""
    redis_server.client().execute_command(
        'ACL', 'SETUSER', 'worker', 'on', '>secret', '~*', '&*', '+@all', '-wait')
    worker = daemon({'redis': {'user': 'worker', 'password': 'secret'}}).wait_ready()
    queue.add({'command': 'true'})
    worker.wait_log('cannot ask replicas: NOPERM').wait_log('; check user and password in [redis]')
    wait_succeeded(queue, 1)
