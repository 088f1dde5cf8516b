"""The programs of tests/producers work against a real worker, and the manual shows parts of them."""
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from harness.daemon import ROOT
from harness.functions.signing import Key
from harness.languages import built_with_go, check_client
from harness.node import node_modules
from harness.queue import KEYS

PRODUCERS = ROOT / 'tests/producers'
LANGUAGES = ('sh', 'py', 'cjs', 'c', 'rb', 'php', 'go')
COMMANDS = {'sh': ['sh'], 'py': [sys.executable, '-B'], 'cjs': ['node'], 'rb': ['ruby'], 'php': ['php']}
# the manual's examples for each language, and how a definition in them begins
MANUAL = {
    'sh': (['Shell (redis-cli)', 'Signing in sh (openssl)'], r'^\w+\(\) \{'),
    'py': (['Python (redis-py)', 'Signing in Python'], r'^def '),
    'cjs': (['Node (ioredis)', 'Signing in Node'], r'^function '),
    'c': (['C (hiredis)', 'Signing in C (libcrypto)'], r'^(static|struct) |^/\*'),
    'rb': (['Ruby (redis)', 'Signing in Ruby'], r'^def '),
    'php': (['PHP (phpredis)', 'Signing in PHP'], r'^function '),
    'go': (['Go (redigo)', 'Signing in Go'], r'^func (?!main)'),
}
BYTES = b'\x00\x01\xfe\xff\n'
RAN = ['index', 'plain 640', 'three 64', 'two']


def built(folder):
    """producer.c, compiled with the package's own options."""
    options = subprocess.run(['pkg-config', '--cflags', '--libs', 'hiredis', 'libcrypto'], capture_output=True,
                             text=True, check=True).stdout
    program = folder / 'producer'
    argv = [os.environ.get('CC') or 'cc', '-std=gnu17', '-Wall', '-Wextra', '-Werror', '-o', str(program),
            str(PRODUCERS / 'producer.c'), *shlex.split(options)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, '')
    return [str(program)]


def produce(language, folder, server, **env):
    """Runs the program and returns the completed process."""
    env = dict(os.environ, REDIS_SOCKET=server.socket, **env)
    path = PRODUCERS / f'producer.{language}'
    if language == 'sh':
        tool = folder / 'redis-cli'
        tool.write_text(f'#!/bin/sh\nexec {shutil.which("redis-cli")} -s {server.socket} "$@"\n')
        tool.chmod(0o755)
        env['PATH'] = f'{folder}:{env["PATH"]}'
    if language == 'cjs':
        env['NODE_PATH'] = node_modules('ioredis', 5)
    check_client(language)
    argv = built(folder) if language == 'c' else [built_with_go(path, folder)] if language == 'go' \
        else [*COMMANDS[language], str(path)]
    return subprocess.run(argv, env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120, check=False)


@pytest.fixture
def queue_of_examples(folder, leat):
    """A configuration, with the library loaded."""
    sections = {'queue': {'name': 'thumbnails'}, 'task': {'directory': str(folder)}}
    done = leat('conf', config=sections)
    assert done.returncode == 0, done.stderr
    return sections


@pytest.mark.parametrize('language', LANGUAGES)
def test_a_producer(language, queue_of_examples, folder, redis_server, daemon, wait_until):
    """Each answer is as the protocol says, and each task runs once, with its fields and bytes."""
    done = produce(language, folder, redis_server)
    assert done.returncode == 0, done.stderr
    assert 'REFUSED task 1: result_ttl: not a duration: soon' in done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith('REFUSED')]
    plain, *answers, last = lines
    assert re.fullmatch(r'\d+-\d+', plain) and last == 'refused: 65'
    assert [line.split()[0] for line in answers] == ['new', 'exists', 'new', 'new', 'new']
    tids = [line.split()[1] for line in answers]
    assert tids[0] == tids[1] and len({plain, *tids}) == 5

    client = redis_server.client()
    daemon(queue_of_examples).wait_ready()
    wait_until(lambda: client.hget('{thumbnails}:stats', 'succeeded') == b'5',
               message=lambda: client.hgetall('{thumbnails}:stats'))
    assert sorted((folder / 'done').read_text().splitlines()) == RAN
    assert (folder / 'bytes').read_bytes() == BYTES


@pytest.mark.parametrize('language', LANGUAGES)
def test_a_producer_that_signs(language, queue_of_examples, folder, redis_server, daemon, wait_until):
    """A worker that requires signatures runs the signed task of the program, and never the others."""
    key, client = Key(folder, '2026a'), redis_server.client()
    done = produce(language, folder, redis_server, LEAT_KEY=str(key.path))
    assert done.returncode == 0, done.stderr
    daemon(dict(queue_of_examples, security={'signatures': 'required', 'key_files': key.entry})).wait_ready()
    stats, dead = '{thumbnails}:stats', '{thumbnails}:dead'
    wait_until(lambda: (client.hget(stats, 'succeeded'), client.xlen(dead)) == (b'1', 5),
               message=lambda: (client.hgetall(stats), client.xrange(dead)))
    assert (folder / 'done').read_text() == 'signed 32\n'


@pytest.mark.parametrize('language', LANGUAGES)
def test_a_producer_of_a_full_queue(language, queue_of_examples, folder, redis_server, leat):
    """A queue at its length limit gives an error that says so, exit code 75, and no task."""
    done = leat('conf', 'max_length', '1', config=queue_of_examples)
    assert done.returncode == 0, done.stderr
    done = produce(language, folder, redis_server)
    assert (done.returncode, done.stderr.split()[0]) == (75, 'FULL')
    assert len(done.stdout.splitlines()) == 1
    assert redis_server.client().xlen('thumbnails') == 1


def shown(language):
    """The definitions in the manual's examples for a language, paragraph by paragraph."""
    titles, definition = MANUAL[language]
    page = (ROOT / 'src/queue/leat-protocol.7').read_text()
    found = []
    for title in titles:
        text = page[page.index(f'\n.Ss {title}\n') + 1:]
        text = text[:re.search(r'^\.S[hs] ', text[4:], re.M).start() + 4]
        for block in re.findall(r'^\.Bd -literal\n(.*?)^\.Ed$', text, re.S | re.M):
            block = block.replace('\\e', '\\').removeprefix('#!/bin/sh\n').removeprefix('<?php\n')
            parts = re.split(r'\n\n+', block.rstrip('\n'))
            found += [part for part in parts if re.search(definition, part, re.M)]
    return found


@pytest.mark.parametrize('language', LANGUAGES)
def test_the_manual_shows_the_producers(language):
    """The definitions in leat-protocol.7, calls of leat_add and signing among them, are in the program word
    for word, and no program names a key other than the stream."""
    source = (PRODUCERS / f'producer.{language}').read_text()
    parts = [part for part in shown(language) if not re.search(r'^(def|func) wait\(', part, re.M)]
    assert [part for part in parts if part not in source] == []
    assert any('leat_add' in part for part in parts) and any('leat1' in part for part in parts)
    assert not re.search(rf':({"|".join(KEYS[1:9])})\b|leat_enqueue', source)
