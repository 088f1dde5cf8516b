"""The programs of an earlier commit, built in a folder of their own."""
import os
import shutil
import subprocess

from .daemon import ROOT

LIBRARY = 'src/queue/lua/leat.lua'
MAKE_OPTIONS = ('MAKEFLAGS', 'MAKEOVERRIDES', 'MFLAGS', 'MAKELEVEL', 'WERROR', 'SAN', 'CC', 'CFLAGS', 'BUILD')


class NotHere(Exception):
    """There is no such commit, as in a tarball or in a clone without history."""


def git(*words):
    done = subprocess.run(['git', '-C', str(ROOT), *words], capture_output=True, check=False)
    if done.returncode != 0:
        raise NotHere(f'git {words[0]}: {done.stderr.decode()}')
    return done.stdout


def last_commit(version):
    """The last commit whose library has this VERSION: the parent of the one that took the line away."""
    if not shutil.which('git'):
        raise NotHere('there is no git')
    line = f'local VERSION = {version} '
    for commit in git('log', '--format=%H', f'-S{line}', '--', LIBRARY).decode().split():
        if line.encode() not in git('show', f'{commit}:{LIBRARY}'):
            return commit + '^'
    raise NotHere(f'no commit takes {line!r} away')


def build(folder, version):
    """Builds leatd and leat of the last commit whose library has this VERSION. Returns the folder of the
    programs."""
    archive = git('archive', last_commit(version))
    source = folder / 'former'
    source.mkdir()
    subprocess.run(['tar', '-xC', str(source)], input=archive, check=True)
    # the options of the make that runs the tests, such as WERROR=1, are not for a former build
    mine = {name: value for name, value in os.environ.items() if name not in MAKE_OPTIONS}
    done = subprocess.run(['make', '-s', '-j2', 'all', 'BUILD=build', 'CFLAGS=-O0'], cwd=source, env=mine,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f'\nlocal VERSION = {version} ' in (source / 'build/leat.lua').read_text()
    return source / 'build'
