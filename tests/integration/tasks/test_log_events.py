"""Log records of the real daemon: what happened to a task, with its fields."""
import os
import re
import shutil
import subprocess

import pytest

from harness.daemon import ROOT
from harness.polling import wait_until
from harness.tasks import records, wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')


def fields_of(message):
    """The fields of "… (task=1-0 attempt=1)"."""
    inner = re.search(r' \(([^()]*)\)$', message)
    pairs = re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)', inner[1]) if inner else []
    return dict(pairs)


def about(worker, tid):
    """[(priority, message, fields)] of one task, without its output."""
    found = [(priority, message, fields_of(message)) for _, priority, message in records(worker.log())]
    return [one for one in found if one[2].get('task') == tid and 'stream' not in one[2]]


ENDS = {
    'success': ('exit 0', 'info', ' succeeded: exit 0', r'after \d+\.\d{3} s',
                {'cause': 'success', 'exit_status': '0'}),
    'dead': ('exit 64', 'error', '/5 failed: exit 64', '; dead-lettered',
             {'cause': 'exit', 'exit_status': '64'}),
    'retry': ('exit 3', 'warning', '/5 failed: exit 3', '; retrying in 60.0 s',
              {'cause': 'exit', 'exit_status': '3'}),
    'signal': ('kill -8 $$', 'warning', '/5 failed: SIGFPE', '; retrying in 60.0 s', {'cause': 'signal'}),
    'killed': ('kill -9 $$', 'warning', '/5 failed: killed by SIGKILL', '; retrying in 60.0 s',
               {'cause': 'killed'}),
    'timeout': ('exec sleep 60', 'warning', '/5 failed: timeout', '; retrying in 60.0 s',
                {'cause': 'timeout'}),
}


@pytest.mark.parametrize('kind', ENDS)
def test_end_of_a_task(daemon, queue, kind):
    """Each end of an attempt is one record with its priority, what happened in words, task, attempt, label,
    cause, status, duration, CPU time and size."""
    command, priority, how, then, fields = ENDS[kind]
    worker = daemon({'retry': {'permanent': '64', 'base': '60s'},
                     'task': {'timeout': '200ms' if kind == 'timeout' else '10m'}}).wait_ready()
    [tid] = queue.add({'command': command, 'id': 'the label'})
    worker.wait_log(f'task {tid}: attempt 1{how}')
    [(found, message, own)] = about(worker, tid)
    assert found == priority and re.search(f'{then}$', message.split(' (')[0])
    duration, used = int(own.pop('duration_usec')), [int(own.pop(name)) for name in ('cpu_usec', 'max_rss')]
    assert own == {'task': tid, 'attempt': '1', 'id': '"the label"', **fields}
    assert duration < 50_000_000 and (kind != 'timeout' or duration >= 200_000)
    assert 0 < used[0] < 10_000_000 and used[1] > 1 << 18


def test_start_of_a_task(daemon, queue):
    """With started = yes the start of an attempt is a record, too."""
    worker = daemon({'log': {'started': 'yes'}, 'retry': {'base': '10ms'}}).wait_ready()
    [tid] = queue.add({'command': 'test $LEAT_ATTEMPT = 2'})
    wait_succeeded(queue, 1)
    wait_until(lambda: len(about(worker, tid)) == 4)
    starts = [own for _, message, own in about(worker, tid) if message.split(' (')[0].endswith('started')]
    assert [one['attempt'] for one in starts] == ['1', '2']


def test_life_of_a_worker(daemon, queue, client):
    """Registered, ready, stopping and stopped are one record each, in this order; the last one has totals."""
    worker = daemon({'retry': {'max_attempts': 2, 'base': '1ms'}}).wait_ready()
    queue.add({'command': 'true'}, {'command': 'false'})
    wait_letters(queue)
    wait_succeeded(queue, 1)
    worker.terminate()
    assert worker.wait_exit() == 0
    messages = [message for _, _, message in records(worker.log())]
    kinds = ('registered with Redis as ', 'ready: queue emails, 4 slots', 'stopping: ', 'stopped: ')
    places = [[at for at, text in enumerate(messages) if text.startswith(kind)] for kind in kinds]
    assert all(len(place) == 1 for place in places) and sum(places, []) == sorted(sum(places, []))
    assert messages[-1] == 'stopped: 1 succeeded, 1 retried, 1 dead, 0 returned, 0 cancelled'


@pytest.mark.parametrize('level, kept', [('error', {'error'}), ('warning', {'error', 'warning'})])
def test_level(daemon, queue, level, kept):
    """Records below the level are not written."""
    worker = daemon({'log': {'level': level}, 'retry': {'max_attempts': 2, 'base': '1ms'}})
    wait_until(lambda: queue.redis.hlen(queue.workers) == 1)
    queue.add({'command': 'echo x; echo y >&2; false'})
    wait_letters(queue)
    worker.wait_log('; dead-lettered')
    assert {priority for _, priority, _ in records(worker.log())} == kept


@pytest.mark.skipif(not os.path.isdir('/var/lib/systemd/catalog'), reason='no catalog of the journal here')
def test_journalctl_explains_records(daemon, queue, journal, folder):
    """journalctl -x prints after a record what it means and what to do, and names the queue and the task."""
    root = folder / 'root'
    for name in 'usr/lib/systemd/catalog', 'var/lib/systemd/catalog':
        (root / name).mkdir(parents=True)
    shutil.copy(ROOT / 'systemd/leat.catalog', root / 'usr/lib/systemd/catalog')
    subprocess.run(['journalctl', f'--root={root}', '--update-catalog'], check=True)
    worker = daemon({'log': {'target': 'journal'}, 'retry': {'base': '60s'}}, start=False)
    worker.prefix = journal.prefix
    worker.start()
    [tid] = queue.add({'command': 'exit 3'})
    [record] = journal.wait(f'LEAT_TASK={tid}', 'LEAT_EVENT=retry')
    mount = f'mount --bind {root}/var/lib/systemd/catalog /var/lib/systemd/catalog'
    match = f"MESSAGE_ID={record['MESSAGE_ID'].decode()}"
    done = journal.run('sh', '-ec', f'{mount}; exec journalctl -x -q --no-pager {match}')
    assert done.returncode == 0, done
    assert 'Subject: An attempt has failed and is retried' in done.stdout
    assert f'time until the next attempt of task {tid}' in ' '.join(re.sub('░░', '', done.stdout).split())
    assert f'leat -q emails explain {tid}' in done.stdout
