"""Without systemd: the examples for runit and for a container with an init, as they are shipped."""
import json
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess

import pytest

from harness import processes
from harness.daemon import BUILD, ROOT, merged, write_config
from harness.polling import wait_until

CONF = ROOT / 'conf'
NEEDED = {'runit': ('runsv', 'sv', 'chpst', 'svlogd'), 'init': ('tini', 'unshare')}


@pytest.fixture
def environment(request, folder):
    """Programs and folders for a worker that something else than the test starts."""
    for tool in NEEDED[request.param]:
        if not shutil.which(tool):
            pytest.skip(f'{tool} is not installed')
    if os.geteuid() != 0:
        pytest.skip('needs root')
    env = dict(os.environ, PATH=f'{BUILD}:{os.environ["PATH"]}', RUNTIME_DIRECTORY=str(folder / 'state'),
               LEAT_CONFIG_DIR=str(folder), LEAT_LOGS=str(folder / 'logs'), LEAT_USER='root')
    env.pop('NOTIFY_SOCKET', None)
    (folder / 'state').mkdir()
    started = []
    yield env, started
    for process in started:
        processes.end(process)
    processes.end_orphans()


def records(path):
    """The JSON lines of a log."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.startswith('{') and line.endswith('}')]


@pytest.fixture
def config(base_config, folder):
    sections = merged(base_config, {'log': {'target': 'json'}, 'task': {'directory': str(folder)}})
    return write_config(folder / 'emails.ini', sections)


class Service:
    """A service folder of runit with the scripts of conf/, and its runsv."""

    def __init__(self, folder, env, started):
        self.folder, self.env = folder / 'leatd-emails', env
        self.log = folder / 'logs/leatd-emails/current'
        (self.folder / 'log').mkdir(parents=True)
        for name, target in (('run', 'run'), ('finish', 'finish'), ('log', 'log/run')):
            shutil.copy(CONF / f'runit-{name}.sh', self.folder / target)
        self.runsv = processes.start(['runsv', str(self.folder)], stdin=subprocess.DEVNULL, env=env,
                                     cwd=folder)
        started.append(self.runsv)

    def state(self):
        """(state, pid) of the worker."""
        state = self.folder / 'supervise/stat'
        pid = self.folder / 'supervise/pid'
        return (state.read_text().strip(), pid.read_text().strip()) if pid.exists() else ('', '')

    def sv(self, *words):
        return subprocess.run(['sv', *words, self.folder], env=self.env, capture_output=True, check=False)


@pytest.mark.parametrize('environment', ['runit'], indirect=True)
def test_runit(environment, config, folder, client):
    """The worker runs tasks with the home and name of its user, not those of whoever started runit, and logs JSON
    to svlogd's files. runit starts it again when it crashes, but not after
    a wrong configuration. A stop lets the running task finish. Other users cannot read the log."""
    environment[0].update(HOME=str(folder), USER='operator', LOGNAME='operator')
    service = Service(folder, *environment)
    client.xadd('emails', {'command': 'echo "hello $USER $LOGNAME in $HOME"'})
    hello = f'hello root root in {pwd.getpwuid(0).pw_dir}'
    wait_until(lambda: [row for row in records(service.log) if row['message'] == hello],
               message=lambda: records(service.log))
    assert stat.S_IMODE(service.log.parent.stat().st_mode) == 0o750

    first = service.state()[1]
    os.kill(int(first), signal.SIGKILL)
    client.xadd('emails', {'command': 'echo again'})
    wait_until(lambda: [row for row in records(service.log) if row['message'] == 'again'], message=service.state)
    assert service.state()[1] not in ('', first)

    client.xadd('emails', {'command': 'touch begun; until [ -e go-on ]; do sleep 0.05; done; echo finished'})
    wait_until((folder / 'begun').exists)
    service.sv('down')
    wait_until(lambda: 'want down' in service.state()[0], message=service.state)
    (folder / 'go-on').touch()
    wait_until(lambda: service.state()[0] == 'down', message=service.state)
    # svlogd may still be writing
    wait_until(lambda: [row for row in records(service.log) if row['message'] == 'finished'])
    assert client.hget('{emails}:stats', 'succeeded') == b'3'

    config.write_text('[queue]\nnme = x\n')
    service.sv('up')
    wait_until(lambda: service.state()[0] == 'down' and 'nme' in service.log.read_text(), message=service.state)
    service.sv('exit')
    service.runsv.wait()


def container():
    """ENTRYPOINT and CMD of the example, and the variables that it sets."""
    text = (CONF / 'Containerfile').read_text()
    words = [json.loads(re.search(rf'^{name} (\[.*\])$', text, re.M)[1]) for name in ('ENTRYPOINT', 'CMD')]
    return words[0] + words[1]


@pytest.mark.parametrize('environment', ['init'], indirect=True)
def test_container(environment, config, folder, client):
    """With an init as process 1 of a namespace, as in a container: what tasks leave behind is ended and reaped,
    and SIGTERM to the init lets the running task finish. The exit status is that of leatd."""
    argv = [str(config) if word == '/etc/leat/queue.ini' else word for word in container()]
    assert str(config) in argv
    env, started = environment
    log = folder / 'log'
    with open(log, 'wb') as out:
        outer = processes.start(['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', *argv],
                                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, cwd='/')
    started.append(outer)
    client.xadd('emails', {'command': 'setsid sleep 1000 & echo $$; echo init: $(cat /proc/1/comm)'})
    wait_until(lambda: [row for row in records(log) if row.get('event') == 'succeeded'], message=log.read_text)
    assert 'init: tini' in [row['message'] for row in records(log)]
    [init] = [pid for pid in processes.descendants(outer.pid) if processes.name(pid) == 'tini']
    wait_until(lambda: not [pid for pid in processes.descendants(init) if processes.name(pid) == 'sleep'])

    client.xadd('emails', {'command': 'touch begun; until [ -e go-on ]; do sleep 0.05; done; echo finished'})
    wait_until((folder / 'begun').exists)
    os.kill(init, signal.SIGTERM)
    wait_until(lambda: [row for row in records(log) if 'stopping' in row['message']], message=log.read_text)
    (folder / 'go-on').touch()
    wait_until(lambda: outer.poll() is not None)
    assert outer.returncode == 0
    assert client.hget('{emails}:stats', 'succeeded') == b'2'
