"""Output of tasks in files: one file for each task, whatever is in its place."""
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from harness.daemon import ROOT
from harness.polling import wait_until
from harness.tasks import open_files, records, wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')


@pytest.fixture
def files(folder, base_config):
    """The folder of the output files, which does not exist yet; every daemon of the test writes there."""
    path = folder / 'files'
    base_config['output'] = {'to': 'file', 'directory': path}
    return path


def told(worker, text):
    return [message for _, _, message in records(worker.log()) if text in message]


def test_one_file_for_each_task(daemon, queue, files):
    """The output of all attempts of a task is in its file, byte for byte, and not in the log; dead letters
    have the end as usual. A silent task has no file."""
    worker = daemon({'retry': {'max_attempts': 2}}).wait_ready()
    before = open_files(worker.pid)
    bad, silent, good = queue.add(
        {'command': r"printf '%b' \\0377\\000\\033[31m; echo $LEAT_ATTEMPT >&2; exit 1"},
        {'command': 'true'}, {'command': 'seq 100000'})
    wait_letters(queue)
    wait_succeeded(queue, 2)
    assert sorted(os.listdir(files)) == sorted([f'{bad}.log', f'{good}.log'])
    # the two streams of an attempt can arrive in either order
    orders = [{out + number, number + out} for out in [b'\xff\x00\x1b[31m'] for number in (b'1\n', b'2\n')]
    assert (files / f'{bad}.log').read_bytes() in [one + two for one in orders[0] for two in orders[1]]
    assert (files / f'{good}.log').read_bytes() == b''.join(b'%d\n' % i for i in range(1, 100001))
    assert wait_letters(queue)[0].tail('stdout') == b'\xff\x00\x1b[31m'
    assert 'stream=' not in worker.log()
    wait_until(lambda: open_files(worker.pid) == before)


def test_modes(daemon, queue, files):
    """Other users cannot read the output files."""
    daemon().wait_ready()
    [tid] = queue.add({'command': 'echo x'})
    wait_succeeded(queue, 1)
    assert stat.S_IMODE(files.stat().st_mode) & 0o007 == 0
    assert stat.S_IMODE((files / f'{tid}.log').stat().st_mode) == 0o640


def test_logs_directory(daemon, queue, folder):
    """Without a configured folder the files are in the queue's folder below $LOGS_DIRECTORY."""
    daemon({'output': {'to': 'file'}}, env={'LOGS_DIRECTORY': f'{folder}:/nowhere'}).wait_ready()
    [tid] = queue.add({'command': 'echo x; echo $LOGS_DIRECTORY'})
    wait_succeeded(queue, 1)
    assert (folder / 'emails' / f'{tid}.log').read_bytes() == b'x\n\n'


@pytest.mark.parametrize('kind', ['link', 'fifo', 'folder'])
def test_planted_files(daemon, queue, files, folder, kind, latch):
    """A link, a fifo or a folder in place of the file is neither written, followed nor waited for; the log
    says so once, and the task goes on."""
    worker = daemon().wait_ready()
    target = folder / 'target'
    target.write_text('as it was')
    [tid] = queue.add({'command': f'{latch.wait}; seq 3'})
    wait_until(lambda: queue.redis.hlen(queue.running) == 1)
    files.mkdir()
    path = files / f'{tid}.log'
    {'link': lambda: path.symlink_to(target), 'fifo': lambda: os.mkfifo(path), 'folder': path.mkdir}[kind]()
    latch.open()
    wait_succeeded(queue, 1)
    assert target.read_text() == 'as it was'
    assert len(told(worker, f'task {tid}: cannot write its output to a file: ')) == 1
    queue.add({'command': 'echo y'})
    wait_succeeded(queue, 2)
    assert told(worker, 'output is written to files again; 6 bytes were lost')


def test_no_folder(daemon, queue, folder):
    """If the folder cannot be made, only the output is lost."""
    worker = daemon({'output': {'to': 'file', 'directory': folder / 'a' / 'b'}}).wait_ready()
    queue.add({'command': 'echo x'}, {'command': 'echo y'})
    wait_succeeded(queue, 2)
    assert len(told(worker, 'cannot write its output to a file: No such file or directory')) == 1


def test_limit(daemon, queue, files):
    """max_output applies to files."""
    daemon({'output': {'max_output': '10'}}).wait_ready()
    [tid] = queue.add({'command': 'echo 12345; echo 67890 >&2; echo abc'})
    wait_succeeded(queue, 1)
    content = (files / f'{tid}.log').read_bytes()
    assert len(content) == 10


def test_rate(daemon, queue, files):
    """The rate applies to files, and no byte is lost."""
    daemon({'output': {'rate': '100K'}}).wait_ready()
    [tid] = queue.add({'command': 'seq 50000'})
    wait_succeeded(queue, 1)
    assert (files / f'{tid}.log').read_bytes() == b''.join(b'%d\n' % i for i in range(1, 50001))


def test_live_and_file(daemon, queue, files, leat):
    """leat run prints the output of its task, and the file has it, too."""
    daemon().wait_ready()
    done = leat('run', 'echo seen; echo told >&2')
    assert (done.returncode, done.stdout, done.stderr) == (0, 'seen\n', 'told\n')
    [path] = files.iterdir()
    assert sorted(path.read_text().split()) == ['seen', 'told']


def small_disk(path):
    """Mounts a file system of 64 KiB at the path, in the caller's mount namespace only."""
    return ['unshare', '--mount', '--propagation', 'private', 'sh', '-c',
            f'mount -t tmpfs -o size=64k tmpfs {path} && exec "$@"', 'sh']


def test_full_disk(daemon, queue, files):
    """On a full disk tasks go on and succeed. The log says once that output is lost, and at the end how much."""
    files.mkdir()
    if subprocess.run(small_disk(files) + ['true'], capture_output=True, check=False).returncode != 0:
        pytest.skip('this machine does not let us mount')
    worker = daemon(start=False)
    worker.prefix = small_disk(files)
    worker.start().wait_ready()
    inside = Path(f'/proc/{worker.pid}/root{files}')
    queue.add(*[{'command': 'head -c 100000 /dev/zero'}] * 3)
    wait_succeeded(queue, 3)
    assert len(told(worker, 'cannot write its output to a file: No space left on device')) == 1
    for path in inside.iterdir():
        path.unlink()
    [tid] = queue.add({'command': 'echo x'})
    wait_succeeded(queue, 4)
    assert (inside / f'{tid}.log').read_bytes() == b'x\n'
    [message] = told(worker, 'output is written to files again')
    lost = int(re.search(r'; (\d+) bytes were lost', message)[1])
    assert 300000 - 65536 <= lost < 300000


def test_logrotate(folder):
    """The installed logrotate file removes files that were not written for long, and no others."""
    program = shutil.which('logrotate', path='/usr/sbin:/usr/bin:/sbin:/bin')
    if not program:
        pytest.skip('logrotate is not installed')
    place = folder / 'emails'
    place.mkdir(mode=0o750)
    for name in ('1-0.log', '2-0.log', '3-0.log', 'other'):
        (place / name).write_text('x')
    for name in ('1-0.log', 'other'):
        os.utime(place / name, (10 ** 9, 10 ** 9))
    text = (ROOT / 'conf/leat.logrotate').read_text()
    assert '/var/log/leat/*/*.log {' in text and 'su leat leat\n' in text
    config = folder / 'config'
    config.write_text(text.replace('/var/log/leat', str(folder)).replace('su leat leat', ''))
    config.chmod(0o644)
    state = folder / 'state'
    state.write_text('logrotate state -- version 2\n' + ''.join(
        f'"{place}/{i}-0.log" 2020-1-1-0:0:0\n' for i in (1, 2, 3)))
    subprocess.run([program, '-s', state, config], check=True)
    assert sorted(os.listdir(place)) == ['2-0.log', '3-0.log', 'other']


def test_each_task_of_a_batch_has_its_output(daemon, queue, files, leat):
    """The file of each task of a batch has the batch's output, once, and leat logs finds it."""
    worker = daemon({'task': {'command': 'cat; echo all', 'batch': 3, 'batch_wait': '2s'},
                     'queue': {'concurrency': 1}}).wait_ready()
    before = open_files(worker.pid)
    tids = queue.add({'payload': 'one'}, {'payload': 'two'}, {'payload': 'three'})
    wait_succeeded(queue, 3)
    for tid in tids:
        assert (files / f'{tid}.log').read_text() == 'one\ntwo\nthree\nall\n'
        assert leat('logs', tid).stdout == 'one\ntwo\nthree\nall\n'
    wait_until(lambda: open_files(worker.pid) == before)
