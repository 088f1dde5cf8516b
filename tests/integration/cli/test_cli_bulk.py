"""leat enqueue --file: many tasks at once."""
import array
import base64
import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import termios
import threading

import pytest

from harness.daemon import ROOT, program, write_config

EX_DATAERR, EX_NOINPUT, EX_UNAVAILABLE, EX_IOERR, EX_TEMPFAIL = 65, 66, 69, 74, 75


def commands(queue):
    return [dict(zip(fields[::2], fields[1::2]))[b'command'].decode()
            for _, fields in queue.entries('stream')]


def payloads(queue):
    return [dict(zip(fields[::2], fields[1::2])).get(b'payload') for _, fields in
            queue.entries('stream')]


def test_lines_in_order(leat, queue, folder):
    """Each line becomes a task, in order, over many batches; the ids come in the same order."""
    lines = [f'echo {i}' for i in range(12345)]
    (folder / 'tasks').write_text('\n'.join(lines))
    done = leat('enqueue', '--file', folder / 'tasks')
    assert done.returncode == 0 and done.stderr == ''
    assert commands(queue) == lines
    assert done.stdout.split() == [id for id, _ in queue.entries('stream')]


def test_common_options_and_empty_lines(leat, queue):
    """Options apply to every task; empty lines are skipped."""
    done = leat('enqueue', '--field', 'X=1', '--delay', '1h', '--file', '-', input='a\n\nb\n')
    assert len(done.stdout.split()) == 2
    rows = queue.list('waiting')
    assert [row['command'] for row in rows] == [b'a', b'b']
    assert b'X' in queue.show(done.stdout.split()[0])['fields']


def test_the_line_that_the_queue_refuses_is_named(leat, queue):
    """If the queue refuses a task, here because it expires before it is due, the error names the line."""
    rows = [{'command': 'a'}, {'command': 'b', 'expires': '1999999999'}]
    text = '\n\n'.join(json.dumps(row) for row in rows)
    done = leat('enqueue', '--json-lines', '--at', '@2000000000', '--file', '-', input=text)
    assert done.returncode == EX_DATAERR and queue.places() == {}
    assert 'lines 1 to 3 were not enqueued: -:3: it expires before it is due' in done.stderr


def test_lines_are_payloads_if_the_command_is_known(leat, queue):
    """If the command is an argument, or in the configuration, a line is the payload; --null separates
    payloads by NUL."""
    leat('enqueue', '--file', '-', '--null', '--', 'cat', '-n', input=b'a\nb\0c\xff\0')
    assert commands(queue) == ['cat -n', 'cat -n'] and payloads(queue) == [b'a\nb', b'c\xff']
    leat('enqueue', '--file', '-', input='x\n', config={'task': {'command': 'cat'}})
    assert payloads(queue)[-1] == b'x'


def test_json_lines(leat, queue):
    """A JSON object gives the fields, and payload_base64 gives bytes; an id that exists already is no error."""
    rows = [{'command': 'a', 'id': 'one', 'X': 'ü\n'}, {'command': 'b', 'id': 'one'},
            {'command': 'c', 'payload_base64': base64.b64encode(b'\0\xff\n').decode()}]
    text = ''.join(json.dumps(row) + '\n' for row in rows)
    done = leat('enqueue', '--json-lines', '--json', '--file', '-', input=text)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer['new'] for answer in answers] == [True, False, True]
    assert answers[0]['tid'] == answers[1]['tid']
    assert commands(queue) == ['a', 'c'] and payloads(queue)[1] == b'\0\xff\n'


@pytest.mark.parametrize('form', [['--json-lines'], ['--as', 'id', '--', 'true']])
def test_json_has_the_label_of_each_line(leat, queue, form):
    """Each printed object has the label that its line gave the task, over several batches."""
    labels = [f'order-{i}' if i % 3 or '--as' in form else '' for i in range(1200)]
    lines = labels if '--as' in form else [json.dumps({'command': 'true', 'id': label}) for label in labels]
    done = leat('enqueue', '--json', '--file', '-', *form, input='\n'.join(lines))
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer.get('id', '') for answer in answers] == labels


@pytest.mark.parametrize('line, said', [
    ('{"command": "x"', 'column'),
    ('["x"]', 'not a JSON object'),
    ('{"command": 1}', 'command is not a string'),
    ('{"command": "x", "command": "y"}', 'duplicate'),
    ('{"command": "x", "payload_base64": "?"}', 'not base64'),
    ('{"command": "x", "payload_base64": "AA=A"}', 'not base64'),
    ('{"command": "x\\u0000y"}', 'NUL'),
    ('{"payload": "x"}', 'no command'),
    ('{"command": "x", "\\u001b[31m": "y"}', '\\x1b[31m'),
])
def test_a_wrong_line_stops_there(leat, queue, line, said):
    """All lines before a wrong one are enqueued, none after it; the error has the file, line and reason."""
    good = [json.dumps({'command': f'echo {i}'}) for i in range(777)]
    text = '\n'.join([*good, line, *good]) + '\n'
    done = leat('enqueue', '--json-lines', '--file', '-', input=text)
    assert done.returncode == EX_DATAERR
    assert '-:778: ' in done.stderr and said in done.stderr and '\x1b' not in done.stderr
    assert '777 tasks enqueued' in done.stderr and 'not sent: line 778 and all after it' in done.stderr
    assert len(done.stdout.split()) == 777 == len(queue.entries('stream'))


def test_full_says_what_is_missing(leat, queue, folder):
    """leat stops at the length limit and names the first line that is not in the queue."""
    queue.register('w1', max_length=1200)
    # a file is read in whole batches, a pipe as it is written
    lines = folder / 'lines'
    lines.write_text(''.join(f'echo {i}\n' for i in range(20000)))
    done = leat('enqueue', '--file', lines)
    assert done.returncode == EX_TEMPFAIL
    assert 'lines 1001 to 1500 were not enqueued' in done.stderr
    assert '1000 tasks enqueued' in done.stderr and 'not sent: line' in done.stderr
    assert commands(queue) == [f'echo {i}' for i in range(1000)]
    assert len(done.stdout.split()) == 1000


def test_full_names_one_line(leat, queue):
    """A batch of one line is called a line."""
    queue.register('w1', max_length=1)
    assert leat('enqueue', 'true').returncode == 0
    done = leat('enqueue', '--file', '-', input='true\n')
    assert done.returncode == EX_TEMPFAIL
    assert done.stderr.startswith('leat: line 1 was not enqueued: the queue holds')


def test_redis_dies_on_the_way(folder, base_config, queue, redis_server):
    """The answered, the uncertain and the unsent lines add up to all lines."""
    path = write_config(folder / 'x.ini', base_config)
    with subprocess.Popen([program('leat'), '-c', str(path), 'enqueue', '--file', '-'],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        def feed():
            try:
                for i in range(2000000):
                    process.stdin.write(f'echo {i}\n')
                process.stdin.close()
            except BrokenPipeError:
                pass

        feeder = threading.Thread(target=feed)
        feeder.start()
        answered = [process.stdout.readline() for _ in range(2000)]
        redis_server.kill()
        answered += process.stdout.read().splitlines()
        stderr = process.stderr.read()
        assert process.wait(120) == EX_UNAVAILABLE
        feeder.join()
        process.stdin = None
    assert 'may or may not be in the queue' in stderr
    assert f'{len(answered)} tasks enqueued' in stderr and 'not sent: line' in stderr


def test_redis_dies_before_a_slow_writer_goes_on(folder, base_config, queue, redis_server):
    """Redis's answer to every line that was sent is known, and the rest is reported as not sent."""
    path = write_config(folder / 'x.ini', base_config)
    with subprocess.Popen([program('leat'), '-c', str(path), 'enqueue', '--file', '-'],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, bufsize=1) as process:
        process.stdin.write('echo 1\n')
        assert process.stdout.readline()
        redis_server.kill()
        process.stdin.write('echo 2\n')
        process.stdin.close()
        process.stdin = None
        stderr = process.stderr.read()
        assert process.wait(30) == EX_UNAVAILABLE
    assert '1 task enqueued' in stderr
    assert 'line 2 may or may not be in the queue' in stderr or 'not sent: line 2 and' in stderr


def test_stopped_output_stops_the_rest(folder, base_config, queue):
    """If ids cannot be written, leat says how much was enqueued and exits with 74."""
    path = write_config(folder / 'x.ini', base_config)
    lines = ''.join(f'echo {i}\n' for i in range(50000))
    with open('/dev/full', 'w', encoding='ascii') as full:
        done = subprocess.run([program('leat'), '-c', str(path), 'enqueue', '--file', '-'],
                              input=lines, stdout=full, stderr=subprocess.PIPE, text=True,
                              check=False)
    count = len(queue.entries('stream'))
    assert done.returncode == EX_IOERR and count < 50000
    assert done.stderr.count('cannot write the output') == 1
    assert f'{count} tasks enqueued' in done.stderr
    assert f'not sent: line {count + 1} and all after it' in done.stderr


def test_stopped_output_while_waiting_for_more(folder, base_config, queue):
    """The same holds if the writer is slow: lines that have come are sent, and leat says where to go on."""
    path = write_config(folder / 'x.ini', base_config)
    with open('/dev/full', 'w', encoding='ascii') as full:
        with subprocess.Popen([program('leat'), '-c', str(path), 'enqueue', '--file', '-'],
                              stdin=subprocess.PIPE, stdout=full, stderr=subprocess.PIPE,
                              text=True) as process:
            process.stdin.write('echo a\n' * 600)
            process.stdin.flush()
            stderr = process.stderr.read()
            assert process.wait(120) == EX_IOERR
    count = len(queue.entries('stream'))
    assert 0 < count <= 600 and f'{count} tasks enqueued' in stderr
    assert f'not sent: line {count + 1} and all after it' in stderr


def test_interrupt(folder, base_config, queue, wait_until):
    """SIGINT ends the reading; lines that were read are enqueued, and the count is printed."""
    path = write_config(folder / 'x.ini', base_config)
    with subprocess.Popen([program('leat'), '-c', str(path), 'enqueue', '--file', '-'],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        process.stdin.write('echo a\n' * 600)
        process.stdin.flush()
        wait_until(lambda: len(queue.entries('stream')) == 600, 10, 'a waiting leat has sent all')
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
        assert '600 tasks enqueued' in process.stderr.read()
    assert len(queue.entries('stream')) == 600


def test_interrupt_within_a_line(folder, base_config, queue, wait_until):
    """A signal ends the reading, too, if it comes between two parts of a line; the line is not enqueued."""
    path = write_config(folder / 'x.ini', base_config)
    reader, writer = os.pipe()
    with subprocess.Popen([program('leat'), '-c', str(path), 'enqueue', '--file', '-'], stdin=reader,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            os.write(writer, b'echo a\necho')
            unread = array.array('i', [1])
            wait_until(lambda: fcntl.ioctl(reader, termios.FIONREAD, unread) == 0 and unread[0] == 0)
            process.send_signal(signal.SIGSTOP)
            os.write(writer, b' b')
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGCONT)
            assert process.wait(120) == 130
        finally:
            process.kill()
            os.close(reader)
            os.close(writer)
        assert '1 task enqueued' in process.stderr.read()
    assert commands(queue) == ['echo a']


def test_interrupt_with_the_producer(folder, base_config, queue, wait_until):
    """Ctrl-C in a shell also ends the program that writes the lines: its unfinished last line is not enqueued."""
    path = write_config(folder / 'x.ini', base_config)
    with subprocess.Popen([program('leat'), '-c', str(path), 'enqueue', '--file', '-'],
                          stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        process.stdin.write(b'echo a\necho')
        process.stdin.flush()
        wait_until(lambda: len(queue.entries('stream')) == 1, 20, 'the first line is enqueued')
        process.send_signal(signal.SIGINT)
        process.stdin.close()
        assert process.wait(120) == 130
        assert b'1 task enqueued' in process.stderr.read()
    assert commands(queue) == ['echo a']


def cpu_of_a_line(path, folder, size):
    """The CPU time (s) that leat takes to read one line of that many bytes, which workers would refuse."""
    with open(folder / 'line', 'wb') as file:
        file.write(b'x' * size + b'\n')
    with subprocess.Popen([program('leat'), '-c', str(path), 'enqueue', '--file', str(folder / 'line')],
                          stderr=subprocess.PIPE, text=True) as process:
        stderr = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == EX_DATAERR and f'{folder}/line:1: ' in stderr, stderr
    return usage.ru_utime + usage.ru_stime


def test_a_long_line_takes_linear_time(folder, base_config, queue):
    """Eight times as long a line does not take far more than eight times as long."""
    path = write_config(folder / 'x.ini', base_config)
    short, long = (cpu_of_a_line(path, folder, mib << 20) for mib in (8, 64))
    assert long < 25 * short


def test_a_file_that_is_not_there(leat, queue):
    """A missing file is named, with exit status 66."""
    done = leat('enqueue', '--file', '/nonexistent/x')
    assert done.returncode == EX_NOINPUT and '/nonexistent/x' in done.stderr


def test_a_folder_is_no_file(leat, queue):
    """A folder instead of a file of tasks is named, with exit status 66; no line is blamed."""
    done = leat('enqueue', '--file', '/')
    assert (done.returncode, done.stderr) == (EX_NOINPUT, 'leat: cannot read /: Is a directory\n')


def test_progress_only_on_a_terminal(folder, base_config, queue):
    """On a terminal stderr gets a bar and a final count; a pipe gets nothing."""
    path = write_config(folder / 'x.ini', base_config)
    (folder / 'tasks').write_text('true\n' * 200000)
    master, slave = pty.openpty()
    argv = [program('leat'), '-c', str(path), 'enqueue', '--quiet', '--file', folder / 'tasks']
    with subprocess.Popen(argv, stderr=slave, stdin=subprocess.DEVNULL) as process:
        os.close(slave)
        shown = b''
        while True:
            try:
                shown += os.read(master, 65536)
            except OSError:
                break
        assert process.wait(120) == 0
    os.close(master)
    assert b'%' in shown and b'tasks, ' in shown
    assert len(queue.entries('stream')) == 200000


def test_lines_become_a_field(leat, queue):
    """With --as each line becomes that field, beside the command and the payload of the other options."""
    done = leat('enqueue', '--file', '-', '--as', 'URL', '--payload', 'p', 'curl "$TASK_URL"', input='a b\nc\n')
    assert (done.returncode, done.stderr) == (0, '')
    tasks = [dict(zip(fields[::2], fields[1::2])) for _, fields in queue.entries('stream')]
    assert tasks == [{b'URL': url, b'command': b'curl "$TASK_URL"', b'payload': b'p'} for url in (b'a b', b'c')]
    leat('enqueue', '--file', '-', '--as', 'command', '--field', 'A=1', input='true\n')
    assert dict(zip(*[iter(queue.entries('stream')[-1][1])] * 2)) == {b'command': b'true', b'A': b'1'}


@pytest.mark.parametrize('page', ['src/cli/man/leat-enqueue.1', '--help'])
def test_the_example_with_odd_lines(leat, folder, page):
    """Others may have written lines of the file. No line chooses the name of a file in the home of tasks."""
    source = (ROOT / page).read_text() if page != '--help' else leat('enqueue', page).stdout
    [line] = re.findall(r'leat enqueue --file urls.txt --as URL (.*)', source)
    home, others = folder / 'home', folder / 'others'
    home.mkdir()
    others.mkdir()
    (others / '.forward').write_text('"|id"')
    (home / 'fetch').write_text('#!/bin/sh\nprintf %s "$TASK_URL" >got\n')
    (home / 'fetch').chmod(0o755)
    url = f'file://{others}/.forward'
    subprocess.run(['sh', '-c', f'eval {line}'], cwd=home, env={**os.environ, 'TASK_URL': url}, check=True)
    assert sorted(path.name for path in home.iterdir()) == ['fetch', 'got']
    assert (home / 'got').read_text() == url


@pytest.mark.parametrize('args, code, said', [
    (['--as', 'URL', 'x'], 64, '--as needs --file'),
    (['--file', '-', '--json-lines', '--as', 'URL', 'x'], 64, 'without --json-lines'),
    (['--file', '-', '--as', 'URL'], 64, 'missing operand'),
    (['--file', '-', '--as', 'URL', '--field', 'URL=1', 'x'], 64, 'twice'),
    (['--file', '-', '--as', 'payload', '--payload', '1', 'x'], 64, 'twice'),
    (['--file', '-', '--as', 'a-b', 'x'], 65, 'a-b'),
])
def test_wrong_uses_of_as(leat, queue, args, code, said):
    """--as that cannot mean anything is refused, and nothing is enqueued."""
    done = leat('enqueue', *args, input='1\n')
    assert done.returncode == code and said in done.stderr and queue.places() == {}, done.stderr
