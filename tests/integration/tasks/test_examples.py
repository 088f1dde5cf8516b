"""The examples in conf/ work as they are shipped, on the real daemon."""
import configparser
import gzip
import hashlib
import http.server
import os
import shlex
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from harness.daemon import ROOT, program
from harness.queue import Queue

CONF = ROOT / 'conf'
INSTALLED = '/usr/local/share/leat/examples/'
PERMANENT = '65'


def shipped(name, **changes):
    """The sections of an example, run from the source tree; changes: section={key: value}."""
    parser = configparser.ConfigParser(
        interpolation=None, inline_comment_prefixes=(' ;',), default_section='none',
        strict=False)  # environment may be repeated
    parser.read(CONF / name)
    sections = {section: dict(parser[section]) for section in parser.sections()}
    sections['task']['command'] = sections['task']['command'].replace(INSTALLED, f'{CONF}/')
    for section, values in changes.items():
        sections.setdefault(section, {}).update(values)
    # the test has its own server
    sections.pop('redis', None)
    return sections


@pytest.mark.parametrize('path', sorted(CONF.glob('*.ini')), ids=lambda path: path.name)
def test_example_is_a_valid_configuration(path):
    """leatd -t accepts every file in conf/ as it is shipped."""
    done = subprocess.run([program('leatd'), '-t', '-c', str(path)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr


class Receiver:
    """A local HTTP server. POST /STATUS is answered with that status; requests are kept."""

    def __init__(self):
        requests = self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length']))
                requests.append((self.path, self.headers, body))
                self.send_response(int(self.path.strip('/')))
                self.end_headers()
                self.wfile.write(b'answer to ' + self.path.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def url(self, path=''):
        return f'http://127.0.0.1:{self.server.server_address[1]}{path}'

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def receiver():
    server = Receiver()
    yield server
    server.close()


@pytest.fixture
def webhook(client, daemon):
    """A worker with conf/webhook.ini that makes two attempts without a pause."""
    def start(**changes):
        daemon(shipped('webhook.ini', retry={'max_attempts': 2, 'base': '10ms'},
                       **changes)).wait_ready()
        return Queue(client, 'webhook')
    return start


def test_webhook_posts_the_payload(webhook, receiver, wait_until):
    """If the answer is 2xx, the body arrived byte for byte with the type and a key of this task alone, and the
    task succeeds. A task of another queue may have its id."""
    queue = webhook()
    body = b'{"n": 1}\n\x00\xff@-'
    tid = queue.redis.xadd('webhook', {'url': receiver.url('/200'), 'payload': body,
                                       'type': 'text/plain; charset=utf-8'}).decode()
    wait_until(lambda: queue.counter('succeeded') == 1)
    [(path, headers, received)] = receiver.requests
    assert (path, received) == ('/200', body)
    assert headers['Idempotency-Key'] == f'webhook-{tid}'
    assert headers['Content-Type'] == 'text/plain; charset=utf-8'
    assert queue.places() == {} and queue.pending() == []


def test_webhook_4xx_is_dead_at_once(webhook, receiver, wait_until):
    """A 404 makes one request, and a dead letter with the task, the cause and the answer."""
    queue = webhook()
    queue.redis.xadd('webhook', {'url': receiver.url('/404'), 'payload': 'x'})
    wait_until(queue.letters)
    [(_, letter)] = queue.letters()
    assert letter['payload'] == b'x' and letter['url'] == receiver.url('/404').encode()
    assert letter['leat.cause'] == b'exit' and PERMANENT in letter['leat.status'].decode()
    assert letter['leat.attempts'] == b'1' and len(receiver.requests) == 1
    assert b'answer to /404' in letter['leat.stdout'] and b'404' in letter['leat.stderr']


@pytest.mark.parametrize('path', ['/500', '/429'])
def test_webhook_5xx_is_retried(webhook, receiver, wait_until, path):
    """After 500 or 429 all attempts are made with the same key, and then the task is dead."""
    queue = webhook()
    queue.redis.xadd('webhook', {'url': receiver.url(path), 'payload': 'x'})
    wait_until(queue.letters)
    [(_, letter)] = queue.letters()
    assert letter['leat.attempts'] == b'2' and PERMANENT not in letter['leat.status'].decode()
    assert len({headers['Idempotency-Key'] for _, headers, _ in receiver.requests}) == 1
    assert len(receiver.requests) == 2


def test_webhook_unreachable_is_retried(webhook, wait_until):
    """If no server listens, the task is retried as for 5xx, and its dead letter has curl's message."""
    queue = webhook()
    # a bound port is taken by no other process
    with socket.socket() as silent:
        silent.bind(('127.0.0.1', 0))
        url = f'http://127.0.0.1:{silent.getsockname()[1]}/200'
        queue.redis.xadd('webhook', {'url': url, 'payload': 'x'})
        wait_until(queue.letters)
    [(_, letter)] = queue.letters()
    assert letter['leat.attempts'] == b'2' and b'curl' in letter['leat.stderr']


@pytest.mark.parametrize('fields', [
    {'url': 'file:///etc/passwd'}, {'url': '@/dev/stdin'}, {'url': ''}, {},
    {'url': 'http://127.0.0.1:1/', 'type': 'a/b\r\nX-Forged: 1'},
], ids=['file', 'list of URLs', 'empty', 'none', 'forged header'])
def test_webhook_refuses_invalid_urls(webhook, wait_until, fields):
    """A request that can never be sent is dead after one attempt."""
    queue = webhook()
    queue.redis.xadd('webhook', {'payload': 'x', **fields})
    wait_until(queue.letters)
    [(_, letter)] = queue.letters()
    assert letter['leat.attempts'] == b'1' and PERMANENT in letter['leat.status'].decode()
    if fields.get('url') == '@/dev/stdin':
        assert b'not a URL' in letter['leat.stderr'] and b'curl' not in letter['leat.stderr']
    if not fields.get('url'):
        assert b'no URL: set the field url of the task' in letter['leat.stderr']


def test_webhook_fixed_address_wins(webhook, receiver, wait_until):
    """With WEBHOOK_URL configured, producers cannot choose the address."""
    queue = webhook(task=fixed(WEBHOOK_URL=receiver.url('/204')))
    queue.redis.xadd('webhook', {'payload': 'x', 'url': receiver.url('/500')})
    wait_until(lambda: queue.counter('succeeded') == 1)
    assert [path for path, _, _ in receiver.requests] == ['/204']


def fixed(**variables):
    """The key environment, as a configuration writes it."""
    return {'environment': [f'{name}={value}' for name, value in variables.items()]}


@pytest.fixture
def archive_with(client, daemon, folder):
    """A function that starts a worker with conf/archive.ini on folders of the test, with further keys of [task]:
    (queue, in, out)."""
    def start(**task):
        came, kept = folder / 'in', folder / 'out'
        came.mkdir()
        kept.mkdir()
        sections = shipped('archive.ini', retry={'max_attempts': 2, 'base': '10ms'})
        sections['task'].update(fixed(ARCHIVE_FROM=came, ARCHIVE_TO=kept), **task)
        daemon(sections).wait_ready()
        return Queue(client, 'archive'), came, kept
    return start


@pytest.fixture
def archive(archive_with):
    return archive_with()


def test_archive_keeps_the_file(archive, wait_until):
    """The file ends up compressed in the archive, with its checksum, and nowhere else."""
    queue, came, kept = archive
    data = bytes(range(256)) * 1000
    (came / 'a b.bin').write_bytes(data)
    queue.redis.xadd('archive', {'file': 'a b.bin'})
    wait_until(lambda: queue.counter('succeeded') == 1)
    packed = (kept / 'a b.bin.gz').read_bytes()
    assert gzip.decompress(packed) == data
    assert (kept / 'a b.bin.gz.sha256').read_text() == \
        f'{hashlib.sha256(packed).hexdigest()}  a b.bin.gz\n'
    assert list(came.iterdir()) == [] and len(list(kept.iterdir())) == 2


def steps_done(came: Path, kept: Path, data, count):
    """Makes the state of an attempt that died after this number of steps."""
    packed = gzip.compress(data, mtime=0)
    (came / 'file').write_bytes(data)
    if count >= 1:
        (kept / 'file.gz').write_bytes(packed)
    if count >= 2:
        (kept / 'file.gz.sha256').write_text(f'{hashlib.sha256(packed).hexdigest()}  file.gz\n')
    if count >= 3:
        (came / 'file').unlink()


@pytest.mark.parametrize('count', range(4))
def test_archive_goes_on_where_an_attempt_died(archive, wait_until, count):
    """After any step of an earlier attempt, the next attempt ends in the same state."""
    queue, came, kept = archive
    steps_done(came, kept, b'data', count)
    queue.redis.xadd('archive', {'file': 'file'})
    wait_until(lambda: queue.counter('succeeded') == 1)
    assert gzip.decompress((kept / 'file.gz').read_bytes()) == b'data'
    assert list(came.iterdir()) == [] and len(list(kept.iterdir())) == 2


@pytest.mark.parametrize('name', ['../secret', '.hidden', '', 'missing', 'link', 'taken', 'a\nb'])
def test_archive_refuses(archive, folder, wait_until, name):
    """Names outside the folder, links, and names that are taken are dead at once, and nothing is changed."""
    queue, came, kept = archive
    (folder / 'secret').write_text('secret')
    (came / 'link').symlink_to(folder / 'secret')
    (came / 'taken').write_text('new')
    (kept / 'taken.gz').write_bytes(gzip.compress(b'old'))
    queue.redis.xadd('archive', {'file': name})
    wait_until(queue.letters)
    [(_, letter)] = queue.letters()
    assert letter['leat.attempts'] == b'1' and PERMANENT in letter['leat.status'].decode()
    assert [path.name for path in kept.iterdir()] == ['taken.gz']
    assert gzip.decompress((kept / 'taken.gz').read_bytes()) == b'old'
    assert (came / 'taken').read_text() == 'new' and (folder / 'secret').exists()


@pytest.mark.parametrize('swap', ['ln -sfn {folder}/secret {came}/file', 'mv {folder}/secret {came}/file'],
                         ids=['link', 'file'])
def test_archive_of_a_file_that_is_replaced(archive_with, folder, wait_until, swap):
    """A link that takes the file's place while the task runs is not followed, and a new file of that name is not
    removed."""
    (folder / 'secret').write_text('secret')
    (folder / 'gzip').write_text(f'#!/bin/sh\n{swap.format(folder=folder, came=folder / "in")} 2>/dev/null\n'
                                 f'exec {shutil.which("gzip")} "$@"\n')
    (folder / 'gzip').chmod(0o755)
    queue, came, kept = archive_with(path=f'{folder}:{os.environ["PATH"]}')
    (came / 'file').write_text('data')
    queue.redis.xadd('archive', {'file': 'file'})
    wait_until(queue.letters)
    [(_, letter)] = queue.letters()
    assert b'the archive holds another file' in letter['leat.stderr']
    assert gzip.decompress((kept / 'file.gz').read_bytes()) == b'data'
    assert (came / 'file').read_text() == 'secret'


def unit_of(name):
    """The [Service] section of an example unit, with continued lines joined."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read_string((CONF / name).read_text().replace('\\\n', ' '))
    return parser['Service']


def test_nightly_timers_of_three_hosts(daemon, queue, leat, folder, wait_until):
    """If the timers of nightly.service fire on three hosts one after the other, the task runs once, although
    it has ended before the next timer fires, and the unit succeeds on each host."""
    service = unit_of('nightly.service')
    *before, line = shlex.split(service['ExecStart'])[3:]
    (folder / 'thumbnails').mkdir()
    for name in 'old', 'new':
        (folder / 'thumbnails' / name).touch()
    os.utime(folder / 'thumbnails/old', (1, 1))
    for _ in range(3):
        daemon({'task': {'directory': folder}}).wait_ready()
    successes = {0, *map(int, service['SuccessExitStatus'].split())}
    fired = []
    for _ in range(3):
        fired.append(leat(*before, f'{line} && echo >> ran').returncode)
        wait_until(lambda: queue.counter('succeeded') and not queue.pending())
    assert fired == [0, 1, 1] and set(fired) <= successes
    assert (folder / 'ran').read_text() == '\n' and queue.counter('succeeded') == 1
    assert os.listdir(folder / 'thumbnails') == ['new']


def test_nightly_task_makes_its_folder(daemon, queue, leat, folder, wait_until):
    """As shipped, on a host without thumbnails, the task succeeds."""
    daemon({'task': {'directory': folder}}).wait_ready()
    assert leat(*shlex.split(unit_of('nightly.service')['ExecStart'])[3:]).returncode == 0
    wait_until(lambda: queue.counter('succeeded') == 1)
    assert (folder / 'thumbnails').is_dir()
