"""Growing numbers of dead letters cause a warning, once for each power of ten, whichever worker's heartbeat
finds it."""
import pytest

from harness.polling import wait_until
from harness.tasks import records

pytestmark = pytest.mark.usefixtures('quick_tasks')


def letters(queue, count):
    """Makes this number of dead letters."""
    queue.redis.delete(queue.dead)
    pipeline = queue.redis.pipeline(transaction=False)
    for i in range(count):
        pipeline.execute_command('XADD', queue.dead, f'1-{i + 1}', 'command', 'x', 'leat.tid', f'{i + 1}-0',
                                 'leat.cause', 'exit', 'leat.fields', '1')
    pipeline.execute()


def growth(queue):
    return queue.renew('w')['dead_growth']


def test_each_power_of_ten_once(queue):
    """99 dead letters cause no warning; at 100 the next heartbeat warns, and no other until there are 1,000."""
    queue.register('w')
    told = []
    for count in (0, 99, 100, 100, 101, 999, 1000, 1001, 9999, 12345, 12345):
        letters(queue, count)
        told.append(growth(queue))
    assert told == [0, 0, 100, 0, 0, 0, 1000, 0, 0, 12345, 0]


def test_around_a_limit(queue):
    """A number that moves around a limit warns once; if more than half of the dead letters are removed, a
    later growth warns again."""
    queue.register('w')
    told = []
    for count in (1000, 999, 1000, 500, 1000, 499, 500, 999, 1000, 49, 99, 100):
        letters(queue, count)
        told.append(growth(queue))
    assert told == [1000, 0, 0, 0, 0, 0, 0, 0, 1000, 0, 0, 100]


def test_a_foreign_key_stops_no_renewal(queue):
    """If dead letters cannot be counted, leases are still renewed."""
    queue.register('w')
    queue.add({'command': 'x'})
    [task] = queue.begin('w')
    queue.redis.set(queue.dead, 'text')
    answer = queue.renew('w', [task.token])
    assert (answer['lost'], answer['dead_growth']) == ([], 0)


def test_one_worker_warns(daemon, queue):
    """Of two workers, one writes one record, with the number and the command to list them."""
    letters(queue, 99)
    workers = [daemon({'retry': {'max_attempts': 1}}).wait_ready() for _ in range(2)]
    queue.add({'command': 'exit 3'})
    wanted = 'queue emails: 100 dead letters; list them with: leat -q emails dead list'
    wait_until(lambda: any(wanted in worker.log() for worker in workers))
    heartbeats = dict(queue.redis.hgetall(queue.workers))
    wait_until(lambda: all(now != heartbeats[name] for name, now in queue.redis.hgetall(queue.workers).items()),
               message='both have beaten again')
    found = [(priority, message) for worker in workers for _, priority, message in records(worker.log())
             if '; list them with' in message]
    assert found == [('warning', f'{wanted} (count=100)')]
