"""Commands that take the id of a task take the beginning of it, too, if it is unique."""
import json

import pytest

from harness.functions.history import record
from harness.queue import text

EX_USAGE, NOT_FOUND, NO_TASK = 64, 66, 1
TASK = {'command': 'true'}


def add(queue, id, **fields):
    queue.redis.xadd(queue.stream, {**TASK, **fields}, id=id)
    return id


@pytest.fixture(autouse=True)
def registered(queue):
    queue.register('w1:1:a')


def test_show_and_cancel(leat, queue):
    """The first digits, or all before the hyphen, are enough; the whole id is printed."""
    add(queue, '1700000000000-0')
    [waits] = queue.add(TASK, due='+60000')
    for typed in ('170000', '17000000000', '1700000000000'):
        assert json.loads(leat('show', '--json', typed).stdout)['tid'] == '1700000000000-0'
    assert json.loads(leat('show', '--json', waits[:13]).stdout)['tid'] == waits
    assert leat('cancel', '170000', waits[:13]).stdout == f'1700000000000-0: cancelled\n{waits}: cancelled\n'
    assert queue.places() == {}
    assert leat('cancel', '170000').stdout == '170000: not found\n'


@pytest.mark.parametrize('older', [False, True])
def test_dead_letters(leat, queue, older):
    """Dead letters are selected in the same way, and so are those that an older library has written."""
    add(queue, '1700000000000-0')
    add(queue, '1700000000001-0')
    for task in queue.begin('w1:1:a', 2):
        queue.finish('w1:1:a', task, 'dead', cause='exit', status='1')
    if older:
        queue.forget_index()
    assert json.loads(leat('dead', 'show', '--json', '1700000000000').stdout)['tid'] == '1700000000000-0'
    rows = json.loads(leat('dead', 'list', '--json', '1700000000001', '1700000000000').stdout)
    assert [row['tid'] for row in rows] == ['1700000000000-0', '1700000000001-0']
    done = leat('dead', 'retry', '17000000000')
    assert done.returncode == EX_USAGE and 'several ids begin so' in done.stderr
    assert leat('dead', 'retry', '1700000000000').stdout == 'retried 1 dead letter\n'
    assert leat('dead', 'drop', '1700000000001').stdout == 'dropped 1 dead letter\n'
    assert list(queue.places()) == ['1700000000000-0'] and queue.letters() == []


def test_no_other_dead_letter(leat, queue):
    """A prefix means the id of a task, and never a dead letter of another one whose entry has the same id."""
    tid = add(queue, '1700000000000-0')
    queue.redis.xadd(queue.dead, {**TASK, 'leat.tid': '1500000000000-0', 'leat.fields': '1'}, id=tid)
    queue.forget_index()
    for action in ('list', 'show', 'retry', 'drop'):
        done = leat('dead', action, '1700000000000')
        assert done.returncode == NO_TASK and 'no dead letter 1700000000000' in done.stderr, action
    assert [text(letter['leat.tid']) for _, letter in queue.letters()] == ['1500000000000-0']


def test_wait(leat, queue):
    """leat wait waits for the task of the prefix, and prints the whole id."""
    add(queue, '1700000000000-0', result_ttl='1h')
    done = leat('wait', '--timeout', '1ms', '1700000000000')
    assert done.returncode == 75
    [task] = queue.begin('w1:1:a')
    queue.finish('w1:1:a', task, 'dead', cause='exit', status='1')
    assert leat('wait', '1700000000000').stdout.split()[:2] == ['1700000000000-0', 'dead']


def test_several(leat, queue):
    """A prefix of several ids is refused with two of them, and nothing is done."""
    add(queue, '1700000000000-0')
    add(queue, '1700000000000-1')
    for command in (['show'], ['cancel'], ['wait'], ['dead', 'show'], ['logs']):
        done = leat(*command, '1700000000000')
        assert done.returncode == EX_USAGE, done
        assert '1700000000000: several ids begin so, such as 1700000000000-' in done.stderr
    assert len(queue.places()) == 2


def test_several_among_others(leat, queue):
    """leat cancel goes on with the ids after a prefix of several, and says so by its exit status."""
    first = add(queue, '1600000000000-0')
    add(queue, '1700000000000-0')
    add(queue, '1700000000000-1')
    last = add(queue, '1800000000000-0')
    done = leat('cancel', first, '1700000000000', last)
    assert done.returncode == EX_USAGE and done.stdout == f'{first}: cancelled\n{last}: cancelled\n'
    assert sorted(queue.places()) == ['1700000000000-0', '1700000000000-1']


@pytest.mark.parametrize('typed', ['17000', '1700000000', '17000000000000', '1700000000000-', '1700000000000-1'])
def test_what_is_no_prefix(leat, queue, typed):
    """Fewer than six digits, ten digits, which are a time in seconds, and whole ids are never taken for a
    prefix."""
    add(queue, '1700000000000-10')
    done = leat('show', typed)
    assert done.returncode == NO_TASK
    assert ('; the beginning of an id needs 6 to 13 digits, but not 10;' in done.stderr) == ('-' not in typed)
    assert leat('cancel', typed).stdout == f'{typed}: not found\n'


def test_a_label_comes_first(leat, queue):
    """A label of a task in the queue is preferred; so is that of a dead letter if no id begins so."""
    add(queue, '1700000000000-0')
    [labelled] = queue.add({**TASK, 'id': '170000'})
    assert json.loads(leat('show', '--json', '170000').stdout)['tid'] == labelled
    [other] = queue.add({**TASK, 'id': '999999'})
    for task in queue.begin('w1:1:a', 3):
        queue.finish('w1:1:a', task, 'dead', cause='exit', status='1')
    assert json.loads(leat('dead', 'show', '--json', '999999').stdout)['tid'] == other
    assert json.loads(leat('show', '--json', '170000').stdout)['tid'] == '1700000000000-0'


def test_the_last_end_with_a_label(leat, queue):
    """A label means the last task that has ended with it: a later success hides a dead letter, and nothing that
    ended before it does. leat dead means the dead letter in any case."""
    def told():
        shown = leat('show', '--json', 'order-17').stdout
        return json.loads(shown)['tid'], leat('explain', 'order-17').stdout.partition('\n')[0]
    queue.redis.xadd(queue.history, {'r': record('1600000000000-0', id='order-17')}, id='1600000000000-0')
    [dead] = queue.add({**TASK, 'id': 'order-17'})
    queue.finish('w1:1:a', queue.begin('w1:1:a')[0], 'dead', cause='exit', status='1')
    assert told() == (dead, f'task order-17, {dead}: dead')
    queue.redis.xadd(queue.history, {'r': record('1600000000001-0', id='order-17')})
    assert told() == ('1600000000001-0', 'task order-17, 1600000000001-0: succeeded')
    assert json.loads(leat('dead', 'show', '--json', 'order-17').stdout)['tid'] == dead


def test_show_of_ended_tasks(leat, queue):
    """leat show takes the prefix of a task that has ended, if it is unique among the 1,000 that ended last. A
    label and the prefix of a task in the queue are preferred."""
    def end(tid, **members):
        queue.redis.xadd(queue.history, {'r': record(tid, **members)})

    def shown(typed):
        return json.loads(leat('show', '--json', typed).stdout)['tid']
    end('1600000000000-0')
    end('1700000000000-0')
    end('1700000000001-0', id='1700000')
    end('1700000000000-0', outcome='dead')  # one id, which ended twice
    assert shown('1700000000000') == '1700000000000-0'
    assert shown('1700000') == '1700000000001-0' and shown('1600000') == '1600000000000-0'
    done = leat('show', '17000000')
    assert done.returncode == EX_USAGE and 'several ids begin so' in done.stderr
    assert leat('show', '1700000000002').returncode == NO_TASK
    add(queue, '1600000000001-0')
    assert shown('1600000') == '1600000000001-0'
    for number in range(1000 - 3):
        end(f'1500000000000-{number}')
    assert shown('1700000000000') == '1700000000000-0' and leat('show', '1600000000000').returncode == NO_TASK
