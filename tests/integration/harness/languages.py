"""Programs in languages whose Redis clients may not be installed."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

GO_PATH = Path('/usr/share/gocode')  # of Debian's packages
GO_REDIS = GO_PATH / 'src/github.com/gomodule/redigo/redis'
# programs that end with 0 if the client is installed
PROBES = {'rb': ['ruby', '-e', 'require "redis"'], 'php': ['php', '-r', 'exit(class_exists("Redis") ? 0 : 1);']}
NAMES = {'rb': 'Ruby', 'php': 'PHP', 'go': 'Go'}


def check_client(language):
    """Skips the test if the language or its client is missing."""
    if language not in NAMES:
        return
    if language == 'go':
        found = shutil.which('go') and GO_REDIS.exists()
    else:
        found = shutil.which(PROBES[language][0]) and subprocess.run(
            PROBES[language], stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0
    if not found:
        pytest.skip(f'{NAMES[language]} or its Redis client is not installed')


def built_with_go(source, folder):
    """The program of a source in Go, with the packages of Debian."""
    program = folder / 'program-in-go'
    env = dict(os.environ, GO111MODULE='off', GOPATH=str(GO_PATH), GOCACHE=str(folder / 'cache'), GOFLAGS='')
    done = subprocess.run(['go', 'build', '-o', program, source], env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, '')
    return str(program)
