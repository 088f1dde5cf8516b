"""leat-protocol.7 agrees with the code in keys, functions, fields and errors, and its examples work."""
import os
import re
import shutil
import subprocess
import sys
import time

import pytest
import redis

from harness.daemon import ROOT
from harness.functions import signing
from harness.languages import built_with_go, check_client
from harness.queue import KEYS, LIBRARY, Queue

PAGE = (ROOT / 'src/queue/leat-protocol.7').read_text()
LUA = LIBRARY.read_text()
CONSTANTS = {'PRODUCER_KEYS': 9, 'ALL_KEYS': 15}


def section(title, kind='Sh'):
    """The source of a section, or of a subsection."""
    ends = r'^\.S[hs] ' if kind == 'Ss' else r'^\.Sh '
    start = PAGE.index(f'\n.{kind} {title}\n') + len(title) + 5
    end = re.search(ends, PAGE[start:], re.M)
    return PAGE[start:start + end.start()] if end else PAGE[start:]


def items(text):
    """The names in the .It Ic lines of a list."""
    lines = re.findall(r'^\.It Ic (.+)$', text, re.M)
    return [name for line in lines for name in line.split(' , ')]


def error_words():
    """The words with which errors begin."""
    return set(re.findall(r'^\.It Li ([A-Z]+)$', section('CALLING FUNCTIONS'), re.M))


def documented():
    """{function: (number of keys, arguments that appear once, whether some may be repeated)}."""
    found = {}
    for name, keys, rest in re.findall(r'^\.It Li FCALL (leat_\w+) (\d+) ?(.*)$', PAGE, re.M):
        once = re.sub(r'\{.*\}', '', rest).replace('[', ' ').replace(']', ' ').split()
        assert name not in found and (not once or once[0] in ('KEYS', 'KEY', 'STREAM'))
        found[name] = (int(keys), len(once[1:]), '{' in rest)
    return found


def body_of(function):
    return re.search(rf'^function leat\.{function}\(keys, args\)\n(.*?)^end\n', LUA, re.S | re.M).group(1)


def in_code():
    """The same, from the Lua code."""
    found = {'leat_version': (0, 0, False)}
    pairs = re.findall(r"'(leat_\w+)', leat\.(\w+)", LUA)
    for name, function in pairs:
        body = body_of(function)
        if 'leat.open_findings(' in body:
            body += body_of('open_findings')
        opened = re.search(r'\bopen\(keys, (\w+)', body)
        keys = opened.group(1) if opened else '1' if 'open_stream(keys)' in body else None
        keys = int(CONSTANTS.get(keys, keys)) + ('table.remove(keys)' in body)
        starts = [int(n) for n in re.findall(r'rest\(args, (\d+)\)|for \w+ = (\d+), #args', body) for n in n if n]
        used = [int(n) for n in re.findall(r'\bargs\[(\d+)\]', body)]
        repeated = (bool(starts) or not used and 'args' in body
                    or any(form in body for form in ('last_default', 'places_of(args)', 'for i = first, #args')))
        found[name] = (keys, min(starts) - 1 if starts else max(used, default=0), repeated)
    return found


def test_each_function_is_documented_as_it_is():
    """The page has every registered function, with its number of keys and arguments, and whether some may be
    repeated."""
    code = in_code()
    registered = set(re.findall(r"'(leat_\w+)', (?:leat\.\w+|version)\b", LUA))
    assert set(code) == registered
    assert documented() == code


@pytest.mark.parametrize('name', documented())
def test_the_number_of_keys_is_checked(queue, name):
    """One key less is refused, and the documented number is not."""
    queue.register('w1')
    number = documented()[name][0]
    keys = [*queue.keys, 'x'][:number]
    if number == 1:
        keys = ['list']
    if number == 10:
        keys[9] = 'list'

    def complaint(given):
        try:
            queue.redis.execute_command('FCALL', name, len(given), *given, *['1'] * 12)
        except redis.ResponseError as error:
            return str(error)
        return ''
    assert 'keys, got' not in complaint(keys)
    if keys:
        assert 'BADARG expected' in complaint(keys[:-1])


@pytest.mark.parametrize('name', documented())
def test_arguments_that_are_left_out(queue, name):
    """With too few arguments, a function works or says so with one of the page's words: no error is one of Lua."""
    queue.register('w1')
    number, arguments, _ = documented()[name]
    keys = ['list'] if number == 1 else [*queue.keys, 'list'][:number]
    for given in range(arguments + 1):
        try:
            queue.redis.execute_command('FCALL', name, number, *keys, *['1'] * given)
        except redis.ResponseError as error:
            assert str(error).split()[0] in error_words(), (given, str(error))


def test_keys_and_their_types(queue, daemon, wait_until):
    """The table has all keys in order, with the types that they have if they exist."""
    rows = re.findall(r'^\.It Pa (\S+) Ta (\w+) Ta', section('KEYS'), re.M)
    assert [name.lstrip(':') for name, _ in rows] == list(KEYS)
    wanted = dict(re.findall(r"\[(\w+)\] = '(\w+)'", LUA[LUA.index('function leat.check_types'):][:900]))
    types = {name.lstrip(':').upper(): kind for name, kind in rows}
    assert types == wanted


def test_task_fields():
    """The page has each field that a worker knows."""
    known = re.findall(r'^ *FIELD\((\w+)\)', (ROOT / 'src/queue/shared/task_fields.h').read_text(), re.M)
    assert len(known) > 20 and sorted(items(section('TASKS'))) == sorted(known)


def test_signed_examples():
    """The signature examples are right by an HMAC other than leat's."""
    text = section('SIGNED TASKS')
    examples = re.search(r'^\.Bd -literal -offset indent\n(.*?)^\.Ed', text, re.S | re.M).group(1).split('\n\n')
    assert len(examples) == 2
    for example_text in examples:
        lines = [line.split(None, 1) for line in example_text.splitlines()]
        fields = dict(value.split('=', 1) for name, value in lines if name == 'field')
        rest = {name: value for name, value in lines if name != 'field'}
        _, key, nonce, _ = rest['signature'].split(':')
        assert signing.canonical(key, nonce, rest['stream'], fields).decode() == rest['form']
        assert signing.signature(rest['key'], key, nonce, rest['stream'], fields) == rest['signature']


def test_dead_letter_fields():
    """The page has each field that write_dead_letter writes."""
    writer = re.search(r'^function leat.write_dead_letter\(.*?^end\n', LUA, re.S | re.M).group(0)
    assert sorted(items(section('DEAD LETTERS'))) == sorted(set(re.findall(r"'(leat\.\w+)'", writer)))


def test_result_fields():
    """The page has each field of a result."""
    writer = re.search(r'^local function post\(.*?^end\n', LUA, re.S | re.M).group(0)
    written = set(re.findall(r'(\w+) = (?:ending|record|q|attempt)[.,]', writer.split('pairs({')[1])) | {'state'}
    assert sorted(items(section('RESULTS'))) == sorted(written)


def test_errors():
    """The page has each word with which an error begins, and no other."""
    words = set(re.findall(r"fail\('([A-Z]+) ", LUA)) | set(re.findall(r"'([A-Z]{4,}) ' ?\.\. id", LUA))
    listed = error_words()
    assert words | {'NOGROUP', 'OOM'} == listed


def test_settings():
    """The page has each setting of leat_conf."""
    names = re.search(r'local CHANGEABLE = \{(.*?)\n\}', LUA, re.S).group(1)
    text = section("OPERATORS' FUNCTIONS")
    for name in re.findall(r'(\w+) = ', names):
        assert re.search(rf'\b{name}\b', text), name


def test_numbers(queue):
    """The page has the right protocol number and limits."""
    assert re.search(r'^local PROTOCOL = 1 ', LUA, re.M) and 'protocol\'s number, which is 1.' in PAGE
    assert re.search(r'^local MAX_FIELDS = 1000 ', LUA, re.M) and 'at most 1,000, and no name twice' in PAGE
    assert re.search(r'^local PAGE = 100 ', LUA, re.M)
    queue.register('w1')
    for number in (100, 101):
        fine = number == 100
        for call in (['dead_drop', *['1-1'] * number], ['cancel', queue.group, 0, *['1-1', ''] * number],
                     ['repair', queue.group, '', *['name', 'x', ''] * number]):
            try:
                queue.call(*call)
                assert fine, call
            except redis.ResponseError as error:
                assert not fine and 'BADARG' in str(error)


def test_access_rights_suffice(queue, redis_server):
    """The commands that the page gives a producer suffice for its functions, for each kind of task."""
    text = section('ACCESS RIGHTS')
    rules = re.search(r'^\.Dl (\+fcall .*)$', text, re.M).group(1).split()
    queue.redis.execute_command('ACL', 'SETUSER', 'producer', 'on', '>word', '-@all', *rules, '+xread',
                                *['~' + key for key in queue.keys[:9]], '~{emails}:result:*')
    theirs = Queue(redis_server.client(username='producer', password='word'))
    queue.register('w1')
    tasks = [{'command': 'true', 'unique': 'k', 'unique_next': '1', 'id': f'id{i}', 'lane': 'a',
              'unique_for': '1h'} for i in range(3)]
    for task in tasks:
        theirs.enqueue(task)
        queue.begin('w1')
        theirs.enqueue(task, due='+1000')
        theirs.program_add(*[part for field in dict(task, delay='1s').items() for part in field])
    theirs.redis.xread({'{emails}:result:1-1': '0'})
    simple = redis_server.client(username='simple', password='word')
    rules = re.search(r'^\.Dl ACL SETUSER producer on >\.\.\. (.*)$', text, re.M).group(1).split()
    queue.redis.execute_command('ACL', 'SETUSER', 'simple', 'on', '>word',
                                *[rule.replace('thumbnails', 'emails') for rule in rules])
    simple.xadd('emails', {'command': 'true'})


# ---- examples

def example(title):
    """The program in a subsection, as a reader sees it."""
    text = section(title, 'Ss')
    program = re.search(r'^\.Bd -literal\n(.*?)^\.Ed\n', text, re.S | re.M).group(1)
    assert not re.search(r"^[.']", program, re.M)
    return program.replace('\\e', '\\')


@pytest.fixture
def thumbnails(daemon):
    """A worker on the queue of the examples."""
    return daemon({'queue': {'name': 'thumbnails'}, 'retry': {'base': '60s'}}).wait_ready()


def test_the_shell_example(thumbnails, folder, redis_server):
    """The shell example runs as printed against a worker, and prints what happens."""
    tool = folder / 'redis-cli'
    tool.write_text(f'#!/bin/sh\nexec {shutil.which("redis-cli")} -s {redis_server.socket} "$@"\n')
    tool.chmod(0o755)
    (folder / 'photo.png').write_bytes(b'\0any bytes')
    script = folder / 'example.sh'
    script.write_text(example('Shell (redis-cli)'))
    done = subprocess.run(['sh', str(script)], capture_output=True, text=True, timeout=60, check=False, cwd=folder,
                          env=dict(os.environ, PATH=f'{folder}:{os.environ["PATH"]}'))
    assert (done.returncode, done.stderr) == (0, '')
    lines = done.stdout.splitlines()
    assert lines[1:5] == ['new', lines[2], 'exists', lines[2]] and lines[5] == 'new'
    # each value is on the line after its name
    result = {name: lines[lines.index(name) + 1] for name in ('state', 'status', 'stdout')}
    assert result == {'state': 'success', 'status': '0', 'stdout': 'done'}


def test_the_python_example(thumbnails, folder, redis_server):
    """The Python example runs as printed against a worker."""
    script = folder / 'example.py'
    script.write_text(example('Python (redis-py)'))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False,
                          env=dict(os.environ, REDIS_URL=f'unix://{redis_server.socket}'))
    assert (done.returncode, done.stderr) == (0, '')
    first, second, one, two = done.stdout.splitlines()
    assert "b'new'" in first and first.replace('new', 'exists') == second
    assert (one, two) == ("b'new' b'success' b'0'", "b'new' b'dead' b'3'")


@pytest.mark.skipif(not shutil.which('node'), reason='no node here')
def test_the_node_example(folder):
    """The Node example has valid syntax."""
    script = folder / 'example.mjs'
    script.write_text(example('Node (node-redis)'))
    done = subprocess.run(['node', '--check', str(script)], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 0, done.stderr


def run(argv, env=None, **options):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False, env=env, **options)
    assert (done.returncode, done.stderr) == (0, '')
    return done.stdout


def test_the_ruby_example(thumbnails, folder, redis_server):
    """The Ruby example runs as printed against a worker."""
    check_client('rb')
    (folder / 'example.rb').write_text(example('Ruby (redis)'))
    lines = run(['ruby', folder / 'example.rb'],
                env=dict(os.environ, REDIS_URL=f'unix://{redis_server.socket}')).splitlines()
    assert '"new"' in lines[0] and lines[1] == lines[0].replace('new', 'exists')
    assert lines[2:] == ['"new"', '"success"']


def test_the_php_example(thumbnails, folder, redis_server):
    """The PHP example runs as printed against a worker, but for the address."""
    check_client('php')
    text = example('PHP (phpredis)').replace("'localhost'", f"'{redis_server.socket}'")
    (folder / 'example.php').write_text(text)
    lines = run(['php', folder / 'example.php']).splitlines()
    assert '"new"' in lines[0] and lines[1] == lines[0].replace('new', 'exists') and lines[2:] == ['new success']


def test_the_go_example(thumbnails, folder, redis_server):
    """The Go example is formatted as gofmt does, and runs as printed against a worker, but for the address."""
    check_client('go')
    script = folder / 'example.go'
    script.write_text(example('Go (redigo)'))
    assert run(['gofmt', '-l', script]) == ''
    script.write_text(script.read_text().replace('"tcp", "localhost:6379"', f'"unix", "{redis_server.socket}"'))
    lines = [line.split() for line in run([built_with_go(script, folder)]).splitlines()]
    assert [line[0] for line in lines[1:]] == ['new', '[new', 'new'] and lines[3][1] == 'success'
    assert {line[-1] for line in lines} == {'<nil>'}


SIGNERS = {
    'sh (openssl)': (['sh'], """
sign k "$1" media command 'a b' Z '' a.b '100%\\n' command2 'x
y'
echo "$not_after $signature"
"""),
    'Python': ([sys.executable, '-'], """
import sys
task = {'command': 'a b', 'Z': '', 'a.b': '100%\\\\n', 'command2': 'x\\ny'}
task = signed(task, 'media', 'k', sys.argv[1])
print(task['not_after'], task['signature'])
"""),
    'Node': (['node', '--input-type=module', '-'], """
const fields = { command: 'a b', Z: '', 'a.b': '100%\\\\n', command2: 'x\\ny' };
const task = signed(fields, 'media', 'k', process.argv[2]);
console.log(`${task.not_after} ${task.signature}`);
"""),
    'Ruby': (['ruby', '-'], """
fields = { 'command' => 'a b', 'Z' => '', 'a.b' => '100%\\\\n', 'command2' => "x\\ny" }
task = signed(fields, 'media', 'k', ARGV[0])
puts "#{task['not_after']} #{task['signature']}"
"""),
    'PHP': (['php', '--'], """
$fields = ['command' => 'a b', 'Z' => '', 'a.b' => '100%\\\\n', 'command2' => "x\\ny"];
$task = signed($fields, 'media', 'k', $argv[1]);
echo "$task[not_after] $task[signature]";
"""),
}


@pytest.mark.parametrize('title', SIGNERS)
def test_the_signing_examples(title, folder):
    """Each signing example signs the same fields, in their own order, as an HMAC other than leat's."""
    argv, call = SIGNERS[title]
    if not shutil.which(argv[0]):
        pytest.skip(f'no {argv[0]} here')
    key = signing.Key(folder, 'k')
    given = argv + [str(key.path)]
    if title.startswith('sh'):
        given = ['sh', '-s', str(key.path)]
    done = subprocess.run(given, input=example(f'Signing in {title}') + call, capture_output=True, text=True,
                          timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, '')
    not_after, signature = done.stdout.split()
    fields = {'command': 'a b', 'Z': '', 'a.b': '100%\\n', 'command2': 'x\ny', 'not_after': not_after}
    assert signature == signing.signature(key.secret, 'k', signature.split(':')[2], 'media', fields)
    assert abs(int(not_after) - time.time() - 86400) < 600


ADDABLE = {
    'Node': (['node', '--input-type=module', '-'], """
const task = signed({ command: 'true', SIZE: '640' }, 'media', 'k', process.argv[2]);
console.log(Object.values(task).every((value) => typeof value === 'string'));
"""),
    'Ruby': (['ruby', '-'], """
puts signed({ command: 'true', SIZE: 640 }, 'media', 'k', ARGV[0]).keys.sort.join(' ')
"""),
}


@pytest.mark.parametrize('title, printed', [('Node', 'true'), ('Ruby', 'SIZE command not_after signature')])
def test_a_signed_task_can_be_added_by_the_examples(title, printed, folder):
    """What the examples add, they also sign: node-redis takes only texts as values, and the Ruby example names
    fields by symbols."""
    argv, call = ADDABLE[title]
    if not shutil.which(argv[0]):
        pytest.skip(f'no {argv[0]} here')
    done = subprocess.run(argv + [str(signing.Key(folder, 'k').path)], input=example(f'Signing in {title}') + call,
                          capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (0, '', printed + '\n')


@pytest.mark.parametrize('title', ['Shell (redis-cli)', 'Python (redis-py)', 'Node (node-redis)', 'Node (ioredis)',
                                   'Go (redigo)', 'Ruby (redis)', 'PHP (phpredis)', 'C (hiredis)'])
def test_the_examples_name_one_key(title):
    """Each example calls leat_add and leat_add_many with the stream alone, so that nobody copies a list of
    keys."""
    text = section(title, 'Ss')
    assert 'leat_add' in text and 'leat_add_many' in text
    assert not re.search(rf':({"|".join(KEYS[1:9])})\b|leat_enqueue', text)
