"""Producers with nothing but XADD: what one of them adds does not bury what concerns the tasks of others."""
import re
from datetime import datetime

import pytest

from harness.polling import wait_until
from harness.tasks import records, wait_letters, wait_succeeded
from harness.queue import text

pytestmark = pytest.mark.usefixtures('quick_tasks')

ENTRIES = 3000
JUNK = {
    'no command': {'x': 'y'},
    'bad field': {'command': 'true', 'timeout': 'soon'},
    'bad lane': {'command': 'true', 'lane': 'x' * 999},
    'expired': {'command': 'true', 'expires': '1'},
    'too long': {'command': 'x' * 140000},
}


def seconds_of(found):
    """The time from the first of these records to the last."""
    first, last = (datetime.fromisoformat(one[0].replace('Z', '+00:00')) for one in (found[0], found[-1]))
    return (last - first).total_seconds()


def flood(queue, fields, count=ENTRIES):
    pipe = queue.redis.pipeline(transaction=False)
    for _ in range(count):
        pipe.xadd(queue.stream, fields)
    pipe.execute()


@pytest.mark.parametrize('kind', JUNK)
def test_junk_is_summed_up_in_the_log(daemon, queue, kind):
    """Thousands of entries that cannot run write some records a second, which count all of them, have the last
    reason, and say what to do. Those of a task that ran are all written, and its dead letter stays."""
    count = 300 if kind == 'too long' else ENTRIES
    worker = daemon({'queue': {'lease': '60s'}, 'dead': {'keep_number': 20}, 'retry': {'max_attempts': 1}})
    worker.wait_ready()
    ran = queue.add(*[{'command': 'exit 7'}] * 20)
    wait_letters(queue, 20)
    flood(queue, JUNK[kind], count)
    wait_until(lambda: queue.redis.xlen(queue.stream) == 0 and queue.counter('dead') == count + 20)
    worker.terminate()
    worker.process.wait()
    found = [record for record in records(worker.log()) if 'dead-lettered' in record[2]]
    sums = [record for record in found if ' more task' in record[2]]
    single = [record for record in found if ' more task' not in record[2]]
    summed = sum(int(re.search(r'(\d+) more tasks?', message)[1]) for _, _, message in sums)
    assert summed + len(single) == count + 20
    assert len([record for record in single if 'exit 7' in record[2]]) == 20
    # five in each second that has begun
    assert sums and len(single) - 20 <= 5 * (seconds_of(found) + 2)
    assert all('leat -q emails dead list' in message and priority == 'error' for _, priority, message in sums)
    kept = [text(dict(zip(fields[::2], fields[1::2]))[b'leat.tid']) for _, fields in queue.entries('dead')]
    assert set(kept[:20]) == set(ran) and len(kept) == 22


def test_what_is_lowered_is_summed_up(daemon, queue):
    """The same for records about tasks that ask for too much, which run."""
    worker = daemon({'task': {'timeout_max': '30s'}, 'queue': {'concurrency': 8, 'lease': '60s'}}).wait_ready()
    flood(queue, {'command': ':', 'timeout': '0'}, 300)
    wait_succeeded(queue, 300)
    worker.terminate()
    worker.process.wait()
    found = [record for record in records(worker.log()) if 'timeout_max' in record[2]]
    sums = [re.search(r'(\d+) more tasks?', message) for _, _, message in found]
    assert sum(int(one[1]) if one else 1 for one in sums) == 300
    assert len([one for one in sums if not one]) <= 5 * (seconds_of(found) + 2)


def test_few_refusals_are_logged_one_by_one(daemon, queue):
    """Up to five in a second are, each with its task and its reason."""
    worker = daemon().wait_ready()
    flood(queue, JUNK['no command'], 5)
    letters = wait_letters(queue, 5)
    for letter in letters:
        worker.wait_log(f'task {letter.tid}: not started: refused, the task has no command; dead-lettered')
    assert ' more task' not in worker.log()
