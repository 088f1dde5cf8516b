"""What a worker counts while it runs tasks, and how leat status shows it."""
import json

import pytest

from harness.polling import wait_until
from harness.tasks import wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')


def since_creation(leat):
    return json.loads(leat('status', '--json').stdout)['since_creation']


def test_figures_equal_the_history(daemon, queue, leat, folder):
    """After a graceful stop, attempts that started, their waiting times and durations, and ends by cause are as
    many as happened; sums and percentiles fit."""
    worker = daemon().wait_ready()
    queue.add(*[{'command': 'true'}] * 30)
    queue.add(*[{'command': f'mkdir {folder}/$LEAT_TASK'}] * 5)
    queue.add({'command': 'sleep 0.3'}, {'command': 'exec sleep 0.3'})
    queue.add(*[{'command': f'mkdir {folder}/again-$LEAT_TASK && exit 3'}] * 4)
    queue.add({'command': 'exit 9', 'max_attempts': '1'}, {'command': 'kill -9 $$', 'max_attempts': '2'})
    wait_letters(queue, 6)
    wait_succeeded(queue, 37)
    attempts = 37 + 4 * 5 + 1 + 2
    worker.terminate()
    assert worker.wait_exit() == 0
    totals = since_creation(leat)
    assert [totals['attempts_started'], totals['waiting']['count'], totals['duration']['count']] == [attempts] * 3
    assert totals['cpu']['count'] in (0, attempts) and (totals['leases_lost'], totals['stale_results']) == (0, 0)
    assert totals['duration']['sum_s'] >= 0.6 and 0 < totals['duration']['p50_s'] <= totals['duration']['p99_s']
    assert totals['retried_by_cause'] == {'exit': 16, 'killed': 1}
    assert totals['dead_by_cause'] == {'exit': 5, 'killed': 1} and totals['released_by_cause'] == {}
    page = leat('status').stdout
    assert '  waiting of attempts: p50 ' in page and '  duration of attempts: p50 ' in page
    assert '  since the queue was created: enqueued 43, succeeded 37, retried 17, dead 6' in page


def test_waiting_is_counted_from_the_due_time(daemon, queue, leat):
    """A task that waited for a worker has waited long, a delayed task only since it was due."""
    queue.redis.xadd('emails', {'command': 'true'}, id=f'{queue.now() - 3600 * 1000}-0')
    daemon().wait_ready()
    queue.add({'command': 'true'}, due='+300')
    wait_succeeded(queue, 2)
    wait_until(lambda: since_creation(leat)['waiting']['count'] == 2)
    totals = since_creation(leat)
    assert 3600 <= totals['waiting']['sum_s'] and 2500 < totals['waiting']['p99_s'] <= 5000
    assert totals['waiting']['p50_s'] < 2500


def test_ends_are_shown_within_seconds(daemon, queue, leat):
    """What a worker has done is shown long before its next heartbeat, and so are the times of its attempts."""
    daemon({'queue': {'lease': '10m'}}).wait_ready()

    def done():
        [worker] = json.loads(leat('status', '--json').stdout)['workers']
        return worker['succeeded'], worker['failed'], since_creation(leat)['duration'].get('count')

    queue.add({'command': 'true'}, {'command': 'exit 3', 'max_attempts': '1'})
    wait_until(lambda: done() == (1, 1, 2), 10, done)
    queue.add(*[{'command': 'true'}] * 5)
    wait_until(lambda: done() == (6, 1, 7), 10, done)


def test_lost_replies_count_once(daemon, queue, leat, proxy, through_proxy):
    """If the reply to a heartbeat is lost, its figures come again with the registration, and count once."""
    worker = daemon(through_proxy).wait_ready()
    for name in ('leat_renew', 'leat_renew', 'leat_register'):
        queue.add(*[{'command': 'true'}] * 7)
        if name == 'leat_register':
            proxy.cut()
        proxy.trap(name, 'after', 'cut').wait()
    wait_until(lambda: queue.counter('succeeded') == 21)
    worker.terminate()
    assert worker.wait_exit() == 0
    totals = since_creation(leat)
    assert (totals['attempts_started'], totals['duration']['count']) == (21, 21)
