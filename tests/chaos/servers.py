"""The redis-servers of a run: the master, and if wanted a replica that can take its place."""
import contextlib
import os
import time
from pathlib import Path

from harness.polling import wait_until
from harness.servers.server import RedisServer

PORT = 7001
DISK = '2g'
AOF = '400mb'  # a rewrite needs room beside it, and large tasks that lose their leases are written again and again
PAUSE_MS = 3000
CAUGHT_UP_S = 2.0


class Servers:
    """Clients connect to a link to the current master's socket."""

    def __init__(self, folder, host=None, replica=False, disk=False):
        """host: where they run; a replica and a small disk need one."""
        self._host, self._folder = host, folder
        self.socket = str(folder / 'redis.sock')
        self._clients, self.disks, self.forgets = [], {}, 0
        self._servers = [self._make(n, replica, disk) for n in range(2 if replica else 1)]
        self.master, self.replica = self._servers[0], None
        self._point()
        self.master.start()
        if replica:
            self.replica = self._servers[1]
            self.replica.start(replicaof=['127.0.0.1', PORT])

    def _make(self, n, replica, disk):
        folder = self._folder / f'redis-{n}'
        (folder / 'data').mkdir(parents=True)
        options = {'appendonly': 'yes', 'appendfsync': 'everysec', 'dir': folder / 'data',
                   # below this the AOF only grows: see remember()
                   'auto_aof_rewrite_percentage': 100, 'auto_aof_rewrite_min_size': AOF}
        if replica:
            # in a network of their own, where no other process can have this port
            options.update(port=PORT + n, bind='127.0.0.1', repl_diskless_sync_delay=0)
        server = RedisServer(folder, **options)
        server.prefix = self._host.prefix(mounts=True) if self._host else []
        if disk:
            self.disks[server] = str(folder / 'data')
            self._host.mount(self.disks[server], DISK)
        return server

    def _point(self):
        new = self.socket + '.new'
        os.symlink(self.master.socket, new)
        os.replace(new, self.socket)

    def client(self, **options):
        client = self.master.client(path=self.socket, **options)
        self._clients.append(client)
        return client

    def pids(self):
        return {server.pid for server in self._servers if server.process}

    # ---- faults of the master

    def kill(self):
        """Everything answered is in the AOF: otherwise, during an fsync, Redis answers before it writes."""
        with contextlib.closing(self.master.client()) as client:
            client.config_set('appendfsync', 'always')
            client.ping()
        self.master.kill()

    def stop(self):
        self.master.stop()

    def cont(self):
        self.master.cont()

    def restart(self):
        self.master.restart()

    def _appended(self):
        """The master's AOF: its files and their sizes."""
        folder = self.master.options['dir'] / 'appendonlydir'
        if self.master in self.disks:
            folder = Path(f'/proc/{self._host.pid}/root{folder}')
        return {path: path.stat().st_size for path in folder.iterdir()}

    def remember(self):
        """A snapshot of what the master knows now, or a little later. Its AOF only grows until it is rewritten, so
        the sizes are enough. During an fsync, Redis answers before it writes."""
        client = self.master.client()
        with contextlib.closing(client):
            wait_until(lambda: client.info('persistence')['aof_buffer_length'] == 0,
                       message='Redis has written its AOF')
        return self._appended()

    def forget(self, remembered):
        """Kills the master, and starts it with what it knew then. Returns False if it has rewritten its AOF
        since: then it forgets nothing."""
        self.master.kill()
        same = set(self._appended()) == set(remembered)
        for path, size in remembered.items() if same else ():
            os.truncate(path, size)
        self.forgets += same
        self.restart()
        return same

    def fill_disk(self):
        self._host.fill(self.disks[self.master])

    def free_disk(self):
        """Frees the disk, and Redis writes what it could not. Redis 7.0 continues after the half of a write,
        and could not read its AOF: it must rewrite the AOF before it may be killed."""
        self._host.resize(self.disks[self.master], DISK)
        client = self.master.client()

        def says(**values):
            known = client.info('persistence')
            return all(known[name] == value for name, value in values.items())

        wait_until(lambda: says(aof_last_write_status='ok', aof_rewrite_in_progress=0),
                   message='Redis writes its AOF again')
        client.execute_command('BGREWRITEAOF')
        # during an fsync it answers and writes later, so that a kill would lose answered writes
        wait_until(lambda: says(aof_rewrite_scheduled=0, aof_rewrite_in_progress=0, aof_pending_bio_fsync=0,
                                aof_last_bgrewrite_status='ok'), message='Redis has rewritten its AOF')
        client.close()

    # ---- failover by hand, without loss: every enqueued task must survive

    def promote(self, kill):
        """The replica, which has all data of the master, becomes master; the old one is killed, or becomes
        its replica. Returns False if the replica lags behind."""
        old, new = self.master.client(), self.replica.client()
        try:
            old.execute_command('CLIENT', 'PAUSE', PAUSE_MS, 'WRITE')
            if not self._catches_up(old, new):
                old.execute_command('CLIENT', 'UNPAUSE')
                return False
            if kill:
                self.master.kill()
            new.execute_command('REPLICAOF', 'NO', 'ONE')
            self._swap()
            if not kill:
                old.execute_command('REPLICAOF', *self.replica.options['replicaof'])
                old.execute_command('CLIENT', 'UNPAUSE')
        finally:
            old.close()
            new.close()
        return True

    def _swap(self):
        self.master, self.replica = self.replica, self.master
        self.master.options.pop('replicaof', None)
        self.replica.options['replicaof'] = ['127.0.0.1', self.master.options['port']]

    # ---- failover that loses what the replica did not have

    def detach(self):
        """The replica gets nothing from now on. Returns False if it lags behind."""
        old, new = self.master.client(), self.replica.client()
        try:
            old.execute_command('CLIENT', 'PAUSE', PAUSE_MS, 'WRITE')
            caught_up = self._catches_up(old, new)
            if caught_up:
                new.execute_command('REPLICAOF', 'NO', 'ONE')
            old.execute_command('CLIENT', 'UNPAUSE')
            return caught_up
        finally:
            old.close()
            new.close()

    def replace(self):
        """The master is killed, and the detached replica takes its place."""
        self.master.kill()
        self._swap()
        self.forgets += 1

    @staticmethod
    def _catches_up(old, new):
        until = time.monotonic() + CAUGHT_UP_S
        while time.monotonic() < until:
            theirs = new.info()
            # after a full synchronization it writes a new AOF, and has only the old one until that is done
            written = not theirs['aof_rewrite_in_progress'] and not theirs['aof_rewrite_scheduled']
            if written and theirs.get('master_link_status') == 'up' and (
                    theirs['slave_repl_offset'] == old.info('replication')['master_repl_offset']):
                return True
        return False

    def follow(self):
        """Clients find the new master."""
        self._point()
        for client in self._clients:
            client.connection_pool.disconnect()

    def revive(self):
        """The old master, which was killed, becomes a replica."""
        self.replica.restart()

    def close(self):
        for server in self._servers:
            server.close()
