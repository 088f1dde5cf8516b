"""How resident processes end: by a task, by a fault of their own, or because they are replaced."""
import os
import signal

import pytest

from harness import processes
from harness.batches import add
from harness.daemon import write_config
from harness.polling import wait_until
from harness.short_leases import is_empty, wait_blocked
from harness.tasks import letters, wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')

ONCE = {'retry': {'max_attempts': 1}}

# a worker without a free slot hears of a cancelled or lost task with a heartbeat
SHORT_LEASE = {'queue': {'concurrency': 1, 'lease': '5s'}}


def reload(worker, sections):
    """Gives the worker other keys in these sections."""
    told = worker.log().count('configuration reloaded')
    worker.sections = {**worker.sections, **{name: {**worker.sections.get(name, {}), **values}
                                             for name, values in sections.items() if name != 'task'},
                       'task': sections['task']}
    write_config(worker.config_path, worker.sections)
    worker.reload()
    wait_until(lambda: worker.log().count('configuration reloaded') > told)


# ---- a task ends the process

def test_timeout(daemon, queue, handlers):
    """A timeout ends the process, and another one goes on."""
    daemon({**handlers.config(timeout='2s'), **ONCE}).wait_ready()
    queue.add({'payload': 'hang'}, {'payload': 'ok', 'timeout': '1h'})
    [letter] = wait_letters(queue)
    wait_succeeded(queue, 1)
    assert letter.cause == 'timeout' and len(handlers.up()) >= 2


def test_own_timeout(daemon, queue, handlers):
    """A task's own timeout counts from the moment at which it is handed over."""
    daemon({**handlers.config(timeout='1h'), **ONCE}).wait_ready()
    add(queue, 'ok')
    wait_succeeded(queue, 1)
    queue.add({'payload': 'hang', 'timeout': '2s'})
    assert wait_letters(queue)[0].cause == 'timeout'


def test_timeout_with_others_in_hand(daemon, queue, handlers, folder):
    """The task that ends the process has the cause; the others go back with nothing counted."""
    daemon({**handlers.config(batch=3, timeout='1h'), 'retry': {'max_attempts': 3}}).wait_ready()
    handlers.wait_up(1)
    queue.add({'payload': f'hold {folder}/go;ok', 'timeout': '3s'}, {'payload': 'ok'}, {'payload': 'ok'})
    handlers.wait_records(1)
    wait_until(lambda: len(handlers.up()) >= 2)
    (folder / 'go').touch()
    wait_succeeded(queue, 3)
    assert queue.counter('retried') == 1
    assert {record['attempt'] for record in handlers.records() if 'hold' not in record['fields']['payload']} == {1}


def test_cancel(daemon, queue, handlers, leat):
    """Cancelling a task ends the process that has it."""
    worker = daemon({**handlers.config(timeout='1h', kill_grace='300ms'), **SHORT_LEASE}).wait_ready()
    [tid] = add(queue, 'hang')
    handlers.wait_records(1)
    assert leat('cancel', tid).returncode == 0
    worker.wait_log('cancelled')
    wait_until(lambda: is_empty(queue))
    add(queue, 'ok')
    wait_succeeded(queue, 1)
    assert len(handlers.up()) >= 2 and not letters(queue)


def test_lost_lease(daemon, queue, handlers):
    """If the entry of a task is deleted, the process that has it is killed."""
    daemon({**handlers.config(timeout='1h', kill_grace='300ms'), **SHORT_LEASE}).wait_ready()
    add(queue, 'hang')
    [first] = handlers.wait_records(1)
    [entry] = [row[0] for row in queue.redis.xrange(queue.stream)]
    queue.redis.xdel(queue.stream, entry)
    queue.redis.xack(queue.stream, queue.group, entry)
    wait_until(lambda: not processes.alive(first['pid']))
    add(queue, 'ok')
    handlers.wait_records(2)


@pytest.mark.parametrize('payload, reason', [('end 0', 'exit 0'), ('end 3', 'exit 3'), ('kill', 'SIGKILL')])
def test_no_verdict(daemon, queue, handlers, payload, reason):
    """Without a report a task has failed, whatever the exit status, and a new process goes on."""
    daemon({**handlers.config(), 'retry': {'max_attempts': 2}}).wait_ready()
    add(queue, payload, 'ok')
    [letter] = wait_letters(queue)
    wait_until(lambda: queue.counter('succeeded') == 1)
    assert (letter.cause, letter.attempts) == ('no-verdict', '2') and reason in letter.reason
    handlers.wait_up(3)


LATE = """
import os, signal, sys
folder, report = sys.argv[1:]
def end(*_):
    os.write(3, report.encode() + b'\\n')
    os._exit(0)
signal.signal(signal.SIGTERM, end)
os.write(3, b'ready\\n')
os.read(0, 1000)
open(folder + '/has', 'w').close()
while True:
    signal.pause()
"""


@pytest.mark.parametrize('own', [{}, {'directory': '/'}], ids=['shared', 'own'])
@pytest.mark.parametrize('report', ['1 ok', '1 dead too late'])
def test_late_report(daemon, queue, handlers, folder, leat, report, own):
    """If a task ends the process, a report on it in the grace period changes nothing, also if the task has a
    process of its own."""
    (folder / 'late.py').write_text(LATE)
    command = f'exec /usr/bin/python3 -IS {folder}/late.py {folder} "{report}"'
    worker = daemon({**handlers.config(command=command, timeout='1h', kill_grace='300ms'), **SHORT_LEASE,
                     **ONCE}).wait_ready()
    [tid] = queue.add({'payload': 'ok', **own})
    wait_until((folder / 'has').exists)
    assert leat('cancel', tid).returncode == 0
    worker.wait_log(f'task {tid}: attempt 1 ended: cancelled')
    (folder / 'has').unlink()
    queue.add({'payload': 'ok', 'timeout': '4s', **own})
    wait_until((folder / 'has').exists)
    assert wait_letters(queue)[0].cause == 'timeout' and queue.counter('succeeded') == 0


def test_two_reports_at_the_end(daemon, queue, handlers, folder):
    """The first of two reports counts, also if leatd sees them after the end of the process."""
    worker = daemon({**handlers.config(timeout='1h'), **ONCE}).wait_ready()
    add(queue, f'hold {folder}/go;twice;early 1 dead;end 0', 'ok')
    [record] = handlers.wait_records(1)
    worker.stop()
    (folder / 'go').touch()
    wait_until(lambda: not processes.alive(record['pid']))
    worker.cont()
    wait_succeeded(queue, 2)
    assert not letters(queue)


ENDING = """
import json, os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(3, b'ready\\n')
for line in sys.stdin:
    with open(sys.argv[1], 'a') as file:
        file.write(json.dumps({**json.loads(line), 'pid': os.getpid()}) + '\\n')
    if json.loads(line)['fields']['payload'] == 'flood':
        os.write(1, b'x' * 30000)
"""


def test_no_task_for_a_process_that_wrote_too_much(daemon, queue, handlers, folder):
    """A process that has already written too much, which leatd sees when it hands another task over, does not
    get this task."""
    (folder / 'ending.py').write_text(ENDING)
    command = f'exec /usr/bin/python3 -IS {folder}/ending.py {handlers.folder}/records'
    daemon({**handlers.config(batch=2, timeout='1h', kill_grace='300ms', command=command),
            'output': {'rate': 1024, 'max_output': 20000, 'at_max': 'kill'}}).wait_ready()
    add(queue, 'flood')
    [first] = handlers.wait_records(1)
    [tid] = add(queue, 'other')
    wait_until(lambda: tid in [record['tid'] for record in handlers.records()])
    [record, *_] = [record for record in handlers.records() if record['tid'] == tid]
    assert record['pid'] != first['pid'] and record['attempt'] == 1


@pytest.mark.parametrize('end', ['sys.exit(0)', 'os.write(1, b"x" * 50000)'], ids=['exit', 'output'])
def test_unread_records_go_back(daemon, queue, folder, handlers, end):
    """A record that the process had not read when it ended goes back with nothing counted."""
    program = folder / 'program'
    program.write_text('import os, signal, sys\n'
                       f'first = not os.path.exists("{folder}/was")\n'
                       f'open("{folder}/was", "w")\n'
                       'os.write(3, b"ready\\n")\n'
                       'number = 0\n'
                       'while os.read(0, 2):\n'
                       '    if first:\n'
                       f'        while not os.path.exists("{folder}/go"): pass\n'
                       f'        {end}\n'
                       '        signal.pause()\n'
                       '    number += 1\n'
                       '    os.write(3, b"%d ok\\n" % number)\n')
    daemon({**handlers.config(batch=4, form='lines', command=f'exec /usr/bin/python3 -IS {program}'),
            'output': {'max_output': '10K', 'at_max': 'kill'}}).wait_ready()
    add(queue, 'a', 'b', 'c', 'd')
    wait_until(lambda: queue.redis.hlen(queue.running) == 4)
    (folder / 'go').touch()
    wait_succeeded(queue, 4)
    assert queue.counter('retried') == 1


# ---- faults of its own

@pytest.mark.parametrize('habit, line', [
    ('deaf', 'has not read a task within its timeout'), ('shut-in', 'closed its standard input'),
    ('shut-out', 'closed descriptor 3'), ('babble', 'writes other lines than reports'),
    ('endless', 'writes other lines than reports')])
def test_faults(daemon, queue, handlers, habit, line):
    """A process that breaks the protocol is ended, the log says what to do, and no task is lost or blamed.
    leatd goes on meanwhile: a correct command gets the task after a reload."""
    config = handlers.config(habit, timeout='500ms' if habit == 'deaf' else '10m')
    worker = daemon({**config, **ONCE}).wait_ready()
    add(queue, 'ok')
    worker.wait_log(line)
    handlers.wait_up(2)
    assert not letters(queue) and queue.counter('retried') == 0
    reload(worker, {**handlers.config(), **ONCE})
    wait_succeeded(queue, 1)


def test_full_pipe(daemon, queue, handlers, leat):
    """A process that does not read while records are larger than its pipe does not block leatd: another task
    is cancelled, and the daemon stops in time."""
    worker = daemon({**handlers.config('deaf', batch=2, timeout='1h', kill_grace='300ms'), **SHORT_LEASE,
                     'shutdown': {'drain': '0'}}).wait_ready()
    handlers.wait_up(1)
    tids = add(queue, 'x' * 1000000, 'y' * 1000000)
    wait_until(lambda: queue.redis.hlen(queue.running) == 2)
    assert leat('cancel', tids[0]).returncode == 0
    worker.wait_log(f'task {tids[0]}: attempt 1 ended: cancelled')
    wait_until(lambda: queue.redis.hlen(queue.running) == 1)
    worker.terminate()
    assert worker.wait_exit() == 0
    assert queue.counter('retried') == 0 and not letters(queue)


def test_flood_of_output(daemon, queue, handlers):
    """A process that writes without end is slowed down, and leatd serves its task's timeout."""
    worker = daemon({**handlers.config('flood', timeout='1s', kill_grace='300ms'), 'output': {'rate': '100K'},
                     **ONCE}).wait_ready()
    add(queue, 'ok')
    worker.wait_log('has not read a task within its timeout')
    worker.terminate()
    assert worker.wait_exit() == 0 and not letters(queue)


def test_forks_and_exits(daemon, queue, handlers, folder):
    """A process whose descendant goes on is ended with it, and its task has failed."""
    daemon({**handlers.config(), **ONCE}).wait_ready()
    add(queue, 'fork;end 0', 'ok')
    [letter] = wait_letters(queue)
    wait_succeeded(queue, 1)
    assert letter.cause == 'no-verdict'


def test_killed_between_tasks(daemon, queue, handlers):
    """A process that is killed while it has no task is replaced, and the log says so."""
    worker = daemon(handlers.config()).wait_ready()
    add(queue, 'ok')
    wait_succeeded(queue, 1)
    os.kill(handlers.up()[0], signal.SIGKILL)
    worker.wait_log('ended between two tasks: killed by SIGKILL; starting another in 1 s')
    add(queue, 'ok')
    wait_succeeded(queue, 2)


def test_ends_when_ready(daemon, queue, handlers, folder):
    """A process that exits as soon as it is ready, without any task, has failed; the worker goes on when the
    command is mended."""
    command = f'echo ready >&3; [ -e {folder}/go ] || exit 0; {handlers.command()}'
    worker = daemon(handlers.config(command=command)).wait_ready()
    add(queue, 'ok')
    worker.wait_log('ended before its first task: exit 0; starting another in 1 s')
    (folder / 'go').touch()
    wait_succeeded(queue, 1)
    assert queue.counter('retried') == 0


def test_exits_between_tasks(daemon, queue, handlers):
    """A process may end by itself with status 0 between tasks; another one starts when it is needed."""
    worker = daemon(handlers.config('once')).wait_ready()
    for count in range(1, 4):
        add(queue, 'ok')
        wait_succeeded(queue, count)
    assert queue.counter('retried') == 0 and 'starting another' not in worker.log()


# ---- replacing

@pytest.mark.parametrize('key, value', [('resident_tasks', '3'), ('resident_memory', '1M'),
                                        ('resident_age', '1s')])
def test_replaced(daemon, queue, handlers, key, value):
    """A process is replaced after so many tasks, above so much memory, or at that age. The former one reads
    the end of the file, and no task waits or is repeated."""
    daemon(handlers.config(slots=1, **{key: value})).wait_ready()
    done = 0
    while len(handlers.ends()) < 2:
        add(queue, 'ok')
        done += 1
        wait_succeeded(queue, done)
    records = handlers.records()
    assert len(records) == done and queue.counter('retried') == 0
    assert set(handlers.ends()) <= set(handlers.up())


def test_idle(daemon, queue, handlers):
    """A process without tasks ends after resident_idle; the next task gets a new one."""
    daemon(handlers.config(resident_idle='200ms', slots=2)).wait_ready()
    wait_until(lambda: sorted(handlers.ends()) == sorted(handlers.wait_up(2)))
    add(queue, 'ok')
    wait_succeeded(queue, 1)
    assert len(handlers.up()) >= 3


def test_stubborn(daemon, queue, handlers):
    """A process that goes on after the end of the file gets TERM after the grace period, and the log says so."""
    worker = daemon(handlers.config('stay', resident_tasks=1, kill_grace='300ms')).wait_ready()
    add(queue, 'ok', 'ok')
    wait_succeeded(queue, 2)
    worker.wait_log('has not ended within [task] kill_grace after the end of its standard input')
    first = handlers.up()[0]
    wait_until(lambda: not processes.alive(first))


def test_stubborn_processes_are_few(daemon, queue, handlers):
    """Processes that go on after the end of the file do not become more and more: the last one is replaced
    later."""
    daemon(handlers.config('stay', resident_tasks=1, kill_grace='5s')).wait_ready()
    for count in range(1, 41):
        add(queue, 'ok')
        wait_succeeded(queue, count)
        assert len([pid for pid in handlers.up() if processes.alive(pid)]) <= 2


def test_reload(daemon, queue, handlers, folder):
    """A reload that changes the command replaces the processes; one that changes nothing of theirs does not."""
    worker = daemon(handlers.config()).wait_ready()
    add(queue, 'ok')
    wait_succeeded(queue, 1)
    reload(worker, handlers.config(timeout='3m'))
    add(queue, 'ok')
    wait_succeeded(queue, 2)
    assert len(handlers.up()) == 1
    reload(worker, handlers.config('chatty'))
    wait_until(lambda: handlers.ends() == handlers.up()[:1])
    add(queue, 'ok')
    wait_succeeded(queue, 3)
    assert handlers.records()[-1]['pid'] == handlers.up()[1] and queue.counter('retried') == 0


def test_reload_of_idle_time(daemon, queue, handlers):
    """A reload that sets resident_idle or resident_age counts for processes that run."""
    worker = daemon(handlers.config()).wait_ready()
    add(queue, 'ok')
    wait_succeeded(queue, 1)
    reload(worker, handlers.config(resident_age='1s'))
    wait_until(lambda: len(handlers.ends()) >= 1)
    reload(worker, handlers.config(resident_idle='100ms'))
    wait_until(lambda: sorted(handlers.ends()) == sorted(handlers.up()))


def test_reload_with_fewer_slots(daemon, queue, handlers):
    """If a reload changes the command and has fewer slots, no former process stays."""
    worker = daemon(handlers.config(slots=4)).wait_ready()
    former = handlers.wait_up(4)
    reload(worker, handlers.config('chatty', slots=2))
    wait_until(lambda: sorted(handlers.ends()) == sorted(former))
    assert len(handlers.wait_up(6)) == 6


def test_reload_switches(daemon, queue, handlers, folder):
    """A reload switches between resident processes and a process for each task."""
    plain = {'queue': handlers.config()['queue'], 'task': {'command': f'touch {folder}/ran-$LEAT_TASK'}}
    worker = daemon(plain).wait_ready()
    reload(worker, handlers.config())
    add(queue, 'ok')
    wait_succeeded(queue, 1)
    reload(worker, plain)
    wait_until(lambda: handlers.ends() == handlers.up())
    [tid] = add(queue, 'ok')
    wait_succeeded(queue, 2)
    assert (folder / f'ran-{tid}').exists() and len(handlers.records()) == 1


# ---- the end of the worker

def test_drain(daemon, queue, handlers, folder):
    """At a stop, a task in hand may finish, and processes without one end at once."""
    worker = daemon({**handlers.config(slots=2, timeout='1h'), 'shutdown': {'drain': '1h'}}).wait_ready()
    handlers.wait_up(2)
    add(queue, f'hold {folder}/go')
    [record] = handlers.wait_records(1)
    worker.terminate()
    wait_until(lambda: len(handlers.ends()) == 1)
    assert record['pid'] not in handlers.ends()
    (folder / 'go').touch()
    assert worker.wait_exit() == 0
    assert queue.counter('succeeded') == 1 and len(handlers.ends()) == 2


def test_stop_without_drain(daemon, queue, handlers):
    """When the drain is over, tasks in hand go back with nothing counted."""
    worker = daemon({**handlers.config(timeout='1h'), 'shutdown': {'drain': '0'}}).wait_ready()
    add(queue, 'hang')
    handlers.wait_records(1)
    worker.terminate()
    assert worker.wait_exit() == 0
    assert queue.counter('retried') == 0 and queue.redis.hlen(queue.running) == 0


def test_killed_daemon(daemon, queue, handlers):
    """When leatd is killed, the guards end its resident processes, with tasks and without. A task that was
    lost with its worker then gets a process of its own."""
    worker = daemon(handlers.config(slots=2, timeout='1h')).wait_ready()
    handlers.wait_up(2)
    add(queue, 'hang')
    handlers.wait_records(1)
    former = handlers.up()
    worker.kill9()
    wait_until(lambda: not any(processes.alive(pid) for pid in former))
    other = daemon({**handlers.config(slots=1, timeout='1h'), 'shutdown': {'drain': '0'}}).wait_ready()
    records = handlers.wait_records(2)
    assert records[1]['pid'] not in former and records[1]['index'] == 1
    assert records[1]['attempt'] == records[0]['attempt']
    handlers.wait_up(4)
    other.terminate()
    assert other.wait_exit() == 0


def test_stopped_daemon(daemon, queue, handlers):
    """While leatd is stopped, the guards end a process before the lease of its task ends, also if it was idle
    for long before it got the task."""
    worker = daemon({**handlers.config(timeout='1h', kill_grace='100ms'),
                     'queue': {'concurrency': 1, 'lease': '2s'}}).wait_ready()
    handlers.wait_up(1)
    wait_blocked(queue.redis)
    add(queue, 'hang')
    [record] = handlers.wait_records(1)
    worker.stop()
    wait_until(lambda: not processes.alive(record['pid']))
    worker.cont()
    handlers.wait_records(2)
