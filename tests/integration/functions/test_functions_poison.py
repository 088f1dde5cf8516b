"""Poison candidates: which of them an empty worker starts, in terms of the functions alone."""
import pytest

from harness.polling import wait_until


@pytest.fixture(autouse=True)
def workers(queue):
    queue.register('w1')
    queue.register('w2')


def test_deferred_poison_candidates_go_to_the_first_empty_worker(queue):
    """Two busy workers defer one poison candidate each. A third worker that becomes empty starts them one
    after the other, before all else, and the deferring workers learn that theirs are lost."""
    bad = queue.add(*[{'command': 'bad'}] * 2)
    queue.begin('w2', 2)
    queue.expire()
    queue.scan('w1')
    held = {}
    for name in ('w1', 'w2') * 2:
        held.update({token: name for token in queue.claim(name, 1, busy=1)['held']})
    assert sorted(held.values()) == ['w1', 'w2']
    good = queue.add(*[{'command': 'good'}] * 2)
    wait_until(lambda: len([row for row in queue.list('running') if row['state'] == b'held']) == 2)
    for tid in bad:
        [task] = queue.begin('w3', 4)
        assert task.tid == tid and queue.finish('w3', task) == 'ok'
    assert [task.tid for task in queue.begin('w3', 4)] == good
    assert all(queue.renew(name, [token])['lost'] == [token] for token, name in held.items())


def test_an_empty_worker_starts_poison_candidates_first(queue):
    """Entries before a poison candidate in the requeue stream go behind it, because otherwise the worker
    would have to become empty again."""
    good = queue.add({'command': 'good'})
    queue.add({'command': 'bad'})
    [first, second] = queue.begin('w2', 2)
    queue.finish('w2', first, 'release')
    queue.expire(second.token)
    queue.scan('w1')
    assert [int(row['crashes']) for row in queue.list('ready')] == [0, 1]
    assert [task.crashes for task in queue.begin('w3', 4)] == [1]
    assert [task.tid for task in queue.begin('w1', 4)] == good
