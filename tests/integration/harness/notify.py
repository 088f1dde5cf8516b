"""The service manager's end of sd_notify: a datagram socket."""
import contextlib
import os
import select
import socket
import struct
import threading

from .polling import PATIENCE_S, wait_until


class NotifySocket:
    """messages has all messages so far: [{NAME: value}]; senders the process ids of those who sent them. A thread
    reads them: the kernel keeps only some for a reader, and then leatd waits until one is read."""

    def __init__(self, path):
        self.path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind(self.path)
        os.chmod(self.path, 0o777)
        self.messages, self.senders = [], []
        self._lock, self._ended = threading.Lock(), os.eventfd(0)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        while self._ended not in select.select([self._socket, self._ended], [], [])[0]:
            self.poll()

    def environment(self, watchdog_usec=None):
        extra = {'WATCHDOG_USEC': str(watchdog_usec)} if watchdog_usec else {}
        return {'NOTIFY_SOCKET': self.path, **extra}

    def poll(self):
        with self._lock:
            while True:
                try:
                    data, credentials, _, _ = self._socket.recvmsg(65536, socket.CMSG_SPACE(struct.calcsize('3i')))
                except BlockingIOError:
                    return self.messages
                lines = data.decode().splitlines()
                self.senders.append(struct.unpack('3i', credentials[0][2])[0])
                self.messages.append(dict(line.split('=', 1) for line in lines))

    def having(self, name):
        """The values of a variable, in order."""
        return [message[name] for message in self.poll() if name in message]

    def wait(self, name, count=1, timeout=PATIENCE_S):
        wait_until(lambda: len(self.having(name)) >= count, timeout,
                   lambda: f'{count} times {name}: {self.messages}')
        return self.having(name)

    @contextlib.contextmanager
    def busy(self):
        """Meanwhile nothing is read, and another program has sent as much as the kernel keeps."""
        with self._lock, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as other:
            with contextlib.suppress(BlockingIOError):
                while True:
                    other.sendto(b'OTHER=1', self.path)
            yield

    def close(self):
        os.eventfd_write(self._ended, 1)
        self._thread.join()
        os.close(self._ended)
        self._socket.close()
