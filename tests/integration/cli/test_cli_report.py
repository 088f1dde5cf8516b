"""leat report on a history that is known exactly; test_history.py has one that a worker has made."""
import json

import pytest

from harness.functions.history import record

HOUR_MS = 3600000


@pytest.fixture
def end(queue):
    """A function that notes an end: how long ago (ms), and members of the record."""
    queue.register('w1', history=1000)
    ends = []

    def note(age_ms, **members):
        ends.append(queue.redis.xadd(queue.stats.replace(':stats', ':history'), {
            'r': record(f'{len(ends) + 1}-0', **{name: str(value) for name, value in members.items()})},
            id=f'{queue.now() - age_ms}-{len(ends)}'))
    return note


def test_percentiles(leat, end):
    """P50 and P95 are values that 50 and 95 of 100 tasks do not exceed; unknown values count for none."""
    for number in range(100, 0, -1):
        end(60000, waited_ms=number, duration_us=number * 1000, usage=f'cpu_us {number} max_rss {number * 1024}')
    end(50000, outcome='cancelled')
    end(40000, waited_ms=0, usage='max_rss 1 memory_peak 2048000')
    total = json.loads(leat('report', '--json').stdout)['all']
    assert total['waiting_us'] == {'count': 101, 'p50': 50000, 'p95': 95000, 'max': 100000}
    assert total['duration_us'] == {'count': 100, 'p50': 50000, 'p95': 95000, 'max': 100000}
    assert total['cpu_us'] == {'count': 100, 'p50': 50, 'p95': 95, 'max': 100}
    assert total['memory_bytes']['max'] == 2048000
    assert leat('report').stdout.splitlines()[1:6] == [
        '           P50   P95    MAX', 'waited    50ms  95ms  100ms', 'took      50ms  95ms  100ms',
        'CPU time  <1ms  <1ms   <1ms', 'memory     51K   96K   2.0M']


def test_since(leat, end):
    """Only tasks that ended in the given time count, 24 hours by default; the page says since when it has them."""
    for hours in (30, 20, 3, 1):
        end(hours * HOUR_MS - HOUR_MS // 2)
    for words, count in ((), 3), (['--since', '2d'], 4), (['--since', '2h'], 1), (['--since', '90m'], 1):
        assert json.loads(leat('report', '--json', *words).stdout)['all']['ended'] == count, words
    title = leat('report', '--since', '2d').stdout.splitlines()[0]
    assert title.startswith('4 tasks ended in the last 2d, the first 1d5h ago: 4 succeeded, 0 died, 0 cancelled; ')
    assert leat('report', '--since', '20m').stdout == 'no task of the history ended in the last 20m\n'


def test_large_numbers(leat, end):
    """A worker's user can write any record: sums and times of the greatest numbers are large, and not negative."""
    for _ in range(40):
        end(60000, waited_ms=2 ** 63 - 1, attempts=2 ** 63 - 1)
    total = json.loads(leat('report', '--json').stdout)['all']
    assert total['waiting_us']['max'] > 2 ** 62 and total['retries'] > 2 ** 40, total


def test_moved(leat, end):
    """A task that went to another queue has not ended, unlike one that was cancelled."""
    end(60000, outcome='cancelled', cause='cancelled', reason='moved to mails as 1769860800000-0', command='moved')
    end(50000, outcome='cancelled', cause='cancelled', command='cancelled')
    found = json.loads(leat('report', '--json', '--by', 'command').stdout)
    assert (found['all']['ended'], found['all']['cancelled']) == (1, 1)
    assert [group['command'] for group in found['groups']] == ['cancelled']


def test_groups(leat, end):
    """The largest group comes first, each failure is counted by its cause, and a page has 20 groups."""
    for number in range(25):
        end(60000, command=f'job {number:02}', lane='a', worker='web1:1:n')
    for status in (1, 1, 2):
        end(50000, command='job 07', outcome='dead', cause='exit', status=status, lane='b\n', worker='web:2:7:n',
            attempts=3)
    found = json.loads(leat('report', '--json', '--by', 'command').stdout)
    assert [(group['command'], group['ended']) for group in found['groups'][:3]] == [
        ('job 07', 4), ('job 00', 1), ('job 01', 1)]
    assert found['groups'][0]['failures'] == [{'cause': 'exit 1', 'tasks': 2}, {'cause': 'exit 2', 'tasks': 1}]
    assert found['all']['retries'] == 6
    page = leat('report', '--by', 'command').stdout
    assert page.endswith('... and 5 others; --json has all\n') and 'job 19' in page and 'job 20' not in page
    lanes = json.loads(leat('report', '--json', '--by', 'lane').stdout)['groups']
    assert [(group['lane'], group['dead']) for group in lanes] == [('a', 0), ('b\n', 3)]
    hosts = json.loads(leat('report', '--json', '--by', 'worker').stdout)['groups']
    assert [(group['host'], group['ended']) for group in hosts] == [('web1', 25), ('web:2', 3)]
