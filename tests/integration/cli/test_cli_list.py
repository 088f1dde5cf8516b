"""leat list and leat show."""
import base64
import json
import re

import pytest

from harness.functions.doctor import Doctor
from harness.functions.history import record
from harness.polling import wait_until

NOT_FOUND = 1


def fill(queue):
    """Adds a task in every state. Returns their tids."""
    queue.register('web1:12:n')
    retrying, dead, running = queue.add({'command': 'try'}, {'command': 'die'}, {'command': 'run'})
    tasks = {task.tid: task for task in queue.begin('web1:12:n', 3)}
    queue.finish('web1:12:n', tasks[retrying], 'retry', cause='exit', status='3', delay=60000)
    queue.finish('web1:12:n', tasks[dead], 'dead', cause='signal', status='SIGKILL',
                 reason='ended by SIGKILL', stdout=b'out\xff', stderr='first\nlast\n')
    [delayed] = queue.add({'command': 'later'}, due='+60000')
    ready = queue.redis.execute_command('XADD', 'emails', '*', 'command', 'make thumbs').decode()
    return {'retrying': retrying, 'dead': dead, 'running': running, 'delayed': delayed,
            'ready': ready}


def test_every_state(leat, queue):
    """leat list shows all states, or one; a plain XADD is among them."""
    tids = fill(queue)
    rows = json.loads(leat('list', '--json').stdout)
    assert {row['state']: row['tid'] for row in rows} == tids
    for state, tid in tids.items():
        [row] = json.loads(leat('list', '--json', '--state', state).stdout)
        assert row['tid'] == tid
    text = leat('list').stdout
    assert all(tid in text for tid in tids.values())
    assert 'web1:12' in text and 'signal SIGKILL' in text and re.search('due in (1m|5[0-9]s|4[0-9]s)', text)
    assert 'make thumbs' in leat('list', '--state', 'ready').stdout


def test_a_follow_up(leat, queue):
    """A task that waits for the holder of its unique key is listed as delayed, as in leat status."""
    queue.register('w1:1:a')
    queue.add({'command': 'first', 'unique': 'k'})
    queue.begin('w1:1:a')
    [tid] = queue.add({'command': 'again', 'unique': 'k', 'unique_next': '1'})
    [row] = json.loads(leat('list', '--json', '--state', 'delayed').stdout)
    assert (row['tid'], row['state'], row['unique']) == (tid, 'following', 'k')
    for text in (leat('list').stdout, leat('list', '--state', 'delayed').stdout):
        assert re.search(f'{tid} +delayed .* follows k +again', text), text
    assert leat('list', '--state', 'retrying').stdout == 'no tasks\n'
    assert tid in leat('list', '--limit', '1').stdout


def test_labels_fields_and_payloads(leat, queue):
    """Label, fields and the beginning of the payload are listed, in the text and in JSON; options are not."""
    for state, options in (('ready', {}), ('delayed', {'due': '+60000'})):
        queue.add({'command': 'resize', 'id': f'order-{state}', 'width': '100', 'timeout': '9',
                   'payload': 'grün ' + 'x' * 500}, {'payload': '{"a": 1}'}, **options)
        text = leat('list', '--state', state, env={'LC_ALL': 'C.UTF-8'}).stdout
        assert re.search(rf' order-{state} .* resize  width=100  < grün x{{194}}$', text, re.M)
        assert re.search('^ID +LABEL +STATE ', text)
        assert re.search(r' < {"a": 1}$', text, re.M)
        first, second = json.loads(leat('list', '--json', '--state', state).stdout)
        assert first['id'] == f'order-{state}' and len(first['payload_start'].encode()) == 200
        assert {'name': 'width', 'value': '100'} in first['fields_start']
        assert (second['payload_start'], second['fields_start']) == ('{"a": 1}', [])


def test_no_label(leat, queue):
    """Without labels there is no column for them."""
    queue.add({'command': 'true'})
    assert 'LABEL' not in leat('list').stdout


def test_attempts_are_counted_alike(leat, queue):
    """The table, JSON and leat show count the attempts that have started, the running one too."""
    queue.register('w1:1:a')
    [tid] = queue.add({'command': 'x'})
    for attempt in (1, 2):
        [task] = queue.begin('w1:1:a')
        [row] = json.loads(leat('list', '--json').stdout)
        assert (row['attempts'], json.loads(leat('show', '--json', tid).stdout)['attempts']) == (attempt, attempt)
        assert re.search(rf' running +\S+ +{attempt} +w1:1 ', leat('list').stdout)
        queue.finish('w1:1:a', task, 'retry', cause='exit', status='3', delay=0)


def test_running_tasks_come_in_the_order_in_which_they_became_ready(leat, queue):
    """Running tasks are listed in the order in which they became ready, over several pages, each one once."""
    queue.register('w1:1:a')
    tids = queue.add(*[{'command': f'echo {i}'} for i in range(1200)])
    tasks = []
    while len(tasks) < 1200:
        tasks += queue.begin('w1:1:a', 1200 - len(tasks))
    queue.finish('w1:1:a', tasks[3], 'release')
    queue.begin('w1:1:a')
    rows = json.loads(leat('list', '--json', '--state', 'running', '--limit', '0').stdout)
    assert [row['tid'] for row in rows] == tids[:3] + tids[4:] + tids[3:4]
    rows = json.loads(leat('list', '--json', '--state', 'running', '--limit', '5').stdout)
    assert [row['tid'] for row in rows] == tids[:3] + tids[4:6]


def test_pages_of_running_tasks_do_not_read_all_records(leat, queue):
    """The cost of a page does not grow with the number of running tasks: none of them reads all lease records."""
    def commands(name):
        return queue.redis.info('commandstats').get(f'cmdstat_{name}', {'calls': 0})['calls']

    queue.register('w1:1:a')
    queue.add(*[{'command': 'true'}] * 600)
    started = 0
    while started < 600:
        started += len(queue.begin('w1:1:a', 600 - started))
    before = commands('hgetall')
    assert len(queue.list('running')) == 600
    assert commands('hgetall') == before


def test_equal_ids_in_both_streams(leat, queue):
    """Two running tasks whose entries have the same id are both listed, if a page ends between them, too."""
    queue.register('w1:1:a')
    tid = queue.redis.xadd(queue.stream, {'command': 'first'}, id='1-1').decode()  # all others are later
    [task] = queue.begin('w1:1:a')
    queue.finish('w1:1:a', task, 'release')
    [again] = queue.begin('w1:1:a')
    queue.redis.xadd(queue.stream, {'command': 'second'}, id=again.token[1:])
    [second] = queue.begin('w1:1:a')
    for limit in (1, 2, 1000):
        assert [row['tid'].decode() for row in queue.list('running', limit=limit)] == [second.tid, tid]


def test_running_tasks_that_redis_has_forgotten(leat, queue):
    """A running task is listed if Redis has forgotten that a worker has read its entry, and only once if not."""
    queue.register('w1:1:a')
    tids = queue.add(*[{'command': f'echo {i}'} for i in range(5)])
    queue.begin('w1:1:a', 5)
    queue.redis.xgroup_destroy(queue.stream, queue.group)
    queue.redis.xgroup_create(queue.stream, queue.group, '0')
    assert sorted(row['tid'].decode() for row in queue.list('running')) == tids


def test_nothing(leat, queue):
    """An empty queue is no error, and prints an empty array as JSON."""
    assert leat('list').stdout == 'no tasks\n' and json.loads(leat('list', '--json').stdout) == []
    assert leat('dead', 'list').stdout == 'no dead letters\n'


def test_limit_and_paging(leat, queue):
    """Every task is listed once over many pages; the default limit stops early and says so."""
    tids = queue.add(*[{'command': f'echo {i}'} for i in range(1234)])
    later = queue.add(*[{'command': 'x'} for i in range(456)], due='+60000')
    rows = json.loads(leat('list', '--limit', '0', '--json').stdout)
    assert [row['tid'] for row in rows] == tids + later
    text = leat('list').stdout
    assert len(text.splitlines()) == 1 + 20 + 20 + 1 and 'only the first 20 of each state are shown' in text
    text = leat('list', '--limit', '1').stdout
    assert len(text.splitlines()) == 1 + 1 + 1 + 1 and 'only the first of each state is shown' in text


def test_hostile_bytes_are_escaped(leat, queue):
    """No control character of a task reaches the terminal; JSON keeps every byte."""
    command = b'echo \x1b]0;x\x07 \xff \xc2\x9b31m \xe2\x80\xae\n'
    [tid] = queue.add([('command', command), ('payload', b'\0\x1b[2J\xff'), ('id', b'\xfe')])
    for args in (['list'], ['show', tid]):
        for env in ({'LC_ALL': 'C.UTF-8'}, {'LC_ALL': 'C'}):
            out = leat(*args, env=env, input=b'').stdout
            assert all(byte >= 0x20 or byte == 0x0a for byte in out), out
            assert b'\xff' not in out and b'\xc2\x9b' not in out and b'\xe2\x80\xae' not in out
            assert b'\\x1b' in out
    [row] = json.loads(leat('list', '--json').stdout)
    assert base64.b64decode(row['command_base64']) == command
    shown = json.loads(leat('show', '--json', tid).stdout)
    assert base64.b64decode(shown['id_base64']) == b'\xfe'
    payload = [field for field in shown['fields'] if field['name'] == 'payload'][0]
    assert base64.b64decode(payload['value_base64']) == b'\0\x1b[2J\xff'


def test_utf8_is_shown_if_the_locale_has_it(leat, queue):
    """UTF-8 is printed in a UTF-8 locale and escaped in others; cutting a text splits no character."""
    queue.add({'command': 'echo grün 日本'}, {'command': 'x' * 199 + 'ü'})
    assert 'grün 日本' in leat('list', env={'LC_ALL': 'C.UTF-8'}).stdout
    assert 'gr\\xc3\\xbcn' in leat('list', env={'LC_ALL': 'C'}).stdout
    rows = json.loads(leat('list', '--json').stdout)
    assert rows[1]['command'] == 'x' * 199 and rows[1]['command_cut'] is True


def test_the_end_of_other_text_is_shown(leat, queue):
    """Latin-1 that was not cut keeps its last byte, although it could begin a character of UTF-8."""
    queue.add([('command', b'echo caf\xe9'), ('payload', b'\xc3'), ('DRINK', b'caf\xe9')])
    assert 'echo caf\\xe9  DRINK=caf\\xe9  < \\xc3\n' in leat('list').stdout
    [row] = json.loads(leat('list', '--json').stdout)
    assert base64.b64decode(row['payload_start_base64']) == b'\xc3'


def test_show_of_each_state(leat, queue):
    """show finds a task in every state by its id, and an existing one by its label."""
    for state, tid in fill(queue).items():
        shown = json.loads(leat('show', '--json', tid).stdout)
        assert (shown['tid'], shown['state']) == (tid, state)
        assert leat('show', tid).returncode == 0
    [tid] = queue.add({'command': 'true', 'id': 'order-17'})
    assert json.loads(leat('show', '--json', 'order-17').stdout)['tid'] == tid
    done = leat('show', '1-1')
    assert done.returncode == NOT_FOUND and 'no task 1-1' in done.stderr


def test_show_of_a_dead_letter(leat, queue):
    """Cause, history and the ends of the output are shown; the JSON has every byte."""
    tid = fill(queue)['dead']
    text = leat('show', tid).stdout
    for part in ('cause     signal', 'status    SIGKILL', 'end of stderr', '    | last',
                 'attempts that ended', 'web1:12:n', 'end of stdout (4 bytes, not text)'):
        assert part in text, text
    shown = json.loads(leat('show', '--json', tid).stdout)
    assert base64.b64decode(shown['stdout_base64']) == b'out\xff'
    [attempt] = shown['history']
    assert (attempt['attempt'], attempt['cause'], attempt['status']) == (1, 'signal', 'SIGKILL')
    assert 'begun' not in shown and shown['enqueued_ms'] <= shown['begun_ms'] <= shown['died_ms']
    letter = shown['dead_id']
    assert json.loads(leat('dead', 'show', '--json', tid).stdout) == shown
    assert json.loads(leat('dead', 'show', '--json', 'd' + letter).stdout) == shown


def test_no_dead_letter_in_place_of_a_task(leat, queue):
    """The id of a task that has succeeded may also be that of a dead letter's entry. It means no other task; with
    a 'd' before it, it means the dead letter."""
    queue.redis.execute_command('XADD', queue.dead, '5-5', 'command', 'other', 'leat.tid', '4-4', 'leat.cause',
                                'exit', 'leat.fields', '1')
    queue.redis.xadd(queue.stream, {'command': 'mine'}, id='5-5')
    queue.register('w1')
    [task] = queue.begin('w1')
    queue.finish('w1', task)
    for command, status in (('show', 1), ('explain', 2), ('wait', 1), ('logs', 1)):
        done = leat(command, '5-5')
        assert done.returncode == status and '4-4' not in done.stdout + done.stderr, (command, done)
    for command in ('show', 'explain'):
        assert '4-4' in leat(command, 'd5-5').stdout


def test_a_task_id_before_an_entry_id(leat, queue):
    """If a task's id is also the entry id of a dead letter, the task is shown."""
    first, letter = '4-4', '5-5'
    for entry, tid, command in ((letter, first, 'first'), ('6-6', letter, 'second')):
        queue.redis.execute_command('XADD', queue.dead, entry, 'command', command, 'leat.tid', tid,
                                    'leat.cause', 'exit', 'leat.fields', '1')
    queue.forget_index()
    for args in (['show'], ['dead', 'show']):
        done = leat(*args, '--json', letter)
        shown = json.loads(done.stdout)
        assert shown['fields'][0]['value'] == 'second'
    assert leat('dead', 'drop', letter).returncode == 0
    assert [fields['leat.tid'] for _, fields in queue.letters()] == [first.encode()]
    assert json.loads(leat('dead', 'show', '--json', 'd' + letter).stdout)['fields'][0]['value'] == 'first'
    assert leat('dead', 'drop', 'd' + letter).returncode == 0 and queue.letters() == []


def test_payload_alone(leat, queue):
    """--payload prints the bytes and nothing else."""
    data = bytes(range(256))
    tid, bare = queue.add([('command', 'x'), ('payload', data)], {'command': 'x'})
    assert leat('show', '--payload', tid, input=b'').stdout == data
    assert leat('show', '--payload', bare).returncode == NOT_FOUND


def test_payload_of_an_ended_task(leat, queue):
    """The history keeps no payload, and the message does not say that there is no such task."""
    queue.register('w1:1:a', history=1000)
    [tid] = queue.add({'command': 'x', 'payload': 'bytes'})
    assert queue.call_off(tid) == ['cancelled']
    shown = leat('show', '--payload', tid)
    assert (shown.returncode, shown.stdout) == (NOT_FOUND, '')
    assert shown.stderr == f'leat: task {tid} has ended, and the history keeps no payloads\n'


def test_a_label_like_a_month(leat, queue):
    """A label of digits and a hyphen, which is too short for an id that leat makes, finds its task after the end,
    too. So does an id of this form, which a producer has chosen."""
    queue.register('w1:1:a', history=1000)
    chosen = queue.redis.xadd(queue.stream, {'command': 'x'}, id='2026-10').decode()
    labelled, = queue.add({'command': 'x', 'id': '2026-11'})
    assert queue.call_off(chosen) == queue.call_off('2026-11') == ['cancelled']
    for name, tid in ((chosen, chosen), ('2026-11', labelled)):
        assert json.loads(leat('show', '--json', name).stdout)['tid'] == tid
        assert f'{tid}: cancelled\n' in leat('explain', name).stdout
    queue.redis.xadd(queue.history, {'r': record('2026-11')})
    assert json.loads(leat('show', '--json', '2026-11').stdout)['tid'] == '2026-11'


def test_an_id_ahead_of_the_clock(leat, queue):
    """A task that ended before the time in its id, as after a failover to a server whose clock is behind, is
    shown when that time has passed, too."""
    queue.register('w1:1:a', history=1000)
    tid = f'{queue.now() + 300}-0'
    queue.redis.xadd(queue.stream, {'command': 'x'}, id=tid)
    assert queue.call_off(tid) == ['cancelled']
    for _ in range(2):
        assert json.loads(leat('show', '--json', tid).stdout)['outcome'] == 'cancelled'
        wait_until(lambda: queue.now() > int(tid[:-2]))


def test_show_follows_the_cursor(leat, queue):
    """A task far back in the requeue stream is found, because the search goes page by page."""
    queue.register('w')
    queue.add(*[{'command': f'echo {i}'} for i in range(350)])
    tasks = []
    while len(tasks) < 350:
        tasks += queue.begin('w', 350 - len(tasks))
    for start in range(0, 350, 50):
        queue.finish_many('w', [queue.result(task.token, 'release') for task in
                                tasks[start:start + 50]])
    shown = json.loads(leat('show', '--json', tasks[-1].tid).stdout)
    assert shown['state'] == 'ready' and shown['fields'][0]['value'] == 'echo 349'


@pytest.mark.parametrize('last', ['1700000000000000000-1', '18446744073709551615-1',
                                  '1700000000000-18446744073709551000'])
def test_ids_of_a_producers_own(queue, leat, last):
    """Tasks whose entry ids are no times in ms, up to 64 bits, pass through lanes and show."""
    queue.register('w1')
    queue.conf_set('lane:a', '1, 1')
    queue.redis.xadd(queue.stream, {'command': 'true', 'lane': 'a'}, id=last)
    tids = [last] + [queue.redis.xadd(queue.stream, {'command': 'true', 'lane': 'a'}).decode()
                     for _ in range(3)]
    ran = []
    for _ in range(9):
        tasks = queue.begin('w1', 5)
        ran += [task.tid for task in tasks]
        assert all(task.enqueued < 10 ** 15 for task in tasks)
        assert Doctor(queue).look() == []
        assert leat('list').returncode == 0
        for task in tasks:
            assert queue.finish('w1', task) == 'ok'
    assert sorted(ran) == sorted(tids) and queue.places() == {}


@pytest.mark.parametrize('tid', ['99999999999999-7', '18446744073709551615-18446744073709551615'])
def test_the_age_of_an_id_in_the_future(queue, leat, tid):
    """A task whose id lies in the future has no age: leat does not know when it was enqueued."""
    queue.register('w1')
    queue.redis.xadd(queue.stream, {'command': 'true'}, id=tid)
    assert re.search(rf'^{tid} +ready +- +0 ', leat('list').stdout, re.M)
    assert 'enqueued  unknown: the time in the id is wrong\n' in leat('show', tid).stdout
    [task] = queue.begin('w1')
    assert re.search(rf'^{tid} +running +- +1 ', leat('list').stdout, re.M)
    assert queue.finish('w1', task, 'dead', cause='exit') == 'ok'
    assert re.search(rf'^{tid} +dead +- +1 ', leat('list').stdout, re.M)


def test_the_age_of_a_task_whose_entry_was_deleted(queue, leat):
    """With the entry, leat lost when the task was enqueued. It does not say that the id is wrong."""
    queue.register('w1')
    [tid] = queue.add({'command': 'true'})
    queue.begin('w1')
    queue.redis.xdel(queue.stream, tid)
    assert leat('doctor', '--repair').returncode
    assert 'cause     vanished\n' in leat('show', tid).stdout
    assert 'enqueued  unknown\n' in leat('show', tid).stdout
