"""Live output: what tasks that ask for it write, as the worker sends it to Redis."""
import pytest

from harness.results import follow, key_of, wait_result
from harness.tasks import wait_letters

pytestmark = pytest.mark.usefixtures('quick_tasks')


def test_live(daemon, queue, client):
    """Begin, data of both descriptors and end stand in the stream, each with attempt, fence and offset; it
    is whole before the result is there."""
    worker = daemon().wait_ready()
    [tid] = queue.add({'command': r"printf 'a\0b'; sleep 0.1; echo err >&2; sleep 0.1; printf end",
                       'live': '1', 'result_ttl': '1m'})
    wait_result(queue, tid)
    output = follow(queue, tid)
    first, *data, last = output.entries
    assert first == {'attempt': '1', 'fence': '1', 'offset': '0',
                     'worker': first['worker']} and str(worker.pid) in first['worker']
    assert [(one['fd'], one['data'], one['offset']) for one in data] == [
        ('1', b'a\0b', '0'), ('2', b'err\n', '3'), ('1', b'end', '7')]
    assert last == {'attempt': '1', 'fence': '1', 'offset': '10', 'ended': 'success', 'how': 'exit 0'}
    assert 500_000 < client.pttl(key_of(queue, 'output', tid)) <= 600_000
