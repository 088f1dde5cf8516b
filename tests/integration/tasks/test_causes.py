"""How attempts end, and what [retry] does for each cause, with real processes on the real daemon."""
import json
import os
import re
import resource
import signal
import subprocess

import pytest

from harness.daemon import program, run_leat
from harness.polling import wait_until
from harness.tasks import letters, wait_file, wait_letters

pytestmark = pytest.mark.usefixtures('quick_tasks')

RETRY = {'max_attempts': 3, 'base': '10ms', 'cap': '20ms'}


def tried(queue):
    """{the task's name: (cause, status, attempts)} of all dead letters."""
    return {letter.bytes[b'what'].decode(): (letter.cause, letter.status, int(letter.attempts))
            for letter in letters(queue)}


def ends(*lines):
    """Adds a task for each shell line, which is also its name."""
    return [{'command': line, 'what': line} for line in lines]


def exits(*codes):
    return ends(*[f'exit {code}' for code in codes])


def settled(queue, count):
    wait_until(lambda: queue.counter('succeeded') + len(letters(queue)) == count,
               message=lambda: f'{count} tasks end: {queue.places()}')


# ---- exit codes

def test_exit_codes(daemon, queue):
    """A code's own line outranks ranges and lists, and these outrank the line for all: dead at once, a number
    of attempts, the default number, or success."""
    daemon({'queue': {'concurrency': 8}, 'retry': {
        **RETRY, 'exit.75': 'retry 5', 'exit.64-78': 'dead', 'exit.70': 'retry', 'permanent': '9',
        'success': '3', 'exit.4': 'success', 'exit': '2'}}).wait_ready()
    queue.add(*exits(0, 1, 2, 3, 4, 9, 64, 70, 75, 78, 79, 255))
    settled(queue, 12)
    assert tried(queue) == {
        f'exit {code}': ('exit', str(code), attempts) for code, attempts in
        {1: 2, 2: 2, 9: 1, 64: 1, 70: 3, 75: 5, 78: 1, 79: 2, 255: 2}.items()}
    assert queue.counter('succeeded') == 3


def test_all_attempts_count(daemon, queue):
    """A rule's limit counts all attempts, however they ended: a failure of another kind is the last if the
    limit is reached."""
    daemon({'retry': {**RETRY, 'exit.75': 'retry 20', 'timeout': '1'}}).wait_ready()
    queue.add(*ends('test $LEAT_ATTEMPT = 6 && exit 1; exit 75'))
    [letter] = wait_letters(queue)
    assert (letter.status, letter.attempts) == ('1', '6')
    assert [line[5] for line in letter.lines()] == ['75'] * 5 + ['1']


def test_a_task_s_own_attempts(daemon, queue):
    """A task's own max_attempts is never exceeded, and applies if no rule has a smaller number."""
    daemon({'retry': {**RETRY, 'exit.75': 'retry 6'}}).wait_ready()
    queue.add(*[{'command': f'exit {code}', 'what': f'{code} {own}', 'max_attempts': str(own)}
                for code in (1, 75) for own in (1, 4, 9)])
    settled(queue, 6)
    assert {what: attempts for what, (_, _, attempts) in tried(queue).items()} == {
        '1 1': 1, '1 4': 4, '1 9': 9, '75 1': 1, '75 4': 4, '75 9': 6}


PRESETS = {
    'qmail': {0: 0, 1: 2, 64: 1, 65: 1, 66: 2, 70: 1, 75: 2, 76: 1, 77: 1, 78: 1, 99: 0, 100: 1, 111: 2, 112: 1},
    'sysexits': {0: 0, 1: 2, 64: 1, 65: 1, 69: 1, 70: 1, 71: 2, 72: 1, 74: 2, 75: 2, 76: 1, 78: 1, 79: 2, 100: 2},
    'none': {0: 0, 64: 2, 75: 2, 99: 2, 100: 2, 111: 2},
}


@pytest.mark.parametrize('preset', PRESETS)
def test_presets(daemon, queue, preset):
    """A preset makes codes temporary (2 attempts here), permanent (1) or success (0), by the convention of
    its name."""
    daemon({'queue': {'concurrency': 8},
            'retry': {**RETRY, 'max_attempts': 2, 'preset': preset}}).wait_ready()
    expected = PRESETS[preset]
    queue.add(*exits(*expected))
    settled(queue, len(expected))
    assert {what: attempts for what, (_, _, attempts) in tried(queue).items()} == {
        f'exit {code}': attempts for code, attempts in expected.items() if attempts}


def test_lines_outrank_the_preset(daemon, queue):
    """A line for a code outranks the preset; the line for all does not."""
    daemon({'queue': {'concurrency': 8}, 'retry': {
        **RETRY, 'preset': 'qmail', 'exit.100': 'retry 2', 'exit.64-65': 'success', 'permanent': '99',
        'exit': 'dead'}}).wait_ready()
    queue.add(*exits(64, 65, 70, 99, 100, 111, 1))
    settled(queue, 7)
    assert {what: attempts for what, (_, _, attempts) in tried(queue).items()} == {
        'exit 70': 1, 'exit 99': 1, 'exit 100': 2, 'exit 111': 3, 'exit 1': 1}


def test_a_line_gives_127_a_meaning(daemon, queue):
    """126 and 127 of a configured command are host faults, unless a line or a range names them."""
    worker = daemon({'task': {'command': 'exit $TASK_code'},
                     'retry': {'exit.127': 'dead', 'exit.120-126': '1'}}).wait_ready()
    queue.add({'code': '127', 'what': '127'}, {'code': '126', 'what': '126'})
    wait_letters(queue, 2)
    assert tried(queue) == {'127': ('exit', '127', 1), '126': ('exit', '126', 1)}
    assert 'this host' not in worker.log()


@pytest.mark.parametrize('name, code, rule', [('missing', '127', 'exit.127'), ('plain', '126', 'exit.100-126')])
def test_a_line_for_127_is_about_the_program(daemon, queue, folder, name, code, rule):
    """It also holds if the command is the path of a program that is missing or cannot be executed."""
    (folder / 'plain').touch(0o644)
    worker = daemon({'task': {'command': folder / name}, 'retry': {rule: 'dead'}}).wait_ready()
    queue.add({'what': 'x'})
    wait_letters(queue)
    assert tried(queue) == {'x': ('exit', code, 1)} and 'this host' not in worker.log()


# ---- signals and other causes

def test_signals(daemon, queue):
    """A signal's own line outranks the line for all signals; neither applies to killed, a KILL that leat did
    not send."""
    daemon({'queue': {'concurrency': 8}, 'retry': {
        **RETRY, 'signal.SEGV': 'dead', 'signal.SIGTERM': '4', 'signal.40': 'dead', 'signal': '2',
        'killed': 'retry 5'}}).wait_ready()
    queue.add(*ends(*[f'kill -{number} $$' for number in (11, 15, 40, 1, 9)]))
    settled(queue, 5)
    assert tried(queue) == {
        'kill -11 $$': ('signal', 'SIGSEGV', 1), 'kill -15 $$': ('signal', 'SIGTERM', 4),
        'kill -40 $$': ('signal', 'SIG40', 1), 'kill -1 $$': ('signal', 'SIGHUP', 2),
        'kill -9 $$': ('killed', 'SIGKILL', 5)}


def test_killed_by_others(daemon, queue, folder):
    """A KILL by another process, here the test, has the cause killed; a shell that survives a killed program
    exits with 137, which is an exit code."""
    daemon({'retry': {**RETRY, 'killed': 'dead', 'exit.137': 'dead'}}).wait_ready()
    queue.add(*ends(f'echo $$ > {folder}/pid; exec sleep 60'))
    os.kill(int(wait_file(folder / 'pid', 2)), signal.SIGKILL)
    wait_letters(queue)
    queue.add(*ends('sh -c "kill -9 \\$\\$"; exit $?'))
    wait_letters(queue, 2)
    assert sorted(tried(queue).values()) == [('exit', '137', 1), ('killed', 'SIGKILL', 1)]


def test_timeouts(daemon, queue):
    """A timeout has its own number of attempts, also if the task ignores TERM and leat sends KILL."""
    daemon({'task': {'timeout': '400ms', 'kill_grace': '100ms'},
            'retry': {**RETRY, 'timeout': '2', 'killed': 'dead'}}).wait_ready()
    queue.add(*ends('exec sleep 60', 'trap "" TERM; sleep 60; sleep 60'))
    settled(queue, 2)
    assert set(tried(queue).values()) == {('timeout', '', 2)}


@pytest.mark.parametrize('rule, attempts', [(None, 1), ('retry 2', 2)])
def test_too_long_to_execute(daemon, queue, folder, rule, attempts):
    """Variables that are too long for this system are neither a host fault nor refused fields: the start
    fails, permanently unless a line says otherwise."""
    worker = daemon({'retry': {**RETRY, 'cannot-execute': rule}}, start=False)
    worker.popen = {'preexec_fn': lambda: resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))}
    worker.start().wait_ready()
    queue.add({'command': f'touch {folder}/ran', **{name: 'v' * 120_000 for name in 'abc'}})
    [letter] = wait_letters(queue)
    assert (letter.cause, letter.status, int(letter.attempts)) == ('cannot-execute', '', attempts)
    assert 'Argument list too long' in letter.reason and not (folder / 'ran').exists()
    worker.wait_log('failed: cannot-execute, cannot execute /bin/sh: Argument list too long')
    assert 'this host' not in worker.log()


def test_check_has_a_rule(daemon, queue, folder):
    """An undecided check has its own number of attempts, and no rule of an exit code applies."""
    queue.register('gone', lease=5000)
    queue.add(*ends(f'touch {folder}/ran'))
    [task] = queue.begin('gone')
    queue.expire(task.token)
    daemon({'task': {'check': f'echo >> {folder}/asked; exit 5'},
            'retry': {**RETRY, 'check': '2', 'exit.5': 'dead'}}).wait_ready()
    [letter] = wait_letters(queue)
    assert (letter.cause, letter.reason, letter.attempts) == ('check', 'exit 5', '2')
    assert (folder / 'asked').read_text() == '\n\n' and not (folder / 'ran').exists()


def test_rules_are_for_tasks_that_ran_alone(daemon, queue):
    """The rules do not apply to a batch that fails as a whole, but to each of its tasks that then fails alone."""
    queue.add(*[{'payload': name, 'what': name} for name in ('a', 'bad', 'c')])
    daemon({'task': {'command': 'if grep -qx bad; then exit 65; fi; exit 0', 'batch': 3},
            'queue': {'concurrency': 1},
            'retry': {**RETRY, 'exit.65': 'dead', 'exit': 'dead'}}).wait_ready()
    settled(queue, 3)
    assert tried(queue) == {'bad': ('exit', '65', 1)} and queue.counter('retried') == 0


# ---- where causes appear

def test_filters_know_the_causes(daemon, queue, leat):
    """leat dead list --cause filters by causes and shows them; so do the log's fields and leat wait."""
    worker = daemon({'retry': {'killed': 'dead', 'signal': 'dead', 'exit.7': 'dead'}}).wait_ready()
    [killed, signalled, _] = queue.add(*[
        {'command': line, 'result_ttl': '1h'} for line in ('kill -9 $$', 'kill -8 $$', 'exit 7')])
    wait_letters(queue, 3)
    listed = json.loads(leat('dead', 'list', '--cause', 'killed', '--json').stdout)
    assert [row['tid'] for row in listed] == [killed] and listed[0]['cause'] == 'killed'
    listed = json.loads(leat('dead', 'list', '--cause', 'signal', '--json').stdout)
    assert [row['tid'] for row in listed] == [signalled]
    assert re.search(rf'{killed}.* killed SIGKILL', leat('dead', 'list', '--cause', 'killed').stdout)
    assert re.search('cause +killed', leat('show', killed).stdout)
    assert 'killed:SIGKILL' in leat('wait', killed).stdout
    worker.wait_log(f'task={killed} attempt=1 cause=killed')


# ---- the configuration file

def test_rules_are_reloaded(daemon, queue):
    """Rules apply from the reload on, also to running tasks, and vanish if the file no longer has them."""
    worker = daemon({'retry': {**RETRY, 'exit.9': 'dead', 'preset': 'qmail'}}).wait_ready()
    queue.add(*exits(9, 100))
    wait_letters(queue, 2)
    text = worker.config_path.read_text()
    text = text.replace('exit.9 = dead', 'exit.8 = dead\nsignal.HUP = dead\ntimeout = 1')
    worker.config_path.write_text(text.replace('preset = qmail', 'exit.100-101 = 2'))
    worker.reload()
    worker.wait_log('configuration reloaded')
    assert 'after a restart' not in worker.log()
    queue.add(*exits(8, 9, 100), *ends('kill -1 $$'))
    wait_until(lambda: len(letters(queue)) == 6)
    assert sorted((letter.status, int(letter.attempts)) for letter in letters(queue)) == [
        ('100', 1), ('100', 2), ('8', 1), ('9', 1), ('9', 3), ('SIGHUP', 1)]


WRONG = '''[queue]
name = q
[retry]
exit.300 = dead
exit.64-70 = ded
exit.7 = retry 0
exit.8 = dead
exit.8 = retry
signal.TREM = dead
signal.KILL = dead
oomm = dead
output_limit = dead
crash = 4
killed = success
preset = qmial
permanent = 100
exit.100-101 = dead
'''


def test_wrong_rules(folder):
    """All wrong rules are listed at once, in the order of the file, with the probable spelling."""
    path = folder / 'wrong.ini'
    path.write_text(WRONG)
    done = subprocess.run([program('leatd'), '-c', path, '-t'], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 78
    found = re.findall(rf'{path}:(\d+): (.*)', done.stderr)
    assert [int(line) for line, _ in found] == [4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 17]
    for part in ('an exit code from 1 to 255', 'did you mean dead?', 'did you mean TERM?', 'write killed =',
                 'did you mean oom?', 'did you mean output-limit?', 'max_crashes', 'did you mean qmail?',
                 'is also in a range of exit codes'):
        assert part in done.stderr, done.stderr
    # leat says the same
    assert run_leat(path, 'status').returncode == 78
