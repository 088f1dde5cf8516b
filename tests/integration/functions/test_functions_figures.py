"""What the queue counts: the figures of heartbeats, ends by cause, marks for rates, and due times."""
import json

import pytest


@pytest.fixture(autouse=True)
def worker(queue):
    queue.register('w1')
    queue.register('w2')


def figures(number, **values):
    return json.dumps({'host': 'a', 'figures': {'number': number, **values}, 'unclaimed': []})


def counted(queue, prefix=('f:', 'e:')):
    return {name: int(value) for name, value in queue.status()['figures'].items() if name.startswith(prefix)}


def begin_one(queue, **fields):
    queue.add(dict({'command': 'x'}, **fields))
    [task] = queue.begin('w1')
    return task


def dues(queue, consumer='w1'):
    """The reply of a claim: {token: how long ago the task could start (ms), or None if that is not told}."""
    reply = queue.call('claim', queue.group, consumer, 9, 0, '')
    told = reply[14 - 1] if len(reply) > 13 else []
    times = {token.decode(): int(due) for token, due in zip(told[::2], told[1::2])}
    return {row[0].decode(): times.get(row[0].decode()) for row in reply[6]}


def test_a_heartbeat_that_is_sent_again_counts_once(queue):
    """Figures are added once for each number of a worker, in renewals and registrations alike."""
    first = figures(1, **{'waiting:0.005': 2, 'waiting:sum': 7000, 'started': 2})
    for _ in range(3):
        queue.renew('w1', heartbeat=first)
    queue.register('w1', heartbeat=first)
    assert counted(queue) == {'f:waiting:0.005': 2, 'f:waiting:sum': 7000, 'f:started': 2}
    queue.renew('w1', heartbeat=figures(2, **{'waiting:inf': 1, 'started': 1, 'leases_lost': 4}))
    queue.renew('w2', heartbeat=figures(2, **{'waiting:inf': 1, 'started': 1}))
    assert counted(queue) == {'f:waiting:0.005': 2, 'f:waiting:inf': 2, 'f:waiting:sum': 7000, 'f:started': 4,
                              'f:leases_lost': 4}


def test_a_report_is_no_sign_of_life(queue):
    """A report counts once, also if a heartbeat brings the same, and is kept with the time of the last heartbeat.
    That of an unknown worker counts nothing."""
    queue.redis.hset(queue.workers, 'w1', '1700000000000 {}')
    told = figures(3, started=2)
    assert [queue.call('report', queue.group, 'w1', told) for _ in range(2)] == [[1], [1]]
    kept = queue.redis.hget(queue.workers, 'w1').decode()
    assert kept == '1700000000000 {"host": "a", "figures":3, "unclaimed": []}'
    queue.renew('w1', heartbeat=told)
    assert queue.call('report', queue.group, 'w9', told) == [0]
    assert counted(queue) == {'f:started': 2} and 'w9' not in queue.worker_heartbeats()


def test_a_worker_keeps_only_the_number(queue):
    """The record of a worker has the number of its figures, not the figures, and the rest as it was."""
    queue.renew('w1', heartbeat=figures(7, started=1))
    assert queue.worker_heartbeats()['w1'] == {'host': 'a', 'figures': 7, 'unclaimed': []}


def test_old_and_wrong_heartbeats(queue):
    """Heartbeats without figures, as of older workers, and with wrong names and numbers, count nothing."""
    for heartbeat in ('{}', 'x', '{"figures":{}}', '{"figures":{"number":"x","started":1.5}}', '{"figures":7}',
                      figures(3, **{'waiting:0.003': 1, 'succeeded': 5, 'started': -1, 'leases_lost': 'many'}),
                      '{"trouble":"\\"figures\\":{\\"number\\":9,\\"started\\":1}"}'):
        assert queue.renew('w1', heartbeat=heartbeat)['lost'] == []
    assert counted(queue).get('f:started', 0) <= 1 and set(counted(queue)) <= {'f:started'}
    assert queue.counter('succeeded') == 0


def test_ends_by_cause(queue):
    """One call counts retries, releases and dead letters by outcome and cause, as the totals do; an unknown cause
    counts as other."""
    queue.add(*[{'command': 'x'}] * 7)
    tasks = queue.begin('w1', 7)
    queue.finish_many('w1', [
        queue.result(tasks[0].token, 'retry', cause='exit'), queue.result(tasks[1].token, 'retry', cause='exit'),
        queue.result(tasks[2].token, 'retry', cause='timeout'), queue.result(tasks[3].token, 'dead', cause='oom'),
        queue.result(tasks[4].token, 'release', cause='shutdown'),
        queue.result(tasks[5].token, 'dead', cause='x:y'),
        queue.result(tasks[6].token)])
    assert counted(queue) == {'e:retry:exit': 2, 'e:retry:timeout': 1, 'e:dead:oom': 1, 'e:release:shutdown': 1,
                              'e:dead:other': 1}
    status = queue.status()
    assert [status['total_' + name] for name in ('succeeded', 'retried', 'released', 'dead')] == [1, 3, 1, 2]
    assert status['retrying'] == 3


def test_dead_letters_of_tasks_that_never_ran(queue):
    """Dead letters that no worker reported are counted by their cause, too: refused, expired and vanished ones."""
    queue.redis.execute_command('XADD', 'emails', '*', 'command', 'x', 'unique', 'x' * 2000)
    queue.redis.execute_command('XADD', 'emails', '*', 'command', 'x', 'expires', '1')
    assert queue.begin('w1', 5) == []
    task = begin_one(queue)
    queue.redis.xdel('emails', task.tid)
    queue.renew('w1', [task.token])
    assert counted(queue) == {'e:dead:refused': 1, 'e:dead:expired': 1, 'e:dead:vanished': 1}
    assert queue.counter('dead') == 3


def test_marks_for_the_rate(queue):
    """The totals are noted at a heartbeat, not more often than every 10 s; the last note but one stays."""
    first = queue.status()['figures']['m:now']
    assert first.endswith(' 0 0')
    queue.finish('w1', begin_one(queue))
    queue.renew('w1')
    assert queue.status()['figures']['m:now'] == first
    queue.redis.hset(queue.stats, 'm:now', f'{queue.now() - 11000} 0 0')
    queue.renew('w1')
    marks = queue.status()['figures']
    assert marks['m:now'].endswith(' 1 0') and int(marks['m:then'].split()[0]) <= queue.now() - 11000


def test_when_a_task_could_start(queue):
    """A claim tells since when a task could start, if that is not when it was enqueued: a delayed task, a retry, a
    task that was returned, in a lane, and of a dead letter."""
    now = queue.now()
    queue.add({'command': 'plain'})
    assert list(dues(queue).values()) == [None]
    queue.add({'command': 'later'}, due=str(now + 60000))
    queue.add({'command': 'later', 'lane': 'a'}, due=str(now + 60000))
    queue.redis.zadd(queue.delayed, {tid: 1 for tid in queue.redis.zrange(queue.delayed, 0, -1)})
    assert sorted(dues(queue).values()) == [now + 60000] * 2
    [first, second, third] = queue.pending('w1')
    for token, outcome in ((first, 'retry'), (second, 'release'), (third, 'dead')):
        before = queue.now()
        assert queue.finish('w1', token, outcome, cause='exit') == 'ok'
        if outcome == 'dead':
            assert queue.dead_retry(queue.letters()[0][0]) == ['ok']
        assert all(before <= due <= queue.now() for due in dues(queue, 'w2').values())
    assert len(queue.pending('w2')) == 3


def test_a_figure_that_was_damaged(queue):
    """A figure that somebody has overwritten hinders nothing."""
    queue.redis.hset(queue.stats, mapping={'f:started': 'x', 'e:retry:exit': '1 2', 'm:now': 'x', 'm:then': ''})
    queue.renew('w1', heartbeat=figures(1, started=1))
    assert queue.finish('w1', begin_one(queue), 'retry', cause='exit') == 'ok'
    assert queue.counter('retried') == 1
