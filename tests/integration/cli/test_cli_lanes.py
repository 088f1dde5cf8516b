"""Lanes, unique keys and rates on the command line: leat enqueue, conf, status and list."""
import json
import re
import subprocess

import pytest

from harness.daemon import program

EXISTS, EX_USAGE, EX_DATAERR = 1, 64, 65


@pytest.fixture(autouse=True)
def worker(queue):
    queue.register('w1')


def conf(leat, *args, **options):
    done = leat('conf', *args, **options)
    assert done.returncode == 0, done.stderr
    return dict(line.split(None, 1) for line in done.stdout.splitlines())


# ---- enqueue

def test_the_fields_reach_the_queue(leat, queue):
    """Each option becomes a field of the task, beside the others."""
    done = leat('enqueue', '--lane', 'a b', '--unique', 'k', '--unique-for', '1h30m', '--unique-next', 'true')
    assert (done.returncode, done.stderr) == (0, '')
    [task] = queue.begin('w1')
    assert {name: value.decode() for name, value in task.fields.items()} == {
        'lane': 'a b', 'unique': 'k', 'unique_for': '1h30m', 'unique_next': '1', 'command': 'true'}


def test_a_unique_task_that_exists(leat, queue):
    """If the key is held, leat prints the holder's id, says so on stderr and exits with 1; --json says so
    too."""
    first = leat('enqueue', '--unique', 'k', 'one')
    again = leat('enqueue', '--unique', 'k', 'two')
    assert (first.returncode, again.returncode) == (0, EXISTS)
    assert first.stdout == again.stdout and 'unique key' in again.stderr and 'nothing was added' in again.stderr
    as_json = leat('enqueue', '--json', '--unique', 'k', 'three')
    assert as_json.returncode == EXISTS
    assert json.loads(as_json.stdout) == {'tid': first.stdout.strip(), 'new': False}
    assert len(queue.places()) == 1


def test_a_follow_up(leat, queue):
    """While the holder runs, one follow-up is new, and a second one gets the first one's id."""
    leat('enqueue', '--unique', 'k', 'one')
    [task] = queue.begin('w1')
    wanted = [leat('enqueue', '--unique', 'k', '--unique-next', 'again') for _ in range(2)]
    assert [done.returncode for done in wanted] == [0, EXISTS]
    assert wanted[0].stdout == wanted[1].stdout != task.tid
    assert 'following' in leat('show', wanted[0].stdout.strip()).stdout


def test_an_id_that_exists_is_no_failure(leat, queue):
    """An existing id is a success, because the same task was meant; with a held key besides, it is a failure."""
    first = leat('enqueue', '--id', 'i', 'one')
    again = leat('enqueue', '--id', 'i', 'one')
    both = leat('enqueue', '--id', 'i', '--unique', 'k', 'one')
    assert [done.returncode for done in (first, again, both)] == [0, 0, EXISTS]
    assert 'or label' in both.stderr


def test_many_with_keys_and_lanes(leat, queue):
    """In JSON lines each task has its own key and lane; an option applies to all."""
    lines = [{'command': 'a', 'unique': 'k', 'lane': 'x'}, {'command': 'b', 'unique': 'k', 'lane': 'x'},
             {'command': 'c', 'unique': 'l', 'lane': 'y'}]
    done = leat('enqueue', '--unique-for', '5m', '--json', '--json-lines', '--file', '-',
                input='\n'.join(map(json.dumps, lines)))
    assert done.returncode == 0
    assert [json.loads(line)['new'] for line in done.stdout.splitlines()] == [True, False, True]
    leat('enqueue', '--lane', 'z', '--file', '-', input='d\ne\n')
    lanes = {task.fields['command'].decode(): task.fields['lane'].decode() for task in queue.begin('w1', 10)}
    assert lanes == {'a': 'x', 'c': 'y', 'd': 'z', 'e': 'z'}


@pytest.mark.parametrize('args, said', [
    (['--unique-for', '1h', 'x'], '--unique-for needs --unique'),
    (['--unique-next', 'x'], '--unique-next needs --unique'),
    (['--unique', 'k', '--unique-for', 'soon', 'x'], '--unique-for'),
    (['--unique', 'k', '--file', '-'], '--unique is for one task'),
    (['--lane', 'x'], 'missing operand: give a command line, or --file'),
    (['--file', '-', '--as', 'URL'], 'give a command line; with --as, the lines of the file have none'),
])
def test_wrong_usage(leat, queue, args, said):
    """A wrong option gets exit status 64, and nothing is enqueued."""
    done = leat('enqueue', *args)
    assert done.returncode == EX_USAGE and said in done.stderr and queue.places() == {}


@pytest.mark.parametrize('args', [['--lane', 'x' * 201, 'true'], ['--lane', 'a', '--field', 'lane=b', 'true']])
def test_refused_before_it_is_sent(leat, queue, args):
    """A task that a worker would refuse is refused."""
    done = leat('enqueue', *args)
    assert done.returncode == EX_DATAERR and 'lane' in done.stderr and queue.places() == {}


# ---- conf

def test_rates_are_shown_and_set(leat, queue):
    """none means no rate, when shown and when set, and workers obey at once."""
    queue.register('w1', rate='', burst=1)
    assert (conf(leat)['rate'], conf(leat)['burst']) == ('none', '1')
    assert conf(leat, 'rate', '1/h')['rate'] == '1/h' and conf(leat, 'burst', 2)['burst'] == '2'
    queue.add(*[{'command': 'x'}] * 5)
    assert len(queue.begin('w1', 5)) == 2
    assert conf(leat, 'rate', 'none')['rate'] == 'none'
    assert len(queue.begin('w1', 5)) == 3
    assert json.loads(leat('conf', '--json').stdout)['rate'] == ''


def test_lanes_are_shown_and_set(leat, queue):
    """Lane settings are shown in one form, by name; none removes them."""
    assert conf(leat, 'lane:big', '2,3')['lane:big'] == '2, 3'
    shown = conf(leat, 'lane:all of it', ' strict , - ,20/s,  5')
    assert shown['lane:big'] == '2, 3'
    text = leat('conf').stdout
    assert 'lane:all of it   ' in text and 'strict, -, 20/s, 5' in text
    assert text.index('lane:all') < text.index('lane:big')
    assert 'lane:big' not in conf(leat, 'lane:big', 'none')
    assert queue.conf_set()['lane:big'] == ''


def test_the_file_is_applied(leat, queue):
    """--apply makes the file's values the queue's, also those that it leaves at their defaults; lanes that the
    file does not name keep their settings."""
    queue.register('w1', rate='1/h', max_length=5)
    queue.conf_set('lane:big', '9')
    queue.conf_set('lane:kept', '2')
    file = {'limits': {'rate': '20/s'}, 'queue': {'lease': '90s'}, 'lanes': {'big': '2,3', '*': '1, 1'}}
    done = leat('conf', '--apply', config=file)
    assert done.returncode == 0
    shown = dict(line.split(None, 1) for line in done.stdout.splitlines())
    for name, value in {'rate': '20/s', 'lease': '1m30s', 'max_length': 'none', 'lane:big': '2, 3',
                        'lane:*': '1, 1', 'lane:kept': '2'}.items():
        assert shown[name] == value
    short = leat('conf', '--apply', config={'queue': {'lease': '1s'}, 'task': {'kill_grace': '1ms'}})
    assert short.returncode == 0 and 'lease             1s' in short.stdout


def test_what_apply_takes(leat, queue, client):
    """--apply takes no setting, and it requires a file."""
    done = leat('conf', '--apply', 'rate', '1/s')
    assert done.returncode == EX_USAGE and '--apply takes no name and value' in done.stderr
    socket = client.connection_pool.connection_kwargs['path']
    argv = [program('leat'), '-q', 'emails', '--redis', f'unix:{socket}', 'conf', '--apply']
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == EX_USAGE and '--apply requires a configuration file' in done.stderr


def test_names_of_lanes_are_shown_safely(leat, queue):
    """Names of lanes are shown safely, whatever bytes they have."""
    queue.call('conf', b'lane:\x1b[31m\xff', '2')
    text = leat('conf').stdout
    assert '\x1b' not in text and 'lane:\\x1b[31m' in text


@pytest.mark.parametrize('name, value, said', [
    ('rate', '20', 'is not a rate; write it like 20/s'), ('rate', '0/s', 'is not a rate'), ('burst', '0', 'burst'),
    ('lane:a', 'x', 'is not a weight'), ('lane:a', '1, 0', 'number of running tasks'),
    ('lane:a', '1,1,1', 'is not a rate'),
    ('lane:a', '1,1,1/s,0', 'is not a burst'), ('lane:a', '1,1,1/s,1,1', 'weight, max_running, rate, burst'),
    ('lane:', '1', 'name'), ('lane:' + 'x' * 201, '1', 'name'), ('lanes', '1', 'unknown setting'),
])
def test_invalid_values_are_refused(leat, queue, name, value, said):
    """An invalid value is refused with a valid form, and nothing is stored."""
    before = queue.conf_set()
    done = leat('conf', name, value)
    assert done.returncode == EX_USAGE and said in done.stderr
    assert queue.conf_set() == before


def test_before_any_worker_conf_shows_the_file(leat, client):
    """Before any worker has registered, conf shows the file's lanes in their one form."""
    client.flushall()
    done = leat('conf', config={'limits': {'rate': '5/m', 'burst': 7}, 'lanes': {'b': '1,2', 'a x': 'strict'}})
    assert 'no worker of emails has run' in done.stdout
    lines = done.stdout.splitlines()
    assert 'rate              5/m' in lines and 'burst             7' in lines
    assert 'lane:b            1, 2' in lines and 'lane:a x          strict' in lines


def test_conf_before_the_first_worker(leat):
    """What was set is shown, and for the rest the values that the first worker will set."""
    config = {'queue': {'name': 'mails'}, 'limits': {'rate': '5/s', 'burst': 3},
              'lanes': {'blue': '2', 'red': '3'}}
    conf(leat, 'rate', '20/s', config=config)
    shown = conf(leat, 'lane:red', '1, 4', config=config)
    assert {name: value for name, value in shown.items() if name.startswith(('rate', 'burst', 'lane:'))} == {
        'rate': '20/s', 'burst': '3', 'lane:red': '1, 4', 'lane:blue': '2'}


# ---- status and list

def fill(queue, **counts):
    queue.add({'command': 'busy'})
    for lane, count in counts.items():
        queue.add(*[{'command': lane, 'lane': lane}] * count)


def test_status_counts_tasks_in_lanes(leat, queue):
    """Tasks in lanes are ready, and their number is shown beside."""
    fill(queue, a=5, b=3)
    figures = json.loads(leat('status', '--json').stdout)['figures']
    assert (figures['ready'], figures['in_lanes'], figures['lanes']) == (9, 8, 2)
    assert ', 8 in lanes' in leat('status').stdout and '--lanes' not in leat('status').stdout


def test_the_oldest_task_may_be_in_a_lane(leat, queue):
    """--max-oldest counts a task that waits in a lane."""
    fill(queue, a=1)
    [tid] = queue.redis.hkeys(queue.waiting)
    old = f'{queue.now() - 3_600_000}-1'
    queue.redis.hset(queue.waiting, old, queue.redis.hget(queue.waiting, tid))
    ms, sequence = old.split('-')
    queue.redis.zadd(queue.laned, {f'a\0{ms:0>20}-{sequence:0>20}': 0})
    assert json.loads(leat('status', '--json').stdout)['figures']['oldest_ready_ms'] >= 3_600_000
    assert leat('status', '--max-oldest', '30m').returncode == 1


def test_the_longest_lanes(leat, queue):
    """The longest lanes come first, with their running tasks and settings, and with the number of further
    lanes."""
    queue.conf_set('lane:big', '2, 1')
    counts = {f'l{number:02}': number for number in range(1, 15)}
    fill(queue, big=30, **counts)
    queue.begin('w1', 4)
    page = json.loads(leat('status', '--json', '--lanes=3').stdout)
    assert [lane['lane'] for lane in page['lanes']] == ['big', 'l14', 'l13']
    first = page['lanes'][0]
    assert first['waiting'] in (28, 29) and first['running'] == 1 and first['settings'] == '2, 1'
    assert page['now_ms'] - first['oldest_ms'] < 60000
    text = leat('status', '--lanes').stdout
    assert 'LANE ' in text and ' big ' in text and '2, 1' in text and ' l01 ' not in text and 'more\n' in text
    assert 'lanes' not in json.loads(leat('status', '--json').stdout)


def test_thousands_of_lanes_are_walked_through(leat, queue):
    """More lanes than a page has are listed, odd names among them; tasks without a lane have their own row."""
    fill(queue)
    for begin in range(0, 2000, 500):
        queue.add(*[{'command': 'x', 'lane': f'client {number}'} for number in range(begin, begin + 500)])
    queue.add(*[{'command': 'x', 'lane': '\x1b[31m'}] * 3)
    tids = queue.add(*[{'command': 'x'}] * 5, due='+60000')
    for tid in tids:
        queue.redis.zadd(queue.delayed, {tid: 1})
    queue.begin('w1')
    page = json.loads(leat('status', '--json', '--lanes', 2).stdout)
    assert [(lane['lane'], lane['waiting']) for lane in page['lanes']] == [('', 4), ('\x1b[31m', 3)]
    text = leat('status', '--lanes').stdout
    assert '(none)' in text and '\x1b' not in text
    assert len(queue.lane_rows()) == 2002 - 1 + 1


@pytest.mark.parametrize('value', ['0', '-1', 'x', '1001'])
def test_how_many_lanes(leat, queue, value):
    """--lanes takes a number from 1 to 1000."""
    done = leat('status', f'--lanes={value}')
    assert done.returncode == EX_USAGE and '--lanes' in done.stderr


def test_lists_tell_the_lane(leat, queue):
    """List and show have the lane of a task that waits in it, runs or is due; also as JSON."""
    fill(queue, a=2)
    queue.add({'command': 'later', 'lane': 'b'}, due='+60000')
    text = leat('list').stdout
    assert 'lane a' in text and ', lane b' in text
    queue.begin('w1', 2)
    assert 'w1, lane a' in leat('list', '--state', 'running').stdout
    rows = json.loads(leat('list', '--json').stdout)
    assert sorted(row['lane'] for row in rows) == ['', 'a', 'a', 'b']


def test_lanes_that_only_run(leat, queue):
    """A lane is listed while its tasks run, though none waits."""
    queue.add({'command': 'a', 'lane': 'x'}, {'command': 'b', 'lane': 'y'})
    assert len(queue.begin('w1', 2)) == 2
    queue.add(*[{'command': 'c', 'lane': 'y'}] * 2)
    lanes = json.loads(leat('status', '--lanes', '--json').stdout)['lanes']
    assert [(lane['lane'], lane['running']) for lane in lanes if lane['lane'] == 'x'] == [('x', 1)]
    assert {lane['lane']: lane['running'] for lane in lanes} == {'x': 1, 'y': 1}
    assert re.search(r'^  x +0 +1 +- +-$', leat('status', '--lanes').stdout, re.M)


def test_a_task_that_has_had_its_turn_waits_in_its_lane(leat, queue):
    """A task that no worker has read yet counts in its lane, although it is already in a stream."""
    first, second = queue.add({'command': 'true', 'lane': 'a'}, {'command': 'true', 'lane': 'a'})
    # the first goes straight to the stream, and the claim that brings it hands out the second
    for running, tid in ((0, first), (1, second)):
        assert queue.show(tid)['row']['state'] == b'ready'
        assert re.search(rf'^  a +{2 - running} +{running} +\S+ +-$', leat('status', '--lanes').stdout, re.M)
        done = leat('explain', '--lane', 'a')
        assert done.returncode == 0 and f' {2 - running} waiting task' in done.stdout, done.stdout
        queue.begin('w1')
    assert re.search(r'^  a +0 +2 +- +-$', leat('status', '--lanes').stdout, re.M)
