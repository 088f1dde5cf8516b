"""Tasks that are claimed ahead of free slots wait for no long task, and no end of a worker or its connections
loses, doubles or miscounts them.

Only short tasks are claimed ahead, and on a busy machine none may be short: then these tests see nothing.
tests/unit/daemon/test_slots.c has the rules one by one, on any machine."""
import re
import time

import pytest

from harness.polling import wait_until
from harness.queue import trailer
from harness.short_leases import wait_blocked, wait_empty
from harness.tasks import records, wait_succeeded

SHORT = {'command': '/bin/true'}
MORE = 100     # tasks that are added at once
AHEAD = 8      # this many claimed tasks on a worker of one slot, most of which wait for it
TRY_S = 4      # time limit for the attempt to see it
BUSY = 'tasks take too long here for any to be claimed ahead'


@pytest.fixture(autouse=True)
def one_slot(base_config):
    base_config['queue'].update(lease='120s', scan='300ms', concurrency=1)
    base_config['task'] = {'kill_grace': '300ms'}
    base_config['retry'] = {'base': '50ms', 'jitter': 'none'}
    base_config['log'] = {'started': 'yes'}


class Flood:
    """Short tasks, as many as it takes until a worker claims ahead."""

    def __init__(self, queue, command=lambda number: '/bin/true'):
        self.queue, self.command, self.count = queue, command, 0

    def add(self, number=MORE):
        self.queue.add(*[{'command': self.command(self.count + i)} for i in range(number)])
        self.count += number

    def wait_ahead(self):
        end = time.monotonic() + TRY_S

        def ahead():
            if self.queue.redis.xlen(self.queue.stream) < MORE:
                self.add()
            begun = self.queue.redis.hlen(self.queue.running)
            return begun if begun >= AHEAD or time.monotonic() > end else 0

        if wait_until(ahead) < AHEAD:
            pytest.skip(BUSY)


def steps(log):
    """[(tid, whether it started or ended)] of a worker's log, in order."""
    found = []
    for _, _, message in records(log):
        match = re.match(r'task (\S+): attempt \d+(?:/\d+)? (started|\w+:)', message)
        if match:
            found.append((match.group(1), match.group(2) == 'started'))
    return found


def test_tasks_behind_a_long_one_run_elsewhere(daemon, queue, client, folder):
    """Two workers have a slot each, and one has claimed tasks ahead when a long task takes its slot: the
    other worker runs them meanwhile."""
    workers = [daemon().wait_ready(), daemon().wait_ready()]
    wait_blocked(client, 2)
    done = 0
    for number in range(3):
        latch = folder / f'latch-{number}'
        long = f'until [ -e {latch} ]; do sleep 0.02; done'
        tids = queue.add(*[SHORT] * MORE, {'command': long}, *[SHORT] * 60)
        done += len(tids)
        wait_until(lambda: queue.counter('succeeded') >= done - 1, 60,
                   lambda: f'all but the long task: {queue.redis.hgetall(queue.stats)}')
        [holder] = wait_until(lambda: [one for one in workers if (tids[MORE], True) in steps(one.log())])
        assert queue.counter('succeeded') == done - 1 and client.hlen(queue.running) == 1
        assert steps(holder.log())[-1] == (tids[MORE], True)
        latch.touch()
        wait_succeeded(queue, done)
        if queue.counter('released'):
            break
    else:
        pytest.skip(BUSY)
    assert queue.counter('crashes') == queue.counter('retried') == queue.counter('fenced') == 0


def test_stop_requeues(daemon, queue, client):
    """At SIGTERM the waiting tasks are requeued uncounted, and another worker runs each of them once."""
    first = daemon().wait_ready()
    flood = Flood(queue)
    flood.wait_ahead()
    first.terminate()
    assert first.wait_exit() == 0
    assert client.hlen(queue.running) == 0 and queue.pending() == []
    for _, fields in queue.entries('go'):
        own = trailer(fields)
        assert own['leat.attempts'] == own['leat.crashes'] == '0'
    second = daemon().wait_ready()
    wait_succeeded(queue, flood.count, 60)
    started = [tid for one in (first, second) for tid, start in steps(one.log()) if start]
    assert len(started) == len(set(started)) == flood.count
    assert 'attempt 2' not in first.log() + second.log()
    assert queue.counter('crashes') == queue.counter('retried') == queue.counter('fenced') == 0


def test_killed_worker(daemon, queue, client):
    """After kill -9 each waiting task runs again after the lease, with one crash."""
    sections = {'queue': {'lease': '5s'}}
    first = daemon(sections).wait_ready()
    flood = Flood(queue)
    flood.wait_ahead()
    first.kill9()
    # Redis still executes what the worker had sent
    wait_until(lambda: not any(row['name'].startswith('leat:') for row in client.client_list()))
    left = queue.pending()
    daemon(sections).wait_ready()
    wait_succeeded(queue, flood.count, 60)
    assert queue.counter('crashes') == len(left)
    assert queue.letters() == [] and queue.counter('retried') == 0


@pytest.mark.parametrize('name', ['', 'command', 'work'])
def test_cut_connection(daemon, queue, proxy, through_proxy, folder, name):
    """If connections break while tasks wait, every task runs once, and none counts as crashed."""
    first = daemon(through_proxy).wait_ready()
    # a second run of a task fails
    flood = Flood(queue, lambda number: f'/bin/mkdir {folder}/{number}')
    for number in range(3):
        flood.wait_ahead()
        proxy.cut(name)
        wait_until(lambda: first.log().count('registered with Redis') > number + 1)
    wait_succeeded(queue, flood.count, 60)
    assert all((folder / str(number)).is_dir() for number in range(flood.count))
    assert queue.counter('crashes') == queue.counter('retried') == queue.counter('fenced') == 0
    started = [tid for tid, start in steps(first.log()) if start]
    assert len(started) == len(set(started)) == flood.count


def test_poison_candidates_are_not_claimed_ahead(daemon, queue):
    """A poison candidate that runs alone and comes while others are claimed ahead starts when no other task
    runs, and nothing starts beside it."""
    queue.register('gone', lease=120000, max_crashes=2)
    candidates = queue.add(*[SHORT] * 5)
    crashed = [task.token for task in queue.begin('gone', 5)]
    assert len(crashed) == 5
    first = daemon({'queue': {'concurrency': 2, 'scan': '10m'}}).wait_ready()
    flood = Flood(queue)
    for token in crashed:
        flood.wait_ahead()
        queue.expire(token)
        queue.scan('other')
    wait_empty(queue, 60)
    assert queue.counter('crashes') == 5
    seen = steps(first.log())
    assert sum(start for _, start in seen) == flood.count + 5
    running = set()
    for at, (tid, start) in enumerate(seen):
        if tid in candidates and start:
            assert not running and seen[at + 1] == (tid, False)
        (running.add if start else running.discard)(tid)
