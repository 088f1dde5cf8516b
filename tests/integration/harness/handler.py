"""A resident process for tests: python3 handler.py FOLDER [HABIT …]. It does what the payloads of its tasks
say, and leaves a trace: a line for each start in FOLDER/up, and each record with its pid in FOLDER/records.

Payloads, each a line of words: ok, retry, dead, exit CODE (the verdict, with the rest as its reason); say TEXT
and warn TEXT (stdout, stderr); end CODE (exit without a verdict); hang; hold FILE (until it exists); burn
MILLISECONDS (of CPU time); fork; twice (two verdicts); early NUMBER TEXT (a line for another record); close FD.
Words joined by ';' run one after the other; the last verdict is ok if there is none.
Habits: silent (never ready), broken CODE (exits before it is ready), deaf (never reads), shut-in, shut-out
(closes stdin or descriptor 3 when it is ready), babble (writes nonsense without end), endless (the same
without a newline), flood (babbles to stdout), stay (ignores the end of the file), once (exits after one
task), chatty (writes between tasks), backwards (answers when it has read as many as LEAT_BATCH says, the
last first)."""
import json
import os
import select
import signal
import sys
import time

folder, habits = sys.argv[1], sys.argv[2:]


def trace(name, text):
    with open(os.path.join(folder, name), 'a') as file:
        file.write(text + '\n')


def tell(line):
    os.write(3, line.encode() + b'\n')


def do(words, index):
    """Returns the verdict, or None."""
    name, rest = words[0], ' '.join(words[1:])
    if name in ('ok', 'retry', 'dead', 'exit'):
        return ' '.join(words)
    if name in ('say', 'warn'):
        os.write(1 if name == 'say' else 2, rest.encode() + (b'' if rest.endswith('\\') else b'\n'))
    if name == 'end':
        os._exit(int(rest))
    if name == 'kill':
        os.kill(os.getpid(), signal.SIGKILL)
    if name == 'close':
        os.close(int(rest))
    while name == 'hang':
        signal.pause()
    while name == 'hold' and not os.path.exists(rest):
        select.select([], [], [], 0.01)
    if name == 'burn':
        end = time.process_time() + int(rest) / 1000
        while time.process_time() < end:
            pass
    if name == 'fork' and os.fork() == 0:
        os.setsid()
        trace('forked', str(os.getpid()))
        signal.pause()
    if name == 'twice':
        tell(f'{index} ok')
    if name == 'early':
        tell(rest)
    return None


def run(line):
    record = json.loads(line)
    trace('records', json.dumps({**record, 'pid': os.getpid()}))
    verdict = 'ok'
    for part in record['fields'].get('payload', 'ok').split(';'):
        verdict = do(part.split(), record['index']) or verdict
    return f"{record['index']} {verdict}"


def flood(fd, end=b'\n'):
    while True:
        os.write(fd, b'x' * 4000 + end)


def main():
    trace('up', f'{os.getpid()} {os.environ.get("LEAT_BATCH")}')
    if 'broken' in habits:
        sys.exit(int(habits[habits.index('broken') + 1]))
    if 'silent' in habits:
        signal.pause()
    tell('ready')
    if 'shut-in' in habits:
        os.close(0)
    if 'shut-out' in habits:
        os.close(3)
    if 'endless' in habits:
        flood(3, b'')
    if 'babble' in habits or 'flood' in habits:
        flood(3 if 'babble' in habits else 1)
    if {'deaf', 'shut-in', 'shut-out'} & set(habits):
        signal.pause()
    held = []
    for line in sys.stdin:
        held.append(run(line))
        if 'backwards' in habits and len(held) < int(os.environ['LEAT_BATCH']):
            continue
        for verdict in reversed(held):
            tell(verdict)
        held = []
        if 'chatty' in habits:
            print('between', flush=True)
        if 'once' in habits:
            return
    trace('ends', str(os.getpid()))
    if 'stay' in habits:
        signal.pause()


main()
