"""leat-board answers GET and HEAD from those who have the token and use its address, and nothing else."""
import http.client
import os
import socket
import stat
import time

import pytest

from harness.daemon import program
from harness.notify import NotifySocket
from harness.polling import PATIENCE_S, wait_until

EX_USAGE, EX_OSERR, EX_CONFIG = 64, 71, 78
CLOSED_AFTER_S = 20  # without an answered request


@pytest.fixture
def running(board, queue):
    return board.start()


def test_ready(board, queue, folder, monkeypatch):
    """The service manager hears that the board is ready when its port is open and its token can be read."""
    manager = NotifySocket(folder / 'notify')
    monkeypatch.setenv('NOTIFY_SOCKET', manager.path)
    assert 'start leat-board first' in board.run('--url').stderr
    board.start()
    manager.wait('READY')
    assert board.run('--url').returncode == 0 and board.request('/healthz').status == 200
    assert 'showing 1 queue at' in board.log()


def test_the_page_and_its_files(running):
    """The three files have their types, name nothing elsewhere, and come without a token, with headers by which
    a browser loads nothing but these and makes no markup of text."""
    for path, kind in (('/', 'text/html'), ('/board.js', 'text/javascript'), ('/board.css', 'text/css')):
        answer = running.request(path, token=False)
        assert answer.status == 200 and answer.headers['content-type'].startswith(kind)
        assert int(answer.headers['content-length']) == len(answer.body) > 500
        policy = answer.headers['content-security-policy']
        assert "default-src 'none'" in policy and 'unsafe' not in policy and '*' not in policy
        assert "require-trusted-types-for 'script'" in policy and "frame-ancestors 'none'" in policy
        assert answer.headers['x-content-type-options'] == 'nosniff'
        assert b'//' not in answer.body.replace(b'http://www.w3.org/2000/svg', b'').replace(b'// ', b'')
        assert b'innerHTML' not in answer.body and b'insertAdjacent' not in answer.body


def test_other_paths(running):
    """A path that the board does not know gives 404; a query does not matter to a file."""
    for path in ('/x', '/api', '/api/', '/api/queue/emails', '/../etc/passwd', '/%2e%2e/token', '//', '/board.js/',
                 '/BOARD.JS'):
        assert running.request(path).status == 404, path
    assert running.request('/?' + 'a=b&' * 20).status == 200


def test_other_methods(running):
    """Only GET and HEAD are answered."""
    for method in ('POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'BREW', 'get'):
        for path in ('/', '/api/queues'):
            answer = running.request(path, method)
            assert answer.status == 405 and answer.headers['allow'] == 'GET, HEAD', method


def test_head(running):
    """HEAD gets the headers alone."""
    for path in ('/', '/api/queues', '/healthz'):
        answer = running.request(path, 'HEAD')
        assert answer.status == 200 and answer.body == b'' and int(answer.headers['content-length']) > 0


def test_bodies(running):
    """No request has a body."""
    for header, body in (('Content-Length: 5', b'hello'), ('Content-Length: 99999999999', b''),
                         ('Transfer-Encoding: chunked', b'5\r\nhello\r\n0\r\n\r\n')):
        head = f'GET / HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n'
        assert running.send(head.encode() + body).status == 413, header


HIDDEN = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'
LENGTH = f'Content-Length: {len(HIDDEN)}'


@pytest.mark.parametrize('method, host, status', [
    ('GET', 'localhost', 413), ('POST', 'localhost', 405), ('GET', 'elsewhere', 421)])
@pytest.mark.parametrize('header', [
    f'Content-Length: 0\r\n{LENGTH}', f'{LENGTH}\r\nContent-Length: 0', LENGTH.replace(':', ' :'),
    'Transfer-Encoding : chunked'])
def test_hidden_bodies(running, header, method, host, status):
    """A body that other servers would see is not read as another request."""
    body = HIDDEN if 'Length' in header else f'{len(HIDDEN):x}\r\n{HIDDEN}\r\n0\r\n\r\n'
    answer = running.send(f'{method} / HTTP/1.1\r\nHost: {host}\r\n{header}\r\n\r\n{body}'.encode())
    assert answer.status == status and answer.data.count(b'HTTP/1.1') == 1


def test_sizes(running):
    """A request line or header that is too long, or too many of them, is refused, and the board goes on."""
    for head in ('GET /' + 'a' * 100000 + ' HTTP/1.1\r\nHost: localhost\r\n\r\n',
                 'GET / HTTP/1.1\r\nHost: localhost\r\nX: ' + 'a' * 100000 + '\r\n\r\n',
                 'GET / HTTP/1.1\r\nHost: localhost\r\n' + 'X: a\r\n' * 20000 + '\r\n'):
        assert running.send(head.encode()).status in (400, 413, 414, 431, None)
    assert running.request('/healthz').status == 200


NO_REQUESTS = (b'\r\n\r\n', b'x\r\n\r\n', b'GET\r\n\r\n', b'GET \r\n\r\n', b'GET ?&&\r\n\r\n',
               b'\0' * 100 + b'\r\n\r\n',
               b'\xff\xfe\r\n\r\n',
               b'GET / HTTP/9.9\r\nHost: localhost\r\n\r\n', b'GET / HTTP/1.1\r\n\r\n',
               b'GET / HTTP/1.1\r\nHost\r\n\r\n', b'GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n')


def cut_off(running, data):
    with running.connect() as one:
        one.sendall(data)
        one.shutdown(socket.SHUT_WR)
        while True:
            try:
                if not one.recv(65536):
                    break
            except ConnectionResetError:
                break


def test_no_requests(running):
    """Bytes that are no request are refused or cut off, and the board goes on."""
    for data in NO_REQUESTS:
        cut_off(running, data)
        assert running.request('/healthz').status == 200


HOSTS = (
    ('localhost', 200), ('LOCALHOST:1', 200), ('127.0.0.1:9464', 200), ('[::1]:80', 200), ('192.0.2.7', 200),
    ('evil.example', 421), ('localhost.evil.example', 421), ('127.0.0.1.evil.example:80', 421),
    ('127.0.0.1:x', 421),
    ('[::1', 421), ('[::1]x', 421), ('[evil]', 421), (' ', 421), ('localhost:', 421), ('127.1', 421))


def test_hosts(running):
    """Only an address or localhost is the board's name, so that no page elsewhere can pass as it (DNS
    rebinding)."""
    for host, status in HOSTS:
        assert running.request('/', host=host).status == status, host
        assert running.request('/api/queues', host=host).status == status, host


def test_tokens_that_are_wrong(running):
    """Without the token there is no answer about queues, whatever is asked for; a query may not carry it."""
    for value in (None, 'Bearer', 'Bearer ', 'Bearer x', 'Basic {}', '{}', 'Bearer {}x', 'Bearer  {}',
                  'Bearer {} ,', 'Bearer \0{}'):
        headers = [] if value is None else ['Authorization: ' + value.format(running.token)]
        for path in ('/api/queues', '/api/queue?queue=emails', '/api/task?queue=emails&id=1',
                     '/api/search?queue=no&text=a', '/metrics', f'/api/queues?token={running.token}'):
            answer = running.request(path, token=False, headers=headers)
            assert answer.status in (400, 401) and b'emails' not in answer.body, answer.data
    assert running.request('/healthz', token=False).body == b'ok\n'


def test_the_token(board, queue):
    """The first start makes a token that only its user and group can read, later starts keep it, and --url
    prints the address with it. A file that holds something else is an error."""
    assert board.run('--url').returncode == EX_OSERR
    first = board.start().token
    assert stat.S_IMODE(board.token_file.stat().st_mode) & ~0o040 == 0o600 and len(first) == 40
    assert board.url.endswith('/#' + first)
    assert board.run('--url').stdout == f'http://127.0.0.1:9464/#{first}\n'
    board.close()
    board.token_file.write_text('short\n')
    done = board.run('--url')
    assert done.returncode == EX_OSERR and 'the token has to be one line' in done.stderr


def test_a_fifo_for_a_token(board, queue):
    """Root waits for nobody if the board's user has put a fifo in the place of the token."""
    os.mkfifo(board.token_file)
    done = board.run('--url')
    assert done.returncode == EX_OSERR and 'the token has to be one line' in done.stderr
    writer = os.open(board.token_file, os.O_RDWR)
    done = board.run('--url')
    os.close(writer)
    assert done.returncode == EX_OSERR and 'cannot read the token' in done.stderr


def test_without_a_token(board, queue):
    """Only --no-token lets everybody read."""
    board.argv = ['--no-token']
    board.start()
    assert board.request('/api/queues', token=False).json()[0]['queue'] == 'emails'
    assert not board.token_file.exists() and '#' not in board.url


def test_a_unix_socket(board, queue, folder):
    """On a unix socket, which others cannot open, any Host is answered; a socket that a killed board has left is
    replaced, one in use is not."""
    path = folder / 'board.sock'
    board.argv = ['--listen', f'unix:{path}']
    board.start()
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert board.request('/api/queues', host='board.example').json()[0]['queue'] == 'emails'
    done = board.run('--listen', f'unix:{path}')
    assert done.returncode == EX_OSERR and 'Address already in use' in done.stderr
    board.process.kill()
    board.process.wait()
    assert path.exists()
    board.log_path.write_text('')
    board.start()
    assert board.request('/healthz').status == 200
    board.process.terminate()
    assert board.process.wait(4 * PATIENCE_S) == 0 and not path.exists()


def test_many_connections(running):
    """More connections than the board takes do not stop it, however often: those over the limit are closed."""
    for _ in range(100):
        many = [running.connect() for _ in range(80)]
        for one in many:
            one.close()
        # it may close one more before it has noticed that the others are gone
        wait_until(lambda: running.request('/healthz').status == 200)


def test_slow_clients(running):
    """A client that sends a request byte by byte cannot keep its connection for long, and the board serves others
    meanwhile."""
    with running.connect() as slow:
        slow.settimeout(0.5)
        slow.sendall(b'GET / HTTP/1.1\r\nHost: localhost\r\nX: ')

        def ended():
            assert running.request('/healthz').status == 200
            try:
                slow.sendall(b'a')
                return slow.recv(100) == b''
            except TimeoutError:
                return False
            except ConnectionError:
                return True
        wait_until(ended)


SLOW_CLIENTS = {'silent': b'', 'half a request': b'GET / HTTP/1.1\r\nHost: localhost\r\nX: ',
                'reads nothing': b'GET /board.js HTTP/1.1\r\nHost: localhost\r\n\r\n' * 50}


@pytest.mark.parametrize('sent', SLOW_CLIENTS.values(), ids=SLOW_CLIENTS)
def test_clients_without_the_token_make_room(running, sent):
    """If all connections are in use, the oldest of a client without the token is closed for the next client, long
    before its time is over. Those of clients with the token stay."""
    known = http.client.HTTPConnection('127.0.0.1', running.port)

    def ask():
        known.request('GET', '/api/queues', headers={'Authorization': f'Bearer {running.token}'})
        with known.getresponse() as answer:
            answer.read()
            return answer.status
    assert ask() == 200
    first = known.sock
    many = []
    begun = time.monotonic()
    for _ in range(150):
        many.append(running.connect())
        many[-1].sendall(sent)
    for path in ('/', '/api/queues', '/healthz'):
        assert running.request(path).status == 200
    assert ask() == 200 and known.sock is first
    assert time.monotonic() - begun < CLOSED_AFTER_S
    known.close()
    for one in many:
        one.close()


@pytest.mark.parametrize('query', ['a&' * 250, 'a=1&' * 4000, 'a=' + 'x' * 16200], ids=['250', '4000', 'long'])
def test_too_many_parameters(running, query):
    """Parameters for which the memory of a connection has no room are refused with an answer, at once."""
    begun = time.monotonic()
    answer = running.request(f'/api/queue?{query}')
    assert answer.status == 414 and b'too long' in answer.body
    assert time.monotonic() - begun < CLOSED_AFTER_S
    assert running.request('/?' + 'a&' * 50).status == 200
    assert running.request('/?' + 'a' * 7000).status == 200


@pytest.mark.parametrize('path', [
    '/%61pi/queues', '/api%2fqueues', '/metrics%00', '/api/queues%00x', '/healthz%00', '/%'])
def test_an_encoded_path(running, path):
    """A web server in front may restrict paths, and not decode all that the board would decode. Parameters are
    decoded."""
    assert running.request(path).status == running.request(path + '?a=%20').status == 404
    assert running.request('/api/queue?queue=%65mails').status in (200, 429)


def test_parameters(running):
    """A queue that is not shown, a question without its text or with too long a one, and a span of the plots that
    there is not, are refused."""
    for path, status in (('/api/queue', 404), ('/api/queue?queue=x', 404), ('/api/queue?queue=..%2femails', 404),
                         ('/api/task?queue=emails', 400), ('/api/task?queue=emails&id=', 400),
                         ('/api/search?queue=emails&text=' + 'a' * 201, 400),
                         ('/api/series?queue=emails', 200), ('/api/series?queue=emails&span=day', 200),
                         ('/api/series?queue=emails&span=week', 400), ('/api/series?queue=emails&span=', 400)):
        assert running.request(path).status == status, path


def test_the_command_line(board):
    """Wrong options are refused with 64 and the reason; without a queue to show, or with one that has no
    file, the board ends with 78."""
    for words, text in (('--listen localhost', 'invalid address'), ('--listen name:80', 'invalid address'),
                        ('--listen 127.0.0.1:65536', 'invalid address'),
                        ('--listen', 'needs a value'), ('x', "unexpected operand 'x'"),
                        ('--x', 'unknown option'), ('-q ../x', 'invalid queue'),
                        ('--url --listen unix:/x', 'no address')):
        done = board.run(*words.split())
        assert done.returncode == EX_USAGE and text in done.stderr and 'see leat-board --help' in done.stderr, done
    assert board.run('--version').stdout.startswith('leat-board ')
    assert 'Usage: leat-board' in board.run('--help').stdout and os.access(program('leat-board'), os.X_OK)
    done = board.run('--listen', '127.0.0.1:0', '-q', 'emails', '-q', 'nope')
    assert done.returncode == EX_CONFIG and f'no queue nope: {board.etc}/nope.ini: No such file' in done.stderr
    (board.etc / 'emails.ini').unlink()
    done = board.run('--listen', '127.0.0.1:0')
    assert done.returncode == EX_CONFIG and 'no queue is configured' in done.stderr
