"""Servers that replace each other: a master with replicas under sentinels, and a Cluster. They need TCP among
themselves, on loopback ports below those that the kernel assigns."""
import contextlib
import random
import socket
import time

import redis

from .. import processes
from ..polling import PATIENCE_S, wait_until
from .server import PROGRAM, RedisServer

NAME = 'mymaster'
DOWN_AFTER_MS = 1500
NODE_TIMEOUT_MS = 2000
FIRST_PORT, LAST_PORT = 10000, 31999
SLOTS = 16384
CLAIMS = []  # of ports, until this process ends


def claim_port():
    """A port that no test running beside this one takes, also while its server is dead: a socket without a file
    is the claim."""
    while True:
        port = random.randint(FIRST_PORT, LAST_PORT)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f'\0leat-test-port-{port}')
        except OSError:
            claim.close()
            continue
        CLAIMS.append(claim)
        return port


def start_on_free_port(make):
    """make(port) returns a server that has not started. A server whose port is taken exits at once."""
    for _ in range(50):
        server = make(claim_port())
        try:
            server.start()
        except AssertionError:
            server.close()
            server.log_path.unlink(missing_ok=True)
            continue
        return server
    raise AssertionError('no free port')


@contextlib.contextmanager
def measured():
    """A function that returns how long the block took, in seconds."""
    begun, ended = time.monotonic(), []
    yield lambda: ended[0] - begun
    ended.append(time.monotonic())


def listening(port, tls):
    """The options of a server on this port."""
    return {'port': 0, 'tls_port': port, **tls} if tls else {'port': port}


class Server(RedisServer):
    """A server that also listens on TCP, or on TLS with the options `tls`; it may be killed and stopped."""

    def __init__(self, folder, port, tls=None, **options):
        folder.mkdir(exist_ok=True)
        super().__init__(folder, **dict(
            {**listening(port, tls), 'bind': '127.0.0.1', 'repl_diskless_sync_delay': 0,
             'repl_ping_replica_period': 1}, **options))
        self.port = port
        self._asked = None

    @property
    def address(self):
        return f'127.0.0.1:{self.port}'

    def ask(self, *words):
        """The answer as Redis sends it."""
        self._asked = self._asked or self.client(socket_timeout=PATIENCE_S)
        self._asked.response_callbacks.clear()
        try:
            return self._asked.execute_command(*words)
        except redis.exceptions.ConnectionError:  # cut by a sentinel, or by an earlier end
            return self._asked.execute_command(*words)

    def running(self):
        """Neither killed nor stopped."""
        if not self.process or self.process.poll() is not None:
            return False
        with open(f'/proc/{self.pid}/stat', 'rb') as file:
            return file.read().rsplit(b')', 1)[1].split()[0] != b'T'

    def stop(self):
        super().stop()
        wait_until(lambda: not self.running())

    def is_master(self):
        return self.running() and self.ask('ROLE')[0] == b'master'

    def is_linked(self, master):
        """Whether it is in step with that master."""
        role = self.ask('ROLE')
        return role[0] == b'slave' and int(role[2]) == master.port and role[3] == b'connected'

    def revive(self):
        """Continues, or restarts with the data that it has kept."""
        if self.process.poll() is None:
            self.cont()
        else:
            processes.end(self.process)
            self.start()


class Sentinel(Server):
    def __init__(self, folder, port, master, quorum, *lines, tls=None):
        super().__init__(folder, port)
        self.path = folder / 'sentinel.conf'
        self.path.write_text('\n'.join([
            *(f"{name.replace('_', '-')} {value}" for name, value in listening(port, tls).items()),
            'bind 127.0.0.1', f'dir {folder}', f'unixsocket {self.socket}',
            f'logfile {self.log_path}', f'sentinel monitor {NAME} 127.0.0.1 {master.port} {quorum}',
            f'sentinel down-after-milliseconds {NAME} {DOWN_AFTER_MS}',
            f'sentinel failover-timeout {NAME} 1000', *lines, '']))

    def argv(self):
        return [PROGRAM, str(self.path), '--sentinel']

    def hurry(self):
        """Makes it find the others, and changes, faster than by default. After a stall of the machine it is out of
        order (tilt) for one second only."""
        self.ask('SENTINEL', 'DEBUG', 'INFO-PERIOD', 500, 'PUBLISH-PERIOD', 200, 'PING-PERIOD', 100,
                 'TILT-PERIOD', 1000)

    def port_of_master(self):
        return int(self.ask('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)[1])

    def record(self):
        flat = [part.decode() for part in self.ask('SENTINEL', 'MASTER', NAME)]
        return dict(zip(flat[::2], flat[1::2]))


def start_server(folder, **options):
    return start_on_free_port(lambda port: Server(folder, port, **options))


def start_sentinel(folder, master, quorum, *lines, tls=None):
    return start_on_free_port(lambda port: Sentinel(folder, port, master, quorum, *lines, tls=tls))


def sentinel_sections(sentinels, **more):
    """The sections of a configuration for them."""
    addresses = ', '.join(sentinel.address for sentinel in sentinels)
    return {'redis': dict({'socket': None, 'sentinels': addresses, 'master': NAME}, **more)}


class Watched:
    """A master, its replicas, and the sentinels that watch them."""

    def __init__(self, folder, replicas=2, sentinels=3, tls=None, **options):
        self.servers = [start_server(folder / f's{i}', tls=tls, **options) for i in range(replicas + 1)]
        first = self.servers[0]
        for server in self.servers[1:]:
            server.ask('REPLICAOF', '127.0.0.1', first.port)
        self.sentinels = [start_sentinel(folder / f'w{i}', first, sentinels // 2 + 1, tls=tls)
                          for i in range(sentinels)]
        for sentinel in self.sentinels:
            sentinel.hurry()
        self.wait_whole()

    def sections(self):
        return sentinel_sections(self.sentinels)

    def records(self):
        return [sentinel.record() for sentinel in self.sentinels]

    def is_whole(self):
        """Whether all know each other, all are up, and the replicas are in step."""
        master = self.master
        others = [server for server in self.servers if server is not master]
        return all(int(record['num-other-sentinels']) == len(self.sentinels) - 1 and
                   int(record['num-slaves']) == len(others) and record['flags'] == 'master'
                   for record in self.records()) and all(one.is_linked(master) for one in others) and \
            all(b'down' not in flags for sentinel in self.sentinels for flags in self._flags(sentinel))

    @staticmethod
    def _flags(sentinel):
        for flat in sentinel.ask('SENTINEL', 'REPLICAS', NAME) + sentinel.ask('SENTINEL', 'SENTINELS', NAME):
            yield flat[flat.index(b'flags') + 1]

    def wait_whole(self):
        wait_until(self.is_whole, message=lambda: f'all are in step: {self.records()}')

    @property
    def master(self):
        """The master with the newest state of all sentinels."""
        newest = max(self.sentinels, key=lambda sentinel: int(sentinel.record()['config-epoch']))
        port = newest.port_of_master()
        return next(server for server in self.servers if server.port == port)

    def wait_failover(self, old):
        """Waits until another server is the master, and returns it."""
        wait_until(lambda: self.master is not old and self.master.is_master(),
                   message=lambda: f'a failover: {self.records()}')
        return self.master

    def wait_agreed(self):
        """Waits until all sentinels name the same master. One that does not know of a failover makes the new
        master a replica of the old one when that answers again."""
        wait_until(lambda: len({sentinel.port_of_master() for sentinel in self.sentinels}) == 1,
                   message=lambda: f'all name one master: {self.records()}')

    def close(self):
        for server in [*self.sentinels, *self.servers]:
            server.close()


class Cluster:
    """Masters, some of them with a replica."""

    def __init__(self, folder, masters=3, replicas=3, **options):
        self.nodes = [self.start_node(folder / f'n{i}', options) for i in range(masters + replicas)]
        self.masters = self.nodes[:masters]
        for i, node in enumerate(self.masters):
            first, last = SLOTS * i // masters, SLOTS * (i + 1) // masters - 1
            node.ask('CLUSTER', 'ADDSLOTSRANGE', first, last)
            node.ask('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
        for node in self.nodes[1:]:
            first = self.nodes[0]
            node.ask('CLUSTER', 'MEET', '127.0.0.1', first.port, first.options['cluster_port'])
        wait_until(lambda: all(self._is_well(node) for node in self.nodes))
        for i, node in enumerate(self.nodes[masters:]):
            node.ask('CLUSTER', 'REPLICATE', self.id(self.masters[i]))
        self.wait_whole()

    @staticmethod
    def start_node(folder, options):
        # both ports are new for each try, because either may be taken
        return start_on_free_port(lambda port: Server(
            folder, port, cluster_enabled='yes', cluster_port=claim_port(),
            cluster_node_timeout=NODE_TIMEOUT_MS, cluster_replica_validity_factor=0, **options))

    @staticmethod
    def id(node):
        return node.ask('CLUSTER', 'MYID').decode()

    def _is_well(self, node):
        text = node.ask('CLUSTER', 'INFO').decode()
        return f'cluster_known_nodes:{len(self.nodes)}\r' in text and 'cluster_state:ok' in text

    def is_whole(self):
        roles = [node.ask('ROLE') for node in self.nodes]
        return all(role[0] == b'master' or role[3] == b'connected' for role in roles) and \
            sum(role[0] == b'master' for role in roles) == len(self.masters) and \
            all(self._is_well(node) for node in self.nodes) and \
            b'fail' not in self.nodes[0].ask('CLUSTER', 'NODES')

    def wait_whole(self):
        wait_until(self.is_whole,
                   message=lambda: 'all are well:\n' + self.nodes[0].ask('CLUSTER', 'NODES').decode())

    def slot(self, key):
        return self.nodes[0].ask('CLUSTER', 'KEYSLOT', key)

    def owner(self, slot):
        """The living node that knows itself as the hash slot's master, or None."""
        for node in self.nodes:
            for first, last, master, *_ in node.ask('CLUSTER', 'SLOTS') if node.running() else ():
                if first <= slot <= last and master[1] == node.port:
                    return node
        return None

    def wait_failover(self, slot, old):
        """Waits until another node has the hash slot, and returns it."""
        return wait_until(lambda: next((node for node in [self.owner(slot)] if node is not old), None))

    def begin_move(self, slot, source, target):
        """Begins to move the hash slot, with all its keys."""
        wait_until(lambda: self._is_well(source) and self._is_well(target))
        target.ask('CLUSTER', 'SETSLOT', slot, 'IMPORTING', self.id(source))
        source.ask('CLUSTER', 'SETSLOT', slot, 'MIGRATING', self.id(target))
        while keys := source.ask('CLUSTER', 'GETKEYSINSLOT', slot, 100):
            source.ask('MIGRATE', '127.0.0.1', target.port, '', 0, 5000, 'KEYS', *keys)

    def end_move(self, slot, source, target):
        for node in (target, source):
            node.ask('CLUSTER', 'SETSLOT', slot, 'NODE', self.id(target))

    def sections(self, nodes=None):
        addresses = ', '.join(node.address for node in nodes or self.nodes)
        return {'redis': {'socket': None, 'cluster': addresses}}

    def close(self):
        for node in self.nodes:
            node.close()
