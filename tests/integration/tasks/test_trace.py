"""Trace contexts: from the program that adds a task, through the task, to what the task adds."""
import json
import os
import shutil
import subprocess
import sys

import pytest

from harness.daemon import program, write_config
from harness.polling import wait_until
from harness.tasks import environment, wait_file, wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')

TRACE = '0af7651916cd43dd8448eb211c80319c'
PARENT = f'00-{TRACE}-b7ad6b7169203331-01'
CONTEXT = {'traceparent': PARENT, 'tracestate': 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE', 'baggage': 'user=alice'}
VARIABLES = {name.upper(): value for name, value in CONTEXT.items()}
TRACED = {'PATH': os.environ['PATH'], **VARIABLES}


def traces(found):
    """The variables of a trace context in an environment."""
    return {name.decode(): value.decode() for name, value in found.items()
            if name.decode() in VARIABLES or name.decode()[5:] in CONTEXT}


def fields_of(queue, tid):
    flat = [part.decode() for part in queue.show(tid)['fields']]
    return dict(zip(flat[::2], flat[1::2]))


def test_a_task_continues_the_trace(daemon, queue, folder):
    """Well-formed fields are variables of both names; others are only those of leat."""
    daemon().wait_ready()
    line = f'env -0 > {folder}/$TASK_OUT.part; mv {folder}/$TASK_OUT.part {folder}/$TASK_OUT'
    queue.add({'command': line, 'OUT': 'fine', **CONTEXT},
              {'command': line, 'OUT': 'wrong', 'traceparent': 'not one', 'tracestate': 'a=1', 'baggage': '\\'},
              {'command': line, 'OUT': 'none'})
    wait_succeeded(queue, 3)
    both = {**VARIABLES, **{f'TASK_{name}': value for name, value in CONTEXT.items()}}
    assert traces(environment(folder / 'fine')) == both
    assert traces(environment(folder / 'wrong')) == {
        'TASK_traceparent': 'not one', 'TASK_tracestate': 'a=1', 'TASK_baggage': '\\'}
    assert traces(environment(folder / 'none')) == {}


def test_records_have_the_trace(daemon, queue, journal):
    """All records of the task in the journal have TRACE_ID: its start, its output, and each end."""
    worker = daemon({'log': {'target': 'journal', 'started': 'yes'}, 'retry': {'max_attempts': 2}}, start=False)
    worker.prefix = journal.prefix
    worker.start()
    [tid, other] = queue.add({'command': 'echo hello; exit 3', **CONTEXT}, {'command': 'echo hello'})
    wait_letters(queue)
    records = journal.wait(f'LEAT_TASK={tid}', count=6)
    assert {record['TRACE_ID'] for record in records} == {TRACE.encode()}
    events = [record['LEAT_EVENT'].decode() for record in records]
    assert sorted(events) == sorted(['started', 'output', 'retry', 'started', 'output', 'dead'])
    assert not [record for record in journal.wait(f'LEAT_TASK={other}', count=3) if 'TRACE_ID' in record]
    assert len(journal.read(f'TRACE_ID={TRACE}')) == 6


def test_enqueue_passes_it_on(leat, queue):
    """leat enqueue adds the context of its own environment, but not to tasks with one of their own."""
    queue.register('w1')

    def added(*words, env=TRACED, **options):
        done = leat('enqueue', *words, env=env, **options)
        assert done.returncode == 0, done
        found = fields_of(queue, done.stdout.split()[-1])
        return {name: found[name] for name in CONTEXT if name in found}
    assert added('true') == CONTEXT
    other = PARENT.replace('0af7', 'ffff')
    assert added('--field', f'traceparent={other}', 'true') == {'traceparent': other, 'baggage': 'user=alice'}
    assert added('--field', 'traceparent=', '--field', 'baggage=', 'true') == {'traceparent': '', 'baggage': ''}
    assert added('true', env={**TRACED, 'TRACEPARENT': 'x', 'BAGGAGE': ''}) == {}
    line = json.dumps({'command': 'true', 'traceparent': other})
    assert added('--file', '-', '--json-lines', input=line) == {'traceparent': other, 'baggage': 'user=alice'}
    assert added('--file', '-', input='true\nfalse\n') == CONTEXT


def test_from_python_to_python(daemon, queue, folder, base_config):
    """A task in Python that runs leat enqueue: the second task belongs to the trace of the first, which a plain
    XADD began."""
    daemon().wait_ready()
    config = write_config(folder / 'producer.ini', base_config)
    script = folder / 'task.py'
    script.write_text(f'''
import os, subprocess
assert os.environ['TRACEPARENT'] == {PARENT!r}
child = os.environ['TRACEPARENT'].replace('b7ad6b7169203331', 'aaaaaaaaaaaaaaaa')
subprocess.run([{program('leat')!r}, '-c', {str(config)!r}, 'enqueue', 'echo "$TRACEPARENT" > {folder}/child'],
               env=dict(os.environ, TRACEPARENT=child), check=True)
''')
    queue.redis.xadd(queue.stream, {'command': f'{sys.executable} {script}', 'traceparent': PARENT})
    wait_succeeded(queue, 2)
    assert wait_file(folder / 'child').decode() == PARENT.replace('b7ad6b7169203331', 'a' * 16) + '\n'


@pytest.mark.skipif(not shutil.which('node'), reason='no node here')
def test_from_node_to_node(daemon, queue, folder, base_config):
    """A program in Node adds a task in Node, and the context arrives there."""
    daemon().wait_ready()
    config = write_config(folder / 'producer.ini', base_config)
    task, producer = folder / 'task.cjs', folder / 'producer.cjs'
    task.write_text(f'''
const fs = require('fs');
const {{ TRACEPARENT, TRACESTATE, BAGGAGE }} = process.env;
fs.writeFileSync('{folder}/part', JSON.stringify({{ TRACEPARENT, TRACESTATE, BAGGAGE }}));
fs.renameSync('{folder}/part', '{folder}/seen');
''')
    producer.write_text(f'''
const {{ execFileSync }} = require('child_process');
const env = {{ ...process.env, ...{json.dumps(VARIABLES)} }};
execFileSync({json.dumps(str(program('leat')))}, ['-c', {json.dumps(str(config))}, 'enqueue', 'node', '{task}'],
  {{ env }});
''')
    subprocess.run(['node', str(producer)], check=True, timeout=600)
    wait_until(lambda: queue.counter('succeeded') == 1)
    assert json.loads(wait_file(folder / 'seen')) == VARIABLES
