"""The filters of leat list, and --format."""
import json

import pytest

HOUR_MS = 3600000


@pytest.fixture
def listed(leat):
    """The tids that leat list prints with these options, sorted."""
    def run(*words, warning=''):
        done = leat('list', '--limit', '0', '--format', '{tid}', *words)
        assert done.returncode == 0 and warning in done.stderr and bool(done.stderr) == bool(warning), done
        return sorted(done.stdout.split())
    return run


@pytest.fixture
def tids(queue):
    """A task in each state, with names that tell it from the others."""
    queue.register('web1:12:n')
    queue.conf_set('lane:full', '1, 1')
    retrying, dead, running = queue.add({'command': 'try', 'id': 'order-1'}, {'command': 'die', 'id': 'order-2'},
                                        {'command': 'run', 'lane': 'full', 'id': 'job-1'})
    tasks = {task.tid: task for task in queue.begin('web1:12:n', 3)}
    queue.finish('web1:12:n', tasks[retrying], 'retry', cause='exit', status='3', delay=60000)
    queue.finish('web1:12:n', tasks[dead], 'dead', cause='signal', status='SIGKILL')
    [delayed] = queue.add({'command': 'later ' + 'x' * 300 + ' end'}, due='+60000')
    [unique] = queue.add({'command': 'next', 'unique': 'k'})
    [ready, laned] = queue.add({'command': 'make thumbs'}, {'command': 'make\0more', 'lane': 'full'})
    return {'retrying': retrying, 'dead': dead, 'running': running, 'delayed': delayed, 'unique': unique,
            'ready': ready, 'laned': laned}


@pytest.mark.parametrize('words, names', [
    (['--label', 'order-*'], ['retrying', 'dead']), (['--label', 'order-1'], ['retrying']),
    (['--label', 'order'], []),
    (['--lane', 'full'], ['running', 'laned']), (['--lane', 'full', '--state', 'ready'], ['laned']),
    (['--lane', ''], ['retrying', 'dead', 'delayed', 'unique', 'ready']), (['--lane', 'none'], []),
    (['--worker', 'web1'], ['running', 'dead']), (['--worker', 'web?:12:*', '--state', 'running'], ['running']),
    (['--worker', 'web'], []), (['--cause', 'signal'], ['dead']), (['--cause', 'exit'], []),
    (['--command', 'make*'], ['ready', 'laned']), (['--command', 'make thumbs'], ['ready']),
    (['--command', 'later*end'], ['delayed']), (['--command', 'mak?'], []),
    (['--command', '*e*', '--label', 'order-2'], ['dead']),
    (['--older-than', '1h'], []),
    (['--newer-than', '1h', '--state', 'dead'], ['dead'])])
def test_filters(listed, tids, words, names):
    """A task is listed if it passes every filter; commands count as a whole, with bytes of any kind."""
    assert listed(*words) == sorted(tids[name] for name in names)


def test_ages(listed, queue):
    """Ages count from the time at which a task was enqueued."""
    queue.register('w1')
    old = queue.redis.xadd(queue.stream, {'command': 'true'}, id=f'{queue.now() - 2 * HOUR_MS}-1').decode()
    [new] = queue.add({'command': 'true'})
    assert listed('--older-than', '1h') == [old] and listed('--newer-than', '1h') == [new]
    assert listed('--older-than', '1h', '--newer-than', '3h') == [old]
    assert listed('--older-than', '3h') == []


def test_the_search_ends(leat, listed, queue):
    """A filter that finds nothing looks at a bounded number of tasks, and says so. The tasks of a lane are found
    among any number of others, and --limit ends the search when enough are found."""
    queue.register('w1')
    queue.add(*[{'command': 'true'}] * 50, *[{'command': 'true', 'lane': 'a'}] * 300)
    last = queue.add(*[{'command': 'true', 'lane': 'z', 'id': f'z-{number}'} for number in range(250)])
    warning = 'searched only the first 60 ready tasks; --search 0 searches all'
    assert listed('--label', 'z-7', '--search', '60', warning=warning) == []
    assert listed('--label', 'z-7') == listed('--label', 'z-7', '--search', '0') == [last[7]]
    assert listed('--lane', 'z', '--search', '400') == sorted(last)
    done = leat('list', '--lane', 'z', '--limit', '5', '--search', '6', '--format', '{id}')
    assert done.stdout.split() == [f'z-{number}' for number in range(5)] and done.stderr == ''
    assert len(listed()) == 600


def test_a_search_counts_delayed_and_retrying_tasks_together(leat, tids):
    """They wait in one set. So a search for either looks at both, and says so once."""
    expected = 'leat: searched only the first 1 delayed and retrying task; --search 0 searches all\n'
    for state in ['--state', 'retrying'], ['--state', 'delayed'], []:
        done = leat('list', *state, '--command', 'none', '--search', '1')
        assert [line for line in done.stderr.splitlines(True) if 'retrying' in line] == [expected]


def test_the_next_task_of_a_lane(listed, queue):
    """A task of the lane that has left it for the streams, or never waited in it, is found as well."""
    queue.register('w1')
    plain = queue.redis.xadd(queue.stream, {'command': 'true', 'lane': 'a'}).decode()
    tids = queue.add(*[{'command': 'true', 'lane': 'a'}] * 3)
    assert listed('--lane', 'a') == sorted([plain, *tids])


def test_format(leat, queue, tids):
    """Members of a row, escapes and text; a row without a member has nothing there, and stays one line."""
    def run(form, *words):
        done = leat('list', '--format', form, *words)
        assert (done.returncode, done.stderr) == (0, ''), done
        return done.stdout
    assert run('{state}\\t{attempts}\\t{worker}|{cause}\\n\\\\{{{id}}', '--state', 'running') == \
        'running\t1\tweb1:12:n|\n\\{job-1}\n'
    assert run('{command}', '--state', 'delayed').startswith('later x') and \
        run('{command}', '--state', 'delayed').endswith(' end\n')
    assert run('{command}', '--lane', 'full', '--state', 'ready') == 'make\\x00more\n'
    assert run('{cause} {status} {died_ms}', '--state', 'dead').startswith('signal SIGKILL 1')
    assert run('{tid}', '--label', 'none') == ''
    [row] = json.loads(leat('list', '--state', 'delayed', '--command', 'later*', '--json').stdout)
    assert row['tid'] == tids['delayed']


@pytest.mark.parametrize('words, said', [
    (['--format', '{tod}'], '--format: unknown member {tod}; did you mean tid?'),
    (['--format', 'x {tid'], '--format: a brace is not closed: {tid'),
    (['--format', '{tid}', '--json'], 'give --json or --format, not both'),
    (['--cause', 'tiemout'], '--cause: unknown cause tiemout; did you mean timeout?'),
    (['--older-than', 'old'], '--older-than')])
def test_usage(leat, words, said):
    """Wrong forms and filters are refused before Redis is asked."""
    done = leat('list', *words, config={'redis': {'socket': '/none'}})
    assert done.returncode == 64 and said in done.stderr
