"""TLS to Redis by the stunnel recipe, with a real stunnel and redis-server's own TLS port."""
import shutil

import pytest

from harness.polling import wait_until
from harness.servers.tls import Authority, Tunnel, open_tls_port
from harness.tasks import wait_succeeded

pytestmark = [pytest.mark.usefixtures('quick_tasks'),
              pytest.mark.skipif(not shutil.which('stunnel4'), reason='no stunnel4')]


@pytest.fixture
def authority(folder):
    return Authority(folder, 'right')


@pytest.fixture
def tunnel(request, folder, redis_server, authority, base_config):
    """A function that connects leatd and leat to redis_server through a tunnel."""
    made = []

    def make(clients='no', **values):
        port = open_tls_port(redis_server, authority, *authority.sign('server'), clients)
        made.append(Tunnel(folder, port, authority, **values))
        base_config['redis']['socket'] = made[-1].socket
        return made[-1]

    yield make
    for one in made:
        if getattr(request.node, 'leat_failed', False):
            print(f'---- log of the tunnel\n{one.log()}')
        one.close()


@pytest.mark.parametrize('clients', ['no', 'yes'])
def test_right_certificate(daemon, leat, queue, authority, tunnel, clients):
    """With the right authority and name, tasks and blocking reads work, also if Redis requires a certificate
    of this host."""
    own = {}
    if clients == 'yes':
        own['cert'], own['key'] = authority.sign('client')
    tunnel(clients, **own)
    daemon().wait_ready()
    for _ in range(2):
        assert leat('enqueue', 'true').returncode == 0
    wait_succeeded(queue, 2)
    assert leat('status').returncode == 0


@pytest.mark.parametrize('wrong, words', [
    ('authority', 'CERT: Pre-verification error'),
    ('name', 'CERT: Subject checks failed'),
])
def test_wrong_server(daemon, leat, folder, queue, client, tunnel, wrong, words):
    """A server with a certificate of another authority, or for another name, is refused: the tunnel's log
    says why, and leatd and leat say that the tunnel closed the connection and which log to read."""
    one = tunnel(**({'CAfile': Authority(folder, 'wrong').path} if wrong == 'authority'
                    else {'checkHost': 'redis.example.org'}))
    keys = client.dbsize()
    worker = daemon()
    worker.wait_log('before any answer: the log of Redis, or of a TLS tunnel to it, says why')
    wait_until(lambda: words in one.log())
    done = leat('enqueue', 'true')
    assert done.returncode == 69 and 'or of a TLS tunnel to it, says why' in done.stderr
    assert worker.running() and 'registered' not in worker.log() and client.dbsize() == keys


def test_a_server_that_becomes_wrong(daemon, queue, tunnel):
    """If a worker had a session before, its log also says why there is no other one: not only that the first
    one was closed."""
    right = tunnel()
    worker = daemon().wait_ready()
    right.close()
    right.socket.unlink(missing_ok=True)
    worker.wait_log('no session with Redis')
    tunnel(checkHost='redis.example.org')
    worker.wait_log('before any answer: the log of Redis, or of a TLS tunnel to it, says why')
    assert worker.running()


def test_without_a_certificate_of_this_host(daemon, queue, tunnel):
    """If Redis requires a certificate and the tunnel has none, both logs say that it is refused."""
    one = tunnel('yes')
    daemon().wait_log('before any answer: the log of Redis, or of a TLS tunnel')
    wait_until(lambda: 'alert' in one.log() and 'certificate required' in one.log())
