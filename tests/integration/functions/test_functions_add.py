"""leat_add and leat_add_many: enqueue for programs, which pass one key."""
import json

import pytest
import redis

from harness.queue import Queue, pairs
from harness.servers import replicated

MAX_TASKS, MAX_JSON, MAX_FIELDS = 10000, 32 * 1024 * 1024, 1000


def dump(client):
    return {key: client.dump(key) for key in client.keys()}


@pytest.fixture
def refused(queue, client):
    """Returns a function that makes a call and expects an error that begins with these words and writes
    nothing."""
    def check(words, *args, many=False):
        before = dump(client)
        with pytest.raises(redis.ResponseError, match=f'^REFUSED {words}'):
            queue.program_add(*args, many=many)
        assert dump(client) == before
    return check


def add_json(queue, *tasks):
    return queue.program_add(json.dumps(tasks), many=True)


# ---- leat_add

def test_a_task_lands_in_the_stream_field_by_field(queue):
    """Fields keep their order and bytes, NUL included, and the task's id is the entry's id. The reply has no
    protocol number."""
    fields = ['command', 'cat', 'payload', b'\0\n\xff bytes', b'odd \0 name', b'']
    [(what, tid)] = queue.program_add(*fields)
    assert what == 'new'
    flat = [part if isinstance(part, bytes) else part.encode() for part in fields]
    assert queue.entries('stream') == [(tid, flat)]


def test_all_that_leat_enqueue_can(queue):
    """id, unique, unique_next and lane work as with leat_enqueue, and both leat_enqueue and a worker see the
    result."""
    queue.register('w1')
    [(_, tid)] = queue.program_add('command', 'a', 'id', 'x', 'unique', 'u', 'lane', 'l')
    assert queue.program_add('command', 'b', 'id', 'x') == [('exists', tid)]
    assert queue.program_add('unique', 'u', 'command', 'b') == queue.enqueue({'command': 'b', 'unique': 'u'})
    assert queue.enqueue({'command': 'b', 'unique': 'u'}) == [('exists', tid)]
    [task] = queue.begin('w1')
    assert (task.tid, task.fields['lane']) == (tid, b'l')
    [(what, following)] = queue.program_add('command', 'c', 'unique', 'u', 'unique_next', '1')
    assert what == 'new' and [row['tid'].decode() for row in queue.list('following')] == [following]
    queue.finish('w1', task)
    assert [task.tid for task in queue.begin('w1')] == [following]


@pytest.mark.parametrize('delay, ms', [
    ('30s', 30000), ('5m', 300000), ('1h30m', 5400000), ('90', 90000), ('1500ms', 1500), ('36524d', 3155673600000),
])
def test_delay(queue, delay, ms):
    """delay is a duration, and the task does not keep the field."""
    now = queue.now()
    [(_, tid)] = queue.program_add('command', 'a', 'delay', delay, 'SIZE', '1')
    assert 0 <= queue.redis.zscore(queue.delayed, tid) - now - ms < 5000
    assert queue.show(tid)['fields'] == [b'command', b'a', b'SIZE', b'1']


def test_at(queue):
    """at is a unix time in ms, and the task does not keep the field; fractions of a ms are dropped."""
    now = queue.now()
    for at in (now + 30000, f'{now + 30000}.75'):
        [(_, tid)] = queue.program_add('at', at, 'command', 'a')
        assert queue.redis.zscore(queue.delayed, tid) == now + 30000
        assert queue.show(tid)['fields'] == [b'command', b'a']


@pytest.mark.parametrize('name, value', [
    ('delay', ''), ('delay', '0'), ('delay', '0ms'), ('at', ''), ('at', '0'), ('at', 'now'), ('at', 'past'),
])
def test_due_at_once(queue, name, value):
    """The task is in the stream at once if its time is empty, 0, now or in the past."""
    at = {'now': queue.now(), 'past': queue.now() - 86400000}
    [(_, tid)] = queue.program_add('command', 'a', name, at.get(value, value))
    assert queue.entries('stream') == [(tid, [b'command', b'a'])]


@pytest.mark.parametrize('args, words', [
    ([], 'task 1: wrong number of fields; give 1 to 1000'),
    (['command'], 'task 1: field without a value: command; give'),
    (['command', 'a', 'x'], 'task 1: field without a value: x; give'),
    (['', ''] * 2, 'task 1: field given twice'),
    (['command', 'a', 'command', 'b'], 'task 1: field given twice: command'),
    (['command', 'a', 'delay', '1', 'delay', '1'], 'task 1: field given twice: delay'),
    (['command', 'a', 'at', '', 'at', ''], 'task 1: field given twice: at'),
    (['delay', '5s'], 'task 1: wrong number of fields; give 1 to 1000'),
    (['command', 'a', 'delay', '5s', 'at', '4000000000000'], 'task 1: delay and at: '),
    (['command', 'a', 'leat.tid', '1-1'], 'task 1: .*reserved'),
    (['command', 'a', 'result_ttl', 'soon'], 'task 1: result_ttl'),
    (['command', 'a', 'unique_for', '-1'], 'task 1: unique_for'),
    (['command', 'a', 'lane', 'l\0'], 'task 1: lane: longer than 200'),
    (['command', 'a', 'lane', 'l' * 201], 'task 1: lane: longer than 200'),
    (['command', 'a', 'delay', '5m', 'expires', '1'], 'task 1: it expires before it is due'),
    *[(['command', 'a', 'delay', delay], 'task 1: delay: not a duration: .*; give seconds, or')
      for delay in ('soon', '-1', '+5', '1.5', '5 m', '1s1h', 'nan', '1e3', '\0', '36526d', '9' * 400)],
    *[(['command', 'a', 'at', at], 'task 1: at: not a unix time in ms')
      for at in ('tomorrow', '-1', '+5', 'nan', 'inf', '1e13', '0x10', '\0', '9' * 400, '1769860800123456')],
    (['command', 'a', 'at', '1769860800'], 'task 1: at: a time in seconds: 1769860800; give it in ms'),
    ([part for i in range(1001) for part in (f'f{i}', 'x')], 'task 1: wrong number of fields; give 1 to 1000'),
])
def test_refused(refused, args, words):
    """A call that is not a task is refused with the field's name and what to do, and writes nothing."""
    refused(words, *args)


def test_a_thousand_fields(queue):
    """A task may have 1,000 fields; delay does not count."""
    fields = [part for i in range(1000) for part in (f'f{i}', 'x')]
    [(_, tid)] = queue.program_add(*fields, 'delay', '1h')
    assert len(queue.show(tid)['fields']) == 2000


@pytest.mark.parametrize('function', ['leat_add', 'leat_add_many'])
@pytest.mark.parametrize('keys', [[], ['emails', '{emails}:bell']])
def test_the_number_of_keys(queue, client, function, keys):
    """The functions take the stream alone: leat_enqueue's list of keys gets an error that says so."""
    with pytest.raises(redis.ResponseError, match='^BADARG expected 1 keys, got .; give the stream'):
        client.execute_command('FCALL', function, len(keys), *keys, 'command', 'a')
    assert not client.keys()


def test_the_length_limit(queue):
    """A call that would add a task to a full queue gets FULL; a task that exists already is answered."""
    queue.register('w1', max_length=2)
    [(_, tid)] = queue.program_add('command', 'a', 'id', 'x')
    before = queue.places()
    with pytest.raises(redis.ResponseError, match='^FULL the queue holds 1 tasks, its limit is 2'):
        add_json(queue, {'command': 'b'}, {'command': 'c'})
    assert queue.places() == before
    queue.program_add('command', 'b', 'delay', '1h')
    with pytest.raises(redis.ResponseError, match='^FULL'):
        queue.program_add('command', 'c')
    assert queue.program_add('command', 'a', 'id', 'x') == [('exists', tid)]


def test_without_memory(queue, client):
    """Redis refuses both functions if its memory is full, and nothing is written."""
    client.config_set('maxmemory', 1)
    try:
        for call in (lambda: queue.program_add('command', 'a'), lambda: add_json(queue, {'command': 'a'})):
            with pytest.raises(redis.exceptions.ResponseError, match='OOM|memory'):
                call()
    finally:
        client.config_set('maxmemory', 0)
    assert queue.places() == {}


@pytest.mark.parametrize('key', ['names', 'waiting', 'delayed'])
def test_a_key_of_another_type_refuses_the_call(queue, client, key):
    """If a key has another type, no task of the call is added, and nothing is written."""
    client.set(getattr(queue, key), 'x')
    before = dump(client)
    with pytest.raises(redis.ResponseError, match='WRONGTYPE'):
        add_json(queue, {'command': 'a'}, {'command': 'b', 'delay': '5m', 'id': 'x'})
    assert dump(client) == before


# ---- leat_add_many

def test_json(queue):
    """A list of objects becomes tasks: strings, numbers and booleans become the bytes of fields, in the order
    of their names."""
    tasks = [{'command': 'a', 'TEXT': 'zwölf\n\0', 'WHOLE': 640, 'ZERO': -0.0,
              'BIG': 2 ** 53 - 1, 'LESS': 1 - 2 ** 53, 'PART': 0.1, 'SMALL': 1.5e-9, 'THIRD': 1 / 3, 'YES': True,
              'NO': False, 'NONE': ''}]
    [(what, tid)] = add_json(queue, *tasks)
    assert what == 'new'
    [(entry, flat)] = queue.entries('stream')
    names = [name.decode() for name in flat[::2]]
    assert entry == tid and names == sorted(names)
    fields = {name: value.decode() for name, value in zip(names, flat[1::2])}
    assert float(fields.pop('THIRD')) == 1 / 3 and float(fields.pop('SMALL')) == 1.5e-9
    assert fields == {'command': 'a', 'TEXT': 'zwölf\n\0', 'WHOLE': '640', 'ZERO': '0', 'BIG': '9007199254740991',
                      'LESS': '-9007199254740991', 'PART': '0.1', 'YES': '1', 'NO': '0', 'NONE': ''}


def test_many(queue):
    """Answers come in the order of the tasks; each task has its own time, and a duplicate gets the first
    one's id."""
    now = queue.now()
    answers = add_json(queue, {'command': 'a', 'unique': 'u'}, {'command': 'b', 'delay': 90},
                       {'command': 'c', 'at': now + 60000}, {'command': 'd', 'unique': 'u', 'live': True})
    assert [what for what, _ in answers] == ['new', 'new', 'new', 'exists']
    tids = [tid for _, tid in answers]
    assert tids[3] == tids[0]
    assert queue.places() == {tids[0]: ['stream'], tids[1]: ['waiting'], tids[2]: ['waiting']}
    assert 0 <= queue.redis.zscore(queue.delayed, tids[1]) - now - 90000 < 5000
    assert queue.redis.zscore(queue.delayed, tids[2]) == now + 60000


def test_as_many_as_a_call_takes(queue, refused):
    """A call takes the documented number of tasks, in order, and refuses one more. An empty list adds
    nothing."""
    answers = add_json(queue, *[{'command': str(i)} for i in range(MAX_TASKS)])
    assert [tid for _, tid in answers] == [tid for tid, _ in queue.entries('stream')]
    one_more = json.dumps([{}] * (MAX_TASKS + 1))
    refused(f'{MAX_TASKS + 1} tasks in one call; give at most {MAX_TASKS}', one_more, many=True)
    assert add_json(queue) == []


def test_no_more_json_than_a_call_takes(queue, refused):
    """Redis stands still while it reads JSON, so a call refuses more than the documented bytes before it does."""
    text = '[' + '{},' * (MAX_JSON // 3) + '{}]'
    refused(f'{len(text)} bytes of JSON in one call; give at most {MAX_JSON}', text, many=True)
    assert queue.entries('stream') == []


def test_fields_are_counted_first(queue, refused):
    """Redis stands still while it sorts and checks fields, for a second or more if they are 300,000, so a call
    counts them before that. A time is no field of the task."""
    many = {f'F{i}': 'x' for i in range(MAX_FIELDS)}
    assert add_json(queue, {**many, 'delay': '1h'})[0][0] == 'new'
    refused('task 1: wrong number of fields', json.dumps([{**many, 'delay': '1h', 'command': 'x'}]), many=True)
    refused('task 1: wrong number of fields', json.dumps([{**many, 'A': [], 'B': [], 'C': []}]), many=True)


def test_a_large_payload(queue):
    """JSON of 16 MiB becomes a task like any other."""
    payload = 'x' * 2 ** 24
    add_json(queue, {'command': 'cat', 'payload': payload})
    assert pairs(queue.entries('stream')[0][1])['payload'] == payload.encode()


LIST = 'not one argument with a JSON list of objects'
GOOD = {'command': 'good', 'id': 'x'}


@pytest.mark.parametrize('args, words', [
    ([], LIST), (['[]', '[]'], LIST), ([''], LIST), (['\0'], LIST), ([b'\xff\xfe'], LIST), (['[' * 100000], LIST),
    (['[{"command": "a"}'], LIST + ': .*; give'), (["[{'command': 'a'}]"], LIST), (['[{"command": "a"}] x'], LIST),
    (['[{"command": "a\0"}]'], LIST), (['{"command": "a"}'], LIST), (['"command"'], LIST), (['null'], LIST),
    (['12'], LIST), (['command', 'a'], LIST),
    *[([json.dumps([GOOD, task])], 'task 2: not an object; give')
      for task in (1, 'a', None, ['command', 'a'], [[]], True)],
    *[([json.dumps([GOOD, {'command': 'a', 'X': value}])], 'task 2: X: neither a string nor')
      for value in (None, [], {}, [1], {'a': 'b'})],
    *[([f'[{{"command": "good"}}, {{"command": "a", "X": {number}}}]'], 'task 2: X: a number that JSON')
      for number in ('1e300', '-1e300', '9007199254740992', '1e999', 'NaN', '12345678901234567890')],
    ([json.dumps([GOOD, {}])], 'task 2: wrong number of fields; give 1 to 1000'),
    ([json.dumps([GOOD, []])], 'task 2: wrong number of fields; give 1 to 1000'),
    ([json.dumps([GOOD, {f'f{i}': 'x' for i in range(1001)}])], 'task 2: wrong number of fields; give 1 to 1000'),
    ([json.dumps([GOOD, {'command': 'a', 'delay': 0.5}])], 'task 2: delay: not a duration: 0.5; give seconds, or'),
    ([json.dumps([GOOD, {'command': 'a', 'delay': 1, 'at': 1}])], 'task 2: delay and at: '),
    ([json.dumps([GOOD, {'command': 'a', 'at': True}])], 'task 2: at: a time in seconds: 1;'),
    ([json.dumps([GOOD, {'command': 'a', 'leat.fields': 1}])], 'task 2: .*reserved'),
    ([json.dumps([GOOD, {'command': 'a', 'result_ttl': 'soon'}])], 'task 2: result_ttl'),
])
def test_all_or_none(refused, args, words):
    """If one task is bad, or the argument is not a JSON list of objects, the call adds nothing."""
    refused(words, *args, many=True)


# ---- keys

@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    """Three masters with leat's functions."""
    one = replicated.Cluster(tmp_path_factory.mktemp('c'), replicas=0)
    for node in one.masters:
        Queue(node.client()).load()
    yield one
    one.close()


@pytest.mark.parametrize('stream', ['emails', '{t}q', 'q{t}', '{{t}q'])
def test_in_a_cluster(cluster, stream):
    """The call works on the node that has the stream, because all other keys are in the stream's slot."""
    slot = cluster.slot(stream)
    queue = Queue(cluster.owner(slot).client(), stream)
    queue.register('w1', max_length=10)
    assert queue.program_add('command', 'a', 'id', 'x', 'lane', 'l')[0][0] == 'new'
    answers = add_json(queue, {'command': 'b', 'unique': 'u', 'lane': 'l'}, {'command': 'c', 'delay': '1h'})
    assert [what for what, _ in answers] == ['new', 'new']
    assert {cluster.slot(key) for key in queue.redis.keys('*' + queue.stats[:-6] + '*')} == {slot}
    assert len(queue.begin('w1', 5)) == 2


# newer versions of redis-py take the code from the text
CODES = {'TryAgainError': 'TRYAGAIN', 'AskError': 'ASK'}


@pytest.mark.parametrize('moved', ['none', 'stream', 'others', 'all but one', 'all'])
def test_while_the_slot_moves(cluster, moved):
    """While a slot moves, no call is half done, whichever keys have moved: the source takes the call while it
    has all keys; otherwise the client is redirected or told to try again, as usual in a Cluster. After the
    move the call succeeds."""
    stream = f'moves {moved}'
    slot = cluster.slot(stream)
    source = cluster.owner(slot)
    target = next(node for node in cluster.masters if node is not source)
    queue = Queue(source.client(), stream)
    queue.register('w1', max_length=100)
    add_json(queue, {'command': 'a', 'id': 'x', 'lane': 'l'}, {'command': 'b', 'lane': 'l'},
             {'command': 'c', 'delay': '1h'})
    keys = queue.keys[:9]
    assert source.ask('EXISTS', *keys) == 9
    gone = {'none': [], 'stream': keys[:1], 'others': keys[1:], 'all but one': keys[:8],
            'all': source.ask('CLUSTER', 'GETKEYSINSLOT', slot, 100)}[moved]
    target.ask('CLUSTER', 'SETSLOT', slot, 'IMPORTING', cluster.id(source))
    source.ask('CLUSTER', 'SETSLOT', slot, 'MIGRATING', cluster.id(target))
    if gone:
        source.ask('MIGRATE', '127.0.0.1', target.port, '', 0, 5000, 'KEYS', *gone)

    def all_keys():
        found = []
        for client in (node.client(single_connection_client=True) for node in (source, target)):
            for key in client.keys():
                client.execute_command('ASKING')
                found.append((key, client.dump(key)))
        return sorted(found)

    def add(node, asking):
        """Returns the first word of the error, or the answer. A call that failed has written nothing."""
        before, client = all_keys(), node.client(single_connection_client=True)
        if asking:
            client.execute_command('ASKING')
        try:
            return Queue(client, stream).program_add('command', 'd', 'id', 'y', 'lane', 'm', 'delay', '1h')[0][0]
        except redis.ResponseError as error:
            assert all_keys() == before
            return CODES.get(type(error).__name__, str(error).split()[0])

    at_source = add(source, False)
    at_target = add(target, True)
    assert at_source == {'none': 'new', 'others': 'TRYAGAIN'}.get(moved, 'ASK')
    assert at_target == {'all': 'new'}.get(moved, 'TRYAGAIN')
    left = source.ask('CLUSTER', 'GETKEYSINSLOT', slot, 100)
    if left:
        source.ask('MIGRATE', '127.0.0.1', target.port, '', 0, 5000, 'KEYS', *left)
    cluster.end_move(slot, source, target)
    after = Queue(target.client(), stream)
    assert after.program_add('command', 'd', 'id', 'y', 'lane', 'm')[0][0] in ('new', 'exists')
    assert len(after.places()) == 4
