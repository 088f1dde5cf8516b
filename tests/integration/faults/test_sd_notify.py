"""Messages of the daemon to its service manager: ready, status, watchdog, reload, stop."""
import signal
import re
import time

import pytest

from harness.polling import wait_until
from harness.servers.other_server import OtherServer
from harness.short_leases import pass_time
from harness.tasks import status_of, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')


def test_ready_once_registered(daemon, queue, client, manager):
    """READY=1 is sent once, and not before the worker is registered in Redis and could take tasks."""
    worker = daemon(env=manager.environment())
    seen = []

    def ready():
        # the order matters: Redis is asked after READY was seen
        if manager.having('READY'):
            seen.append(client.hlen(queue.workers))
            return True
        return False

    wait_until(ready)
    assert seen == [1]
    worker.wait_log('ready')  # it is written after the message
    queue.add({'command': 'true'})
    wait_succeeded(queue, 1)
    assert manager.having('READY') == ['1']


def test_not_ready_before_an_answer(daemon, redis_server, manager):
    """While Redis neither answers nor refuses, the worker is not ready; as soon as the outage is known it is,
    with the outage in its status."""
    redis_server.stop()
    began = time.monotonic()
    worker = daemon({'redis': {'connect_timeout': '1s', 'command_timeout': '1s'}},
                    env=manager.environment())
    manager.wait('READY')
    assert time.monotonic() - began > 0.8
    worker.wait_log('no session with Redis')
    wait_until(lambda: any('Redis' in text or 'redis' in text for text in manager.having('STATUS')), 5,
               lambda: f'the outage is in the status: {manager.messages}')
    redis_server.cont()
    worker.wait_log('registered with Redis')


def test_reload_before_ready(daemon, redis_server, manager):
    """A reload before the worker is ready does not make it ready."""
    redis_server.stop()
    worker = daemon({'redis': {'connect_timeout': '1h', 'command_timeout': '1h'}}, env=manager.environment())
    wait_until(worker.listens, message='the worker hears signals')
    worker.reload()
    worker.wait_log('configuration reloaded')
    assert manager.having('READY') == []
    redis_server.cont()
    manager.wait('READY')


def test_ready_without_redis(daemon, redis_server, manager):
    """If Redis is away at the start, systemd hears that the worker has started, but before that, at the beginning
    of the status, that it waits for Redis. The log says "ready" only when it has registered."""
    redis_server.kill()
    worker = daemon(env=manager.environment())
    manager.wait('READY')
    worker.wait_log('no session with Redis')
    before = manager.messages[:[('READY' in one) for one in manager.messages].index(True)]
    assert re.match(rf'no session with Redis: .*{redis_server.socket}.*; running: 0 of 4 slots busy; ',
                    [one['STATUS'] for one in before if 'STATUS' in one][-1])
    assert 'ready' not in worker.log()
    redis_server.restart()
    worker.wait_log('ready: queue emails, 4 slots')
    assert 'registered with Redis' in worker.log() and manager.having('READY') == ['1']
    wait_until(lambda: manager.having('STATUS')[-1].startswith('running: 0 of 4 slots busy; '))


@pytest.fixture
def speaks(folder, redis_server, base_config):
    """A function that puts a server in front of redis_server which answers these commands with this error."""
    made = []

    def make(error, *names):
        info = redis_server.client().execute_command('INFO', 'everything')
        text = '\n'.join(f'{name}:{value}' for name, value in info.items() if not isinstance(value, dict))
        made.append(OtherServer(folder / 'other.sock', redis_server.socket, text, (), dict.fromkeys(names, error)))
        base_config['redis']['socket'] = made[-1].path
    yield make
    for one in made:
        one.close()


def test_a_server_says_nothing_to_systemd(daemon, manager, speaks):
    """A server that is hostile, or in whose place somebody answers, does not speak to the service manager by way
    of the status: what it says has one line there, and no control characters."""
    speaks('LOADING dear\nMAINPID=1\nWATCHDOG=trigger\x1b[2J', 'FCALL')
    daemon(env=manager.environment())
    wait_until(lambda: any('dear' in text for text in manager.having('STATUS')))
    assert manager.having('MAINPID') == manager.having('WATCHDOG') == []
    assert r'dear\nMAINPID=1\nWATCHDOG=trigger\x1b[2J' in manager.having('STATUS')[-1]


def test_status_has_figures(daemon, queue, manager, latch):
    """The status has running tasks and outcomes, soon after a change."""
    daemon({'retry': {'max_attempts': 2}}, env=manager.environment()).wait_ready()
    queue.add({'command': 'true'}, {'command': 'false'}, {'command': latch.command})
    wanted = '1 of 4 slots busy; 1 succeeded, 1 retried, 1 dead'
    wait_until(lambda: any(wanted in text for text in manager.having('STATUS')), 5,
               lambda: f'{wanted}: {manager.messages}')


def test_a_status_waits_for_nobody(daemon, queue, manager):
    """Every program of the host can send to the service manager. While others fill its socket, tasks run, and the
    status comes when there is room."""
    daemon(env=manager.environment()).wait_ready()
    manager.wait('READY')
    count, began = 0, time.monotonic()
    with manager.busy():
        while time.monotonic() < began + 2.5:  # a status is sent at most once a second
            count += 1
            queue.add({'command': 'true'})
            wait_succeeded(queue, count)
    wait_until(lambda: f'; {count} succeeded' in manager.having('STATUS')[-1])


@pytest.mark.parametrize('outage', ['none', 'killed', 'stopped'])
def test_watchdog(daemon, redis_server, client, manager, late, outage):
    """The worker feeds the watchdog at least every half of its period while Redis answers, and also during an
    outage, whether Redis is gone or silent."""
    worker = daemon({'redis': {'command_timeout': '1s', 'connect_timeout': '1s'}},
                    env=manager.environment(1_000_000)).wait_ready()
    if outage == 'killed':
        redis_server.kill()
    elif outage == 'stopped':
        redis_server.stop()
    if outage != 'none':
        worker.wait_log('no session with Redis')
    before = len(manager.having('WATCHDOG'))
    pass_time(2.5)
    assert len(manager.having('WATCHDOG')) - before >= 4 - 2 * late.start()
    if outage == 'stopped':
        redis_server.cont()


def test_watchdog_while_redis_is_slow(daemon, redis_server, manager):
    """The worker also feeds the watchdog while it waits for an answer for longer than the watchdog's period."""
    worker = daemon({'redis': {'command_timeout': '2m'}, 'queue': {'lease': '15m'}},
                    env=manager.environment(1_000_000)).wait_ready()
    manager.wait('WATCHDOG')
    redis_server.stop()
    before = len(manager.having('WATCHDOG'))
    manager.wait('WATCHDOG', before + 5)
    assert 'no session' not in worker.log()
    redis_server.cont()


def test_watchdog_starves(daemon, manager):
    """A worker whose loop does not run feeds no watchdog."""
    worker = daemon(env=manager.environment(600_000)).wait_ready()
    manager.wait('WATCHDOG', 2)
    worker.stop()
    wait_until(lambda: status_of(worker.pid, 'State').startswith('T'))
    before = len(manager.having('WATCHDOG'))
    pass_time(1)
    assert len(manager.having('WATCHDOG')) == before
    worker.cont()
    manager.wait('WATCHDOG', before + 1)


def test_reload_messages(daemon, manager):
    """A reload sends RELOADING=1 with the monotonic time, then READY=1; also with a broken file."""
    worker = daemon(env=manager.environment()).wait_ready()
    manager.wait('READY')
    for count, text in ((1, None), (2, '[queue\n')):
        if text:
            worker.config_path.write_text(text)
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        worker.reload()
        manager.wait('READY', count + 1)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        kinds = [name for one in manager.messages for name in one if name in ('READY', 'RELOADING')]
        assert kinds == ['READY'] + ['RELOADING', 'READY'] * count
        assert before <= int(manager.having('MONOTONIC_USEC')[-1]) <= after


def test_stop_messages(daemon, queue, client, manager):
    """A stop sends STOPPING=1 and asks for more time than drain and grace take; a second signal shortens it."""
    worker = daemon({'shutdown': {'drain': '20s'}, 'task': {'kill_grace': '1s'}},
                    env=manager.environment()).wait_ready()
    queue.add({'command': 'sleep 60'})
    wait_until(worker.descendants)
    worker.terminate()
    [usec] = manager.wait('EXTEND_TIMEOUT_USEC')
    assert manager.having('STOPPING') == ['1']
    assert 21_000_000 <= int(usec) <= 60_000_000
    wait_until(lambda: any(text.startswith('draining') for text in manager.having('STATUS')), 5,
               lambda: f'draining is in the status: {manager.messages}')
    worker.signal(signal.SIGINT)
    assert worker.wait_exit() == 0
    assert len(manager.having('STOPPING')) == 2
