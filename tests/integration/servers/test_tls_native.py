"""[redis] tls: TLS by leat itself, if hiredis has it; otherwise the configuration is refused."""
import contextlib
import os
import socket
import ssl
import subprocess
import threading

import pytest

from harness.daemon import program, write_config
from harness.polling import wait_until
from harness.queue import Queue
from harness.servers import replicated
from harness.servers.tls import NAME, Authority, open_tls_port, server_options
from harness.tasks import wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')


@pytest.fixture
def built_in(leat):
    """Skips the test if TLS is not built in."""
    if 'built without TLS' in leat('status', config={'redis': {'tls': 'yes'}}).stderr:
        pytest.skip('hiredis has no hiredis_ssl here')


@pytest.fixture
def authority(folder):
    return Authority(folder, 'right')


@pytest.fixture
def spoken(redis_server, authority, base_config):
    """A function that makes leatd and leat use TLS with redis_server; keys are further keys of [redis]."""
    def speak(clients='no', **keys):
        port = open_tls_port(redis_server, authority, *authority.sign('server'), clients)
        base_config['redis'] = {'host': NAME, 'port': port, 'tls': 'yes', 'tls_ca': authority.path, **keys}

    return speak


def test_not_built_in(leat, daemon, base_config):
    """Without TLS built in, tls = yes is an error that says why, and what to do; the other keys require tls =
    yes."""
    base_config['redis'] = {'tls': 'yes'}
    done = leat('status')
    if 'built without TLS' not in done.stderr:
        pytest.skip('hiredis has hiredis_ssl here')
    assert done.returncode == 78 and 'set socket to a tunnel instead, see TLS in leatd(8)' in done.stderr
    assert daemon().wait_exit() == 78


@pytest.mark.parametrize('keys, words', [
    ({'tls_ca': '/etc/ca.pem'}, 'tls_ca: has no effect without TLS; add tls = yes'),
    ({'tls': 'yes', 'socket': '/run/redis.sock'}, 'tls: cannot be combined with socket'),
    ({'tls': 'yes', 'tls_cert': '/etc/cert.pem'}, 'tls_key'),
    ({'tls': 'yes', 'tls_versions': '1.1'}, 'tls_versions'),
])
def test_wrong_keys(leat, base_config, keys, words):
    """Settings that contradict each other are errors."""
    base_config['redis'] = keys
    done = leat('status')
    assert done.returncode == 78 and words in done.stderr


@pytest.mark.parametrize('clients, versions', [('no', '1.2 1.3'), ('no', '1.2'), ('yes', '1.3')])
def test_right_certificate(built_in, daemon, leat, queue, authority, spoken, clients, versions):
    """Tasks, blocking reads, payloads of several records and live output work, also if Redis requires a
    certificate of this host."""
    own = dict(zip(('tls_cert', 'tls_key'), authority.sign('client'))) if clients == 'yes' else {}
    spoken(clients, tls_versions=versions, **own)
    daemon().wait_ready()
    for _ in range(2):
        assert leat('enqueue', 'true').returncode == 0
    size = 300_000
    done = leat('run', '--payload', '-', 'wc -c; head -c 100000 /dev/zero | tr "\\0" x', input='x' * size)
    assert done.returncode == 0 and done.stdout == f'{size}\n' + 'x' * 100_000
    wait_succeeded(queue, 3)
    assert leat('status').returncode == 0


@pytest.mark.parametrize('wrong, words', [
    ('authority', 'certificate is refused: self-signed certificate in certificate chain; set tls_ca to the '
     'authority that issued it'),
    ('name', 'certificate is refused: hostname mismatch; set host or tls_server_name to a name in it'),
    ('address', 'certificate is refused: IP address mismatch; set host or tls_server_name to a name in it'),
    ('file', 'TLS: cannot read [redis] tls_ca /nonexistent: No such file or directory'),
])
def test_wrong_server(built_in, daemon, leat, folder, queue, client, spoken, wrong, words):
    """A server with a certificate of another authority, or for another name, is refused; leatd and leat say
    why. leatd keeps trying."""
    spoken(**{'authority': {'tls_ca': Authority(folder, 'wrong').path},
              'name': {'tls_server_name': 'redis.example.org'},
              'address': {'host': '127.0.0.1'}, 'file': {'tls_ca': '/nonexistent'}}[wrong])
    keys = client.dbsize()
    worker = daemon()
    worker.wait_log(words)
    done = leat('enqueue', 'true')
    assert done.returncode == 69 and words in done.stderr
    assert worker.running() and 'registered' not in worker.log() and client.dbsize() == keys


def test_plain_port(built_in, daemon, leat, authority, redis_server, base_config):
    """On a port without TLS, leatd and leat say that the server does not speak it."""
    base_config['redis'] = {'host': '127.0.0.1', 'port': redis_server.listen(), 'tls': 'yes',
                            'tls_ca': authority.path}
    words = 'TLS: the server does not speak TLS on this port'
    daemon().wait_log(words)
    done = leat('enqueue', 'true')
    assert done.returncode == 69 and words in done.stderr and '(null)' not in done.stderr


def test_key_with_a_passphrase(built_in, daemon, leat, authority, queue, client, spoken):
    """leat never asks for the passphrase of a key: the key is refused, and stdin stays the task's."""
    certificate, key = authority.sign('client')
    locked = authority.lock(key)
    spoken('yes', tls_cert=certificate, tls_key=locked)
    done = leat('enqueue', '--file', '-', input='secret\n')
    words = f'TLS: cannot read [redis] tls_key {locked}: it has a passphrase'
    assert done.returncode == 69 and words in done.stderr
    assert 'pass phrase' not in done.stdout + done.stderr and client.xlen('emails') == 0
    daemon().wait_log(words)


def test_key_of_another_certificate(built_in, leat, authority, queue, spoken):
    """A key that does not belong to the certificate is named as such."""
    spoken('yes', tls_cert=authority.sign('client')[0], tls_key=authority.sign('another')[1])
    done = leat('enqueue', 'true')
    assert done.returncode == 69 and ': it is not the key of tls_cert' in done.stderr


def test_files_that_the_test_cannot_read(built_in, authority, folder, queue, spoken, base_config):
    """leatd -t warns of each file for TLS that cannot be read, but not of a credential, which only the service can
    read."""
    certificate, _ = authority.sign('client')
    spoken(tls_cert=certificate, tls_key='/nonexistent')
    path = write_config(folder / 'tls.ini', base_config)
    done = subprocess.run([program('leatd'), '-t', '-c', path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert f'{path}: tls_key: cannot read /nonexistent: No such file or directory' in done.stderr
    assert 'tls_cert' not in done.stderr and 'tls_ca' not in done.stderr
    base_config['redis']['tls_key'] = '/run/credentials/leatd@emails.service/key'
    write_config(path, base_config)
    done = subprocess.run([program('leatd'), '-t', '-c', path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and 'tls_key' not in done.stderr


def test_without_a_certificate_of_this_host(built_in, daemon, leat, redis_server, queue, spoken):
    """If Redis requires a certificate and there is none, no task runs; Redis's log says why."""
    spoken('yes')
    worker = daemon()
    worker.wait_log('no session with Redis')
    assert leat('enqueue', 'true').returncode == 69
    assert 'peer did not return a certificate' in redis_server.log()
    assert worker.running() and 'registered' not in worker.log()


def refuse(listener, context):
    """A server of which a client always reads the alert: it keeps the connection until the client closes it."""
    def talk(connection):
        with context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False) as session:
            with pytest.raises(ssl.SSLError):
                session.do_handshake()
            while os.read(session.fileno(), 65536):
                pass

    with contextlib.suppress(OSError):
        while True:
            threading.Thread(target=talk, args=[listener.accept()[0]], daemon=True).start()


@pytest.mark.parametrize('own, words', [(None, 'alert certificate required'), ('wrong', 'alert unknown ca')])
def test_refused_by_the_server(built_in, daemon, folder, queue, authority, base_config, own, words):
    """If a server says that it does not accept the certificate of this host, leatd says whose it is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.sign('server'))
    context.load_verify_locations(authority.path)
    context.verify_mode = ssl.CERT_REQUIRED
    keys = dict(zip(('tls_cert', 'tls_key'), Authority(folder, own).sign('client'))) if own else {}
    with socket.create_server(('127.0.0.1', 0)) as listener:
        threading.Thread(target=refuse, args=[listener, context], daemon=True).start()
        base_config['redis'] = {'host': NAME, 'port': listener.getsockname()[1], 'tls': 'yes',
                                'tls_ca': authority.path, **keys}
        worker = daemon()
        worker.wait_log("TLS: the server does not accept this host's certificate: ")
        assert f'{words}; set tls_cert and tls_key' in worker.log()


def test_outage(built_in, daemon, redis_server, queue, client, spoken):
    """Broken connections are opened again."""
    spoken()
    worker = daemon().wait_ready()
    for count in (2, 3):
        client.execute_command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
        wait_until(lambda: worker.log().count('registered with Redis') >= count)
    queue.add({'command': 'true'})
    wait_succeeded(queue, 1)


# ---- several servers: each is reached by its address, and all certificates are for one name

@pytest.fixture
def several(folder, authority, base_config):
    """A function that starts one replicated.Watched or Cluster in which everyone speaks TLS."""
    made = []

    def start(kind, **options):
        tls = server_options(authority, *authority.sign('server'))
        made.append(kind(folder / 'several', tls=tls, **options))
        base_config['redis'] = {**made[0].sections()['redis'], 'connect_timeout': '2s', 'tls': 'yes',
                                'tls_ca': authority.path, 'tls_server_name': NAME}
        del base_config['redis']['socket']
        return made[0]

    (folder / 'several').mkdir()
    yield start
    for one in made:
        one.close()


def test_sentinels(built_in, daemon, leat, several):
    """Sentinels and servers are asked over TLS, and a failover is followed. Without the name that the certificates
    are for nobody is believed."""
    watched = several(replicated.Watched, replicas=1, sentinels=3)
    daemon().wait_ready().wait_log('registered with Redis')
    assert leat('enqueue', 'true').returncode == 0
    old = watched.master
    for server in watched.servers:  # what the replica does not have may be lost
        wait_succeeded(Queue(server.client()), 1)
    old.kill()
    new = watched.wait_failover(old)
    assert leat('enqueue', 'true').returncode == 0
    wait_succeeded(Queue(new.client()), 2)
    refused = leat('enqueue', 'true', config={'redis': {'tls_server_name': 'redis.example.org'}})
    assert refused.returncode == 69 and 'hostname mismatch' in refused.stderr


def test_cluster(built_in, daemon, leat, several):
    """Nodes are asked over TLS for the ports on which they speak it, and a slot that moves is followed."""
    cluster = several(replicated.Cluster, masters=3, replicas=0)
    slot = cluster.slot('emails')
    home = cluster.masters[slot * len(cluster.masters) // replicated.SLOTS]
    away = next(node for node in cluster.masters if node is not home)
    worker = daemon(cluster.sections([away])).wait_log('registered with Redis')
    assert leat('enqueue', 'true').returncode == 0
    wait_succeeded(Queue(home.client()), 1)
    cluster.begin_move(slot, home, away)
    cluster.end_move(slot, home, away)
    wait_until(lambda: worker.log().count('registered with Redis') == 2)
    assert leat('enqueue', 'true', config=cluster.sections([home])).returncode == 0
    wait_succeeded(Queue(away.client()), 2)
    refused = leat('enqueue', 'true', config={'redis': {'tls_server_name': 'redis.example.org'}})
    assert refused.returncode == 69 and 'hostname mismatch' in refused.stderr
