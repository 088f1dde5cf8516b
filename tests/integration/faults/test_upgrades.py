"""Upgrades in place: a new leatd takes new tasks, the old one finishes its own."""
import json
import os
import re
import signal
import struct
from pathlib import Path

import pytest

from harness import processes
from harness.batches import add
from harness.polling import wait_until
from harness.short_leases import wait_blocked
from harness.tasks import status_of, wait_file
from harness.upgrades import FAR, NEXT, Service, alive
from harness.users import CAPABILITIES, TASKS, Host, as_user, needs_root

pytestmark = pytest.mark.usefixtures('quick_tasks')

UNCOUNTED = ('retried', 'dead', 'released', 'crashed')


@pytest.fixture
def serve(folder, daemon, manager):
    """A function that starts a leatd that can be upgraded."""
    def start(sections=None, env=None, make=daemon, watchdog_usec=None, **options):
        one = make(sections, start=False, env={**manager.environment(watchdog_usec), **(env or {})}, **options)
        return Service(folder, one, manager)

    return start


class Tasks:
    """Tasks that write the name of their worker, and wait until the test lets them end."""

    def __init__(self, queue, folder, latches):
        self.queue, self.folder, self.latches = queue, folder, latches
        self.number = 0

    def start(self, **fields):
        """Returns the latch of a new task, once it runs."""
        one = self.add(**fields)
        self.wait(one)
        return one

    def add(self, **fields):
        one, self.number = self.latches(), self.number + 1
        one.path = self.folder / f'task-{self.number}'
        self.queue.add({'command': f'echo $LEAT_WORKER > {one.path}.new; mv {one.path}.new {one.path}; {one.wait}',
                        **fields})
        return one

    @staticmethod
    def runs(one):
        return one.path.exists()

    def wait(self, one):
        wait_until(one.path.exists, message='the task runs')

    @staticmethod
    def pid(one):
        """The process id of its worker."""
        return int(one.path.read_text().split(':')[-2])

    def wait_succeeded(self, count, log):
        wait_until(lambda: self.queue.counter('succeeded') == count, message=log)
        assert [self.queue.counter(name) for name in UNCOUNTED] == [0] * len(UNCOUNTED)


@pytest.fixture
def tasks(queue, folder, latches):
    return Tasks(queue, folder, latches)


# ---- the way of an upgrade

def test_running_task_survives(serve, tasks):
    """A task that runs at an upgrade goes on in the old process, and a new task runs in the new one. The old
    process ends with its last task; nothing is counted."""
    service = serve({'queue': {'concurrency': 2}})
    long = tasks.start()
    old, new = service.main, service.upgrade()
    assert alive(old) and new != old
    short = tasks.start()
    assert (tasks.pid(long), tasks.pid(short)) == (old, new)
    short.open()
    long.open()
    tasks.wait_succeeded(2, service.daemon.log)
    service.wait_ended(old)
    assert alive(new)


def test_slots_count_together(serve, tasks):
    """Old and new process together run no more tasks than there are slots; each slot that the old one frees is
    used by the new one at once."""
    service = serve({'queue': {'concurrency': 2}})
    first, second = tasks.start(), tasks.start()
    service.upgrade()
    third, fourth = tasks.add(), tasks.add()
    service.daemon.wait_log('this process takes new tasks')
    assert not tasks.runs(third) and not tasks.runs(fourth)
    first.open()
    wait_until(lambda: tasks.runs(third) or tasks.runs(fourth))
    tasks.wait_succeeded(1, service.daemon.log)
    assert tasks.runs(third) != tasks.runs(fourth)
    for one in second, third, fourth:
        one.open()
    tasks.wait_succeeded(4, service.daemon.log)


def test_several_upgrades(serve, tasks, manager):
    """Each of several former processes keeps its tasks, and all slots count. One that ends between two others
    leaves nothing that waits."""
    service = serve({'queue': {'concurrency': 4}})
    running = []
    for _ in range(3):
        running.append(tasks.start())
        service.upgrade()
    running.append(tasks.start())
    assert [tasks.pid(one) for one in running] == service.pids
    assert service.living() == service.pids
    fifth = tasks.add()
    wait_until(lambda: manager.having('STATUS')[-1].startswith(
        'running: 4 of 4 slots busy, 3 by former versions;'), message=lambda: manager.having('STATUS')[-1])
    assert not tasks.runs(fifth)
    running[1].open()
    service.wait_ended(service.pids[1])
    tasks.wait(fifth)
    assert tasks.pid(fifth) == service.main
    for one in [*running, fifth]:
        one.open()
    tasks.wait_succeeded(5, service.daemon.log)
    for pid in service.pids[:-1]:
        service.wait_ended(pid)
    wait_until(lambda: 'by former' not in manager.having('STATUS')[-1])


def test_eight_at_most(serve, tasks):
    """There are eight processes side by side at most. The next upgrade is refused until one has ended."""
    service = serve({'queue': {'concurrency': 8}})
    running = [tasks.start()]
    for _ in range(7):
        service.upgrade()
        running.append(tasks.start())
    assert 'too many earlier programs still run tasks' in service.refused()
    running[3].open()
    service.wait_ended(service.pids[3])
    wait_until(lambda: f'former leatd {service.pids[3]} (' in service.daemon.log())
    service.upgrade()
    for one in running:
        one.open()
    tasks.wait_succeeded(8, service.daemon.log)


def test_many_upgrades_leave_nothing(serve, queue, client):
    """After many upgrades of an idle leatd there is one process, with as many descriptors and arguments as
    before, and one worker."""
    service = serve()
    service.upgrade()
    service.wait_ended(service.pids[0])

    def state():
        """None while it still closes descriptors of former processes."""
        process = Path(f'/proc/{service.main}')
        try:
            ended = any('Pid:\t-1' in info.read_text() for info in (process / 'fdinfo').iterdir())
            names = sorted(os.readlink(fd).split(':')[0].replace(str(service.main), 'PID')
                           for fd in (process / 'fd').iterdir())
        except FileNotFoundError:
            return None
        return None if ended else (names, processes.arguments(service.main))

    def is_settled():
        return len(service.living()) == 1 and client.hlen(queue.workers) == 1

    wait_until(is_settled)
    wait_blocked(client)  # all its connections are there
    before = wait_until(state)
    for _ in range(10):
        service.upgrade()
        wait_until(is_settled, message=service.daemon.log)  # nine side by side are refused
    wait_until(lambda: state() == before, message=lambda: f'{state()} is {before}')


def test_a_task_that_runs_alone(serve, queue, tasks):
    """While a task that must run alone runs in the old process, the new one starts nothing."""
    service = serve({'queue': {'concurrency': 2, 'max_crashes': 2}})
    alone = tasks.add()
    tasks.wait(alone)
    os.kill(service.main, signal.SIGKILL)
    service.wait_ended(service.main)
    alone.path.unlink()
    service.daemon.start().wait_ready()
    service.pids.append(service.daemon.pid)
    tasks.wait(alone)
    service.upgrade()
    other = tasks.add()
    service.daemon.wait_log('this process takes new tasks')
    assert not tasks.runs(other)
    alone.open()
    tasks.wait(other)
    other.open()
    wait_until(lambda: queue.counter('succeeded') == 2)


def test_resident_processes(serve, queue, handlers, folder):
    """Resident processes without a task end with the upgrade; one that has a task ends after it. The new process
    has its own, which get all new tasks."""
    service = serve(handlers.config(slots=2))
    old = handlers.wait_up(2)
    add(queue, f'hold {folder}/go')
    [busy] = [record['pid'] for record in handlers.wait_records(1)]
    before = service.main
    service.upgrade()
    wait_until(lambda: handlers.ends() == [pid for pid in old if pid != busy], message=handlers.ends)
    add(queue, 'ok')
    wait_until(lambda: queue.counter('succeeded') == 1, message=service.daemon.log)
    assert handlers.records()[1]['pid'] not in old and alive(before)
    (folder / 'go').touch()
    service.wait_ended(before)
    assert queue.counter('succeeded') == 2 and queue.counter('retried') == 0
    assert set(handlers.ends()) == set(old)


# ---- the service manager

def test_notifications(serve, tasks, manager):
    """The old process names the new one, and sends nothing more; the new one sends nothing before. The watchdog
    is fed, and a reload is told, by the new one."""
    service = serve(watchdog_usec=1_000_000)
    long = tasks.start()
    old, new = service.main, service.upgrade()
    manager.wait('READY', 2)
    count = len(manager.having('WATCHDOG'))
    os.kill(new, signal.SIGHUP)
    manager.wait('RELOADING')
    manager.wait('READY', 3)
    manager.wait('WATCHDOG', count + 3)
    long.open()
    service.wait_ended(old)
    manager.poll()
    change = [('MAINPID' in one) for one in manager.messages].index(True)
    assert manager.messages[change] == {'MAINPID': str(new)}
    assert set(manager.senders[:change + 1]) == {old}
    assert set(manager.senders[change + 1:]) == {new}


def test_stop(serve, tasks, manager):
    """A stop reaches all processes. The main one ends last, after the tasks of the others have ended, and asks for
    the time."""
    service = serve({'shutdown': {'drain': '60s'}})
    first = tasks.start()
    service.upgrade()
    second = tasks.start()
    service.upgrade()
    service.terminate()
    assert manager.wait('STOPPING')
    wait_until(lambda: service.daemon.log().count('stopping: running tasks may finish') == 3)
    assert service.living() == service.pids
    second.open()
    service.wait_ended(service.pids[1])
    assert service.living() == [service.pids[0], service.main]
    first.open()
    service.wait_ended(service.main)
    wait_until(lambda: service.living() == [])
    tasks.wait_succeeded(2, service.daemon.log)
    assert all(int(usec) > 60_000_000 for usec in manager.having('EXTEND_TIMEOUT_USEC'))


def test_second_stop(serve, queue, tasks):
    """A second signal ends the drain of the former process, too: its task returns to the queue."""
    service = serve({'shutdown': {'drain': '600s'}})
    tasks.start()
    old = service.main
    service.upgrade()
    service.terminate()
    wait_until(lambda: service.daemon.log().count('stopping: running tasks may finish') == 2)
    service.terminate()
    service.wait_ended(service.main)
    service.wait_ended(old)
    assert service.daemon.log().count('returned to the queue') == 1
    # the last claim of the new process, which was under way, may have brought it, and is handed back
    assert queue.counter('released') in (1, 2) and queue.counter('retried') == 0
    assert queue.redis.hlen(queue.running) == 0 and queue.redis.xlen(queue.go) == 1


def test_stop_of_the_former_process_alone(serve, queue, tasks):
    """SIGTERM to a former process ends only its own tasks, which return to the queue and run in the new one."""
    service = serve({'shutdown': {'drain': 0}})
    long = tasks.start()
    old, new = service.main, service.upgrade()
    long.path.unlink()
    os.kill(old, signal.SIGTERM)
    service.wait_ended(old)
    tasks.wait(long)
    assert tasks.pid(long) == new
    assert queue.counter('released') == 1 and queue.counter('retried') == 0


def test_reload(serve, tasks):
    """A reload is a reload: no process changes. It reaches the former processes, too."""
    service = serve({'shutdown': {'drain': '600s'}})
    tasks.start()
    service.upgrade()
    service.daemon.wait_log('this process takes new tasks')
    path = service.daemon.config_path
    path.write_text(path.read_text().replace('drain = 600s', 'drain = 0'))
    os.kill(service.main, signal.SIGHUP)
    wait_until(lambda: service.daemon.log().count('configuration reloaded') == 2)
    assert service.living() == service.pids
    service.terminate()
    service.wait_ended(service.main)
    wait_until(lambda: service.living() == [])


def test_hanging_former_process(serve, tasks, queue):
    """A former process that hangs is killed when the watchdog's time is over; its task is reclaimed."""
    service = serve({'queue': {'lease': '4s'}}, watchdog_usec=3_000_000)
    long = tasks.start()
    old, new = service.main, service.upgrade()
    service.daemon.wait_log('this process takes new tasks')
    long.path.unlink()
    os.kill(old, signal.SIGSTOP)
    service.wait_ended(old)
    tasks.wait(long)
    assert tasks.pid(long) == new
    assert 'no sign of life' in service.daemon.log()


# ---- new programs that do not work

def write_foreign(path):
    """A program for a machine that is not this one."""
    data = bytearray(path.read_bytes())
    data[18:20] = struct.pack('<H', 0xBEEF)
    path.write_bytes(data)


BROKEN = {
    'exits': ('#!/bin/sh\nexit 3\n', 'it ended before it was ready'),
    'crashes': ('#!/bin/sh\nkill -SEGV $$\n', 'it ended before it was ready'),
    'is killed when it has started': ('#!/bin/sh\nsleep 0.1; kill -9 $$\n', 'it ended before it was ready'),
    'is no program': ('nonsense', 'Exec format error'),
    'refuses the option': ('#!/bin/sh\nexec /bin/true --take-over 3>&-\n', 'it ended before it was ready'),
    'answers nonsense': ('#!/bin/sh\nprintf nonsense >&3; exec 3>&-\n', 'it ended before it was ready'),
}


@pytest.mark.parametrize('kind', BROKEN)
def test_broken_program(serve, tasks, kind):
    """A new program that does not work changes nothing: the old one says why, its task goes on, and it takes
    others. A good program can replace it afterwards."""
    text, why = BROKEN[kind]
    service = serve({'queue': {'concurrency': 2}})
    long = tasks.start()
    service.install_script(text)
    assert why in service.refused()
    short = tasks.start()
    assert tasks.pid(short) == service.main
    service.install(f'/proc/{service.main}/exe')
    new = service.upgrade()
    third = tasks.add()
    for one in long, short, third:
        one.open()
    tasks.wait_succeeded(3, service.daemon.log)
    assert tasks.pid(third) == new


def test_program_of_another_machine(serve, tasks):
    """A program for another machine changes nothing."""
    service = serve()
    fresh = service.path.with_name('foreign')
    fresh.write_bytes(service.path.read_bytes())
    fresh.chmod(0o755)
    write_foreign(fresh)
    service.rename(fresh)
    assert 'Exec format error' in service.refused()
    tasks.start().open()
    tasks.wait_succeeded(1, service.daemon.log)


def test_missing_program(serve):
    """Without an installed program nothing changes."""
    service = serve()
    service.path.unlink()
    assert f'cannot execute {service.path}: No such file or directory' in service.refused()


def test_hanging_program(serve, tasks):
    """A new program that says nothing is killed after half a minute. Until then the old one works, and begins no
    other upgrade."""
    service = serve({'queue': {'concurrency': 2}})
    service.install_script('#!/bin/sh\nexec sleep 1000\n')
    service.ask()
    wait_until(lambda: sleepers(service), message='the program runs')
    [hanging] = sleepers(service)
    assert 'another upgrade is under way' in service.refused()
    tasks.start().open()
    tasks.wait_succeeded(1, service.daemon.log)
    wait_until(lambda: len(service.reasons()) == 2, timeout=90, message=service.daemon.log)
    assert 'not ready in time' in service.reasons()[-1]
    wait_until(lambda: not alive(hanging))


def sleepers(service):
    """Processes of the new program in the service's session."""
    session = os.getsid(service.main)
    return [pid for pid in processes.descendants(os.getpid())
            if processes.name(pid) == 'sleep' and '1000' in processes.arguments(pid) and os.getsid(pid) == session]


def test_stop_while_a_program_hangs(serve):
    """A stop does not wait for a new program: it is killed."""
    service = serve()
    service.install_script('#!/bin/sh\nexec sleep 1000\n')
    service.ask()
    wait_until(lambda: sleepers(service), message='the program runs')
    [hanging] = sleepers(service)
    service.terminate()
    service.wait_ended(service.main)
    wait_until(lambda: not alive(hanging))


def test_broken_configuration(serve, tasks):
    """If the configuration is wrong, the new program refuses, and the old one goes on with its own."""
    service = serve()
    service.daemon.config_path.write_text('[queue]\nnam = emails\n')
    assert 'its own log says why' in service.refused()
    assert 'nam' in service.daemon.log()
    tasks.start().open()
    tasks.wait_succeeded(1, service.daemon.log)


def test_redis_away(serve, redis_server, queue, tasks):
    """Without Redis the new program refuses: the old one may have tasks whose outcomes it keeps."""
    service = serve()
    redis_server.kill()
    service.daemon.wait_log('no session with Redis')
    assert str(redis_server.socket) in service.refused()
    redis_server.restart()
    queue.load()
    tasks.start().open()
    tasks.wait_succeeded(1, service.daemon.log)


@needs_root
def test_first_process_of_a_container(daemon, manager):
    """The first process of a container cannot be replaced, and says so."""
    worker = daemon(start=False, env=manager.environment())
    worker.prefix = ['unshare', '--pid', '--fork', '--kill-child']
    worker.start().wait_ready()
    [pid] = [one for one in worker.descendants() if processes.name(one) == 'leatd']
    os.kill(pid, signal.SIGUSR2)
    worker.wait_log('no upgrade: leatd is the first process of its container')


def test_option_of_the_new_process(daemon):
    """Nobody else can start a leatd that waits for another one."""
    worker = daemon(argv=['--take-over'])
    assert worker.wait_exit() == 64
    assert 'no leatd has started this process for an upgrade' in worker.log()


# ---- under load

def most_at_once(trace):
    """How many tasks ran at a time at most, by their lines + and -."""
    running = most = 0
    for line in trace.read_text().split():
        running += 1 if line == '+' else -1
        most = max(most, running)
    return most


def test_under_load(serve, queue, folder, manager):
    """Upgrade follows upgrade while quick and slow tasks write output: each task runs once, each of its lines is
    logged once, and no more tasks run at a time than there are slots."""
    service = serve({'queue': {'concurrency': 3}})
    trace, own, total = folder / 'trace', service.path.with_name('own'), 0
    own.write_bytes(service.path.read_bytes())
    own.chmod(0o755)
    for number in range(10):
        for pause in '', 'sleep 0.01;', 'sleep 0.1;':
            total += 1
            queue.add({'command': f'echo + >> {trace}; for i in 1 2 3 4 5; do echo T{total}-$i; {pause} done; '
                                  f'echo - >> {trace}'})
        service.install(NEXT if number % 2 == 0 else own)
        service.upgrade()
    wait_until(lambda: manager.poll() and queue.counter('succeeded') == total, message=service.daemon.log)
    lines = re.findall(r' (T\d+-\d) ', service.daemon.log())
    assert sorted(lines) == sorted(f'T{task}-{i}' for task in range(1, total + 1) for i in range(1, 6))
    assert [queue.counter(name) for name in ('retried', 'dead', 'crashed')] == [0] * 3
    assert trace.read_text().count('+') == total and most_at_once(trace) <= 3


# ---- crashes

def test_former_process_is_killed(serve, tasks, queue):
    """The tasks of a former process that is killed are reclaimed at once by the new one, and its slots are
    free."""
    service = serve({'queue': {'concurrency': 1, 'lease': '60s'}})
    long = tasks.start()
    old, new = service.main, service.upgrade()
    service.daemon.wait_log('this process takes new tasks')
    long.path.unlink()
    os.kill(old, signal.SIGKILL)
    service.wait_ended(old)
    tasks.wait(long)
    assert tasks.pid(long) == new


def test_new_process_is_killed(serve, tasks, queue):
    """If the new process is killed, the former one finishes its tasks; a leatd that is started takes those of
    the new one."""
    service = serve({'queue': {'concurrency': 2, 'lease': '60s'}})
    long = tasks.start()
    old, new = service.main, service.upgrade()
    short = tasks.start()
    assert tasks.pid(short) == new
    short.path.unlink()
    os.kill(new, signal.SIGKILL)
    service.wait_ended(new)
    long.open()
    service.wait_ended(old)
    assert queue.counter('succeeded') == 1
    service.daemon.start().wait_ready()
    tasks.wait(short)
    short.open()
    wait_until(lambda: queue.counter('succeeded') == 2)


@pytest.mark.parametrize('step', range(12))
def test_old_process_is_killed_on_the_way(serve, queue, step):
    """Wherever the old process is killed on the way, what is left of the two neither hangs nor claims tasks
    without being in charge: the new one takes over whole, or ends."""
    service = serve()
    old = service.main
    before = set(processes.descendants(os.getpid()))
    waits = processes.waits(old)
    service.ask()
    # without a pause, which would miss most of them; it renews its registration, so the loop ends
    while alive(old) and processes.waits(old) < waits + step:
        pass
    if alive(old):
        os.kill(old, signal.SIGKILL)
    service.wait_ended(old)
    fresh = [pid for pid in processes.descendants(os.getpid())
             if pid not in before and processes.name(pid) == 'leatd' and processes.alive(pid)]

    def is_decided():
        return all('this process takes new tasks' in service.daemon.log() or not alive(pid) for pid in fresh)

    wait_until(is_decided, message=service.daemon.log)
    if any(map(alive, fresh)):
        queue.add({'command': 'true'})
        wait_until(lambda: queue.counter('succeeded') == 1)


# ---- what the new process inherits

def test_surroundings(serve, tasks, queue, folder):
    """Tasks of the new process have the same limits, environment and descriptors as those of the old one."""
    service = serve()
    seen = []
    for number in range(2):
        path = folder / f'surroundings-{number}'
        queue.add({'command': '{ ulimit -a; umask; env | grep -v -e ^LEAT_ -e ^INVOCATION; ls /proc/self/fd; '
                              'grep -e SigBlk -e SigIgn -e SigCgt -e Cap -e NoNew /proc/self/status; } '
                              f'> {path}.new; mv {path}.new {path}'})
        seen.append(wait_file(path))
        service.upgrade()
    assert seen[0] == seen[1]


def test_server_from_the_environment(folder, serve, redis_server, queue, manager, daemon):
    """The URL in LEAT_REDIS, which may have a password, reaches the new process, and no task. It does not stand in
    the new environment, which tasks of the same user can read until the process hides it."""
    one = daemon({'redis': {'socket': None}}, start=False,
                 env={**manager.environment(), 'LEAT_REDIS': f'unix://{redis_server.socket}'})
    one.source = ['-q', 'emails']
    service = Service(folder, one, manager)
    service.upgrade()
    service.upgrade()
    path = folder / 'environment'
    queue.add({'command': f'env > {path}.new; mv {path}.new {path}'})
    assert b'LEAT_REDIS' not in wait_file(path)
    assert b'unix:' not in open(f'/proc/{service.main}/environ', 'rb').read()
    seen = folder / 'seen'
    service.install_script(f'#!/bin/sh\nenv > {seen}\n')
    service.refused()
    assert seen.stat().st_size > 0 and 'unix:' not in seen.read_text()


@needs_root
def test_user_of_tasks(serve, tasks, queue, folder, redis_server, daemon):
    """With [task] user the new process inherits the capabilities and the filter of ids. It refuses if the
    configured user is another one, which the filter forbids."""
    host = Host(folder)
    os.chmod(redis_server.socket, 0o777)
    folder.chmod(0o777)

    def make(*args, **options):
        one = daemon(*args, **options)
        one.config_path.chmod(0o644)
        one.env['HOME'] = str(host.home('leatd'))
        one.prefix = [*host.words(), *as_user(capabilities=CAPABILITIES)]
        return one

    service = serve({'queue': {'concurrency': 2}, 'task': {'user': 'thumbs'}}, make=make)
    long = tasks.start()
    filters = status_of(service.main, 'Seccomp_filters')
    for _ in range(3):
        service.upgrade()
    short = tasks.start()
    assert {one.path.stat().st_uid for one in (long, short)} == {TASKS}
    assert status_of(service.main, 'Seccomp_filters') == filters
    assert service.daemon.log().count('cannot bound the users') == 0
    path = service.daemon.config_path
    path.write_text(path.read_text().replace('user = thumbs', 'user = leatd'))
    assert 'its own log says why' in service.refused()
    assert 'restart it to change this' in service.daemon.log()
    long.open()
    short.open()
    tasks.wait_succeeded(2, service.daemon.log)


def test_cgroups(serve, tasks, group, caged):
    """Each process has a folder for the cgroups of its tasks, and leaves those of the others alone. A folder
    that is free is used again."""
    service = serve(make=caged)
    running = [tasks.start()]
    for number in (2, 3):
        service.upgrade()
        running.append(tasks.start())
        assert group.pids(f'tasks.{number}/0')
    assert group.pids('tasks/0') and group.pids('tasks.2/0')
    running[0].open()
    service.wait_ended(service.pids[0])
    wait_until(lambda: 'tasks' not in group.below())
    service.upgrade()
    running.append(tasks.start())
    assert group.pids('tasks/0') and group.pids('tasks.2/0') and group.pids('tasks.3/0')
    for one in running:
        one.open()
    tasks.wait_succeeded(4, service.daemon.log)
    wait_until(lambda: len(service.living()) == 1)
    service.terminate()
    service.wait_ended(service.main)
    assert group.below() == ['daemon']


def test_cgroups_of_a_killed_process(serve, tasks, group, caged):
    """What a killed service leaves in the folders of several processes is gone when the next one is ready."""
    service = serve({'queue': {'lease': '60s'}}, make=caged)
    first = tasks.start()
    service.upgrade()
    second = tasks.start()
    for pid in service.living():
        os.kill(pid, signal.SIGSTOP)
    for pid in service.living():
        service.daemon.kill_guards()
        os.kill(pid, signal.SIGKILL)
    for pid in service.pids:
        service.wait_ended(pid)
    first.open()
    second.open()
    service.daemon.start().wait_ready()
    wait_until(lambda: 'tasks.2' not in group.below())


# ---- versions

def test_versions(serve, tasks, leat, queue):
    """An upgrade to a program that hands over more, and back, is one like any other. leat status shows which
    version runs what; the newer function library serves the older process."""
    service = serve({'queue': {'concurrency': 4}})
    own = f'/proc/{service.main}/exe'
    running = [tasks.start()]
    before = queue.version()
    service.install(NEXT)
    service.upgrade()
    running.append(tasks.start())
    assert queue.version() > before
    service.install(own)
    service.upgrade()
    running.append(tasks.start())

    def versions():
        workers = json.loads(leat('status', '--json').stdout)['workers']
        return {one['pid']: (one['version'], one['state'], one['running']) for one in workers}

    wait_until(lambda: [versions().get(pid, '-')[1:] for pid in service.pids] ==
               [('draining', 1), ('draining', 1), ('running', 1)], message=versions)
    assert [versions()[pid][0] == '9.9.9' for pid in service.pids] == [False, True, False]
    assert '9.9.9' in leat('status').stdout
    for one in running:
        one.open()
    tasks.wait_succeeded(3, service.daemon.log)


def test_older_form(serve, tasks):
    """A program that does not understand what the running one hands over refuses; the other way works."""
    service = serve()
    own = f'/proc/{service.main}/exe'
    long = tasks.start()
    service.install(own)
    kept = service.path.with_name('kept')
    kept.write_bytes(service.path.read_bytes())
    kept.chmod(0o755)
    service.install(FAR)
    service.upgrade()
    service.install(kept)
    assert 'is too old to replace version 99.0.0; run: systemctl restart' in service.refused()
    short = tasks.start()
    assert tasks.pid(short) == service.main
    short.open()
    long.open()
    tasks.wait_succeeded(2, service.daemon.log)
