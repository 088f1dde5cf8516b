"""Adds tasks to leat's queues, waits for their results, and cancels them. Needs redis-py from 4.2 on.

    import leat

    queue = leat.Queue('thumbnails')                       # or leat.Queue('thumbnails', 'redis://:PASSWORD@HOST')
    task = queue.add('make thumbs', env={'SIZE': 640}, lane='alice', result_ttl='1h')
    print(task.wait(60).stdout)

AsyncQueue is the same for asyncio; its methods are coroutines. leat-protocol(7) explains the fields of a task.

A resident process does tasks itself, one after the other:

    def work(attempt):
        print(attempt.payload, attempt.fields['SIZE'])

    leat.serve(work)

serve_async is the same for coroutines. RESIDENT PROCESSES in leatd(8) has the rules.
"""
from __future__ import annotations

import asyncio
import base64
import inspect
import json
import os
import re
import stat
import sys
import time
import traceback
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import (TYPE_CHECKING, Any, Awaitable, BinaryIO, Callable, Dict, Iterable, List, Mapping, Optional,
                    Tuple, TypedDict, Union)

import redis
import redis.asyncio

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Unpack

__all__ = ['AsyncQueue', 'AsyncTask', 'Attempt', 'Dead', 'Exit', 'Fields', 'Full', 'Options', 'Queue', 'Refused',
           'Result', 'Task', 'serve', 'serve_async']

Value = Union[str, bytes, int, float]
Duration = Union[str, int, float, timedelta]  # '5m', or seconds

_SUFFIXES = ('bell', 'waiting', 'delayed', 'names', 'conf', 'stats', 'lanes', 'laned', 'go', 'running', 'dead',
             'workers', 'cancel', 'awaited')
_DURATIONS = {'delay', 'timeout', 'result_ttl', 'unique_for'}
_BLOCK_S = 20.0  # the longest blocking read
_REPORT = 3  # the descriptor for reports of a resident process
_REASON = 500  # characters; a report has at most 4096 bytes


class Options(TypedDict, total=False):
    """Fields that a task can have besides its command."""

    payload: Union[str, bytes]  # its standard input
    env: Mapping[str, Value]  # NAME: value; the task finds it in $TASK_NAME
    id: str                # a label; nothing is added while a task with it is in the queue
    unique: str            # nothing is added while a task with this key waits or runs
    unique_for: Duration   # after a success, the key stays taken for so long
    unique_next: bool      # if the task with the key runs, add one that follows it
    lane: str              # lanes take turns
    delay: Duration        # start no earlier than that
    at: datetime           # start no earlier than then
    expires: datetime      # if it has not started by then, it becomes a dead letter
    directory: str         # where it starts, an absolute path on the worker's host
    timeout: Duration      # an attempt that runs longer is killed
    max_attempts: int
    max_output: str        # such as '64K'
    result_ttl: Duration   # how long its result is kept; wait() needs that
    live: bool             # send the output while it runs
    traceparent: str       # the trace that it belongs to (W3C Trace Context)
    tracestate: str
    baggage: str
    memory_max: str
    memory_high: str
    pids_max: int
    cpu_max: str
    cpu_weight: int
    io_weight: int


class Fields(Options, total=False):
    """A task with its command, which may be missing if the worker's configuration has one."""

    command: str           # a line for sh(1)


class Refused(ValueError):
    """The task is wrong; it was not added, and would not be if it was added again."""


class Full(Exception):
    """The queue is at its length limit; add the task later."""


@dataclass(frozen=True)
class Result:
    """How a task ended."""

    tid: str
    state: str             # success, dead or cancelled
    cause: str             # success, or as in dead letters: exit, timeout, oom …
    status: Optional[int]  # the exit status, if it has one
    reason: str            # in words
    stdout: bytes          # the end of what the last attempt wrote
    stderr: bytes
    attempt: int
    worker: str
    duration: float        # seconds of the last attempt
    usage: Dict[str, int] = field(default_factory=dict)  # cpu_us, max_rss …

    @property
    def succeeded(self) -> bool:
        return self.state == 'success'


# ---- what is the same with and without asyncio

def _seconds(value: Duration) -> str:
    if isinstance(value, timedelta):
        value = value.total_seconds()
    return f'{round(value * 1000)}ms' if isinstance(value, float) else str(value)


def _pairs(task: Mapping[str, Any]) -> Dict[str, Union[str, bytes]]:
    """The fields of a task as names and values of the protocol."""
    pairs: Dict[str, Union[str, bytes]] = {}
    for name, value in task.items():
        if value is None or value is False:
            continue
        if name == 'env':
            for key, one in value.items():
                if key in Fields.__annotations__:
                    raise Refused(f'env: {key} is a field of the task, and no variable; give it outside of env')
                pairs[key] = one if isinstance(one, (str, bytes)) else str(one)
        elif name not in Fields.__annotations__:
            raise Refused(f'{name}: no such field; give variables of the task as env={{{name!r}: …}}')
        elif name in _DURATIONS:
            pairs[name] = _seconds(value)
        elif name == 'at':
            pairs[name] = str(round(value.timestamp() * 1000))
        elif name == 'expires':
            pairs[name] = f'{value.timestamp():.3f}'
        else:
            pairs[name] = value if isinstance(value, (str, bytes)) else str(int(value))
    return pairs


def _as_json(tasks: Iterable[Mapping[str, Any]]) -> str:
    """Tasks as the list that leat_add_many takes."""
    def text(name: str, value: Union[str, bytes]) -> str:
        try:
            return value if isinstance(value, str) else value.decode()
        except UnicodeDecodeError:
            raise Refused(f'{name}: not UTF-8, which JSON needs; give it to add()') from None
    return json.dumps([{name: text(name, value) for name, value in _pairs(task).items()} for task in tasks])


def _flat(task: Mapping[str, Any]) -> List[Union[str, bytes]]:
    return [part for pair in _pairs(task).items() for part in pair]


def _text(value: Union[str, bytes]) -> str:
    return value if isinstance(value, str) else value.decode(errors='replace')


def _error(error: Exception) -> Exception:
    """The exception that fits the answer of a function, without the place in the function that Redis adds."""
    kind, _, rest = re.sub(r' script: \w+, on @\w+:\d+\.?\Z', '', str(error)).partition(' ')
    return Refused(rest) if kind == 'REFUSED' else Full(rest) if kind == 'FULL' else error


def _result(tid: str, entry: Mapping[Any, Any]) -> Result:
    row = {_text(name): value for name, value in entry.items()}

    def text(name: str) -> str:
        return _text(row.get(name, ''))

    def output(name: str) -> bytes:
        value = row.get(name, b'')
        return value if isinstance(value, bytes) else str(value).encode(errors='surrogateescape')

    used = text('usage').split()
    return Result(tid, text('state'), text('cause'), int(text('status')) if text('status').isdigit() else None,
                  text('reason'), output('stdout'), output('stderr'), int(text('attempt') or 0), text('worker'),
                  int(text('duration_us') or 0) / 1e6, dict(zip(used[::2], map(int, used[1::2]))))


class _Base:
    """The keys of a queue, and how long to block for a result."""

    def __init__(self, name: str, group: str) -> None:
        self.name, self.group = name, group
        self._prefix = name if re.match(r'[^{]*\{[^}]+\}', name) else f'{{{name}}}'
        self._keys = [name, *(f'{self._prefix}:{suffix}' for suffix in _SUFFIXES)]

    def _result_key(self, tid: str) -> str:
        return f'{self._prefix}:result:{tid}'

    @staticmethod
    def _block_ms(client: Any, deadline: Optional[float]) -> int:
        """For the next blocking read, or 0 if the time is over. The socket must not time out before it does."""
        longest = _BLOCK_S
        patience = client.get_connection_kwargs().get('socket_timeout')
        if patience:
            longest = min(longest, patience / 2)
        if deadline is not None:
            longest = min(longest, deadline - time.monotonic())
        return max(0, round(longest * 1000))


def _deadline(timeout: Optional[float]) -> Optional[float]:
    return None if timeout is None else time.monotonic() + timeout


def _url() -> str:
    return os.environ.get('LEAT_REDIS', 'redis://localhost')


def _check_ttl(tid: str, kept: bool) -> None:
    if not kept:
        raise ValueError(f"task {tid}: no result is kept; add the task with result_ttl='1h'")


# ---- without asyncio

class Queue(_Base):
    """A queue. It has the name of the stream, and may be used by several threads."""

    def __init__(self, name: str, client: Union[redis.Redis, str, None] = None, group: str = 'leat') -> None:
        """client: a redis.Redis or redis.RedisCluster, or a URL; without it, that of $LEAT_REDIS, or the Redis of
        this host. With decode_responses it needs encoding_errors='surrogateescape', too: tasks write any bytes."""
        super().__init__(name, group)
        self._opened = client is None or isinstance(client, str)
        self.client: Any = redis.Redis.from_url(client or _url()) \
            if client is None or isinstance(client, str) else client

    def close(self) -> None:
        """Closes the connections, unless the caller gave the client. A with statement does it, too."""
        if self._opened:
            self.client.close()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, kind: Optional[type], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def _call(self, function: str, keys: List[str], *arguments: Any) -> Any:
        try:
            return self.client.execute_command('FCALL', function, len(keys), *keys, *arguments)
        except redis.ResponseError as error:
            raise _error(error) from error

    def add(self, command: Optional[str] = None, **fields: Unpack[Options]) -> Task:
        """Adds a task. Returns the task with the same id or unique key if there is one; its new is False."""
        task: Dict[str, Any] = {'command': command, **fields}
        what, tid = self._call('leat_add', [self.name], *_flat(task))
        return Task(self, _text(tid), _text(what) == 'new', bool(fields.get('result_ttl')))

    def add_many(self, tasks: Iterable[Fields]) -> List[Task]:
        """Adds all of these tasks (at most 10,000) in one step, or none."""
        tasks = list(tasks)
        answer = self._call('leat_add_many', [self.name], _as_json(tasks))
        return [Task(self, _text(tid), _text(what) == 'new', bool(task.get('result_ttl')))
                for task, what, tid in zip(tasks, answer[::2], answer[1::2])]

    def wait(self, tid: str, timeout: Optional[float] = None) -> Optional[Result]:
        """Waits until the task has ended, for at most timeout seconds. Returns its result, or None if it has not.
        The task must have been added with result_ttl."""
        deadline = _deadline(timeout)
        while True:
            block = self._block_ms(self.client, deadline)
            found = self.client.xread({self._result_key(tid): '0'}, block=block or None)
            if found:
                rows = next(iter(found.values()))[0] if isinstance(found, dict) else found[0][1]
                return _result(tid, rows[0][1])
            if block == 0:
                return None

    def cancel(self, tid: str) -> bool:
        """Cancels a task. Returns False if it is not in the queue. If it runs, its worker ends it at once."""
        state = 'later'
        while state == 'later':
            state = _text(self._call('leat_cancel', self._keys, self.group, 1, tid, '')[1])
        return state != 'gone'


@dataclass(frozen=True)
class Task:
    """A task that was added."""

    queue: Queue = field(repr=False)
    tid: str
    new: bool  # False: a task with the same id or unique key was in the queue, and this is that one
    result_kept: bool = field(repr=False)

    def wait(self, timeout: Optional[float] = None) -> Optional[Result]:
        """As Queue.wait."""
        _check_ttl(self.tid, self.result_kept)
        return self.queue.wait(self.tid, timeout)

    def cancel(self) -> bool:
        """As Queue.cancel."""
        return self.queue.cancel(self.tid)


# ---- asyncio

class AsyncQueue(_Base):
    """As Queue, for asyncio."""

    def __init__(self, name: str, client: Union[redis.asyncio.Redis, str, None] = None,
                 group: str = 'leat') -> None:
        """client: a redis.asyncio.Redis or RedisCluster, or a URL; without it, that of $LEAT_REDIS, or the Redis
        of this host."""
        super().__init__(name, group)
        self._opened = client is None or isinstance(client, str)
        self.client: Any = redis.asyncio.Redis.from_url(client or _url()) \
            if client is None or isinstance(client, str) else client

    async def close(self) -> None:
        """As Queue.close; async with does it, too."""
        if self._opened:
            # the name since redis-py 5
            await getattr(self.client, 'aclose', self.client.close)()

    async def __aenter__(self) -> AsyncQueue:
        return self

    async def __aexit__(self, kind: Optional[type], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await self.close()

    async def _call(self, function: str, keys: List[str], *arguments: Any) -> Any:
        try:
            return await self.client.execute_command('FCALL', function, len(keys), *keys, *arguments)
        except redis.ResponseError as error:
            raise _error(error) from error

    async def add(self, command: Optional[str] = None, **fields: Unpack[Options]) -> AsyncTask:
        """As Queue.add."""
        task: Dict[str, Any] = {'command': command, **fields}
        what, tid = await self._call('leat_add', [self.name], *_flat(task))
        return AsyncTask(self, _text(tid), _text(what) == 'new', bool(fields.get('result_ttl')))

    async def add_many(self, tasks: Iterable[Fields]) -> List[AsyncTask]:
        """As Queue.add_many."""
        tasks = list(tasks)
        answer = await self._call('leat_add_many', [self.name], _as_json(tasks))
        return [AsyncTask(self, _text(tid), _text(what) == 'new', bool(task.get('result_ttl')))
                for task, what, tid in zip(tasks, answer[::2], answer[1::2])]

    async def wait(self, tid: str, timeout: Optional[float] = None) -> Optional[Result]:
        """As Queue.wait."""
        deadline = _deadline(timeout)
        while True:
            block = self._block_ms(self.client, deadline)
            found = await self.client.xread({self._result_key(tid): '0'}, block=block or None)
            if found:
                rows = next(iter(found.values()))[0] if isinstance(found, dict) else found[0][1]
                return _result(tid, rows[0][1])
            if block == 0:
                return None

    async def cancel(self, tid: str) -> bool:
        """As Queue.cancel."""
        state = 'later'
        while state == 'later':
            state = _text((await self._call('leat_cancel', self._keys, self.group, 1, tid, ''))[1])
        return state != 'gone'


@dataclass(frozen=True)
class AsyncTask:
    """As Task, for asyncio."""

    queue: AsyncQueue = field(repr=False)
    tid: str
    new: bool
    result_kept: bool = field(repr=False)

    async def wait(self, timeout: Optional[float] = None) -> Optional[Result]:
        """As Queue.wait."""
        _check_ttl(self.tid, self.result_kept)
        return await self.queue.wait(self.tid, timeout)

    async def cancel(self) -> bool:
        """As Queue.cancel."""
        return await self.queue.cancel(self.tid)


# ---- resident processes

@dataclass(frozen=True)
class Attempt:
    """An attempt of a task, which leatd has handed to this process."""

    tid: str
    id: Optional[str]      # the label that the producer chose
    attempt: int           # from 1
    max_attempts: int
    fence: int             # greater than in all earlier runs of the task; see FENCING in leatd(8)
    enqueued_at: datetime
    deadline: Optional[datetime]  # when the attempt times out
    payload: bytes
    fields: Dict[str, str]  # all other fields; bytes that are not UTF-8 are as in os.environ


class Dead(Exception):
    """Raise it in a handler: the task becomes a dead letter at once."""


class Exit(Exception):
    """Raise it in a handler: the attempt ends as a process with this exit status: the rules of [retry] apply."""

    def __init__(self, status: int, reason: str = '') -> None:
        # subprocess has negative ones for signals
        if status not in range(256):
            raise ValueError(f'Exit: {status!r} is no exit status; give a number from 0 to 255')
        super().__init__(reason)
        self.status = int(status)


def _moment(seconds: float) -> datetime:
    """The last moment of the year 9999 stands for later ones: a producer that chooses the id of an entry chooses
    its time."""
    try:
        return datetime.fromtimestamp(seconds, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return datetime.max.replace(tzinfo=timezone.utc)


def _attempt(line: bytes) -> Tuple[int, Attempt]:
    """The number and the attempt of a record."""
    try:
        record = json.loads(line)
        index, fields = record['index'], record['fields']
    except (ValueError, KeyError, TypeError):
        raise RuntimeError('serve: a record is no JSON; set [task] resident = yes, batch_format = json') from None
    coded = {name: base64.b64decode(value) for name, value in record.get('base64', {}).items()}
    payload = coded.pop('payload', None) or fields.pop('payload', '').encode()
    fields.update((name, os.fsdecode(value)) for name, value in coded.items())
    return index, Attempt(record['tid'], record.get('id'), record['attempt'], record['max_attempts'],
                          record['fence'], _moment(record['enqueued_at']),
                          _moment(record['deadline']) if 'deadline' in record else None, payload, fields)


def _failure(error: BaseException) -> str:
    """The report on an attempt that has ended with this exception. An unexpected one is also in its output."""
    if isinstance(error, Exit):
        result, reason = f'exit {error.status}', str(error)
    elif isinstance(error, Dead):
        result, reason = 'dead', str(error)
    else:
        result, reason = 'retry', f'{type(error).__name__}: {error}'
        traceback.print_exception(type(error), error, error.__traceback__)
    return f'{result} {" ".join(reason.split())[:_REASON]}'


def _begin() -> Tuple[BinaryIO, int]:
    """Moves the records and the reports to descriptors of their own, so that programs which a task starts neither
    read the one nor write the other. Returns both, and says that the process is ready."""
    if 'LEAT_BATCH' not in os.environ:
        raise RuntimeError('serve: leatd starts this program, with [task] resident = yes; leat try tries it')
    records, report = os.fdopen(os.dup(0), 'rb'), os.dup(_REPORT)
    os.close(_REPORT)
    with open(os.devnull, 'rb') as nothing:
        os.dup2(nothing.fileno(), 0)
    os.write(report, b'ready\n')
    return records, report


def _end(report: int, index: int, result: str) -> None:
    """Reports on a record, after its output."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(report, f'{index} {result}\n'.encode(errors='replace'))


def serve(work: Callable[[Attempt], object]) -> None:
    """The loop of a resident process, for [task] resident = yes and batch_format = json. Calls work(attempt) for
    one task after the other, and returns when leatd ends the process. If work returns, the task has succeeded,
    whatever it returns. If it raises an exception, the attempt has failed, and the exception is the reason; see
    also Dead and Exit."""
    records, report = _begin()
    with records:
        for line in records:
            index, attempt = _attempt(line)
            result = 'ok'
            try:
                if asyncio.iscoroutine(work(attempt)):
                    raise TypeError('serve: the function is a coroutine function; use serve_async')
            except Exception as error:
                result = _failure(error)
            _end(report, index, result)


async def serve_async(work: Callable[[Attempt], Awaitable[object]]) -> None:
    """As serve, for a coroutine function. With [task] batch greater than 1, it has up to that many tasks at a
    time."""
    async def outcome(attempt: Attempt) -> str:
        try:
            result = work(attempt)
            if not inspect.isawaitable(result):
                raise TypeError('serve_async: the function is no coroutine function; use serve')
            await result
        except asyncio.CancelledError as error:
            # either this coroutine was cancelled, or one that work waited for; Python before 3.11 cannot tell
            if getattr(asyncio.current_task(), 'cancelling', int)():
                raise
            return _failure(error)
        except Exception as error:
            return _failure(error)
        return 'ok'

    async def one(index: int, attempt: Attempt) -> None:
        try:
            _end(report, index, await outcome(attempt))
        except BaseException as error:
            # end the process: leatd would wait for the report until the attempt times out
            end = RuntimeError('serve_async: an attempt cannot be reported')
            end.__cause__ = error
            reader.set_exception(end)
            raise

    records, report = _begin()
    reader = asyncio.StreamReader(limit=sys.maxsize)
    source: Union[BinaryIO, asyncio.BaseTransport] = records
    if stat.S_ISREG(os.fstat(records.fileno()).st_mode):
        # a task with a process of its own has its record in a file, and asyncio reads none
        reader.feed_data(records.read())
        reader.feed_eof()
    else:
        source, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), records)
    running: List[asyncio.Future[None]] = []
    while line := await reader.readline():
        running = [other for other in running if not other.done() or other.result()]
        running.append(asyncio.ensure_future(one(*_attempt(line))))
    await asyncio.gather(*running)
    source.close()
