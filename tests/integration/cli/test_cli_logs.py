"""leat logs: output of tasks from the journal and from files, and what leat says if there is none."""
import json
import os
import re
import shutil
import subprocess
import time

import pytest

from harness.daemon import ROOT, program, run_leat, write_config
from harness.functions.history import record
from harness.polling import wait_until
from harness.short_leases import pass_time, wait_empty
from harness.tasks import wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')
ODD = b'\x1b[2Jred \xff\xfe \xc3\xbc\tx\r \x7f'
HOST = os.uname().nodename
LAG_S = 1.9  # a little less than leat logs -f waits for the record of an end
DROPPED = re.search(r'LOG_ID_LOG_DROPPED "(\w+)"', (ROOT / 'src/base/log/log_ids.h').read_text())[1]


@pytest.fixture
def worker(daemon, journal):
    """A function that starts a daemon with the test's journal: worker(sections)."""
    def start(sections=None, **options):
        one = daemon(sections, start=False, **options)
        one.prefix = journal.prefix
        return one.start()
    return start


@pytest.fixture
def journalled(base_config):
    base_config['log'] = {'target': 'journal'}


@pytest.fixture
def logs(leat, journal):
    """A function that runs leat logs on the test's journal."""
    def run(*args, **options):
        return leat('logs', '-D', journal.path, *args, **options)
    return run


def wait_records(journal, tid, event, count=1):
    return journal.wait(f'LEAT_TASK={tid}', f'LEAT_EVENT={event}', count=count)


# ---- from the journal

@pytest.mark.usefixtures('journalled')
def test_lines_of_all_attempts(worker, queue, journal, logs):
    """leat prints the lines of all attempts, or of one, in their order, and stdout and stderr apart."""
    worker({'retry': {'max_attempts': 2}})
    [tid] = queue.add({'command': 'echo out $LEAT_ATTEMPT; echo err $LEAT_ATTEMPT >&2; exit 1'})
    [other] = queue.add({'command': 'echo other'})
    wait_letters(queue)
    wait_records(journal, tid, 'dead')
    wait_records(journal, other, 'succeeded')
    done = logs(tid)
    assert (done.returncode, done.stdout, done.stderr) == (0, 'out 1\nout 2\n', 'err 1\nerr 2\n')
    done = logs('--attempt', 2, tid)
    assert (done.returncode, done.stdout, done.stderr) == (0, 'out 2\n', 'err 2\n')
    assert logs(other).stdout == 'other\n'


def test_libsystemd_cannot_be_loaded(logs, folder):
    """libsystemd is loaded for the journal: if it cannot be, leat says so."""
    (folder / 'libsystemd.so.0').write_bytes(b'')
    done = logs('1-0', env={'LD_LIBRARY_PATH': str(folder)})
    assert done.returncode == 66 and 'libsystemd cannot be loaded' in done.stderr


@pytest.mark.usefixtures('journalled')
def test_bytes_are_as_written(worker, queue, journal, folder, logs):
    """The output in a pipe is byte for byte what the task wrote, long lines too; in the journal it is one
    value, even if it looks like other fields."""
    worker({'output': {'max_line': 100}})
    lines = [ODD, b'', b'a\0b', b'MESSAGE=forged\0', b'x' * 1000, b'LEAT_TASK=1-0', b'PRIORITY=0', b'<0>urgent',
             b'MESSAGE\n\x06\0\0\0\0\0\0\0forged', b'last without end']
    (folder / 'text').write_bytes(b'\n'.join(lines))
    [tid] = queue.add({'command': f'cat {folder}/text'})
    wait_records(journal, tid, 'succeeded')
    done = logs(tid, input=b'')
    assert done.returncode == 0
    assert done.stdout == b'\n'.join(lines) + b'\n' and done.stderr == b''
    records = wait_records(journal, tid, 'output')
    assert {record['PRIORITY'] for record in records} == {b'6'}
    assert {record['LEAT_TASK'] for record in records} == {tid.encode()}
    assert not journal.read('LEAT_TASK=1-0') and not journal.read('MESSAGE=forged')
    assert len([record for record in records if record.get('LEAT_CUT') == b'1']) == 9


@pytest.mark.usefixtures('journalled')
def test_a_slow_journal(worker, queue, journal, logs):
    """A journal that is slower than the tasks makes them wait, and loses neither their lines nor the daemon's
    records."""
    worker({'output': {'rate': 'none'}})
    tids = queue.add(*[{'command': 'seq 2000; seq 2000 >&2'}] * 3)
    wait_succeeded(queue, 3)
    for tid in tids:
        wait_records(journal, tid, 'succeeded')
        done = logs(tid)
        assert done.stdout.split() == done.stderr.split() == [str(i) for i in range(1, 2001)]
    assert not journal.read(f'MESSAGE_ID={DROPPED}')


@pytest.mark.usefixtures('journalled')
def test_a_journal_that_stands_still(worker, queue, folder, journal, logs):
    """The last lines of a task that has ended are not lost if the journal takes them late, and leatd had no time
    to read them before."""
    one = worker({'output': {'rate': 'none'}})
    queue.add({'command': 'true'})
    wait_succeeded(queue, 1)
    journal.goes_on.clear()
    [tid] = queue.add({'command': f'touch {folder}/begun; exec seq -f %0999g 60'})
    wait_until(lambda: (folder / 'begun').exists() and not one.descendants())
    one.stop()
    journal.goes_on.set()
    pass_time(1)
    wait_until(journal.is_read)
    journal.goes_on.clear()
    one.cont()
    wait_until(lambda: not journal.is_read())
    journal.goes_on.set()
    wait_records(journal, tid, 'succeeded')
    assert [int(line) for line in logs(tid).stdout.split()] == [*range(1, 61)]


@pytest.mark.usefixtures('journalled')
def test_last_lines(worker, queue, journal, logs):
    """-n N prints the last N lines, all if there are fewer, and none for 0."""
    worker()
    [tid] = queue.add({'command': 'seq 5'})
    wait_records(journal, tid, 'succeeded')
    assert logs('-n', 2, tid).stdout == '4\n5\n'
    assert logs('-n', 5, tid).stdout == logs('-n', 99, tid).stdout == '1\n2\n3\n4\n5\n'
    done = logs('-n', 0, tid)
    assert (done.returncode, done.stdout) == (0, '')


@pytest.mark.usefixtures('journalled')
def test_times_and_json(worker, queue, journal, logs):
    """With -t each line begins with time, attempt and stream; with --json it is an object."""
    worker()
    [tid] = queue.add({'command': r"echo out; printf '\377\n' >&2"})
    wait_records(journal, tid, 'succeeded')
    lines = sorted(logs('-t', tid, input=b'').stdout.splitlines(), key=lambda line: b'err |' in line)
    assert re.fullmatch(rb'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} 1 out \| out', lines[0])
    assert re.fullmatch(rb'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} 1 err \| \xff', lines[1])
    done = [json.loads(line) for line in logs('--json', tid).stdout.splitlines()]
    done.sort(key=lambda line: line['stream'], reverse=True)
    assert [sorted(line) for line in done] == [['attempt', 'host', 'line', 'stream', 'time_us'],
                                               ['attempt', 'host', 'line_base64', 'stream', 'time_us']]
    assert done[0]['line'] == 'out' and done[1]['line_base64'] == '/w==' and done[0]['host'] == 'here'


@pytest.mark.usefixtures('journalled')
def test_by_label(worker, queue, journal, logs):
    """A label finds its task while the task exists, and afterwards the newest one in the journal."""
    worker()
    queue.add({'command': 'echo old', 'id': 'order 17'})
    wait_succeeded(queue, 1)
    [tid] = queue.add({'command': 'echo new', 'id': 'order 17'})
    wait_records(journal, tid, 'succeeded')
    assert logs('order 17').stdout == 'new\n'
    [dead] = queue.add({'command': 'echo dies; exit 1', 'id': 'order 18', 'max_attempts': '1'})
    wait_records(journal, dead, 'dead')
    assert logs('order 18').stdout == 'dies\n'


def test_the_last_one_with_a_label_ran_elsewhere(queue, journal, logs):
    """A label means the last task that has ended with it, also if this host has output of an earlier one only."""
    journal.add(b'LEAT_QUEUE=emails\nLEAT_TASK=5-0\nLEAT_EVENT=output\nLEAT_STREAM=stdout\nMESSAGE=old\n')
    journal.add(b'LEAT_QUEUE=emails\nLEAT_TASK=5-0\nLEAT_EVENT=succeeded\nLEAT_ID=order 17\n')
    journal.wait(count=2)
    assert logs('order 17').stdout == 'old\n'
    queue.redis.xadd(queue.history, {'r': record('7-0', id='order 17', worker='far.example:1:a')})
    done = logs('order 17')
    assert done.stdout == '' and 'task 7-0: it ran on far.example; run leat logs there' in done.stderr


@pytest.mark.usefixtures('journalled')
def test_by_the_prefix_of_an_ended_task(worker, queue, journal, logs):
    """The first digits of the id of a task that has succeeded are enough, as for one in the queue."""
    worker()
    [tid] = queue.add({'command': 'echo said'})
    wait_records(journal, tid, 'succeeded')
    assert logs(tid.partition('-')[0]).stdout == 'said\n'
    queue.redis.xadd(queue.history, {'r': record('1600000000000-0')})
    queue.redis.xadd(queue.history, {'r': record('1600000000001-0')})
    done = logs('1600000')
    assert done.returncode == os.EX_USAGE and 'several ids begin so' in done.stderr
    assert len(done.stderr.splitlines()) == 1
    journal.add(b'LEAT_QUEUE=emails\nLEAT_TASK=5-0\nLEAT_EVENT=output\nLEAT_STREAM=stdout\nMESSAGE=label\n')
    journal.add(b'LEAT_QUEUE=emails\nLEAT_TASK=5-0\nLEAT_EVENT=succeeded\nLEAT_ID=1600000\n')
    wait_records(journal, '5-0', 'succeeded')
    assert logs('1600000').stdout == 'label\n'


@pytest.mark.usefixtures('journalled')
def test_of_a_batch(worker, queue, journal, logs):
    """The output of a batch's process is printed for each of its tasks. It is that of no attempt of one task."""
    worker({'task': {'command': 'cat; echo all', 'batch': 3, 'batch_wait': '1m'}, 'queue': {'concurrency': 1}})
    tids = queue.add(*[{'payload': word} for word in ('one', 'two', 'three')])
    wait_succeeded(queue, 3)
    for tid in tids:
        wait_records(journal, tid, 'succeeded')
        assert logs(tid).stdout == 'one\ntwo\nthree\nall\n'
    [last] = logs('-t', '-n', '1', tids[0]).stdout.splitlines()
    assert last.split()[2:] == ['-', 'out', '|', 'all']
    [last] = [json.loads(line) for line in logs('--json', '-n', '1', tids[0]).stdout.splitlines()]
    assert sorted(last) == ['host', 'line', 'stream', 'time_us'] and last['stream'] == 'stdout'


@pytest.mark.usefixtures('journalled')
@pytest.mark.parametrize('command, status', [('exit 0', 0), ('exit 1', 0)])
def test_follow(worker, queue, journal, start, latch, command, status):
    """-f prints output as it comes, across a retry, and ends with the task, whatever its outcome."""
    worker({'retry': {'max_attempts': 2}})
    [tid] = queue.add({'command': f'echo begun $LEAT_ATTEMPT; {latch.wait}; echo through; {command}'})
    run = start('logs', '-D', journal.path, '-f', tid)
    wait_until(lambda: b'begun 1\n' in run.raw)
    assert run.running() and b'through' not in run.raw
    latch.open()
    assert run.ended() == status
    expected = b'begun 1\nthrough\n' + (b'begun 2\nthrough\n' if command == 'exit 1' else b'')
    assert run.raw == expected


@pytest.mark.usefixtures('journalled')
def test_follow_while_others_log(worker, client, queue, journal, start, latch):
    """-f waits for the last lines if Redis knows of the end before the journal has them, while others log."""
    polls = []  # (time, whether leat has asked for the task since its end)

    def others_have_logged():
        now = time.monotonic()
        journal.add(b'MESSAGE=other\n')
        calls = client.slowlog_get(10000)
        ends, asks = ([call['id'] for call in calls if name in call['command']]
                      for name in (b' leat_finish ', b' leat_show '))
        polls.append((now, ends and max(asks, default=0) > ends[0]))
        return sum(bool(asked) for _, asked in polls) > 5

    worker()
    [tid] = queue.add({'command': f'echo begun; {latch.wait}; echo last'})
    run = start('logs', '-D', journal.path, '-f', tid)
    wait_until(lambda: b'begun\n' in run.raw)
    journal.goes_on.clear()
    client.config_set('slowlog-max-len', 10000)
    client.config_set('slowlog-log-slower-than', 0)
    others_have_logged()
    latch.open()
    wait_until(others_have_logged)
    journal.goes_on.set()
    wait_records(journal, tid, 'succeeded')
    took_s = time.monotonic() - max(now for now, asked in polls if not asked)
    assert run.ended() == 0 and (run.raw == b'begun\nlast\n' or took_s > LAG_S)


@pytest.mark.usefixtures('journalled')
def test_follow_a_waiting_task(worker, queue, journal, start, leat):
    """-f prints a waiting task's output from its start, and ends if the task is cancelled first."""
    leat('pause')
    first, second = queue.add({'command': 'echo first'}, {'command': 'echo second'})
    runs = [start('logs', '-D', journal.path, '-f', tid) for tid in (first, second)]
    worker()
    assert leat('cancel', second).returncode == 0
    assert runs[1].ended() == 1
    assert leat('resume').returncode == 0
    assert runs[0].ended() == 0 and runs[0].raw == b'first\n'


@pytest.mark.usefixtures('journalled')
def test_without_redis(worker, queue, journal, logs, folder):
    """Without Redis, leat prints the journal and says what is missing."""
    worker()
    [tid] = queue.add({'command': 'echo x'})
    wait_records(journal, tid, 'succeeded')
    nowhere = {'redis': {'socket': folder / 'nowhere', 'connect_timeout': '200ms'}}
    done = logs(tid, config=nowhere)
    assert (done.returncode, done.stdout) == (0, 'x\n') and 'cannot ask Redis about the task' in done.stderr
    assert logs('-f', tid, config=nowhere).stdout == 'x\n'


def on_terminal(tmp, *argv):
    """The output of the program on a terminal, through script(1)."""
    line = ' '.join(f"'{word}'" for word in map(str, argv))
    done = subprocess.run(['script', '-qec', line, '/dev/null'], capture_output=True, check=False,
                          stdin=subprocess.DEVNULL, cwd=tmp,
                          env=dict(os.environ, TERM='xterm', LC_ALL='C.UTF-8'))
    return done.stdout.replace(b'\r\n', b'\n')


@pytest.mark.usefixtures('journalled')
def test_on_a_terminal(worker, queue, journal, folder, leat):
    """Output of a task cannot control the terminal; stderr is coloured, and each further attempt has a
    heading."""
    one = worker({'retry': {'max_attempts': 2}})
    (folder / 'text').write_bytes(ODD + b'\n')
    [tid] = queue.add({'command': f'cat {folder}/text; cat {folder}/text >&2; exit 1'})
    wait_records(journal, tid, 'dead')
    shown = on_terminal(folder, program('leat'), '-c', one.config_path, 'logs', '-D', journal.path, tid)
    line = '\\x1b[2Jred \\xff\\xfe ü\\tx\\r \\x7f'.encode()
    assert shown.count(line + b'\n') >= 2 and b'\x1b[2J' not in shown and b'\r' not in shown
    assert b'\x1b[33m' + line in shown
    assert shown.count(b'-- attempt 2 on here --') == 1 and b'attempt 1' not in shown


def test_other_queues_and_other_records(journal, logs, queue):
    """Lines of another queue, of other programs that notify, and records that are no output are not printed."""
    def add(**fields):
        fields = dict({'LEAT_QUEUE': 'emails', 'LEAT_TASK': '5-0', 'LEAT_ATTEMPT': '1', 'LEAT_EVENT': 'output',
                       'LEAT_STREAM': 'stdout', 'MESSAGE': 'shown'}, **fields)
        journal.add(''.join(f'{name}={value}\n' for name, value in fields.items()).encode())
    add()
    add(LEAT_QUEUE='others', MESSAGE='no')
    add(LEAT_EVENT='notify-output', MESSAGE='no')
    add(LEAT_EVENT='retry', MESSAGE='no')
    add(LEAT_TASK='6-0', MESSAGE='no')
    add(LEAT_EVENT='check-output', MESSAGE='too')
    journal.wait(count=6)
    assert logs('5-0').stdout == 'shown\ntoo\n'


def test_forged_records(journal, folder, base_config):
    """Only records of leatd are believed: the program beside leat, in the queue's unit or run by root, and in no
    cgroup of a task. This holds for lines, for labels, and for the lines of batches."""
    leatd = os.path.realpath(program('leatd'))
    unit = {'_UID': '999', '_SYSTEMD_UNIT': 'leatd@emails.service'}
    cgroup = '/leat.slice/leatd@emails.service/{}'.format
    senders = {
        'of the unit': unit, 'of its daemon': {**unit, '_SYSTEMD_CGROUP': cgroup('daemon')}, 'of root': {},
        'another program': {**unit, '_EXE': '/usr/bin/logger'}, 'a copy': {**unit, '_EXE': '/tmp/leatd'},
        'of root, another program': {'_EXE': '/usr/bin/logger'},
        'another unit': {**unit, '_SYSTEMD_UNIT': 'leatd@others.service'},
        'a session': {**unit, '_SYSTEMD_UNIT': 'session-1.scope'}, 'no unit': {'_UID': '999'},
        'of a task': {**unit, '_SYSTEMD_CGROUP': cgroup('tasks/0')},
        'of a task after upgrades': {**unit, '_SYSTEMD_CGROUP': cgroup('tasks.12/0/own')}}

    def add(sender, **fields):
        fields = {'LEAT_QUEUE': 'emails', 'LEAT_EVENT': 'output', 'LEAT_STREAM': 'stdout', **fields}
        text = ''.join(f'{name}={value}\n' for name, value in fields.items())
        journal.add(text.encode(), **{'_EXE': leatd, **sender})
    for name, sender in senders.items():
        add(sender, LEAT_TASK='5-0', MESSAGE=name)
        add(sender, LEAT_BATCH_ID='8-0', MESSAGE=f'{name}, in a batch')
    add(unit, LEAT_TASK='5-0', LEAT_EVENT='succeeded', LEAT_BATCH_ID='8-0', LEAT_ID='label')
    add({'_UID': '999'}, LEAT_TASK='7-0', LEAT_EVENT='succeeded', LEAT_ID='label')
    add(unit, LEAT_TASK='7-0', MESSAGE='not the label')
    journal.wait(count=2 * len(senders) + 3)
    believed = ['of the unit', 'of its daemon', 'of root']
    lines = [line for name in believed for line in (name, f'{name}, in a batch')]
    path = write_config(folder / 'emails.ini', base_config)
    done = run_leat(path, 'logs', '-D', journal.path, 'label', env={'LEAT_CONFIG_DIR': str(folder)})
    assert done.stdout.splitlines() == lines
    # without a file in that folder the unit is not known, so any service may be the worker's
    done = run_leat(path, 'logs', '-D', journal.path, '5-0')
    assert [line for line in done.stdout.splitlines() if ',' not in line] == [*believed, 'another unit']


# ---- no output

def test_no_output(logs, queue, leat, journal):
    """leat says why there is no output: the task is unknown, or has not started; and where it has run."""
    [tid] = queue.add({'command': 'true'})
    done = logs(tid)
    assert (done.returncode, done.stdout) == (1, '')
    assert f'{journal.path} has no output of task {tid}: it has not started' in done.stderr
    for unknown in '99-0', '1795402935053-90000000000000000009':
        done = logs(unknown)
        assert done.returncode == 1
        assert 'it has written nothing, ran on another host, or does not exist' in done.stderr
    done = logs()
    assert done.returncode == os.EX_USAGE
    done = leat('logs', '-D', '/nowhere', tid)
    assert done.returncode == os.EX_NOINPUT and '/nowhere' in done.stderr
    assert logs('-n', 'x', tid).returncode == os.EX_USAGE


def test_where_it_ran(daemon, queue, logs):
    """For a task that ran on another host, leat says so; for one that ran here, that it wrote nothing."""
    daemon({'retry': {'max_attempts': 1}, 'output': {'to': 'discard'}}).wait_ready()
    [tid] = queue.add({'command': 'exit 1'})
    wait_letters(queue)
    wait_empty(queue)
    assert 'it has written nothing yet, or its output was removed' in logs(tid).stderr
    assert 'or its output is not kept; see [output] to' in logs(tid, config={'output': {'to': 'discard'}}).stderr
    [(entry, fields)] = queue.entries('dead')
    elsewhere = [field.replace(HOST.encode() + b':', b'far.example:') for field in fields]
    queue.redis.xdel(queue.dead, entry)
    queue.redis.execute_command('XADD', queue.dead, '*', *elsewhere)
    queue.forget_index()
    done = logs(tid)
    assert done.returncode == 1 and 'it ran on far.example; run leat logs there' in done.stderr
    [tid] = queue.add({'command': 'true', 'result_ttl': '1h'})
    wait_succeeded(queue, 1)
    assert 'it has written nothing yet, or its output was removed' in logs(tid).stderr


def test_where_a_success_without_a_result_ran(daemon, queue, logs):
    """For a task that the history of the queue knows, leat says where it ran, and which attempt was its last."""
    daemon({'output': {'to': 'discard'}}).wait_ready()
    [tid] = queue.add({'command': 'true'})
    wait_succeeded(queue, 1)
    assert 'it has written nothing yet, or its output was removed' in logs(tid).stderr
    assert logs('--attempt', 2, tid).stderr == f'leat: task {tid} has no attempt 2: its last one is attempt 1\n'
    queue.redis.xadd(queue.history, {'r': record('1600000000000-0', worker='far.example:1:a')})
    done = logs('1600000000000-0')
    assert done.returncode == 1 and 'it ran on far.example; run leat logs there' in done.stderr


@pytest.mark.usefixtures('journalled')
def test_no_such_attempt(worker, queue, journal, logs, latch):
    """For an attempt that the task has not had, leat names the last one; an attempt may have written nothing."""
    worker({'retry': {'max_attempts': 2}})
    [tid] = queue.add({'command': 'if [ $LEAT_ATTEMPT = 1 ]; then echo first; fi; exit 1'})
    wait_letters(queue)
    wait_records(journal, tid, 'dead')
    done = logs('--attempt', 3, tid)
    assert (done.returncode, done.stdout) == (1, '')
    assert done.stderr == f'leat: task {tid} has no attempt 3: its last one is attempt 2\n'
    done = logs('--attempt', 2, tid)
    assert done.returncode == 1 and f'has no output of attempt 2 of task {tid}: it has written' in done.stderr
    [tid] = queue.add({'command': latch.command})
    wait_until(lambda: queue.redis.hlen(queue.running) == 1)
    assert f'task {tid} has no attempt 2: its last one is attempt 1' in logs('--attempt', 2, tid).stderr
    latch.open()
    [tid] = queue.add({'command': 'true', 'result_ttl': '1h'})
    wait_succeeded(queue, 2)
    assert f'task {tid} has no attempt 2: its last one is attempt 1' in logs('--attempt', 2, tid).stderr


def test_this_host_s_journal(leat, queue):
    """Without -D leat reads this host's journal, or says that there is none or that it must not read it."""
    done = leat('logs', '99-0')
    assert done.returncode in (1, os.EX_NOPERM)
    assert 'no output of task 99-0' in done.stderr or 'permission denied' in done.stderr


def test_no_journal(daemon, queue, folder, base_config):
    """On a host without a journal, the one message about a task that ran here says so, and not that the task has
    written nothing."""
    script = 'for d in /var/log/journal /run/log/journal; do [ ! -d $d ] || mount -t tmpfs none $d || exit; done'
    hidden = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script + '; exec "$@"', 'sh']
    if not shutil.which('unshare') or subprocess.run([*hidden, 'true'], check=False).returncode:
        pytest.skip('cannot hide the journal of this host')
    daemon()
    [tid] = queue.add({'command': 'echo out', 'result_ttl': '1h'})
    wait_succeeded(queue, 1)
    path = write_config(folder / 'queue.ini', base_config)
    done = subprocess.run([*hidden, program('leat'), '-c', path, 'logs', tid], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stderr) == (
        1, f'leat: this host has no output of task {tid}: there is no journal here; use -D for a folder with '
        'journal files\n')


# ---- from files

@pytest.fixture
def files(folder, base_config):
    base_config['output'] = {'to': 'file', 'directory': folder / 'files'}
    return folder / 'files'


def test_file(daemon, queue, files, leat, folder):
    """Output in files is printed byte for byte."""
    daemon({'retry': {'max_attempts': 2}}).wait_ready()
    (folder / 'text').write_bytes(ODD + b'\n\0\n\nend')
    [tid] = queue.add({'command': f'cat {folder}/text; exit 1'})
    wait_letters(queue)
    text = ODD + b'\n\0\n\nend'
    assert leat('logs', tid, input=b'').stdout == text + text
    for lines, expected in ((1, b'end'), (2, b'\nend'), (3, b'\0\n\nend'), (4, b'end' + text), (99, text + text)):
        got = leat('logs', '-n', lines, tid, input=b'').stdout
        assert got == expected, lines
    rows = [json.loads(line) for line in leat('logs', '--json', '-n', 2, tid).stdout.splitlines()]
    assert rows == [{'line': ''}, {'line': 'end', 'cut': True}]


@pytest.mark.usefixtures('journalled')
def test_file_by_label(worker, queue, journal, files, folder):
    """A label finds the file after the task's end, by the dead letter in Redis or by this host's journal."""
    one = worker()
    queue.add({'command': 'echo old', 'id': 'order 17'})
    wait_succeeded(queue, 1)
    [tid] = queue.add({'command': 'echo new', 'id': 'order 17'})
    [dead] = queue.add({'command': 'echo dies; exit 1', 'id': 'order 18', 'max_attempts': '1'})
    wait_records(journal, tid, 'succeeded')
    wait_records(journal, dead, 'dead')
    for label, text in ('order 17', 'new\n'), ('order 18', 'dies\n'):
        done = journal.run(program('leat'), '-c', one.config_path, 'logs', label)
        assert (done.stdout, done.stderr) == (text, '')
    done = journal.run(program('leat'), '-c', one.config_path, 'logs', 'order 19')
    assert done.returncode == 1 and 'use the id of the task' in done.stderr


def test_file_by_the_label_of_a_dead_letter(daemon, queue, files, leat):
    """Without a journal, Redis still knows the labels of dead letters, and the newest one is meant."""
    daemon({'retry': {'max_attempts': 1}}).wait_ready()
    for count in (1, 2):
        queue.add({'command': f'echo dies {count}; exit 1', 'id': 'order 20'})
        wait_letters(queue, count)
    assert leat('logs', 'order 20').stdout == 'dies 2\n'
    done = leat('logs', 'order 21')
    assert done.returncode == 1 and 'use the id of the task' in done.stderr


@pytest.mark.parametrize('label', ['order 22', '2026-11'])
def test_file_by_the_label_of_a_success(daemon, queue, files, leat, label):
    """Without a journal, the history of the queue has the labels of tasks that succeeded, and the newest one is
    meant, also if an older one is a dead letter."""
    daemon({'retry': {'max_attempts': 1}}).wait_ready()
    queue.add({'command': 'echo dies; exit 1', 'id': label})
    wait_letters(queue, 1)
    for count in (1, 2):
        queue.add({'command': f'echo done {count}', 'id': label})
        wait_succeeded(queue, count)
    assert leat('logs', label).stdout == 'done 2\n'
    queue.redis.delete(queue.stats.replace(':stats', ':history'))
    assert leat('logs', label).stdout == 'dies\n'
    done = leat('logs', 'order 23')
    assert done.returncode == 1 and 'its history' in done.stderr


def test_no_file(daemon, queue, files, leat, folder):
    """If there is no file, the message names the folder, and does not ask for a journal."""
    daemon().wait_ready()
    [tid] = queue.add({'command': 'true'})
    wait_succeeded(queue, 1)
    done = leat('logs', tid)
    assert done.returncode == 1 and f"{folder / 'files'} has no output of task {tid}: " in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_file_has_no_times(daemon, queue, files, leat):
    """leat says which options need the journal."""
    daemon().wait_ready()
    [tid] = queue.add({'command': 'echo x'})
    wait_succeeded(queue, 1)
    for option in (['-t'], ['--attempt', '1']):
        done = leat('logs', *option, tid)
        assert done.returncode == os.EX_USAGE and '--times and --attempt need the journal' in done.stderr


def test_follow_file(daemon, queue, files, start, latch):
    """-f follows the file, also before it exists, until the task has ended."""
    [tid] = queue.add({'command': f'{latch.wait}; printf a; echo b; printf c'})
    run = start('logs', '-f', tid)
    daemon().wait_ready()
    wait_until(lambda: queue.redis.hlen(queue.running) == 1)
    assert run.running()
    latch.open()
    assert run.ended() == 0 and run.raw == b'ab\nc'


@pytest.mark.parametrize('begun', [True, False])
def test_follow_file_over_a_broken_connection(daemon, queue, files, start, latch, proxy, through_proxy, begun):
    """-f notices the task's end and a new file although Redis was away in between."""
    [tid] = queue.add({'command': f'{"echo a;" if begun else ""} {latch.wait}; echo b'})
    run = start('logs', '-f', tid, config=through_proxy)
    daemon().wait_ready()
    wait_until(lambda: queue.redis.hlen(queue.running) == 1 and (not begun or run.raw == b'a\n'))
    wait_until(lambda: any(b'leat_show' in command for one in list(proxy.connections)
                           for command in list(one.answered)))
    proxy.refuse()
    run.wait_error('cannot')
    proxy.accept()
    latch.open()
    assert run.ended() == 0 and run.raw == (b'a\nb\n' if begun else b'b\n')


def test_long_file(daemon, queue, files, leat):
    """The last lines of a long file are found from its end."""
    daemon({'output': {'rate': 'none'}}).wait_ready()
    [tid] = queue.add({'command': 'seq 200000'})
    wait_succeeded(queue, 1)
    assert leat('logs', '-n', 3, tid).stdout == '199998\n199999\n200000\n'
    assert leat('logs', '-n', 50000, tid).stdout == ''.join(f'{i}\n' for i in range(150001, 200001))


def test_file_on_a_terminal(daemon, queue, files, folder):
    """A file's bytes cannot control a terminal either."""
    one = daemon().wait_ready()
    (folder / 'text').write_bytes(ODD)
    [tid] = queue.add({'command': f'cat {folder}/text'})
    wait_succeeded(queue, 1)
    shown = on_terminal(folder, program('leat'), '-c', one.config_path, 'logs', tid)
    assert b'\\x1b[2Jred \\xff\\xfe ' in shown and b'\x1b' not in shown and shown.endswith(b'\n')


@pytest.mark.parametrize('kind', ['fifo', 'link'])
def test_planted_file(queue, files, leat, kind):
    """A fifo or link in place of the file neither blocks leat nor leads it elsewhere."""
    [tid] = queue.add({'command': 'true'})
    files.mkdir()
    path = files / f'{tid}.log'
    path.symlink_to('/etc/passwd') if kind == 'link' else os.mkfifo(path)
    done = leat('logs', tid)
    assert done.returncode != 0 and done.stdout == ''
