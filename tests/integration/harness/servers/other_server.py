"""Another kind of server in front of a real one: it changes INFO and does not know some commands."""
import socket
import threading

from .proxy import command_words, value_end

CHUNK = 65536


class OtherServer:
    """info is the answer to INFO; unknown has names of commands that are refused as Redis 6 does."""

    def __init__(self, path, upstream, info, unknown=(), errors=()):
        self.path, self._upstream = path and str(path), upstream
        self._info, self._errors = info.replace('\n', '\r\n').encode(), dict(errors)
        for name in unknown:
            self._errors[name] = f'ERR unknown command `{name}`, with args beginning with: '
        self._sockets = []
        self._listener = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self._listener.bind(self.path or ('127.0.0.1', 0))
        self.port = None if path else self._listener.getsockname()[1]
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        try:
            while True:
                client = self._listener.accept()[0]
                server = socket.socket(socket.AF_UNIX)
                self._sockets += [client, server]
                server.connect(self._upstream)
                threading.Thread(target=self._serve, args=(client, server), daemon=True).start()
        except OSError:
            pass  # closed

    def _serve(self, client, server):
        buffers = {client: b'', server: b''}

        def receive(one):
            while (end := value_end(buffers[one]) if buffers[one] else -1) < 0:
                data = one.recv(CHUNK)
                if not data:
                    raise ConnectionError
                buffers[one] += data
            value, buffers[one] = buffers[one][:end], buffers[one][end:]
            return value

        try:
            while True:
                command = receive(client)
                name = command_words(command)[0].upper()
                if name == 'INFO':
                    client.sendall(b'$%d\r\n%s\r\n' % (len(self._info), self._info))
                elif name in self._errors:
                    client.sendall(f'-{self._errors[name]}\r\n'.encode())
                else:
                    server.sendall(command)
                    client.sendall(receive(server))
        except OSError:
            client.close()
            server.close()

    def close(self):
        for one in [self._listener, *self._sockets]:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()
