"""The harness itself, as far as other tests rely on it."""
import random
import socket
import subprocess

from harness import processes
from harness.polling import wait_until
from harness.servers import replicated


def test_server_restarts_and_loses_what_it_did_not_save(redis_server):
    """A killed server starts again on the same socket, empty, because persistence is off by default."""
    redis_server.client().set('k', 'v')
    redis_server.kill()
    redis_server.restart()
    assert redis_server.client().get('k') is None


def test_orphans_are_found_and_ended():
    """The clean-up finds a process whose parent died and that left the session."""
    script = 'setsid sleep 1000 & echo'
    parent = processes.start(['sh', '-c', script], stdout=-1)
    parent.stdout.close()
    parent.wait()
    wait_until(lambda: processes.end_orphans() > 0, 5, 'an orphan was found')


def test_only_running_processes_are_killed():
    """The pid of a process that has ended is not killed, because it may belong to another process by now."""
    ended = processes.start(['true'])
    other = processes.start(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ended.wait()
    ended.pid = other.pid
    processes.end(ended)
    assert other.communicate(b'alive')[0] == b'alive'
    processes.end(other)


def test_failures_show_processes():
    """A failure shows the state of each process below the daemon, or how the daemon ended."""
    parent = processes.start(['sh', '-c', 'sleep 1000; echo'], stdout=subprocess.DEVNULL)
    wait_until(lambda: 'sleep 1000' in processes.told(parent).partition('\n')[2])
    wait_until(lambda: f' of {parent.pid}: S, wchan ' in processes.told(parent))
    processes.end(parent)
    assert processes.told(parent) == f'{parent.pid}: ended with -9'


def test_queue_round_trip(queue):
    """A task goes through enqueue, claim and finish, and nothing is left of it."""
    queue.register('w1')
    queue.add({'command': 'true'})
    [task] = queue.begin('w1')
    assert task.fields == {'command': b'true'}
    assert queue.finish('w1', task) == 'ok'
    assert queue.places() == {} and queue.pending() == []


def test_node_finds_two_free_ports(folder, monkeypatch):
    """A node of a Cluster starts even if the first ports that it tries, its own and the cluster bus's, are
    taken."""
    pick = random.randint
    with socket.create_server(('127.0.0.1', 0)) as taken:
        number = taken.getsockname()[1]
        ports = iter([number, pick(10000, 31999), pick(10000, 31999), number])
        monkeypatch.setattr(random, 'randint', lambda *ends: next(ports, 0) or pick(*ends))
        replicated.Cluster.start_node(folder / 'n', {}).close()
