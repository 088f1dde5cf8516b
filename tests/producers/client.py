"""Uses leat.py: client.py SOCKET QUEUE sync|async. Prints what it saw as JSON, which test_clients.py checks."""
import asyncio
import inspect
import json
import sys
from datetime import timedelta

import leat

PATIENCE_S = 300  # a result comes sooner


def shown(result):
    return result and [result.state, result.succeeded, result.cause, result.status, result.stdout.decode(),
                       result.stderr.decode(), result.attempt]


async def scenario(queue):
    """The calls of a queue of either kind."""
    async def now(value):
        return await value if inspect.isawaitable(value) else value

    async def fails(call):
        try:
            await now(call())
        except (leat.Refused, leat.Full, ValueError) as error:
            return [type(error).__name__, str(error)]
        return None

    seen = {}
    ok = await now(queue.add('cat; echo $TASK_SIZE', payload=b'a\n', env={'SIZE': 640}, result_ttl='1h',
                             lane='alice'))
    seen['ok'] = shown(await now(ok.wait(PATIENCE_S)))
    bad = await now(queue.add('echo out; echo err >&2; exit 3', max_attempts=1, result_ttl=3600,
                              timeout=timedelta(hours=1)))
    seen['bad'] = shown(await now(bad.wait()))
    one = await now(queue.add('true', unique='x', delay=timedelta(days=1), result_ttl='1h'))
    two = await now(queue.add('true', unique='x', delay=86400.5))
    seen['unique'] = [one.new, two.new, one.tid == two.tid]
    seen['not yet'] = await now(one.wait(0.05))
    seen['at once'] = await now(one.wait(0))
    seen['cancel'] = [await now(one.cancel()), await now(one.cancel())]
    seen['cancelled'] = shown(await now(one.wait(PATIENCE_S)))
    many = await now(queue.add_many([{'command': 'echo one', 'result_ttl': '1h'},
                                     {'command': 'echo $TASK_N', 'env': {'N': 2}, 'result_ttl': '1h'}]))
    seen['many'] = [shown(await now(task.wait(PATIENCE_S))) for task in many]
    long = await now(queue.add('exec sleep 600', result_ttl='1h'))
    while (await now(long.wait(0.2))) is None:
        await now(long.cancel())
    seen['killed'] = shown(await now(long.wait(PATIENCE_S)))[:3]
    plain = await now(queue.add('true'))
    seen['no result'] = await fails(lambda: plain.wait(1))
    seen['refused'] = await fails(lambda: queue.add('true', lane='x' * 201))
    seen['unknown'] = await fails(lambda: queue.add('true', SIZE=1))
    seen['env'] = await fails(lambda: queue.add('true', env={'lane': 'x'}))
    seen['bytes'] = await fails(lambda: queue.add_many([{'command': 'cat', 'payload': b'\xff'}]))
    return seen


async def main():
    socket, name, kind = sys.argv[1:]
    odd = {'command': r"printf 'a\377'", 'result_ttl': '1h'}
    decoding = 'decode_responses=True&encoding_errors=surrogateescape'
    if kind == 'async':
        async with leat.AsyncQueue(name, f'unix://{socket}') as queue:
            seen = await scenario(queue)
        async with leat.AsyncQueue(name, f'unix://{socket}?{decoding}') as queue:
            result = await (await queue.add(**odd)).wait(PATIENCE_S)
    else:
        with leat.Queue(name, f'unix://{socket}') as queue:
            seen = await scenario(queue)
        with leat.Queue(name, f'unix://{socket}?{decoding}') as queue:
            result = queue.add(**odd).wait(PATIENCE_S)
    seen['decoded'] = [result.state, result.stdout.hex()]
    print(json.dumps(seen))


asyncio.run(main())
