"""Tasks that have ended, after a worker ran them: leat list --state done, show, explain and report."""
import json
import re

import pytest

from harness.polling import wait_until
from harness.tasks import first_run, wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')
MEMBERS = ['tid', 'outcome', 'id', 'lane', 'command', 'attempts', 'cause', 'status']


@pytest.fixture
def ran(daemon, queue, folder):
    """Tasks of each outcome that a worker has run: {name: tid}."""
    daemon().wait_ready()
    good, again, killed, bad = queue.add(
        {'command': 'exec sleep 0.2', 'id': 'order-1', 'lane': 'a', 'payload': 'secret'},
        {'command': f'{first_run(folder)} && exit 3 || true'},
        {'command': 'kill -9 $$', 'max_attempts': '1', 'id': 'order-2'},
        {'command': 'exit 7', 'max_attempts': '2', 'lane': 'b'})
    wait_letters(queue, 2)
    wait_succeeded(queue, 2)
    [late] = queue.add({'command': 'true'}, due='+3600000')
    assert queue.call_off(late) == ['cancelled']
    return {'good': good, 'again': again, 'killed': killed, 'bad': bad, 'late': late}


def listed(leat, *words):
    done = leat('list', '--state', 'done', '--limit', '0', '--format',
                '\\t'.join(f'{{{name}}}' for name in MEMBERS), *words)
    assert (done.returncode, done.stderr) == (0, '')
    return [dict(zip(MEMBERS, line.split('\t'))) for line in done.stdout.splitlines()]


def reported(leat, *words):
    done = leat('report', '--json', *words)
    assert (done.returncode, done.stderr) == (0, '')
    return json.loads(done.stdout)


def test_list(leat, queue, ran, folder):
    """Each task is listed once, with what is known of it; filters apply; other lists are as before."""
    rows = {row['tid']: tuple(row.values())[1:] for row in listed(leat)}
    assert rows == {
        ran['good']: ('succeeded', 'order-1', 'a', 'exec sleep 0.2', '1', '', '0'),
        ran['again']: ('succeeded', '', '', f'{first_run(folder)} && exit 3 || true', '2', '', '0'),
        ran['killed']: ('dead', 'order-2', '', 'kill -9 $$', '1', 'killed', 'SIGKILL'),
        ran['bad']: ('dead', '', 'b', 'exit 7', '2', 'exit', '7'),
        ran['late']: ('cancelled', '', '', 'true', '0', 'cancelled', '')}
    for words, names in ((['--label', 'order-*'], ['good', 'killed']), (['--lane', 'b'], ['bad']),
                         (['--command', '*sleep*'], ['good']), (['--cause', 'exit'], ['bad']),
                         (['--worker', 'nobody'], []), (['--older-than', '1h'], []),
                         (['--newer-than', '1h'], ran)):
        assert {row['tid'] for row in listed(leat, *words)} == {ran[name] for name in names}, words
    [row] = json.loads(leat('list', '--state', 'done', '--lane', 'a', '--json').stdout)
    assert row['state'] == 'done' and row['duration_us'] >= 200000 and row['waited_ms'] >= 0
    assert row['begun_ms'] <= row['ended_ms'] and row['usage']['cpu_us'] > 0 and 'secret' not in json.dumps(row)
    page = leat('list', '--state', 'done').stdout
    assert re.search(rf'^{ran["good"]} +order-1 +succeeded .* took \S+, lane a +exec sleep', page, re.M), page
    assert re.search(rf'^{ran["bad"]} .* dead .*, exit 7, lane b', page, re.M), page
    assert 'done' not in {row['state'] for row in json.loads(leat('list', '--json').stdout)}


def test_show_and_explain(leat, queue, ran):
    """A task that has ended is found by its id and its label, a dead letter as before. One that was retried
    shows its last end."""
    page = leat('show', 'order-1').stdout
    by_id = leat('show', ran['good']).stdout
    assert by_id.splitlines()[0] == page.splitlines()[0] == f'task      {ran["good"]}'
    for line in ('outcome   succeeded', 'attempts  1', r'took      \S+', 'lane      a', 'command   exec sleep 0.2',
                 'used      cpu .*'):
        assert re.search(f'^{line}$', page, re.M), page
    assert json.loads(leat('show', '--json', ran['again']).stdout)['attempts'] == 2
    assert 'letter' in leat('show', ran['killed']).stdout
    for name, verdict, code in (('good', 'succeeded', 0), ('late', 'cancelled', 1), ('bad', 'dead', 1)):
        done = leat('explain', ran[name])
        assert (done.returncode, done.stdout.splitlines()[0]) == (code, f'task {ran[name]}: {verdict}')
    assert re.search(r'it succeeded .* on .*, attempt 1$', leat('explain', 'order-1').stdout, re.M)
    assert leat('explain', '1700000000000-0').returncode == 2 and leat('show', '1700000000000-0').returncode == 1

    assert leat('dead', 'retry', ran['bad']).returncode == 0
    wait_letters(queue, 2)
    wait_until(lambda: len(listed(leat, '--lane', 'b')) == 2)
    assert leat('dead', 'drop', ran['bad']).returncode == 0
    shown = json.loads(leat('show', '--json', ran['bad']).stdout)
    ends = json.loads(leat('list', '--state', 'done', '--lane', 'b', '--json').stdout)
    assert shown['ended_ms'] == max(row['ended_ms'] for row in ends)


def test_report(leat, queue, ran):
    """Counts, causes and values equal what happened, in all and in groups; a time without ends is empty."""
    total = reported(leat)['all']
    assert [total[name] for name in ('ended', 'succeeded', 'dead', 'cancelled', 'retries')] == [5, 2, 2, 1, 2]
    assert total['failures'] == [{'cause': 'exit 7', 'tasks': 1}, {'cause': 'killed SIGKILL', 'tasks': 1}]
    took = total['duration_us']
    assert took['count'] == 4 and 0 < took['p50'] <= took['p95'] == took['max'] >= 200000
    assert total['waiting_us']['count'] == 4 and total['cpu_us']['count'] == total['memory_bytes']['count'] == 4
    lanes = {group['lane']: group['ended'] for group in reported(leat, '--by', 'lane')['groups']}
    assert lanes == {'': 3, 'a': 1, 'b': 1}
    commands = {group['command']: group for group in reported(leat, '--by', 'command')['groups']}
    assert commands['exit 7']['failures'] == [{'cause': 'exit 7', 'tasks': 1}] and len(commands) == 5
    hosts = reported(leat, '--by', 'worker')['groups']
    assert [(group['ended'], group['host'] == '') for group in hosts] == [(4, False), (1, True)]
    page = leat('report', '--by', 'command').stdout
    assert page.startswith('5 tasks ended in the last 1d, the first ')
    assert '2 succeeded, 2 died, 1 cancelled; 2 attempts were retried' in page
    for line in ('took .*s', 'exit 7 +1', 'exec sleep 0.2 +1 +0 '):
        assert re.search(f'^{line}', page, re.M), page
    wait_until(lambda: leat('report', '--since', '1ms').stdout == 'no task of the history ended in the last 1ms\n')
    done = leat('report', '--by', 'lanes')
    assert done.returncode == 64 and 'did you mean lane?' in done.stderr


def test_the_configured_command_is_noted(leat, daemon, queue):
    """A task without a command has that of the configuration, and the tasks of a batch have one usage."""
    daemon({'task': {'command': 'sleep 0', 'batch': 10}}).wait_ready()
    queue.add(*[{'payload': str(i)} for i in range(20)])
    wait_succeeded(queue, 20)
    total = reported(leat, '--by', 'command')['groups']
    assert [(group['command'], group['ended']) for group in total] == [('sleep 0', 20)]
    assert total[0]['duration_us']['count'] == 20 and 2 <= total[0]['cpu_us']['count'] <= 20


def test_nothing_is_kept_if_not_wanted(leat, daemon, queue):
    """[queue] history = none keeps nothing; leat conf turns it on at once."""
    daemon({'queue': {'history': 'none'}}).wait_ready()
    queue.add({'command': 'true'})
    wait_succeeded(queue, 1)
    assert leat('list', '--state', 'done').stdout == 'no tasks\n'
    assert 'history           2w' in leat('conf', 'history', '14d').stdout
    queue.add({'command': 'true'})
    wait_succeeded(queue, 2)
    assert len(listed(leat)) == 1
