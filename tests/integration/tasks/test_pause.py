"""Pause, resume and drain on real daemons: no task starts, in whatever state the workers are, and all goes on
afterwards."""
import ctypes
import os
import re
import threading
import time

import pytest

from harness.polling import wait_until
from harness.short_leases import pass_time, wait_blocked, wait_empty
from harness.tasks import wait_succeeded

CLONE_NEWUTS = 0x04000000
STOPS_WITHIN_S = 1.0
SHORT = {'command': '/bin/true'}


@pytest.fixture(autouse=True)
def calm(base_config):
    """Heartbeats and scans are rare, so that nothing is found by chance."""
    base_config['queue'].update(lease='60s', scan='10m', concurrency=1)
    base_config['task'] = {'kill_grace': '300ms'}
    base_config['retry'] = {'base': '50ms', 'jitter': 'none'}
    base_config['log'] = {'started': 'yes'}


def run(leat, *args):
    done = leat(*args)
    assert done.returncode == 0 and done.stderr == '', done
    return done.stdout


def started(workers):
    return sum(len(re.findall(r'attempt \d+ started', worker.log())) for worker in workers)


def wait_running(queue, count):
    wait_until(lambda: queue.redis.hlen(queue.running) == count, 20,
               lambda: f'{count} run: {queue.redis.hgetall(queue.running)}')


class Flood:
    """Producers that never stop: plain XADDs and enqueues, some of them with a lane or a delay."""

    def __init__(self, server, queue, line):
        self.client, self.stream, self.line = server.client(), queue.stream, line
        self.queue = type(queue)(server.client())
        self.stopping, self.count = threading.Event(), 0
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.stopping.is_set():
            self.client.xadd(self.stream, {'command': self.line})
            self.queue.add({'command': self.line, 'lane': f'lane-{self.count % 3}'})
            self.queue.add({'command': self.line}, due='+5')
            self.count += 3
            self.stopping.wait(0.01)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()


def test_nothing_starts(daemon, queue, client, redis_server, leat, folder, late):
    """Under a flood of short tasks of all kinds, with a busy worker, one that claims ahead and an idle one,
    nothing starts later than 1 s after the reply; after the resume every task runs, once."""
    workers = [daemon().wait_ready(), daemon({'queue': {'concurrency': 4}}).wait_ready()]
    stamps = folder / 'stamps'
    with Flood(redis_server, queue, f'date +%s%N >> {stamps}') as flood:
        wait_until(lambda: stamps.exists() and stamps.read_text().count('\n') > 100, 60)
        run(leat, 'pause')
        paused = time.time()
        workers.append(daemon().wait_ready())
        pass_time(STOPS_WITHIN_S + 1)
        while_paused = flood.count
        wait_until(lambda: flood.count > while_paused)
    last = max(int(line) for line in stamps.read_text().split()) / 1e9
    assert last - paused < STOPS_WITHIN_S + late.start()  # by the time that a task writes, a program has started
    before = stamps.read_text().count('\n')
    assert before < flood.count
    wait_until(lambda: not queue.pending() and not client.hlen(queue.running), 10,
               'what was read or claimed ahead went back')
    assert all('the queue is paused' in worker.log() for worker in workers)
    assert run(leat, 'pause', '--wait').startswith('already paused')
    assert stamps.read_text().count('\n') == before
    run(leat, 'resume')
    wait_succeeded(queue, flood.count, 120)
    assert stamps.read_text().count('\n') == flood.count
    assert queue.counter('crashes') == queue.counter('retried') == 0


def test_running_tasks_go_on(daemon, queue, leat, folder, latch):
    """A task that runs during a pause is renewed and finishes, with success or with a retry after the resume;
    pause --wait waits for it."""
    worker = daemon({'queue': {'concurrency': 3, 'lease': '6s'}}).wait_ready()
    once = f'mkdir {folder}/once && exit 1; true'
    queue.add({'command': latch.command}, {'command': f'{latch.wait}; {once}'})
    wait_running(queue, 2)
    assert run(leat, 'pause') == 'paused; 2 tasks still run\n'
    queue.add(SHORT)
    worker.wait_log('the queue is paused')
    pass_time(7)  # more than a lease
    results = []
    waiting = threading.Thread(target=lambda: results.append(run(leat, 'pause', '--wait')))
    waiting.start()
    latch.open()
    waiting.join(60)
    assert results and results[0].endswith('; no task runs\n')
    assert queue.counter('succeeded') == 1 and queue.counter('retried') == 1
    assert queue.counter('crashes') == queue.counter('fenced') == 0
    assert started([worker]) == 2
    run(leat, 'resume')
    wait_succeeded(queue, 3)


def test_busy_worker_learns_of_a_pause(daemon, queue, leat, latch):
    """A worker without a free slot also learns of a pause, and of its end, at once."""
    worker = daemon().wait_ready()
    queue.add({'command': latch.command})
    wait_running(queue, 1)
    run(leat, 'pause')
    worker.wait_log('the queue is paused')
    run(leat, 'resume')
    worker.wait_log('claiming tasks again')
    run(leat, 'pause')
    latch.open()
    wait_empty(queue)
    queue.add(SHORT)
    run(leat, 'resume')
    wait_empty(queue)


def test_tasks_that_wait_for_their_batch_are_requeued(daemon, queue, client, leat, folder):
    """Claimed tasks that wait for their batch are requeued uncounted if the queue is paused."""
    worker = daemon({'queue': {'lease': '600s'}, 'task': {
        'command': f'cat >> {folder}/read', 'batch': 3, 'batch_wait': '60s', 'kill_grace': '300ms'}})
    worker.wait_ready()
    wait_blocked(client)
    queue.add({'payload': 'one'}, {'payload': 'two'})
    wait_running(queue, 2)
    run(leat, 'pause')
    wait_running(queue, 0)
    assert set(map(tuple, queue.places().values())) == {('go',)}
    run(leat, 'resume')
    wait_running(queue, 2)
    queue.add({'payload': 'three'})
    wait_empty(queue)
    assert sorted((folder / 'read').read_text().split()) == ['one', 'three', 'two']
    assert queue.counter('crashes') == queue.counter('retried') == 0


def test_resume_overtakes_an_answer(daemon, queue, client, proxy, through_proxy, leat):
    """If the reply that the queue is paused arrives after the wakeup for the resume, the worker does not wait
    for another wakeup."""
    worker = daemon(through_proxy).wait_ready()
    wait_blocked(client)
    run(leat, 'pause')
    worker.wait_log('the queue is paused')
    for number in range(1, 6):
        run(leat, 'resume')
        wait_blocked(client)
        run(leat, 'pause')
        wait_until(lambda number=number: worker.log().count('the queue is paused') > number)
        # a wakeup that resumes nothing makes the worker ask; the reply is held until the queue is resumed
        trap = proxy.trap('leat_claim', 'after', 'hold')
        client.xadd(queue.bell, {'why': 'conf'})
        trap.wait()
        run(leat, 'resume')
        pass_time(0.1)  # for the wakeup
        trap.release()
        queue.add(SHORT)
        wait_succeeded(queue, number)


def test_new_rate_overtakes_an_answer(daemon, queue, client, proxy, through_proxy):
    """If the reply with the rate's next time arrives after the rate was removed, the worker does not wait for that
    time."""
    daemon(through_proxy).wait_ready()
    queue.conf_set('rate', '1/h')
    queue.add(SHORT)
    wait_succeeded(queue, 1)
    queue.add(SHORT)
    trap = proxy.trap('leat_claim', 'after', 'hold')
    client.xadd(queue.bell, {'why': 'conf'})
    trap.wait()
    queue.conf_set('rate', '')
    pass_time(0.1)  # for the wakeup
    trap.release()
    wait_succeeded(queue, 2)


@pytest.mark.parametrize('how', ['restart', 'cut'])
def test_pause_outlives_workers(daemon, queue, proxy, through_proxy, leat, how):
    """A worker that starts, or connects again, while the queue is paused starts no task, and says why."""
    run(leat, 'pause')
    queue.add(SHORT)
    worker = daemon(through_proxy).wait_ready().wait_log('the queue is paused')
    if how == 'cut':
        proxy.cut('')
        wait_until(lambda: worker.log().count('registered with Redis') == 2)
    else:
        worker.terminate()
        assert worker.wait_exit() == 0
        worker = daemon(through_proxy).wait_ready().wait_log('the queue is paused')
    pass_time(0.5)
    assert queue.counter('succeeded') == 0 and queue.pending() == []
    run(leat, 'resume')
    wait_succeeded(queue, 1)


# ---- drain

def on_host(name):
    """Makes the calling process be on a host of that name."""
    def move():
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWUTS) or libc.sethostname(name.encode(), len(name)):
            raise OSError(ctypes.get_errno(), 'unshare')
    return move


@pytest.fixture
def two_hosts(daemon):
    """Workers on the hosts alpha and beta."""
    workers = []
    for name in ('alpha', 'beta'):
        worker = daemon(start=False)
        worker.popen = {'preexec_fn': on_host(name)}
        try:
            workers.append(worker.start())
        except Exception as error:  # exceptions of preexec_fn lose their type
            if os.geteuid() != 0:
                pytest.skip(f'no other host name here: {error}')
            raise
    return [worker.wait_ready() for worker in workers]


def test_drain(two_hosts, queue, client, leat, latch):
    """The worker of a drained host starts no further task and finishes those that run; the other worker takes
    all tasks. After undrain it takes tasks at once."""
    alpha, beta = two_hosts
    wait_blocked(client, 2)
    assert run(leat, 'drain', 'alpha') == 'alpha: drained\n'
    alpha.wait_log('this host is drained')
    wait_blocked(client, 1)
    queue.add(*[SHORT] * 20)
    wait_succeeded(queue, 20)
    assert (started([alpha]), started([beta])) == (0, 20)
    queue.add({'command': latch.command})
    wait_running(queue, 1)
    assert run(leat, 'undrain', 'alpha') == 'alpha: takes tasks again\n'
    queue.add(SHORT)
    wait_until(lambda: queue.counter('succeeded') == 21)
    assert started([alpha]) == 1
    run(leat, 'drain', 'beta')
    beta.wait_log('this host is drained')
    latch.open()
    wait_empty(queue)
    assert 'retry' not in beta.log() and queue.counter('crashes') == 0


def test_drain_all(two_hosts, queue, leat):
    """If every host is drained, new tasks wait for undrain --all."""
    run(leat, 'drain', '--all')
    for worker in two_hosts:
        worker.wait_log('this host is drained')
    queue.add(*[SHORT] * 5)
    pass_time(0.5)
    assert started(two_hosts) == 0
    run(leat, 'undrain', '--all')
    wait_succeeded(queue, 5)
