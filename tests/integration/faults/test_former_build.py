"""A queue of the last build without an index of tasks is taken over while workers of both builds run side by
side."""
import json
import tempfile
from pathlib import Path

import pytest

from harness import former
from harness.daemon import BUILD
from harness.functions.invariants import check
from harness.polling import wait_until
from harness.queue import Queue, trailer

# they share the build
pytestmark = pytest.mark.xdist_group('former')
FORMER = 2  # the last VERSION without an index
NOTES = {'no-password', 'no-persistence', 'snapshots-only', 'version-skew', 'library-new', 'conf-differs'}


class Sides:
    """Workers and commands of both builds, on one queue. A task notes the side that runs it."""

    def __init__(self, old, folder, daemon, leat):
        self.builds = {'old': old, 'new': BUILD}
        self.daemon, self.leat, self.path = daemon, leat, folder / 'ran'

    def worker(self, side):
        sections = {'queue': {'lease': '10s', 'scan': '500ms', 'concurrency': 2},
                    'task': {'environment': f'SIDE={side}', 'kill_grace': '1s'}}
        one = self.daemon(sections, start=False)
        one.program = str(self.builds[side] / 'leatd')
        return one.start().wait_ready()

    def run(self, side, *args):
        return self.leat(*args, build=self.builds[side])

    def call(self, side, *args):
        """The output of a command that succeeds."""
        done = self.run(side, *args)
        assert done.returncode == 0, (done.args, done.stdout, done.stderr)
        return done.stdout

    def add(self, count, *args):
        return [self.call('old', 'enqueue', *args).strip() for _ in range(count)]

    def command(self, then='true'):
        return f'echo $LEAT_TASK $SIDE >> {self.path}; {then}'

    def runs(self):
        """[(tid, side) …]"""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [tuple(line.split()) for line in lines]


@pytest.fixture(scope='module')
def old():
    """The folder of the former build."""
    with tempfile.TemporaryDirectory(prefix='leat-') as folder:
        Path(folder).chmod(0o755)
        try:
            yield former.build(Path(folder), FORMER)
        except former.NotHere as why:
            pytest.skip(f'the former build cannot be made: {why}')


@pytest.fixture
def sides(old, folder, daemon, leat):
    return Sides(old, folder, daemon, leat)


def fill(sides, queue, latch):
    """Tasks in every place, which the former worker and its library have put there: {kind: tids}. The worker
    is full afterwards."""
    tids = {'dead': sides.add(4, '--max-attempts', '1', sides.command(f'test -e {sides.path}.mended'))}
    wait_until(lambda: len(queue.letters()) == 4, message='four dead letters')
    tids['running'] = sides.add(2, '--result-ttl', '1h', sides.command(latch.wait))
    wait_until(lambda: queue.redis.hlen(queue.running) == 2, message='two tasks run')
    tids['requeued'] = sides.add(6, sides.command())
    for task in queue.begin('w1', 6):
        queue.finish('w1', task, 'release')
    tids['delayed'] = sides.add(3, '--delay', '10s', sides.command())
    tids['kept'] = sides.add(4, '--delay', '1h', sides.command())
    tids['laned'] = sides.add(5, '--lane', 'a', sides.command())
    for number in range(5):
        names = ['--id', f'label{number}', '--unique', f'k{number}']
        tids['laned'] += sides.add(1, '--lane', 'b', *names, sides.command())
    tids['ready'] = sides.add(5, sides.command())
    assert {trailer(fields)['leat.tid'] for _, fields in queue.entries('go')} == set(tids['requeued'])
    assert queue.version() == FORMER and queue.index() == {}
    return tids


def use_commands(sides, tids):
    """Commands of both builds find, cancel, retry and drop what the former build has left. Those of this build
    also change it."""
    for side in ('old', 'new'):
        for kind, state in {'dead': 'dead', 'running': 'running', 'kept': 'delayed'}.items():
            assert json.loads(sides.call(side, 'show', '--json', tids[kind][-1]))['state'] == state, (side, kind)
    assert 'cancelled' in sides.call('old', 'cancel', tids['kept'][0])
    assert 'cancelled' in sides.call('new', 'cancel', tids['kept'][1])
    assert 'due now' in sides.call('new', 'now', tids['kept'][2])
    assert 'edited' in sides.call('new', 'edit', tids['kept'][3], '--lane', 'b', '--delay', '1s')
    sides.path.with_suffix('.mended').touch()
    assert '1 dead letter' in sides.call('old', 'dead', 'retry', tids['dead'][0])
    assert '1 dead letter' in sides.call('new', 'dead', 'retry', tids['dead'][1])
    assert '1 dead letter' in sides.call('new', 'dead', 'drop', tids['dead'][2])


def test_a_queue_of_the_former_build_is_taken_over(sides, client, latch):
    """Each task runs once, whatever its place was, and the retried dead ones once more, on either worker. The
    commands of both builds work, and both doctors find nothing wrong in the end."""
    queue = Queue(client)
    workers = [sides.worker('old')]
    queue.register('w1', lease=10000)
    tids = fill(sides, queue, latch)

    workers.append(sides.worker('new'))
    assert queue.version() > FORMER
    use_commands(sides, tids)
    moved = {tid for kind in ('requeued', 'delayed', 'laned', 'ready') for tid in tids[kind]}
    moved |= {*tids['dead'][:2], *tids['kept'][2:]}
    wait_until(lambda: {tid for tid, side in sides.runs() if side == 'new'} >= moved, 60,
               lambda: f'the new worker runs them: {sides.runs()}, {queue.places()}')
    latch.open()
    later = sides.add(20, '--result-ttl', '1h', sides.command('sleep 0.1'))
    sides.call('old', 'wait', '--timeout', '60s', *tids['running'], *later[:10])
    sides.call('new', 'wait', '--timeout', '60s', *later[10:])

    expected = [*moved, *tids['running'], *later, *tids['dead']]
    assert sorted(tid for tid, _ in sides.runs()) == sorted(expected)
    assert {side for tid, side in sides.runs() if tid in later} == {'old', 'new'}
    wait_until(lambda: queue.places() == {tids['dead'][3]: ['dead']}, message=queue.places)
    assert all(worker.running() for worker in workers)
    check(queue)
    for side in ('old', 'new'):
        findings = json.loads(sides.run(side, 'doctor', '--json').stdout)['findings']
        assert {one['kind'] for one in findings} <= NOTES, (side, findings)


def test_a_poison_task_among_both_builds(sides, client):
    """A task that kills its worker each time, on workers of both builds, is a dead letter after max_crashes. The
    tasks beside it succeed, and are lost no more often than without former workers."""
    queue = Queue(client).load()
    workers = {side: sides.worker(side) for side in ('old', 'new')}
    lost = {'old': 0, 'new': 0}
    [bad] = sides.add(1, sides.command('sleep 0.5; kill -9 $(echo $LEAT_WORKER | cut -d: -f2); sleep 60'))
    others = sides.add(10, sides.command('sleep 0.7'))

    def has_ended():
        ended = queue.counter('succeeded') == len(others) and queue.letters()
        for side, worker in workers.items():  # afterwards, so that all are counted who were lost by then
            if not worker.running():
                lost[side] += 1
                workers[side] = sides.worker(side)
        return ended

    wait_until(has_ended, 120, lambda: f'all end: {lost}, {queue.places()}')
    [(_, letter)] = queue.letters()
    assert (letter['leat.tid'], letter['leat.cause'], letter['leat.crashes']) == (bad.encode(), b'crash', b'3')
    assert sum(lost.values()) == 3 and {tid for tid, _ in sides.runs()} == {bad, *others}
    assert queue.counter('crashes') <= 3 + 1
    check(queue)
