"""leat upgrade: finds the leatd of each queue on this host by systemd, and has it replaced."""
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import processes
from harness.daemon import program
from harness.polling import wait_until
from harness.upgrades import Service, alive

pytestmark = pytest.mark.usefixtures('quick_tasks')

SYSTEMCTL = """#!/bin/sh
echo "$@" >>{folder}/asked
case $1 in
    list-units) cat {folder}/units ;;
    show) eval unit='$'$#; cat {folder}/$unit ;;
esac
"""


class Systemd:
    """A systemctl that knows what the test says about units."""

    def __init__(self, folder):
        self.folder = folder / 'systemd'
        self.folder.mkdir()
        tool = self.folder / 'systemctl'
        tool.write_text(SYSTEMCTL.format(folder=self.folder))
        tool.chmod(0o755)
        (self.folder / 'units').touch()

    def has(self, name, pid, needs_reload='no'):
        with open(self.folder / 'units', 'a', encoding='ascii') as units:
            units.write(f'{name} loaded active running leat worker\n')
        (self.folder / name).write_text(f'LoadState=loaded\nMainPID={pid}\nNeedDaemonReload={needs_reload}\n')
        return self

    def asked(self):
        return (self.folder / 'asked').read_text()

    def leat(self, *args):
        """leat upgrade, which finds this systemctl."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith('LEAT_')}
        return subprocess.run([program('leat'), *args], capture_output=True, text=True, check=False, timeout=240,
                              env={**clean, 'PATH': f'{self.folder}:{os.environ["PATH"]}'})


@pytest.fixture
def systemd(folder):
    return Systemd(folder)


@pytest.fixture
def service(folder, daemon, manager):
    return Service(folder, daemon(start=False, env=manager.environment()), manager)


@pytest.mark.parametrize('args', [['upgrade'], ['-q', 'emails', 'upgrade']])
def test_upgrade(systemd, service, manager, args):
    """The running leatd is replaced; the command returns when the new one has taken over, and prints its
    version. Without a queue it is that of each running unit."""
    systemd.has('leatd@emails.service', service.main)
    done = systemd.leat(*args)
    assert (done.returncode, done.stderr) == (0, '')
    assert done.stdout.startswith('leatd@emails.service: upgraded to version ')
    assert len(manager.wait('MAINPID')) == 1
    assert ('list-units' in systemd.asked()) == (len(args) == 1)


@pytest.mark.parametrize('args', [['upgrade'], ['-q', 'emails', 'upgrade']])
def test_talkative_systemctl(systemd, service, args):
    """What systemctl writes to stderr, such as with SYSTEMD_LOG_LEVEL=debug, is neither a unit nor a property."""
    tool = systemd.folder / 'systemctl'
    noise = 'for i in $(seq 100); do echo "Bus n/a: changing state $i" >&2; done\n'
    tool.write_text(tool.read_text().replace('case', noise + 'case'))
    done = systemd.has('leatd@emails.service', service.main).leat(*args)
    assert (done.returncode, done.stderr) == (0, '')


def test_refused(systemd, service):
    """If the new program does not work, the error says why, and the former one goes on."""
    service.path.unlink()
    done = systemd.has('leatd@emails.service', service.main).leat('upgrade')
    assert (done.returncode, done.stdout) == (70, '')
    assert done.stderr == (f'leat: leatd@emails.service: not upgraded: cannot execute {service.path}: '
                           'No such file or directory\n')
    assert alive(service.main)


def test_changed_unit(systemd, service):
    """Settings of the unit that have changed take effect later, and the command says so."""
    done = systemd.has('leatd@emails.service', service.main, 'yes').leat('upgrade')
    assert done.returncode == 0 and 'its settings have changed' in done.stderr


def test_older_program(systemd):
    """A program that does not know the signal would die of it: it does not get it."""
    older = processes.start(['sleep', '1000'])
    try:
        done = systemd.has('leatd@emails.service', older.pid).leat('upgrade')
        assert done.returncode == 76 and 'run: systemctl restart leatd@emails.service' in done.stderr
        assert older.poll() is None
    finally:
        processes.end(older)


def test_lost_answer(systemd):
    """Everybody can fill the socket at which the command waits, so that the answer is lost. Then systemd tells the
    command that another process is the main one."""
    silent = processes.start(['env', '--block-signal=USR2', 'sleep', '1000'])
    wait_until(lambda: processes.name(silent.pid) == 'sleep')
    with ThreadPoolExecutor() as threads:
        done = threads.submit(systemd.has('leatd@emails.service', silent.pid).leat, 'upgrade')
        wait_until(lambda: not processes.takes_signals(silent.pid))
        systemd.has('leatd@emails.service', os.getpid())
        assert (done.result().returncode, done.result().stdout) == (0, 'leatd@emails.service: upgraded\n')
    processes.end(silent)


def test_several_queues(systemd, service):
    """One queue that cannot be upgraded does not keep the others from it, and its error is the exit status."""
    systemd.has('leatd@gone.service', 0).has('leatd@emails.service', service.main)
    done = systemd.leat('upgrade')
    assert done.returncode == 69
    assert done.stdout.startswith('leatd@emails.service: upgraded')
    assert done.stderr == 'leat: leatd@gone.service: does not run; start it: systemctl start leatd@gone.service\n'


def test_nothing_runs(systemd):
    """Without a running queue there is nothing to do."""
    done = systemd.leat('upgrade')
    assert (done.returncode, done.stdout, done.stderr) == (0, '', '')


def test_without_systemd(systemd):
    """If systemd does not answer, nothing is done."""
    (systemd.folder / 'systemctl').write_text('#!/bin/sh\necho no bus; exit 1\n')
    for args in (['upgrade'], ['-q', 'emails', 'upgrade']):
        done = systemd.leat(*args)
        assert done.returncode == 69 and 'systemd does not answer' in done.stderr, args


@pytest.mark.parametrize('args, said', [
    (['-c', '/tmp/other.ini', 'upgrade'], 'no unit runs the queue of /tmp/other.ini'),
    (['--redis', 'redis://x', 'upgrade'], '--redis cannot be used here'),
    (['upgrade', 'emails'], 'unexpected argument')])
def test_usage(systemd, args, said):
    """Only the name of a queue, or a file in its place, says what to upgrade."""
    done = systemd.leat(*args)
    assert done.returncode == 64 and said in done.stderr
