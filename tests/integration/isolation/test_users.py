"""Tasks of another user than the daemon's: their identity, what they cannot do, and hosts that do not know
the user."""
import os
import shutil
import signal
import subprocess

import pytest

from harness.daemon import merged, program
from harness.polling import wait_until
from harness.processes import alive
from harness.tasks import environment, letters, wait_file, wait_letters, wait_succeeded
from harness.users import CAPABILITIES, DAEMON, OTHERS, PASSWD, TASKS, Host, as_user, needs_root

pytestmark = [pytest.mark.usefixtures('quick_tasks'), needs_root]

LACKING = 'leatd cannot run tasks so without '


@pytest.fixture
def host(folder):
    return Host(folder)


@pytest.fixture
def start(daemon, queue, redis_server, folder, host):
    """A function that starts a daemon as some user on a host of its own; Redis and the folder are open to
    all."""
    os.chmod(redis_server.socket, 0o777)
    folder.chmod(0o777)

    def run(sections=None, before=(), ready=True):
        worker = daemon(sections, start=False)
        worker.config_path.chmod(0o644)
        worker.env['HOME'] = str(host.home('leatd'))
        worker.prefix = [*host.words(), *before]
        worker.start()
        return worker.wait_ready() if ready else worker
    return run


def status(path):
    """A task's copy of /proc/self/status."""
    return dict(line.split(':\t', 1) for line in wait_file(path).decode().splitlines() if ':\t' in line)


def assert_is(path, uid, gid, groups):
    found = status(path)
    assert found['Uid'].split() == [str(uid)] * 4
    assert found['Gid'].split() == [str(gid)] * 4
    assert set(found['Groups'].split()) == {str(one) for one in groups}
    for name in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb'):
        assert int(found[name], 16) == 0, name
    return found


UNPRIVILEGED = as_user(capabilities=CAPABILITIES, groups=[OTHERS, OTHERS + 2])


@pytest.mark.parametrize('before', [[], UNPRIVILEGED], ids=['root', 'three capabilities'])
def test_a_user_by_name(start, queue, folder, host, before):
    """User, groups and environment are set; the task has none of the daemon's capabilities and can open its
    pipes by name."""
    worker = start({'task': {'user': 'thumbs', 'umask': '027'}, 'retry': {'max_attempts': 1}}, before)
    queue.add({'command': f'cp /proc/self/status {folder}/status; env -0 >{folder}/env; umask >{folder}/umask; '
                          'cat /dev/stdin >/dev/stderr; echo out >/dev/stdout; echo err >>/dev/stderr; exit 3',
               'payload': 'in\n'})
    [letter] = wait_letters(queue)
    assert (letter.status, letter.tail('stdout'), letter.tail('stderr')) == ('3', b'out\n', b'in\nerr\n')
    found = assert_is(folder / 'status', TASKS, TASKS, [TASKS, OTHERS, OTHERS + 1])
    assert found['NoNewPrivs'] == '1'
    variables = environment(folder / 'env')
    assert [variables[name] for name in (b'USER', b'LOGNAME', b'HOME', b'SHELL')] == \
        [b'thumbs', b'thumbs', bytes(host.home('thumbs')), b'/bin/sh']
    assert (folder / 'umask').read_text() == '0027\n'
    assert (folder / 'env').stat().st_uid == TASKS
    assert 'WARN' not in worker.log()


@pytest.mark.parametrize('task, uid, gid, groups, user', [
    ({'user': TASKS}, TASKS, TASKS, [TASKS, OTHERS, OTHERS + 1], 'thumbs'),
    ({'user': 'thumbs', 'group': 'photos'}, TASKS, OTHERS + 1, [OTHERS, OTHERS + 1], 'thumbs'),
    ({'user': '61000', 'group': '61001'}, 61000, 61001, [], '61000'),  # its group is its primary one
    ({'group': 'photos'}, DAEMON, OTHERS + 1, [OTHERS, OTHERS + 2], None),
    ({}, DAEMON, DAEMON, [OTHERS, OTHERS + 2], None),
])
def test_users_and_groups(start, queue, folder, host, task, uid, gid, groups, user):
    """user and group take names, numbers and unknown numbers; without either, tasks run as the daemon's user
    without its capabilities."""
    start({'task': task}, UNPRIVILEGED)
    queue.add({'command': f'cp /proc/self/status {folder}/status; echo "$USER $HOME" >{folder}/user'})
    wait_succeeded(queue, 1)
    assert_is(folder / 'status', uid, gid, groups)
    if user:
        home = host.home('thumbs') if user == 'thumbs' else '/'
        assert (folder / 'user').read_text() == f'{user} {home}\n'


def test_batches_checks_and_hooks(start, queue, folder):
    """Batches with their descriptor 3, checks and the dead-letter hook run as the tasks' user, too."""
    own = f'id -u >>{folder}/'
    start({'task': {'user': 'thumbs', 'command': f'{own}command; : >>/dev/fd/3; exit 1', 'batch': 3},
           'retry': {'max_attempts': 1}, 'dead': {'notify': own + 'notify'}}, UNPRIVILEGED)
    queue.add({'payload': 'x'})
    wait_letters(queue)
    assert wait_file(folder / 'notify', 6) == wait_file(folder / 'command', 6) == f'{TASKS}\n'.encode()


def test_the_daemon_kills_them(start, queue, folder):
    """A timeout sends TERM, then KILL, also to processes in other process groups."""
    start({'task': {'user': 'thumbs', 'timeout': '4s', 'kill_grace': '3s'}, 'queue': {'lease': '1m'},
           'retry': {'max_attempts': 1}}, UNPRIVILEGED)
    queue.add({'command': f"trap 'echo TERM >>{folder}/told' TERM; set -m; sleep 1000 & "
                          f'echo $$ $! >{folder}/pids; while :; do wait; done'})
    [letter] = wait_letters(queue)
    assert letter.cause == 'timeout'
    assert wait_file(folder / 'told', 5) == b'TERM\n'
    pids = [int(pid) for pid in (folder / 'pids').read_text().split()]
    wait_until(lambda: not any(alive(pid) for pid in pids))


def test_the_guard_kills_them(start, queue, folder):
    """If the daemon is killed, its tasks of another user are, too."""
    worker = start({'task': {'user': 'thumbs'}}, UNPRIVILEGED)
    queue.add({'command': f"trap '' TERM; set -m; sleep 1000 & echo $$ $! >{folder}/pids; while :; do wait; done"})
    wait_file(folder / 'pids', 3)
    pids = [int(pid) for pid in (folder / 'pids').read_text().split()]
    worker.kill9()
    wait_until(lambda: not any(alive(pid) for pid in pids))


def test_the_daemon_is_out_of_their_reach(start, queue, folder):
    """A task of another user can neither signal the daemon nor read its memory."""
    worker = start({'task': {'user': 'thumbs'}}, UNPRIVILEGED)
    queue.add({'command': 'kill -KILL $PPID; cat /proc/$PPID/environ; ls /proc/$PPID/fd; true'})
    wait_succeeded(queue, 1)
    assert worker.running()
    assert worker.log().count('ermi') >= 3, worker.log()


def test_worker_locks_are_out_of_their_reach(start, queue, folder):
    """A task of another user cannot lock the worker's lock file, which would keep the next worker from its
    tasks."""
    worker = start({'task': {'user': 'thumbs'}, 'isolation': {'state': folder / 'state'}}, UNPRIVILEGED)
    queue.add({'command': f'for file in {folder}/state/emails/*; do flock -n "$file" true; echo $?; done '
                          f'> {folder}/out'})
    wait_succeeded(queue, 1)
    assert (folder / 'out').read_text() == '66\n' and 'adopt' not in worker.log()


@pytest.mark.parametrize('task, capabilities, lacking', [
    ({'user': 'thumbs'}, (), 'CAP_SETUID, CAP_SETGID, CAP_KILL'),
    ({'user': 'thumbs'}, ('setuid', 'setgid'), 'CAP_KILL'),
    ({'user': 'root'}, ('setgid', 'kill'), 'CAP_SETUID'),
    ({'group': 'photos'}, (), 'CAP_SETGID'),
    ({'user': 'nosuch'}, ('kill',), 'CAP_SETUID, CAP_SETGID'),
])
def test_without_the_capabilities(start, task, capabilities, lacking):
    """The daemon says which capability is missing, and what to do, and exits with 78."""
    worker = start({'task': task}, as_user(capabilities=capabilities), ready=False)
    assert worker.wait_exit() == 78
    [name] = task
    assert f'[task] {name} = {task[name]}: {LACKING}{lacking}; use the drop-in leatd-other-' in worker.log()


def test_the_own_user_needs_no_capabilities(start, queue, folder, host):
    """A daemon may be configured to run tasks as its own user."""
    start({'task': {'user': 'leatd'}}, as_user(groups=[OTHERS, OTHERS + 2]))
    queue.add({'command': f'cp /proc/self/status {folder}/status; echo "$USER $HOME" >{folder}/user'})
    wait_succeeded(queue, 1)
    assert_is(folder / 'status', DAEMON, DAEMON, [OTHERS, OTHERS + 2])
    assert (folder / 'user').read_text() == f'leatd {host.home("leatd")}\n'


def test_a_proc_that_hides_tasks(start, queue, folder):
    """If /proc shows only own processes (ProtectProc=invisible), those of tasks cannot be found, and the
    daemon says so."""
    hidden = ['sh', '-c', 'mount -t proc -o hidepid=invisible proc /proc && exec "$@"', 'sh']
    worker = start({'task': {'user': 'thumbs'}}, [*hidden, *UNPRIVILEGED], ready=False)
    assert worker.wait_exit() == 78
    assert 'ProtectProc=default' in worker.log()


@pytest.mark.parametrize('task, why', [
    ({'user': 'nosuch'}, 'there is no user nosuch on this host'),
    ({'user': '61000'}, 'there is no user 61000 on this host; a number without a name requires a group'),
    ({'user': '4294967295', 'group': 'thumbs'}, 'there is no user 4294967295 on this host'),
    ({'user': 'thumbs', 'group': 'nosuch'}, 'there is no group nosuch on this host'),
    ({'user': 'thumbs', 'group': '4294967295'}, 'there is no group 4294967295 on this host'),
])
def test_a_host_without_the_user(start, daemon, queue, folder, task, why):
    """Tasks are requeued with no attempt used, and the worker stops claiming; all of them succeed on another
    host."""
    worker = start({'task': task}, UNPRIVILEGED)
    queue.add(*[{'command': f'echo $LEAT_ATTEMPT $(id -u) >>{folder}/runs'}] * 20)
    worker.wait_log(why).wait_log('this host cannot run tasks')
    wait_until(lambda: queue.counter('released') >= 1)
    daemon().wait_ready()
    wait_succeeded(queue, 20)
    assert (folder / 'runs').read_text() == '1 0\n' * 20
    assert letters(queue) == [] and queue.counter('retried') == 0 and worker.running()


def test_a_user_that_is_created_later(start, queue, folder, host):
    """If the user is created while the daemon runs, the next task that it tries succeeds."""
    worker = start({'task': {'user': 'late'}}, UNPRIVILEGED)
    queue.add({'command': f'id -u >{folder}/uid'})
    worker.wait_log('there is no user late')
    with open(host.passwd, 'a', encoding='ascii') as passwd:
        passwd.write(f'late:x:{TASKS + 1}:{TASKS}::/:/bin/sh\n')
    wait_succeeded(queue, 1)
    assert (folder / 'uid').read_text() == f'{TASKS + 1}\n'
    assert host.passwd.read_text().startswith(PASSWD.format(homes=host.homes))


def test_check_names_the_bounded_user(start, folder):
    """While a leatd that has bounded itself runs here, -t names user and group as keys that need a restart."""
    def named(task):
        worker = start({'task': {'user': 'thumbs', 'group': 'thumbs', **task},
                        'isolation': {'state': folder / 'state'}}, as_user(capabilities=CAPABILITIES))
        done = subprocess.run([*worker.prefix, program('leatd'), '-t', '-c', worker.config_path],
                              capture_output=True, text=True, check=True)
        worker.terminate()
        assert worker.wait_exit() == 0
        return done.stderr.splitlines()[0].split('only after a restart: ')[1].split(', ')

    assert named({})[-2:] == ['[task] user', '[task] group']
    assert not {'[task] user', '[task] group'} & set(named({'no_new_privileges': 'no'}))


def test_reload(start, queue, folder):
    """A reload sets another user if leatd could not bound itself to that of its start; otherwise, and with a
    user that cannot be set, it changes nothing, and a restart does."""
    def check(expected):
        before = queue.counter('succeeded')
        queue.add({'command': f'id -u >{folder}/uid-{expected}'})
        wait_succeeded(queue, before + 1)
        assert (folder / f'uid-{expected}').read_text() == f'{expected}\n'

    def run(sections, expected, note):
        text = ''.join(f'[{name}]\n' + ''.join(f'{key} = {value}\n' for key, value in values.items())
                       for name, values in merged(worker.sections, sections).items())
        worker.config_path.write_text(text)
        worker.reload()
        wait_until(lambda: worker.log().count(note) == 1, message=worker.log)
        check(expected)

    other = {'task': {'user': 61000, 'group': 61000}}
    worker = start({'task': {'user': 'thumbs', 'no_new_privileges': 'no'}}, as_user(capabilities=CAPABILITIES))
    run(other, 61000, 'configuration reloaded')
    worker.terminate()
    assert worker.wait_exit() == 0

    worker = start({'task': {'user': 'thumbs'}}, as_user(capabilities=CAPABILITIES))
    run(other, TASKS, 'configuration not reloaded')
    assert '[task] user, group: leatd has bounded itself' in worker.log()
    run({'task': {'user': 'thumbs', 'umask': '077'}}, TASKS, 'configuration reloaded')
    worker.terminate()
    assert worker.wait_exit() == 0
    worker = start(other, as_user(capabilities=CAPABILITIES))
    check(61000)
    worker.terminate()
    assert worker.wait_exit() == 0

    worker = start({}, as_user())
    run({'task': {'user': 'thumbs'}}, DAEMON, 'configuration not reloaded')
    assert LACKING in worker.log()


# ---- no_new_privileges

@pytest.fixture
def gainful(folder):
    """A copy of id that is set-user-ID root."""
    path = folder / 'id'
    shutil.copy(shutil.which('id'), path)
    path.chmod(0o4755)
    if os.statvfs(path).f_flag & os.ST_NOSUID:
        pytest.skip('no set-user-ID programs on the file system of temporary files')
    return path


@pytest.mark.parametrize('sections, euid', [({}, DAEMON), ({'task': {'no_new_privileges': 'yes'}}, DAEMON),
                                            ({'task': {'no_new_privileges': 'no'}}, 0)])
def test_no_new_privileges(start, queue, folder, gainful, sections, euid):
    """By default the set-user-ID bit of a program has no effect; if the configuration allows it, it has."""
    start(sections, as_user())
    queue.add({'command': f'{gainful} -u >{folder}/uid'})
    wait_succeeded(queue, 1)
    assert (folder / 'uid').read_text() == f'{euid}\n'


# ---- the daemon and tasks of its own user

@pytest.fixture
def password(redis_server, client, folder):
    """A password that Redis requires, in a file that only the daemon's user can read."""
    word = 'Pa55-of-the-worker'
    client.execute_command('ACL', 'SETUSER', 'worker', 'on', '>' + word, '~*', '&*', '+@all')
    path = folder / 'password'
    path.write_text(word)
    path.chmod(0o600)
    os.chown(path, DAEMON, DAEMON)
    return word


SEARCH = '''
import os
found = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) == os.getpid():
        continue
    for name in ("environ", "cmdline", "maps"):
        try:
            text = open(f"/proc/{pid}/{name}", "rb").read()
        except OSError:
            continue
        if b"Pa55-" in text:
            found.append(f"{pid} {name}")
        for line in text.decode(errors="replace").splitlines() if name == "maps" else []:
            first, last = (int(number, 16) for number in line.split()[0].split("-"))
            try:
                memory = open(f"/proc/{pid}/mem", "rb")
                memory.seek(first)
                if b"Pa55-" + b"of-the-worker" in memory.read(last - first):
                    found.append(f"{pid} {line}")
            except (OSError, OverflowError, ValueError):
                continue
print(found or "nothing")
'''

TRACE = '''
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
print("traced" if libc.ptrace(16, int(sys.argv[1]), None, None) == 0 else os.strerror(ctypes.get_errno()))
'''


def test_the_password_stays_with_the_daemon(start, queue, folder, password):
    """The password is not in argv, environment, descriptors or the log at any level. A task of the same user
    cannot read it from the daemon's /proc, nor trace the daemon. (The task can read a password_file of its
    user. A systemd credential does not prevent that; another user for tasks does.)"""
    worker = start({'redis': {'user': 'worker', 'password_file': folder / 'password'}, 'log': {'level': 'debug'},
                    'retry': {'max_attempts': 1}}, as_user())
    look = [f'for what in environ mem maps auxv stack; do cat /proc/$PPID/$what >>{folder}/seen; done',
            f'ls -l /proc/$PPID/fd /proc/$PPID/cwd/ >>{folder}/seen',
            f'for fd in 0 1 2 3 4 5 6 7 8 9 10 11 12; do cat <&$fd >>{folder}/seen; done 2>/dev/null',
            f'cat /proc/$PPID/cmdline /proc/self/environ >>{folder}/seen',
            f'python3 -c {chr(39)}{TRACE}{chr(39)} $PPID >>{folder}/traced',
            f'python3 {folder}/search.py >>{folder}/found']
    (folder / 'search.py').write_text(SEARCH)
    for line in look:
        queue.add({'command': f'({line}); touch {folder}/done-{look.index(line)}'})
    wait_until(lambda: all((folder / f'done-{n}').exists() for n in range(len(look))), message=worker.log)
    wait_succeeded(queue, len(look))
    seen = (folder / 'seen').read_bytes()
    assert b'LEAT_TASK' in seen and password.encode() not in seen
    assert (folder / 'found').read_text() == 'nothing\n'
    assert (folder / 'traced').read_text() == 'Operation not permitted\n'
    assert password not in worker.log() and worker.log().count('Permission denied') >= 6
    assert password.encode() not in (folder / 'passwd').read_bytes()
    with open(f'/proc/{worker.pid}/environ', 'rb') as variables, open(f'/proc/{worker.pid}/cmdline', 'rb') as argv:
        assert password.encode() not in variables.read() + argv.read()


def test_no_core_dump(start, password, folder):
    """A crash leaves no core dump, whatever the limit."""
    worker = start({'redis': {'user': 'worker', 'password_file': folder / 'password'}},
                   ['prlimit', '--core=unlimited', *as_user()])
    worker.signal(signal.SIGQUIT)
    ended = os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
    assert (ended.si_code, ended.si_status) == (os.CLD_KILLED, signal.SIGQUIT)
