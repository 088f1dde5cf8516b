"""leat top in a real terminal: it shows what the other commands tell, and does what they do."""
import json
import os
import re
import signal
import subprocess

import pytest

from harness import processes
from harness.daemon import ROOT, program, run_leat, write_config
from harness.functions.history import record
from harness.polling import wait_until
from harness.servers.acl import acl_text
from harness.tmux import Tmux

EVIL = b'\x1b]0;owned\x07\x1b[2J\x1b[31m\xe2\x80\xae\xff\r\nnext\x9b1m'
TITLES = ['QUEUE', 'STATE', 'READY', 'RUNNING', 'DELAYED', 'DEAD', 'WORKERS', 'OLDEST', 'RATE']


@pytest.fixture
def terminals(request, folder):
    """A function that runs a command in a terminal: terminals(argv, columns=80, …)."""
    made = []

    def start(*argv, **options):
        made.append(Tmux(folder / f'tmux-{len(made)}', argv, **options))
        return made[-1]

    yield start
    for one in made:
        if getattr(request.node, 'leat_failed', False):
            print('---- the terminal', one.seen(), sep='\n')
        one.close()


@pytest.fixture
def top(terminals, folder, base_config):
    """A function that runs leat top for the queue emails: top(config={…}, columns=80, …)."""
    def start(config=None, **options):
        path = write_config(folder / 'top.ini', {**base_config, **(config or {})})
        return terminals(program('leat'), '-c', path, 'top', **options)
    return start


@pytest.fixture
def files(base_config, folder):
    """Output of tasks goes to files, which leat logs reads."""
    base_config['output'] = {'to': 'file', 'directory': str(folder / 'output')}


@pytest.fixture
def worker(daemon, base_config):
    """A worker for two tasks, of which none is retried."""
    base_config['retry'] = {'max_attempts': 1}
    base_config['task'] = {'kill_grace': '300ms'}
    return daemon({'queue': {'concurrency': 2}}).wait_ready()


def task_of(queue, **fields):
    [tid] = queue.add(fields)
    return tid


# ---- what it shows

def test_queues_at_a_glance(terminals, folder, redis_server, queue):
    """The first screen has a line for each queue with the numbers of leat status --json, and the reason if a queue
    cannot be read. Enter opens a queue, and Esc goes back."""
    etc = folder / 'etc'
    etc.mkdir()
    for name, server in (('emails', redis_server.socket), ('gone', folder / 'none')):
        write_config(etc / f'{name}.ini', {'redis': {'socket': str(server)}, 'queue': {'name': name}})
    (etc / 'wrong.ini').write_text('[queue]\nlease = soon\n')
    queue.register('w1:1:a')
    queue.add(*[{'command': 'true'} for _ in range(14)])
    queue.add({'command': 'later'}, due='+600000')
    first, *_ = queue.begin('w1:1:a', 3)
    queue.finish('w1:1:a', first, 'dead', cause='exit', status='3', reason='exit 3')
    screen = terminals(program('leat'), 'top', columns=100, LEAT_CONFIG_DIR=str(etc))
    told = subprocess.run([program('leat'), 'status', '--json'], capture_output=True, text=True, check=False,
                          env={**os.environ, 'LEAT_CONFIG_DIR': str(etc)}, timeout=120)
    status = {one['queue']: one for one in json.loads(told.stdout)}
    figures = status['emails']['figures']
    assert [figures[name] for name in ('ready', 'running', 'delayed', 'dead')] == [11, 2, 1, 1]

    def are_shown():
        cells = {row[0]: row[1:] for row in screen.rows('QUEUE')}
        emails, gone, wrong = (cells.get(name, []) for name in ('emails', 'gone', 'wrong'))
        return emails[:6] == ['healthy', '11', '2', '1', '1', '1'] and gone[:1] == ['unreachable'] \
            and wrong[:1] == ['invalid'] and 'lease' in ' '.join(wrong)
    wait_until(are_shown, message=screen.seen)
    screen.press('j', 'k', 'Enter').wait('[Running 2]', 'ready 11', 'oldest ready', 'emails  healthy')
    screen.press('Escape').wait('gone')
    screen.press('j', 'Enter').wait('gone  unreachable', '! ')
    screen.press('q').wait('leat top: 3 queues')
    screen.press('q')
    assert screen.ended() == (0, '')


def test_lists_of_a_queue(top, queue, leat):
    """A queue has its running and waiting tasks, workers, lanes and dead letters, with the numbers of leat
    status."""
    queue.register('w1:7:a', heartbeat=json.dumps({'host': 'w1', 'pid': 7, 'slots': 4, 'capacity': 4,
                                                   'state': 'running', 'succeeded': 17}))
    tids = queue.add({'command': 'first one', 'id': 'order-17'}, {'command': 'second one'},
                     {'command': 'third one'})
    _, two = queue.begin('w1:7:a', 2)
    queue.add({'command': 'in a lane', 'lane': 'alice'}, {'command': 'in a lane', 'lane': 'alice'})
    queue.finish('w1:7:a', two, 'dead', cause='exit', status='3', reason='no such picture')
    screen = top(columns=120)
    shown = screen.wait('[Running 1]', 'order-17', 'first one')
    assert tids[0] in shown and tids[1] not in shown
    screen.press('Tab').wait('[Waiting 3]', 'third one', 'in a lane')
    screen.wait_rows('ID', lambda rows: [row[-3:] for row in rows if 'alice' in row] == [['in', 'a', 'lane']] * 2)
    screen.press('3').wait('[Workers 1]', 'BUSY')
    screen.wait_rows('HOST', lambda rows: rows[0][:6] == ['w1', '7', 'running', '1/4', '17', '-'])
    screen.press('Right').wait('[Lanes', 'SETTINGS')
    screen.wait_rows('LANE', lambda rows: rows[0][:3] == ['alice', '2', '0'])
    screen.press('5').wait('[Dead 1]', 'exit 3', 'no such picture', tids[1])
    screen.press('Left').wait('[Lanes')
    screen.press('5', 'Enter').wait(f'dead letter {tids[1]}', 'no such picture', 'attempts that ended')
    screen.press('3').wait('[Why]', 'dead')
    queue.gate('paused', 1, 'alice@web1')
    screen.press('q').wait('PAUSED', 'by alice@web1')
    assert json.loads(leat('status', '--json').stdout)['paused'] is True


def test_the_rate_limit(top, queue, leat):
    """The rate of the queue is shown if it has one."""
    queue.register('w1:7:a', rate='')
    screen = top()
    assert 'limited' not in screen.wait('[Running 0]')
    assert leat('conf', 'rate', '20/s').returncode == 0
    screen.wait('limited to 20/s')
    assert leat('conf', 'rate', 'none').returncode == 0
    screen.wait_not('limited')


def test_ended_tasks(top, queue, leat):
    """The last list has the tasks that ended last, the newest one first. It is sorted and filtered like the
    others. Enter shows what leat show tells. A task that has ended is not cancelled. A new end appears."""
    queue.register('w1:7:a', history=1000)
    now = queue.now()
    for number in range(25):
        queue.redis.xadd(queue.history, {'r': record(
            f'{now - 9000}-{number}', id=f'order-{number}', command=f'convert {number}', worker='web1:7:a',
            duration_us=str(number * 1000000), lane='alice')}, id=f'{now - 5000 + number}-0')
    queue.redis.xadd(queue.history, {'r': record(f'{now - 9000}-25', outcome='dead', cause='exit', status='3',
                                                 reason='no such picture', command='convert 25', attempts='5')})
    screen = top(columns=140, rows=30)
    screen.wait('[Running 0]', 'Dead 0  Ended')
    screen.press('6').wait('[Ended]', 'dead: exit 3', 'convert 6', 'the last 20; leat list --state done shows all')
    told = [row['tid'] for row in json.loads(leat('list', '--state', 'done', '--json').stdout)]
    assert told == [f'{now - 9000}-{n}' for n in range(25, 5, -1)]
    screen.wait_rows('ID', lambda rows: [row[0] for row in rows[:20]] == told)
    screen.wait_rows('ID', lambda rows: len(rows) > 1 and [word for word in rows[1] if word != 'ago'][3:] ==
                     ['succeeded', '1', '24s', 'web1', 'alice', 'convert', '24'])
    screen.press('c').wait('the task has ended')
    screen.press('Enter').wait(f'ended task {now - 9000}-25', 'outcome   dead', 'no such picture')
    screen.press('3').wait('[Why]', 'it ended', 'attempt 5: exit 3')
    screen.press('q').wait('[Ended]')
    for title in ('ID', 'LABEL', 'ENDED', 'END'):
        screen.press('s').wait(f'sorted by {title}')
    screen.wait_rows('ID', lambda rows: rows[0][0] == f'{now - 9000}-25')
    screen.press('S').wait('in reverse')
    screen.wait_rows('ID', lambda rows: rows[19:20] and rows[19][0] == f'{now - 9000}-25')
    screen.press('/', 'order-7').wait('convert 7', '1 with "order-7"')
    screen.press('Escape').wait('convert 6')
    queue.add({'command': 'one more'})
    [task] = queue.begin('w1:7:a', 1)
    queue.finish('w1:7:a', task, history=record(task.tid, command='one more'))
    screen.wait(task.tid, 'one more')


@pytest.mark.usefixtures('files')
def test_live_output(top, worker, queue, latch):
    """The output of a task appears while it writes, without what could control the terminal; then its end."""
    tid = task_of(queue, command=f"printf 'one\\033[2J\\n'; {latch.wait}; echo two")
    screen = top()
    screen.wait('[Running 1]', tid)
    screen.press('Enter').wait(f'task {tid}', 'state     running', '[Details]')
    screen.press('Tab').wait('[Output]', 'one\\x1b[2J')
    screen.wait_not('two')
    latch.open()
    screen.wait('two', '-- end --')
    assert 'one' in screen.seen() and worker.process.poll() is None


def test_filter_and_order(top, queue):
    """/ shows only rows with a text, Esc shows all again, and s sorts by each column in turn, S in reverse."""
    queue.register('w1:1:a')
    tids = queue.add(*[{'command': f'convert {name}'} for name in ('pear', 'apple', 'fig')])
    screen = top()
    screen.press('2').wait('[Waiting 3]', 'pear', 'apple', 'fig')
    screen.press('/', 'APP').wait('filter: APP', 'convert apple')
    screen.wait_not('pear')
    screen.press('Enter').wait('1 with "APP"')
    screen.press('Escape').wait('pear', 'fig')
    for _ in range(7):
        screen.press('s')
    screen.wait('sorted by LANE')
    screen.press('s').wait('sorted by COMMAND')
    wait_until(lambda: [row[-1] for row in screen.rows('ID')[:3]] == ['apple', 'fig', 'pear'], message=screen.seen)
    screen.press('S').wait('in reverse')
    wait_until(lambda: [row[-1] for row in screen.rows('ID')[:3]] == ['pear', 'fig', 'apple'], message=screen.seen)
    screen.press('Enter').wait(f'task {tids[0]}')
    screen.press('q').wait('sorted by COMMAND')
    screen.press('?').wait('drain the worker')
    screen.press('x').wait('sorted by COMMAND')


@pytest.mark.parametrize('columns', [60, 80, 200])
def test_widths(top, queue, columns):
    """Every screen fits into 60 columns and uses what is there. Wide characters and long words are cut."""
    queue.register('a-host-with-a-rather-long-name.example.com:123:abc')
    queue.add(*[{'command': 'convert 日本語のファイル名.png ' + 'x' * 300, 'id': f'label-{i}-' + 'y' * 100,
                 'lane': 'lane-' + 'z' * 100} for i in range(30)])
    queue.begin('a-host-with-a-rather-long-name.example.com:123:abc', 2)
    screen = top(columns=columns, rows=20)
    for tab, title in (('Running', 'ID'), ('Waiting', 'ID'), ('Workers', 'HOST'), ('Lanes', 'LANE')):
        screen.wait(f'[{tab} ', '? help', 'ready 28')
        screen.wait_rows(title, len)
        lines = screen.seen().splitlines()
        widths = [sum(2 if ord(letter) > 0x2e80 else 1 for letter in line) for line in lines]
        assert max(widths) <= columns and len(lines) == 20, screen.seen()
        assert '? help' in lines[-1] and 'ready 28' in screen.seen()
        screen.press('Tab')
    screen.press('2', 'End').wait('[Waiting 28]')
    screen.press('Enter').wait('y' * 50, '[Details]')


@pytest.mark.parametrize('charset', ['C.UTF-8', 'C'])
def test_hostile_bytes(top, queue, charset):
    """No byte of a label, a command, a host, an operator or a lane reaches the terminal as a control character."""
    queue.register('w1:1:a', heartbeat=json.dumps({'host': '\x1b]0;owned\x07w1', 'state': '\x1b[2Jup'}))
    queue.add({'command': b'first ' + EVIL, 'id': b'id' + EVIL, 'payload': EVIL},
              {'command': EVIL, 'lane': b'lane' + EVIL}, {b'NAME' + EVIL: EVIL})
    [first] = queue.begin('w1:1:a', 1)
    queue.finish('w1:1:a', first, 'dead', cause='exit', status=EVIL, reason=b'why ' + EVIL, stderr=EVIL)
    queue.gate('paused', 1, b'by' + EVIL)
    queue.redis.xadd(queue.history, {'r': record('1-0', **{name: EVIL for name in (
        'outcome', 'cause', 'status', 'reason', 'worker', 'id', 'lane', 'command')})})
    screen = top(columns=200, rows=60, LC_ALL=charset)
    title = screen.tell('#{pane_title}')
    for tab in ('Running', 'Waiting', 'Workers', 'Lanes', 'Dead', 'Ended'):
        screen.wait(f'[{tab}', '? help')
        screen.press('Tab')
    screen.press('6').wait('[Ended]', '\\x1b[2J')
    screen.press('5').wait('[Dead 1]')
    screen.wait('\\x1b]0;owned\\x07', 'why \\x1b')
    screen.press('Enter').wait('dead letter', 'end of stderr')
    screen.press('q').wait('[Dead 1]')
    shown = screen.seen()
    assert screen.tell('#{pane_title}') == title != 'owned' and '\u202e' not in shown
    assert shown.splitlines()[0].startswith('emails  ') and 'PAUSED' in shown


def test_colors(top, queue):
    """Colours are used only if the terminal has them and NO_COLOR is not set."""
    queue.register('w1:1:a')
    for number, (env, colored) in enumerate([({}, True), ({'NO_COLOR': '1'}, False)]):
        screen = top(**env)
        screen.wait('emails  healthy')
        assert ('\x1b[32m' in screen.seen(colors=True)) is colored, number


def test_a_terminal_without_colors(top, queue):
    """It works on a terminal that has no colours, and no alternate screen."""
    queue.register('w1:1:a')
    screen = top(TERM='vt100')
    screen.wait('emails  healthy')
    assert not re.search('\x1b\\[3[0-7]m', screen.seen(colors=True))
    screen.press('j', 'q')
    assert screen.ended() == (0, '')


def test_resizing(top, queue):
    """It follows the size of the terminal; below 60 columns it says what it needs."""
    queue.register('w1:1:a')
    queue.add({'command': 'x' * 150})
    screen = top()
    screen.press('2').wait('xxxxx...')
    screen.resize(200, 30)
    screen.wait('x' * 150)
    wait_until(lambda: '? help' in (screen.seen().splitlines() or [''])[-1], message=screen.seen)
    screen.resize(50, 20)
    screen.wait('leat top needs 60 columns')
    screen.resize(60, 12)
    screen.wait('xxxxx...', '? help')
    screen.press('c').wait('cancel task')
    screen.resize(70, 14)
    wait_until(lambda: '(y/n)' in (screen.seen().splitlines() or [''])[-1], message=screen.seen)


def test_the_smallest_terminal(top, queue, leat):
    """A terminal of 10 rows shows tasks below a long head, and all keys."""
    leat('drain', 'some-host')
    leat('conf', 'rate', '5/s')
    queue.add(*[{'command': name} for name in ('first', 'second', 'third')])
    screen = top(columns=60, rows=10)
    screen.press('2').wait('[Waiting 3]')
    screen.wait_rows('ID', lambda rows: [row[-1] for row in rows] == ['first', 'second', 'third'])
    screen.press('?').wait('Space', 'Esc or q', 'Tab', '/: ', 's: ', 'p: ', 'c: ', 'r: ', 'd: ', 'y does',
                           'Ctrl-L', 'to go on')


def test_redis_is_asked_once_a_second(top, queue, client):
    """However many keys are pressed, Redis is asked once a second at most."""
    queue.register('w1:1:a')
    queue.add({'command': 'one'}, {'command': 'two'})
    screen = top()
    screen.wait('[Running 0]')
    client.execute_command('CONFIG', 'RESETSTAT')
    begin = client.time()
    for key in ['2', 'j', 'k', 's', 'S', 'Tab'] * 8:
        screen.press(key)
    screen.press('5').wait('[Dead 0]')  # it has read all of them
    end = client.time()
    calls = client.info('commandstats').get('cmdstat_fcall', {'calls': 0})['calls']
    seconds = end[0] - begin[0] + (end[1] - begin[1]) / 1e6
    # one more for a question that Redis was late to answer
    assert calls <= 9 * (seconds + 2), (calls, seconds)


def test_the_manual_names_the_bounds():
    """leat-top.1 says how many tasks, dead letters, lanes and ended tasks the lists have at most."""
    code = (ROOT / 'src/view/watch/watched.c').read_text()
    rows = {name: int(number) for name, number in re.findall(r'\{"(\w+)", "\w+", "[0+]", (\d+)\}', code)}
    lanes, ended = (int(re.search(rf'#define {name} (\d+)', code)[1]) for name in ('LANES_KEPT', 'ENDED_ROWS'))
    manual = ' '.join((ROOT / 'src/cli/man/leat-top.1').read_text().split())
    assert f'up to {rows["running"]} running tasks' in manual
    assert f'the {rows["dead"]} newest dead letters' in manual and f'the {lanes} longest lanes' in manual
    assert f'the {ended} tasks that ended last' in manual


# ---- what it does

def test_cancel_asks(top, worker, queue, latch, leat):
    """c asks; any key but y changes nothing, and y cancels the task at once."""
    tid = task_of(queue, command=latch.command)
    screen = top()
    screen.wait('[Running 1]', tid)
    screen.press('c').wait(f'cancel task {tid}? (y/n)')
    screen.press('n').wait('nothing was changed')
    assert json.loads(leat('status', '--json').stdout)['figures']['running'] == 1
    screen.press('c').wait('(y/n)')
    screen.press('y').wait('asked at once')
    screen.wait('[Running 0]', 'no task runs')
    assert worker.process.poll() is None and queue.letters() == []


def test_retry_a_dead_letter(top, worker, queue, folder):
    """r retries the selected dead letter, and c does not cancel it."""
    tid = task_of(queue, command=f'cat {folder}/picture')
    screen = top()
    screen.press('5').wait('[Dead 1]', tid)
    screen.press('c').wait('a dead letter cannot be cancelled')
    (folder / 'picture').touch()
    screen.press('r').wait(f'retry dead letter {tid}? (y/n)')
    screen.press('y').wait('retried 1 dead letter')
    screen.wait('[Dead 0]', 'no dead letters')
    assert worker.process.poll() is None


def test_retry_of_one_of_two_names(top, queue):
    """r retries the selected dead letter, although the id of its entry is also that of another task that died."""
    queue.register('w1:1:a')
    for entry, tid in (('5-0', '7-0'), ('7-0', '9-0')):
        queue.redis.xadd(queue.dead, {'command': 'x', 'leat.tid': tid, 'leat.fields': '1'}, id=entry)
    queue.forget_index()
    screen = top()
    screen.press('5').wait('[Dead 2]', '9-0')
    screen.press('r').wait('retry dead letter 9-0? (y/n)')
    screen.press('y').wait('retried 1 dead letter')
    assert queue.places() == {'7-0': ['dead'], '9-0': ['go']}


def test_pause_and_drain(top, worker, queue, leat):
    """p pauses the queue and resumes it, d drains the host of a worker and undrains it, each after y."""
    screen = top(columns=100)
    screen.wait('emails  healthy')

    def status():
        return json.loads(leat('status', '--json').stdout)
    screen.press('p').wait('pause queue emails')
    screen.press('Escape').wait('nothing was changed')
    screen.press('p').wait('(y/n)')
    screen.press('y').wait('PAUSED', 'paused; no task runs')
    assert status()['paused'] is True
    screen.press('p').wait('resume queue emails')
    screen.press('y').wait('resumed')
    screen.wait_not('PAUSED')
    host = os.uname().nodename
    screen.press('3').wait('[Workers 1]', 'BUSY')
    screen.press('d').wait(f'drain {host}')
    screen.press('y').wait(f'drained: {host}')
    assert status()['drained'] == [host]
    screen.press('d').wait('start tasks again')
    screen.press('y')
    wait_until(lambda: status()['drained'] == [] and 'drained: ' not in screen.seen(), message=screen.seen)
    assert worker.process.poll() is None


def test_the_operator_s_user(top, queue, client, base_config):
    """The rights of the operator in leat.acl suffice."""
    for line in acl_text().splitlines():
        if line.startswith('user emails-operator '):
            client.execute_command('ACL', 'SETUSER', *re.findall(r'\([^)]*\)|\S+', line)[1:])
    client.execute_command('ACL', 'LOG', 'RESET')
    queue.register('w1:1:a')
    tid = task_of(queue, command='true')
    screen = top({'redis': {**base_config['redis'], 'user': 'emails-operator', 'password': 'operator'},
                  'queue': {'name': 'emails', 'load_library': 'never'}})
    screen.press('2').wait('[Waiting 1]', tid)
    screen.press('Enter').wait('state     ready')
    screen.press('c').wait('(y/n)')
    screen.press('y').wait('cancelled')
    assert client.execute_command('ACL', 'LOG') == []


# ---- faults

def test_redis_comes_back(top, redis_server, queue):
    """While Redis is away, the reason is shown; when it is back, so are the numbers. Keys work meanwhile."""
    queue.register('w1:1:a')
    queue.add({'command': 'true'})
    screen = top()
    screen.press('2').wait('emails  healthy', '[Waiting 1]')
    redis_server.kill()
    screen.wait('emails  unreachable', '! ')
    screen.press('3').wait('[Workers')
    screen.press('p').wait('(y/n)')
    screen.press('y').wait('cannot connect to Redis')
    redis_server.start()
    queue.load()
    screen.wait('no live worker')
    screen.press('q')
    assert screen.ended() == (0, '')


def test_a_redis_that_hangs(top, redis_server, queue):
    """A Redis that does not answer stops no key."""
    queue.register('w1:1:a')
    screen = top()
    screen.wait('emails  healthy')
    redis_server.stop()
    try:
        screen.press('2').wait('[Waiting')
        screen.wait('emails  unreachable')
        screen.press('q')
        assert screen.ended() == (0, '')
    finally:
        redis_server.cont()


@pytest.mark.parametrize('way', ['q', 'C-c', signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_the_terminal_is_restored(top, queue, way):
    """However it ends, the terminal is as it was before: its settings, its screen and its cursor."""
    queue.register('w1:1:a')
    screen = top()
    screen.wait('emails  healthy')
    assert screen.tell('#{alternate_on} #{cursor_flag}') == '1 0'
    if isinstance(way, str):
        screen.press(way)
    else:
        below = processes.descendants(int(screen.tell('#{pane_pid}')))
        [leat] = [pid for pid in below if processes.name(pid) == 'leat']
        os.kill(leat, way)
    assert screen.ended() == (0, '')
    assert screen.tell('#{alternate_on} #{cursor_flag}') == '0 1'
    assert (screen.folder / 'before').read_text() == (screen.folder / 'after').read_text()


@pytest.mark.usefixtures('files')
def test_a_lost_terminal(top, worker, queue, latch):
    """If the terminal goes away, as with a lost connection, leat top ends, and so does what it has started."""
    tid = task_of(queue, command=f'echo one; {latch.wait}')
    screen = top()
    screen.wait('[Running 1]', tid)
    screen.press('Enter').wait('[Details]')
    screen.press('2')
    shell, below = int(screen.tell('#{pane_pid}')), []

    def has_started():
        below[:] = processes.descendants(shell)
        return len([pid for pid in below if processes.name(pid) == 'leat']) == 2
    # the details have the same text in the command
    wait_until(has_started, message=screen.seen)
    screen.wait('[Output]', 'one')
    screen.run('kill-window')
    wait_until(lambda: not any(processes.alive(pid) for pid in below), message=lambda: below)
    assert worker.process.poll() is None


def test_no_terminal(folder, base_config):
    """Without a terminal that can move its cursor, it says so and exits with 64."""
    path = write_config(folder / 'pipe.ini', base_config)
    done = run_leat(path, 'top')
    assert (done.returncode, done.stdout) == (64, '')
    assert 'stdin and stdout must be a terminal; for programs: leat status --json' in done.stderr


@pytest.mark.parametrize('term', ['dumb', 'no-such-terminal', ''])
def test_a_terminal_that_cannot(top, term):
    """The same on a terminal that cannot move its cursor, or that is not known."""
    status, error = top(TERM=term).ended()
    assert status == 64 and f'cannot use this terminal: TERM={term} ' in error


def test_a_wrong_file(terminals, folder):
    """A configuration that is wrong is an error before the terminal changes."""
    (folder / 'wrong.ini').write_text('[queue]\nname = emails\nlease = soon\n')
    status, error = terminals(program('leat'), '-c', folder / 'wrong.ini', 'top').ended()
    assert status == 78 and 'lease' in error
