"""A producer in Python with redis-py. Where REDIS_SOCKET is not set, Redis is that of this host."""
import hmac
import os
import secrets
import sys
import time

import redis

NAMES = 'bell waiting delayed names conf stats lanes laned'.split()


def enqueue(client, queue, tasks, due=0):
    """Tasks are dicts; due is 0, '+MS' or unix ms. All or nothing: [(b'new' or b'exists', id)]."""
    keys = [queue] + [f'{{{queue}}}:{name}' for name in NAMES]
    args = []
    for task in tasks:
        args += [due, len(task), *(part for field in task.items() for part in field)]
    reply = client.execute_command('FCALL', 'leat_enqueue', len(keys), *keys, *args)
    return list(zip(reply[1::2], reply[2::2]))


def signed(task, stream, name, path):
    """The task with not_after, a day ahead, and signature. Names are text, values text or bytes."""
    with open(path, 'rb') as file:
        key = file.read().removesuffix(b'\n')
    nonce = secrets.token_hex(16)
    task = dict(task, not_after=str(int(time.time()) + 86400))
    parts = ['leat1', name, nonce, stream, *(part for field in sorted(task) for part in (field, task[field]))]
    parts = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
    form = b''.join(b'%d:%s,' % (len(part), part) for part in parts)
    return dict(task, signature=f'leat1:{name}:{nonce}:{hmac.new(key, form, "sha256").hexdigest()}')


def show(answers):
    for what, tid in answers:
        print(what.decode(), tid.decode())


def main():
    client = redis.Redis(unix_socket_path=os.environ.get('REDIS_SOCKET'))

    # one task, the plain way
    tid = client.xadd('thumbnails', {'command': 'echo plain $TASK_SIZE >> done', 'SIZE': '640'})
    print(tid.decode())

    # one that must not be there twice, in a lane, in half a second: the same answer twice
    index = {'command': 'echo index >> done', 'unique': 'index', 'lane': 'albums'}
    show(enqueue(client, 'thumbnails', [index], due='+500'))
    show(enqueue(client, 'thumbnails', [index], due='+500'))

    # three in one step; the last one gets any bytes on its stdin
    show(enqueue(client, 'thumbnails', [
        {'command': 'echo two >> done'},
        {'command': 'echo three $TASK_SIZE >> done', 'SIZE': 64},
        {'command': 'cat > bytes', 'payload': b'\x00\x01\xfe\xff\n'},
    ]))

    # one that cannot be taken as it is
    try:
        enqueue(client, 'thumbnails', [{'command': 'echo never >> done', 'result_ttl': 'soon'}])
    except redis.ResponseError as error:
        if not str(error).startswith('REFUSED'):
            raise
        print('not taken: 65', error, sep='\n')

    # one for workers that want signatures: [security] key_files = 2026a:FILE
    if 'LEAT_KEY' in os.environ:
        task = {'command': 'echo signed $TASK_SIZE >> done', 'SIZE': 32, 'a': '', 'payload': b'\x00\xff'}
        client.xadd('thumbnails', signed(task, 'thumbnails', '2026a', os.environ['LEAT_KEY']))


if __name__ == '__main__':
    try:
        main()
    except redis.ResponseError as error:
        # FULL: nothing was added, try again later
        print(error, file=sys.stderr)
        sys.exit(75 if str(error).startswith('FULL') else 69)
