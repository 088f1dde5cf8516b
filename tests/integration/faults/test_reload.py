"""Configuration of the real daemon: at its start, with -t, and at a reload."""
import os
import re
import subprocess
import time

import pytest

from harness.daemon import program, write_config
from harness.polling import wait_until
from harness.processes import takes_signals
from harness.queue import Queue
from harness.short_leases import pass_time, wait_blocked
from harness.tasks import open_files, wait_file, wait_letters, wait_succeeded
from harness.users import needs_root, path_with_systemctl

pytestmark = pytest.mark.usefixtures('quick_tasks')

BROKEN = '''[queue]
name = emails
concurency = 4
lease = soon
[tasks]
timeout = 5m
[retry]
base = -1s
jitter = some
[redis]
port = 70000
'''


def leatd(*argv):
    return subprocess.run([program('leatd'), *map(str, argv)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=120, check=False)


# ---- options

def test_help_and_version():
    """--help and --version print to stdout and exit with 0."""
    for option in ('--help', '-h'):
        done = leatd(option)
        assert done.returncode == 0 and 'Usage: leatd [-c FILE | -q QUEUE]' in done.stdout and done.stderr == ''
    for option in ('--version', '-V'):
        done = leatd(option)
        assert done.returncode == 0 and re.fullmatch(r'leatd \d+\.\d+\.\d+( \(commit \S+\))?\n', done.stdout)


def test_output_that_cannot_be_written(folder):
    """If the output of -t, --help and --version cannot be written, the exit status is 74."""
    (folder / 'queue.ini').write_text('[queue]\nname = emails\n')
    for argv in (['--help'], ['--version'], ['-t', '-c', folder / 'queue.ini']):
        with open('/dev/full', 'w', encoding='utf-8') as full:
            done = subprocess.run([program('leatd'), *argv], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=120, check=False)
        assert done.returncode == 74 and 'cannot write the output: No space left' in done.stderr


@pytest.mark.parametrize('key, mode, warned', [
    ('password', 0o644, True), ('password', 0o640, False), ('password_file', 0o644, False)])
def test_password_that_all_users_can_read(folder, key, mode, warned):
    """A configuration with a password that all users can read is no error, but a warning says what to do."""
    (folder / 'secret').write_text('secret')
    (folder / 'secret').chmod(0o600)
    path = write_config(folder / 'queue.ini', {'queue': {'name': 'emails'}, 'redis': {key: f'{folder}/secret'}})
    path.chmod(mode)
    done = leatd('-t', '-c', path)
    assert done.returncode == 0
    assert (f'{path}: password: readable by all users; run: chgrp GROUP ' in done.stderr) == warned


@pytest.mark.parametrize('redis, warned', [
    ({'host': '192.0.2.1', 'password': 'x'}, 'password: sent unencrypted to 192.0.2.1;'),
    ({'host': 'db.example', 'user': 'me', 'password': 'x'}, 'password: sent unencrypted to db.example;'),
    ({'host': '2001:db8::1', 'password': 'x'}, 'password: sent unencrypted to 2001:db8::1;'),
    ({'cluster': '127.0.0.1:1, 192.0.2.1:2', 'password': 'x'}, 'password: sent unencrypted to 192.0.2.1:2;'),
    ({'sentinels': 's.example:1', 'master': 'm', 'password': 'x'}, 'password: sent unencrypted to s.example:1;'),
    ({'sentinels': 's.example:1', 'master': 'm', 'sentinel_password': 'x'},
     'sentinel_password: sent unencrypted to s.example:1;'),
    ({'host': '192.0.2.1'}, None), ({'password': 'x'}, None), ({'host': '127.1.2.3', 'password': 'x'}, None),
    ({'host': 'localhost', 'password': 'x'}, None), ({'host': '::1', 'password': 'x'}, None),
    ({'socket': '/run/redis.sock', 'password': 'x'}, None),
    ({'sentinels': '[::1]:1', 'master': 'm', 'password': 'x', 'sentinel_password': 'x'}, None)])
def test_password_over_plain_tcp(folder, redis, warned):
    """A password that goes to another host without TLS is no error, but a warning names the host and the
    remedy."""
    path = write_config(folder / 'queue.ini', {'queue': {'name': 'emails'}, 'redis': redis})
    path.chmod(0o600)
    done = leatd('-t', '-c', path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count('sent unencrypted') == (warned is not None)
    if warned:
        assert f'{path}: {warned} set [redis] tls = yes' in done.stderr


@pytest.mark.parametrize('argv, said', [
    ([], 'with -c FILE'), (['-t'], 'with -c FILE'), (['--nonsense'], 'unknown option --nonsense;'),
    (['-c'], 'option -c needs a value;'), (['-tx'], 'unknown option -x;'),
    (['--test=yes'], 'option --test takes no value;'), (['-c', ''], 'the name of the file is empty'),
    (['-c', 'a', '--config=b'], '--config is given twice; give it once;'),
    (['\x1b[2J'], 'unexpected argument: \\x1b[2J;'), (['--\x1b'], 'unknown option --\\x1b;'),
    (['x.ini'], 'unexpected argument: x.ini; name the queue with -q, or its configuration with -c'),
    (['-c', 'a', 'b'], 'unexpected argument: b'),
])
def test_usage_errors(argv, said):
    """Wrong options exit with 64, and stderr has the mistake and the way to the help."""
    done = leatd(*argv)
    assert done.returncode == 64 and done.stdout == ''
    assert said in done.stderr and done.stderr.endswith('see leatd --help\n')


# ---- errors at the start

@pytest.mark.parametrize('option', [[], ['-t']])
def test_all_errors_at_once(folder, option):
    """Every error is listed with file and line, and a suggestion if there is one; the exit status is 78."""
    path = folder / 'bad.ini'
    path.write_text(BROKEN)
    done = leatd('-c', path, *option)
    assert done.returncode == 78 and done.stdout == ''
    for line, text in ((3, 'concurrency'), (4, 'lease'), (5, 'task'), (8, 'base'), (9, 'jitter'),
                       (11, 'port')):
        assert re.search(rf'{path}:{line}: .*{text}', done.stderr), (line, done.stderr)
    assert 'did you mean' in done.stderr
    lines = done.stderr.splitlines()
    assert [int(re.search(r':(\d+): ', line)[1]) for line in lines if f'{path}:' in line] == sorted(
        int(re.search(r':(\d+): ', line)[1]) for line in lines if f'{path}:' in line)


def test_errors_of_a_check_have_no_prefix(folder):
    """-t prints FILE:LINE: and the message alone, as other programs do, so that editors find the place; warnings
    have the same form."""
    path = folder / 'bad.ini'
    path.write_text(BROKEN)
    assert all(re.match(rf'{path}:\d+: ', line) for line in leatd('-c', path, '-t').stderr.splitlines())
    write_config(path, {'queue': {'name': 'emails'}, 'task': {'shell': '/no/shell'}})
    assert leatd('-c', path, '-t').stderr == f'{path}: [task] shell: /no/shell: No such file or directory\n'


@needs_root
@pytest.mark.parametrize('user, group, mode, code', [
    ('nobody', '', 0o640, 78), ('nobody', '', 0o644, 0), ('nobody', 'root', 0o640, 0), ('', '', 0o600, 0),
    ('no-such-user', '', 0o644, 78)])
def test_a_check_as_root_is_of_the_unit_s_user(folder, user, group, mode, code):
    """Root's leatd -t reads a file of /etc/leat with the rights of User= and Group= of its unit: a file that
    only root can read is an error there."""
    folder.chmod(0o755)
    path = write_config(folder / 'emails.ini', {'queue': {'name': 'emails'}})
    path.chmod(mode)
    env = {'LEAT_CONFIG_DIR': str(folder), 'PATH': path_with_systemctl(folder, user, group)}
    done = subprocess.run([program('leatd'), '-t', '-q', 'emails'], capture_output=True, text=True, check=False,
                          env=dict(os.environ, **env))
    assert done.returncode == code, done
    assert (folder / 'asked').read_text().endswith('-- leatd@emails.service\n')
    if code == 0:
        assert done.stdout == f'{path}: ok' + (f' (checked as user {user})\n' if user else '\n')
    elif user == 'nobody':
        assert done.stderr.splitlines() == [f'{path}: cannot open: Permission denied',
                                            f'{path}: checked as user nobody']
    else:
        assert f'{path}: cannot check as the user of leatd@emails.service: there is no user' in done.stderr
    elsewhere = subprocess.run([program('leatd'), '-t', '-c', path], capture_output=True, text=True, check=False,
                               env=dict(os.environ, PATH=env['PATH']))
    assert elsewhere.stdout == f'{path}: ok\n'  # not in /etc/leat: checked as root


def test_check_without_credentials(folder):
    """A file that takes its password and keys from credentials, which systemd gives to the service alone, passes
    -t in a shell; if there are credentials, they are checked."""
    path = write_config(folder / 'good.ini', {
        'queue': {'name': 'emails'}, 'redis': {'password_credential': 'redis'},
        'security': {'signatures': 'required', 'key_credentials': '2026a'}})
    done = leatd('-t', '-c', path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f'{path}: ok\n', '')
    done = subprocess.run([program('leatd'), '-t', '-c', path], capture_output=True, text=True, check=False,
                          env=dict(os.environ, CREDENTIALS_DIRECTORY=str(folder)))
    assert done.returncode == 78 and f'{folder}/redis: No such file' in done.stderr


def test_check_names_keys_that_need_a_restart(daemon, folder):
    """While a leatd of the queue runs here, -t names the keys in the file that a reload does not change."""
    state = {'isolation': {'state': folder / 'state'}}
    path = write_config(folder / 'new.ini', {'queue': {'name': 'emails', 'lease': '2m', 'scan': '9s'},
                                             'redis': {'db': 3, 'host': 'example'}, **state})
    assert leatd('-t', '-c', path).stderr == ''
    worker = daemon(state).wait_ready()
    assert leatd('-t', '-c', path).stderr == (
        f'{path}: a leatd of this queue is running; it takes changes of these keys only after a restart: '
        '[redis] db, [isolation] state\n'
        f'{path}: a leatd of this queue is running; changes of these keys, which all workers share, take effect '
        'with leat conf --apply: [queue] lease\n')
    worker.terminate()
    worker.wait_exit()
    assert leatd('-t', '-c', path).stderr == ''


def test_missing_file(folder):
    """A missing file is named, with exit status 78."""
    done = leatd('-c', folder / 'none.ini')
    assert done.returncode == 78 and str(folder / 'none.ini') in done.stderr


def test_check_needs_no_redis(folder):
    """-t accepts a good file without a Redis."""
    path = write_config(folder / 'good.ini', {'redis': {'socket': folder / 'no.sock'},
                                              'queue': {'name': 'emails'}})
    done = leatd('-c', path, '-t')
    assert done.returncode == 0 and done.stdout == f'{path}: ok\n' and done.stderr == ''


@pytest.mark.parametrize('key, value, said', [
    ('user', 'nobody-here', 'there is no user nobody-here'),
    ('directory', '/no/such/folder', '/no/such/folder: No such file'),
    ('shell', '/bin/no-such-shell', '/bin/no-such-shell: No such file'),
])
def test_check_warns_of_missing_files(folder, key, value, said):
    """-t warns of files that tasks would need on this host; the configuration is valid, because other hosts
    may have them."""
    path = write_config(folder / 'good.ini', {'queue': {'name': 'emails'}, 'task': {key: value}})
    done = leatd('-c', path, '-t')
    assert done.returncode == 0 and done.stdout == f'{path}: ok\n'
    assert f'{path}: [task] {key}' in done.stderr and said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_too_few_descriptors(daemon, folder):
    """If the limit of open files is too low for all slots at once, the log says so at the start and at a reload,
    with the numbers, and not only when a task cannot start."""
    off = {'isolation': {'cgroup': 'off'}}
    worker = daemon({'queue': {'concurrency': 100}, **off}, start=False)
    worker.prefix = ['prlimit', '--nofile=100:200']
    worker.start().wait_ready()
    assert ('[queue] concurrency: 100 slots need up to 264 open files, but the limit is 200; set LimitNOFILE=264 '
            'in the unit (ulimit -n), or concurrency to 68 or less') in worker.log()
    reload(worker, changed(worker, queue={'concurrency': 68}, **off))
    assert worker.log().count('open files') == 1
    reload(worker, changed(worker, queue={'concurrency': 68}, output={'to': 'file', 'directory': folder}, **off))
    worker.wait_log('68 slots need up to 268 open files')


# ---- reload

def reload(worker, sections=None, text=None, told='configuration reloaded'):
    """Writes the file again and waits until the daemon logs the result."""
    if text is None:
        write_config(worker.config_path, sections)
    else:
        worker.config_path.write_text(text)
    before = worker.log().count(told)
    worker.reload()
    wait_until(lambda: worker.log().count(told) > before, message=worker.log)


def changed(worker, **sections):
    """The daemon's sections with some keys changed."""
    return {name: {**values, **sections.get(name, {})}
            for name, values in {**{name: {} for name in sections}, **worker.sections}.items()}


def test_broken_file_changes_nothing(daemon, queue, folder):
    """At SIGHUP with a broken file the running configuration stays, all errors are logged, and tasks go on."""
    worker = daemon({'task': {'environment': f'PLACE={folder}/out'}}).wait_ready()
    reload(worker, text=BROKEN, told='the running one stays')
    for line in (3, 4, 5, 8, 9, 11):
        assert f'{worker.config_path}:{line}: ' in worker.log()
    queue.add({'command': 'echo > "$PLACE"'})
    wait_succeeded(queue, 1)
    assert (folder / 'out').exists() and worker.running()

    # a missing file is treated alike
    worker.config_path.unlink()
    before = worker.log().count('the running one stays')
    worker.reload()
    wait_until(lambda: worker.log().count('the running one stays') > before)
    queue.add({'command': 'true'})
    wait_succeeded(queue, 2)


def test_concurrency_is_reloaded(daemon, queue, latches):
    """More slots are used at once, without any other event; fewer apply as tasks end."""
    worker = daemon({'queue': {'concurrency': 1}}).wait_ready()
    first, later = latches(), latches()
    queue.add(*[{'command': first.command}] * 3, *[{'command': later.command}] * 3)
    wait_until(lambda: len(worker.descendants()) == 1)
    reload(worker, changed(worker, queue={'concurrency': 3}))
    wait_until(lambda: len(worker.descendants()) == 3, message='3 tasks run')
    reload(worker, changed(worker, queue={'concurrency': 1}))
    first.open()
    wait_until(lambda: queue.counter('succeeded') == 3)
    wait_until(lambda: len(worker.descendants()) == 1)
    pass_time(0.5)
    assert len(worker.descendants()) == 1 and queue.redis.hlen(queue.running) == 1
    later.open()
    wait_succeeded(queue, 6)


def test_task_and_retry_keys_are_reloaded(daemon, queue, folder, latch):
    """Timeout, environment, directory, umask, attempts and codes apply to tasks that start after the reload;
    a running task keeps the old ones."""
    worker = daemon({'task': {'timeout': '10m'}}).wait_ready()
    queue.add({'command': f'{latch.wait}; echo "$NEW" > {folder}/old'})
    wait_until(lambda: worker.descendants())
    reload(worker, changed(
        worker, task={'timeout': '3s', 'environment': 'NEW=yes', 'directory': folder,
                      'umask': '077'},
        retry={'max_attempts': 1, 'success': '9'}))
    queue.add({'command': f'pwd > {folder}/new; echo $NEW >> {folder}/new; exit 9'})
    wait_until(lambda: queue.counter('succeeded') == 1)
    assert (folder / 'new').read_text() == f'{folder}\nyes\n'
    assert (folder / 'new').stat().st_mode & 0o777 == 0o600
    queue.add({'command': 'exec sleep 60'})
    [letter] = wait_letters(queue)
    assert letter.cause == 'timeout' and letter.attempts == '1'
    latch.open()
    wait_succeeded(queue, 2)
    assert (folder / 'old').read_text() == '\n'


def test_command_is_reloaded(daemon, queue, folder):
    """A configured command changes with a reload."""
    worker = daemon({'task': {'command': f'touch {folder}/one'}}).wait_ready()
    queue.add({'x': '1'})
    wait_succeeded(queue, 1)
    reload(worker, changed(worker, task={'command': f'touch {folder}/two'}))
    queue.add({'x': '1'})
    wait_succeeded(queue, 2)
    assert (folder / 'one').exists() and (folder / 'two').exists()


def test_scan_is_reloaded(daemon, queue, client):
    """A shorter period applies at once, however far away the next scan was."""
    queue.register('gone')
    queue.add({'command': 'true'})
    queue.begin('gone')
    worker = daemon({'queue': {'scan': '1h'}}).wait_ready()
    wait_blocked(client)
    queue.expire()
    reload(worker, changed(worker, queue={'scan': '100ms'}))
    wait_succeeded(queue, 1)


def test_kill_grace_that_needs_a_longer_lease(daemon, leat):
    """A reload takes such a kill_grace once the queue has the lease, and until then says how to do that."""
    worker = daemon({'queue': {'lease': '20s'}, 'task': {'kill_grace': '5s'}}).wait_ready()
    longer = {'queue': {'lease': '60s'}, 'task': {'kill_grace': '20s'}}
    reload(worker, changed(worker, **longer))
    worker.wait_log("[task] kill_grace: too long for the queue's lease; run leat conf --apply, and then reload")
    assert leat('conf', '--apply', config=longer).returncode == 0

    def is_taken():  # the worker learns of the lease at once, but not before leat conf returns
        seen = len(worker.log())
        reload(worker, changed(worker, **longer))
        return 'kill_grace' not in worker.log()[seen:] and '[queue] lease' not in worker.log()[seen:]

    wait_until(is_taken)


def test_log_level_is_reloaded(daemon, queue):
    """The log's level, and whether output goes there, change with a reload."""
    worker = daemon().wait_ready()
    reload(worker, changed(worker, log={'level': 'info', 'started': 'yes'},
                           output={'to': 'discard'}))
    queue.add({'command': 'echo unheard'})
    wait_succeeded(queue, 1)
    worker.wait_log('attempt 1 started')
    assert 'unheard' not in worker.log()


@pytest.mark.parametrize('section, key, value', [
    ('queue', 'name', 'others'), ('queue', 'lease', '30s'), ('queue', 'stream', 'others'),
    ('redis', 'db', '1'), ('queue', 'max_crashes', '7'), ('queue', 'max_length', '9'), ('queue', 'max_task', '1M'),
    ('queue', 'history', '7d'),
    ('dead', 'keep', '1d'), ('dead', 'keep_number', '9'), ('limits', 'burst', '3'),
    ('lanes', 'only', 'named'),
])
def test_kept_keys_are_logged(daemon, queue, folder, section, key, value):
    """A key that a reload does not change keeps its value, and the log says what changes it: a restart, or for a
    setting that all workers share leat conf --apply. The other keys change."""
    worker = daemon().wait_ready()
    reload(worker, changed(worker, **{section: {key: value}, 'task': {'umask': '027'}}))
    shared = (section, key) not in {('queue', 'name'), ('queue', 'stream'), ('redis', 'db')}
    worker.wait_log(f'[{section}] {key}: ' + ('takes effect only with leat conf --apply' if shared
                                              else 'takes effect only after a restart'))
    queue.add({'command': f'umask > {folder}/new; mv {folder}/new {folder}/out'})
    assert wait_file(folder / 'out') == b'0027\n'
    wait_succeeded(queue, 1)


def wait_copy(replica, server):
    """Makes one server a replica of the other, and waits until it has all data."""
    replica.client().replicaof('127.0.0.1', server.listen())

    def is_there():
        there, here = replica.client().info('replication'), server.client().info('replication')
        return (there['master_link_status'] == 'up'
                and there['slave_repl_offset'] == here['master_repl_offset'])
    wait_until(is_there)


def test_an_address_with_the_same_data(daemon, queue, redis_server, redis_servers, latch):
    """A reload takes a new server if it has the same data, as a replica that was promoted: a task goes on running
    meanwhile, and ends there."""
    worker = daemon().wait_ready()
    queue.add({'command': latch.command})
    wait_until(lambda: len(worker.descendants()) == 1)
    other = redis_servers()
    wait_copy(other, redis_server)
    sections = changed(worker, redis={'socket': other.socket})
    reload(worker, sections)
    worker.wait_log(f'not moving to {other.socket}: that Redis is a replica')
    other.client().replicaof('NO', 'ONE')
    reload(worker, sections)
    worker.wait_log(f'the configuration now names {other.socket}')
    wait_until(lambda: worker.log().count('registered with Redis') >= 2)
    redis_server.kill()
    latch.open()
    there = Queue(other.client())
    wait_succeeded(there, 1)
    there.add({'command': 'true'})
    wait_succeeded(there, 2)
    assert 'attempt 2' not in worker.log() and there.counter('crashes') == 0


def test_an_address_with_other_data(daemon, queue, redis_server, redis_servers, latch):
    """If the new server has other data, the worker claims nothing more, finishes its task at the old one, leaves
    that, and then takes tasks from the new one."""
    worker = daemon().wait_ready()
    queue.add({'command': latch.command})
    wait_until(lambda: len(worker.descendants()) == 1)
    other = redis_servers()
    there = Queue(other.client()).load()
    there.add({'command': 'true'})
    reload(worker, changed(worker, redis={'socket': other.socket}))
    worker.wait_log(f'{other.socket} has other data than {redis_server.socket}: finishing the running tasks first')
    queue.add({'command': 'true'})
    pass_time(1)
    assert worker.log().count('registered with Redis') == 1 and queue.counter('succeeded') == 0
    latch.open()
    wait_succeeded(there, 1)
    assert queue.counter('succeeded') == 1 and queue.redis.hlen('{emails}:workers') == 0
    assert queue.redis.xlen('emails') + queue.redis.xlen('{emails}:go') == 1
    assert 'attempt 2' not in worker.log()


def test_a_move_from_a_dead_redis(daemon, queue, redis_server, redis_servers):
    """If the old server is gone, an idle worker moves to one with other data, and takes tasks from it."""
    worker = daemon().wait_ready()
    other = redis_servers()
    there = Queue(other.client()).load()
    redis_server.kill()
    worker.wait_log('no session with Redis')
    pass_time(1.5)  # it has tried again
    reload(worker, changed(worker, redis={'socket': other.socket}))
    worker.wait_log('finishing the running tasks first')
    there.add({'command': 'true'})
    wait_succeeded(there, 1)


def test_another_reload_before_the_move(daemon, queue, redis_server, redis_servers, latch):
    """A reload with the former address ends the move: the worker claims tasks again."""
    worker = daemon().wait_ready()
    queue.add({'command': latch.command})
    wait_until(lambda: len(worker.descendants()) == 1)
    other = redis_servers()
    reload(worker, changed(worker, redis={'socket': other.socket}))
    worker.wait_log('finishing the running tasks first')
    reload(worker, changed(worker, redis={'socket': redis_server.socket}))
    queue.add({'command': 'true'})
    wait_until(lambda: queue.counter('succeeded') == 1)
    latch.open()
    wait_succeeded(queue, 2)


def test_an_address_that_does_not_answer(daemon, queue, redis_server, folder):
    """A reload does not take a server that does not answer: the log says so, the worker stays where it is, and
    the other keys change."""
    worker = daemon().wait_ready()
    socket, why = f'{folder}/none', 'No such file or directory'
    reload(worker, changed(worker, redis={'socket': socket}, task={'umask': '027'}))
    worker.wait_log(f'[redis] host, port, socket: not moving to {socket}: ')
    assert why in worker.log()
    assert f'staying with {redis_server.socket} until another reload' in worker.log()
    queue.add({'command': f'umask > {folder}/new; mv {folder}/new {folder}/out'})
    assert wait_file(folder / 'out') == b'0027\n'
    queue.redis.client_kill_filter(_type='normal', skipme=True)
    wait_until(lambda: worker.log().count('registered with Redis') >= 2)
    queue.add({'command': 'true'})
    wait_succeeded(queue, 2)


def test_an_address_before_the_first_answer(daemon, redis_server, redis_servers, folder):
    """A worker that has not registered yet takes any new address."""
    worker = daemon({'redis': {'socket': f'{folder}/none'}})
    worker.wait_log('no session with Redis')
    reload(worker, changed(worker, redis={'socket': redis_server.socket}))
    worker.wait_ready()


def test_flood_of_reloads(daemon, queue):
    """Somebody who asks for reloads without end, such as a task of the same user, gets five a second and no record
    for each. The last one that was asked for takes place."""
    worker = daemon().wait_ready()
    began = time.monotonic()
    for _ in range(300):
        worker.reload()
        wait_until(lambda: takes_signals(worker.pid))
    worker.config_path.write_text(BROKEN)
    worker.reload()
    worker.wait_log('configuration not reloaded')
    assert worker.log().count('configuration reloaded') <= (time.monotonic() - began) * 5 + 1
    queue.add({'command': 'true'})
    wait_succeeded(queue, 1)


def test_many_reloads(daemon, queue):
    """Reloads in quick succession, with running tasks, neither leak descriptors nor lose a task."""
    worker = daemon().wait_ready()
    queue.add({'command': 'true'})
    wait_succeeded(queue, 1)
    wait_blocked(queue.redis)
    before = open_files(worker.pid)
    for _ in range(40):
        queue.add(*[{'command': 'echo x'}] * 5)
        reload(worker, worker.sections)
    wait_succeeded(queue, 201)
    wait_until(lambda: open_files(worker.pid) == before)
