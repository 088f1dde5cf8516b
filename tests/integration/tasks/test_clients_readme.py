"""The programs in the README of the clients run as they are written, with the packages that it tells to install.
Only the address of Redis is the test's, and the client of Redis that the program in JavaScript has."""
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

import pytest

from harness.batches import add
from harness.daemon import ROOT
from harness.node import node_modules
from harness.tasks import records, wait_succeeded

SECONDS = 900  # a busy machine, and npm
# the program uses a client that is connected
CLIENT = '''import {{ createRequire }} from 'node:module';
const client = createRequire('/')('redis').createClient({{ socket: {{ path: {path} }} }});
await client.connect();
'''
DONE = 'await client.disconnect();\n'
TYPES = '''declare const client: any;
declare const console: { log(...words: unknown[]): void };
'''


def programs(language):
    """The programs in this language: one that adds a task, and one that does tasks."""
    found = re.findall(rf'^```{language}\n(.*?)^```$', (ROOT / 'src/clients/README.md').read_text(), re.M | re.S)
    assert len(found) == 2
    return found


@pytest.fixture
def packages(folder):
    """Unpacks the packages as pip and npm do; their names are those in the README. Returns the folder."""
    version = re.search(r'^VERSION = (\S+)$', (ROOT / 'Makefile').read_text(), re.M)[1]
    done = subprocess.run([sys.executable, '-B', 'tests/tools/dist-clients', version, folder / 'dist'], cwd=ROOT,
                          capture_output=True, text=True, check=True)
    shown = set(re.findall(r'install \./(\S+)$', (ROOT / 'src/clients/README.md').read_text(), re.M))
    assert {path.rpartition('/')[2] for path in done.stdout.split()} == shown
    for path in done.stdout.split():
        if path.endswith('.whl'):
            shutil.unpack_archive(path, folder / 'site', 'zip')
        else:
            with tarfile.open(path) as packed:
                packed.extractall(folder)
    (folder / 'node_modules').mkdir()
    (folder / 'package').rename(folder / 'node_modules/leat')
    return folder


def run(argv, folder, **env):
    done = subprocess.run(argv, cwd=folder, env=dict(os.environ, **env), capture_output=True, text=True,
                          check=False, timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (0, ''), done.stdout
    return done.stdout


@pytest.mark.parametrize('language', ['python', 'js'])
def test_a_program_that_adds_a_task(language, packages, redis_server, daemon):
    """It prints what the task has written; that is bytes in Python, and text in Node."""
    folder = packages
    (folder / 'Makefile').write_text('thumbs:\n\t@echo $$TASK_SIZE from $$PWD\n')
    daemon({'queue': {'name': 'thumbnails'}, 'task': {'directory': str(folder)}}).wait_ready()
    program, _ = programs(language)
    if language == 'python':
        assert "'redis://localhost'" in program
        program = program.replace('redis://localhost', f'unix://{redis_server.socket}')
        argv, env = [sys.executable, '-B', 'program.py'], {'PYTHONPATH': str(folder / 'site')}
        (folder / 'program.py').write_text(program)
    else:
        argv, env = ['node', 'program.mjs'], {'NODE_PATH': node_modules('redis', 4)}
        client = CLIENT.format(path=json.dumps(redis_server.socket))
        (folder / 'program.mjs').write_text(client + program + DONE)
    wrote = f'640 from {folder}\n'
    assert run(argv, folder, **env) == f'{wrote.encode() if language == "python" else wrote}\n'


@pytest.mark.parametrize('language', ['python', 'js'])
def test_a_program_that_does_tasks(language, packages, daemon, queue):
    """A resident process prints a field and the payload of each task."""
    folder = packages
    _, program = programs(language)
    name = 'program.py' if language == 'python' else 'program.mjs'
    (folder / name).write_text(program)
    if language == 'python':
        command = f'cd {folder} && PYTHONPATH=site exec {sys.executable} -B {name}'
    elif not shutil.which('node'):
        pytest.skip('no node here')
    else:
        command = f'cd {folder} && exec {shutil.which("node")} {name}'
    worker = daemon({'queue': {'concurrency': 1, 'lease': '5m'}, 'retry': {'max_attempts': 1},
                     'task': {'command': command, 'resident': 'yes', 'batch_format': 'json', 'timeout': '10m',
                              'resident_start_timeout': '10m', 'kill_grace': '1m'}}).wait_ready()
    add(queue, 'one', 'two', SIZE='640')
    wait_succeeded(queue, 2)
    worker.terminate()
    assert worker.wait_exit() == 0
    output = [message.partition(' (task=')[0] for _, _, message in records(worker.log())
              if 'stream=stdout' in message]
    payloads = ("b'one'", "b'two'") if language == 'python' else ('one', 'two')
    assert output == [f'size 640 of {payload}' for payload in payloads]


def test_types_fit_the_programs(packages):
    """TypeScript accepts the programs in JavaScript with the types of the package."""
    if not shutil.which('tsc'):
        pytest.skip('tsc is not installed')
    for number, program in enumerate(programs('js')):
        name = f'program-{number}.ts'
        (packages / name).write_text(TYPES + program)
        run(['tsc', '--strict', '--noEmit', '--target', 'es2022', '--lib', 'es2022', '--module', 'es2022',
             '--moduleResolution', 'node', name], packages)
