"""leat pause, resume, drain and undrain, and what leat status says of them."""
import json
import os
import pwd
import socket
import subprocess
import threading

import pytest

from harness.daemon import program, write_config
from harness.polling import PATIENCE_S, wait_until

EX_NOHOST, EX_TEMPFAIL, EX_NOPERM = 68, 75, 77
TASK = {'command': 'true'}


def said(done):
    assert done.returncode == 0 and done.stderr == '', done
    return done.stdout


def status(leat):
    done = leat('status', '--json')
    return json.loads(done.stdout)


def test_pause_and_resume(leat, queue):
    """Each command says what it did, or that nothing had to be done; a second pause keeps the time of the
    first."""
    queue.register('w1:1:a')
    assert said(leat('resume')) == 'it was not paused\n'
    assert said(leat('pause')) == 'paused; no task runs\n'
    since = queue.redis.hget(queue.conf, 'paused').split()[0]
    queue.redis.hset(queue.conf, 'paused', int(since) - 300000)
    assert said(leat('pause')).startswith('already paused (5m')
    answer = json.loads(said(leat('pause', '--json')))
    assert answer == {'paused': True, 'changed': False, 'since_ms': int(since) - 300000, 'running': 0}
    assert queue.claim('w1:1:a')['why'] == 'paused'
    assert json.loads(said(leat('resume', '--json'))) == {'paused': False, 'changed': True}
    assert json.loads(said(leat('resume', '--json'))) == {'paused': False, 'changed': False}
    assert queue.claim('w1:1:a')['why'] == ''


def test_a_pause_whose_state_cannot_be_read(leat, queue):
    """If leat could pause the queue but cannot tell how many tasks run, it says that the queue is paused."""
    queue.register('w1:1:a')
    queue.redis.execute_command('ACL', 'SETUSER', 'writer', 'on', '>word', '~*', '+@all', '-xinfo')
    done = leat('pause', config={'redis': {'user': 'writer', 'password': 'word'}})
    assert done.returncode == EX_NOPERM and "cannot read the queue's status" in done.stderr
    assert done.stderr.endswith('leat: the queue is paused nevertheless: no worker starts a task; '
                                'leat resume ends this\n')
    assert queue.claim('w1:1:a')['why'] == 'paused'


def test_control_characters_of_others(leat, queue):
    """Names and values that others have written into the queue are printed with control characters escaped."""
    evil, shown = 'x\x1b]0;title\x07\ry', r'x\x1b]0;title\x07\ry'
    queue.register(f'{evil}:1:a')
    queue.redis.hset(queue.conf, 'rate', evil)
    [tid] = queue.add(TASK)
    queue.begin(f'{evil}:1:a')
    queue.redis.hset(queue.conf, f'drain:{evil}', f'{queue.now()} me')
    assert f'rate              {shown}\n' in said(leat('conf'))
    assert said(leat('cancel', tid)) == f'{tid}: asked, it runs on {shown}:1:a\n'
    assert f'\n{shown}: takes tasks again\n' in said(leat('undrain', '--all'))


def test_running_tasks_are_counted(leat, queue):
    """pause says how many tasks still run."""
    queue.register('w1:1:a')
    queue.add(TASK, TASK)
    queue.begin('w1:1:a')
    assert said(leat('pause')) == 'paused; 1 task still runs\n'
    assert json.loads(said(leat('pause', '--json')))['running'] == 1


@pytest.mark.parametrize('resumed', [False, True])
def test_wait(leat, queue, resumed):
    """--wait ends when the last task has ended, or when the queue is resumed."""
    queue.register('w1:1:a')
    queue.add(TASK, TASK)
    tasks = queue.begin('w1:1:a', 2)
    results = []
    waiting = threading.Thread(target=lambda: results.append(leat('pause', '--wait')))
    waiting.start()
    wait_until(lambda: queue.redis.hexists(queue.conf, 'paused'))
    queue.finish('w1:1:a', tasks[0])
    if resumed:
        queue.gate('paused', False)
    else:
        queue.finish('w1:1:a', tasks[1])
    waiting.join(120)
    [done] = results
    if resumed:
        assert done.returncode == EX_TEMPFAIL and 'resumed meanwhile' in done.stderr
    else:
        assert said(done) == 'paused; no task runs\n'


def test_interrupted_wait(folder, base_config, queue):
    """Ctrl-C ends the wait, and the queue stays paused."""
    queue.register('w1:1:a')
    queue.add(TASK)
    queue.begin('w1:1:a')
    path = write_config(folder / 'leat.ini', base_config)
    with subprocess.Popen([program('leat'), '-c', str(path), 'pause', '--wait']) as process:
        wait_until(lambda: queue.redis.hexists(queue.conf, 'paused'))
        process.terminate()
        process.wait(timeout=4 * PATIENCE_S)
    assert process.returncode != 0 and queue.redis.hexists(queue.conf, 'paused')


def test_drain(leat, queue):
    """drain takes one or more hosts, or the full name of a worker; a second drain says that nothing changed."""
    for worker in ('web1:1:a', 'web1:2:b', 'web2.example:3:c', 'web3:4:d'):
        queue.register(worker)
    assert said(leat('drain', 'web1')) == 'web1: drained\n'
    assert said(leat('drain', 'web1', 'web2.example:3:c')) == (
        'web1: already drained\nweb2.example: drained\n')
    whys = [queue.claim(worker)['why'] for worker in ('web1:1:a', 'web1:2:b', 'web2.example:3:c', 'web3:4:d')]
    assert whys == ['drained', 'drained', 'drained', '']
    lines = said(leat('undrain', '--json', 'web1', 'web3')).splitlines()
    assert [json.loads(line) for line in lines] == [
        {'host': 'web1', 'drained': False, 'changed': True},
        {'host': 'web3', 'drained': False, 'changed': False}]
    assert queue.claim('web1:1:a')['why'] == ''


def test_every_host(leat, queue):
    """--all drains every host, also future ones; undrain --all also undrains hosts that were drained by name."""
    queue.register('web1:1:a')
    said(leat('drain', 'web1'))
    assert said(leat('drain', '--all')) == 'all hosts: drained\n'
    queue.register('new:9:z')
    assert queue.claim('new:9:z')['why'] == 'drained'
    done = leat('undrain', 'web1')
    assert done.returncode == 0 and 'all hosts are drained' in done.stderr
    assert 'takes tasks again' not in done.stdout
    said(leat('drain', 'web1'))
    assert said(leat('undrain', '--all')) == 'all hosts: take tasks again\nweb1: takes tasks again\n'
    assert queue.claim('new:9:z')['why'] == queue.claim('web1:1:a')['why'] == ''


def test_unknown_host(leat, queue):
    """A host without workers is an error that names the hosts that have some. Silent workers count, and a
    drained host can be undrained after its workers are gone."""
    done = leat('drain', 'web1')
    assert done.returncode == EX_NOHOST and 'none is live' in done.stderr
    for worker in ('web1:1:a', 'web2:2:b', 'web1:3:c'):
        queue.register(worker)
    queue.redis.hset(queue.workers, 'old:7:x', f'{queue.now() - 999999} {{}}')
    done = leat('drain', 'wbe1', 'web2')
    assert done.returncode == EX_NOHOST and done.stdout == 'web2: drained\n'
    assert done.stderr.rstrip().endswith('live workers run on: web1, web2') or (
        done.stderr.rstrip().endswith('live workers run on: web2, web1'))
    assert said(leat('drain', 'old')) == 'old: drained\n'
    queue.redis.hdel(queue.workers, 'old:7:x')
    assert said(leat('undrain', 'old')) == 'old: takes tasks again\n'
    assert leat('undrain', 'old').returncode == EX_NOHOST


def test_status(leat, queue):
    """leat status shows pause and drain, still counts as healthy, and shows a drained worker as such."""
    heartbeat = json.dumps({'state': 'running', 'running': 0, 'slots': 2, 'retried': 3, 'dead': 4})
    for worker in ('web1:1:a', 'web2:2:b'):
        queue.register(worker, heartbeat=heartbeat)
    page = status(leat)
    assert (page['paused'], page['paused_since_ms'], page['drained']) == (False, 0, [])
    assert 'PAUSED' not in leat('status').stdout
    queue.add(TASK)
    queue.add(dict(TASK, lane='blue'))
    said(leat('pause'))
    said(leat('drain', 'web2'))
    page, now = status(leat), queue.now()
    assert page['healthy'] and page['paused'] and 0 <= now - page['paused_since_ms'] < 60000
    assert page['drained'] == ['web2'] and page['conf']['drain:web2'] > 0
    assert {worker['host']: worker['drained'] for worker in page['workers']} == {
        'web1': False, 'web2': True}
    assert all(worker['failed'] == 7 for worker in page['workers'])
    done = leat('status')
    head, text = done.stdout.split('\n', 1)
    assert done.returncode == 0 and 'healthy' in head and 'PAUSED since' in head
    assert 'drained: web2 (' in text and 'in lanes' in text
    [row] = [line for line in text.splitlines() if line.split()[:1] == ['web2']]
    assert 'drained' in row
    said(leat('drain', '--all'))
    assert 'drained: all hosts (' in leat('status').stdout or ', all hosts (' in leat('status').stdout
    assert '*' in status(leat)['drained']
    assert all(worker['drained'] for worker in status(leat)['workers'])


def test_status_has_the_user(leat, queue):
    """Text and JSON have the user and the host of the first pause, and a later pause does not change them."""
    def looks():
        done = leat('status')
        return done.stdout

    who = f'{pwd.getpwuid(os.getuid()).pw_name}@{socket.gethostname()}'
    queue.register('w1:1:a')
    said(leat('drain', 'w1'))
    said(leat('pause'))
    assert f') by {who}\n' in looks() and f' by {who})\n' in looks()
    assert queue.gate('paused', True, 'bob@web2') is True
    answer = status(leat)
    assert (answer['paused'], answer['paused_by'], answer['drained']) == (True, who, ['w1'])
    assert answer['drained_by'] == {'w1': who}
    assert answer['conf']['paused'] == answer['paused_since_ms'] > 0
    said(leat('resume'))
    queue.gate('paused', True)
    assert 'PAUSED since' in looks() and 'paused_by' not in status(leat)
    queue.gate('drain:*', True)
    assert (status(leat)['drained'], status(leat)['drained_by']) == (['w1', '*'], {'w1': who})
    queue.gate('drain:*', False)
    said(leat('undrain', 'w1'))
    assert (status(leat)['drained'], status(leat)['drained_by']) == ([], {})
    assert ' by ' not in looks()
