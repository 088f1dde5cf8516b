"""A resident process with leat.py: serve.py sync|async|wrong|plain. The payloads of its tasks say how they end."""
import asyncio
import subprocess
import sys

import leat


def show(attempt):
    """What the attempt has: its payload, a field, and what the client has read of its numbers and times."""
    assert 1 <= attempt.attempt <= attempt.max_attempts and attempt.fence > 0
    assert attempt.deadline > attempt.enqueued_at
    print(attempt.tid, attempt.id, attempt.payload.hex(), attempt.fields['SIZE'])


def work(attempt):
    """Ends as the payload says."""
    show(attempt)
    if attempt.payload == b'dead':
        raise leat.Dead('no way\nout')
    if attempt.payload == b'signal':
        raise leat.Exit(subprocess.run('kill -9 $$', shell=True, check=False).returncode)
    if attempt.payload == b'exit':
        raise leat.Exit(65, 'wrong data')
    if attempt.payload == b'fail':
        raise KeyError('x' * 900)
    if attempt.payload == b'read':
        # neither records nor reports are open in other programs
        subprocess.run('cat; for fd in 3 4 5; do ! true 2>/dev/null >&$fd || echo open; done', shell=True,
                       check=True)


async def meet(attempt, waiting=[]):
    """As work. Two of those with the payload meet come to their end together."""
    if attempt.payload == b'cancel':
        other = asyncio.get_running_loop().create_future()
        other.cancel()
        await other
    if attempt.payload == b'close':
        sys.stdout.close()
        return None
    if attempt.payload != b'meet':
        return work(attempt)
    waiting.append(asyncio.Event())
    if len(waiting) == 2:
        for event in waiting:
            event.set()
    await waiting[-1].wait()


if sys.argv[1] == 'async':
    asyncio.run(leat.serve_async(meet))
elif sys.argv[1] == 'wrong':
    leat.serve(meet)
elif sys.argv[1] == 'plain':
    asyncio.run(leat.serve_async(work))
else:
    leat.serve(work)
