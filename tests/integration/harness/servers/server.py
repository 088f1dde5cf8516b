"""A private redis-server on a unix socket."""
import os
import signal
import socket
from subprocess import DEVNULL

import redis

from .. import processes
from ..polling import wait_until

# make check-servers sets another server here
PROGRAM = os.environ.get('LEAT_REDIS_SERVER', 'redis-server')

# on a busy machine, a call with a huge task may take longer than the 5 s after which Redis refuses others
DEFAULTS = {'port': 0, 'save': '', 'appendonly': 'no', 'loglevel': 'notice', 'busy-reply-threshold': 60000}

STREAM_COMMANDS = ('XRANGE', 'XREVRANGE', 'XREAD', 'XREADGROUP', 'XPENDING', 'XCLAIM')


class RedisServer:
    """Options are redis.conf's; '_' in a name stands for '-'."""

    def __init__(self, folder, **options):
        self.folder = folder
        self.socket = str(folder / 'redis.sock')
        self.log_path = folder / 'redis.log'
        self.options = dict(DEFAULTS, **options)
        self.prefix = []  # a program that executes it in an environment of the test's making
        self.process = None
        self.login = {}  # of the clients, if the default user may do nothing
        self.clients = []

    def start(self, wait=True, **options):
        """With wait=False it may not answer yet: see answers()."""
        self.options.update(options)
        self.process = processes.start([*self.prefix, *self.argv()], stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
        if wait:
            wait_until(self.answers, message=lambda: 'redis-server answers; its log:\n' + self.log())
        return self

    def argv(self):
        argv = [PROGRAM, '--dir', str(self.folder), '--unixsocket', self.socket,
                '--logfile', str(self.log_path)]
        for name, value in self.options.items():
            argv += ['--' + name.replace('_', '-')]
            argv += [str(part) for part in (value if isinstance(value, list) else [value])]
        return argv

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError('redis-server ended:\n' + self.log())
        client = redis.Redis(unix_socket_path=self.socket)
        try:
            return client.ping()
        except redis.exceptions.BusyLoadingError:
            return False
        except redis.exceptions.AuthenticationError:
            return True
        except redis.exceptions.ResponseError:
            return True
        except redis.exceptions.ConnectionError:
            return False
        finally:
            client.close()

    def listen(self):
        """Makes it listen on a free TCP port of 127.0.0.1, and returns the port."""
        def listens():
            with socket.socket() as probe:
                probe.bind(('127.0.0.1', 0))
                port = probe.getsockname()[1]
            try:
                self.client().config_set('port', port)
            except redis.exceptions.ResponseError:
                return None  # another process took the port first
            return port

        return wait_until(listens)

    def client(self, path=None, **options):
        """A redis-py client with connections of its own. Replies are bytes; those of stream commands are as
        Redis sends them, because redis-py would make dicts of fields, lose repeated names, and fail at the
        long form of XPENDING. path: another socket that leads here."""
        client = redis.Redis(unix_socket_path=path or self.socket, **{**self.login, **options})
        for name in STREAM_COMMANDS:
            client.response_callbacks.pop(name, None)
        self.clients.append(client)
        return client

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        return self.log_path.read_text(errors='replace') if self.log_path.exists() else ''

    def kill(self):
        """Ends it as a crash does, without saving."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Stops it: connections stay, and nothing answers until cont()."""
        self.process.send_signal(signal.SIGSTOP)

    def cont(self):
        self.process.send_signal(signal.SIGCONT)

    def restart(self, **options):
        """Ends the server in any state, and starts it on the same files."""
        self.close()
        return self.start(**options)

    def close(self):
        for client in self.clients:
            client.close()
            client.connection_pool.disconnect()
        if self.process:
            processes.end(self.process)
            self.process = None
