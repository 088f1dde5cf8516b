"""A journal for one daemon: the socket is the test's, and systemd's own program makes journal files of the
records that arrive."""
import os
import select
import shutil
import socket
import subprocess
import threading
import time

from . import processes
from .daemon import program
from .polling import wait_until

REMOTE = '/lib/systemd/systemd-journal-remote'
LARGEST = 4 << 20


class NotHere(Exception):
    """This machine offers no journal, for the given reason."""


def entry(record, now_us, host='here', **sender):
    """A datagram of the journal's protocol as an entry of its export format, which has the same fields. sender:
    what journald knows of the program that sent it, such as _EXE; by default, leatd as root."""
    head = f'__REALTIME_TIMESTAMP={now_us}\n__MONOTONIC_TIMESTAMP={time.monotonic_ns() // 1000}\n'
    head += f'_BOOT_ID=e6f6a0e0c2d1441ca1d7a1d2a5d5b5c1\n_HOSTNAME={host}\n_TRANSPORT=journal\n'
    sender = {'_EXE': os.path.realpath(program('leatd')), '_UID': '0', **sender}
    head += ''.join(f'{name}={value}\n' for name, value in sender.items())
    return head.encode() + record + b'\n'


class Journal:
    """path is a folder of journal files; prefix starts a program with this journal."""

    def __init__(self, folder):
        if not os.path.exists(REMOTE) or not shutil.which('unshare'):
            raise NotHere('systemd-journal-remote and unshare are needed')
        place = folder / 'journal'
        self.path = place / 'files'
        self.path.mkdir(parents=True)
        sockets = place / 'sockets'
        sockets.mkdir()
        self.prefix = ['unshare', '--mount', '--propagation', 'private', 'sh', '-ec',
                       'mount -t tmpfs tmpfs /run; mkdir -p /run/systemd/journal; '
                       f'mount --bind {sockets} /run/systemd/journal; exec "$@"', 'sh']
        if subprocess.run(self.prefix + ['true'], capture_output=True, check=False).returncode != 0:
            raise NotHere('this machine does not let us mount')
        self.config = {'log': {'target': 'journal'}}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(sockets / 'socket'))
        (sockets / 'socket').chmod(0o777)
        self._remote = processes.start([REMOTE, '-o', str(self.path / 'test.journal'), '-'],
                                       stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        self.goes_on = threading.Event()  # while it is clear, records of programs wait
        self.goes_on.set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while True:
            record = self._socket.recv(LARGEST)
            self.goes_on.wait()
            if not record:
                return
            self.add(record)

    def is_read(self):
        """Whether no record of a program waits."""
        return not select.select([self._socket], [], [], 0)[0]

    def add(self, record, at_us=None, **options):
        """Adds a record: bytes in the form of the journal's protocol."""
        self._remote.stdin.write(entry(record, at_us or time.time_ns() // 1000, **options))
        self._remote.stdin.flush()

    def read(self, *matches):
        """[{field: bytes}] as journalctl reads them, oldest first."""
        done = subprocess.run(['journalctl', '-D', str(self.path), '-o', 'export', '--all', '-q', *matches],
                              capture_output=True, check=False)
        return list(parse(done.stdout))

    def run(self, *argv):
        """Runs a program that takes this journal for its host's."""
        mount = ['unshare', '--mount', '--propagation', 'private', 'sh', '-ec',
                 'read id < /etc/machine-id; mount -t tmpfs tmpfs /run; mkdir -p "/run/log/journal/$id"; '
                 f'mount --bind {self.path} "/run/log/journal/$id"; exec "$@"', 'sh']
        return subprocess.run([*mount, *map(str, argv)], capture_output=True, text=True, check=False)

    def wait(self, *matches, count=1):
        def there():
            found = self.read(*matches)
            return found if len(found) >= count else None
        return wait_until(there, message=lambda: f'{count} records of {matches}: {self.read()[-20:]}')

    def close(self):
        self.goes_on.set()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b'', self._socket.getsockname())
        self._thread.join()
        processes.end(self._remote)
        self._socket.close()


def parse(text):
    """The entries of an export."""
    fields, at = {}, 0
    while at < len(text):
        end = text.index(b'\n', at)
        line = text[at:end]
        if not line:
            if fields:
                yield fields
            fields, at = {}, end + 1
        elif b'=' in line:
            name, value = line.split(b'=', 1)
            fields[name.decode()] = value
            at = end + 1
        else:
            size = int.from_bytes(text[end + 1:end + 9], 'little')
            fields[line.decode()] = text[end + 9:end + 9 + size]
            at = end + 9 + size + 1
    if fields:
        yield fields
