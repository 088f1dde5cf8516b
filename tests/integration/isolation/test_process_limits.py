"""Limits of each process of a task, and its priorities."""
import re
from pathlib import Path

import pytest

from harness.polling import wait_until
from harness.tasks import wait_file, wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')

LOOK = ('{{ cat /proc/self/limits; echo nice $(nice); echo io $(ionice);'
        ' echo oom $(cat /proc/self/oom_score_adj); echo end; }} > {0}/new; mv {0}/new {0}/{1}')


def limits_of(path):
    """{name: (soft, hard)} of /proc/PID/limits."""
    rows = re.findall(r'^Max (.*?)  +(\S+) +(\S+)', path.read_text(), re.M)
    return {name: (soft, hard) for name, soft, hard in rows}


def last_lines(path):
    return dict(re.findall(r'^(nice|io|oom) (.*)$', path.read_text(), re.M))


def test_limits_apply_to_tasks(daemon, queue, folder):
    """[limits] and [task] set the rlimits, nice, I/O priority and OOM score of tasks and their children; the
    daemon keeps its own."""
    worker = daemon({
        'limits': {'open_files': 100, 'core': '1M', 'cpu_time': '1h', 'file_size': '10M',
                   'processes': 4000, 'stack': '4M', 'locked_memory': 0, 'address_space': '4G'},
        'task': {'nice': 5, 'ionice': 'best-effort 6', 'oom_score_adj': 300}}).wait_ready()
    queue.add({'command': LOOK.format(folder, 'out')})
    wait_succeeded(queue, 1)
    found = limits_of(folder / 'out')
    expected = {'open files': 100, 'core file size': 1 << 20, 'file size': 10 << 20,
                'processes': 4000, 'stack size': 4 << 20, 'locked memory': 0,
                'address space': 4 << 30}
    for name, value in expected.items():
        assert found[name] == (str(value), str(value))
    assert found['cpu time'] == ('3600', '3601')
    assert last_lines(folder / 'out') == {'nice': '5', 'io': 'best-effort: prio 6', 'oom': '300'}
    own = limits_of(Path(f'/proc/{worker.pid}/limits'))
    assert own['open files'][0] != '100' and own['stack size'] != found['stack size']


def test_inherit_and_none(daemon, queue, folder):
    """Without a setting a task has the daemon's inherited value; none means no limit."""
    worker = daemon({'limits': {'core': 'none'}}).wait_ready()
    queue.add({'command': LOOK.format(folder, 'out')})
    wait_succeeded(queue, 1)
    found, own = limits_of(folder / 'out'), limits_of(Path(f'/proc/{worker.pid}/limits'))
    assert found['core file size'] == ('unlimited', 'unlimited')
    for name in ('stack size', 'file size', 'processes', 'locked memory', 'cpu time'):
        assert found[name] == own[name]


@pytest.mark.parametrize('limits, command, status', [
    ({'cpu_time': '1s'}, 'while :; do :; done', 'SIGXCPU'),
    ({'file_size': '4K'}, 'exec head -c 100000 /dev/zero > {0}/large', 'SIGXFSZ'),
])
def test_limits_are_enforced(daemon, queue, folder, limits, command, status):
    """A process that exceeds its limit dies of the signal for it."""
    daemon({'limits': limits, 'retry': {'max_attempts': 1}}).wait_ready()
    queue.add({'command': command.format(folder)})
    [letter] = wait_letters(queue)
    assert letter.status == status


def test_reload_changes_limits(daemon, queue, folder):
    """After a reload new tasks have the new limits."""
    worker = daemon({'limits': {'open_files': 100}}).wait_ready()
    queue.add({'command': LOOK.format(folder, 'one')})
    wait_file(folder / 'one')
    text = worker.config_path.read_text()
    worker.config_path.write_text(text.replace('open_files = 100', 'open_files = 60'))
    worker.reload()
    worker.wait_log('configuration reloaded')
    queue.add({'command': LOOK.format(folder, 'two')})
    wait_file(folder / 'two')
    assert limits_of(folder / 'one')['open files'] == ('100', '100')
    assert limits_of(folder / 'two')['open files'] == ('60', '60')


def test_limit_that_cannot_be_set(daemon, queue):
    """A limit that this host does not grant is a host fault: the key is named, and no attempt is used."""
    most = int(Path('/proc/sys/fs/nr_open').read_text())
    if most >= 1 << 30:
        pytest.skip('this host grants any number of open files')
    worker = daemon({'limits': {'open_files': 1 << 30}}).wait_ready()
    queue.add({'command': 'true'})
    worker.wait_log('this host cannot run tasks: cannot set [limits] open_files: '
                    'Operation not permitted')
    wait_until(lambda: queue.counter('released') >= 1)
    assert queue.counter('retried') == queue.counter('dead') == 0
