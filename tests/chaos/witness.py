"""A proxy that records what a worker and Redis tell each other about tasks. Redis's reply counts, whether it
reaches the worker or not."""
import asyncio
import itertools

from harness.servers.proxy import CHUNK, Proxy

WATCHED = (b'leat_claim', b'leat_finish', b'leat_renew', b'leat_register')
CALLS = itertools.count(1)
PORT = 6379  # on a link


def parse(data, at=0):
    """(value, its end): bytes, int, None, a list, or an Exception for an error."""
    line = data.index(b'\r\n', at)
    kind, text, after = data[at:at + 1], data[at + 1:line], line + 2
    if kind == b'$':
        size = int(text)
        return (None, after) if size < 0 else (data[after:after + size], after + size + 2)
    if kind == b'*':
        values = []
        for _ in range(max(int(text), 0)):
            value, after = parse(data, after)
            values.append(value)
        return values, after
    if kind == b':':
        return int(text), after
    return (ValueError(text.decode(errors='replace')) if kind == b'-' else text), after


def arguments(command):
    """The arguments of an FCALL of leat after the keys, the group and the consumer."""
    words = parse(command)[0]
    return words[3 + int(words[2]) + 2:]


def field(flat, name):
    return next((flat[i + 1] for i in range(0, len(flat), 2) if flat[i] == name), b'-1')


class Witness(Proxy):
    """The proxy of worker w, at a unix socket, or at the server's end of the link if the worker's host has
    one."""

    def __init__(self, path, target, w, writer, link=None):
        super().__init__(path, target)
        self._w, self._writer, self._link = w, writer, link
        self._calls = {}  # finishes on their way: the command's identity → number and size

    def way(self):
        """The worker's [redis]."""
        return {'host': self._link.address, 'port': PORT} if self._link else {'socket': self.path}

    async def _start(self):
        if self._link:
            self._link.server.enter()
        await super()._start()

    async def _listen(self):
        if not self._link:
            await super()._listen()
            return
        self._server = await asyncio.start_server(self._take, self._link.address, PORT, limit=CHUNK)

    def saw(self, connection, command, reply):
        head = command[:48]
        what = next((name for name in WATCHED if name in head), None)
        if what is None:
            return
        if what == b'leat_finish':
            self._finish(command, reply)
        elif reply is not None and (value := self._value(reply)):
            if what == b'leat_claim':
                self._claimed(value)
            self._writer.say('renewed', w=self._w, call=what.decode())

    @staticmethod
    def _value(reply):
        value = parse(reply)[0]
        return value if isinstance(value, list) else None

    def _claimed(self, value):
        for token, tid, attempt, crashes, fence, _, flat in value[7]:
            self._writer.say('claim', w=self._w, token=token.decode(), n=int(field(flat, b'N')), tid=tid.decode(),
                             attempt=attempt, crashes=crashes, fence=fence)

    def _finish(self, command, reply):
        if reply is not None:
            states = [state.decode() for state in (self._value(reply) or [1])[1:]]
            self._writer.say('finished', w=self._w, call=self._calls.pop(id(command)), states=states)
            return
        words, results = arguments(command), []
        while words and words[0] != b'successes':
            token, outcome, count = words[0].decode(), words[1].decode(), int(words[2])
            told = words[3:3 + 2 * count]
            cause = field(told, b'cause')
            results.append([token, outcome, cause.decode()])
            words = words[3 + 2 * count:]
        self._calls[id(command)] = next(CALLS)
        self._writer.say('finish', w=self._w, call=self._calls[id(command)], results=results)
