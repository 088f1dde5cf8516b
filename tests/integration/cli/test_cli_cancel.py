"""leat cancel finds tasks in every state, prints what happened to each, and sums it up in its exit status."""
import json

import pytest

from harness.functions.failing import Failing
from harness.queue import Queue

NOT_FOUND, EX_USAGE, EX_TEMPFAIL, EX_CONFIG = 66, 64, 75, 78
TASK = {'command': 'true'}


def cancel(leat, *args, **options):
    """(lines, exit status); stderr is empty."""
    done = leat('cancel', *args, **options)
    assert done.stderr == '', done.stderr
    return done.stdout.splitlines(), done.returncode


@pytest.fixture(params=['indexed', 'of an older library'])
def places(queue, request):
    """{place: tid} of a task in every place, with 250 others in the requeue stream."""
    queue.register('w1:1:a')
    found = {}
    fillers = queue.add(*[TASK] * 250)
    tasks = []
    while len(tasks) < 250:
        tasks += queue.begin('w1:1:a', 250)
    for task in tasks:
        queue.finish('w1:1:a', task, 'release')
    for name in ('retrying', 'running', 'go', 'read'):
        queue.redis.rename(queue.go, 'aside')
        queue.redis.xgroup_create(queue.go, queue.group, '0', mkstream=True)
        [found[name]] = queue.add(dict(TASK, id='label-' + name))
        [task] = queue.begin('w1:1:a')
        if name == 'retrying':
            queue.finish('w1:1:a', task, 'retry', cause='exit', status='1', delay=60000)
        elif name != 'running':
            queue.finish('w1:1:a', task, 'release')
        last = queue.entries('go')
        queue.redis.delete(queue.go)
        queue.redis.rename('aside', queue.go)
        for _, fields in last:
            queue.redis.execute_command('XADD', queue.go, '*', *fields)
    [found['delayed']] = queue.add(dict(TASK, id='label-delayed'), due='+60000')
    [found['stream']] = queue.add(dict(TASK, id='label-stream'))
    [found['lane']] = queue.add(dict(TASK, id='label-lane', lane='blue'))
    assert len(fillers) == 250
    queue.forget_index()
    if request.param == 'indexed':
        queue.scan('w1:1:a')
    return found


@pytest.mark.parametrize('by_label', [False, True])
def test_every_place(leat, queue, places, by_label):
    """One command cancels a task in each place, in the order of its arguments: in the stream, far back in the
    requeue stream, delayed, retrying, in a lane and running."""
    names = list(places)
    ids = ['label-' + name if by_label else places[name] for name in names]
    lines, code = cancel(leat, *ids)
    assert code == 0
    assert lines == [f'{id}: asked, it runs on w1:1:a' if name == 'running' else f'{id}: cancelled'
                     for name, id in zip(names, ids)]
    assert len(queue.places()) == 251
    assert queue.redis.smembers(queue.cancel) == {places['running'].encode()}
    assert list(queue.held()) == [b'i:label-running']
    # a second cancel does not find the tasks that are gone
    lines, code = cancel(leat, *ids)
    assert code == NOT_FOUND
    assert sorted({line.split(': ', 1)[1] for line in lines}) == [
        'asked, it runs on w1:1:a', 'not found']


def test_now(leat, queue):
    """--now writes one wakeup for all tasks."""
    queue.register('w1:1:a')
    tids = queue.add(*[TASK] * 3)
    queue.begin('w1:1:a', 3)
    lines, code = cancel(leat, '--now', *tids)
    assert code == 0 and all('asked at once' in line for line in lines)
    assert queue.wakeups() == ['cancel']


def test_dead_letters_are_not_found(leat, queue):
    """A dead letter is found neither by its task's id nor by its entry's, and no other task is taken for it."""
    queue.register('w1:1:a')
    [tid] = queue.add(TASK)
    [task] = queue.begin('w1:1:a')
    queue.finish('w1:1:a', task, 'dead', cause='exit', status='1')
    letter = queue.letters()[0][0]
    lines, code = cancel(leat, tid, letter, 'nobody', '7-7')
    assert code == NOT_FOUND and all(line.endswith(': not found') for line in lines)
    assert len(queue.letters()) == 1


def test_stdin_and_json(leat, queue):
    """Ids from stdin, one per line, may be more than one call takes; JSON output is one object per line."""
    queue.register('w1:1:a')
    tids = queue.add(*[TASK] * 250)
    [first] = queue.begin('w1:1:a')
    lines, code = cancel(leat, '--json', '-', 'nobody', input='\n'.join(tids) + '\n\n')
    assert code == NOT_FOUND
    answers = [json.loads(line) for line in lines]
    assert [answer['id'] for answer in answers] == tids + ['nobody']
    assert [answer['state'] for answer in answers] == [
        'asked' if tid == first.tid else 'cancelled' for tid in tids] + ['not_found']
    assert answers[tids.index(first.tid)]['worker'] == 'w1:1:a'
    assert queue.places() == {first.tid: ['stream']}


def test_a_nul_in_a_line(leat, queue):
    """A line with a NUL byte neither cancels the task that its beginning names nor waits for it; others count."""
    queue.register('w1:1:a')
    first, second, third = queue.add(*[TASK] * 3)
    done = leat('cancel', '-', input=f'{first}\n{second}\0x\n{third}\n')
    assert done.returncode == 64 and f'{second}: this line of stdin holds a NUL byte' in done.stderr, done
    assert list(queue.places()) == [second]
    done = leat('wait', '--timeout', '1ms', '-', input=f'{second}\0x\n')
    assert done.returncode == 64 and 'NUL byte' in done.stderr and done.stdout == ''
    lines, code = cancel(leat, '-', input='')
    assert (lines, code) == ([], 0)


def test_large_tasks(leat, queue):
    """Many large tasks are cancelled in several calls, and each is reported once, in order."""
    queue.register('w')
    tids = queue.add(*[{'command': 'true', 'payload': 'x' * (20 << 20)}, TASK] * 3)
    lines, status = cancel(leat, *tids, '1-1')
    assert lines == [f'{tid}: cancelled' for tid in tids] + ['1-1: not found'] and status == NOT_FOUND
    assert queue.places() == {}


def test_labels_of_any_bytes(leat, queue):
    """A label with control characters is found and printed escaped."""
    queue.add(dict(TASK, id='a\x1b[31mb'))
    lines, code = cancel(leat, 'a\x1b[31mb')
    assert code == 0 and len(lines) == 1 and '\x1b' not in lines[0] and 'cancelled' in lines[0]


def test_refused_by_redis(leat, queue):
    """If Redis refuses one task, that task's line says so, and the others are cancelled."""
    failing = Failing(queue)
    tids = queue.add(*[TASK] * 3)
    failing.at(1)
    done = leat('cancel', *tids)
    failing.off()
    assert done.returncode not in (0, NOT_FOUND) and 'INJECTED' in done.stderr
    assert done.stdout.splitlines() == [f'{tids[0]}: failed'] + [f'{tid}: cancelled' for tid in tids[1:]]
    assert cancel(leat, tids[0]) == ([f'{tids[0]}: cancelled'], 0)


def test_before_any_worker(leat, client):
    """leat cancel works before any worker, and before the function library is loaded."""
    tid = client.xadd('emails', TASK).decode()
    assert cancel(leat, tid, 'nobody') == ([f'{tid}: cancelled', 'nobody: not found'], NOT_FOUND)
    assert Queue(client).counter('cancelled') == 1


def test_status_counts_them(leat, queue):
    """leat status shows the total of cancelled tasks."""
    queue.register('w1:1:a')
    [tid] = queue.add(TASK)
    cancel(leat, tid)
    assert 'cancelled 1' in leat('status').stdout
    assert json.loads(leat('status', '--json').stdout)['figures']['total_cancelled'] == 1
