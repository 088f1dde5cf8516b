"""What leat-board tells about queues is what leat tells, bytes of tasks included, and costs Redis little."""
import json
import re
from pathlib import Path

import pytest

from harness.daemon import write_config
from harness.functions.history import record
from harness.polling import wait_until
from harness.servers.acl import acl_text

VOLATILE = {'now_ms', 'rate', 'failure_rate', 'rate_over_ms'}
HOSTILE = ['<script>alert(1)</script>', '"\'&<>', '\u202eevil', '\x1b[2J', '\U0001f600', b'\xff\xfe\x80',
           '</td><td>', '\\', 'é' * 90]


@pytest.fixture
def busy(queue):
    """A queue that has tasks in every state, and a lost worker."""
    queue.register('w1:1:a', heartbeat='{"host":"w1","pid":1,"slots":4,"capacity":4,"state":"running"}')
    for outcome, command in (('retry', 'exit 3'), ('dead', 'exit 4'), (None, 'sleep 9')):
        queue.add({'command': command})
        [task] = queue.begin('w1:1:a', 1)
        if outcome:
            queue.finish('w1:1:a', task, outcome, cause='exit', status='3', reason='exit 3', delay=3600000,
                         stderr='why')
    queue.add({'command': 'a', 'lane': 'x'}, {'command': 'b', 'lane': 'y', 'id': 'order-17'},
              {'command': 'ready'})
    queue.add({'command': 'later'}, due='+3600000')
    return queue


def settled(status):
    """Without what changes from moment to moment."""
    figures = {name: value for name, value in status['figures'].items() if name != 'oldest_ready_ms'}
    return {**{name: value for name, value in status.items() if name not in VOLATILE}, 'figures': figures}


def test_the_status_is_that_of_leat_status(board, busy, leat):
    """The status of one queue and of all is what leat status --json prints, member by member."""
    board.start()
    theirs = json.loads(leat('status', '--json').stdout)
    mine = board.get('queue', queue='emails')
    [one] = board.get('queues')
    assert settled(mine['status']) == settled(theirs) == settled(one['status'])
    assert mine['state'] == one['state'] == 'healthy' and mine['age_ms'] >= 0 and mine['reason'] == ''
    figures = mine['status']['figures']
    assert {name: figures[name] for name in ('ready', 'running', 'delayed', 'retrying', 'dead')} == \
        {'ready': 3, 'running': 1, 'delayed': 1, 'retrying': 1, 'dead': 1}


def test_the_lists_are_those_of_leat_list(board, busy, leat):
    """Running, ready and delayed tasks and dead letters are rows as of leat list --json, and lanes those of leat
    status --lanes --json."""
    board.start()
    mine = board.get('queue', queue='emails')
    for name, states in (('running', ['running']), ('ready', ['ready']), ('delayed', ['delayed', 'retrying']),
                         ('dead', ['dead'])):
        rows = [row for state in states for row in json.loads(leat('list', '--state', state, '--json').stdout)]
        assert sorted(mine[name], key=lambda row: row['tid']) == sorted(rows, key=lambda row: row['tid']), name
    assert mine['lanes'] == json.loads(leat('status', '--lanes', '--json').stdout)['lanes']
    assert mine['lanes_whole'] is True


def test_the_newest_dead_letters_come_first(board, queue):
    """The page has the newest 12 of many dead letters, the newest one first."""
    queue.register('w1')
    queue.add(*[{'command': f'false {i}'} for i in range(40)])
    for task in queue.begin('w1', 40):
        queue.finish('w1', task, 'dead', cause='exit', status='1', reason='exit 1')
    board.start()
    dead = board.get('queue', queue='emails')['dead']
    ids = [tuple(map(int, row['dead_id'].split('-'))) for row in dead]
    assert len(dead) == 12 and ids == sorted(ids, reverse=True)


@pytest.fixture
def end(queue):
    """A function that notes the end of a task with these members, as a worker does."""
    queue.register('w1', history=1000)

    def note(**members):
        queue.add({'command': members.get('command', 'true')})
        [task] = queue.begin('w1', 1)
        assert queue.finish('w1', task, history=record(task.tid, **members)) == 'ok'
        return task.tid
    return note


def shown_ends(board):
    return board.get('queue', queue='emails')['ended']


def test_tasks_that_ended_last(board, queue, end, leat):
    """The page has the 20 tasks that ended last, the newest one first, as leat list --state done --json has them,
    with a text for people."""
    tids = [end(command=f'true {i}', duration_us='1500000', lane='a', id=f'order-{i}') for i in range(24)]
    for cause, status, text in (('exit', '3', 'exit 3'), ('timeout', '', 'timeout'),
                                ('killed', 'killed SIGKILL', 'killed SIGKILL')):
        queue.add({'command': 'false'})
        [task] = queue.begin('w1', 1)
        queue.finish('w1', task, 'dead', cause=cause, status=status, reason='why')
        tids.append((task.tid, 'dead: ' + text))
    board.start()
    mine = shown_ends(board)
    ends = [row.pop('end') for row in mine]
    assert mine == json.loads(leat('list', '--state', 'done', '--json').stdout) and len(mine) == 20
    assert [(row['tid'], text) for row, text in zip(mine[:3], ends)] == tids[:23:-1]
    assert [row['tid'] for row in mine[3:]] == tids[23:6:-1] and set(ends[3:]) == {'succeeded'}


def count_readings(client):
    return sum(b' done ' in entry['command'] for entry in client.slowlog_get(10000))


def test_ended_tasks_are_read_only_if_there_are_others(board, queue, end, client):
    """While no task ends, the list of ended tasks is not read again, however many look; a new end is shown."""
    first = end()
    board.start()
    assert [row['tid'] for row in shown_ends(board)] == [first]
    client.config_set('slowlog-max-len', 10000)
    client.config_set('slowlog-log-slower-than', 0)
    began_s = client.time()[0]
    while client.time()[0] < began_s + 4:
        assert shown_ends(board)
    readings, took_s = count_readings(client), client.time()[0] - began_s
    assert readings <= 1 + took_s // 30  # every 30 seconds it is read anyway: an age may have deleted some
    second = end()
    wait_until(lambda: [row['tid'] for row in shown_ends(board)] == [second, first])
    assert count_readings(client) > readings


def test_a_queue_without_history(board, queue):
    """Without a history, no task is shown as ended; the rest is."""
    queue.register('w1', history=0)
    queue.add({'command': 'true'})
    queue.finish('w1', queue.begin('w1', 1)[0])
    board.start()
    page = board.get('queue', queue='emails')
    assert page['ended'] == [] and page['status']['figures']['total_succeeded'] == 1


def test_search_of_ended_tasks(board, queue, end):
    """A search finds tasks by a part of their id, label, lane or command among the 200 that ended last."""
    for number in range(230):
        queue.redis.xadd(queue.history, {'r': record(
            f'17-{number}', command=f'job {number:03}', id=f'order-{number:03}', lane=f'client-{number % 2}')})
    board.start()
    assert board.get('queue', queue='emails')['status']  # it is connected now
    for text in ('job 150', 'order-150', '17-150'):
        answer = search(board, text)
        assert [(row['tid'], row['end']) for row in answer['tasks']] == [('17-150', 'succeeded')], text
        assert answer['looked_at'] == 200
    assert search(board, 'job 020')['tasks'] == [] and search(board, 'job 030')['tasks'] != []
    assert len(search(board, 'client-1')['tasks']) == 50


def test_one_task(board, busy, leat):
    """A task is as leat show --json has it, by its id, its label or its dead letter; an unknown one is {}. A
    long value is cut, and its size is told."""
    board.start()
    dead = board.get('queue', queue='emails')['dead'][0]
    for name in (dead['tid'], 'd' + dead['dead_id'], 'order-17'):
        assert board.get('task', queue='emails', id=name) == json.loads(leat('show', '--json', name).stdout), name
    assert board.get('task', queue='emails', id=dead['tid'])['stderr'] == 'why'
    assert board.get('task', queue='emails', id='nobody') == {}
    [tid] = busy.add({'command': 'x', 'payload': 'é' * 100000})
    [payload] = [one for one in board.get('task', queue='emails', id=tid)['fields'] if one['name'] == 'payload']
    assert payload == {'name': 'payload', 'value': 'é' * 4096, 'size': 200000}


def search(board, text):
    return board.get('search', queue='emails', text=text)


def test_search(board, busy):
    """A search finds tasks by a part of the command or id, and by label and lane, in all states; a second one at
    once has to wait."""
    board.start()
    assert board.get('queue', queue='emails')['status']  # it is connected now
    assert {row['state'] for row in search(board, 'exit')['tasks']} <= {'dead', 'retrying', 'ready', 'running'}
    [one] = search(board, 'order-17')['tasks']
    assert one['command'] == 'b' and one['lane'] == 'y'
    assert [row['command'] for row in search(board, 'later')['tasks']] == ['later']
    assert 'a' in [row['command'] for row in search(board, 'x')['tasks']]
    nothing = search(board, 'nosuchthing')
    assert nothing['tasks'] == [] and nothing['looked_at'] >= 5
    wait_until(lambda: board.request('/api/search?queue=emails&text=a').headers.get('retry-after') == '1')


def test_hostile_bytes(board, queue):
    """Bytes of tasks come as they are: text in JSON strings of ASCII, and other bytes as base64."""
    queue.register('w1')
    for number, text in enumerate(HOSTILE):
        queue.add({'command': text, 'lane': text, 'id': text, f'f{number}': text})
    board.start()
    answer = board.request('/api/queue?queue=emails')
    assert answer.status == 200 and answer.body.isascii() and answer.headers['content-type'] == 'application/json'
    page = answer.json()
    commands = [row.get('command', row.get('command_base64')) for row in page['ready']]
    assert '<script>alert(1)</script>' in commands and '\u202eevil' in commands and '\x1b[2J' in commands
    assert len(page['lanes']) >= len(HOSTILE) - 1  # the next task of one lane is in no lane
    for row in page['ready']:
        assert board.get('task', queue='emails', id=row['tid'])['tid'] == row['tid']


def test_questions_are_few(board, busy):
    """A client that asks for tasks as fast as it can is answered ten times a second at most."""
    board.start()
    board.get('queue', queue='emails')
    begin, end = busy.now(), 0
    answered = 0
    for _ in range(60):
        answered += board.request('/api/task?queue=emails&id=order-17').status == 200
        end = busy.now()
    assert 1 <= answered <= (end - begin) / 100 + 1


def test_hostile_settings(board, queue, client):
    """Settings and drained hosts have names of any bytes: the status shows them escaped."""
    queue.register(b'h\xff:1:a')
    client.hset(queue.conf, mapping={b'lane:\xff': b'\xfe', b'lane:' + b'x' * 200: b'\xfe', b'drain:\xfd': '1 me'})
    board.start()
    status = board.get('queue', queue='emails')['status']
    assert status['conf'][r'lane:\xff_base64'] == status['conf']['lane:' + 'x' * 200 + '_base64'] == '/g=='
    assert status['drained'] == [r'\xfd'] and status['workers'][0]['host'] == r'h\xff'


def test_a_queue_that_is_away(board, queue, redis_servers, folder):
    """A queue whose Redis is away, hangs, refuses, or has a wrong file is shown as that, and does not delay the
    others. When Redis is back, so is the queue."""
    hung = redis_servers()
    board.add('hung', {'socket': hung.socket}).add('gone', {'socket': str(folder / 'none.sock')})
    there = queue.redis.connection_pool.connection_kwargs['path']
    board.add('denied', {'socket': there, 'user': 'x', 'password': 'x'})
    (board.etc / 'wrong.ini').write_text('[queue]\nname = wrong\nlease = soon\n')
    board.start()
    wait_until(lambda: {one['queue']: one['state'] for one in board.get('queues')} == {
        'denied': 'denied', 'emails': 'unhealthy', 'gone': 'unreachable', 'hung': 'failed', 'wrong': 'invalid'},
        message=lambda: board.get('queues'))
    hung.client().ping()
    hung.stop()
    try:
        wait_until(lambda: {one['queue']: one['state'] for one in board.get('queues')}['hung'] == 'unreachable')
        states = {one['queue']: one for one in board.get('queues')}
        assert states['emails']['status'] and states['emails']['age_ms'] < 60000
        assert states['hung']['status'] is None and states['hung']['reason']
        assert board.get('queue', queue='hung')['status'] is None
        assert board.request('/api/task?queue=hung&id=1').status == 503
        assert 'lease' in states['wrong']['reason']
    finally:
        hung.cont()
    wait_until(lambda: {one['queue']: one['state'] for one in board.get('queues')}['hung'] == 'failed')


@pytest.mark.parametrize('question', ['/api/task?queue=wrong&id=1', '/api/search?queue=wrong&text=1'])
def test_questions_to_a_queue_with_a_wrong_file(board, queue, question):
    """A queue whose file has an error answers no question, and the board goes on."""
    (board.etc / 'wrong.ini').write_text('[queue]\nname = wrong\nlease = soon\n')
    board.start()
    assert board.request(question).status == 503
    assert board.request('/healthz').status == 200


def test_one_snapshot_for_all_who_look(board, busy, client):
    """However many look, Redis is asked once a second at most."""
    board.start()
    board.get('queue', queue='emails')
    client.execute_command('CONFIG', 'RESETSTAT')
    begin = client.time()
    for _ in range(40):
        assert board.get('queue', queue='emails')['status'] and board.get('queues')
    end = client.time()
    calls = client.info('commandstats').get('cmdstat_fcall_ro', {'calls': 0})['calls']
    seconds = end[0] - begin[0] + (end[1] - begin[1]) / 1e6
    # one more for a question that Redis was late to answer
    assert calls <= 9 * (seconds + 2)


def test_a_costly_queue_is_asked_less(board, busy, client):
    """The longer Redis takes to answer, the less often it is asked: a list that is long to read is not read each
    second."""
    busy.add(*[{'command': 'true', 'payload': 'x' * 30000}] * 100, due='+3600000')
    board.start()
    board.get('queue', queue='emails')
    begin, seconds = client.time(), 0
    reads = client.info('commandstats')['cmdstat_fcall_ro']['calls']
    while seconds < 6:
        assert board.get('queue', queue='emails')['status']
        end = client.time()
        seconds = end[0] - begin[0] + (end[1] - begin[1]) / 1e6
    reads = client.info('commandstats')['cmdstat_fcall_ro']['calls'] - reads
    assert reads <= 5 * seconds  # of 8 functions each second, 6 are lists, which were read twice


def test_the_rings(board, busy):
    """The last hour and day come as 360 points each, the newest one at the end; what was not seen is null."""
    board.start()
    wait_until(lambda: any(one is not None for one in board.get('series', queue='emails')['ready']))
    hour, day = board.get('series', queue='emails'), board.get('series', queue='emails', span='day')
    assert hour['step_ms'] * 360 == 3600000 and day['step_ms'] * 360 == 86400000
    for ring in (hour, day):
        assert {len(values) for values in ring.values() if isinstance(values, list)} == {360}
        assert [ring[name][-1] for name in ('ready', 'dead', 'delayed')] == [3, 1, 2] and ring['ready'][0] is None


def metrics(board, accept='text/plain'):
    """The lines of samples, but of what changes from moment to moment; and the type."""
    answer = board.request('/metrics', headers=[f'Accept: {accept}'])
    assert answer.status == 200, answer.data
    lines = answer.body.decode().splitlines()
    return [line for line in lines if line[0] != '#' and 'oldest' not in line], answer.headers['content-type']


def test_metrics(board, busy, leat, folder):
    """Prometheus gets what leat metrics prints, for all queues, in the format that it asks for, with the token
    only. A queue that cannot be read has leat_up 0."""
    board.add('gone', {'socket': str(folder / 'none.sock')}).start()
    wait_until(lambda: board.get('queue', queue='emails').get('lanes_whole'))
    theirs = [line for line in leat('metrics').stdout.splitlines() if line[0] != '#' and 'oldest' not in line]
    mine, kind = metrics(board, 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5')
    assert set(mine) - set(theirs) == {'leat_up{queue="gone"} 0'} and set(theirs) <= set(mine)
    assert kind == 'application/openmetrics-text; version=1.0.0; charset=utf-8'
    mine, kind = metrics(board)
    assert set(theirs) <= set(mine) and kind == 'text/plain; version=0.0.4; charset=utf-8'
    answer = board.request('/metrics', token=False)
    assert answer.status == 401 and b'emails' not in answer.body


def test_the_user_of_the_board(board, busy, client, redis_server):
    """The user of conf/leat.acl suffices for all that the board does, and can write nothing."""
    for line in acl_text().splitlines():
        if line.startswith('user emails-board '):
            client.execute_command('ACL', 'SETUSER', *re.findall(r'\([^)]*\)|\S+', line)[1:])
    client.execute_command('ACL', 'LOG', 'RESET')
    write_config(Path(board.etc) / 'emails.ini', {
        'redis': {'socket': redis_server.socket, 'user': 'emails-board', 'password': 'board'},
        'queue': {'name': 'emails'}})
    board.start()
    page = board.get('queue', queue='emails')
    lists = [page[name] for name in ('running', 'ready', 'delayed', 'dead', 'lanes')]
    assert page['state'] == 'healthy' and None not in lists
    assert page['status']['workers'][0]['running'] == 1
    assert board.get('task', queue='emails', id='order-17')['lane'] == 'y'
    assert search(board, 'exit')['tasks']
    assert client.execute_command('ACL', 'LOG') == []
