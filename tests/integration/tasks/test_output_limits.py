"""How much of a task's output is read, how fast, and where discarded output goes."""
import os
import re

import pytest

from harness.daemon import is_sanitized
from harness.polling import wait_until
from harness.short_leases import wait_empty
from harness.tasks import (letters, records, resident_kib, wait_file, wait_letters, wait_succeeded)

pytestmark = pytest.mark.usefixtures('quick_tasks')
ONCE = {'retry': {'max_attempts': 1}}


def lines_of(worker, tid):
    """The lines of a task's output in the log."""
    found = []
    for _, _, message in records(worker.log()):
        match = re.match(r'^(.*) \(task=(\S+) attempt=\d+ stream=std\w+\)$', message)
        if match and match[2] == tid:
            found.append(match[1])
    return found


def told(worker, text):
    return [message for _, _, message in records(worker.log()) if text in message]


# ---- max_output

def test_truncate(daemon, queue):
    """The log has the beginning of a task's output up to max_output; the rest is dropped with one record, and
    the task goes on. A dead letter has the end of the output."""
    worker = daemon({'output': {'max_output': '1K'}, **ONCE}).wait_ready()
    [tid] = queue.add({'command': 'seq -w 99999; echo last >&2; exit 3'})
    [letter] = wait_letters(queue)
    assert (letter.cause, letter.status) == ('exit', '3')
    assert letter.tail('stdout').endswith(b'99998\n99999\n') and letter.tail('stderr') == b'last\n'
    worker.wait_log('; dead-lettered')
    lines = lines_of(worker, tid)
    assert sum(len(line) + 1 for line in lines) <= 1024 + 1 and lines[0] == '00001'
    assert len(told(worker, f'task {tid}: wrote more than 1024 bytes; dropping the rest')) == 1


def test_exactly_max_output(daemon, queue):
    """Output of exactly max_output is not over the limit."""
    worker = daemon({'output': {'max_output': '1000', 'at_max': 'kill'}, **ONCE}).wait_ready()
    queue.add({'command': "head -c 500 /dev/zero; head -c 500 /dev/zero >&2"})
    wait_succeeded(queue, 1)
    assert not told(worker, 'wrote more')


@pytest.mark.parametrize('command', ['exec yes', 'seq 1000', 'trap "" TERM; exec yes'])
def test_kill(daemon, queue, command):
    """With at_max = kill the task is killed, whether it writes on, has exited first, or ignores TERM. The
    cause is output-limit; it is retried, and then becomes a dead letter."""
    worker = daemon({'output': {'max_output': '1K', 'at_max': 'kill'}, 'retry': {'max_attempts': 2}})
    worker.wait_ready()
    [tid] = queue.add({'command': command})
    [letter] = wait_letters(queue)
    assert (letter.cause, letter.status) == ('output-limit', '')
    assert letter.reason == 'more than 1024 bytes'
    assert [line[4] for line in letter.lines()] == ['output-limit'] * 2
    worker.wait_log('; dead-lettered')
    assert told(worker, f'task {tid}: attempt 1/2 failed: too much output, more than 1024 bytes after')
    wait_empty(queue)
    assert worker.descendants() == []


def test_own_limit(daemon, queue):
    """A task's own max_output can lower the configured one, but not raise it."""
    worker = daemon({'output': {'max_output': '4K', 'at_max': 'kill'}, **ONCE}).wait_ready()
    queue.add({'command': 'head -c 3000 /dev/zero', 'max_output': '2K'},
              {'command': 'head -c 5000 /dev/zero', 'max_output': '1G'})
    found = wait_letters(queue, 2)
    assert sorted(letter.reason for letter in found) == [
        'more than 2048 bytes', 'more than 4096 bytes']
    queue.add({'command': 'head -c 3000 /dev/zero', 'max_output': ''})
    wait_succeeded(queue, 1)
    assert not told(worker, 'dropping')


@pytest.mark.parametrize('value', ['0', 'x', '-1', '1K\0', '10 bytes'])
def test_invalid_limit(daemon, queue, value):
    """An invalid max_output is refused with the reason."""
    daemon().wait_ready()
    queue.add({'command': 'true', 'max_output': value})
    [letter] = wait_letters(queue)
    assert (letter.cause, letter.reason) == ('refused', 'max_output is not a size such as 64K or 10M')


def test_limit_by_enqueue(leat, queue):
    """leat enqueue refuses an invalid size before it enqueues anything."""
    done = leat('enqueue', '--max-output', '1 mile', 'true')
    assert done.returncode == os.EX_USAGE and "invalid size '1 mile'; use one such as 64K" in done.stderr
    assert leat('enqueue', '--max-output', '64K', 'true').returncode == 0
    [(_, fields)] = queue.entries('stream')
    assert dict(zip(fields[::2], fields[1::2]))[b'max_output'] == b'64K'


def test_limit_of_a_batch(daemon, queue):
    """A batch that writes too much runs again in halves, and only the offending task dies."""
    command = 'while read -r line; do if [ $line = bad ]; then seq 1000; fi; done'
    daemon({'output': {'max_output': '1K', 'at_max': 'kill'}, 'queue': {'concurrency': 1},
            'task': {'command': command, 'batch': 3, 'batch_wait': '1s'},
            'retry': {'max_attempts': 2}}).wait_ready()
    queue.add(*[{'payload': word} for word in ('good', 'bad', 'fine')])
    [letter] = wait_letters(queue)
    wait_succeeded(queue, 2)
    assert letter.cause == 'output-limit' and letter.bytes[b'payload'] == b'bad'


def test_limit_without_the_log(daemon, queue):
    """Discarded output counts, too."""
    daemon({'output': {'to': 'discard', 'max_output': '1K', 'at_max': 'kill'},
            'dead': {'output_tail': 0}, **ONCE}).wait_ready()
    queue.add({'command': 'exec yes'})
    assert wait_letters(queue)[0].cause == 'output-limit'


def test_limit_of_live_output(daemon, queue, leat):
    """A client that follows a task gets its output up to the limit, and the number of dropped bytes."""
    daemon({'output': {'max_output': '10', 'to': 'discard'}}).wait_ready()
    done = leat('run', 'echo 12345678901234567890')
    assert (done.returncode, done.stdout) == (0, '1234567890')
    assert '11 bytes of output lost' in done.stderr


# ---- rate

def test_rate(daemon, queue):
    """A task that writes faster than the rate waits, and no byte is lost."""
    worker = daemon({'output': {'rate': '50K'}, **ONCE}).wait_ready()
    [tid] = queue.add({'command': "line=$(head -c 900 /dev/zero | tr '\\0' x); "
                                  'for i in $(seq 200); do echo $line$i; done; exit 1'})
    [letter] = wait_letters(queue)
    [(_, _, begun, ended, _, _)] = letter.lines()
    # the burst of the first second, and what the pipe holds at the end, cost no time
    assert ended - begun > (200 - 50 - 64 - 10) * 1000 // 50
    worker.wait_log('; dead-lettered')
    assert [line.lstrip('x') for line in lines_of(worker, tid)] == [str(i) for i in range(1, 201)]


def test_rate_is_for_one_task(daemon, queue, late):
    """While many tasks write without end, others run, leases of 4 s are renewed in time, and the daemon stays
    small."""
    noisy = 8
    worker = daemon({'queue': {'lease': '4s', 'concurrency': noisy + 1},
                     'task': {'kill_grace': '200ms'}, **ONCE}).wait_ready()
    queue.add({'command': 'true'})
    wait_succeeded(queue, 1)
    largest = before = resident_kib(worker.pid)
    queue.add(*[{'command': 'exec yes' if i % 2 else 'exec cat /dev/zero', 'timeout': '3s'}
                for i in range(noisy)])
    wait_until(lambda: queue.redis.hlen(queue.running) == noisy)
    others = 0

    def over():
        nonlocal largest, others
        largest = max(largest, resident_kib(worker.pid))
        for row in queue.redis.execute_command('XPENDING', queue.stream, queue.group, '-', '+', 20):
            assert row[2] < 3000 + 1000 * late.start(), f'not renewed for {row[2]} ms'
        if queue.counter('succeeded') == 1 + others and not letters(queue):
            queue.add({'command': 'true'})
            others += 1
        return len(letters(queue)) == noisy

    wait_until(over)
    assert {letter.cause for letter in letters(queue)} == {'timeout'}
    assert others >= 2
    assert is_sanitized() or largest < before + 8 * 1024, f'{before} KiB before, {largest} then'
    wait_succeeded(queue, 1 + others)
    assert queue.counter('crashes') == queue.counter('fenced') == 0


def test_rate_without_the_log(daemon, queue):
    """Discarded output has no rate: much of it is read at full speed."""
    worker = daemon({'output': {'to': 'discard', 'rate': '1K'}, **ONCE}).wait_ready()
    before = resident_kib(worker.pid)
    queue.add({'command': 'yes | head -c 200M; exit 1'})
    [letter] = wait_letters(queue)
    assert letter.tail('stdout') == b'y\n' * 2048
    assert is_sanitized() or resident_kib(worker.pid) < before + 8 * 1024


def test_rate_and_a_stop(daemon, queue, client):
    """A task that is slowed down ends like any other, also at a stop."""
    worker = daemon({'output': {'rate': '1K'}, 'shutdown': {'drain': '100ms'}}).wait_ready()
    queue.add({'command': 'exec yes'})
    wait_until(lambda: 'stream=stdout' in worker.log())
    worker.terminate()
    assert worker.wait_exit() == 0
    assert client.hlen(queue.running) == 0 and 'returned to the queue' in worker.log()


# ---- destination

def test_discard_without_tails(daemon, queue, folder):
    """With to = discard and output_tail = 0 tasks write to /dev/null itself."""
    worker = daemon({'output': {'to': 'discard'}, 'dead': {'output_tail': 0}}).wait_ready()
    queue.add({'command': 'out=$(readlink /proc/$$/fd/1) err=$(readlink /proc/$$/fd/2); echo x; echo y >&2; '
                          f'echo $out $err > {folder}/links'})
    wait_succeeded(queue, 1)
    assert (folder / 'links').read_text() == '/dev/null /dev/null\n'
    assert 'stream=' not in worker.log()


def test_inherit(daemon, queue, folder):
    """With to = inherit tasks write directly to the daemon's own stdout and stderr."""
    with open(folder / 'out', 'wb') as out, open(folder / 'err', 'wb') as err:
        worker = daemon({'output': {'to': 'inherit'}, **ONCE}, start=False)
        worker.popen = {'stdout': out, 'stderr': err}
        worker.start()
    queue.add({'command': "printf 'a\\033b'; echo bad >&2; exit 1"})
    [letter] = wait_letters(queue)
    assert letter.tail('stdout') == letter.tail('stderr') == b''
    assert wait_file(folder / 'out') == b'a\033b'
    assert b'\nbad\n' in wait_file(folder / 'err') and b'stream=' not in wait_file(folder / 'err')


def test_inherit_closed_descriptors(daemon, queue, folder):
    """If the daemon was started without stdin, stdout and stderr, tasks get none of the descriptors that it
    opens instead."""
    worker = daemon({'output': {'to': 'inherit'}, **ONCE}, start=False)
    worker.prefix = ['sh', '-c', 'exec "$@" <&- >&- 2>&-', 'sh']
    worker.start()
    queue.add({'command': f'echo out; echo bad >&2; cd /proc/$$/fd; '
                          f'all=$(readlink 0 1 2); echo $all > {folder}/links'})
    wait_succeeded(queue, 1)
    assert (folder / 'links').read_text().split() == ['/dev/null'] * 3


def test_inherit_and_a_limit(daemon, queue, folder):
    """The output of a task with its own limit is still read, and its lines are records."""
    worker = daemon({'output': {'to': 'inherit', 'at_max': 'kill'}, **ONCE}).wait_ready()
    [tid] = queue.add({'command': 'seq 1000', 'max_output': '1K'})
    assert wait_letters(queue)[0].cause == 'output-limit'
    worker.wait_log('; dead-lettered')
    assert lines_of(worker, tid)[:3] == ['1', '2', '3']


def test_inherit_and_run(daemon, queue, leat):
    """leat run prints the output of its task, even if others inherit."""
    daemon({'output': {'to': 'inherit'}}).wait_ready()
    done = leat('run', 'echo seen; echo told >&2')
    assert (done.returncode, done.stdout, done.stderr) == (0, 'seen\n', 'told\n')


def test_inherit_cannot_be_limited(leat, folder):
    """A configuration with limits on output that is not read is refused, with the line."""
    done = leat('status', config={'output': {'to': 'inherit', 'max_output': '1M', 'rate': '1M'}})
    assert done.returncode == os.EX_CONFIG
    assert ':17: max_output: has no effect with to = inherit' in done.stderr
    assert ':18: rate: has no effect with to = inherit' in done.stderr
