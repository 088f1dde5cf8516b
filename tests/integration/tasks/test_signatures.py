"""Signed tasks: a validly signed task runs once; any other becomes a dead letter and never runs."""
import json
import re
import signal
import time

import pytest
import redis

from harness.functions.signing import Key
from harness.polling import wait_until
from harness.queue import LIBRARY, Queue
from harness.tasks import letters, wait_file, wait_letters, wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')


@pytest.fixture
def key(folder):
    return Key(folder, '2026a')


@pytest.fixture
def required(key):
    """The sections of a worker that requires signatures."""
    return {'security': {'signatures': 'required', 'key_files': key.entry}}


@pytest.fixture
def ran(folder):
    """A command that writes a line into a file, and a function that reads the file."""
    class Ran:
        command = f'echo "$TASK_SIZE" >> {folder}/ran'

        @staticmethod
        def lines():
            path = folder / 'ran'
            return path.read_text().splitlines() if path.exists() else []
    return Ran


# ---- valid tasks

def test_a_signed_task_runs(daemon, required, key, queue, client, ran):
    """A signed task runs whether it came by XADD or enqueue, delayed, in a lane, with id and unique key, or
    with any bytes."""
    daemon(required).wait_ready()
    client.xadd('emails', key.sign({'command': ran.command, 'SIZE': 1, 'payload': b'\0\xff\n'}))
    queue.add(key.sign({'command': ran.command, 'SIZE': 2, 'lane': 'a', 'id': 'x', 'unique': 'y', 'EMPTY': ''}))
    queue.add(key.sign({'command': ran.command, 'SIZE': 3}), due='+50')
    wait_succeeded(queue, 3)
    assert sorted(ran.lines()) == ['1', '2', '3']


def test_fields_in_another_order_are_the_same_task(daemon, required, key, queue, client, ran):
    """The order of fields has no meaning and is not signed."""
    daemon(required).wait_ready()
    signed = key.sign({'command': ran.command, 'SIZE': 1, 'b': 'x', 'Z': ''})
    client.xadd('emails', dict(reversed(signed.items())))
    wait_succeeded(queue, 1)


def test_signatures_are_no_variables(daemon, required, key, queue, folder):
    """Tasks see neither their signature nor not_after, and have no access to the daemon's keys."""
    daemon(required).wait_ready()
    queue.add(key.sign({'command': f'env > {folder}/out; ls -l /proc/self/fd >> {folder}/out'}))
    wait_succeeded(queue, 1)
    text = (folder / 'out').read_text()
    assert 'leat1:' not in text and 'not_after' not in text and key.secret not in text


# ---- invalid tasks

def altered(key, ran):
    """{the alteration: (the task's flat fields, what the reason says)}"""
    def signed(**options):
        return key.sign({'command': ran.command, 'SIZE': 1, 'lane': 'a'}, **options)

    def flat(fields, *more):
        return [part for item in fields.items() for part in item] + list(more)

    def without(fields, name):
        return {other: value for other, value in fields.items() if other != name}

    late = str(int(time.time()) + 7200)
    mac = signed()['signature']
    misfit, form = 'does not match', 'is not leat1:KEY:NONCE:MAC'
    return {
        'unsigned': (flat({'command': ran.command}), 'not signed'),
        'a field more': (flat(signed(), 'MORE', ''), misfit),
        'a known field more': (flat(signed(), 'timeout', '1h'), misfit),
        'a field less': (flat(without(signed(), 'SIZE')), misfit),
        'no lane': (flat(without(signed(), 'lane')), misfit),
        'another command': (flat(dict(signed(), command='true')), misfit),
        'another value': (flat(dict(signed(), SIZE=2)), misfit),
        'another name': (flat(dict(without(signed(), 'SIZE'), SIZF=1)), misfit),
        'parts moved': (flat(dict(without(signed(), 'SIZE'), SIZE1='')), misfit),
        'a field twice': (flat(signed(), 'SIZE', '1'), 'is given twice'),
        'the signature twice': (flat(signed(), 'signature', mac), 'is given twice'),
        'a later not_after': (flat(dict(signed(), not_after=late)), misfit),
        'no not_after': (flat(without(signed(), 'not_after')), misfit),
        'signed without not_after': (flat(signed(valid=None)), 'no not_after'),
        'too late': (flat(signed(valid=-1)), 'expired at 20'),
        'milliseconds': (flat(key.sign({'command': ran.command, 'not_after': int(time.time() * 1000)})),
                         'whole seconds'),
        'for years': (flat(signed(valid=400 * 86400)), '366 days'),
        'another queue': (flat(signed(stream='emails2')), misfit),
        'no such key': (flat(dict(signed(), signature=mac.replace('2026a', 'other'))), 'the key other, which'),
        'another nonce': (flat(dict(signed(), signature=mac[:12] + 'x' + mac[12:])), misfit),
        'another MAC': (flat(dict(signed(), signature=mac[:-1] + ('0' if mac[-1] != '0' else '1'))), misfit),
        'upper case': (flat(dict(signed(), signature=mac[:-64] + mac[-64:].upper())), form),
        'cut short': (flat(dict(signed(), signature=mac[:-1])), form),
        'NUL behind it': (flat(dict(signed(), signature=mac.encode() + b'\0')), form),
        'empty': (flat(dict(signed(), signature='')), form),
        'junk': (flat(dict(signed(), signature=b':\xff:::')), form),
    }


def test_altered_tasks_never_run(daemon, leat, required, key, queue, client, ran):
    """Each altered task becomes a dead letter with the cause refused, a reason and no attempt, never runs, and
    affects no other task."""
    worker = daemon(required).wait_ready()
    cases = altered(key, ran)
    tids = {}
    for name, (fields, _) in cases.items():
        tids[client.execute_command('XADD', 'emails', '*', *fields).decode()] = name
    found = {tids[letter.tid]: letter for letter in wait_letters(queue, len(cases))}
    for name, (fields, reason) in cases.items():
        letter = found[name]
        assert letter.cause == 'refused' and reason in letter.reason, (name, letter.own)
        assert letter.fields == [part if isinstance(part, bytes) else str(part).encode() for part in fields]
    assert ran.lines() == []
    tid = letter.tid
    shown = json.loads(leat('show', '--json', tid).stdout)
    assert (shown['attempts'], shown['history']) == (0, [])
    assert re.search(rf'^{tid} .* refused +0 ', leat('dead', 'list', '--limit', 0).stdout, re.M)
    assert 'not started: refused, ' in worker.log() and 'failed: refused' not in worker.log()
    queue.add(key.sign({'command': ran.command, 'SIZE': 7}))
    wait_succeeded(queue, 1)
    assert ran.lines() == ['7'] and worker.running()


def test_another_key_of_that_name(daemon, required, folder, key, queue, client, ran):
    """A task that was signed with another key is refused, whatever key it names."""
    daemon(required).wait_ready()
    other = folder / 'other'
    other.mkdir()
    client.xadd('emails', Key(other, key.name).sign({'command': ran.command}))
    [letter] = wait_letters(queue)
    assert 'does not match' in letter.reason and ran.lines() == []


# ---- replays

def test_a_replay_never_runs(daemon, required, key, queue, client, ran):
    """The same signature never runs again, by whichever path and on whichever worker, also after restarts of
    worker and Redis."""
    one, two = daemon(required).wait_ready(), daemon(required).wait_ready()
    signed = key.sign({'command': ran.command, 'SIZE': 1})
    first = client.xadd('emails', signed).decode()
    wait_succeeded(queue, 1)
    for _ in range(8):
        client.xadd('emails', signed)
    queue.add(signed, due='+50')
    found = wait_letters(queue, 9)
    assert {letter.cause for letter in found} == {'refused'}
    assert {letter.reason for letter in found} == {f'replayed: it has the signature of task {first}'}
    for worker in (one, two):
        worker.terminate()
        assert worker.wait_exit() == 0
    daemon(required).wait_ready()
    client.xadd('emails', signed)
    wait_letters(queue, 10)
    assert ran.lines() == ['1'] and queue.counter('succeeded') == 1


def test_one_of_many_copies_runs(daemon, required, key, queue, client, ran):
    """If two workers get a hundred copies at once, exactly one runs."""
    workers = [daemon(dict(required, queue={'concurrency': 16})) for _ in range(2)]
    signed = key.sign({'command': ran.command, 'SIZE': 1})
    pipe = client.pipeline()
    for _ in range(100):
        pipe.xadd('emails', signed)
    pipe.execute()
    for worker in workers:
        worker.wait_ready()
    wait_letters(queue, 99)
    wait_succeeded(queue, 1)
    assert ran.lines() == ['1']


def test_a_copy_does_not_replace_a_waiting_task(daemon, required, key, queue, client, ran):
    """A copy cannot get the id of the waiting task, and with another id it does not pass for that task."""
    daemon(required).wait_ready()
    signed = key.sign({'command': ran.command + '; exit 1', 'SIZE': 1, 'max_attempts': 9})
    [tid] = queue.add(signed, due='+1')
    wait_until(lambda: ran.lines() == ['1'])
    with pytest.raises(redis.ResponseError, match='Invalid stream ID'):
        client.xadd('emails', signed, id=tid)
    client.xadd('emails', signed, id=tid.replace('-9', '-1'))
    [letter] = wait_letters(queue)
    assert letter.cause == 'refused' and f'signature of task {tid}' in letter.reason
    queue.call('cancel', queue.group, '1', tid, '')
    wait_until(lambda: queue.counter('cancelled') == 1 or len(ran.lines()) == 9)


def test_chosen_ids_stop_no_signed_task(daemon, required, key, queue, client, ran):
    """After an unsigned task with an id of the form that leat once gave, from a producer without a key, signed
    tasks run, each once, also if the worker that had read their entries was lost."""
    client.xadd('emails', {'command': 'true'}, id='9999999999999-1000000000')
    signed = key.sign({'command': ran.command, 'SIZE': 1})
    client.xadd('emails', signed)
    client.xadd('emails', signed)
    client.xgroup_create('emails', queue.group, '0', mkstream=True)
    client.xreadgroup(queue.group, 'lost', {'emails': '>'})
    daemon(dict(required, queue={'lease': '4s', 'scan': '200ms'})).wait_ready()
    found = wait_letters(queue, 2)
    assert sorted(letter.cause for letter in found) == ['refused', 'refused']
    wait_succeeded(queue, 1)
    assert ran.lines() == ['1']
    client.xadd('emails', key.sign({'command': ran.command, 'SIZE': 2}))
    wait_succeeded(queue, 2)


def test_retries_are_no_replays(daemon, required, key, queue, folder):
    """A failed task is retried under its signature, and so is one whose worker was lost."""
    worker = daemon(dict(required, queue={'lease': '20s', 'scan': '200ms'}), start=False).start().wait_ready()
    queue.add(key.sign({'command': f'echo >> {folder}/tries; test $LEAT_ATTEMPT = 3'}))
    wait_succeeded(queue, 1)
    assert (folder / 'tries').read_text() == '\n' * 3
    lost = f'echo >> {folder}/lost; test $(wc -l < {folder}/lost) = 2 || exec tail -f /dev/null'
    queue.add(key.sign({'command': lost}))
    wait_file(folder / 'lost')
    worker.kill9()
    worker.start().wait_ready()
    wait_succeeded(queue, 2)
    assert letters(queue) == []


def test_a_dead_letter_can_be_retried_until_not_after(daemon, leat, required, key, queue, folder):
    """leat dead retry works up to not_after; later the task becomes a dead letter again with that reason."""
    daemon(required).wait_ready()
    good = key.sign({'command': f'test -e {folder}/fixed', 'max_attempts': 1})
    short = key.sign({'command': f'test -e {folder}/fixed', 'max_attempts': 1}, valid=3)
    queue.add(good, short)
    wait_letters(queue, 2)
    (folder / 'fixed').touch()
    wait_until(lambda: time.time() > int(short['not_after']))
    done = leat('dead', 'retry', '--all', '--yes')
    assert done.returncode == 0, done.stderr
    wait_until(lambda: queue.counter('succeeded') == 1)
    [letter] = wait_letters(queue)
    assert letter.cause == 'refused' and 'expired at' in letter.reason


# how long a task can wait after its claim, and before its command starts
WAITS = {
    'done-check': {'task': {'check': 'sleep 4; exit 1', 'check_after': 'timeout', 'timeout': '300ms'}},
    'batch_wait': {'queue': {'lease': '60s'}, 'task': {'batch': 10, 'batch_wait': '5s'}},
    'halves': {'queue': {'lease': '60s'}, 'task': {'batch': 4, 'batch_wait': '500ms'}},
}


@pytest.mark.parametrize('wait', WAITS)
def test_nothing_starts_after_not_after(daemon, required, key, queue, folder, wait):
    """A task whose signature expires between its claim and its start is refused: while its check runs, while its
    batch waits for more tasks, or while other halves of its batch run."""
    end = {'done-check': 'sleep 60', 'batch_wait': 'true', 'halves': 'sleep 4; exit 7'}[wait]
    sections = {**required, **WAITS[wait]}
    sections['task'] = {**sections['task'], 'command': f'date +%s.%N >> {folder}/starts; {end}'}
    daemon(sections).wait_ready()
    tasks = [key.sign({'payload': str(number)}, valid=3) for number in range(4 if wait == 'halves' else 1)]
    queue.add(*tasks)
    found = wait_letters(queue, len(tasks))
    starts = (folder / 'starts').read_text().split() if wait != 'batch_wait' else []
    assert (folder / 'starts').exists() == (wait != 'batch_wait') and len(starts) < 2
    assert all(float(start) < int(tasks[-1]['not_after']) for start in starts)
    assert {(letter.cause, letter.reason) for letter in found} == {
        ('refused', 'its signature expired before it could start')}


def test_used_signatures_are_kept_until_not_after(queue, client):
    """Used signatures are removed some time after their not_after, a few with each call, and kept until then."""
    keys = ['{emails}:seen', '{emails}:seen_until']
    now = int(time.time() * 1000)

    def once(*tasks):
        args = [part for task in tasks for part in task]
        return [answer.decode() for answer in client.execute_command('FCALL', 'leat_once', 2, *keys, *args)[1:]]
    assert once(('s1-0', '1-0', b'\0a', now + 60000), ('s2-0', '2-0', b'\0a', now + 60000),
                ('g3-0', '1-0', b'\0a', now + 60000), ('s4-0', '4-0', 'b', now - 1000),
                ('s6-0', '6-0', 'd', now + 367 * 86400000)) == ['ok', 'seen 1-0', 'ok', 'late', 'far']
    assert client.hgetall(keys[0]) == {b'\0a': b'1-0'} and client.zcard(keys[1]) == 1
    for i in range(10):
        client.hset(keys[0], f'old{i}', '9-9')
        client.zadd(keys[1], {f'old{i}': now - 601000})
    client.hset(keys[0], 'kept', '9-9')
    client.zadd(keys[1], {'kept': now - 300000})
    for i in range(5):
        once((f's{i}-9', f'{i}-9', f'new{i}', now + 60000))
    assert client.hlen(keys[0]) == client.zcard(keys[1]) == 7


# ---- keys

def test_rotation(daemon, required, key, folder, queue, client, ran):
    """Several keys are valid at once; a reload adds a new key and removes an old one."""
    new = Key(folder, '2026b')
    worker = daemon(required).wait_ready()
    client.xadd('emails', new.sign({'command': ran.command, 'SIZE': 'early'}))
    [letter] = wait_letters(queue)
    assert 'the key 2026b, which this worker does not have' in letter.reason

    def use(entries, count):
        text = worker.config_path.read_text().splitlines()
        text = [f'key_files = {entries}' if line.startswith('key_files') else line for line in text]
        worker.config_path.write_text('\n'.join(text) + '\n')
        worker.reload()
        wait_until(lambda: worker.log().count('configuration reloaded') == count)

    use(f'{new.entry} {key.entry}', 1)
    queue.add(key.sign({'command': ran.command, 'SIZE': 'old'}), new.sign({'command': ran.command, 'SIZE': 'new'}))
    wait_succeeded(queue, 2)
    use(new.entry, 2)
    client.xadd('emails', key.sign({'command': ran.command, 'SIZE': 'late'}))
    wait_letters(queue, 2)
    assert sorted(ran.lines()) == ['new', 'old']


def broken_keys(folder, key):
    short, open_to_all, shared = Key(folder, 'short'), Key(folder, 'open'), Key(folder, 'shared')
    short.path.write_text('x' * 31)
    open_to_all.path.chmod(0o644)
    shared.path.chmod(0o620)
    return {
        'missing': (f'a:{folder}/none', 'No such file'),
        'short': (short.entry, '31 bytes'),
        'open': (open_to_all.entry, 'is accessible to all users'),
        'shared': (shared.entry, 'is writable by its group'),
        'folder': (f'a:{folder}', 'not a regular file'),
        'relative': ('a:key', 'absolute path'),
        'no name': (f':{key.path}', 'name of a key'),
        'file only': (f'{key.path}', 'is not NAME:FILE'),
        'twice': (f'{key.entry} {key.name}:/x', 'name of another key'),
    }


@pytest.mark.parametrize('name', ['missing', 'short', 'open', 'shared', 'folder', 'relative', 'no name',
                                  'file only', 'twice'])
def test_an_unreadable_key_stops_the_start(daemon, folder, key, queue, client, ran, name):
    """The daemon does not start, and names the wrong line; at a reload the current keys stay."""
    entry, reason = broken_keys(folder, key)[name]
    client.xadd('emails', {'command': ran.command})
    worker = daemon({'security': {'signatures': 'required', 'key_files': entry}})
    assert worker.wait_exit() == 78
    assert worker.log().count(reason) == 1 and f'{worker.config_path.name}:' in worker.log()
    good = daemon({'security': {'signatures': 'required', 'key_files': key.entry}}).wait_ready()
    wait_letters(queue)
    good.config_path.write_text(good.config_path.read_text().replace(key.entry, entry))
    good.reload()
    good.wait_log('the running one stays')
    queue.add(key.sign({'command': ran.command, 'SIZE': 1}))
    wait_succeeded(queue, 1)
    assert ran.lines() == ['1']


def test_credentials(daemon, folder, key, queue, ran):
    """A key can be a systemd credential, under its own name or another."""
    other = Key(folder, '2026b')
    (folder / 'credentials').mkdir()
    (folder / 'credentials/2026a').write_text(key.secret)
    (folder / 'credentials/file').write_text(other.secret)
    daemon({'security': {'signatures': 'required', 'key_credentials': '2026a 2026b:file'}},
           env={'CREDENTIALS_DIRECTORY': str(folder / 'credentials')}).wait_ready()
    queue.add(key.sign({'command': ran.command, 'SIZE': 1}), other.sign({'command': ran.command, 'SIZE': 2}))
    wait_succeeded(queue, 2)


@pytest.mark.parametrize('sections, reason', [
    ({'security': {'signatures': 'required'}}, 'there is no key'),
    ({'security': {'signatures': 'required', 'key_files': 'a:/k'}, 'task': {'command': 'true'},
      'intake': {'lists': 'jobs'}}, 'items of lists are not signed'),
    ({'security': {'signatures': 'required', 'key_files': 'a:/k', 'key_credentials': 'a'}},
     'is also in key_files'),
    ({'security': {'signatures': 'yes'}}, 'signatures'),
])
def test_contradictions(daemon, sections, reason):
    """Contradictory settings are an error of the configuration."""
    worker = daemon(sections)
    assert worker.wait_exit() == 78
    assert reason in worker.log()


def test_off(daemon, key, queue, client, ran):
    """Without signatures = required no signature is checked, so that producers can start first."""
    daemon({'security': {'key_files': key.entry}}).wait_ready()
    client.xadd('emails', {'command': ran.command, 'SIZE': 1, 'signature': 'x', 'not_after': 'y'})
    queue.add(key.sign({'command': ran.command, 'SIZE': 2}))
    wait_succeeded(queue, 2)
    assert client.exists('{emails}:seen') == 0


# ---- faults

def test_broken_connections(daemon, required, key, redis_server, proxy, through_proxy, queue, ran):
    """If connections break at any moment, every signed task runs once, and none counts as a replay."""
    worker = daemon(dict(required, **through_proxy)).wait_ready()
    for i in range(5):
        queue.add(*[key.sign({'command': ran.command, 'SIZE': f'{i}-{j}'}) for j in range(20)])
        proxy.cut()
    wait_until(lambda: queue.counter('succeeded') == 100, 60, lambda: worker.log())
    assert letters(queue) == []
    assert len(set(ran.lines())) == 100


def test_a_lost_reply(daemon, required, key, proxy, through_proxy, queue, ran):
    """If Redis has recorded the signature and the reply is lost, the task does not count as a replay of
    itself."""
    daemon(dict(required, **through_proxy)).wait_ready()
    trap = proxy.trap('leat_once')
    queue.add(key.sign({'command': ran.command, 'SIZE': 1}))
    trap.wait()
    wait_succeeded(queue, 1)
    assert ran.lines() == ['1'] and letters(queue) == []


def test_clocks_that_differ(daemon, required, key, queue, client, ran):
    """A worker whose clock is far ahead refuses no task that is valid by Redis's clock, and runs none either."""
    source, first = LIBRARY.read_text(), '  local q = open(keys, 2)\n'
    queue.load(source.replace(first, f'{first}  q.now = q.now - 7200000\n'))
    worker = daemon(required).wait_ready()
    tid = client.xadd('emails', key.sign({'command': ran.command}, valid=-600)).decode()
    worker.wait_log('its clock is ahead: a signature has expired here, but not on Redis')
    assert letters(queue) == [] and tid in queue.places() and ran.lines() == []
    queue.load()
    [letter] = wait_letters(queue)
    assert 'expired at' in letter.reason and ran.lines() == []
    # less than a minute: the signature has expired
    queue.load(source.replace(first, f'{first}  q.now = q.now - 30000\n'))
    client.xadd('emails', key.sign({'command': ran.command}, valid=-5))
    wait_letters(queue, 2)
    assert ran.lines() == []


@pytest.mark.parametrize('answer, reason', [("return 'late'", 'expired at 20'), ("return 'perhaps'", None)])
def test_the_reply_of_redis_counts(daemon, required, key, queue, client, ran, answer, reason):
    """A task that has expired by Redis's clock alone is refused; after an unknown reply nothing runs."""
    source = LIBRARY.read_text()
    begin = 'local function judge_mark(q, tid, mark, until_ms)\n'
    queue.load(source.replace(begin, f'{begin}  if q.now > 0 then {answer} end\n'))
    worker = daemon(required).wait_ready()
    client.xadd('emails', key.sign({'command': ran.command}))
    if reason:
        [letter] = wait_letters(queue)
        assert letter.cause == 'refused' and reason in letter.reason
    else:
        worker.wait_log('unexpected reply')
        queue.load()
        wait_succeeded(queue, 1)
    assert len(ran.lines()) == (0 if reason else 1)


def test_batches(daemon, required, key, queue, client, folder):
    """A task without a valid signature is left out of its batch."""
    sections = dict(required, task={'command': f'cat >> {folder}/out', 'batch': 10, 'batch_wait': '1s'})
    for i in range(10):
        fields = {'payload': f'line {i}'}
        client.xadd('emails', fields if i % 2 else key.sign(fields))
    client.xadd('emails', dict(key.sign({'payload': 'x'}), payload='line 11'))
    daemon(sections).wait_ready()
    wait_letters(queue, 6)
    wait_succeeded(queue, 5)
    assert (folder / 'out').read_text().splitlines() == [f'line {i}' for i in range(0, 10, 2)]


def test_a_large_task(daemon, required, key, queue, folder):
    """Payloads of any size and hundreds of fields are covered by the signature."""
    # on a busy machine Redis may take seconds for such a task
    patient = {'redis': {'command_timeout': '2m'}, 'queue': {'lease': '15m'}}
    daemon({**required, **patient}).wait_ready()
    payload = bytes(range(256)) * 65536
    fields = {f'F{i}': 'x' * 100 for i in range(900)}
    queue.add(key.sign({'command': f'wc -c > {folder}/out', 'payload': payload, **fields}))
    wait_succeeded(queue, 1, 120)
    assert (folder / 'out').read_text().strip() == str(len(payload))
    queue.add(dict(key.sign({'command': 'true', 'payload': payload, **fields}), payload=payload[:-1] + b'x'))
    assert 'does not match' in wait_letters(queue, 1, 120)[0].reason


def test_a_task_that_is_cancelled_during_the_check(daemon, required, key, proxy, through_proxy, queue, ran):
    """The task does not run, and the worker goes on."""
    daemon(dict(required, **through_proxy)).wait_ready()
    trap = proxy.trap('leat_once', action='hold')
    [tid] = queue.add(key.sign({'command': ran.command, 'SIZE': 1}))
    trap.wait()
    assert queue.call('cancel', queue.group, '1', tid, '')[0].startswith(b'asked')
    trap.release()
    wait_until(lambda: queue.counter('cancelled') + queue.counter('succeeded') == 1)
    queue.add(key.sign({'command': ran.command, 'SIZE': 2}))
    wait_until(lambda: '2' in ran.lines())


def test_a_stopping_worker_requeues(daemon, required, key, queue, client, ran):
    """If the record of used signatures is damaged, a worker runs nothing and stops cleanly; after the repair
    all tasks run."""
    client.set('{emails}:seen', 'damaged')
    worker = daemon(required).wait_ready()
    queue.add(key.sign({'command': ran.command, 'SIZE': 1}))
    worker.wait_log('signatures')
    worker.signal(signal.SIGTERM)
    assert worker.wait_exit() == 0
    assert ran.lines() == []
    client.delete('{emails}:seen')
    daemon(required).wait_ready()
    wait_succeeded(queue, 1)
    assert Queue(client).counter('succeeded') == 1
