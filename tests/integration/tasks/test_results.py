"""Results: what is kept of a task's end, for how long, and for which tasks."""
import pytest
import redis

from harness.functions.results import key_of, result_keys, result_of, wait_result
from harness.short_leases import wait_empty
from harness.tasks import wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')


def test_success(daemon, queue, client):
    """A task with result_ttl leaves exit status, times, worker and the ends of its output for that long."""
    worker = daemon({'retry': {'success': '0, 3'}}).wait_ready()
    before = queue.now()
    [tid] = queue.add({'command': 'echo out; echo err >&2; exit 3', 'result_ttl': '2h'})
    result = wait_result(queue, tid)
    assert (result['state'], result['cause'], result['status']) == ('success', 'success', '3')
    assert (result['stdout'], result['stderr'], result['attempt']) == ('out\n', 'err\n', '1')
    assert result['worker'].split(':')[1] == str(worker.pid)
    assert before <= int(result['begun']) <= int(result['ended']) <= queue.now()
    assert 0 < int(result['duration_us']) < 10_000_000
    assert 7_100_000 < client.pttl(key_of(queue, 'result', tid)) <= 7_200_000


def test_dead_letter(daemon, queue):
    """The result of a dead letter has its cause; earlier attempts leave no result."""
    daemon({'retry': {'max_attempts': 2, 'base': '300ms'}}).wait_ready()
    command = '[ $LEAT_ATTEMPT = 1 ] && exit 4; echo gone >&2; kill -KILL $$'
    [tid] = queue.add({'command': command, 'result_ttl': '60'})
    wait_letters(queue)
    result = result_of(queue, tid)
    assert (result['state'], result['cause'], result['status']) == ('dead', 'killed', 'SIGKILL')
    assert (result['attempt'], result['stderr']) == ('2', 'gone\n')


def test_no_result_unless_asked(daemon, queue):
    """Without result_ttl no result is kept."""
    daemon().wait_ready()
    queue.add({'command': 'true'}, {'command': 'exit 1', 'max_attempts': 1},
              {'command': 'true', 'result_ttl': '0'}, {'command': 'true', 'result_ttl': ''})
    wait_letters(queue)
    wait_succeeded(queue, 3)
    assert result_keys(queue) == []


def test_config(daemon, queue, client):
    """[task] result_ttl applies to tasks without their own, and a reload changes it."""
    worker = daemon({'task': {'result_ttl': '1h'}}).wait_ready()
    mine, none, own = queue.add({'command': 'echo x'}, {'command': 'echo x', 'result_ttl': '0'},
                                {'command': 'echo x', 'result_ttl': '2m'})
    wait_empty(queue)
    assert result_of(queue, mine)['stdout'] == 'x\n'
    assert 3_500_000 < client.pttl(key_of(queue, 'result', mine)) <= 3_600_000
    assert result_of(queue, none) is None
    assert 100_000 < client.pttl(key_of(queue, 'result', own)) <= 120_000

    text = worker.config_path.read_text().replace('result_ttl = 1h', 'result_ttl = none')
    worker.config_path.write_text(text)
    worker.reload()
    worker.wait_log('configuration reloaded')
    [tid] = queue.add({'command': 'echo x'})
    wait_empty(queue)
    assert result_of(queue, tid) is None


def test_result_expires(daemon, queue, wait_until):
    """A result is gone after its time."""
    daemon().wait_ready()
    [tid] = queue.add({'command': 'true', 'result_ttl': '4s'})
    wait_result(queue, tid)
    wait_until(lambda: result_of(queue, tid) is None, 20)


def test_result_without_a_worker(queue):
    """If no worker reports the end, as for expired and cancelled tasks, the task's own result_ttl applies."""
    queue.register('w1')
    [late] = queue.add({'command': 'x', 'expires': '1', 'result_ttl': '1m'})
    [waiting] = queue.add({'command': 'x', 'result_ttl': '1m'}, due='+600000')
    queue.begin('w1')
    assert result_of(queue, late)['cause'] == 'expired'
    queue.call('cancel', queue.group, 0, waiting, '')
    assert result_of(queue, waiting)['state'] == 'cancelled'


@pytest.mark.parametrize('text', ['90', '90s', '5m', '2h', '1h30m', '1h 30m', '2w', '250ms', '0',
                                  '36525d'])
def test_durations(leat, queue, client, text):
    """leat and the functions accept the same durations, with the same meaning."""
    done = leat('enqueue', '--result-ttl', text, 'true')
    assert done.returncode == 0, done.stderr
    tid = done.stdout.strip()
    queue.register('w1')
    [task] = queue.begin('w1')
    assert queue.finish('w1', task) == 'ok'
    expected = {'90': 90, '90s': 90, '5m': 300, '2h': 7200, '1h30m': 5400, '1h 30m': 5400,
                '2w': 1209600, '250ms': 0.25, '0': 0, '36525d': 36525 * 86400}[text]
    left = client.pttl(key_of(queue, 'result', tid))
    if expected >= 90:
        assert expected * 1000 - 30000 < left <= expected * 1000
    else:
        assert left <= expected * 1000


@pytest.mark.parametrize('text', ['x', '-1', '1.5', '30m1h', '1h30', '5 m', '1m1m', 'm',
                                  '36526d', '9' * 30, '1min', '1H', ' 1m'])
def test_invalid_durations(leat, queue, text):
    """The functions refuse the durations that leat refuses."""
    assert leat('enqueue', '--result-ttl', text, 'true').returncode == 64
    with pytest.raises(redis.ResponseError, match='^REFUSED task 1: result_ttl: not a duration'):
        queue.add({'command': 'true', 'result_ttl': text})
