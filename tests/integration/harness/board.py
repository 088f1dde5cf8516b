"""The real leat-board, and requests to it byte by byte."""
import json
import os
import re
import socket
import subprocess
from urllib.parse import quote, urlencode

from . import processes
from .daemon import program, write_config
from .polling import PATIENCE_S, wait_until


class Answer:
    """An answer that was read until the board closed the connection, or until it was whole."""

    def __init__(self, data):
        head, _, self.body = data.partition(b'\r\n\r\n')
        first, *lines = head.decode('latin-1').split('\r\n')
        self.data = data
        self.status = int(first.split()[1]) if first.startswith('HTTP/') else None
        pairs = [line.split(': ', 1) for line in lines if ': ' in line]
        self.headers = {name.lower(): value for name, value in pairs}

    def json(self):
        assert self.status == 200, self.data
        return json.loads(self.body)


class Board:
    """A leat-board that runs for the queues of its own folder in place of /etc/leat."""

    def __init__(self, folder, argv=()):
        self.folder = folder / 'board'
        self.folder.mkdir()
        self.etc = self.folder / 'etc'
        self.etc.mkdir()
        self.token_file = self.folder / 'token'
        self.log_path = self.folder / 'log'
        self.argv = list(argv)
        self.process = None

    def add(self, name, redis, **queue):
        write_config(self.etc / f'{name}.ini', {'redis': redis, 'queue': {'name': name, **queue}})
        return self

    def command(self, *argv):
        env = {name: value for name, value in os.environ.items() if not name.startswith('LEAT_')}
        return ([program('leat-board'), '--token-file', str(self.token_file), *map(str, argv)],
                {**env, 'LEAT_CONFIG_DIR': str(self.etc)})

    def run(self, *argv):
        words, env = self.command(*argv)
        return subprocess.run(words, env=env, capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False)

    def start(self):
        words, env = self.command('--listen', '127.0.0.1:0', *self.argv)
        with open(self.log_path, 'ab') as log:
            self.process = processes.start(words, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: 'showing' in self.log() or self.process.poll() is not None, message=self.log)
        assert self.process.poll() is None, self.log()
        return self

    def log(self):
        return self.log_path.read_text()

    @property
    def url(self):
        """The address that the log says to open."""
        return re.search(r'showing \d+ queues? at (\S+)', self.log()).group(1)

    @property
    def token(self):
        return self.token_file.read_text().strip()

    @property
    def port(self):
        return int(re.search(r':(\d+)/', self.url)[1])

    def connect(self):
        where = self.url
        if where.startswith('unix:'):
            one = socket.socket(socket.AF_UNIX)
            one.settimeout(4 * PATIENCE_S)
            one.connect(where[5:])
            return one
        return socket.create_connection(('127.0.0.1', self.port), 4 * PATIENCE_S)

    def send(self, data):
        """Sends these bytes, and reads until the board closes the connection."""
        with self.connect() as one:
            try:
                one.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused before all was sent
            got = b''
            while True:
                try:
                    piece = one.recv(65536)
                except ConnectionResetError:
                    break
                if not piece:
                    break
                got += piece
        return Answer(got)

    def request(self, path, method='GET', host='localhost', token=None, headers=()):
        lines = [f'{method} {path} HTTP/1.1', f'Host: {host}', 'Connection: close', *headers]
        if token is not False:
            lines.append(f'Authorization: Bearer {token or self.token}')
        return self.send('\r\n'.join([*lines, '', '']).encode())

    def get(self, what, **parameters):
        """The JSON of /api/WHAT; asks again while there are too many questions."""
        def answered():
            answer = self.request(f'/api/{what}?{urlencode(parameters, quote_via=quote)}')
            return answer if answer.status != 429 else None
        return wait_until(answered).json()

    def close(self):
        if self.process:
            processes.end(self.process)
