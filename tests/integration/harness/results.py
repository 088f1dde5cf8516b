"""Results and live output as they stand in Redis."""
from .polling import wait_until
from .queue import pairs, text


def key_of(queue, kind, tid):
    """The key of a task's result or output."""
    return queue.stats[:-len('stats')] + f'{kind}:{tid}'


def result_of(queue, tid):
    """{name: text} of the task's result, or None."""
    entries = queue.redis.execute_command('XRANGE', key_of(queue, 'result', tid), '-', '+')
    assert len(entries) <= 1
    return {name: text(value) for name, value in pairs(entries[0][1]).items()} if entries else None


def wait_result(queue, tid, timeout=20.0):
    return wait_until(lambda: result_of(queue, tid), timeout,
                      lambda: f'the result of {tid}: {queue.places()}')


def result_keys(queue):
    """Of all tasks."""
    return sorted(queue.redis.scan_iter(key_of(queue, 'result', '*')))
