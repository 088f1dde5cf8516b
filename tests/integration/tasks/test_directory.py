"""The working directory of tasks: their user's home, the configured one, or the task's own."""
import os
import subprocess

import pytest

from harness.daemon import merged, write_config
from harness.polling import wait_until
from harness.tasks import environment, letters, wait_file, wait_letters, wait_succeeded
from harness.users import TASKS, Host, needs_root

pytestmark = pytest.mark.usefixtures('quick_tasks')

ONCE = {'retry': {'max_attempts': 1}}


@pytest.fixture
def home(folder):
    path = folder / 'home'
    path.mkdir()
    return path


@pytest.fixture
def homed(daemon, home):
    """A function that starts a daemon whose user has this home."""
    return lambda sections=None: daemon(sections, env={'HOME': str(home)}).wait_ready()


def where(path):
    """A line that writes its working directory, and what its environment says of it."""
    return f'(readlink /proc/self/cwd; echo "$PWD"; echo "$HOME") >{path}.new; mv {path}.new {path}'


def told(path):
    return wait_file(path).decode().splitlines()


# ---- the home

def test_tasks_start_in_the_home(homed, queue, folder, home):
    """A relative path is below the home of the tasks' user, with a shell and without; HOME and PWD agree."""
    homed()
    queue.add({'command': where(folder / 'out')}, {'command': 'touch plain'}, {'command': ': > shell'})
    wait_succeeded(queue, 3)
    assert told(folder / 'out') == [str(home)] * 3
    assert sorted(path.name for path in home.iterdir()) == ['plain', 'shell']


def test_run_unpacks_into_the_home(homed, leat, folder, home):
    """leat run --stdin 'tar x' leaves its files in the home."""
    homed()
    (folder / 'file').write_text('text')
    packed = subprocess.run(['tar', '-C', str(folder), '-c', 'file'], check=True, capture_output=True).stdout
    done = leat('run', '--stdin', 'tar x', input=packed.decode())
    assert done.returncode == 0, done.stderr
    assert (home / 'file').read_text() == 'text'


def test_the_configured_directory(homed, queue, folder, home):
    """[task] directory outranks the home, and a reload without it leads back; HOME stays the home."""
    worker = homed({'task': {'directory': folder}})
    queue.add({'command': where(folder / 'set')})
    assert told(folder / 'set') == [str(folder), str(folder), str(home)]
    write_config(worker.config_path, merged(worker.sections, {'task': {'directory': None}}))
    worker.reload()
    worker.wait_log('reloaded')
    queue.add({'command': where(folder / 'unset')})
    assert told(folder / 'unset') == [str(home)] * 3


def test_another_home_in_the_environment(homed, queue, folder, home):
    """HOME in [task] environment is a plain variable: tasks start in their user's home."""
    homed({'task': {'environment': f'HOME={folder}'}})
    queue.add({'command': where(folder / 'out')})
    assert told(folder / 'out') == [str(home), str(home), str(folder)]


@pytest.mark.parametrize('spoil, why', [(lambda home: home.rmdir(), 'No such file or directory'),
                                        (lambda home: (home.rmdir(), home.write_text('')), 'Not a directory')],
                         ids=['missing', 'file'])
def test_without_a_home(homed, queue, folder, home, spoil, why):
    """If the home is missing, tasks start in /, and HOME says so; there is one warning, and one more after a
    reload."""
    spoil(home)
    worker = homed()
    for name in 'abc':
        queue.add({'command': where(folder / name)})
        assert told(folder / name) == ['/', '/', '/']
    queue.add({'command': 'sh -c "test $HOME = / && test $PWD = /"'})
    wait_succeeded(queue, 4)
    warning = f'warning: home {home}: tasks cannot enter it and start in /: {why}'
    assert worker.log().count('tasks cannot enter it') == worker.log().count(warning) == 1, worker.log()
    worker.reload()
    worker.wait_log('reloaded')
    queue.add({'command': 'true'}, {'command': 'true'})
    wait_succeeded(queue, 6)
    assert worker.log().count(warning) == 2


def test_a_relative_home(daemon, queue, folder):
    """A HOME that is not an absolute path counts as missing."""
    worker = daemon(env={'HOME': 'tmp'}).wait_ready()
    queue.add({'command': where(folder / 'out')})
    assert told(folder / 'out') == ['/', '/', '/']
    worker.wait_log('home tmp: tasks cannot enter it')


def test_a_home_that_is_created_later(homed, queue, folder, home):
    """A home that was missing and exists now is used, without a reload."""
    home.rmdir()
    homed()
    queue.add({'command': where(folder / 'before')})
    assert told(folder / 'before')[0] == '/'
    home.mkdir()
    queue.add({'command': where(folder / 'after')})
    assert told(folder / 'after') == [str(home)] * 3


def test_a_set_directory_that_is_missing(homed, queue, folder):
    """A configured directory that is missing is a host fault: no attempt is used."""
    worker = homed({'task': {'directory': folder / 'gone'}, **ONCE})
    queue.add({'command': 'true'})
    worker.wait_log(f'cannot change to directory {folder}/gone: No such file or directory')
    (folder / 'gone').mkdir()
    wait_succeeded(queue, 1)


# ---- other users

@pytest.fixture
def other(daemon, redis_server, folder):
    """A function that starts a daemon whose tasks run as another user."""
    host = Host(folder)
    os.chmod(redis_server.socket, 0o777)
    folder.chmod(0o777)

    def run(**task):
        worker = daemon({'task': {'user': 'thumbs', **task}, **ONCE}, start=False)
        worker.prefix = host.words()
        return worker.start().wait_ready()
    run.home = host.home('thumbs')
    return run


@needs_root
def test_the_home_of_another_user(other, queue, folder):
    """Tasks start in the home of [task] user, which the daemon's own user need not be able to enter."""
    worker = other()
    other.home.chmod(0o700)
    queue.add({'command': where(folder / 'out')}, {'command': 'touch file'})
    wait_succeeded(queue, 2)
    assert told(folder / 'out') == [str(other.home)] * 3
    assert (other.home / 'file').stat().st_uid == TASKS
    assert 'cannot enter' not in worker.log()


@needs_root
def test_a_closed_home(other, queue, folder):
    """A home that its user cannot enter counts as missing, even if the daemon could enter it."""
    os.chown(other.home, 0, 0)
    other.home.chmod(0o700)
    worker = other()
    queue.add({'command': where(folder / 'a')}, {'command': where(folder / 'b')})
    wait_succeeded(queue, 2)
    assert told(folder / 'a') == told(folder / 'b') == ['/', '/', '/']
    assert worker.log().count('tasks cannot enter it and start in /: Permission denied') == 1


@needs_root
def test_the_own_directory_is_entered_as_the_user(other, queue, folder):
    """A task's own directory is entered with the rights of its user, not with the daemon's."""
    (folder / 'closed').mkdir(mode=0o700)
    worker = other()
    queue.add({'command': 'true', 'directory': f'{folder}/closed'})
    [letter] = wait_letters(queue)
    assert letter.cause == 'cannot-execute'
    assert letter.reason == f'cannot change to directory {folder}/closed: Permission denied'
    assert 'this host cannot run tasks' not in worker.log()


# ---- a task's own directory

@pytest.mark.parametrize('configured', [False, True])
def test_the_own_directory(homed, queue, folder, home, configured):
    """The field directory outranks all others, with a shell and without, and is no variable."""
    own = folder / 'own'
    own.mkdir()
    homed({'task': {'directory': folder}} if configured else None)
    queue.add({'command': where(folder / 'out'), 'directory': f'{own}'},
              {'command': 'touch plain', 'directory': f'{own}/.'},
              {'command': f'sh -c "env -0 > {folder}/env"', 'directory': f'{own}'},
              {'command': where(folder / 'empty'), 'directory': ''})
    wait_succeeded(queue, 4)
    assert told(folder / 'out') == [str(own), str(own), str(home)]
    assert told(folder / 'empty')[0] == str(folder if configured else home)
    assert (own / 'plain').exists()
    variables = environment(folder / 'env')
    assert variables[b'PWD'] == str(own).encode() and b'TASK_directory' not in variables


def test_the_own_directory_is_missing(homed, queue, folder):
    """If a task's own directory is missing, the task fails, and others run on."""
    worker = homed()
    queue.add({'command': 'true', 'directory': f'{folder}/gone'}, {'command': 'true'})
    [letter] = wait_letters(queue)
    assert (letter.cause, letter.status, letter.attempts) == ('cannot-execute', '', '1')
    assert letter.reason == f'cannot change to directory {folder}/gone: No such file or directory'
    wait_until(lambda: queue.counter('succeeded') == 1)
    assert 'this host cannot run tasks' not in worker.log()


def test_cannot_execute_may_be_retried(homed, queue, folder):
    """[retry] cannot-execute = retry applies to a missing directory, which may exist at the next attempt."""
    homed({'retry': {'max_attempts': 1000, 'base': '300ms', 'jitter': 'none', 'cannot-execute': 'retry'}})
    queue.add({'command': 'touch file', 'directory': f'{folder}/later'})
    wait_until(lambda: queue.counter('retried') >= 1)
    (folder / 'later').mkdir()
    wait_succeeded(queue, 1)
    assert (folder / 'later' / 'file').exists()


def test_strange_bytes_of_a_directory(homed, queue, folder):
    """The reason escapes the bytes of a directory, and cuts a long one so that the failure is still in it."""
    homed()
    queue.add({'command': 'true', 'directory': b'/no/\x1b[31m\xff\n'},
              {'command': 'true', 'directory': '/no' + '/x' * 2000})
    reasons = sorted(letter.reason for letter in wait_letters(queue, 2))
    assert all(reason.endswith(': No such file or directory') for reason in reasons)
    assert reasons[1].startswith('cannot change to directory /no/x/x') and '...: ' in reasons[1]
    assert reasons[0].startswith('cannot change to directory /no/') and reasons[0].isprintable()


@pytest.mark.parametrize('value, reason', [
    ('tmp', 'directory is not an absolute path: begin it with /'),
    ('~', 'directory is not an absolute path: begin it with /'),
    (b'/t\0mp', 'directory holds a NUL byte: remove it'),
    ('/' + 'x' * 4095, 'directory is longer than 4095 bytes'),
], ids=['relative', 'tilde', 'NUL', 'long'])
def test_wrong_directories_are_refused(homed, queue, value, reason):
    """An invalid directory makes the task a dead letter that never ran."""
    homed()
    queue.add({'command': 'true', 'directory': value})
    [letter] = wait_letters(queue)
    assert (letter.cause, letter.reason) == ('refused', reason)


def test_a_batch_of_one(homed, queue, folder, home):
    """A task with its own directory has its own process, and the others share theirs."""
    (folder / 'own').mkdir()
    sections = {'task': {'command': f'echo $LEAT_BATCH $PWD >> {folder}/out; cat >> {folder}/read',
                         'batch': 10, 'batch_wait': '500ms'}}
    queue.add({'payload': '1'}, {'payload': '2', 'directory': f'{folder}/own'}, {'payload': '3'})
    homed(sections)
    wait_succeeded(queue, 3)
    assert sorted(told(folder / 'out')) == [f'1 {folder}/own', f'2 {home}']
    assert sorted((folder / 'read').read_text().split()) == ['1', '2', '3']


def test_the_check_runs_there_too(homed, queue, folder, home):
    """[task] check runs in the directory of its task."""
    own = folder / 'own'
    own.mkdir()
    queue.register('gone', lease=2000)
    queue.add({'payload': 'a', 'directory': f'{own}'}, {'payload': 'b'})
    for task in queue.begin('gone', 2):
        queue.expire(task.token)
    homed({'task': {'command': 'touch ran; exit 1', 'check': 'touch checked; exit 0'}})
    wait_succeeded(queue, 2)
    assert [path.name for path in own.iterdir()] == [path.name for path in home.iterdir()] == ['checked']


def test_the_dead_hook_runs_in_the_home(homed, queue, folder, home):
    """[dead] notify runs in the directory of tasks without their own."""
    (folder / 'own').mkdir()
    homed({'dead': {'notify': f'env -0 > {folder}/env; {where(folder / "out")}'}, **ONCE})
    queue.add({'command': 'exit 3', 'directory': f'{folder}/own'})
    assert told(folder / 'out') == [str(home)] * 3
    assert b'TASK_directory' not in environment(folder / 'env')


# ---- listed commands, and leat

def test_listed_commands_refuse_a_directory(homed, queue, leat, folder):
    """If commands are listed, a task with its own directory is refused, by the worker and by leat."""
    listed = {'security': {'commands': 'listed'}, 'command.bare': {'program': 'true'}}
    why = 'field directory is not allowed: commands of this queue are listed'
    done = leat('enqueue', '--directory', '/tmp', 'bare', config=listed)
    assert done.returncode == os.EX_DATAERR and why in done.stderr
    assert leat('enqueue', 'bare', config=listed).returncode == 0
    assert queue.redis.xlen(queue.stream) == 1
    homed(listed)
    queue.add({'command': 'bare', 'directory': '/tmp'}, {'command': 'bare', 'directory': ''})
    [letter] = wait_letters(queue)
    assert (letter.cause, letter.reason) == ('refused', why)
    wait_until(lambda: queue.counter('succeeded') == 2)
    assert len(letters(queue)) == 1


def test_run_in_a_directory(homed, leat, folder):
    """leat run --directory starts the command there; if it cannot, the exit status is 126, with the reason."""
    homed()
    done = leat('run', '--directory', str(folder), 'pwd')
    assert (done.stdout, done.returncode) == (f'{folder}\n', 0)
    done = leat('run', '--directory', f'{folder}/gone', 'pwd')
    assert done.returncode == 126
    assert f'cannot change to directory {folder}/gone: No such file or directory' in done.stderr


def test_enqueue_with_a_directory(leat, queue):
    """leat enqueue --directory sets the field; a relative directory is a usage error."""
    assert leat('enqueue', '--directory', '/srv', 'true').returncode == 0
    [(_, fields)] = queue.entries('stream')
    assert dict(zip(fields[::2], fields[1::2])) == {b'directory': b'/srv', b'command': b'true'}
    for command in 'enqueue', 'run':
        done = leat(command, '--directory', 'srv', 'true')
        assert done.returncode == {'enqueue': os.EX_USAGE, 'run': 125}[command] and '--directory' in done.stderr


def test_items_of_lists_have_no_directory(leat):
    """Items of producers' lists cannot become a directory."""
    done = leat('status', config={'intake': {'lists': 'work', 'field': 'directory'}})
    assert done.returncode == os.EX_CONFIG and 'cannot become directory' in done.stderr
