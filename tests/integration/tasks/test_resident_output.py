"""Output of resident processes: it belongs to the task that the process has when it writes."""
import re

import pytest

from harness.batches import add
from harness.functions.results import follow, wait_result
from harness.polling import wait_until
from harness.tasks import letters, records, wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')

ONCE = {'retry': {'max_attempts': 1}}


def written(worker):
    """[(text, its task or None, stream)] of all records of output."""
    found = []
    for _, _, message in records(worker.log()):
        match = re.match(r'^(.*) \((?:task=(\S+) attempt=\d+|handler=\d+ batch=\d+) stream=(std\w+)\)$', message)
        if match:
            found.append(match.groups())
    return found


def test_each_line_is_its_task_s(daemon, queue, handlers):
    """What a process writes before its report is the task's, also a last line without a newline."""
    worker = daemon(handlers.config()).wait_ready()
    tids = add(queue, *[f'say out {number};warn err {number};say end\\' for number in range(50)])
    wait_succeeded(queue, 50)
    for number, tid in enumerate(tids):
        assert sorted((text, stream) for text, task, stream in written(worker) if task == tid) == [
            ('end\\', 'stdout'), (f'err {number}', 'stderr'), (f'out {number}', 'stdout')]


def test_output_without_a_task(daemon, queue, handlers):
    """What a process writes while it has no task is logged as the process's."""
    daemon_log = daemon(handlers.config(command=f'echo before; echo too >&2; {handlers.command()}')).wait_ready()
    add(queue, 'say within')
    wait_succeeded(queue, 1)
    assert sorted((text, bool(task), stream) for text, task, stream in written(daemon_log)) == [
        ('before', False, 'stdout'), ('too', False, 'stderr'), ('within', True, 'stdout')]


def test_tails(daemon, queue, handlers):
    """A dead letter has what the process wrote for its task, and nothing of others; so has that of a task with
    which the process ended."""
    daemon({**handlers.config(), **ONCE}).wait_ready()
    add(queue, 'say one;dead 1', 'say two;warn too;exit 3', 'ok', 'say three;end 1')
    wait_letters(queue, 3)
    assert {letter.bytes[b'payload'].split(b';')[0]: (letter.tail('stdout'), letter.tail('stderr'))
            for letter in letters(queue)} == {
        b'say one': (b'one\n', b''), b'say two': (b'two\n', b'too\n'), b'say three': (b'three\n', b'')}


def test_tail_without_a_task(daemon, queue, handlers):
    """What a process wrote while it had no task is in no dead letter."""
    daemon({**handlers.config(command=f'echo before >&2; {handlers.command()}'), **ONCE}).wait_ready()
    add(queue, 'say one;dead 1')
    [letter] = wait_letters(queue)
    assert (letter.tail('stdout'), letter.tail('stderr')) == (b'one\n', b'')


def test_files(daemon, queue, handlers, folder):
    """With to = file, each task has its own file, and output without a task goes to the log."""
    files = folder / 'files'
    worker = daemon({**handlers.config(command=f'echo before; {handlers.command()}'),
                     'output': {'to': 'file', 'directory': files}}).wait_ready()
    tids = add(queue, *[f'say {number}' for number in range(20)], 'ok')
    wait_succeeded(queue, 21)
    assert {path.name: path.read_text() for path in files.iterdir()} == {
        f'{tid}.log': f'{number}\n' for number, tid in enumerate(tids[:-1])}
    assert written(worker) == [('before', None, 'stdout')]


def test_live_output(daemon, queue, handlers):
    """Live output of a task is complete when its result exists, and has nothing of its neighbours."""
    daemon(handlers.config()).wait_ready()
    live = {'live': '1', 'result_ttl': '1m'}
    tids = queue.add(*[{'payload': f'say {number}', **live} for number in range(10)])
    for number, tid in enumerate(tids):
        wait_result(queue, tid)
        output = follow(queue, tid)
        assert output.data(1) == b'%d\n' % number
    assert len({record['pid'] for record in handlers.records()}) == 1


def test_leat_run(daemon, leat, handlers):
    """leat run hands its payload to a resident process and shows what it writes."""
    config = handlers.config()
    daemon(config).wait_ready()
    done = leat('run', '--payload', 'say hello;warn there', config=config)
    assert (done.returncode, done.stdout, done.stderr) == (0, 'hello\n', 'there\n')
    assert leat('run', '--payload', 'exit 7', config=config).returncode == 7


def test_limit(daemon, queue, handlers):
    """The limit is for one task: many small ones do not add up. A task beyond it has failed, also if it reports
    success, and the next process goes on."""
    worker = daemon({**handlers.config(), **ONCE, 'output': {'max_output': '4K', 'at_max': 'kill'}}).wait_ready()
    add(queue, *['say ' + 'x' * 1000] * 10)
    wait_succeeded(queue, 10)
    add(queue, 'say ' + 'x' * 5000, 'ok')
    [letter] = wait_letters(queue)
    wait_until(lambda: queue.counter('succeeded') == 11)
    assert letter.cause == 'output-limit' and len(handlers.wait_up(2)) == 2
    worker.wait_log('wrote more than 4096 bytes; stopping it')


def test_several_in_hand(daemon, queue, handlers):
    """With several tasks in hand, output is the process's, and the record says so."""
    worker = daemon({**handlers.config('backwards', batch=3), **ONCE}).wait_ready()
    handlers.wait_up(1)
    tids = queue.add(*[{'payload': payload, 'max_attempts': '2'}
                       for payload in ('say one', 'say two;dead it', 'say three')])
    wait_letters(queue)
    wait_until(lambda: len(written(worker)) == 3)
    assert b'one\ntwo\n' in letters(queue)[0].tail('stdout') and len(tids) == 3


def test_inherit(daemon, queue, handlers):
    """With to = inherit, leatd does not see the output of resident processes: a task that is followed gets a
    process of its own."""
    daemon({**handlers.config(), 'output': {'to': 'inherit'}}).wait_ready()
    [tid] = queue.add({'payload': 'say here', 'live': '1', 'result_ttl': '1m'})
    wait_result(queue, tid)
    assert follow(queue, tid).data(1) == b'here\n'
    add(queue, 'say gone')
    wait_succeeded(queue, 2)
    assert len({record['pid'] for record in handlers.records()}) == 2


def test_much_output(daemon, queue, handlers):
    """A task's report takes effect only after all that the process wrote before it is logged."""
    worker = daemon({**handlers.config(), 'output': {'rate': '1M'}}).wait_ready()
    tids = add(queue, *[';'.join(['say ' + 'x' * 990] * 60)] * 3)
    wait_succeeded(queue, 3)
    wait_until(lambda: len(written(worker)) == 180)
    assert [sum(task == tid for _, task, _ in written(worker)) for tid in tids] == [60] * 3
