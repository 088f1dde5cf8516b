"""The command's help, its manual and its bash completion, held against each other and against the code."""
import os
import re
import subprocess

import pytest

from harness.daemon import ROOT, program

COMPLETION = ROOT / 'src/cli/leat.bash'
MANUAL = (ROOT / 'src/cli/leat.1').read_text()
CODE = '\n'.join(path.read_text() for path in sorted((ROOT / 'src/cli').rglob('*.[ch]')))


def help_of(*command):
    return subprocess.run([program('leat'), *command, '--help'], capture_output=True, text=True, check=True).stdout


def defined():
    """The commands of the code."""
    return set(re.findall(r'^const struct subcommand \w+_command = \{\s*(?:\.name = )?"(\w+)"', CODE, re.M))


def listed():
    """The commands of leat --help, with what is said of each."""
    text = help_of().split('Commands:\n')[1].split('\n\n')[0]
    return dict(line.split(None, 1) for line in text.splitlines())


def complete(folder, *words):
    """What bash offers for the last of the words."""
    script = f'set -u; source {COMPLETION}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); ' \
             f'_leat {program("leat")} && for one in "${{COMPREPLY[@]}}"; do echo "$one"; done'
    done = subprocess.run(['bash', '--norc', '-c', script, 'bash', 'leat', *words], capture_output=True, text=True,
                          cwd=folder, env=dict(os.environ, LEAT_CONFIG_DIR=str(folder)), check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, '')
    return done.stdout.splitlines()


def test_help_lists_every_command():
    """Each command stands in leat --help with a line, and in leat.1 with a section."""
    assert set(listed()) == defined() and len(defined()) >= 9
    sections = re.findall(r'^\.Ss leat ((?:\w+|, )+)$', MANUAL, re.M)
    assert set(listed()) <= {name for one in sections for name in one.split(' , ')}


def test_help_names_every_option():
    """Each long option of the code stands in some help, with a value where it takes one."""
    options = re.findall(r'\{"([a-z-]+)", (no|required|optional)_argument', CODE)
    texts = help_of() + ''.join(help_of(name) for name in listed())
    assert len(options) > 20
    for name, argument in options:
        ends = {'no': r'(?![\w-])', 'required': ' [A-Z]', 'optional': r' \[[A-Z]'}[argument]
        assert re.search(rf'--{name}{ends}', texts), name


def test_exit_codes_are_listed():
    """Each exit status that the code or a help names stands in leat.1."""
    manual = re.search(r'^\.Sh EXIT STATUS\n(.*?)^\.Sh', MANUAL, re.M | re.S).group(1)
    in_manual = [int(code) for code in re.findall(r'^\.It (\d+)$', manual, re.M)]
    assert in_manual == sorted(in_manual)
    in_code = {getattr(os, name) for name in re.findall(r'\bEX_[A-Z]+\b', CODE)}
    in_code |= {int(code) for code in re.findall(r'^#define INTERRUPT_STATUS (\d+)', CODE, re.M)}
    assert in_code <= set(in_manual)
    for text in [help_of(), *(help_of(name) for name in listed())]:
        codes = text.split('\nExit codes: ')[1]
        named = {int(code) for code in re.findall(r'(?:^|; )(\d+) ', codes.replace('\n', ' '))}
        assert 64 in named and named <= set(in_manual), text


def test_too_few_replicas_are_in_the_help():
    """What returns an exit code of its own where tasks are on too few replicas names it."""
    for name in ((), ('enqueue',), ('import',)):
        assert re.search(r'\b2 [^;]*replicas', help_of(*name).split('\nExit codes: ')[1].replace('\n', ' ')), name


def test_commands_are_completed(folder):
    """All commands, before and after options; and behind help."""
    names = list(listed())
    assert complete(folder, '') == names
    assert complete(folder, '-q', 'list', '') == names
    assert complete(folder, '--queue', '=', 'list', '') == names
    assert complete(folder, 'help', 'sta') == ['status']
    assert complete(folder, 'enq') == ['enqueue']
    assert complete(folder, 'nonsense', '') == []


def test_options_are_completed(folder):
    """Of each command all that its help names, and those of every command; none behind --."""
    common = ['--queue', '--config', '--help', '--version']
    assert complete(folder, '-') == common
    for name in listed():
        rows = re.findall(r'^  (?:-\w, )?(--[a-z-]+)', help_of(name), re.M)
        assert sorted(complete(folder, name, '--')) == sorted(rows + common)
        assert complete(folder, name, '--', '--') == []


def test_verbs_and_names_are_completed(folder):
    """What dead and conf take besides options."""
    assert complete(folder, 'dead', '') == ['list', 'show', 'retry', 'drop']
    assert complete(folder, 'dead', 'list', '') == []
    assert {'lease', 'max_length'} <= set(complete(folder, 'conf', ''))


def test_files_and_queues_are_completed(folder):
    """Files where an option takes one, queues by the files in /etc/leat; nothing where nothing is known."""
    for name in ('mails.ini', 'thumbs.ini', 'note'):
        (folder / name).touch()
    assert complete(folder, '-q', '') == complete(folder, 'status', '--queue', '=') == ['mails', 'thumbs']
    assert complete(folder, 'status', '-q', 'th') == ['thumbs']
    assert complete(folder, '-c', 'ma') == complete(folder, 'dead', '--config', 'ma') == ['mails.ini']
    for words in (['--file', '=', 'no'], ['--', 'x', 'no']):
        assert complete(folder, 'enqueue', *words) == ['note']
    assert complete(folder, 'enqueue', '--delay', '') == []
    assert 'bash' in complete(folder, 'enqueue', '--', 'bas')
    assert complete(folder, '-q', 'x') == []


@pytest.mark.parametrize('command, option', [('list', '--state'), ('dead', '--cause')])
def test_choices_are_completed(folder, command, option):
    """The choices of an option are those that its help names."""
    described = re.search(rf'^  {option} [A-Z]+ +(.*(?:\n {{8,}}.*)*)', help_of(command), re.M).group(1)
    words = set(re.findall(r'[a-z-]+', described)) - {'only', 'or', 'ones'}
    assert set(complete(folder, command, option, '')) == words
