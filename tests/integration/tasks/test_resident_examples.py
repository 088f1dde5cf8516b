"""The resident processes in conf/handlers and in leatd(8) work as they are shipped, in each language."""
import re
import shutil
import subprocess

import pytest

from harness.batches import add
from harness.daemon import ROOT
from harness.tasks import records, wait_letters

pytestmark = pytest.mark.usefixtures('quick_tasks')

EXAMPLES = sorted((ROOT / 'conf' / 'handlers').iterdir())


@pytest.fixture(params=EXAMPLES, ids=lambda path: path.name)
def example(request, folder):
    """(text, command) of an example."""
    text = request.param.read_text()
    interpreter = re.match(r'#!(\S+)\n', text)
    if not interpreter:
        subprocess.run(['gcc', '-Wall', '-Wextra', '-Werror', '-o', folder / 'handler', request.param], check=True)
        return text, folder / 'handler'
    if not shutil.which(interpreter[1]):
        pytest.skip(f'there is no {interpreter[1]}')
    return text, request.param


@pytest.mark.parametrize('path', EXAMPLES, ids=lambda path: path.name)
def test_is_short(path):
    """An example can be read at a glance."""
    assert len(path.read_text().splitlines()) < 40


def test_works(daemon, queue, example):
    """It does its tasks with their output, reports an error of a single task, and ends with the worker."""
    text, command = example
    form = re.search(r'batch_format = (\w+)', text)[1]
    worker = daemon({'queue': {'concurrency': 1, 'lease': '5m'}, 'retry': {'max_attempts': 1},
                     'task': {'command': f'exec {command}', 'resident': 'yes', 'batch_format': form,
                              'resident_start_timeout': '10m', 'kill_grace': '1m'}}).wait_ready()
    good = add(queue, 'one') + add(queue, '') + add(queue, 'two words\u2028')
    bad = good.pop(1)
    [letter] = wait_letters(queue)
    for tid in good:
        worker.wait_log(f'task {tid}: attempt 1 succeeded')
    assert (letter.own['leat.tid'], letter.cause) in [(bad, 'reported'), (bad, 'exit')]
    assert 'there is no payload' in letter.reason or letter.tail('stderr') == b'there is no payload\n'
    output = [message for _, _, message in records(worker.log()) if 'stream=stdout' in message]
    assert [f'task={tid} ' in line for tid, line in zip(good, output)] == [True, True]
    assert 'one' in output[0] and 'two words' in output[1]
    worker.terminate()
    assert worker.wait_exit() == 0 and 'has not ended' not in worker.log()


def test_manual(daemon, queue, folder):
    """The program in leatd(8) reports on one task at a time, also if a producer chooses the lines of its error."""
    manual = (ROOT / 'src/daemon/leatd.8').read_text()
    program = re.search(r'^import json, os, sys\n.*?(?=^\.Ed$)', manual, re.M | re.S)
    (folder / 'manual.py').write_text('def work(fields):\n    if "payload" in fields:\n'
                                      '        raise ValueError(fields["payload"])\n\n\n' + program[0])
    add(queue, 'no such size\n2 ok\n', 'no such color')
    daemon({'queue': {'concurrency': 1, 'lease': '5m'}, 'retry': {'max_attempts': 2},
            'task': {'command': f'exec /usr/bin/python3 {folder}/manual.py', 'resident': 'yes', 'batch': 2,
                     'batch_format': 'json', 'resident_start_timeout': '10m', 'kill_grace': '1m'}})
    assert {letter.reason for letter in wait_letters(queue, 2)} == {'no such size 2 ok', 'no such color'}
