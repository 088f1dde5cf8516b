"""Tasks that survive their KILL: they are killed again, logged once, and block nothing but their slot."""
import signal
import sys
from pathlib import Path

import pytest

from harness import processes
from harness.faults import tracer
from harness.polling import wait_until
from harness.tasks import wait_file, wait_succeeded
from harness.worker_locks import WorkerLocks, consumer_of

pytestmark = pytest.mark.usefixtures('quick_tasks')

TRACER = Path(tracer.__file__)
OFF = {'isolation': {'cgroup': 'off'}, 'retry': {'max_attempts': 1}, 'task': {'kill_grace': '100ms'}}


@pytest.fixture
def held():
    """Processes that the test traces; the fixture ends those that are left."""
    pids = []
    yield pids
    for pid in pids:
        processes.send(pid, signal.SIGKILL)
        tracer.let_go(pid)


def pid_of(path):
    wait_file(path)
    wait_until(lambda: path.read_text().endswith('\n'))
    return int(path.read_text())


def cancel_now(queue):
    """Cancels the one running task. A timeout would not do, because on a busy machine it may pass before the
    task is traced."""
    [token] = queue.pending()
    [state] = queue.call_off((token[1:], token), now=True)
    assert state.startswith('asked ')


def test_a_process_that_joins_after_the_kill(caged, queue, group, folder, held, latch):
    """With cgroups, a process that is moved into the task's group after the KILL is killed, too, and the slot
    is free for the next task."""
    caged({'queue': {'concurrency': 1}}).wait_ready()
    queue.add({'command': f'sleep 600 & echo $! > {folder}/pid; {latch.wait}'}, {'command': 'true'})
    held.append(pid_of(folder / 'pid'))
    tracer.hold_dying(held[0])
    latch.open()
    wait_until(lambda: tracer.was_killed(held[0]))
    outsider = processes.start(['tail', '-f', '/dev/null'],
                               preexec_fn=lambda: (group / 'tasks/0/cgroup.procs').write_text('0'))
    tracer.let_go(held[0])
    wait_succeeded(queue, 2)
    assert outsider.wait(600) == -signal.SIGKILL


def test_traced_by_its_own_descendant(daemon, queue, folder):
    """Without cgroups, a descendant in its own session that traces the task's first process hides that one's
    death from the daemon. The descendant is found by its environment, and the task's outcome is the reason
    for its kill."""
    worker = daemon(OFF).wait_ready()
    queue.add({'command': f'exec {sys.executable} -S -E {TRACER} {folder}/pid'})
    pid = pid_of(folder / 'pid')
    cancel_now(queue)
    wait_until(lambda: queue.counter('cancelled') == 1)
    assert not processes.alive(pid)
    assert ': killed, but' not in worker.log() and worker.running()


def test_a_process_that_survives_kill(daemon, queue, folder, held):
    """A process that survives KILL is logged once; its task keeps its slot, the other slot goes on, and a
    stop ends in time, with everything proved that can be."""
    worker = daemon({**OFF, 'queue': {'concurrency': 2}}).wait_ready()
    consumer = consumer_of(worker)
    [tid] = queue.add({'command': f'echo $$ > {folder}/pid; exec sleep 600'})
    held.append(pid_of(folder / 'pid'))
    tracer.hold_dead(held[0])
    cancel_now(queue)
    worker.wait_log(f'task {tid}: killed, but process {held[0]} has not ended')
    queue.add(*[{'command': 'true'}] * 4)
    wait_until(lambda: queue.counter('succeeded') == 4)
    assert queue.counter('cancelled') == 0
    wait_until(lambda: worker.process.poll() is not None or worker.signal(signal.SIGTERM))
    assert worker.log().count(': killed, but') == 1
    text = WorkerLocks(folder / 'state' / 'emails').path / consumer
    wait_until(lambda: f'dead {consumer}\n' in text.read_text())


def test_repeated_reports_of_a_lost_lease(daemon, queue, client, folder, held):
    """With a short lease each renewal reports the lost task again, which must not restart the wait for its
    end. The stuck process is logged, once."""
    worker = daemon({**OFF, 'queue': {'lease': '30s'}}).wait_ready()
    queue.add({'command': f'echo $$ > {folder}/pid; exec sleep 600'})
    held.append(pid_of(folder / 'pid'))
    tracer.hold_dead(held[0])
    queue.call('conf', 'lease_ms', 1000)  # before, the lease could end in a stall of the machine
    client.delete('emails', '{emails}:go', '{emails}:running')
    worker.wait_log(f': killed, but process {held[0]} has not ended')
    tracer.let_go(held[0])
    worker.wait_log(': outcome rejected: the entry is gone: the task was deleted, requeued or ended')
    assert worker.log().count(': killed, but') == 1
