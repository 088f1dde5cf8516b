"""leat import: lists, sets and sorted sets of an earlier system become tasks, each item once."""
import json
import os
import pty
import re
import signal
import subprocess

import pytest

from harness.daemon import ROOT, program, write_config
from harness.functions.lists import items_of

EX_USAGE, EX_DATAERR, EX_UNAVAILABLE, EX_TEMPFAIL = 64, 65, 69, 75
NOT_FOUND, INTERRUPTED = 1, 130


@pytest.fixture(autouse=True)
def runs_something(base_config):
    base_config['task'] = {'command': 'cat'}


def test_processing_lists(leat, queue, client):
    """All items of each list are taken, the tail first, and the lists are gone."""
    client.lpush('processing:a', *range(1200))
    client.lpush('processing:b', b'', b'\xff\0')
    done = leat('import', 'processing:a', 'processing:b')
    assert (done.returncode, done.stderr) == (0, '')
    assert done.stdout == 'imported 1200 items of processing:a\nimported 2 items of processing:b\n'
    assert items_of(queue) == [b'%d' % n for n in range(1200)] + [b'', b'\xff\0']
    assert not client.exists('processing:a', 'processing:b')


@pytest.mark.parametrize('page', ['src/cli/man/leat-import.1', '--help'])
def test_the_example_with_odd_names(leat, queue, client, folder, base_config, redis_server, page):
    """The example takes the keys of its pattern. Lines in the name of one are no options, and no other keys."""
    source = (ROOT / page).read_text().replace('\\e', '\\') if page != '--help' else leat('import', page).stdout
    line = re.search(r'redis-cli --scan .*?import$', source, re.M | re.S)[0]
    config = write_config(folder / 'import.ini', base_config)
    line = line.replace('redis-cli', f'redis-cli -s {redis_server.socket}') \
               .replace('leat -q mails', f'{program("leat")} -c {config}')
    client.lpush('processing:a', 'mail')
    client.lpush('processing:b\n--lane\nchosen\nother', 'odd')
    client.lpush('other', 'of another program')
    done = subprocess.run(['sh', '-c', line], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          check=False)
    assert 'imported 1 item of processing:a\n' in done.stdout
    assert client.lrange('other', 0, -1) == [b'of another program']
    assert items_of(queue) == [b'mail'] and client.zcard(queue.laned) == 0


def test_sets_of_dead_letters(leat, queue, client):
    """Each member of a set is taken; those of a sorted set in the order of their scores."""
    client.sadd('dead', *range(1500))
    client.zadd('scored', {'last': 30, 'first': -1, 'second': 7.5})
    done = leat('import', 'dead', 'scored')
    assert done.returncode == 0 and 'imported 1500 items of dead' in done.stdout
    found = items_of(queue)
    assert sorted(map(int, found[:1500])) == list(range(1500))
    assert found[1500:] == [b'first', b'second', b'last']
    assert not client.exists('dead', 'scored')


def test_a_circular_queue(leat, queue, client):
    """--marks cuts off *UNIXTIME, and a task whose time is in the future is delayed."""
    ahead = queue.now() // 1000 + 1000
    client.lpush('ring', 'done*1700000000', f'later*{ahead}', 'unmarked')
    assert leat('import', '--marks', 'ring').returncode == 0
    assert items_of(queue) == [b'done', b'unmarked']
    [(tid, due)] = client.zrange(queue.delayed, 0, -1, withscores=True)
    assert due == ahead * 1000 and queue.show(tid)['fields'] == [b'payload', b'later']


def test_fields_of_imported_tasks(leat, queue, client):
    """Items become the given field in the given lane, and equal items become one task."""
    client.lpush('old', 'a', 'b', 'a')
    done = leat('import', '--field', 'URL', '--lane', 'x', '--unique', 'old')
    assert done.stdout == 'imported 3 items of old, 1 of them already in the queue\n'
    assert items_of(queue, field=b'URL')[0] == b'a'
    assert b'x' == dict(zip(*[iter(queue.entries('stream')[0][1])] * 2))[b'lane']
    client.lpush('old', 'from the file')
    leat('import', 'old', config={'intake': {'field': 'NAME'}})
    assert queue.entries('stream')[-1][1] == [b'NAME', b'from the file']


def test_tasks_that_could_not_run_are_not_imported(leat, queue, client):
    """If every worker would refuse the tasks, leat takes no item."""
    client.lpush('old', 'x')
    for argv, config in ([['--field', 'id'], {}], [['--field', 'a-b'], {}], [['--field', 'command'], {}],
                         [[], {'task': {'command': None}}]):
        done = leat('import', *argv, 'old', config=config)
        assert done.returncode == EX_USAGE, (argv, done)
        assert ('an item cannot become id' if 'id' in argv else 'another field with --field') in done.stderr
        assert client.llen('old') == 1 and queue.places() == {}
    done = leat('import', '--field', 'command', 'old', config={'task': {'command': None}})
    assert done.returncode == 0 and items_of(queue, field=b'command') == [b'x']


def test_dry_run(leat, queue, client):
    """--dry-run prints the number and the first few items, and changes nothing."""
    ahead = queue.now() // 1000 + 1000
    client.lpush('ring', 'one', f'two*{ahead}', '', 'x' * 500, 'e\x1bsc', 'six', 'seven')
    before = client.dump('ring')
    done = leat('import', '--dry-run', '--marks', 'ring')
    lines = done.stdout.splitlines()
    assert lines[:2] == ['ring: list, 7 items', '  one'] and lines[2].startswith('  two  (not before ')
    assert lines[3] == '  (empty)' and lines[4].endswith('x... (500 bytes)')
    assert lines[5] == '  e\\x1bsc' and lines[6] == '  and 2 more'
    report = json.loads(leat('import', '--dry-run', '--json', '--marks', 'ring').stdout)
    [key] = report['keys']
    assert report['dry_run'] and key['items'] == 7 and key['type'] == 'list' and key['key'] == 'ring'
    assert key['first'][1] == {'item': 'two', 'bytes': 3, 'due_ms': ahead * 1000}
    assert client.dump('ring') == before and queue.places() == {}


def test_json(leat, client):
    """JSON has the number of items of each key, also of one that does not exist."""
    client.lpush('old', 'a', 'a', 'b')
    done = leat('import', '--json', '--unique', '--limit', 2, 'old', 'nowhere')
    assert json.loads(done.stdout) == {
        'dry_run': False, 'taken': 2,
        'keys': [{'key': 'old', 'type': 'list', 'taken': 2, 'added': 1, 'left': 1},
                 {'key': 'nowhere', 'type': None, 'taken': 0, 'added': 0, 'left': 0}]}


def test_limit(leat, queue, client):
    """--limit counts items of all keys together; the same command goes on."""
    client.lpush('a', *range(700))
    client.lpush('b', *range(10))
    assert leat('import', '--limit', 600, 'a', 'b').stdout.startswith(
        'imported 600 items of a; 100 left\n')
    assert (client.llen('a'), client.llen('b')) == (100, 10)
    assert leat('import', '--limit', 105, 'a', 'b').stdout == (
        'imported 100 items of a\nimported 5 items of b; 5 left\n')
    assert len(queue.entries('stream')) == 705


def test_other_keys_are_refused(leat, queue, client):
    """Keys of another type, the queue's own keys and repeated names are refused before anything is taken."""
    client.lpush('old', 'x')
    client.hset('a hash', 'x', 'y')
    queue.add({'command': 'later'}, due='+60000')
    for key, text in (('a hash', 'cannot import a hash: it is a hash, not a list, set or sorted set'),
                      ('emails', 'belongs to the queue'), ('{emails}:delayed', 'belongs to the queue')):
        client.xadd('emails', {'command': 'x'})
        done = leat('import', 'old', key)
        assert done.returncode == EX_DATAERR and text in done.stderr, done
    assert leat('import', 'old', 'old').returncode == EX_USAGE
    assert leat('import').returncode == EX_USAGE
    assert client.llen('old') == 1
    done = leat('import', 'nowhere', 'old')
    assert done.returncode == NOT_FOUND and 'nowhere does not exist' in done.stderr
    assert done.stdout == 'imported 1 item of old\n'


def test_a_full_queue(leat, queue, client):
    """leat stops at the length limit, says how many items are left, and goes on later."""
    queue.register('w1', max_length=7)
    client.lpush('old', *range(10))
    done = leat('import', 'old')
    assert done.returncode == EX_TEMPFAIL and 'the queue is full; 3 items remain in old' in done.stderr
    assert done.stdout == 'imported 7 items of old; 3 left\n'
    for task in queue.begin('w1', 7):
        queue.finish('w1', task)
    assert leat('import', 'old').returncode == 0
    assert items_of(queue) == [b'7', b'8', b'9']


@pytest.mark.parametrize('when', ['before', 'after'])
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted(leat, start, queue, client, proxy, through_proxy, number, when):
    """If leat is interrupted while a call, or its answer, is on its way, each item is in the list or in the
    queue, once, and the next run takes the rest."""
    total, step = 2200, 500
    client.lpush('old', *range(total))
    first, second = [proxy.trap('leat_intake', when=when, action='hold') for _ in range(2)]
    run = start('import', 'old', config=through_proxy)
    first.wait().release()
    second.wait()
    run.process.send_signal(number)
    if number == signal.SIGKILL:
        moved = step if when == 'before' else 2 * step
        assert run.ended() == -number
        proxy.cut()
    else:
        moved = 2 * step
        second.release()
        assert run.ended() == INTERRUPTED
        assert run.out == f'imported {moved} items of old; {total - moved} left\n'
    assert (client.xlen('emails'), client.llen('old')) == (moved, total - moved)
    done = leat('import', 'old')
    assert (done.returncode, done.stderr) == (0, '')
    assert [int(item) for item in items_of(queue)] == list(range(total))


def test_the_connection_breaks(leat, queue, client, proxy, through_proxy):
    """If the answer to a call is lost, leat says that it does not know the outcome, and no item is lost or
    doubled."""
    client.lpush('old', *range(2000))
    proxy.trap('leat_intake')
    done = leat('import', 'old', config=through_proxy)
    assert done.returncode == EX_UNAVAILABLE and 'run the same command again' in done.stderr
    assert client.llen('old') + client.xlen('emails') == 2000
    assert leat('import', 'old').returncode == 0
    assert [int(item) for item in items_of(queue)] == list(range(2000))


def test_failures_outweigh_a_missing_key(leat, start, queue, client, proxy, through_proxy):
    """If a key does not exist, leat moves the others. So if it could not move them, it exits as if all keys
    existed."""
    client.lpush('old', *range(2000))
    held = proxy.trap('leat_intake', action='hold')
    run = start('import', 'nowhere', 'old', config=through_proxy)
    held.wait()
    run.process.send_signal(signal.SIGINT)
    held.release()
    assert run.ended() == INTERRUPTED
    proxy.trap('leat_intake')
    done = leat('import', 'nowhere', 'old', config=through_proxy)
    assert done.returncode == EX_UNAVAILABLE and client.exists('old')
    queue.register('w1', max_length=1)
    assert leat('import', 'nowhere', 'old').returncode == EX_TEMPFAIL


def test_progress_only_on_a_terminal(folder, base_config, queue, client):
    """On a terminal stderr gets a bar that follows the progress; a pipe gets nothing."""
    for first in range(0, 200_000, 10_000):
        client.lpush('old', *range(first, first + 10_000))
    path = write_config(folder / 'import.ini', base_config)
    master, slave = pty.openpty()
    argv = [program('leat'), '-c', str(path), 'import', 'old']
    with subprocess.Popen(argv, stderr=slave, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        os.close(slave)
        shown = b''
        while True:
            try:
                shown += os.read(master, 65536)
            except OSError:
                break
        assert process.wait(60) == 0
        assert process.stdout.read() == b'imported 200000 items of old\n'
    os.close(master)
    assert b'%' in shown and b'tasks, ' in shown
