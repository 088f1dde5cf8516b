"""Large tasks neither stop Redis for long nor break the worker's session."""
import socket
import threading

import pytest

from harness.daemon import is_sanitized
from harness.polling import wait_until
from harness.short_leases import wait_blocked
from harness.tasks import wait_file, wait_succeeded

MIB = 1 << 20
LARGE_PIECE = 16384  # bytes of which an answer without a task has fewer
BIG = b'b' * (20 * MIB)  # more than a call moves


class SlowLink:
    """A unix socket in front of another; what comes back from there passes at some bytes per second, or each large
    answer comes after some seconds of silence."""

    def __init__(self, path, target, rate=None, silence=0):
        self.path, self.target, self.rate, self.silence = str(path), target, rate, silence
        self.passed = 0  # bytes of the largest piece of data that has passed without a pause
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(64)
        self._sockets = [self._listener]
        self.closed = threading.Event()
        self._start(self._serve)

    @staticmethod
    def _start(run, *args):
        threading.Thread(target=run, args=args, daemon=True).start()

    def _serve(self):
        while True:
            try:
                near = self._listener.accept()[0]
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.target)
            self._sockets += [near, far]
            self._start(self._pump, near, far, None, 0)
            self._start(self._pump, far, near, self.rate, self.silence)

    def _pump(self, source, target, rate, silence):
        before = 0
        try:
            while data := source.recv(65536):
                if before < LARGE_PIECE <= len(data):
                    self.closed.wait(silence)
                before = len(data)
                target.sendall(data)
                if rate:
                    self.passed = max(self.passed, len(data))
                    self.closed.wait(len(data) / rate)
        except OSError:
            pass
        for one in (source, target):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.closed.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        for one in self._sockets:
            one.close()


@pytest.fixture
def slow_link(folder, redis_server):
    """A link of 1 MiB/s."""
    one = SlowLink(folder / 'slow.sock', redis_server.socket, MIB)
    yield one
    one.close()


def test_a_transfer_longer_than_the_timeout(daemon, queue, client, slow_link, folder):
    """A task whose transfer takes longer than command_timeout arrives, in the blocking read and in the claim, even
    if the worker wants to end the read meanwhile."""
    one = daemon({'redis': {'socket': slow_link.path, 'command_timeout': '6s'}, 'queue': {'lease': '60s'}})
    one.wait_ready()
    wait_blocked(client)
    queue.add({'command': f'wc -c > {folder}/out', 'payload': b'x' * (8 * MIB)})
    wait_until(lambda: slow_link.passed > LARGE_PIECE, message='the transfer has begun')
    client.xadd(queue.bell, {'why': 'lanes'})
    wait_succeeded(queue, 1)
    assert wait_file(folder / 'out').split() == [b'%d' % (8 * MIB)]
    assert 'no session' not in one.log()


def run_large_task(daemon, queue, folder, link, lease, grace):
    """A worker behind the link, with a short command_timeout, runs a large task once. Returns the worker."""
    one = daemon({'redis': {'socket': link.path, 'command_timeout': '1s'}, 'queue': {'lease': lease},
                  'task': {'kill_grace': grace}}).wait_ready()
    queue.add({'command': f'wc -c >> {folder}/out', 'payload': b'x' * MIB})
    wait_succeeded(queue, 1, 60)
    assert wait_file(folder / 'out').split() == [b'%d' % MIB]
    return one


def test_claims_slower_than_the_timeout(daemon, queue, client, folder, redis_server):
    """A claim for which Redis takes longer than command_timeout gets more time, until it is answered. A Redis that
    hangs is still noticed."""
    link = SlowLink(folder / 'slow.sock', redis_server.socket, silence=3)
    try:
        one = run_large_task(daemon, queue, folder, link, lease='20s', grace='2s')
        assert 'Redis was busy for longer than 2s: from now on, waiting up to 4s' in one.log()
        wait_blocked(client)
        losses = one.log().count('no session with Redis')
        redis_server.stop()
        wait_until(lambda: one.log().count('no session with Redis') > losses, 60)
        redis_server.cont()
    finally:
        link.close()


def test_claims_slower_than_a_third_of_the_lease(daemon, queue, folder, redis_server):
    """A worker without tasks waits up to a lease for an answer, so a task for which Redis takes longer than a
    third of it starts, too."""
    link = SlowLink(folder / 'slow.sock', redis_server.socket, silence=4)
    try:
        one = run_large_task(daemon, queue, folder, link, lease='9s', grace='1s')
        assert 'waiting up to 4s for an answer' in one.log()
    finally:
        link.close()


def test_many_large_tasks_end_together(daemon, queue, client):
    """Large tasks that a stop returns at once go back in several calls, and no outcome is refused."""
    # the stop waits for the grace, and 5 s, until Redis has taken what it returns
    one = daemon({'queue': {'concurrency': 3, 'lease': '5m'}, 'shutdown': {'drain': '10ms'},
                  'task': {'kill_grace': '1m'}}).wait_ready()
    for _ in range(3):
        client.xadd(queue.stream, {'command': 'sleep 1000', 'payload': BIG})
    wait_until(lambda: client.hlen(queue.running) == 3)
    client.config_resetstat()
    one.terminate()
    assert one.wait_exit() == 0
    calls = client.info('commandstats')['cmdstat_fcall']['calls']
    assert client.xlen(queue.go) == 3 and queue.pending() == [] and calls >= 3
    assert 'refuses' not in one.log()


@pytest.mark.skipif(is_sanitized(), reason='freed memory stays for a while')
def test_memory_of_the_worker(daemon, queue, client):
    """Large tasks among small ones all succeed without losing a lease, and the worker keeps no more than one for
    each slot."""
    slots = 2
    one = daemon({'queue': {'concurrency': slots, 'lease': '60s'}}).wait_ready()
    for index in range(40):
        client.xadd(queue.stream, {'command': 'true', **({'payload': BIG} if index % 10 == 5 else {})})
    wait_succeeded(queue, 40, 60)
    with open(f'/proc/{one.pid}/status', encoding='ascii') as file:
        peak = [int(line.split()[1]) << 10 for line in file if line.startswith('VmHWM')][0]
    assert peak < len(BIG) * slots + 64 * MIB and 'lease' not in one.log()
