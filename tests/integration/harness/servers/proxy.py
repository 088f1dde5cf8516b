"""A proxy in front of a server's unix socket that makes network faults, connection by connection.

It runs in its own thread and understands as much of RESP as it needs: where a command and a reply end, and
which reply belongs to which command.
"""
import asyncio
import re
import threading

from ..polling import PATIENCE_S

CHUNK = 2 ** 20


def value_end(data, at=0):
    """The end of the RESP value that begins at `at`, or -1 if it is incomplete."""
    line = data.find(b'\r\n', at)
    if line < 0:
        return -1
    kind, after = data[at:at + 1], line + 2
    if kind == b'$':
        size = int(data[at + 1:line])
        end = after + size + 2 if size >= 0 else after
        return end if end <= len(data) else -1
    if kind == b'*':
        for _ in range(max(int(data[at + 1:line]), 0)):
            after = value_end(data, after)
            if after < 0:
                return -1
    return after


def command_words(data):
    """The first two arguments of a command, as text."""
    parts = data.split(b'\r\n', 5)
    return [part.decode(errors='replace') for part in parts[2:5:2]]


class Trap:
    """Waits for one command and then cuts its connection, or holds it until it is released."""

    def __init__(self, proxy, name, when, action, holding):
        self.name, self.when, self.action = name.upper(), when, action
        self.holding = re.compile(holding)
        self.sprung = threading.Event()
        self._proxy = proxy
        self._open = asyncio.Event()

    def wait(self, timeout=PATIENCE_S):
        assert self.sprung.wait(timeout), f'no {self.name} within {timeout} s'
        return self

    def fits(self, command, when):
        return (self.when == when and self.name in map(str.upper, command_words(command))
                and self.holding.search(command))

    def release(self):
        self._proxy.run(self._open.set)


class Connection:
    """One client's connection, and its own connection to the server."""

    def __init__(self, proxy, reader, writer):
        self.proxy, self.reader, self.writer = proxy, reader, writer
        self.server_writer = None
        self.name = ''
        self.sent = []  # commands without a reply yet
        self.answered = []  # the beginnings of those whose reply was passed on
        self.tasks = []

    async def serve(self):
        try:
            server_reader, self.server_writer = await asyncio.open_unix_connection(
                self.proxy.target, limit=CHUNK)
        except OSError:
            self.cut()
            return
        self.tasks = [asyncio.ensure_future(self._guard(self._to_server, self.reader)),
                      asyncio.ensure_future(self._guard(self._to_client, server_reader))]
        await asyncio.wait(self.tasks)

    async def _guard(self, pump, reader):
        try:
            await pump(reader)
        except (OSError, asyncio.CancelledError):
            pass
        self.cut()

    def cut(self):
        for task in self.tasks:
            task.cancel()
        for writer in (self.writer, self.server_writer):
            if writer:
                writer.transport.abort()
        self.proxy.connections.discard(self)

    async def _to_server(self, reader):
        buffer = bytearray()  # values can be large, so what comes is appended in place
        while data := await reader.read(CHUNK):
            buffer += data
            while (end := value_end(buffer)) > 0:
                command = bytes(buffer[:end])
                del buffer[:end]
                words = command_words(command)
                if words[0].upper() == 'CLIENT' and words[1].upper() == 'SETNAME':
                    self.name = command.split(b'\r\n')[6].decode()
                await self.proxy.pass_on(self, command, 'before')
                await self.proxy.gate(self.proxy.to_server)
                self.sent.append(command)
                self.proxy.saw(self, command, None)
                self.server_writer.write(command)
                await self.server_writer.drain()

    async def _to_client(self, reader):
        buffer = bytearray()
        while data := await reader.read(CHUNK):
            buffer += data
            while buffer and (end := value_end(buffer)) > 0:
                reply = bytes(buffer[:end])
                del buffer[:end]
                # a push message answers no command
                command = self.sent.pop(0) if self.sent else b''
                self.proxy.saw(self, command, reply)
                await self.proxy.pass_on(self, command, 'after')
                await self.proxy.gate(self.proxy.to_client)
                self.writer.write(reply)
                await self.writer.drain()
                self.answered.append(command[:48])
        # the last reply must arrive before the end of the connection
        self.writer.close()
        await self.writer.wait_closed()


class Proxy:
    """Listens at `path` and passes everything on to `target`, until a fault is made."""

    def __init__(self, path, target):
        self.path, self.target = str(path), target
        self.connections = set()
        self.traps = []
        self.delay_s = 0
        self.accepted = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server = None
        self.to_server = self.to_client = None

    # ---- called from the test's thread

    def run(self, function, *args):
        """Calls or awaits the function in the proxy's thread."""
        async def call():
            result = function(*args)
            return await result if asyncio.iscoroutine(result) else result
        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(PATIENCE_S)

    def start(self):
        self._thread.start()
        self.run(self._start)
        return self

    def close(self):
        self.run(self._stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    def cut(self, name=''):
        """Closes the connections whose client name ends with it; '' closes all."""
        self.run(self._cut, name)

    def refuse(self):
        """Cuts all connections and refuses new ones from now on."""
        self.run(self._refuse)
        self.cut()

    def accept(self):
        self.run(self._listen)

    def silence(self, to_server=True, to_client=True):
        """Nothing arrives any more in these directions; connections stay, and new ones are accepted. Data
        that is sent meanwhile arrives after heal(), as on a network."""
        self.run(self._silence, to_server, to_client)

    def heal(self):
        self.run(self._heal)

    def delay(self, seconds):
        """Each command and each reply is delayed by this time."""
        self.delay_s = seconds

    def trap(self, name, when='after', action='cut', holding=b''):
        """Traps the next command with this name (a command or a function) and the pattern `holding` in its
        bytes: when='before' it reaches the server or 'after' it ran; action 'cut' cuts its connection, 'hold'
        waits for release()."""
        trap = Trap(self, name, when, action, holding)
        self.run(self.traps.append, trap)
        return trap

    # ---- in the proxy's thread

    async def _start(self):
        self.to_server, self.to_client = asyncio.Event(), asyncio.Event()
        self._heal()
        await self._listen()

    async def _listen(self):
        self._server = await asyncio.start_unix_server(self._take, self.path, limit=CHUNK)

    async def _take(self, reader, writer):
        self.accepted += 1
        connection = Connection(self, reader, writer)
        self.connections.add(connection)
        await connection.serve()

    async def _refuse(self):
        self._server.close()

    async def _stop(self):
        self._server.close()
        self._cut('')
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _cut(self, name):
        for connection in list(self.connections):
            if connection.name.endswith(name):
                connection.cut()

    def _silence(self, to_server, to_client):
        if to_server:
            self.to_server.clear()
        if to_client:
            self.to_client.clear()

    def _heal(self):
        self.to_server.set()
        self.to_client.set()

    def saw(self, connection, command, reply):
        """For recorders: a command is on its way to the server (reply is None), or the server has answered
        it, whether the reply arrives or not."""

    async def gate(self, event):
        if self.delay_s:
            arrived = asyncio.Event()
            asyncio.get_running_loop().call_later(self.delay_s, arrived.set)
            await arrived.wait()
        await event.wait()

    async def pass_on(self, connection, command, when):
        """Springs the first trap that fits; if that cuts the connection, its pump ends here."""
        for trap in self.traps:
            if trap.fits(command, when):
                self.traps.remove(trap)
                trap.sprung.set()
                if trap.action == 'cut':
                    connection.cut()
                    raise ConnectionResetError
                await trap._open.wait()
                return
