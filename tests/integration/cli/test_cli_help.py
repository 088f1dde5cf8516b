"""The command's help, its manual and its bash completion agree with each other and with the code."""
import errno
import os
import pty
import re
import subprocess

import pytest

from harness.daemon import ROOT, program

COMPLETION = ROOT / 'src/cli/leat.bash'
MANUAL = (ROOT / 'src/cli/man/leat.1').read_text()
CODE = '\n'.join(path.read_text() for path in sorted((ROOT / 'src/cli').rglob('*.[ch]')))


def help_of(*command):
    return subprocess.run([program('leat'), *command, '--help'], capture_output=True, text=True, check=True).stdout


def defined():
    """The commands in the code."""
    return set(re.findall(r'^const struct subcommand \w+_command = \{\s*(?:\.name = )?"(\w+)"', CODE, re.M))


def listed():
    """The commands in leat --help, with their descriptions."""
    text = help_of().split('Commands:\n')[1].split('\n\n')[0]
    return dict(line.split(None, 1) for line in text.splitlines())


def exit_codes(text):
    """{exit code: its text} of a help."""
    rows = re.findall(r'^  (\d+) +(.*(?:\n {6}.*)*)', text.split('\nExit codes:\n')[1], re.M)
    return {code: ' '.join(meaning.split()) for code, meaning in rows}


def complete(folder, *words):
    """The completions of bash for the last word. bash makes three words of --option=value."""
    script = f'set -u; source {COMPLETION}; COMP_LINE=$1; COMP_POINT=${{#COMP_LINE}}; shift; COMP_WORDS=("$@"); ' \
             f'COMP_CWORD=$(($# - 1)); _leat {program("leat")} && ' \
             'for one in "${COMPREPLY[@]}"; do echo "$one"; done'
    line = ' '.join(['leat', *words]).replace(' =', '=').replace('= ', '=')
    done = subprocess.run(['bash', '--norc', '-c', script, 'bash', line, 'leat', *words], capture_output=True,
                          text=True, cwd=folder, env=dict(os.environ, LEAT_CONFIG_DIR=str(folder)), check=False,
                          timeout=60)
    assert (done.returncode, done.stderr) == (0, '')
    return done.stdout.splitlines()


def test_help_lists_every_command():
    """Each command has a line in leat --help, and a reference to its page in leat.1."""
    assert set(listed()) == defined() and len(defined()) >= 9
    commands = re.search(r'^\.Sh COMMANDS\n(.*?)^\.Sh', MANUAL, re.M | re.S).group(1)
    assert set(listed()) == set(re.findall(r'\bXr leat-(\w+) 1', commands))


def test_help_names_every_option():
    """Each long option of the code is in some help, with a value if it takes one."""
    options = re.findall(r'\{"--([a-z-]+)"([^}]*)\}', CODE)
    texts = help_of() + ''.join(help_of(name) for name in listed())
    assert len(options) > 20
    for name, rest in options:
        ends = r'(?![\w-])' if '.flag' in rest or 'CLI_NO_VALUE' in rest else \
            r' \[[A-Z]' if 'CLI_MAY_HAVE_VALUE' in rest else ' [A-Z]'
        assert re.search(rf'--{name}{ends}', texts), name


def test_exit_codes_are_listed():
    """Each exit status of the code or of a help is in leat.1."""
    manual = re.search(r'^\.Sh EXIT STATUS\n(.*?)^\.Sh', MANUAL, re.M | re.S).group(1)
    in_manual = [int(code) for code in re.findall(r'^\.It (\d+)', manual, re.M)]
    assert in_manual == sorted(in_manual)
    in_code = {getattr(os, name) for name in re.findall(r'\bEX_[A-Z]+\b', CODE)}
    in_code |= {int(code) for code in re.findall(r'^#define INTERRUPT_STATUS (\d+)', CODE, re.M)}
    assert in_code <= set(in_manual)
    for text in [help_of(), *(help_of(name) for name in listed())]:
        named = [int(code) for code in exit_codes(text)]
        assert (64 in named or 125 in named) and set(named) <= set(in_manual) and named == sorted(named), text


def test_too_few_replicas_are_in_the_help():
    """The help of each command that can exit with 2 for too few replicas says so."""
    for name in ((), ('enqueue',), ('import',)):
        assert 'replicas' in exit_codes(help_of(*name))['2'], name


def test_commands_are_completed(folder):
    """All commands are completed, before and after options, and after help."""
    names = list(listed())
    assert complete(folder, '') == [*names, 'help']
    assert complete(folder, '-q', 'list', '') == [*names, 'help']
    assert complete(folder, '--queue', '=', 'list', '') == [*names, 'help']
    assert complete(folder, 'help', 'sta') == ['status']
    assert complete(folder, 'enq') == ['enqueue']
    assert complete(folder, 'help', '') == [*names, 'help', 'ini']
    assert complete(folder, 'nonsense', '') == []


def test_keys_are_completed(folder):
    """leat help ini completes names of keys, with their sections if a dot was typed."""
    assert {'host', 'umask', 'exit.CODE', 'program'} <= set(complete(folder, 'help', 'ini', ''))
    assert complete(folder, 'help', 'ini', 'umas') == ['umask']
    assert complete(folder, 'help', 'ini', 'task.uma') == ['task.umask']
    assert complete(folder, 'help', 'ini', 'umask', '') == []


def test_options_are_completed(folder):
    """Each command completes the options of its help and the common ones that may follow it, and none after --."""
    common = ['--queue', '--config', '--redis', '--password-file', '--help']
    assert complete(folder, '-') == [*common, '--version']
    for name in listed():
        rows = re.findall(r'^  (?:-\w, )?(--[a-z-]+)', help_of(name), re.M)
        assert sorted(complete(folder, name, '--')) == sorted(rows + common)
        assert complete(folder, name, '--', '--') == []


def test_options_have_descriptions_beside_them():
    """Completions of zsh and fish show the description that the help has on the line of an option."""
    for text in (help_of(), *map(help_of, listed())):
        for option, description in re.findall(r'^  (?:-\w, )?(--[a-z-]+)(?: [A-Z]+)?(.*)$', text, re.M):
            assert description.strip(), option


def test_verbs_and_names_are_completed(folder):
    """dead and conf complete their other arguments."""
    assert complete(folder, 'dead', '') == ['list', 'show', 'retry', 'drop']
    assert complete(folder, 'dead', 'list', '') == []
    assert {'lease', 'max_length'} <= set(complete(folder, 'conf', ''))


def test_files_and_queues_are_completed(folder):
    """An option that takes a file completes files, and -q the queues of /etc/leat; otherwise nothing is
    offered."""
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
    """An option completes the choices that its help names."""
    described = re.search(rf'^  {option} [A-Z]+ +(.*(?:\n {{8,}}.*)*)', help_of(command), re.M).group(1)
    words = set(re.findall(r'[a-z-]+', described)) - {'only', 'or', 'ones'}
    assert set(complete(folder, command, option, '')) == words


def ask(*words):
    """leat help without a terminal: exit status, stdout, stderr."""
    done = subprocess.run([program('leat'), 'help', *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def on_terminal(path, *words):
    """The output of leat help on a terminal, with programs of this PATH only."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([program('leat'), 'help', *words], stdin=theirs, stdout=theirs, stderr=theirs,
                          env=dict(os.environ, PATH=str(path))) as process:
        os.close(theirs)
        text = b''
        try:
            while chunk := os.read(ours, 4096):
                text += chunk
        except OSError as error:
            assert error.errno == errno.EIO  # the other side of the terminal was closed
        assert process.wait(60) == 0
    os.close(ours)
    return text.decode().replace('\r\n', '\n')


def install_man(folder, known):
    """A man program that has only that page, and that dies of SIGPIPE as programs do."""
    folder.mkdir()
    (folder / 'man').write_text(
        '#!/bin/sh\n'
        f'if [ "$1" = -w ]; then [ "$2 $3" = "1 {known}" ]; exit; fi\n'
        'case $(/bin/grep SigIgn /proc/self/status) in *1???) echo SIGPIPE is ignored;; esac\n'
        'echo "man: $*"\n')
    (folder / 'man').chmod(0o755)


def test_help_opens_the_manual_on_a_terminal(folder):
    """leat help COMMAND runs man; without the page, man or a terminal it prints --help."""
    install_man(folder / 'bin', 'leat-cancel')
    assert on_terminal(folder / 'bin', 'cancel') == 'man: 1 leat-cancel\n'
    assert on_terminal(folder / 'bin', 'list') == help_of('list')
    assert on_terminal(folder / 'none', 'cancel') == help_of('cancel')
    assert ask('cancel') == (0, help_of('cancel'), '')
    assert ask() == (0, help_of(), '')


def test_help_of_an_unknown_command():
    """leat help suggests the nearest command and exits with 64."""
    code, out, err = ask('cancle')
    assert (code, out) == (64, '') and 'did you mean cancel?' in err
    code, out, err = ask('foo')
    assert (code, out) == (64, '') and 'did you mean' not in err


@pytest.mark.parametrize('word', ['help', '--help', '-h'])
def test_help_of_help(word):
    """leat help help, --help and -h print the usage of leat help."""
    code, out, err = ask(word)
    assert (code, err) == (0, '') and out.startswith('Usage: leat help [COMMAND | ini [KEY]]\n')


def test_help_takes_one_command():
    """leat help refuses a second operand instead of ignoring it."""
    code, out, err = ask('cancel', 'list')
    assert (code, out) == (64, '') and 'unexpected argument: list' in err


@pytest.mark.parametrize('words, keys', [
    (['umask'], ['[task] umask']),
    (['timeout'], ['[task] timeout', '[retry] timeout']),
    (['task.timeout'], ['[task] timeout']),
    (['task', 'timeout'], ['[task] timeout']),
    (['[task]', 'timeout'], ['[task] timeout']),
    (['[task] timeout'], ['[task] timeout']),
    (['retry.exit.64-78'], ['[retry] exit.CODE']),
    (['signal.TERM'], ['[retry] signal.NAME']),
    (['lanes.mails'], ['[lanes] NAME']),
    (['command.NAME.program'], ['[command.NAME] program']),
    (['[command.resize] program'], ['[command.NAME] program']),
])
def test_help_explains_keys(words, keys):
    """leat help ini KEY explains each key of that name, in every form that names a section."""
    code, out, err = ask('ini', *words)
    assert (code, err) == (0, '')
    assert re.findall(r'^\[.*', out, re.M) == keys
    for line in (r'^  Type: \S', r'^  Default: \S', r'^  Reload: (?:yes|no|no; leat conf changes .*)$'):
        assert len(re.findall(line, out, re.M)) == len(keys)


def test_help_of_a_key_is_what_the_table_says():
    """The help has name, meaning, type, range, default and whether a reload applies it, as in src/config's table
    of keys."""
    table = (ROOT / 'src/config/table.c').read_text()
    meaning = re.search(r'KEY\("redis", "port", "integer", "6379", true,\s+"(.*)"\)', table)[1]
    assert ask('ini', 'redis.port')[1] == (f'[redis] port\n  {meaning}\n  Type: integer\n  Range: 1 to 65535\n'
                                           '  Default: 6379\n  Reload: yes\n\nSee leat.ini(5).\n')


@pytest.mark.parametrize('key, ranges', [
    ('resident_memory', ['1M to 1048576T']), ('max_task', ['64K to 1T']), ('umask', ['000 to 777']),
    ('free_memory', ['1M to 1048576T, or 1% to 99%']), ('history', ['0 to 100000, or 1m to 3650d']),
    ('scan', ['100ms to 1d', '100ms to 1d']), ('stream', [])])
def test_help_of_a_key_has_its_range(key, ranges):
    """The help has the smallest and the greatest number that a key takes, as its error does; other keys have no
    range."""
    assert re.findall('^  Range: (.*)$', ask('ini', key)[1], re.M) == ranges


@pytest.mark.parametrize('key, reload', [
    ('kill_grace', 'yes'), ('stream', 'no'), ('lease', "no; leat conf changes the queue's value"),
    ('only', "no; leat conf changes the queue's value")])
def test_help_of_a_key_says_what_applies_a_change(key, reload):
    """For a shared setting the help names leat conf, because a restart does not apply it either."""
    assert f'\n  Reload: {reload}\n' in ask('ini', key)[1]


def test_help_of_max_length_says_what_counts():
    """The length limit counts waiting tasks and those that run from the stream, and does not bind XADD."""
    text = ' '.join(ask('ini', 'max_length')[1].split())
    assert 'wait' in text and 'run from the stream' in text and 'XADD does not' in text


def test_help_lists_keys():
    """leat help ini has a line for each key of the table; with a section, for each of its keys."""
    table = (ROOT / 'src/config/table.c').read_text()
    known = ['.'.join(key) for key in re.findall(r'^    \{KEY\("([\w.]+)",\s+"([\w.-]+)"', table, re.M)]
    code, out, err = ask('ini')
    assert (code, err) == (0, '') and [line.split()[0] for line in out.splitlines()[1:]] == known
    assert len(known) > 100
    for section in ('log', '[log]'):
        listed_keys = [line.split()[0] for line in ask('ini', section)[1].splitlines()[1:]]
        assert listed_keys == [key for key in known if key.startswith('log.')]


@pytest.mark.parametrize('words, said', [
    (['kill_grase'], 'unknown key: kill_grase; did you mean task.kill_grace?'),
    (['tsak.umsk'], 'did you mean task.umask?'),
    (['task.tmeout'], 'did you mean task.timeout?'),
    (['[task] tmeout'], 'did you mean task.timeout?'),
    (['[tsak] umask'], 'unknown section: [tsak]; did you mean [task]?'),
    (['frobnicate'], 'unknown key: frobnicate; leat help ini lists all keys'),
    (['task', 'umask', 'x'], 'unexpected argument: x'),
    ([''], 'unknown key: '),
    (['[]'], 'unknown key: '),
])
def test_unknown_keys(words, said):
    """A wrong key gets the nearest one as a suggestion, and exit status 64."""
    code, out, err = ask('ini', *words)
    assert (code, out) == (64, '') and said in err
