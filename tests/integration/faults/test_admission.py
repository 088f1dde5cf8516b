"""[admission]: under host pressure a worker claims nothing, and says so. The files of /proc are the test's
own, mounted over the kernel's in the daemon's mount namespace."""
import json
import os
import shutil

import pytest

from harness.notify import NotifySocket
from harness.polling import wait_until
from harness.short_leases import pass_time, wait_blocked, wakeups
from harness.tasks import wait_file, wait_succeeded

pytestmark = [
    pytest.mark.usefixtures('quick_tasks'),
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which('unshare'), reason='needs root, to mount over /proc')]

CPUS = os.cpu_count()
LOOKED_S = 1.5  # a worker under pressure reads the files at least once in this time


def pressure(percent):
    rest = 'avg60=0.00 avg300=0.00 total=0'
    return f'some avg10={percent:.2f} {rest}\nfull avg10=0.00 {rest}\n'


def load(percent):
    return f'{percent * CPUS / 100:.2f} 0.00 0.00 1/200 4711\n'


def memory(mib):
    return f'MemTotal:        8388608 kB\nMemFree:          1000 kB\nMemAvailable:    {mib * 1024} kB\n'


# key, value, file, function that makes its text, then values: calm, pressed, still pressed, eased
MEASURES = [
    ('memory_pressure', '20%', 'pressure/memory', pressure, 19.9, 20.1, 15.1, 14.9),
    ('io_pressure', '40%', 'pressure/io', pressure, 0, 99, 31, 29),
    ('cpu_pressure', '80%', 'pressure/cpu', pressure, 79, 81, 61, 59),
    ('load', '150%', 'loadavg', load, 145, 160, 120, 105),
    ('free_memory', '512M', 'meminfo', memory, 520, 500, 600, 700),
    ('free_memory', '25%', 'meminfo', memory, 2050, 2040, 2500, 2800),
    ('free_memory', '80%', 'meminfo', memory, 6600, 6500, 7000, 7400),
]


class Host:
    """Files in place of those of /proc."""

    def __init__(self, folder):
        self.folder, self.mounts = folder / 'proc', []
        self.folder.mkdir()

    def set(self, path, text):
        file = self.folder / path.replace('/', '-')
        if path not in self.mounts:
            self.mounts.append(path)
        with open(file, 'r+' if file.exists() else 'w', encoding='ascii') as one:
            one.write(text)
            one.truncate()

    def words(self):
        mounts = [f'mount --bind {self.folder}/{path.replace("/", "-")} /proc/{path}' for path in self.mounts]
        return ['unshare', '--mount', '--propagation', 'private', 'sh', '-c',
                ' && '.join([*mounts, 'exec "$@"']), 'sh']


@pytest.fixture
def host(folder):
    return Host(folder)


@pytest.fixture
def start(daemon, host):
    """A function that starts a daemon on the test's host."""
    def run(admission, sections=None, env=None):
        worker = daemon({'admission': admission, **(sections or {})}, env=env, start=False)
        worker.prefix = host.words()
        return worker.start().wait_ready()
    return run


def state(leat):
    [worker] = json.loads(leat('status', '--json').stdout)['workers']
    return worker['state']


@pytest.mark.parametrize('key, limit, path, make, calm, pressed, still, eased', MEASURES)
def test_a_worker_under_pressure_claims_nothing(start, queue, leat, host, folder, key, limit, path, make, calm,
                                                pressed, still, eased):
    """Beyond the limit a worker claims nothing and says so, in the log and in leat status; it claims again when
    the value is below three quarters of the limit."""
    host.set(path, make(calm))
    worker = start({key: limit})
    queue.add({'command': 'true'})
    wait_succeeded(queue, 1)
    assert state(leat) == 'running' and 'pressed' not in worker.log()

    host.set(path, make(pressed))
    pass_time(1)  # the worker's last reading is too old by then
    queue.add({'command': 'true'})
    worker.wait_log('host under pressure')
    wait_until(lambda: state(leat) == 'pressed')
    host.set(path, make(still))
    pass_time(LOOKED_S)
    assert queue.counter('succeeded') == 1 and 'has eased' not in worker.log()

    host.set(path, make(eased))
    wait_succeeded(queue, 2)
    wait_until(lambda: state(leat) == 'running')
    assert worker.log().count('host under pressure:') == worker.log().count('host pressure has eased') == 1


def test_status(start, queue, host, folder):
    """systemctl status shows the pressure, with the limit."""
    manager = NotifySocket(folder / 'notify')
    try:
        host.set('pressure/memory', pressure(50))
        start({'memory_pressure': '20%'}, env=manager.environment())
        queue.add({'command': 'true'})
        wait_until(lambda: [status for status in manager.having('STATUS')
                            if status.startswith('host under pressure: memory_pressure; pressed: 0 of')],
                   message=lambda: manager.messages)
    finally:
        manager.close()


def test_others_take_the_tasks(start, daemon, queue, host, folder):
    """Tasks of the queue run on another host, and running tasks go on here."""
    host.set('pressure/io', pressure(0))
    worker = start({'io_pressure': '10%'}, {'queue': {'concurrency': 4}})
    latch = folder / 'latch'
    queue.add({'command': f'touch {folder}/begun; until test -e {latch}; do sleep 0.01; done; '
                          f'touch {folder}/ended'})
    wait_file(folder / 'begun', 0)
    host.set('pressure/io', pressure(100))
    pass_time(1)
    queue.add({'command': 'true'})
    worker.wait_log('host under pressure')
    daemon().wait_ready()
    queue.add(*[{'command': f'echo $LEAT_WORKER $LEAT_ATTEMPT >>{folder}/runs'}] * 20)
    wait_until(lambda: queue.counter('succeeded') == 21)
    runs = (folder / 'runs').read_text().split('\n')[:-1]
    assert len(runs) == 20 and not [run for run in runs if f':{worker.pid}:' in run or run[-1] != '1']
    latch.touch()
    wait_file(folder / 'ended', 0)
    wait_succeeded(queue, 22)


def test_two_limits(start, queue, host):
    """The worker claims again when no limit is exceeded."""
    host.set('pressure/memory', pressure(90))
    host.set('loadavg', load(900))
    worker = start({'memory_pressure': '20%', 'load': '200%'})
    queue.add({'command': 'true'})
    worker.wait_log('host under pressure')
    host.set('loadavg', load(0))
    pass_time(LOOKED_S)
    assert 'has eased' not in worker.log() and queue.counter('succeeded') == 0
    host.set('pressure/memory', pressure(0))
    wait_succeeded(queue, 1)


def test_reload(start, queue, host):
    """A reload sets another limit, or none."""
    host.set('pressure/cpu', pressure(50))
    worker = start({'cpu_pressure': '20%'})
    queue.add({'command': 'true'})
    worker.wait_log('host under pressure')
    text = worker.config_path.read_text()
    worker.config_path.write_text(text.replace('cpu_pressure = 20%', 'cpu_pressure = 90%'))
    worker.reload()
    wait_succeeded(queue, 1)
    worker.config_path.write_text(text.replace('cpu_pressure = 20%', 'cpu_pressure = 30%'))
    worker.reload()
    wait_until(lambda: worker.log().count('configuration reloaded') == 2)
    queue.add({'command': 'true'})
    wait_until(lambda: worker.log().count('host under pressure:') == 2)
    worker.config_path.write_text(text.replace('cpu_pressure = 20%', ''))
    worker.reload()
    wait_succeeded(queue, 2)


def test_stop_under_pressure(start, queue, host):
    """A worker under pressure stops like any other."""
    host.set('pressure/cpu', pressure(50))
    worker = start({'cpu_pressure': '20%'})
    queue.add({'command': 'true'})
    worker.wait_log('host under pressure')
    worker.terminate()
    assert worker.wait_exit() == 0
    assert queue.status()['ready'] == 1


@pytest.mark.parametrize('text', ['', 'full avg10=99.00\n', 'some avg10=x\n'])
def test_an_unreadable_value(start, queue, host, text):
    """A value that cannot be read is logged once, at the start, and its limit has no effect."""
    host.set('pressure/memory', text)
    worker = start({'memory_pressure': '1%', 'io_pressure': '100%'})
    assert '[admission] memory_pressure: has no effect: cannot read /proc/pressure/memory' in worker.log()
    assert 'CONFIG_PSI' in worker.log()
    queue.add(*[{'command': 'true'}] * 5)
    wait_succeeded(queue, 5)
    assert worker.log().count('has no effect') == 1


def test_a_kernel_without_pressure(start, queue, host, folder):
    """The same holds if /proc/pressure does not exist."""
    host.words = lambda: ['unshare', '--mount', '--propagation', 'private', 'sh', '-c',
                          'mount -t tmpfs none /proc/pressure && exec "$@"', 'sh']
    worker = start({'memory_pressure': '1%'})
    assert 'has no effect: cannot read /proc/pressure/memory: No such file' in worker.log()
    queue.add({'command': 'true'})
    wait_succeeded(queue, 1)


def test_an_idle_worker_does_not_wake_up(start, client, queue, host):
    """An idle worker with limits does not wake up for them."""
    host.set('pressure/memory', pressure(0))
    worker = start({'memory_pressure': '20%', 'load': '100000%'}, {'queue': {'lease': '60s', 'scan': '1h'}})
    queue.add({'command': 'true'})
    wait_succeeded(queue, 1)
    wait_blocked(client)
    looks = []

    def settled():
        looks.append(wakeups(worker.pid))
        return len(looks) > 20 and looks[-1] == looks[-20]

    wait_until(settled)
    before = wakeups(worker.pid)
    pass_time(3)
    assert wakeups(worker.pid) - before <= 3


@pytest.mark.parametrize('key, value, advice', [
    ('memory_pressure', '20', 'write it like 50%'), ('memory_pressure', '101%', 'use 1% to 100%'),
    ('io_pressure', '0%', 'use 1% to 100%'), ('load', '1.5', 'write it like 50%'),
    ('free_memory', '100%', 'from 1% to 99%'), ('free_memory', 'much', 'write it like 512M or 5%'),
    ('free_memory', '1K', 'use 1M to'),
])
def test_wrong_values(daemon, key, value, advice):
    """An invalid value is refused with a valid form."""
    worker = daemon({'admission': {key: value}})
    assert worker.wait_exit() == 78
    assert advice in worker.log(), worker.log()
