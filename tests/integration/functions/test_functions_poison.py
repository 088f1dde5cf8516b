"""Tasks that were lost with their worker, and what of them an empty worker begins, through the functions alone."""
import pytest

from harness.polling import wait_until


@pytest.fixture(autouse=True)
def workers(queue):
    queue.register('w1')
    queue.register('w2')


def test_held_suspects_are_for_who_is_empty_first(queue):
    """Two busy workers hold one each: a third one that has run empty begins one after the other, before all else,
    and the holders hear that theirs are lost."""
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


def test_an_empty_worker_begins_suspects_first(queue):
    """What stands before one in go goes behind it: else the worker would have to run empty again."""
    good = queue.add({'command': 'good'})
    queue.add({'command': 'bad'})
    [first, second] = queue.begin('w2', 2)
    queue.finish('w2', first, 'release')
    queue.expire(second.token)
    queue.scan('w1')
    assert [int(row['crashes']) for row in queue.list('ready')] == [0, 1]
    assert [task.crashes for task in queue.begin('w3', 4)] == [1]
    assert [task.tid for task in queue.begin('w1', 4)] == good
