"""Packages for programs in Node."""
import fcntl
import os
import re
import shutil
import subprocess

import pytest

from .daemon import BUILD

NPM_SECONDS = 90
DEBIAN = '/usr/share/nodejs'


def resolves(package, version, modules):
    done = subprocess.run(['node', '-p', f'require("{package}/package.json").version'],
                          env=dict(os.environ, NODE_PATH=modules), cwd='/', capture_output=True, text=True,
                          timeout=NPM_SECONDS, check=False)
    return done.returncode == 0 and done.stdout.startswith(f'{version}.')


def node_modules(package, version):
    """NODE_PATH for a program that needs this major version of a package. Skips the test if it cannot be
    installed."""
    if not shutil.which('node'):
        pytest.skip('no node here')
    own = BUILD / 'node' / f'{package}-{version}'
    for place in (os.environ.get('NODE_PATH', ''), DEBIAN):
        if resolves(package, version, place):
            return place
    own.mkdir(parents=True, exist_ok=True)
    # one test runs npm, and the others wait; a half-finished installation of another process would be found,
    # too
    with open(own / 'lock', 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (own / 'node_modules').exists():
            install(package, version, own)
    return str(own / 'node_modules')


def install(package, version, own):
    """Installs it into node_modules in one step, so that it is complete or absent."""
    if not shutil.which('npm'):
        pytest.skip(f'no {package} for node here (NODE_PATH), and no npm to get it')
    fresh = own / 'fresh'
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        done = subprocess.run(['npm', 'install', '--no-audit', '--no-fund', '--no-save', '--ignore-scripts',
                               '--fetch-retries=0', '--cache', str(own / 'cache'), '--prefix', str(fresh),
                               f'{package}@{version}'],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=NPM_SECONDS,
                              check=False)
        said = [line for line in done.stderr.splitlines() if re.match('npm err', line, re.I)]
        why = (said or ['it fails'])[:1] if done.returncode else []
    except subprocess.TimeoutExpired:
        why = [f'not within {NPM_SECONDS} s']
    if why:
        pytest.skip(f'npm cannot get {package}: {why[0]}')
    (fresh / 'node_modules').rename(own / 'node_modules')
