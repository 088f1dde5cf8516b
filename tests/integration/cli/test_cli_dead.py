"""leat dead: list, retry and drop."""
import json
import os
import pty
import subprocess
import time

import pytest

from harness.daemon import is_sanitized, program, write_config
from harness.polling import wait_until

NOT_FOUND, EX_USAGE, EX_DATAERR = 1, 64, 65


def die(queue, *tasks, cause='exit', **result):
    """Makes the tasks dead letters. Returns their tids."""
    queue.register('w')
    tids = queue.add(*[task if isinstance(task, (dict, list)) else {'command': task}
                       for task in tasks])
    begun = []
    while len(begun) < len(tasks):  # a claim returns about a hundred tasks
        begun += queue.begin('w', len(tasks) - len(begun))
    # the entry id of a dead letter of the same millisecond may be another task's id, and would then mean that
    # task
    wait_until(lambda: time.time_ns() // 10 ** 6 > int(tids[-1].split('-')[0]))
    for start in range(0, len(begun), 100):
        queue.finish_many('w', [queue.result(task.token, 'dead', cause=cause, **result)
                                for task in begun[start:start + 100]])
    return tids


def dead_tids(queue):
    return [row['tid'].decode() for row in queue.list('dead')]


def test_list_and_filters(leat, queue):
    """Filters select by cause, age and the whole command."""
    exits = die(queue, 'make a', 'make b', 'ls', status='3', reason='exit 3')
    [late] = die(queue, 'sleep 9', cause='timeout')
    [long] = die(queue, 'make ' + 'x' * 300 + ' end')

    def listed(*args):
        return [row['tid'] for row in json.loads(leat('dead', 'list', '--json', *args).stdout)]

    assert listed() == [*exits, late, long]
    assert listed('--cause', 'timeout') == [late]
    assert listed('--command', 'make ?') == exits[:2]
    assert listed('--command', 'make * end') == [long]
    assert listed('--command', 'make*', '--cause', 'exit') == [*exits[:2], long]
    assert listed('--older-than', '1h') == [] and len(listed('--older-than', '0s')) == 5
    assert listed('--newer-than', '0s') == [] and len(listed('--newer-than', '1h')) == 5
    assert listed('--newer-than', '1h', '--cause', 'timeout') == [late]
    assert len(listed('--limit', '2')) == 2 and len(listed('--all')) == 5
    assert listed(late, exits[0]) == [exits[0], late]
    text = leat('dead', 'list').stdout
    assert 'exit 3' in text and 'make a' in text and 'timeout' in text
    assert not [line for line in text.splitlines() if line.endswith(' ')], 'no trailing blanks without a reason'


def test_labels(leat, queue):
    """A label means the newest dead letter that has it, for list, show, retry and drop; the table shows it."""
    old, other, new = [die(queue, {'command': name, 'id': label, 'size': '9'})[0]
                       for name, label in (('a', 'order-1'), ('b', 'order-2'), ('c', 'order-1'))]
    text = leat('dead', 'list').stdout
    assert text.splitlines()[0].split()[:2] == ['ID', 'LABEL'] and 'order-2' in text and 'c  size=9' in text
    assert [row['tid'] for row in json.loads(leat('dead', 'list', '--json', 'order-1').stdout)] == [new]
    filtered = json.loads(leat('dead', 'list', '--json', '--label', 'order-[12]', '--command', '[ab]').stdout)
    assert [row['tid'] for row in filtered] == [old, other]
    assert leat('dead', 'retry', '--dry-run', '--label', '*-2').stdout.startswith('would retry 1 dead letter:')
    for args in (['dead', 'show', '--json', 'order-1'], ['show', '--json', 'order-1']):
        assert json.loads(leat(*args).stdout)['tid'] == new
    assert leat('dead', 'retry', 'order-1').returncode == 0 and dead_tids(queue) == [old, other]
    assert leat('dead', 'drop', 'order-1', 'order-2').returncode == 0 and dead_tids(queue) == []
    done = leat('dead', 'show', 'order-2')
    assert done.returncode == NOT_FOUND and 'no dead letter order-2' in done.stderr


def test_ages(leat, queue):
    """Both age bounds apply, to the time of death on Redis's clock."""
    day, now = 86400000, queue.now()
    for days in (40, 20, 3, 0):
        queue.redis.execute_command(
            'XADD', queue.dead, f'{now - days * day}-0', 'command', f'{days}', 'leat.tid', f'{days}-0',
            'leat.died', now - days * day, 'leat.fields', '1')

    def listed(*args):
        return [row['command'] for row in json.loads(leat('dead', 'list', '--json', *args).stdout)]

    assert listed('--older-than', '30d') == ['40']
    assert listed('--older-than', '10d', '--newer-than', '30d') == ['20']
    assert listed('--newer-than', '1h') == ['0']
    assert leat('dead', 'drop', '--older-than', '10d', '--yes').returncode == 0
    assert listed() == ['3', '0']


def test_lanes(leat, queue):
    """--lane selects by lane; '' selects tasks without one."""
    a, b, none = die(queue, {'command': 'x', 'lane': 'a'}, {'command': 'x', 'lane': 'b'}, 'x')

    def listed(lane):
        return [row['tid'] for row in json.loads(
            leat('dead', 'list', '--json', '--lane', lane).stdout)]

    assert (listed('a'), listed('b'), listed(''), listed('c')) == ([a], [b], [none], [])
    assert leat('dead', 'retry', '--lane', 'a').returncode == 0
    assert sorted(dead_tids(queue)) == sorted([b, none])


def test_commands_of_any_bytes(leat, queue):
    """A command is compared behind a NUL, too; invalid UTF-8 and newlines are plain bytes."""
    commands = [b'make', b'make\0rm -rf', b'make\0', b'caf\xe9 x', b'two\nlines', b'\x01', b'*',
                'größe x'.encode(), b'l' * 199 + b'\0' + b'm' * 300000]
    tids = []
    for command in commands:
        tids.append(queue.redis.execute_command(
            'XADD', queue.dead, '*', 'command', command, 'leat.fields', '1').decode())

    def listed(glob):
        rows = json.loads(leat('dead', 'list', '--json', '--command', glob,
                               env={'LC_ALL': 'C.UTF-8'}).stdout)
        return [commands[tids.index(row['tid'])] for row in rows]

    assert listed('make') == [b'make']
    assert listed('make?rm*') == listed('make?rm -rf') == [b'make\0rm -rf']
    assert listed('make*') == commands[:3] and listed('make[!a]') == [b'make\0']
    assert listed('caf*') == [b'caf\xe9 x'] and listed('*lines') == [b'two\nlines']
    assert listed('\x01') == [b'\x01'] and listed('\\*') == [b'*']
    assert listed('gr??e*') == ['größe x'.encode()]
    assert listed('l*?m*') == [commands[-1]] and listed('*nm*') == []
    assert len(listed('*')) == len(commands) and listed('') == []


def test_a_whole_command_in_json(leat, queue):
    """If a filter has read the whole command, JSON has it; otherwise it is marked as cut."""
    die(queue, 'make ' + 'x' * 300)
    [cut] = json.loads(leat('dead', 'list', '--json').stdout)
    [whole] = json.loads(leat('dead', 'list', '--json', '--command', 'make*').stdout)
    assert cut['command'] == 'make ' + 'x' * 195 and cut['command_cut'] is True
    assert whole['command'] == 'make ' + 'x' * 300
    assert 'command_cut' not in whole and 'whole_command' not in whole


def test_show_several(leat, queue):
    """show takes ids, filters or --all. One id prints an object, otherwise an array; the exit status is 1 if
    one is missing."""
    one, two, three = die(queue, 'a', 'b', 'make c', stderr='oops')
    shown = json.loads(leat('dead', 'show', '--json', three, one).stdout)
    assert [letter['tid'] for letter in shown] == [one, three] and shown[0]['stderr'] == 'oops'
    assert [letter['tid'] for letter in json.loads(
        leat('dead', 'show', '--json', '--command', 'make*').stdout)] == [three]
    assert json.loads(leat('dead', 'show', '--json', one).stdout)['tid'] == one
    text = leat('dead', 'show', '--all').stdout
    assert text.count('end of stderr') == 3 and two in text
    done = leat('dead', 'show', one, '1-1')
    assert done.returncode == NOT_FOUND and one in done.stdout and 'no dead letter 1-1' in done.stderr
    assert leat('dead', 'show', '--cause', 'crash').stdout == 'no dead letters\n'
    assert leat('dead', 'show', '--json', '--cause', 'crash').stdout == '[]\n'


def test_an_id_of_two(leat, queue):
    """An id that is both a task's and an entry's means the task, also after its dead letter was dropped; a dead
    letter that is named twice is dropped once. With a 'd' it means the entry."""
    add = queue.redis.execute_command
    add('XADD', queue.dead, '5-0', 'command', 'x', 'leat.tid', '7-0', 'leat.fields', '1')
    add('XADD', queue.dead, '7-0', 'command', 'y', 'leat.tid', '9-0', 'leat.fields', '1')
    queue.forget_index()
    assert 'dropped 1 dead letter\n' in leat('dead', 'drop', '7-0', 'd5-0', '7-0').stdout
    assert dead_tids(queue) == ['9-0']
    done = leat('dead', 'drop', '7-0')
    assert done.returncode == NOT_FOUND and 'no dead letter 7-0' in done.stderr and dead_tids(queue) == ['9-0']
    assert 'dropped 1 dead letter\n' in leat('dead', 'drop', 'd7-0').stdout


def test_dry_run(leat, queue):
    """--dry-run prints the number and the first of the dead letters, changes nothing and does not ask."""
    tids = die(queue, *[f'echo {i}' for i in range(30)])
    for action in ('retry', 'drop'):
        done = leat('dead', action, '--dry-run', '--all', '--limit', '5')
        lines = done.stdout.splitlines()
        assert done.returncode == 0 and lines[0] == f'would {action} 30 dead letters:'
        assert [line.split()[0] for line in lines[2:7]] == tids[:5]
        assert 'only the first 5 are shown' in lines[7] and len(lines) == 8
        answer = json.loads(leat('dead', action, '--dry-run', '--json', '--all').stdout)
        assert (answer['action'], answer['dry_run'], answer['letters']) == (action, True, 30)
        assert [row['tid'] for row in answer['first']] == tids[:20]
        assert 'would ' + action + ' 2 ' in leat('dead', action, '--dry-run', tids[3],
                                                 tids[4]).stdout
        assert leat('dead', action, '--dry-run', '--cause', 'crash').stdout == (
            f'would {action} 0 dead letters\n')
        assert leat('dead', action, '--dry-run', '1-1').returncode == NOT_FOUND
    assert dead_tids(queue) == tids


def test_a_held_unique_key_is_named(leat, queue):
    """A dead letter whose key another task holds stays, and the message names that task; the others are
    retried."""
    held, free = die(queue, {'command': 'a', 'unique': 'key'}, {'command': 'b', 'unique': 'other'})
    [holder] = queue.add({'command': 'c', 'unique': 'key'})
    done = leat('dead', 'retry', '--all')
    assert done.returncode == EX_DATAERR and 'retried 1 dead letter, 1 failed' in done.stdout
    assert done.stderr == f'leat: cannot retry {held}: unique key key is held by {holder}\n'
    assert dead_tids(queue) == [held] and queue.enqueue({'command': 'd', 'unique': 'other'}) == [
        ('exists', free)]


def test_many_refusals_are_summed_up(leat, queue):
    """The first twenty refusals are printed, then the number of the others."""
    die(queue, *[{'command': 'a', 'unique': f'k{i}'} for i in range(50)])
    queue.add(*[{'command': 'c', 'unique': f'k{i}'} for i in range(50)])
    done = leat('dead', 'retry', '--all')
    assert done.returncode == EX_DATAERR and 'retried 0 dead letters, 50 failed' in done.stdout
    lines = done.stderr.splitlines()
    assert len(lines) == 21 and 'only counted' in lines[-1] and 'k19' in lines[-2]


def test_new_dead_letters_are_not_retried(leat, queue, daemon):
    """If retried tasks die again at once, each is retried once, and the command ends."""
    tids = die(queue, *['exit 1'] * 120)
    daemon({'retry': {'permanent': '1'}, 'queue': {'concurrency': 4}}).wait_ready()
    assert json.loads(leat('dead', 'retry', '--all', '--json').stdout)['done'] == 120
    wait_until(lambda: len(queue.entries('dead')) == 120, 30, 'all have died again')
    assert queue.counter('dead_retried') == 120 and sorted(dead_tids(queue)) == sorted(tids)


def many_letters(queue, count):
    pipe, now = queue.redis.pipeline(transaction=False), queue.now()
    for i in range(count):
        pipe.execute_command('XADD', queue.dead, '*', 'command', f'echo {i}', 'leat.tid',
                             f'{i + 1}-1', 'leat.died', now, 'leat.fields', '1')
    pipe.execute()


def test_any_number_in_bounded_memory(folder, base_config, queue):
    """50,000 dead letters are retried within the memory that a few would need."""
    if is_sanitized():
        pytest.skip('the sanitizer has memory of its own')
    path = write_config(folder / 'x.ini', base_config)
    many_letters(queue, 50000)
    done = subprocess.run(
        ['/bin/sh', '-c', 'ulimit -d 4096; exec "$@"', 'sh', program('leat'), '-c', str(path), 'dead',
         'retry', '--command', 'echo *', '--newer-than', '1d'],
        capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == 'retried 50000 dead letters\n', done.stderr
    assert dead_tids(queue) == []
    assert len(queue.entries('go')) + queue.redis.hlen(queue.waiting) == 50000


def is_ready(queue, tid):
    """In the requeue stream, or in the lane of tasks without one, and nowhere else."""
    row = queue.show(tid)['row']
    return len(queue.places()[tid]) == 1 and row['state'] == b'ready'


def test_retry_by_id(leat, queue):
    """leat finds a dead letter by the id of the task or the entry. It names an unknown id, handles the
    others, and exits with 1."""
    one, two, _ = die(queue, 'a', 'b', 'c')
    letter = {fields['leat.tid'].decode(): id for id, fields in queue.letters()}[two]
    done = leat('dead', 'retry', one, 'd' + letter, '1-1')
    assert done.returncode == NOT_FOUND and 'no dead letter 1-1' in done.stderr
    assert 'retried 2 dead letters' in done.stdout
    assert is_ready(queue, one) and is_ready(queue, two)
    assert [task.tid for task in queue.begin('w', 5)] == [one, two]


def test_retry_all_in_batches(leat, queue):
    """All dead letters are retried, each once."""
    tids = die(queue, *[f'echo {i}' for i in range(345)])
    answer = json.loads(leat('dead', 'retry', '--all', '--json').stdout)
    assert answer == {'action': 'retry', 'done': 345, 'gone': 0, 'failed': 0, 'not_found': 0}
    assert queue.places().keys() == set(tids) and all(is_ready(queue, tid) for tid in tids)
    assert 'retried 0 dead letters' in leat('dead', 'retry', '--all').stdout


def test_a_refused_dead_letter_stops_no_other(leat, queue):
    """A task with too many fields cannot be retried: it is named, the others are retried, and the exit status
    is 65."""
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
    """drop by id works at once; drop by filter needs --yes if there is no terminal to ask on."""
    one, two, three = die(queue, 'a', 'b', 'c')
    assert leat('dead', 'drop', one).returncode == 0
    done = leat('dead', 'drop', '--all')
    assert done.returncode == EX_USAGE and '--yes' in done.stderr
    assert dead_tids(queue) == [two, three]
    assert leat('dead', 'drop', '--command', 'b', '--yes').returncode == 0
    assert dead_tids(queue) == [three]
    assert 'dropped 1 dead letter\n' in leat('dead', 'drop', '--all', '--yes').stdout
    assert dead_tids(queue) == []


@pytest.mark.parametrize('action', ['retry', 'drop'])
def test_large_dead_letters(leat, queue, action):
    """Many large dead letters are retried or dropped in several calls, and each is counted once."""
    for command in [{'command': 'true', 'payload': 'x' * (20 << 20)}, 'true'] * 2:
        die(queue, command)
    # a busy machine needs long for so many bytes
    done = leat('dead', action, '--all', '--json', *['--yes'] * (action == 'drop'),
                config={'redis': {'command_timeout': '10m'}}, timeout=600)
    assert done.returncode == 0 and json.loads(done.stdout)['done'] == 4, done.stderr
    assert queue.letters() == []


@pytest.mark.parametrize('answer, left', [('y', 0), ('n', 2), ('', 2)])
def test_drop_asks_on_a_terminal(folder, base_config, queue, answer, left):
    """On a terminal leat asks, and drops only after y."""
    die(queue, 'a', 'b')
    path = write_config(folder / 'x.ini', base_config)
    master, slave = pty.openpty()
    with subprocess.Popen([program('leat'), '-c', str(path), 'dead', 'drop', '--all'], stdin=slave,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        os.close(slave)
        os.write(master, (answer + '\n').encode())
        stderr = process.stderr.read()
        assert process.wait(120) == (0 if left == 0 else NOT_FOUND)
    os.close(master)
    assert 'Drop 2 dead letters of emails' in stderr and len(dead_tids(queue)) == left


def test_causes(leat, queue):
    """--cause takes the causes of the help and no others, because a typo must not look like an empty list."""
    named = leat('dead', '--help').stdout.split('--cause CAUSE')[1].split('--older-than')[0]
    causes = named.replace(',', ' ').split()
    assert 'timeout' in causes and len(causes) >= 14
    for cause in causes:
        done = leat('dead', 'list', '--cause', cause)
        assert (done.returncode, done.stdout) == (0, 'no dead letters\n')
    done = leat('dead', 'drop', '--yes', '--cause', 'timout')
    assert done.returncode == EX_USAGE and 'did you mean timeout?' in done.stderr
    done = leat('dead', 'list', '--cause', 'exit:3')
    assert done.returncode == EX_USAGE and 'unknown cause exit:3' in done.stderr


@pytest.mark.parametrize('args', [
    ['retry'], ['drop'], ['retry', '1-1', '--all'], ['drop', '1-1', '--cause', 'exit'], ['show'],
    ['list', '1-1', '--all'], ['show', '--payload', '1-1', '2-2'], ['show', '--payload', '--all'],
    ['show', '1-1', '--lane', 'x'], ['list', '--older-than', 'x'], ['list', '--newer-than', '-1s'],
])
def test_wrong_usage(leat, queue, args):
    """Ids and filters do not mix, and neither of them does not mean everything."""
    assert leat('dead', *args).returncode == EX_USAGE
