"""Listed commands: tasks name a command of the configuration, and their fields become single arguments."""
import json
import os
import subprocess
import time

import pytest

from harness.daemon import merged, program, write_config
from harness.polling import wait_until
from harness.short_leases import boot_s
from harness.tasks import wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')

SHOW = '''#!/usr/bin/env python3
import json, os, sys
with open(sys.argv[0] + '.out', 'a') as out:
    out.write(json.dumps([sys.argv[1:], sys.stdin.read(), os.environ.get('TASK_A')]) + '\\n')
'''


@pytest.fixture
def tool(folder):
    """A program that records its arguments and input."""
    path = folder / 'tool'
    path.write_text(SHOW)
    path.chmod(0o755)

    def runs():
        out = folder / 'tool.out'
        return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    path_of_runs = type('Tool', (), {'path': str(path), 'runs': staticmethod(runs)})
    return path_of_runs


@pytest.fixture
def listed(tool):
    return {
        'security': {'commands': 'listed'},
        'command.show': {'program': tool.path, 'arguments': '''--a={A} '{B=no B}' "" -- {A}'''},
        'command.bare': {'program': 'true'},
        'command.bytes': {'program': tool.path, 'arguments': '{payload}'},
    }


def test_fields_become_arguments(daemon, listed, tool, queue):
    """Any value is one argument; payload and environment are as usual; no shell reads it."""
    daemon(listed).wait_ready()
    evil = '"; touch /tmp/x $(id) `id` \'{B}\' * \\ \n é'
    queue.add({'command': 'show', 'A': evil, 'B': '', 'payload': 'in'}, {'command': 'show', 'A': 'x y'},
              {'command': 'show', 'A': '-rf', 'B': '{A}'}, {'command': 'bare'})
    wait_succeeded(queue, 4)
    assert sorted(tool.runs()) == sorted([
        [[f'--a={evil}', '', '', '--', evil], 'in', evil],
        [['--a=x y', 'no B', '', '--', 'x y'], '', 'x y'],
        [['--a=-rf', '{A}', '', '--', '-rf'], '', '-rf']])


def test_an_option_as_the_fallback(daemon, listed, tool, queue):
    """A fallback in the configuration may begin with '-', because it is the operator's; a task's value may
    not."""
    daemon(merged(listed, {'command.show': {'arguments': '{A=-9}{B=--all}'}})).wait_ready()
    queue.add({'command': 'show'}, {'command': 'show', 'A': ''}, {'command': 'show', 'B': '-x'})
    wait_succeeded(queue, 3)
    assert sorted(args for args, _, _ in tool.runs()) == [['--all'], ['-9--all'], ['-9-x']]
    queue.add({'command': 'show', 'A': '', 'B': '-x'})
    [letter] = wait_letters(queue)
    assert letter.reason == 'field B begins with -: it would be taken for an option'


def test_unlisted_commands_are_refused(daemon, listed, tool, queue, client, folder):
    """Shell lines, unknown names, missing fields, options, NUL and too long values make dead letters with the
    reason."""
    daemon(listed).wait_ready()
    cases = [
        ({'command': f'touch {folder}/ran'}, 'is not listed'),
        ({'command': 'show2', 'A': 'x'}, 'command show2 is not'),
        ({'command': tool.path, 'A': 'x'}, 'is not listed'),
        ({'A': 'x'}, 'no command'),
        ({'command': 'show'}, 'field A is missing'),
        ({'command': 'show', 'A': 'x', 'B': '-x'}, 'field B begins with -'),
        ({'command': 'bytes', 'payload': b'a\0b'}, 'field payload holds a NUL byte'),
        ({'command': 'bytes', 'payload': b'a' * 131072}, 'longer than 131071 bytes'),
    ]
    tids = [client.xadd('emails', fields).decode() for fields, _ in cases]
    found = {letter.tid: letter for letter in wait_letters(queue, len(cases))}
    for tid, (fields, reason) in zip(tids, cases):
        assert found[tid].cause == 'refused' and reason in found[tid].reason, (fields, found[tid].own)
    assert tool.runs() == [] and not (folder / 'ran').exists()
    longest = 'a' * 131071
    queue.add({'command': 'bytes', 'payload': longest})
    wait_succeeded(queue, 1)
    assert tool.runs() == [[[longest], longest, None]]


def test_lines_of_a_file_become_arguments(daemon, listed, tool, queue, leat):
    """leat enqueue --as gives listed commands their arguments, one task for each line."""
    daemon(listed).wait_ready()
    config = {'security': {'commands': 'listed'}, 'command.show': {'program': tool.path, 'arguments': '-- {A}'}}
    done = leat('enqueue', '--file', '-', '--as', 'A', 'show', input='one two\n-x\n', config=config)
    assert done.returncode == 0, done.stderr
    wait_succeeded(queue, 2)
    assert sorted(arguments[-1] for arguments, _, _ in tool.runs()) == ['-x', 'one two']


@pytest.mark.parametrize('program_name', ['/none/tool', 'no-such-tool'])
def test_a_missing_program(daemon, listed, queue, tool, program_name):
    """Tasks of a missing program are requeued to wait, uncounted; a worker that has the program runs them."""
    broken = dict(listed, **{'command.show': {'program': program_name, 'arguments': '{A}'}})
    first = daemon(broken).wait_ready()
    first.wait_log(f'[command.show]: {program_name}: No such file')
    queue.add({'command': 'show', 'A': 'x'})
    first.wait_log('this host cannot run a listed command')
    assert f'cannot execute {program_name}: No such file' in first.log()
    first.terminate()
    first.wait_exit()
    daemon(listed).wait_ready()
    wait_succeeded(queue, 1)
    assert queue.counter('retried') == 0 and queue.entries('dead') == []


def test_a_program_that_is_missing_everywhere(daemon, listed, queue, tool):
    """However many tasks wait for a missing program, tasks of other commands run, and the waiting ones are
    not claimed in a loop. If the program is installed they run as first attempts."""
    place = tool.path + '.later'
    worker = daemon(merged(listed, {'queue': {'concurrency': 1}, 'command.show': {'program': place}})).wait_ready()
    begun = boot_s()
    queue.add(*[{'command': 'show', 'A': str(i)} for i in range(30)])
    wait_until(lambda: queue.counter('released') >= 30)
    queue.add(*[{'command': 'bare'}] * 20)
    wait_until(lambda: queue.counter('succeeded') >= 20)
    # each waits for at least half a second, then for a second, and so on
    released = queue.counter('released')
    tries = 1 + sum(number * (number + 1) / 4 <= boot_s() - begun for number in range(1, 60))
    assert released <= 30 * tries and queue.entries('dead') == []
    assert worker.log().count('this host cannot run a listed command') == 1
    assert 'this host cannot run tasks' not in worker.log()
    os.symlink(tool.path, place)
    wait_succeeded(queue, 50, 10)
    assert queue.counter('retried') == queue.counter('crashes') == 0


def test_a_program_without_mode(daemon, listed, queue, folder, tool):
    """A program that cannot be executed counts as missing; other host faults pause it as usual."""
    copy = folder / 'without-mode'
    copy.write_text(SHOW)
    gone = folder / 'gone'
    gone.mkdir()
    worker = daemon(merged(listed, {'task': {'directory': str(gone)},
                                    'command.show': {'program': str(copy), 'arguments': 'x'}})).wait_ready()
    worker.wait_log('[command.show]')
    queue.add({'command': 'show'})
    worker.wait_log('Permission denied; returned to the queue for')
    assert 'this host cannot run tasks' not in worker.log()
    gone.rmdir()
    queue.add({'command': 'bare'})
    worker.wait_log('this host cannot run tasks: cannot change to directory')


def test_reload(daemon, listed, tool, queue):
    """A reload adds new commands and removes old ones; tasks run with the commands of the current file."""
    worker = daemon(listed).wait_ready()
    text = worker.config_path.read_text()
    text = text.replace('[command.show]', '[command.other]')
    worker.config_path.write_text(text)
    worker.reload()
    worker.wait_log('configuration reloaded')
    assert '[command.' not in worker.log()
    queue.add({'command': 'other', 'A': 'x'})
    wait_succeeded(queue, 1)
    queue.add({'command': 'show', 'A': 'x'})
    [letter] = wait_letters(queue)
    assert 'command show is not' in letter.reason


def test_reload_with_a_missing_program(daemon, listed, tool):
    """If the new file names a missing program, the log says so."""
    worker = daemon(listed).wait_ready()
    worker.config_path.write_text(worker.config_path.read_text().replace(tool.path, '/none/tool'))
    worker.reload()
    worker.wait_log('[command.show]: /none/tool: No such file')


def test_notify_is_a_shell_line(daemon, listed, queue, folder):
    """[dead] notify is a shell line even if tasks may not bring any."""
    daemon(dict(listed, dead={'notify': f'echo $LEAT_COMMAND > {folder}/told'})).wait_ready()
    queue.add({'command': 'none'})
    wait_until(lambda: (folder / 'told').exists() and (folder / 'told').read_text() == 'none\n')


def config_errors(folder, base_config, text):
    """The output of leatd -t for a file with this text after the base."""
    path = write_config(folder / 'test.ini', base_config)
    first = path.read_text().count('\n')
    path.write_text(path.read_text() + text)
    done = subprocess.run([program('leatd'), '-t', '-c', str(path)], capture_output=True, text=True, check=False)
    return first, done


@pytest.mark.parametrize('text, line, said', [
    ('[security]\ncommands = listed\n', 2, 'no command is listed; add a section [command.NAME]'),
    ('[command.x]\nprogram = /bin/true\n', 2, 'add commands = listed'),
    ('[security]\ncommands = listed\n[task]\ncommand = true\n[command.x]\nprogram = /bin/true\n', 4,
     'cannot be combined'),
    ('[security]\ncommands = listed\n[command.x]\narguments = a\n', 4, '[command.x] has no program'),
    ('[command.x]\nprogramm = /bin/true\n', 2, 'did you mean program?'),
    ('[comand.x]\nprogram = /bin/true\n', 1, 'did you mean [command.NAME]?'),
    ('[command]\nprogram = /bin/true\n', 1, 'did you mean [command.NAME]?'),
    ('[command.x y]\nprogram = /bin/true\n', 1, 'use 1 to 40'),
    ('[command.]\nprogram = /bin/true\n', 1, 'use 1 to 40'),
    (f'[command.{"x" * 41}]\nprogram = /bin/true\n', 1, 'use 1 to 40'),
    ('[command.x]\nprogram = bin/true\n', 2, 'neither an absolute path nor a name'),
    ('[command.x]\nprogram = /bin/true\nprogram = /bin/false\n', 3, 'already set'),
    ('[command.x]\nprogram = /bin/true\narguments = {A\n', 3, 'write {{ for a brace'),
    ('[command.x]\nprogram = /bin/true\narguments = "a\n', 3, 'missing closing quote'),
    ('[command.x]\nprogram = /bin/true\narguments = a ;b\n', 3, 'begin a comment'),
    ('[task]\nprogram = /bin/true\n', 2, 'program: not a key of [task]; move it to [command.NAME]'),
])
def test_errors_name_file_and_line(folder, base_config, text, line, said):
    """Each error names file and line, and says what to do."""
    first, done = config_errors(folder, base_config, text)
    assert done.returncode == 78
    rows = [row for row in done.stderr.splitlines() if f'test.ini:{first + line}: ' in row]
    assert any(said in row for row in rows), done.stderr


def test_leatd_t_warns_of_a_missing_program(folder, base_config):
    """leatd -t only warns of a missing program, because another host may have it."""
    _, done = config_errors(folder, base_config, '[security]\ncommands = listed\n'
                            '[command.x]\nprogram = /none/tool\n[command.y]\nprogram = no-such-tool\n'
                            '[command.z]\nprogram = true\n')
    assert done.returncode == 0 and done.stdout.endswith(': ok\n')
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert '[command.x]: /none/tool: No such file or directory' in lines[0]
    assert '[command.y]: no-such-tool' in lines[1]


def test_sections_are_merged_for_two_workers(daemon, listed, queue, tool):
    """Two commands may share a program, each with its own arguments."""
    sections = merged(listed, {'command.second': {'program': tool.path, 'arguments': 'second {A=default}'}})
    daemon(sections).wait_ready()
    queue.add({'command': 'second'})
    wait_succeeded(queue, 1)
    assert tool.runs()[0][0] == ['second', 'default']


@pytest.mark.parametrize('sections, attempts, seconds', [
    ({}, 1000, 0),
    ({'task': {'timeout_max': '30s'}, 'retry': {'attempts_max': 7}}, 7, 30),
    ({'task': {'timeout': '20s'}, 'retry': {'max_attempts': 4}, 'security': {'commands': 'listed'}}, 4, 20),
    ({'task': {'timeout_max': 'none'}, 'retry': {'attempts_max': 'none'}, 'security': {'commands': 'listed'}},
     1000, 0),
], ids=['none', 'set', 'listed', 'listed, none'])
def test_maxima_of_what_a_task_asks_for(daemon, queue, folder, sections, attempts, seconds):
    """A task's timeout and max_attempts are lowered to timeout_max and attempts_max, and the log says so. By
    default there are none, but with listed commands they are the configuration's own values."""
    if 'security' in sections:
        sections['command.run'] = {'program': f'{folder}/run'}
        (folder / 'run').write_text(f'#!/bin/sh\necho "$LEAT_MAX_ATTEMPTS ${{LEAT_DEADLINE:-0}}" > {folder}/new\n'
                                    f'mv {folder}/new {folder}/out\n')
        (folder / 'run').chmod(0o755)
    worker = daemon(sections).wait_ready()
    command = f'echo "$LEAT_MAX_ATTEMPTS ${{LEAT_DEADLINE:-0}}" > {folder}/new; mv {folder}/new {folder}/out'
    queue.add({'command': 'run' if 'security' in sections else command, 'timeout': '0', 'max_attempts': '1000'})
    wait_succeeded(queue, 1)
    found, deadline = (folder / 'out').read_text().split()
    left = float(deadline) - time.time() if deadline != '0' else 0
    assert int(found) == attempts and seconds - 20 < left <= seconds
    assert ('timeout is above [task] timeout_max: lowered' in worker.log()) == (seconds > 0)
    assert ('max_attempts is above [retry] attempts_max: lowered' in worker.log()) == (seconds > 0)
