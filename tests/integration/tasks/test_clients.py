"""The clients for Python and Node against a real worker: the same calls have the same results in each of them, and
their resident processes report the same."""
import json
import os
import shutil
import subprocess
import sys

import pytest

from harness.batches import add
from harness.daemon import ROOT
from harness.node import node_modules
from harness.tasks import records, wait_letters, wait_succeeded

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
    assert [seen[what][0] for what in ('refused', 'unknown', 'env', 'bytes')] == ['Refused'] * 4
    assert seen['refused'][1] == 'task 1: lane: longer than 200 bytes, or with a NUL; shorten it'
    assert seen['env'][1] == 'env: lane is a field of the task, and no variable; give it outside of env'
    assert 'env' in seen['unknown'][1] and 'UTF-8' in seen['bytes'][1]
    # bytes stay bytes, also if redis-py decodes answers
    assert seen.get('decoded', ['success', '61ff']) == ['success', '61ff']


@pytest.mark.parametrize('version', [4, 6])
def test_a_wait_while_redis_is_down(version, folder):
    """node-redis connects again and again, but a wait with a limit ends."""
    program = '''
const { createClient } = require('redis'), { Queue } = require('leat.js');
const queue = new Queue('emails', createClient({ socket: { path: process.argv[1] } }));
queue.wait('1-1', 10).catch((error) => console.log(error.message)).then(() => process.exit());
'''
    env = dict(os.environ, NODE_PATH=f'{node_modules("redis", version)}:{CLIENTS}')
    done = subprocess.run(['node', '-e', program, folder / 'none'], env=env, capture_output=True, text=True,
                          check=False, timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert done.stdout == 'task 1-1: cannot tell whether it has ended: Redis does not answer\n', done.stderr


@pytest.fixture(params=['sync', 'async', 'node'])
def handler(request):
    """The command of a resident process with a client, and its kind."""
    kind = request.param
    if kind != 'node':
        return f"PYTHONPATH='{CLIENTS}' exec {sys.executable} -B '{PROGRAMS}/serve.py' {kind}", kind
    if not shutil.which('node'):
        pytest.skip('no node here')
    return f"NODE_PATH='{CLIENTS}' exec {shutil.which('node')} '{PROGRAMS}/serve.cjs'", kind


def resident(command, **task):
    return {'queue': {'concurrency': 1, 'lease': '5m'}, 'retry': {'max_attempts': 1, 'exit.65': 'dead'},
            'task': {'command': command, 'resident': 'yes', 'batch_format': 'json', 'timeout': '10m',
                     'resident_start_timeout': '10m', 'kill_grace': '1m', **task}}


def test_a_handler(daemon, queue, handler):
    """A resident process gets each attempt with its bytes and text, and the line separators of Unicode end no
    record. Each way to fail has its cause and its reason. Programs that it starts read no records."""
    command, kind = handler
    worker = daemon(resident(command)).wait_ready()
    good = add(queue, b'\xff\0', SIZE='640', id='label')
    good += add(queue, 'a\u2028b', 'read', 'two words', SIZE='640')
    wait_succeeded(queue, len(good))
    separated = 'a\u2028b'.encode().hex()
    output = [message.partition(' (task=')[0] for _, _, message in records(worker.log())
              if 'stream=stdout' in message]
    assert output == [f'{good[0]} label ff00 640', f'{good[1]} None {separated} 640',
                      f'{good[2]} None {b"read".hex()} 640', f'{good[3]} None {b"two words".hex()} 640']
    bad = [add(queue, payload, SIZE='0')[0] for payload in ('dead', 'exit', 'fail')]
    found = {letter.own['leat.tid']: letter for letter in wait_letters(queue, 3)}
    assert [found[tid].cause for tid in bad] == ['reported', 'exit', 'reported'] and found[bad[1]].status == '65'
    assert found[bad[0]].reason == 'no way out' and found[bad[1]].reason == 'wrong data'
    assert found[bad[2]].reason.startswith('TypeError: xxx' if kind == 'node' else "KeyError: 'xxx")
    # where it happened
    assert b'serve.' in found[bad[2]].tail('stderr') and found[bad[0]].tail('stderr') == b''
    worker.terminate()
    assert worker.wait_exit() == 0 and 'has not ended' not in worker.log()


def test_a_status_of_a_signal(daemon, queue, handler):
    """A program that a signal has ended has no exit status that can be reported. The attempt fails with that as
    its reason; it does not wait for a report that leatd ignores."""
    command, kind = handler
    daemon(resident(command)).wait_ready()
    add(queue, 'signal', SIZE='1')
    letter, = wait_letters(queue)
    assert letter.cause == 'reported' and 'is no exit status; give a number from 0 to 255' in letter.reason
    assert letter.reason.startswith('RangeError: ' if kind == 'node' else 'ValueError: ')


def test_a_task_from_the_future(daemon, queue, handler):
    """A producer that chooses the id of its entry chooses the time of this task and of all later ones. One beyond
    the year 9999, which Python's times cannot hold, ends no process: the function gets the task."""
    command, _ = handler
    worker = daemon(resident(command)).wait_ready()
    queue.redis.xadd(queue.stream, {'payload': 'one', 'SIZE': '1'}, id='300000000000000-0')
    letter, = wait_letters(queue)
    assert letter.cause == 'reported', worker.log()


def test_attempts_that_asyncio_ends(daemon, queue):
    """An attempt fails that has waited for something that was cancelled. One that cannot be reported ends the
    process. Neither waits for its timeout."""
    command = f"PYTHONPATH='{CLIENTS}' exec {sys.executable} -B '{PROGRAMS}/serve.py' async"
    daemon(resident(command)).wait_ready()
    cancelled, closed = add(queue, 'cancel', 'close')
    found = {letter.own['leat.tid']: letter for letter in wait_letters(queue, 2)}
    assert found[cancelled].cause == 'reported' and found[cancelled].reason.startswith('CancelledError')
    assert found[closed].cause == 'no-verdict' and b'closed file' in found[closed].tail('stderr')


def test_a_coroutine_function_without_asyncio(daemon, queue):
    """No task succeeds by a coroutine that nothing has run."""
    command = f"PYTHONPATH='{CLIENTS}' exec {sys.executable} -B '{PROGRAMS}/serve.py' wrong"
    daemon(resident(command)).wait_ready()
    add(queue, 'meet')
    letter, = wait_letters(queue)
    assert letter.cause == 'reported' and letter.reason.endswith('use serve_async')


def test_a_plain_function_with_asyncio(daemon, queue):
    """A function that asyncio cannot await is named as what is wrong, and the other call too."""
    command = f"PYTHONPATH='{CLIENTS}' exec {sys.executable} -B '{PROGRAMS}/serve.py' plain"
    daemon(resident(command)).wait_ready()
    add(queue, 'one', SIZE='1')
    letter, = wait_letters(queue)
    assert letter.cause == 'reported'
    assert letter.reason == 'TypeError: serve_async: the function is no coroutine function; use serve'


def test_a_handler_of_several_tasks(daemon, queue, handler):
    """With a batch, coroutines have several tasks at a time: two that wait for each other end."""
    command, kind = handler
    daemon(resident(command, batch=4)).wait_ready()
    if kind == 'sync':
        add(queue, 'one', 'two', SIZE='1', max_attempts='3')
    else:
        add(queue, 'meet', 'meet', max_attempts='3')
    wait_succeeded(queue, 2)


def test_a_handler_of_one_task(daemon, queue, handler):
    """A task with a process of its own has its record in a file, not in a pipe: on its last attempt if tasks share
    processes, and if it has a directory of its own."""
    command, _ = handler
    daemon(resident(command, batch=4)).wait_ready()
    _, bad = add(queue, 'one', 'dead', SIZE='1')
    wait_succeeded(queue, 1)
    add(queue, 'two', SIZE='1', max_attempts='3', directory='/')
    wait_succeeded(queue, 2)
    letter, = wait_letters(queue)
    assert (letter.own['leat.tid'], letter.cause, letter.reason) == (bad, 'reported', 'no way out')


def test_a_handler_that_leat_has_not_started(handler):
    """The message says what starts it."""
    command, _ = handler
    done = subprocess.run(['sh', '-c', command], capture_output=True, text=True, check=False, timeout=SECONDS,
                          env={'PATH': os.environ['PATH']}, stdin=subprocess.DEVNULL)
    assert done.returncode == 1 and 'leatd starts this program, with [task] resident = yes' in done.stderr


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
import { Attempt, Dead, Exit, Queue, Refused, Result, serve } from './leat';
serve(async (attempt: Attempt) => {
  if (attempt.fields.SIZE === '0') throw new Exit(65, 'no size');
  // @ts-expect-error it has no such member
  attempt.size;
});
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
        assert f'export class {name} ' in declared or f'export function {name}(' in declared, name
    fields = code.split('const FIELDS = new Set([')[1].split(']')[0].replace("'", '').replace(',', ' ').split()
    for name in fields:
        first, *rest = name.split('_')
        assert f"  {first}{''.join(word.capitalize() for word in rest)}?:" in declared, name
    python = (CLIENTS / 'leat.py').read_text().split('class Options(')[1].split('\n@')[0]
    for name in fields:
        assert f'    {name}: ' in python, name
