"""LEAT_FENCE, the fencing token: a task's effects can be guarded against a stale run."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.daemon import merged
from harness.polling import wait_until
from harness.short_leases import SHORT
from harness.tasks import wait_letters, wait_succeeded

MANUAL = Path(__file__).resolve().parents[3] / 'src/daemon/leatd.8'


def again(queue, how, task):
    """Makes the task run again in that way, however it ended before."""
    if how in ('retry', 'release'):
        assert queue.finish('w1', task, how, cause='exit', status='1') == 'ok'
    elif how == 'expiry':
        queue.expire(task.token)
    elif how == 'worker proved dead':
        assert queue.requeue('w1', died=True) == (1, 0)
    elif how == 'dead letter retried':
        assert queue.finish('w1', task, 'dead', cause='exit', status='1') == 'ok'
        [(id, _)] = queue.letters()
        assert queue.dead_retry(id) == ['ok']


def begun(queue):
    """The one task, as soon as it can be claimed."""
    found = []

    def look():
        found.extend(queue.scan('w1', 1)[1])
        return found
    wait_until(look, message=lambda: f'the task is begun: {queue.places()}')
    return found[0]


@pytest.mark.parametrize('lane', [{}, {'lane': 'a'}])
@pytest.mark.parametrize('due', [0, '+1'])
def test_every_run_has_a_greater_token(queue, lane, due):
    """Each run of a task has a greater token than all earlier ones, after a retry of its dead letter, too."""
    queue.register('w1', max_crashes=100)
    [tid] = queue.add({'command': 'x', **lane}, due=due)
    ways = ['retry', 'release', 'expiry', 'worker proved dead', 'dead letter retried'] * 2
    fences = [begun(queue)]
    for how in ways:
        again(queue, how, fences[-1])
        queue.register('w1', max_crashes=100)
        fences.append(begun(queue))
    assert {task.tid for task in fences} == {tid}
    numbers = [task.fence for task in fences]
    assert numbers[-1] < 2 ** 53 and all(a < b for a, b in zip(numbers, numbers[1:])), numbers


def test_tasks_get_a_greater_token(daemon, queue, leat, folder):
    """The same holds on real workers: stopped, killed, failing, dead and retried tasks."""
    lines, mode = folder / 'lines', folder / 'mode'
    command = (f'echo "$LEAT_TASK $LEAT_FENCE" >>{lines}; '
               f'case $(cat {mode}) in fail) exit 1;; hang) exec sleep 1000;; esac')
    config = {**merged(SHORT, {'queue': {'lease': '60s'}}), 'retry': {'base': '0', 'max_attempts': 1},
              'shutdown': {'drain': '0'}}

    def wait_lines(count):
        wait_until(lambda: lines.exists() and len(lines.read_text().splitlines()) >= count,
                   message=lambda: f'{count} runs: {lines.exists() and lines.read_text()}')

    mode.write_text('hang')
    [tid] = queue.add({'command': command})
    stopped = daemon(config).wait_ready()
    wait_lines(1)
    stopped.terminate()
    assert stopped.wait_exit() == 0
    killed = daemon(config).wait_ready()
    wait_lines(2)
    killed.kill9()  # before its task could read more
    mode.write_text('fail')
    daemon(config).wait_ready()
    wait_lines(3)
    wait_letters(queue)
    mode.write_text('succeed')
    assert leat('dead', 'retry', '--all', '--yes').returncode == 0
    wait_succeeded(queue, 1)
    runs = [line.split() for line in lines.read_text().splitlines()]
    assert [run[0] for run in runs] == [tid] * 4
    fences = [int(run[1]) for run in runs]
    assert fences[0] >= 1 and all(a < b for a, b in zip(fences, fences[1:])), fences


# ---- the examples of leatd(8)

def example(number):
    text = re.search(r'^\.Ss Fencing what a task writes\n(.*?)^\.S[hs] ', MANUAL.read_text(), re.S | re.M).group(1)
    return re.findall(r'^\.Bd [^\n]*\n(.*?)^\.Ed$', text, re.S | re.M)[number].replace('\\e', '\\')


def test_the_manual_s_example_with_redis(redis_server, client):
    """A write of a stale run is refused, and its task fails."""
    if not shutil.which('redis-cli'):
        pytest.skip('redis-cli is not installed')
    script = example(0)

    def write(task, fence, value):
        env = dict(os.environ, REDISCLI_SOCKET=redis_server.socket, LEAT_TASK=task, LEAT_FENCE=str(fence),
                   VALUE=value, PATH=f'{folder}:{os.environ["PATH"]}')
        return subprocess.run(['sh', '-c', script], env=env, capture_output=True, text=True, check=False)

    folder = redis_server.folder / 'bin'
    folder.mkdir()
    wrapper = folder / 'redis-cli'
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("redis-cli")} -s "$REDISCLI_SOCKET" "$@"\n')
    wrapper.chmod(0o755)
    assert write('t1', 2, 'second').returncode == 0
    assert write('t1', 1, 'stale').returncode != 0
    assert client.hget('thumb:t1', 'value') == b'second'
    assert write('t1', 2, 'again').returncode == 0
    assert write('t1', 10, 'tenth').returncode == 0
    assert client.hget('thumb:t1', 'value') == b'tenth'
    assert write('t2', 1, 'other').returncode == 0


def test_the_manual_s_example_with_sql():
    """The same holds for a statement for PostgreSQL and SQLite."""
    sqlite3 = pytest.importorskip('sqlite3')
    statement = example(1)
    base = sqlite3.connect(':memory:')
    base.execute('CREATE TABLE thumbs (task TEXT PRIMARY KEY, fence INTEGER NOT NULL, value TEXT)')

    def write(fence, value):
        cursor = base.execute(statement, {'task': 't1', 'fence': fence, 'value': value})
        return cursor.rowcount

    assert write(2, 'second') == 1
    assert write(1, 'stale') == 0
    assert write(10, 'tenth') == 1
    assert base.execute('SELECT fence, value FROM thumbs').fetchall() == [(10, 'tenth')]
