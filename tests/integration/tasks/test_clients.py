"""The clients for Python and Node against a real worker: the same calls have the same results in each of them."""
import json
import os
import shutil
import subprocess
import sys

import pytest

from harness.daemon import ROOT
from harness.node import node_modules

CLIENTS = ROOT / 'src/clients'
PROGRAMS = ROOT / 'tests/producers'
SECONDS = 900  # a busy machine, and npm


def run(kind, server):
    """Runs the calls of tests/producers/client.* with that client. Returns what it saw."""
    if kind in ('sync', 'async'):
        argv, env = [sys.executable, '-B', PROGRAMS / 'client.py'], {'PYTHONPATH': str(CLIENTS)}
    else:
        kind, version = kind.split('-')
        modules = node_modules(kind, version)
        argv, env = ['node', PROGRAMS / 'client.cjs'], {'NODE_PATH': f'{modules}:{CLIENTS}'}
    done = subprocess.run([*argv, server.socket, 'emails', kind], env=dict(os.environ, **env), capture_output=True,
                          text=True, check=False, timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (0, '')
    return json.loads(done.stdout)


# node-redis 4 and ioredis 5 talk RESP2, the others RESP3 in two forms
@pytest.mark.parametrize('kind', ['sync', 'async', 'redis-4', 'redis-6', 'ioredis-5', 'ioredis-6'])
def test_a_client(kind, redis_server, daemon, folder):
    """It adds tasks with fields and bytes, knows tasks with the same key, waits for each end, and cancels tasks
    that wait and tasks that run. Wrong calls are refused with the reason."""
    daemon({'task': {'directory': str(folder)}, 'retry': {'max_attempts': 1}}).wait_ready()
    seen = run(kind, redis_server)
    assert seen['ok'] == ['success', True, 'success', 0, 'a\n640\n', '', 1]
    assert seen['bad'] == ['dead', False, 'exit', 3, 'out\n', 'err\n', 1]
    assert seen['unique'] == [True, False, True]
    assert seen['not yet'] is None and seen['at once'] is None
    assert seen['cancel'] == [True, False] and seen['cancelled'][:3] == ['cancelled', False, 'cancelled']
    assert [one[4] for one in seen['many']] == ['one\n', '2\n']
    assert seen['killed'] == ['cancelled', False, 'cancelled']
    assert 'no result is kept' in seen['no result'][1]
    assert [seen[what][0] for what in ('refused', 'unknown', 'bytes')] == ['Refused'] * 3
    assert seen['refused'][1] == 'task 1: lane: longer than 200 bytes, or with a NUL; shorten it'
    assert 'env' in seen['unknown'][1] and 'UTF-8' in seen['bytes'][1]


def test_types_of_the_python_client(folder):
    """mypy finds nothing in its strict mode; redis-py's own types depend on its version."""
    if not shutil.which('mypy'):
        pytest.skip('mypy is not installed')
    (folder / 'redis').mkdir()
    (folder / 'redis/__init__.pyi').write_text(
        'from . import asyncio as asyncio\nclass ResponseError(Exception): ...\nclass Redis:\n    @classmethod\n'
        '    def from_url(cls, url: str) -> Redis: ...\n')
    (folder / 'redis/asyncio.pyi').write_text('from . import Redis as Redis\n')
    done = subprocess.run(['mypy', '--strict', '--cache-dir=/dev/null', '--enable-incomplete-feature=Unpack',
                           CLIENTS / 'leat.py'], capture_output=True, text=True, check=False,
                          env={'PATH': '/usr/bin:/bin', 'MYPYPATH': str(folder)})
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_of_the_node_client(folder):
    """The types are valid, fit right calls, and refuse wrong ones."""
    if not shutil.which('tsc'):
        pytest.skip('tsc is not installed')
    shutil.copy(CLIENTS / 'leat.d.ts', folder)
    (folder / 'use.ts').write_text('''
import { Queue, Result, Refused } from './leat';
async function use(client: any): Promise<string> {
  const queue = new Queue('thumbnails', client);
  const task = await queue.add('true', { env: { SIZE: 640 }, delay: '5m', at: new Date(), resultTtl: 1000 });
  const result: Result | null = await task.wait(1000);
  await queue.addMany([{ command: 'true', lane: 'alice' }]);
  // @ts-expect-error a variable belongs into env
  await queue.add('true', { SIZE: 1 });
  // @ts-expect-error it may be null
  return result.stdout;
}
''')
    done = subprocess.run(['tsc', '--strict', '--noEmit', '--target', 'es2020', '--moduleResolution', 'node',
                           'use.ts'], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_types_and_code_of_the_node_client_agree():
    """Each name that the module exports is declared, and each field of the protocol has its option."""
    declared = (CLIENTS / 'leat.d.ts').read_text()
    code = (CLIENTS / 'leat.js').read_text()
    exported = code.split('module.exports = {')[1].split('}')[0]
    for name in exported.replace(',', ' ').split():
        assert f'export class {name} ' in declared, name
    fields = code.split('const FIELDS = new Set([')[1].split(']')[0].replace("'", '').replace(',', ' ').split()
    for name in fields:
        first, *rest = name.split('_')
        assert f"  {first}{''.join(word.capitalize() for word in rest)}?:" in declared, name
    python = (CLIENTS / 'leat.py').read_text().split('class Options(')[1].split('\n@')[0]
    for name in fields:
        assert f'    {name}: ' in python, name
