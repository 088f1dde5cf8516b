"""Output of tasks on the real daemon: who holds it open, how much there is, and how it is logged."""
import os
import re
import threading

import pytest

from harness import processes
from harness.daemon import is_sanitized
from harness.polling import PATIENCE_S, wait_until
from harness.short_leases import cpu_share, wait_blocked, wait_empty
from harness.tasks import (LINE, letters, open_files, records, resident_kib, wait_file,
                           wait_letters, wait_succeeded)

pytestmark = pytest.mark.usefixtures('quick_tasks')


# ---- grandchildren that hold the output open

HOLDERS = {
    'in the group': 'sleep 60 & echo $! > PID',
    'that ignores signals': '(trap "" TERM HUP INT; exec sleep 60) & echo $! > PID',
    'in a group of its own': "bash -mc 'sleep 60 & echo $! > PID'",
    'in a session of its own': "setsid sh -c 'echo $$ > PID; exec sleep 60' & "
                               'until [ -s PID ]; do sleep 0.01; done',
}


@pytest.mark.parametrize('holder', HOLDERS)
def test_grandchild_holds_output(daemon, queue, folder, late, holder):
    """If a grandchild keeps stdout open, the attempt ends within 1 s of the exit, with all earlier output,
    and no process of the session survives."""
    worker = daemon({'retry': {'max_attempts': 1}}).wait_ready()
    before = open_files(worker.pid)
    line = HOLDERS[holder].replace('PID', f'{folder}/pid')
    queue.add({'command': f'{line}\necho written; exit 3'})
    [letter] = wait_letters(queue)
    [(_, _, begun, ended, _, _)] = letter.lines()
    assert ended - begun < 1000 + 700 + 1000 * late.start()  # including the start
    assert (letter.cause, letter.status, letter.tail('stdout')) == ('exit', '3', b'written\n')
    pid = int((folder / 'pid').read_text())
    if holder != 'in a session of its own':
        assert not processes.alive(pid)
    wait_until(lambda: open_files(worker.pid) == before, message='its descriptors are closed')


def test_grandchild_that_writes_on(daemon, queue, folder, late):
    """A grandchild that left the session and writes without end does not keep the attempt open either."""
    daemon({'retry': {'max_attempts': 1}}).wait_ready()
    queue.add({'command': f"setsid sh -c 'echo > {folder}/up; exec yes' & "
                          f'until [ -e {folder}/up ]; do sleep 0.01; done; sleep 0.2; exit 3'})
    [letter] = wait_letters(queue)
    [(_, _, begun, ended, _, _)] = letter.lines()
    assert ended - begun < 2000 + 1000 * late.start()
    assert len(letter.tail('stdout')) == 4096
    wait_empty(queue)


def test_no_descriptor_growth(daemon, queue, client):
    """After 2,000 tasks, some with a payload, failing, refused or leaving processes behind, the daemon has as
    many descriptors as before, and no zombies."""
    worker = daemon({'queue': {'concurrency': 8}, 'retry': {'max_attempts': 1}}).wait_ready()
    wait_blocked(client)
    before = open_files(worker.pid)
    odd = [{'command': 'cat', 'payload': 'x'}, {'command': 'echo a; exit 1'},
           {'command': 'sleep 60 & exit 0'}, {'command': '/nonexistent', 'y': '1'},
           {'command': 'true', 'timeout': '-'}, {'command': 'echo x >&2'}]
    for _ in range(8):
        queue.add(*[{'command': '/bin/true'}] * 244, *odd)
    wait_until(lambda: queue.counter('succeeded') + queue.counter('dead') == 2000, 120,
               lambda: f'all have run: {queue.redis.hgetall(queue.stats)}')
    wait_blocked(client)
    assert queue.counter('dead') == 24
    wait_until(lambda: open_files(worker.pid) == before, message=lambda:
               f'{before} descriptors before, {open_files(worker.pid)} after')
    assert worker.descendants() == []

    def children():
        """Zombies, too."""
        return sorted(int(pid) for pid in os.listdir('/proc') if pid.isdigit() and parent(pid) == worker.pid)

    wait_until(lambda: children() == sorted(worker.guards()), message=children)


def parent(pid):
    stat = processes._stat(pid)
    return stat[1] if stat else None


# ---- floods

class LogReader(threading.Thread):
    """Reads a daemon's log from a pipe without keeping the output of tasks; `own` has all other lines."""

    def __init__(self, worker):
        super().__init__(daemon=True)
        self.reader, writer = os.pipe()
        worker.popen = {'stdout': writer, 'stderr': writer}
        worker.start()
        os.close(writer)
        self.own, self.output, self.wrong = [], 0, []
        self.start()

    def run(self):
        with os.fdopen(self.reader, 'rb') as log:
            for line in log:
                match = LINE.match(line.decode('utf-8', 'replace').rstrip('\n'))
                if not match:
                    self.wrong.append(line)
                elif re.search(r'\(task=\S+ attempt=\d+ stream=std\w+\)$', match[3]):
                    self.output += 1
                else:
                    self.own.append(match[3])

    def has(self, text):
        return any(text in line for line in self.own)


FLOODS = {
    'lines': 'exec yes',
    'no newline': "yes | tr -d '\\n'",
    'not UTF-8': 'exec cat /dev/urandom',
    'escape sequences': "yes \"$(printf '\\033]0;owned\\007\\033[2J')\"",
    'forged records': "exec yes '2026-11-21T10:00:00.000Z leatd[emails] error: task 1-0: forged "
                      "(task=1-0 attempt=1 cause=exit)'",
    'empty lines': "exec yes ''",
}


@pytest.mark.parametrize('kind', FLOODS)
def test_flood(daemon, queue, client, late, kind):
    """A task writes without end at full speed: the daemon stays small and renews a lease of 4 s in time,
    other tasks go on, and the daemon's own records are neither lost nor forged."""
    seconds = 4
    worker = daemon({'queue': {'lease': '4s', 'concurrency': 2},
                     'task': {'kill_grace': '200ms'}}, start=False)
    flood = LogReader(worker)
    wait_blocked(client)
    queue.add({'command': 'true'})
    wait_succeeded(queue, 1)
    before = resident_kib(worker.pid)

    queue.add({'command': FLOODS[kind], 'timeout': f'{seconds}s', 'max_attempts': 1})
    wait_until(lambda: client.hlen(queue.running) == 1)
    others, largest = [], before

    def over():
        """Quick tasks run one after the other while the flood lasts."""
        nonlocal largest
        largest = max(largest, resident_kib(worker.pid))
        for row in client.execute_command('XPENDING', queue.stream, queue.group, '-', '+', 10):
            assert row[2] < 3000 + 1000 * late.start(), f'not renewed for {row[2]} ms'
        if queue.counter('succeeded') == 1 + len(others) and not letters(queue):
            others.extend(queue.add({'command': 'echo other'}))
        return letters(queue)

    wait_until(over)
    [letter] = letters(queue)
    wait_succeeded(queue, 1 + len(others))
    assert letter.cause == 'timeout' and len(letter.tail('stdout')) == 4096
    assert is_sanitized() or largest < before + 8 * 1024, f'{before} KiB before, {largest} then'
    assert len(others) >= 2  # a busy machine starts few in that time
    assert queue.counter('crashes') == queue.counter('fenced') == 0

    # the log has every own record, and the number of dropped lines
    worker.terminate()
    assert worker.wait_exit() == 0
    flood.join(PATIENCE_S)
    assert flood.wrong == [] and flood.output > 100
    assert all(flood.has(f'task {tid}: attempt 1 succeeded: exit 0') for tid in others)
    assert flood.has(f'task {letter.tid}: attempt 1/1 failed: timeout')
    assert not flood.has('forged') and flood.has('stopped: ')


def test_log_that_is_not_read(daemon, queue, client):
    """If the log is a full pipe, tasks go on, and the number of dropped lines is logged later."""
    worker = daemon({'output': {'rate': 'none'}, 'queue': {'lease': '60s'}}, start=False)
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    worker.popen = {'stdout': writer, 'stderr': writer}
    try:
        worker.start()
        os.close(writer)
        wait_blocked(client)
        queue.add({'command': 'yes | head -c 600000'}, *[{'command': 'echo x'}] * 200)
        wait_succeeded(queue, 201)
        text = b''

        def told():
            nonlocal text
            try:
                text += os.read(reader, 1 << 20)
            except BlockingIOError:
                pass
            return b'log records were dropped' in text

        queue.add({'command': 'true'})
        wait_until(told, message='dropped lines are counted')
    finally:
        os.close(reader)


# ---- log records

def logged(worker, tid):
    """[(priority, message)] of a task's output, without the fields."""
    found = []
    for _, priority, message in records(worker.log()):
        match = re.match(r'^(.*) \(task=(\S+) attempt=(\d+) stream=(std\w+)\)$', message)
        if match and match[2] == tid:
            found.append((match[4], priority, match[1]))
    return found


def run_one(worker, queue, command):
    [tid] = queue.add({'command': command})
    worker.wait_log(f'task {tid}: attempt 1 succeeded: exit 0')
    return tid


def test_lines_are_records(daemon, queue):
    """Each line of stdout and stderr is a record with the task's id, attempt and stream, also a last line
    without a newline."""
    worker = daemon().wait_ready()
    tid = run_one(worker, queue, "echo one; echo; printf 'two \\303\\274\\tx'; echo bad >&2")
    found = logged(worker, tid)
    assert [row[1:] for row in found if row[0] == 'stdout'] == [
        ('info', 'one'), ('info', ''), ('info', 'two ü\\tx')]
    assert [row[1:] for row in found if row[0] == 'stderr'] == [('notice', 'bad')]


def test_forged_output(daemon, queue, folder):
    """Output that looks like a record of leat, or like journal fields, stays one line of that task's output."""
    worker = daemon().wait_ready()
    text = ('LEAT_TASK=1-0\nMESSAGE=forged\nPRIORITY=0\n<0>urgent\n'
            '2026-11-21T10:00:00.000Z leatd[emails] error: task 1-0: dead (task=1-0 attempt=1)\n'
            'x (task=2-0 attempt=9 stream=stdout)\n')
    (folder / 'text').write_text(text)
    tid = run_one(worker, queue, f'cat {folder}/text')
    assert [row[2] for row in logged(worker, tid)] == text.splitlines()
    assert logged(worker, '1-0') == logged(worker, '2-0') == []
    assert {priority for _, priority, message in records(worker.log())
            if 'urgent' in message} == {'info'}


def test_control_characters_are_escaped(daemon, queue, folder):
    """Escape sequences, carriage returns, NUL, invalid UTF-8 and bidirectional controls have no effect on a
    terminal that shows the log."""
    worker = daemon().wait_ready()
    raw = b'\x1b[2J\x1b]0;owned\x07 a\rb \0 \xff\xfe\xc3( \x7f \xc2\x9b31m \xe2\x80\xaeback\n'
    (folder / 'text').write_bytes(raw)
    tid = run_one(worker, queue, f'cat {folder}/text')
    log = worker.log_path.read_bytes()
    for bad in (b'\x1b', b'\x07', b'\r', b'\0', b'\xff', b'\x7f', b'\xc2\x9b', b'\xe2\x80\xae'):
        assert bad not in log
    log.decode()
    assert len(logged(worker, tid)) == 1


def test_long_lines_are_split(daemon, queue):
    """A line longer than max_line becomes several records, and no byte is lost."""
    worker = daemon({'output': {'max_line': 100}}).wait_ready()
    tid = run_one(worker, queue, "seq -s '' 200; echo end")
    found = [row[2] for row in logged(worker, tid)]
    text = ''.join(str(number) for number in range(1, 201))
    assert ''.join(found) == text + 'end' and max(map(len, found)) == 100


def test_discard(daemon, queue):
    """With to = discard no output goes to the log; dead letters still have it."""
    worker = daemon({'output': {'to': 'discard'}, 'retry': {'max_attempts': 1}}).wait_ready()
    queue.add({'command': 'echo secret; exit 1'})
    [letter] = wait_letters(queue)
    assert letter.tail('stdout') == b'secret\n'
    worker.wait_log('; dead-lettered')
    assert 'secret' not in worker.log()


def test_own_device_files(daemon, queue, folder):
    """A task may open /dev/stdout and /dev/stderr by name."""
    worker = daemon().wait_ready()
    tid = run_one(worker, queue, f'echo out > /dev/stdout; echo err > /dev/stderr; touch {folder}/x')
    wait_file(folder / 'x', 0)
    assert sorted(row[2] for row in logged(worker, tid)) == ['err', 'out']


def test_exit_with_output_left(daemon, queue):
    """Output that a task writes just before its exit is complete, however much the pipe held."""
    daemon({'retry': {'max_attempts': 1}, 'dead': {'output_tail': '1M'}}).wait_ready()
    queue.add(*[{'command': f'head -c {size} /dev/zero; exit 1'} for size in (1, 65536, 300000)])
    found = wait_letters(queue, 3)
    assert sorted(len(letter.tail('stdout')) for letter in found) == [1, 65536, 300000]


def test_closed_output(daemon, queue, client, latch):
    """A task that closes its output goes on, and the daemon does not spin meanwhile."""
    worker = daemon().wait_ready()
    [tid] = queue.add({'command': f'exec >&- 2>&-; {latch.command}'})
    wait_until(worker.descendants)
    assert cpu_share(worker.pid, 1) < 0.1
    assert client.hlen(queue.running) == 1
    latch.open()
    worker.wait_log(f'task {tid}: attempt 1 succeeded: exit 0')
    wait_succeeded(queue, 1)


# ---- stdout and stderr as one

MIXED = 'for i in 1 2 3 4 5 6 7 8 9; do echo out$i; echo err$i >&2; done'
IN_ORDER = ''.join(f'out{i}\nerr{i}\n' for i in range(1, 10))


def test_merged_output_keeps_its_order(daemon, queue, leat, client):
    """With merge, log, dead letter, its hook and leat run have the lines in the order in which they were written,
    all as stdout."""
    config = {'output': {'merge': 'yes'}, 'retry': {'max_attempts': '1'}}
    worker = daemon(config).wait_ready()
    [tid] = queue.add({'command': f'{MIXED}; exit 3'})
    [letter] = wait_letters(queue)
    assert (letter.tail('stdout').decode(), letter.tail('stderr')) == (IN_ORDER, b'')
    wait_until(lambda: 'err9' in worker.log(), message='its output is logged')
    assert logged(worker, tid) == [('stdout', 'info', line) for line in IN_ORDER.split()]
    done = leat('run', MIXED)
    assert (done.returncode, done.stdout, done.stderr) == (0, IN_ORDER, '')


def test_merged_output_in_files_and_hooks(daemon, queue, folder):
    """With merge, the file of a task has the order, and the hook gets the end of it on stdin."""
    logs = folder / 'logs'
    daemon({'output': {'merge': 'yes', 'to': 'file', 'directory': str(logs)}, 'retry': {'max_attempts': '1'},
            'dead': {'notify': f'cat > {folder}/in.new; mv {folder}/in.new {folder}/in'}}).wait_ready()
    queue.add({'command': f'{MIXED}; exit 3'})
    wait_until(lambda: (folder / 'in').exists(), message='the hook has run')
    assert (folder / 'in').read_text() == IN_ORDER
    texts = [path.read_text() for path in logs.rglob('*') if path.is_file()]
    assert any(IN_ORDER in text for text in texts), texts
