"""leat on a terminal, as a person sees it."""
import codecs
import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from harness import processes
from harness.daemon import program, write_config
from harness.queue import LIBRARY


class Terminal:
    """A program on a terminal of the given size; `seen` is all that it wrote."""

    def __init__(self, argv, rows=24, columns=80, **env):
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        environment = {**os.environ, 'TERM': 'xterm', 'LC_ALL': 'C.UTF-8', **env}
        self.process = processes.start(argv, stdin=slave, stdout=slave, stderr=slave,
                                       env=environment, start_new_session=True)
        os.close(slave)
        os.set_blocking(self.master, False)
        self.seen = ''
        self._decoder = codecs.getincrementaldecoder('utf-8')()  # a read may end within a character

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def read(self):
        """Reads all that it wrote until now. One call of read(2) returns a few kilobytes at most."""
        with contextlib.suppress(OSError):
            while data := os.read(self.master, 1 << 20):
                self.seen += self._decoder.decode(data)
        return self.seen

    def close(self):
        processes.end(self.process)
        os.close(self.master)


@pytest.fixture
def terminal(folder, base_config):
    """A function that runs leat on a terminal; source is where its configuration is."""
    made = []
    path = write_config(folder / 'terminal.ini', base_config)

    def start(*args, source=('-c', str(path)), **options):
        made.append(Terminal([program('leat'), *source, *args], **options))
        return made[-1]

    yield start
    for one in made:
        one.close()


def finished(terminal, wait_until):
    wait_until(lambda: (terminal.read(), terminal.process.poll() is not None)[1], 120, terminal.read)
    return terminal.read().replace('\r\n', '\n')


@pytest.mark.parametrize('columns', [40, 60, 80, 200])
def test_tables_fit(terminal, queue, wait_until, columns):
    """No line of a table is wider than the terminal, also with wide characters."""
    queue.register('a-host-with-a-rather-long-name.example.com:123:abc')
    queue.add(*[{'command': 'convert 日本語のファイル名.png ' + 'x' * 300} for _ in range(3)])
    text = finished(terminal('list', '--state', 'ready', columns=columns, NO_COLOR='1'), wait_until)
    assert '\x1b' not in text and '...' in text
    for line in text.splitlines():
        width = sum(2 if ord(letter) > 0x2e80 else 1 for letter in line)
        assert width <= max(columns, 58), line


def test_explanations_fit(terminal, queue, wait_until):
    """leat explain wraps long reasons, and colours its verdict."""
    [tid] = queue.add({'command': 'true'})
    queue.gate('paused', 1, 'alice@a-host-with-a-rather-long-name.example.com')
    text = finished(terminal('explain', tid, columns=60), wait_until)
    assert f'task {tid}: \x1b[31mblocked\x1b[0m\n' in text
    lines = re.sub('\x1b\\[\\d*m', '', text).splitlines()
    assert len(lines) > 3 and all(len(line) <= 60 for line in lines), lines


@pytest.fixture
def etc(folder, base_config):
    """A folder in place of /etc/leat with some queues, one of which cannot be reached."""
    place = folder / 'etc'
    place.mkdir()
    for name in ('emails', 'a-queue-with-a-rather-long-name', 'thumbs'):
        write_config(place / f'{name}.ini', {**base_config, 'queue': {'name': name}})
    write_config(place / 'gone.ini', {'redis': {'socket': f'{place}/none'}, 'queue': {'name': 'gone'}})
    return place


@pytest.mark.parametrize('columns', [40, 60, 80, 200])
def test_all_queues_fit(terminal, etc, queue, wait_until, columns):
    """No line of the overview is wider than the terminal; a narrow terminal shows fewer columns."""
    queue.add(*[{'command': 'true'} for _ in range(12)])
    one = terminal('status', source=(), columns=columns, NO_COLOR='1', LEAT_CONFIG_DIR=str(etc))
    text = finished(one, wait_until)
    assert all(len(line) <= columns for line in text.splitlines()), text
    titles = text.splitlines()[0].split()
    assert ('DELAYED' in titles) == (columns >= 80) and {'QUEUE', 'STATE', 'READY', 'DEAD'} <= set(titles)
    assert re.search(r'^emails +unhealthy +12 ', text, re.M) and re.search(r'^gone +unreachable  con', text, re.M)


def fill(queue):
    """Adds tasks with long texts in every state, with ids of the longest kind."""
    host = 'a-host-with-a-rather-long-name.example.com:12345:abcdef'
    queue.register(host, history=1000)
    task = {'command': '/usr/local/bin/convert --resize 日本語のファイル名.png ' + 'x' * 300, 'id': 'order-' + '1' * 60,
            'lane': 'customer-1234567890', 'width': '100', 'payload': '{"a": 1}' * 30}
    other = {'command': task['command'], 'payload': task['payload']}
    for i in range(4):
        queue.add({**task, 'id': f'{i}' * 70}, due='1')
    queue.add(other, other, {**other, 'unique': 'k' * 60}, other)
    tasks = queue.begin(host, 6)
    queue.finish(host, tasks[0], 'dead', cause='cannot-execute', status='127', stderr='line\n' * 3 + 'y' * 300,
                 reason='No such file or directory: ' + 'z' * 200)
    queue.finish(host, tasks[1], 'retry', cause='timeout', status='SIGKILL', delay=60000)
    queue.add(task, due='+60000')
    queue.conf_set('lane:customer-1234567890', '12.5, 100, 1000/s, 50')
    queue.redis.hset(queue.conf, 'drain:web2', f'{queue.now()} someone@a-long-name-of-a-host.example.com')
    return tasks[0].tid


@pytest.mark.parametrize('columns', [60, 80])
def test_nothing_wraps(terminal, queue, wait_until, columns):
    """No line of any page is wider than a terminal of 60 columns; what names a task is always there."""
    dead = fill(queue)
    pages = (['status'], ['status', '--lanes'], ['status', '--max-dead', '0', '--max-oldest', '1ms'], ['list'],
             ['list', '--limit', '1'], ['dead', 'list'], ['dead', 'show', dead], ['show', dead], ['wait', dead],
             ['list', '--state', 'done'], ['report'], ['report', '--by', 'command'], ['doctor'])
    seen = {}
    for page in pages:
        for env in ({'NO_COLOR': '1'}, {}):
            text = finished(terminal(*page, columns=columns, **env), wait_until)
            for line in re.sub('\x1b\\[[0-9;]*m', '', text.split('\r\x1b[K')[-1]).splitlines():
                width = sum(2 if ord(letter) > 0x2e80 else 1 for letter in line)
                assert width <= columns, (page, line)
            seen[' '.join(page)] = text
    # the id of a task that waited first has 34 characters, which leaves no room for a label in 60
    listed = 'ID STATE COMMAND' + (' LABEL' if columns >= 80 else '')
    for page, titles in (('list', listed), ('dead list', 'ID CAUSE COMMAND'),
                         ('status', 'HOST STATE BUSY FAILED'), ('status --lanes', 'LANE WAITING RUNNING')):
        assert set(titles.split()) <= set(re.sub('\x1b\\[[0-9;]*m', ' ', seen[page]).split()), seen[page]
    assert all(dead in seen[page] for page in ('dead list', 'list', f'show {dead}', f'wait {dead}'))


@pytest.mark.parametrize('args', [['conf'], ['wait', '--all'], ['help', 'ini', 'queue.max_length']])
def test_sentences_fit(terminal, queue, wait_until, args):
    """Long sentences on stdout are broken, too."""
    text = finished(terminal(*args, columns=60, NO_COLOR='1'), wait_until).split('\r\x1b[K')[-1]
    assert len(text) > 60 and all(len(line) <= 60 for line in text.splitlines()), text


def test_all_queues_are_watched(terminal, etc, queue, redis_server, wait_until):
    """--watch draws the overview again, also while queues cannot be reached."""
    watch = terminal('status', '--watch', '100ms', source=(), LEAT_CONFIG_DIR=str(etc))
    wait_until(lambda: 'emails' in watch.read(), 10, watch.read)
    queue.add({'command': 'true'})
    queue.register('w1:1:a')
    wait_until(lambda: '\x1b[32mhealthy' in watch.read(), 10, watch.read)
    redis_server.kill()
    wait_until(lambda: watch.read().split('\x1b[H\x1b[J')[-1].count('unreachable') == 4, 10, watch.read)


def test_colours(terminal, queue, wait_until):
    """A terminal gets colours, but not with NO_COLOR or TERM=dumb."""
    assert '\x1b[31m' in finished(terminal('status'), wait_until)
    assert '\x1b' not in finished(terminal('status', NO_COLOR='1'), wait_until)
    assert '\x1b' not in finished(terminal('status', TERM='dumb'), wait_until)


def is_pending(pid, number):
    """Whether the process has a pending signal of this number."""
    status = Path(f'/proc/{pid}/status').read_text()
    return bool(int(re.search(r'^ShdPnd:\s*(\w+)', status, re.MULTILINE)[1], 16) >> number - 1 & 1)


def test_watch(terminal, queue, redis_server, wait_until):
    """--watch draws again by itself, at once if the window changes, and survives a restart of Redis."""
    watch = terminal('status', '--watch', '100ms', rows=8)
    wait_until(lambda: 'ready                0' in watch.read(), 10, watch.read)
    queue.add({'command': 'true'})
    wait_until(lambda: 'ready                1' in watch.read(), 10, watch.read)
    assert all(page.count('\n') <= 7 for page in watch.read().split('\x1b[H\x1b[J'))

    redis_server.kill()
    wait_until(lambda: 'cannot' in watch.read(), 10, watch.read)
    redis_server.restart()
    seen = len(watch.read())
    wait_until(lambda: 'ready                0' in watch.read()[seen:], 10, watch.read)

    slow = terminal('status', '--watch=60')
    wait_until(lambda: 'ready' in slow.read() and 'lease' in slow.read(), 10, slow.read)
    slow.resize(30, 100)
    slow.process.send_signal(signal.SIGWINCH)
    wait_until(lambda: slow.read().count('\x1b[H') >= 2, 10, slow.read)

    # the window may also change while a page is being made
    redis_server.stop()
    slow.process.send_signal(signal.SIGWINCH)
    wait_until(lambda: not is_pending(slow.process.pid, signal.SIGWINCH), 10)
    pages = slow.read().count('\x1b[H')
    slow.process.send_signal(signal.SIGWINCH)
    redis_server.cont()
    wait_until(lambda: slow.read().count('\x1b[H') >= pages + 2, 10, slow.read)
    assert slow.process.poll() is None
    slow.process.send_signal(signal.SIGINT)
    wait_until(lambda: slow.process.poll() is not None, 10)
    assert slow.process.returncode == -signal.SIGINT


def test_dead_retry_shows_its_progress(terminal, queue, wait_until):
    """leat dead retry shows a bar on stderr for many dead letters, gone at the end, and none for few."""
    pipe = queue.redis.pipeline(transaction=False)
    for i in range(60000):
        pipe.execute_command('XADD', queue.dead, '*', 'command', 'x', 'leat.tid', f'{i + 1}-1',
                             'leat.fields', '1')
    pipe.execute()
    text = finished(terminal('dead', 'retry', '--command', 'x'), wait_until)
    assert re.search(r'\[#+ *\] +[0-9]+%  [0-9]+ tasks, [0-9]+/s', text)
    assert text.endswith('\r\x1b[Kretried 60000 dead letters\n')

    def drop_one():
        queue.redis.execute_command('XADD', queue.dead, '*', 'command', 'x')
        text = finished(terminal('dead', 'drop', '--all', '--yes'), wait_until)
        assert text.endswith('dropped 1 dead letter\n')
        return text
    # on a busy machine a few take long, too
    wait_until(lambda: '%' not in drop_one())


def test_wait_shows_progress(terminal, queue, wait_until):
    """leat wait --all shows how much is done and left, the rate and the remaining time, within the width of
    the terminal; the line is gone at the end."""
    queue.register('w1')
    queue.add(*[{'command': 'x'}] * 40)
    wait = terminal('wait', '--all', columns=70)
    narrow = terminal('wait', '--all', columns=30)
    wait_until(lambda: '40 left (40 ready, 0 running, 0 r' in wait.read(), 20, wait.read)
    wait_until(lambda: ' 0%' in narrow.read(), 20, narrow.read)
    for task in queue.begin('w1', 10):
        queue.finish('w1', task)
    wait_until(lambda: re.search(r'] +25%  30 left, [\d.]+/s, about \w+ \(', wait.read()), 20, wait.read)
    wait_until(lambda: ' 25%' in narrow.read(), 20, narrow.read)
    for task in queue.begin('w1', 30):
        queue.finish('w1', task)
    for one, columns in ((wait, 70), (narrow, 30)):
        text = finished(one, wait_until)
        said = ' '.join(text.split('\r\x1b[K')[-1].split())
        assert said == 'empty: 40 succeeded, 0 dead, 0 cancelled meanwhile; 0 delayed'
        assert all(len(line) < columns for line in text.split('\r\x1b[K')[:-1])
        assert one.process.returncode == 0


def test_wait_estimates(terminal, queue, wait_until):
    """The remaining time follows from the number of tasks and the rate."""
    queue.register('w1')
    queue.add(*[{'command': 'x'}] * 500)
    wait = terminal('wait', '--all', columns=200)
    wait_until(lambda: '500 left' in wait.read(), 20, wait.read)
    for at in range(4):
        for task in queue.begin('w1', 50):
            queue.finish('w1', task)
        wait_until(lambda: f' {450 - 50 * at} left' in wait.read(), 20, wait.read)
    left, rate, about = re.findall(r'(\d+) left, ([\d.]+)/s, about (\w+) \(', wait.read())[-1]
    seconds = sum(float(number) * {'ms': 0.001, 's': 1, 'm': 60}[unit]
                  for number, unit in re.findall(r'(\d+)(ms|s|m)', about))
    assert abs(seconds - int(left) / float(rate)) < 1.1 + 0.05 * seconds


def test_watch_into_a_pipe(leat, folder, base_config, queue):
    """With --json each round prints one line."""
    path = write_config(folder / 'pipe.ini', base_config)
    argv = [program('leat'), '-c', str(path), 'status', '--json', '--watch', '100ms']
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith(b'{"queue"')
        assert process.stdout.readline().startswith(b'{"queue"')
        process.stdout.close()
        assert process.wait(120) == 74


def test_a_hostile_server(leat, queue):
    """What a server says is escaped, also where leat's own functions say only numbers and words."""
    source = LIBRARY.read_text()
    for text in "'total_enqueued'", 'new and leat.add_task(q, item, follows) or holder':
        assert text in source
        source = source.replace(text, f"({text}) .. '\\27[31m\\n'")
    queue.load(source)
    leat('enqueue', 'true')
    for args in (['enqueue', 'true'], ['status']):
        done = leat(*args)
        assert done.returncode in (0, 1) and r'\x1b[31m\n' in done.stdout and '\x1b' not in done.stdout, done


def test_control_characters_in_json(leat, queue):
    """They are escaped in JSON, too, and come back from it."""
    odd = ''.join(map(chr, [*range(1, 32), *range(127, 160)])) + '\u202e'
    [tid] = queue.add({'command': 'true', 'label\x7f': odd})
    shown = leat('show', '--json', tid).stdout
    assert shown.isascii() and '\x7f' not in shown
    assert {'name': 'label\x7f', 'value': odd} in json.loads(shown)['fields']


def test_errors_without_utf8(leat):
    """On a terminal that does not know UTF-8, a byte of a character in a message is no control character: for some
    terminals, the second one of this letter begins an escape sequence."""
    letter, escaped = 'ě', r'\xc4\x9b'
    assert letter in leat(letter, env={'LC_ALL': 'C.UTF-8'}).stderr
    done = leat(letter, env={'LC_ALL': 'C'})
    assert escaped in done.stderr and letter not in done.stderr
