"""leat dead: list, retry and drop."""
import json
import os
import pty
import subprocess

import pytest

from harness.daemon import program, write_config

NOT_FOUND, EX_USAGE, EX_DATAERR = 1, 64, 65


def die(queue, *tasks, cause='exit', **result):
    """Puts the tasks into the dead letters; answers their tids."""
    queue.register('w')
    tids = queue.add(*[task if isinstance(task, (dict, list)) else {'command': task}
                       for task in tasks])
    begun = []
    while len(begun) < len(tasks):  # a claim gives a hundred or so
        begun += queue.begin('w', len(tasks) - len(begun))
    for start in range(0, len(begun), 100):
        queue.finish_many('w', [queue.result(task.token, 'dead', cause=cause, **result)
                                for task in begun[start:start + 100]])
    return tids


def dead_tids(queue):
    return [row['tid'].decode() for row in queue.list('dead')]


def test_list_and_filters(leat, queue):
    """Filters choose by cause, age and the whole command."""
    exits = die(queue, 'make a', 'make b', 'ls', status='3', reason='exit 3')
    [late] = die(queue, 'sleep 9', cause='timeout')
    [long] = die(queue, 'make ' + 'x' * 300 + ' end')

    def listed(*args):
        return [row['tid'] for row in json.loads(leat('dead', 'list', '--json', *args).stdout)]

    assert listed() == [*exits, late, long]
    assert listed('--cause', 'timeout') == [late]
    assert listed('--matching', 'make ?') == exits[:2]
    assert listed('--matching', 'make * end') == [long]
    assert listed('--matching', 'make*', '--cause', 'exit') == [*exits[:2], long]
    assert listed('--older-than', '1h') == [] and len(listed('--older-than', '0s')) == 5
    assert len(listed('--limit', '2')) == 2
    text = leat('dead', 'list').stdout
    assert 'exit 3' in text and 'make a' in text and 'timeout' in text


def test_retry_by_id(leat, queue):
    """By the task's id or the letter's; what is not there is said, the rest is done, and it is 1."""
    one, two, _ = die(queue, 'a', 'b', 'c')
    letter = {fields['leat.tid'].decode(): id for id, fields in queue.letters()}[two]
    done = leat('dead', 'retry', one, letter, '1-1')
    assert done.returncode == NOT_FOUND and 'no dead letter 1-1' in done.stderr
    assert 'retried 2 dead letters' in done.stdout
    assert {tid: places for tid, places in queue.places().items() if places == ['go']}.keys() == {
        one, two}
    assert [task.tid for task in queue.begin('w', 5)] == [one, two]


def test_retry_all_in_batches(leat, queue):
    """Any number goes, each once."""
    tids = die(queue, *[f'echo {i}' for i in range(345)])
    done = leat('dead', 'retry', '--all', '--dry-run')
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 345
    assert len(dead_tids(queue)) == 345
    answer = json.loads(leat('dead', 'retry', '--all', '--json').stdout)
    assert answer == {'action': 'retry', 'done': 345, 'gone': 0, 'failed': 0, 'not_found': 0}
    assert queue.places() == {tid: ['go'] for tid in tids}
    assert 'retried 0 dead letters' in leat('dead', 'retry', '--all').stdout


def test_a_letter_that_is_refused_stops_no_other(leat, queue):
    """A task of too many fields cannot be retried: it is named, the others are retried: 65."""
    [first] = die(queue, 'first')
    flat = [part for i in range(1100) for part in (f'f{i}', 'x')]
    big = queue.redis.execute_command('XADD', 'emails', '*', *flat).decode()
    assert queue.begin('w') == []
    [last] = die(queue, 'last')
    assert dead_tids(queue) == [first, big, last]
    done = leat('dead', 'retry', '--all')
    assert done.returncode == EX_DATAERR and big in done.stderr and '1000 fields' in done.stderr
    assert 'retried 2 dead letters, 1 failed' in done.stdout
    assert dead_tids(queue) == [big]


def test_drop(leat, queue):
    """By id at once; by filter only with --yes where nobody can be asked."""
    one, two, three = die(queue, 'a', 'b', 'c')
    assert leat('dead', 'drop', one).returncode == 0
    done = leat('dead', 'drop', '--all')
    assert done.returncode == EX_USAGE and '--yes' in done.stderr
    assert dead_tids(queue) == [two, three]
    assert leat('dead', 'drop', '--matching', 'b', '--yes').returncode == 0
    assert dead_tids(queue) == [three]
    assert 'dropped 1 dead letter\n' in leat('dead', 'drop', '--all', '--yes').stdout
    assert dead_tids(queue) == []


@pytest.mark.parametrize('answer, left', [('y', 0), ('n', 2), ('', 2)])
def test_drop_asks_on_a_terminal(folder, base_config, queue, answer, left):
    """On a terminal it asks; only y drops."""
    die(queue, 'a', 'b')
    path = write_config(folder / 'x.ini', base_config)
    master, slave = pty.openpty()
    with subprocess.Popen([program('leat'), '-c', str(path), 'dead', 'drop', '--all'], stdin=slave,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        os.close(slave)
        os.write(master, (answer + '\n').encode())
        stderr = process.stderr.read()
        assert process.wait(30) == (0 if left == 0 else NOT_FOUND)
    os.close(master)
    assert 'Drop 2 dead letters of emails' in stderr and len(dead_tids(queue)) == left


@pytest.mark.parametrize('args', [
    ['retry'], ['drop'], ['retry', '1-1', '--all'], ['drop', '1-1', '--cause', 'exit'], ['show'],
    ['list', '1-1'], ['show', '1-1', '2-2'],
])
def test_wrong_usage(leat, queue, args):
    """Ids and filters do not mix, and nothing is not everything."""
    assert leat('dead', *args).returncode == EX_USAGE
