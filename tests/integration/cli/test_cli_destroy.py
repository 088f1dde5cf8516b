"""leat destroy deletes all keys of its queue and no others, and refuses as long as workers are alive."""
import os
import subprocess

import pytest

from harness.daemon import program
from harness.queue import Queue
from harness.tasks import wait_succeeded

NOTHING_DONE, EX_USAGE, EX_DATAERR = 1, 64, 65
TASK = {'command': 'true', 'id': 'label', 'unique': 'key', 'lane': 'blue', 'result_ttl': '1h'}


def fill(queue):
    """Tasks and results in every key of the queue."""
    queue.register('w1:1:a')
    queue.add(TASK)
    [task] = queue.begin('w1:1:a')
    queue.finish('w1:1:a', task)
    queue.add(*[dict(TASK, id=str(i), unique=str(i)) for i in range(6)])
    queue.add({'command': 'true'}, due='+60000')
    queue.finish('w1:1:a', queue.begin('w1:1:a')[0], 'dead', cause='exit', status='1')
    for _ in range(2):
        [task] = queue.begin('w1:1:a')
        queue.finish('w1:1:a', task, 'release')
    [task] = queue.begin('w1:1:a')
    queue.call_off(task.tid, now=True)
    queue.call('await', 60000, task.tid)
    queue.redis.zadd(queue.lanes, {'blue': 1})
    for name in 'seen', 'seen_until', 'history', 'output:1-1':
        queue.redis.set(queue.stats[:-5] + name, 'x')
    assert [key for key in queue.keys if not queue.redis.exists(key)] == []
    queue.redis.hset(queue.workers, 'w1:1:a', '1 {}')


@pytest.mark.parametrize('stream', ['emails', '{t}e*[a]'])
def test_all_keys_and_no_others(leat, queue, stream):
    """Nothing of the queue is left: neither results nor live output. Queues with similar names stay whole."""
    queue = Queue(queue.redis, stream).load()
    fill(queue)
    others = [Queue(queue.redis, name) for name in (
        'other', queue.stats[:-5] + 'result', queue.stats[:-5] + 'output:1', '{t}ex[a]')]
    for one in others:
        one.register('v1:1:a')
        one.add(TASK)
    kept = {key for one in others for key in one.keys if queue.redis.exists(key)}
    config = {'queue': {'name': 'emails', 'stream': stream}}
    done = leat('destroy', 'emails', '--yes', config=config)
    assert (done.stderr, done.returncode) == ('', 0)
    assert done.stdout.startswith('destroyed the queue emails: ')
    assert {key.decode() for key in queue.redis.keys('*')} == kept
    again = leat('destroy', 'emails', '--yes', config=config)
    assert again.returncode == NOTHING_DONE and 'there is no queue emails' in again.stderr


def test_it_asks(leat, queue):
    """Without a terminal and --yes nothing is deleted; nor is another queue than the named one."""
    fill(queue)
    keys = queue.redis.dbsize()
    for words, why in ((['emails'], 'would delete 5 waiting and 1 running task and 1 dead letter for good; to '),
                       (['mails', '--yes'], 'is of the queue emails, not of mails'),
                       (['--yes'], 'the name of one queue')):
        done = leat('destroy', *words)
        assert done.returncode == EX_USAGE and why in done.stderr
    assert queue.redis.dbsize() == keys


def test_workers_are_alive(leat, queue, daemon, late):
    """A living worker is named. With --force the queue goes, and the worker begins with a new one, at the latest
    after a lease."""
    worker = daemon({'queue': {'lease': '8s'}, 'task': {'kill_grace': '300ms'}}).wait_ready()
    assert leat('enqueue', 'true').returncode == 0
    wait_succeeded(queue, 1)
    refused = leat('destroy', 'emails', '--yes')
    assert refused.returncode == EX_DATAERR and '1 worker is alive, such as ' in refused.stderr
    assert leat('destroy', 'emails', '--yes', '--force').returncode == 0
    assert leat('enqueue', 'true').returncode == 0
    wait_succeeded(queue, 1)
    assert worker.running()


def test_a_task_that_is_added_meanwhile(start, queue, client, proxy, through_proxy):
    """Of a task that comes while the keys are deleted, either all goes or all stays."""
    queue.register('w1:1:a')
    unlink = proxy.trap('UNLINK', when='before', action='hold', holding=b'{emails}:names')
    destroy = start('destroy', 'emails', '--yes', '--force', config=through_proxy)
    unlink.wait()
    queue.add({'command': 'true', 'lane': 'blue', 'unique': 'key'})
    unlink.release()
    assert destroy.ended() == 0 and client.keys('*') == []


def test_a_task_that_ends_meanwhile(start, queue, client, proxy, through_proxy):
    """Once the tasks are gone, the results of those that come later stay."""
    fill(queue)
    unlink = proxy.trap('UNLINK', action='hold', holding=b'{emails}:names')
    destroy = start('destroy', 'emails', '--yes', '--force', config=through_proxy)
    unlink.wait()
    queue.register('w1:1:a')
    queue.add({'command': 'true', 'result_ttl': '1h'})
    [task] = queue.begin('w1:1:a')
    queue.finish('w1:1:a', task)
    unlink.release()
    assert destroy.ended() == 0
    assert client.keys('*:result:*') == [f'{queue.stats[:-5]}result:{task.tid}'.encode()]


def test_without_a_file(leat, client):
    """With --redis the operand names the queue."""
    queue = Queue(client, 'fresh').load()
    queue.add({'command': 'true'})
    socket = client.connection_pool.connection_kwargs['path']
    done = subprocess.run([program('leat'), '--redis', f'unix://{socket}', 'destroy', '--yes', 'fresh'],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, 'LEAT_CONFIG_DIR': '/none'})
    assert (done.returncode, done.stderr) == (0, '') and client.dbsize() == 0
