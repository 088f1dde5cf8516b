"""Fixtures of the integration tests. Each test has Redis servers, keys and a folder of its own."""
import itertools
import os
import shutil
import signal
import tempfile
from functools import partial
from pathlib import Path

import pytest

from harness import daemon as daemons
from harness import processes
from harness.batches import Seen
from harness.beside import Beside
from harness.board import Board
from harness.cgroup import Group
from harness.faults import inject
from harness.handlers import Handlers
from harness.journal import Journal, NotHere
from harness.latch import Latch
from harness.notify import NotifySocket
from harness.polling import Lateness
from harness.polling import wait_until as poll
from harness.queue import Queue
from harness.servers.proxy import Proxy
from harness.servers.server import RedisServer
from harness.short_leases import SHORT, Heartbeats
from harness.tasks import QUICK


def pytest_configure(config):
    processes.become_subreaper()
    # a shell without job control starts background commands with these ignored, and all processes below would
    # inherit it
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def pytest_collection_modifyitems(config, items):
    """With LEAT_EVERY=N, every Nth integration test runs, always the same ones."""
    here, every = Path(__file__).parent, int(os.environ.get('LEAT_EVERY', '1'))
    left_out = {item for number, item in enumerate(item for item in items if here in item.path.parents)
                if number % every != 0}
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """Tells fixtures at their end whether the test failed."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        item.leat_failed = True


def show_on_failure(request, title, *tellers):
    if getattr(request.node, 'leat_failed', False):
        print(f'---- {title}', *(tell() for tell in tellers), sep='\n')


@pytest.fixture
def folder():
    """A short path, because the paths of unix sockets are limited to 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix='leat-'))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def wait_until():
    return poll


@pytest.fixture
def late():
    """A function that returns the seconds by which an upper bound on a time must be extended on this machine."""
    one = Lateness()
    yield one
    one.close()


@pytest.fixture
def latches(folder):
    """A function that makes one more closed latch."""
    made = []

    def make():
        made.append(Latch(folder / f'latch-{len(made)}'))
        return made[-1]

    yield make
    for latch in made:
        latch.open()


@pytest.fixture
def latch(latches):
    return latches()


@pytest.fixture
def seen(folder):
    """The inputs of the processes of batches."""
    return Seen(folder)


@pytest.fixture
def handlers(folder):
    """The resident processes of the test."""
    return Handlers(folder)


@pytest.fixture
def redis_servers(request, folder):
    """A function that starts one more server: redis_servers(appendonly='yes', …); prefix has words before the
    program."""
    servers = []

    def start(prefix=(), **options):
        place = folder / f'redis-{len(servers)}'
        place.mkdir()
        server = RedisServer(place, **options)
        server.prefix = list(prefix)
        servers.append(server)
        return server.start()

    yield start
    for server in servers:
        show_on_failure(request, f'log of redis-server {server.socket}', server.log)
        server.close()


@pytest.fixture
def redis_server(redis_servers):
    return redis_servers()


@pytest.fixture
def client(redis_server):
    return redis_server.client()


@pytest.fixture
def queue(client):
    """The queue `emails` with its library loaded; no worker has registered yet."""
    return Queue(client).load()


@pytest.fixture
def base_config(redis_server):
    """The beginning of every configuration of the test; a test may change it before it starts a daemon."""
    return {'redis': {'socket': redis_server.socket}, 'queue': {'name': 'emails'}}


@pytest.fixture
def short_leases(base_config):
    """Gives every daemon of the test short leases: see harness.short_leases."""
    base_config.update(daemons.merged(base_config, SHORT))


@pytest.fixture
def quick_tasks(base_config):
    """Gives every daemon of the test short times: see harness.tasks."""
    base_config.update(daemons.merged(base_config, QUICK))


@pytest.fixture
def heartbeats(folder):
    """The trace of tasks that write heartbeats."""
    return Heartbeats(folder / 'heartbeats')


@pytest.fixture
def proxy(folder, redis_server):
    """A proxy in front of redis_server that makes faults; through_proxy has a daemon's sections for it."""
    one = Proxy(folder / 'proxy.sock', redis_server.socket).start()
    yield one
    one.close()


@pytest.fixture
def second_proxy(folder, redis_server):
    """A proxy for a second daemon, with faults of its own."""
    one = Proxy(folder / 'proxy-2.sock', redis_server.socket).start()
    yield one
    one.close()


@pytest.fixture
def through_proxy(proxy):
    return {'redis': {'socket': proxy.path}}


@pytest.fixture
def daemon(request, folder, base_config):
    """A function that starts a leatd: daemon({'queue': {'concurrency': 2}}, argv=…, env=…); with start=False
    the test calls start(). The sections are added to base_config."""
    numbers, made = itertools.count(), []

    def start(sections=None, argv=(), env=None, start=True):
        one = daemons.Daemon(
            folder, next(numbers), daemons.merged(base_config, sections), argv, env)
        made.append(one)
        return one.start() if start else one

    yield start
    for one in made:
        show_on_failure(request, f'log of {one.config_path.name}', partial(one.log, whole=True), one.told)
        one.close()
    processes.end_orphans()


@pytest.fixture
def board(request, folder, redis_server):
    """A leat-board for the queue emails, which the test starts."""
    one = Board(folder).add('emails', {'socket': redis_server.socket})
    yield one
    if one.process:
        show_on_failure(request, 'log of leat-board', one.log)
    one.close()


@pytest.fixture
def injector(folder):
    """Makes calls fail in programs that have its environment."""
    try:
        one = inject.Injector(folder / 'inject')
    except inject.NotHere as why:
        pytest.skip(str(why))
    yield one
    one.close()


@pytest.fixture
def journal(folder):
    """A journal of the test's own, for every daemon that is started with its prefix."""
    try:
        one = Journal(folder)
    except NotHere as why:
        pytest.skip(str(why))
    yield one
    one.close()


@pytest.fixture
def group():
    """A cgroup to start daemons in: see caged."""
    try:
        one = Group()
    except OSError as error:
        pytest.skip(f'no cgroup of one\'s own: {error}')
    yield one
    one.close()


@pytest.fixture
def caged(group, daemon):
    """Like daemon, but the daemon starts in `group` and must give its tasks cgroups there."""
    def start(sections=None, start=True, **options):
        required = {'isolation': {'cgroup': 'required'}}
        one = daemon(daemons.merged(required, sections), start=False, **options)
        one.popen = {'preexec_fn': group.enter}
        return one.start() if start else one

    return start


@pytest.fixture
def manager(folder):
    """The service manager: it keeps what the daemon tells it."""
    one = NotifySocket(folder / 'notify.sock')
    yield one
    one.close()


@pytest.fixture
def leat(folder, base_config):
    """A function that runs leat: leat('enqueue', 'true', input=…, config=sections).returncode …"""
    numbers = itertools.count()

    def run(*args, input=None, config=None, **options):
        path = daemons.write_config(
            folder / f'leat-{next(numbers)}.ini', daemons.merged(base_config, config))
        return daemons.run_leat(path, *args, input=input, **options)

    return run


@pytest.fixture
def start(request, folder, base_config):
    """A function that starts a leat in the background: start('wait', id, config=sections).ended()"""
    made = []

    def run(*args, config=None, **options):
        path = daemons.write_config(
            folder / f'start-{len(made)}.ini', daemons.merged(base_config, config))
        argv = [daemons.program('leat'), '-c', str(path), *map(str, args)]
        made.append(Beside(folder, len(made), argv, **options))
        return made[-1]

    yield run
    for number, one in enumerate(made):
        show_on_failure(request, f'start-{number}', one.told)
        processes.end(one.process)
