"""Live output: what tasks write, as the worker sends it to Redis while they run."""
import hashlib
import signal

import pytest

from harness import processes
from harness.daemon import is_sanitized
from harness.functions.results import HOLDS_DATA, Reader, follow, key_of, wait_result
from harness.short_leases import wait_empty
from harness.tasks import resident_kib, wait_file, wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')

LIVE = {'live': '1', 'max_attempts': '1', 'result_ttl': '1m'}


def test_live(daemon, queue, client, latches, wait_until):
    """The stream has a begin, data of both descriptors and an end, each with attempt, fencing token and
    offset. It is complete before the result exists, and expires a while after the end."""
    worker = daemon().wait_ready()
    one, two = latches(), latches()
    [tid] = queue.add({'command': rf"printf 'a\0b'; {one.wait}; echo err >&2; {two.wait}; printf end", **LIVE})
    for descriptor, latch in ((1, one), (2, two)):  # what comes at once has no order
        wait_until(lambda fd=descriptor: follow(queue, tid).data(fd))
        latch.open()
    wait_result(queue, tid)
    first, *data, last = follow(queue, tid).entries
    assert first.pop('worker').split(':')[1] == str(worker.pid)
    fence = first['fence']
    assert first == {'attempt': '1', 'fence': fence, 'offset': '0'}
    assert [(one['fd'], one['data'], one['offset']) for one in data] == [
        ('1', b'a\0b', '0'), ('2', b'err\n', '3'), ('1', b'end', '7')]
    assert last == {'attempt': '1', 'fence': fence, 'offset': '10', 'ended': 'success', 'how': 'exit 0'}
    assert 500_000 < client.pttl(key_of(queue, 'output', tid)) <= 600_000


def test_while_it_runs(daemon, queue, latch, wait_until, client):
    """Output is in the stream at once, and the stream always has an expiry."""
    daemon().wait_ready()
    [tid] = queue.add({'command': f'printf one; {latch.wait}; exit 3', **LIVE})
    wait_until(lambda: follow(queue, tid).data(1) == b'one', 20)
    assert 3_000_000 < client.pttl(key_of(queue, 'output', tid)) <= 3_600_000
    latch.open()
    wait_letters(queue)
    assert follow(queue, tid).ends() == [(1, 'dead', 'exit 3')]


@pytest.mark.parametrize('live', [None, '0', ''])
def test_only_on_request(daemon, queue, client, live):
    """Tasks that do not ask for live output leave no stream."""
    daemon().wait_ready()
    [tid] = queue.add({'command': 'echo x', **({} if live is None else {'live': live})})
    wait_succeeded(queue, 1)
    assert not client.exists(key_of(queue, 'output', tid))


def test_attempts(daemon, queue):
    """Each attempt has its own entries, and the end of an earlier one tells its outcome."""
    daemon({'retry': {'base': '200ms'}}).wait_ready()
    [tid] = queue.add({'command': 'echo $LEAT_ATTEMPT; kill -USR1 $$', **LIVE, 'max_attempts': '2'})
    wait_letters(queue)
    output = follow(queue, tid)
    assert [output.data(1, attempt) for attempt in (1, 2)] == [b'1\n', b'2\n']
    assert output.ends() == [(1, 'retry', 'SIGUSR1'), (2, 'dead', 'SIGUSR1')]
    first, second = [int(one['fence']) for one in output.entries if 'worker' in one]
    assert first < second
    assert [one['delay_ms'] for one in output.entries if 'delay_ms' in one] == ['200']


def test_no_output(daemon, queue):
    """A silent task has a begin and an end; so has one that closes its output."""
    daemon().wait_ready()
    tids = queue.add({'command': 'true', **LIVE}, {'command': 'exec >&- 2>&-; sleep 0.1', **LIVE})
    for tid in tids:
        wait_result(queue, tid)
        first, last = follow(queue, tid).entries
        assert (first['offset'], last['offset'], last['ended']) == ('0', '0', 'success')


def test_output_of_a_batch(daemon, queue):
    """If tasks share processes, a task with live output runs alone."""
    daemon({'task': {'command': 'cat; wc -l >&2', 'batch': 10}}).wait_ready()
    tids = queue.add(*[{'payload': 'x', 'live': '1', 'result_ttl': '1m'}] * 20)
    for tid in tids:
        wait_result(queue, tid)
        assert follow(queue, tid).data(1) == b'x\n'


# ---- large output

def test_ten_megabytes(daemon, queue, folder, wait_until, latch):
    """10 MB, more than a stream keeps, slow the task down, and a reader that keeps up gets every byte of both
    descriptors."""
    daemon().wait_ready()
    size = 10_000_000
    half = size // 2
    [tid] = queue.add({'command': f'head -c {size} /dev/urandom > {folder}/copy; head -c {half} {folder}/copy; '
                                  f'{latch.wait}; tail -c {half} {folder}/copy; head -c 300000 /dev/zero >&2',
                       **LIVE})
    reader = Reader(queue, tid)
    wait_until(lambda: reader.read() or len(reader.data['1']) == half, 60)
    latch.open()
    wait_until(reader.read, 60)
    assert reader.ended == 'success'
    assert (len(reader.data['1']), len(reader.data['2']), reader.lost) == (size, 300000, 0)
    expected = hashlib.sha256((folder / 'copy').read_bytes()).digest()
    assert hashlib.sha256(reader.data['1']).digest() == expected


def test_a_slow_reader_loses_the_oldest(daemon, queue, client):
    """The stream is bounded: entries that were not read are trimmed, and offsets tell how many bytes are
    lost."""
    daemon().wait_ready()
    [tid] = queue.add({'command': 'head -c 12000000 /dev/zero', **LIVE})
    wait_result(queue, tid, 60)
    assert client.memory_usage(key_of(queue, 'output', tid)) < 11_000_000
    reader = Reader(queue, tid)
    reader.read()
    assert reader.ended == 'success' and reader.lost > 1_000_000
    assert reader.lost + len(reader.data['1']) == reader.offset == 12_000_000


def test_a_flood_delays_no_other_task(daemon, queue, client, wait_until, late):
    """Tasks that write without end are slowed down: leases are renewed in time, other tasks go on, and the
    daemon stays small."""
    worker = daemon({'queue': {'lease': '6s', 'concurrency': 4}, 'output': {'to': 'discard'}}).wait_ready()
    before = resident_kib(worker.pid)
    floods = queue.add({'command': 'exec yes', **LIVE, 'timeout': '4s'},
                       {'command': 'while :; do echo x; echo y >&2; done', **LIVE, 'timeout': '4s'})
    wait_until(lambda: client.hlen(queue.running) == 2)
    others, largest = 0, before

    def over():
        nonlocal others, largest
        largest = max(largest, resident_kib(worker.pid))
        for row in client.execute_command('XPENDING', queue.stream, queue.group, '-', '+', 10):
            assert row[2] < 4500 + 1000 * late.start(), f'not renewed for {row[2]} ms'
        if queue.counter('succeeded') == others and len(queue.entries('dead')) < 2:
            others += len(queue.add({'command': 'true'}))
        return len(queue.entries('dead')) == 2

    wait_until(over, 30)
    assert queue.counter('crashes') == queue.counter('fenced') == 0
    assert is_sanitized() or largest < before + 8 * 1024, f'{before} KiB before, {largest} then'
    assert others >= 2  # a busy machine starts few in that time
    for tid in floods:
        assert follow(queue, tid).ends() == [(1, 'dead', 'timeout')]
        # while Redis is silent for two seconds, output is lost
        assert follow(queue, tid).dropped() == 0 or late() > 5


def test_many_at_once(daemon, queue, wait_until, late):
    """Many tasks that end with full pipes all have complete streams."""
    daemon({'queue': {'concurrency': 16, 'lease': '60s'}}).wait_ready()
    tids = queue.add(*[{'command': 'head -c 100000 /dev/zero; head -c 50000 /dev/zero >&2', **LIVE}] * 64)
    for tid in tids:
        wait_result(queue, tid, 60)
        output = follow(queue, tid)
        # while Redis is silent for two seconds, output is lost
        stalled = late() > 1 and output.dropped() > 0
        assert (len(output.data(1)), len(output.data(2))) == (100000, 50000) or stalled


# ---- failures

def test_silent_redis(daemon, queue, redis_server, folder, latch):
    """While Redis is silent a task waits for two seconds and then goes on; lost bytes are counted in the
    stream."""
    worker = daemon({'redis': {'command_timeout': '60s'}, 'queue': {'lease': '60s'}}).wait_ready()
    [tid] = queue.add({'command': f'touch {folder}/begun; {latch.wait}; head -c 3000000 /dev/zero; '
                                  f'echo {folder} > {folder}/done; sleep 0.2; echo end', **LIVE})
    wait_file(folder / 'begun', 0)
    redis_server.stop()
    latch.open()
    wait_file(folder / 'done', 1, 20)
    assert worker.running()
    redis_server.cont()
    wait_result(queue, tid)
    reader = Reader(queue, tid)
    reader.read()
    assert reader.offset == 3_000_004 and 0 < reader.lost < 3_000_000
    assert follow(queue, tid).dropped() == reader.lost
    assert reader.lost + len(reader.data['1']) == reader.offset


@pytest.mark.parametrize('when', ['before', 'after'])
def test_broken_connection(daemon, queue, proxy, through_proxy, wait_until, when):
    """Output without a reply is sent again; readers see by the offset what comes twice, and lose nothing."""
    daemon(through_proxy).wait_ready()
    trap = proxy.trap('leat_output', when=when, holding=HOLDS_DATA)
    [tid] = queue.add({'command': 'for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.05; done', **LIVE})
    trap.wait()
    wait_result(queue, tid)
    reader = Reader(queue, tid)
    reader.read()
    assert reader.data['1'] == b'1\n2\n3\n4\n5\n6\n7\n8\n'
    assert reader.lost == 0 and (reader.twice > 0) == (when == 'after')


def test_end_while_redis_is_away(daemon, queue, proxy, through_proxy, folder, latch, wait_until):
    """The rest of a task's output waits for Redis with the outcome, and is sent before it."""
    worker = daemon(through_proxy).wait_ready()
    [tid] = queue.add({'command': f'{latch.wait}; head -c 100000 /dev/zero; '
                                  f'echo x > {folder}/done', **LIVE})
    wait_until(worker.descendants)
    proxy.refuse()
    latch.open()
    wait_file(folder / 'done', 1)
    proxy.accept()
    wait_result(queue, tid)
    assert len(follow(queue, tid).data(1)) == 100000


def test_worker_is_killed(daemon, queue, client, folder, wait_until):
    """The stream of a task whose worker died expires; the next attempt has a higher fencing token."""
    worker = daemon({'queue': {'lease': '4s'}}).wait_ready()
    [tid] = queue.add({'command': f'[ -e {folder}/x ] && {{ echo $LEAT_FENCE; exit; }}; touch {folder}/x; '
                                  'echo $LEAT_FENCE; exec sleep 60', **LIVE})
    wait_until(lambda: follow(queue, tid).data(1), 20)
    worker.kill9()
    processes.end_orphans()
    assert 0 < client.pttl(key_of(queue, 'output', tid)) <= 3_600_000
    daemon({'queue': {'lease': '4s'}}).wait_ready()
    wait_result(queue, tid)
    output = follow(queue, tid)
    fences = [int(one['fence']) for one in output.entries if 'worker' in one]
    assert len(fences) == 2 and fences[0] < fences[1]
    assert output.data(1) == b'%d\n%d\n' % tuple(fences)


def test_memory_is_full(daemon, queue, client, latch):
    """If Redis refuses output, the log says so once, and the task goes on."""
    worker = daemon().wait_ready()
    [tid] = queue.add({'command': f'{latch.wait}; echo a; sleep 0.1; echo b', **LIVE})
    client.config_set('maxmemory', 1)
    latch.open()
    wait_empty(queue)
    assert queue.counter('succeeded') == 1
    assert worker.log().count('live output lost: OOM') == 1
    # the entry that names the worker may have been taken before
    assert follow(queue, tid).data(1) == b''


def test_functions_are_lost(daemon, queue, client, latch, wait_until):
    """Output that Redis refuses since it has lost leat's functions is sent again when it has them."""
    daemon({'queue': {'concurrency': 1}}).wait_ready()
    [tid] = queue.add({'command': f'echo a; {latch.wait}; echo b', **LIVE})
    wait_until(lambda: follow(queue, tid).data(1) == b'a\n')
    client.function_flush()
    latch.open()
    wait_result(queue, tid)
    reader = Reader(queue, tid)
    reader.read()
    assert (reader.data['1'], reader.lost) == (b'a\nb\n', 0)


def test_acl_forbids_output(daemon, queue, client, folder, base_config):
    """A worker whose user may not write output says so, and runs the task."""
    client.execute_command('ACL', 'SETUSER', 'worker', 'on', '>secret', '+@all', 'resetkeys', '~emails',
                           *['~' + key for key in queue.keys], '~{emails}:result:*')
    config = {'redis': {'user': 'worker', 'password': 'secret'}}
    worker = daemon(config).wait_ready()
    [tid] = queue.add({'command': 'echo a', **LIVE})
    assert wait_result(queue, tid)['state'] == 'success'
    worker.wait_log(': live output lost: ')
    assert not client.exists(key_of(queue, 'output', tid))


def test_a_held_task_goes_on(daemon, queue, folder, wait_until):
    """If so much output waits that all tasks are held, and all but one end, that one goes on when Redis has
    taken the output, though nothing is left to send."""
    others = 12
    worker = daemon({'output': {'to': 'discard'}, 'queue': {'concurrency': others + 1}}).wait_ready()
    [tid] = queue.add({'command': f'until [ -e {folder}/end ]; do head -c 50 /dev/zero; done; '
                                  f'head -c 200000 /dev/zero', **LIVE})
    floods = queue.add(*[{'command': 'exec yes', **LIVE}] * others)
    wait_until(lambda: follow(queue, tid).data(1) and all(len(follow(queue, one).entries) > 20 for one in floods))
    before = len(follow(queue, tid).entries)
    wait_until(lambda: len(follow(queue, tid).entries) > before)  # all its output was probably sent by now
    worker.stop()  # so that it learns of all ends at once, and sends the rest of their output
    ended = [pid for pid in worker.descendants() if processes.name(pid) == 'yes']
    for pid in ended:
        processes.send(pid, signal.SIGKILL)
    wait_until(lambda: not any(map(processes.alive, ended)))
    worker.cont()
    wait_until(lambda: worker.log().count(' failed: killed by SIGKILL') == others)
    (folder / 'end').touch()
    wait_result(queue, tid)
