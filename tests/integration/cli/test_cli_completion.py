"""The completions of bash, zsh and fish, in the real shells: what they offer, and what they ask the queue for."""
import contextlib
import itertools
import json
import os
import pty
import re
import shutil
import subprocess

import pytest

from harness import processes
from harness.daemon import ROOT, program, write_config

# offers the completions of its arguments: one a line, perhaps with a tab and a description
BASH = r'''
source "$1"; COMP_LINE=$2; shift 2
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_POINT=${#COMP_LINE}
_leat "$1" && printf '%s\n' "${COMPREPLY[@]}"
'''
FISH = r'''
source $argv[1]
complete -C (string join ' ' -- (string escape -- $argv[2..-2]) "$argv[-1]")
'''
# an interactive zsh, whose compadd also writes what it offers
ZSH = r'''
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "stty -echo; PS1= PS2=; autoload -Uz compinit; compinit -C -d $4; source $1; compdef _leat leat"
zpty -w shell "compadd() {
    local -a hits
    if [[ \${@[1,(i)(-|--)]} != *-[a-zA-Z]#[OAD]\ * ]]; then
        builtin compadd -A hits \"\$@\"
        print -rl -- \$hits >>$2
    fi
    builtin compadd \"\$@\"
}"
zpty -w shell "zle -C offer list-choices _main_complete; bindkey '^X' offer; bindkey '^K' kill-whole-line"
zpty -w shell "finish() { zle kill-whole-line; : >$2.done }; zle -N finish; bindkey '^Y' finish; print rea''dy"
zpty -r shell answer '*ready*'
zpty -n -w shell "$3"$'\x18\x19'
until [[ -e $2.done ]]; do zpty -rt shell answer; sleep 0.02; done
'''


def split(text):
    """The words that a shell offers, without their descriptions."""
    return sorted({line.split('\t')[0] for line in text.splitlines() if line})


def run(argv, folder, **env):
    done = subprocess.run(argv, capture_output=True, text=True, cwd=folder, check=False, timeout=300,
                          stdin=subprocess.DEVNULL,
                          env=dict(os.environ, LEAT_CONFIG_DIR=str(folder), HOME=str(folder), TERM='dumb',
                                   PATH=f'{folder}/.bin:{os.environ["PATH"]}', **env))
    assert (done.returncode, done.stderr) == (0, ''), done.stdout
    return done.stdout


@pytest.fixture(scope='session')
def zsh_dump(tmp_path_factory):
    """What compinit finds, which takes it seconds on a busy machine."""
    path = tmp_path_factory.mktemp('zsh') / 'dump'
    if shutil.which('zsh'):
        subprocess.run(['zsh', '-f', '-c', 'autoload -Uz compinit; compinit -u -d $1', 'zsh', path], check=True)
    return path


class Shell:
    """The completion of one shell."""

    def __init__(self, name, folder, zsh_dump):
        self.name, self.folder, self.zsh_dump = name, folder, zsh_dump
        self.script = ROOT / f'src/cli/leat.{name}'
        self.times = 0
        if not shutil.which(name):
            pytest.skip(f'no {name} here')
        # on a busy machine, Redis may not answer within the time that people would wait for
        patient = folder / '.bin/timeout'
        patient.parent.mkdir()
        patient.write_text('#!/bin/sh\nshift\nexec "$@"\n')
        patient.chmod(0o755)

    def __call__(self, *words):
        """Returns what is offered for the last word."""
        words = [program('leat'), *words]
        if self.name == 'bash':
            # bash has these as words of their own, unless they are quoted
            pieces = [re.findall(r'[=:]+|@?[^=:@]+|@', word) or [''] if '"' not in word else [word]
                      for word in map(str, words[1:])]
            line = ' '.join(map(str, words))
            return split(run(['bash', '--norc', '-c', 'set -u; ' + BASH, 'bash', self.script, line, words[0],
                              *itertools.chain(*pieces)], self.folder))
        if self.name == 'fish':
            return split(run(['fish', '-N', '-c', FISH, self.script, *words], self.folder,
                             XDG_CONFIG_HOME=str(self.folder / '.config')))
        self.times += 1
        offered = self.folder / f'.offered{self.times}'
        offered.touch()
        run(['zsh', '-f', '-c', ZSH, 'zsh', self.script, offered, ' '.join(map(str, words)), self.zsh_dump],
            self.folder)
        return split(offered.read_text())


@pytest.fixture(params=['bash', 'zsh', 'fish'])
def complete(request, folder, zsh_dump):
    return Shell(request.param, folder, zsh_dump)


def help_of(*command):
    return subprocess.run([program('leat'), *command, '--help'], capture_output=True, text=True, check=True).stdout


def commands():
    text = help_of().split('Commands:\n')[1].split('\n\n')[0]
    return sorted(line.split()[0] for line in text.splitlines())


def test_commands_and_options(complete):
    """Commands, and the options of a command with the common ones that may follow it; nothing for a command that
    does not exist."""
    assert complete('') == sorted([*commands(), 'help'])
    assert complete('help', '') == sorted([*commands(), 'help', 'ini'])
    assert complete('enq') == ['enqueue']
    assert complete('-q', 'list', 'sta') == ['status']
    assert complete('nonsense', '') == []
    options = set(re.findall(r'^  (?:-\w, )?(--[a-z-]+)', help_of('list') + help_of(), re.M))
    assert '--version' in complete('--')
    assert set(complete('list', '--')) == options - {'--version'}
    assert complete('list', '--sta') == ['--state']


def test_verbs_keys_and_choices(complete):
    """Verbs of dead, names of conf, keys of the configuration, and the choices of an option."""
    assert complete('dead', '') == ['drop', 'list', 'retry', 'show']
    assert complete('conf', 'max_') == ['max_crashes', 'max_length', 'max_task']
    assert complete('help', 'ini', 'umas') == ['umask']
    assert complete('help', 'ini', 'task.uma') == ['task.umask']
    assert complete('list', '--state', 're') == ['ready', 'retrying']
    assert complete('dead', 'list', '--cause', 'out') == ['output-limit']


def test_queues_and_files(complete, folder):
    """-q, destroy and --to complete the queues of /etc/leat, -c files, a command line the programs after --."""
    for name in ('mails.ini', 'thumbs.ini', 'notes'):
        (folder / name).touch()
    assert complete('-q', '') == complete('status', '--queue', '') == ['mails', 'thumbs']
    assert complete('destroy', '') == complete('move', '--to', '') == ['mails', 'thumbs']
    assert complete('-q', 'th') == ['thumbs']
    assert complete('-c', 'ma') == complete('dead', '--config', 'ma') == ['mails.ini']
    assert complete('enqueue', '--file', 'no') == ['notes']
    assert 'basename' in complete('enqueue', '--', 'base')


class Known:
    """A queue with tasks in every place, hosts and lanes, and the options that name it."""

    def __init__(self, queue, folder, base_config):
        self.options = ['-c', str(write_config(folder / 'emails.ini', base_config))]
        beat = {'host': 'web1', 'pid': 1, 'version': '0.2.0', 'slots': 2, 'running': 0}
        queue.register('web1:1:a', heartbeat=json.dumps(beat))
        [self.dead] = queue.add({'command': 'false', 'id': 'broken'})
        queue.finish('web1:1:a', queue.begin('web1:1:a')[0], 'dead', cause='exit', status='1')
        self.alive = queue.add({'command': 'true', 'id': 'monthly/report'},
                               {'command': '"tid":"1-1"', 'id': 'two words'})
        self.alive += queue.add(*[{'command': 'true', 'lane': lane} for lane in ('alice', 'bob')], due='+600000')
        queue.gate('drain:web7', True)


@pytest.fixture
def offered(complete, known):
    """A function that fails unless these words are offered for a queue with tasks."""
    def check(wanted, *words):
        assert complete(*known.options, *words) == wanted, words
    return check


@pytest.fixture
def known(queue, folder, base_config):
    return Known(queue, folder, base_config)


def test_tasks_are_completed(complete, known, offered):
    """Commands for tasks complete ids and labels that need no quotes; those for dead letters only these."""
    everything = sorted([*known.alive, known.dead, 'broken', 'monthly/report'])
    for command in ('show', 'explain', 'logs', 'wait', 'cancel'):
        offered(everything, command, '')
    offered(['monthly/report'], 'show', 'broken', 'mon')
    for verb in ('show', 'retry', 'drop'):
        offered(sorted([known.dead, 'broken']), 'dead', verb, '')
    offered(['broken'], 'dead', 'drop', 'b')
    assert complete(*known.options, 'dead', 'list', '') == []


def test_hosts_and_lanes_are_completed(complete, offered):
    """drain and undrain complete hosts, those without a worker too; --lane and lane: complete lanes."""
    offered(['web1', 'web7'], 'drain', '')
    offered(['web1', 'web7'], 'undrain', '')
    offered(['alice', 'bob'], 'enqueue', '--lane', '')
    offered(['bob'], 'dead', 'list', '--lane', 'b')
    # bash replaces what follows the colon
    offered(['alice' if complete.name == 'bash' else 'lane:alice'], 'conf', 'lane:a')


def test_words_with_colons(complete, queue, known, offered):
    """Labels and lanes with : and @ are completed after these, too, of which bash replaces only a part."""
    queue.add({'command': 'true', 'id': 'user:7', 'lane': 'mail:in'},
              {'command': 'true', 'id': 'user@host', 'lane': 'mail:in'}, due='+600000')
    is_bash = complete.name == 'bash'
    offered(['7' if is_bash else 'user:7'], 'show', 'user:')
    offered(['@host' if is_bash else 'user@host'], 'cancel', 'user:7', 'user@')
    offered(['@host' if is_bash else 'user@host'], 'edit', '--field', 'SIZE=2', 'user@h')
    offered(['in' if is_bash else 'mail:in'], 'enqueue', '--lane', 'mail:')
    offered(['in' if is_bash else 'lane:mail:in'], 'conf', 'lane:mail:')
    joined = {'bash': 'in', 'zsh': 'mail:in', 'fish': '--lane=mail:in'}[complete.name]
    offered([joined], 'enqueue', '--lane=mail:i')


def test_the_queue_is_found_as_it_is_typed(complete, known, folder):
    """A file in ~ and quoted values are understood, but nothing in them is run."""
    assert complete('-c', '~/emails.ini', 'show', 'mon') == ['monthly/report']
    if complete.name != 'fish':  # which quotes the words of this test itself
        assert complete('-c', f'"{folder}/emails.ini"', 'show', 'mon') == ['monthly/report']
        assert complete('-c', f'"$(echo>{folder}/ran)"', 'show', 'mon') == []
    assert not (folder / 'ran').exists()


def test_the_queue_in_the_word_of_its_option(complete, known, folder):
    """-cFILE and --config=FILE name the queue that is asked, as -c FILE does."""
    (folder / 'other.ini').touch()  # so leat itself cannot choose
    path = known.options[1]
    assert complete(f'-c{path}', 'show', 'mon') == ['monthly/report']
    assert complete(f'--config={path}', 'show', 'mon') == ['monthly/report']


def test_files_in_the_home_folder(complete, folder):
    """Files are completed after ~/ too."""
    (folder / 'notes').touch()
    for words in (('enqueue', '--file', '~/no'), ('-c', '~/no'), ('enqueue', '--', 'cat', '~/no')):
        assert [one.removeprefix('~/') for one in complete(*words)] == ['notes'], words


def test_what_others_chose_is_not_run(complete, queue, known, offered, folder):
    """Names that others chose are not run. They are not offered if a shell had to quote them, or if they look like
    options."""
    command = f'$(echo>{folder}/ran)'
    queue.gate(f'drain:{command}', True)
    queue.gate('drain:web8;reboot', True)
    more = queue.add({'command': 'true', 'id': command, 'lane': command}, {'command': 'true', 'id': '--all'},
                     due='+600000')
    offered(['web1', 'web7'], 'undrain', '')
    offered(sorted([*known.alive, *more, known.dead, 'broken', 'monthly/report']), 'show', '')
    offered(['alice', 'bob'], 'enqueue', '--lane', '')
    assert not (folder / 'ran').exists()


def test_without_redis(complete, folder):
    """If no server answers, nothing is offered and nothing is printed."""
    write_config(folder / 'emails.ini', {'redis': {'socket': str(folder / 'none')}, 'queue': {'name': 'emails'}})
    assert complete('-q', 'emails', 'show', '') == []
    assert complete('-q', 'emails', 'drain', '') == []


@pytest.mark.parametrize('name, started', [
    ('bash', ['bash', '--norc', '-i']), ('zsh', ['zsh', '-f', '-i']), ('fish', ['fish', '-N'])])
def test_tab(name, started, folder, zsh_dump, wait_until):
    """In an interactive shell, Tab completes a command, and the line runs."""
    shell = Shell(name, folder, zsh_dump)
    (folder / 'leat').symlink_to(program('leat'))
    ours, theirs = pty.openpty()
    env = dict(os.environ, PATH=f'{folder}:{os.environ["PATH"]}', HOME=str(folder), TERM='dumb', PS1='$ ')
    process = processes.start(['setsid', '--ctty', *started], stdin=theirs, stdout=theirs, stderr=theirs,
                              cwd=folder, env=env)
    os.close(theirs)
    os.set_blocking(ours, False)
    shown = bytearray()

    def shows(text):
        def there():
            with contextlib.suppress(BlockingIOError):
                shown.extend(os.read(ours, 65536))
            return text in shown
        wait_until(there, message=lambda: shown)

    setup = f'autoload -Uz compinit; compinit -C -d {zsh_dump}; ' * (name == 'zsh')
    after = '; compdef _leat leat' * (name == 'zsh')
    os.write(ours, f'{setup}. {shell.script}{after}; echo rea""dy\n'.encode())
    shows(b'ready')
    os.write(ours, b'leat canc\t--help\n')
    shows(b'Usage: leat cancel')
    process.kill()
    process.wait()
    os.close(ours)
