"""leat status: numbers, workers, health."""
import json
import re

import pytest

UNHEALTHY, EX_NOHOST, EX_UNAVAILABLE = 1, 68, 69


def heartbeat(**members):
    members = {'host': 'web1', 'pid': 4711, 'version': '0.1.0', 'slots': 8, 'running': 3,
               'state': 'running', 'started_ms': 1700000000000, 'succeeded': 120, 'failed': 4,
               'rate': 6.25, **members}
    return json.dumps(members)


def status(leat, *args):
    done = leat('status', '--json', *args)
    return json.loads(done.stdout), done.returncode


def test_every_state_is_counted(leat, queue):
    """Ready, running, delayed, retrying and dead tasks, and a plain XADD, are counted as such."""
    queue.register('w1:1:a', heartbeat=heartbeat(succeeded=987654))
    queue.add(*[{'command': f'echo {i}'} for i in range(4)])
    queue.add({'command': 'later'}, due='+60000')
    one, two, _ = queue.begin('w1:1:a', 3)
    queue.finish('w1:1:a', one, 'retry', cause='exit', status='3', delay=60000)
    queue.finish('w1:1:a', two, 'dead', cause='exit', status='3', reason='exit 3')
    queue.redis.execute_command('XADD', 'emails', '*', 'command', 'make thumbs')
    page, code = status(leat)
    figures = page['figures']
    assert [figures[name] for name in ('ready', 'running', 'delayed', 'retrying', 'dead')] == [
        2, 1, 1, 1, 1]
    assert figures['oldest_ready_ms'] >= 0 and figures['next_due_ms'] > page['now_ms']
    assert (page['healthy'], code, page['workers'][0]['rate'], page['queue']) == (True, 0, 6.25, 'emails')
    assert page['conf']['lease_ms'] == 60000

    text = leat('status').stdout
    for name, count in (('ready', 2), ('running', 1), ('delayed', 1), ('retrying', 1), ('dead', 1)):
        assert f'  {name:9} {count:12}' in text
    assert 'healthy' in text and 'web1' in text
    assert '1/8' in text, 'the running tasks of a worker are current, not those of its last heartbeat'
    assert re.search(r' 1/8 +987654 +4 ', text), 'DONE and FAILED of a worker'


def test_busy_without_the_right_to_know(leat, queue):
    """A user who may not ask Redis how many tasks each worker runs sees the number of its last heartbeat; if
    nothing runs, zero."""
    queue.redis.execute_command('ACL', 'SETUSER', 'old', 'on', '>x', '~*', '&*', '+@all', '-xinfo|consumers')
    old = {'redis': {'user': 'old', 'password': 'x'}}
    queue.register('w1:1:a', heartbeat=heartbeat())
    queue.add({'command': 'true'})
    assert '0/8' in leat('status').stdout
    queue.begin('w1:1:a')
    assert '1/8' in leat('status').stdout and '3/8' in leat('status', config=old).stdout


def test_rates_are_short_numbers(leat, queue):
    """JSON has a rate as the worker wrote it, without the digits that a binary fraction adds."""
    queue.register('w1:1:a', heartbeat=heartbeat(rate=0.025))
    assert '"rate": 0.025,' in leat('status', '--json').stdout


def test_no_live_worker_is_not_healthy(leat, queue):
    """Without a worker, or if the last heartbeat is older than a lease, the exit status is 1, and leat says
    so."""
    page, code = status(leat)
    assert (page['healthy'], page['problems'], code) == (False, ['no live worker'], UNHEALTHY)
    queue.register('web2:7:x')
    queue.redis.hset(queue.workers, 'web2:7:x', f'{queue.now() - 61000} {heartbeat()}')
    page, code = status(leat)
    assert code == UNHEALTHY and page['workers'][0]['live'] is False
    text = leat('status').stdout
    assert 'unhealthy' in text and 'lost' in text and re.search(r' [1-9]m(\d+s)? ago', text)
    queue.register('web2:8:y')
    page, code = status(leat)
    assert code == 0 and [worker['live'] for worker in page['workers']] == [True, False]


def test_workers_that_cannot_take_tasks_are_not_healthy(leat, queue):
    """If no live worker can take tasks before a repair, the exit status is 1, and leat says so; one that can
    is enough."""
    queue.register('web1:1:a', heartbeat=heartbeat(state='lease-short'))
    queue.register('web2:2:b', heartbeat=heartbeat(state='host-fault', host='web2'))
    page, code = status(leat)
    assert (page['problems'], code) == (['no worker can take tasks: lease-short; its log says why'], UNHEALTHY)
    queue.register('web3:3:c', heartbeat=heartbeat(state='pressed', host='web3'))
    page, code = status(leat)
    assert (page['healthy'], page['problems'], code) == (True, [], 0)


def test_other_groups_are_not_healthy(leat, queue, client):
    """If another program's group is on the stream, where no worker starts tasks, or another group than the
    configured one, which counts other tasks, leat says so."""
    client.xgroup_create('emails', 'theirs', 0, mkstream=True)
    page, code = status(leat)
    assert (page['problems'][1:], code) == (
        ['another group reads the stream: no worker starts there; leat doctor names it'], UNHEALTHY)
    client.xgroup_destroy('emails', 'theirs')
    queue.register('web1:1:a', heartbeat=heartbeat())
    done = leat('status', '--json', config={'queue': {'group': 'mine'}})
    assert (json.loads(done.stdout)['problems'], done.returncode) == (
        ["the workers' group is leat, not mine; change [queue] group in the configuration"], UNHEALTHY)
    assert status(leat)[1] == 0


@pytest.mark.parametrize('text', ['{}', '', 'no json', '[1]', '{"rate": "x", "pid": "y"}',
                                  '{"host": "\\u001b[31mred", "state": "\\u0007"}'])
def test_malformed_heartbeats(leat, queue, text):
    """Missing members, or members of another type, do no harm; host and pid come from the worker's name."""
    queue.register('web3:33:z', heartbeat=text)
    page, code = status(leat)
    assert code == 0 and page['workers'][0]['pid'] == 33
    shown = leat('status')
    assert shown.returncode == 0 and '\x1b' not in shown.stdout and '\a' not in shown.stdout
    if '\\u001b' not in text:
        assert page['workers'][0]['host'] == 'web3' and 'web3' in shown.stdout


@pytest.mark.parametrize('name', ['x' * 70000, '\x9b' * 20000, 'ü' * 1023])
def test_long_texts_are_cut(leat, queue, name):
    """A worker can write any name and any heartbeat into Redis. Operators see the beginning, whatever their
    length."""
    text = heartbeat(host=name, version=name, state=name)
    queue.redis.hset(queue.workers, mapping={f'{name}:33:z': f'{queue.now()} {text}',
                                             'web3:34:z': f'{queue.now()} {text}'})
    queue.redis.hset(queue.conf, mapping={name: '1', f'drain:{name}': '1', f'lane:{name}': '1'})
    page, code = status(leat)
    assert code in (0, UNHEALTHY) and len(page['workers']) == 2
    assert all(0 < len(one['host']) < 256 for one in page['workers'])
    for args in ['status'], ['status', '--lanes'], ['conf'], ['conf', '--json'], ['explain'], ['metrics']:
        assert leat(*args).returncode in (0, UNHEALTHY)


def test_sums_of_large_numbers(leat, queue):
    """Whoever may write to the key of counters, such as an enqueuer, may choose each of them: their sum is large,
    and not negative. A worker whose heartbeat is as old as can be is not live."""
    queue.redis.hset(queue.stats, mapping={'f:waiting:0.005': 2 ** 63 - 1, 'f:waiting:inf': 2 ** 63 - 1,
                                           'retried': 2 ** 63 - 1, 'dead': 2 ** 63 - 1,
                                           'm:then': f'1 {-2 ** 63} {-2 ** 63}'})
    queue.redis.hset(queue.workers, 'web3:33:z',
                     f'{-2 ** 63} {heartbeat(started_ms=-2 ** 63, succeeded=2 ** 63 - 1)}')
    page, code = status(leat)
    assert code == UNHEALTHY and page['since_creation']['waiting']['count'] > 2 ** 58
    assert leat('status').returncode == UNHEALTHY and leat('metrics').returncode == 0


def test_drain_with_a_large_number(leat, queue):
    """A worker whose time of the last heartbeat is before all times is not live, for leat drain either."""
    queue.redis.hset(queue.workers, 'web3:33:z', f'{-2 ** 63} {heartbeat()}')
    done = leat('drain', 'web4')
    assert done.returncode == EX_NOHOST and 'none is live' in done.stderr


def test_limits(leat, queue):
    """Each --max-... option is a limit of health."""
    queue.register('w', heartbeat=heartbeat())
    queue.add({'command': 'a'}, {'command': 'b'}, {'command': 'c'})
    [task] = queue.begin('w')
    queue.finish('w', task, 'dead', cause='exit', status='1')
    assert leat('status', '--max-ready', '2', '--max-dead', '1', '--max-oldest', '1h').returncode == 0
    done = leat('status', '--max-ready', '1', '--max-dead', '0', '--max-oldest', '0s')
    assert done.returncode == UNHEALTHY
    assert 'ready: 2, more than 1' in done.stdout and 'dead: 1, more than 0' in done.stdout
    assert 'oldest ready task' in done.stdout


def test_a_rate_is_shown(leat, queue):
    """The rate is shown, because it explains free slots beside ready tasks."""
    queue.register('w1:1:a', heartbeat=heartbeat())
    assert 'max_length none\n' in leat('status').stdout
    queue.conf_set('rate', '20/s')
    assert 'max_length none, rate 20/s\n' in leat('status').stdout
    queue.conf_set('burst', '40')
    assert 'max_length none, rate 20/s, burst 40\n' in leat('status').stdout
    queue.conf_set('rate', '')
    assert 'max_length none\n' in leat('status').stdout


def test_foreign_stream(leat, client):
    """A key of another type is reported as another program's, with exit status 78."""
    client.set('emails', 'x')
    done = leat('status')
    assert done.returncode == 78 and 'WRONGTYPE' in done.stderr
    assert done.stderr.count('another name') == 1


def test_the_next_delayed_task_and_the_next_retry(leat, queue):
    """Each of the two numbers has the time of its own next task."""
    queue.register('w1:1:a')
    queue.add({'command': 'x'})
    queue.finish('w1:1:a', queue.begin('w1:1:a')[0], 'retry', cause='exit', status='3', delay=50000)
    assert re.search(r'^  delayed +0$', leat('status').stdout, re.M)
    queue.add({'command': 'x'}, due='+9000000')
    text = leat('status').stdout
    assert re.search(r'^  delayed +1   next due in 2h', text, re.M)
    assert re.search(r'^  retrying +1   next retry in [45][0-9]s', text, re.M)
