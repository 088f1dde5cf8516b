"""A producer in Python with redis-py. Without REDIS_SOCKET it uses the Redis of this host."""
import hmac
import json
import os
import secrets
import sys
import time

import redis


def add(client, queue, task):
    """Adds a task, a dict of fields. Returns b'new' or b'exists', and the id."""
    return client.fcall('leat_add', 1, queue, *(part for field in task.items() for part in field))


def add_many(client, queue, tasks):
    """Adds all of these tasks or none. Returns (b'new' or b'exists', id) for each."""
    reply = client.fcall('leat_add_many', 1, queue, json.dumps(tasks))
    return list(zip(reply[::2], reply[1::2]))


def signed(task, stream, name, path):
    """The task with not_after, one day ahead, and signature. Names are text, values text or bytes."""
    with open(path, 'rb') as file:
        key = file.read().removesuffix(b'\n')
    nonce = secrets.token_hex(16)
    task = dict(task, not_after=str(int(time.time()) + 86400))
    parts = ['leat1', name, nonce, stream, *(part for field in sorted(task) for part in (field, task[field]))]
    parts = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
    form = b''.join(b'%d:%s,' % (len(part), part) for part in parts)
    return dict(task, signature=f'leat1:{name}:{nonce}:{hmac.new(key, form, "sha256").hexdigest()}')


def show(*answers):
    for what, tid in answers:
        print(what.decode(), tid.decode())


def main():
    client = redis.Redis(unix_socket_path=os.environ.get('REDIS_SOCKET'))

    # one task, by a plain XADD
    tid = client.xadd('thumbnails', {'command': 'echo plain $TASK_SIZE >> done', 'SIZE': '640'})
    print(tid.decode())

    # at most one with that key, in a lane, in half a second: both calls answer the same id
    index = {'command': 'echo index >> done', 'unique': 'index', 'lane': 'albums', 'delay': '500ms'}
    show(add(client, 'thumbnails', index))
    show(add(client, 'thumbnails', index))

    # two tasks, both or none
    show(*add_many(client, 'thumbnails', [
        {'command': 'echo two >> done'},
        {'command': 'echo three $TASK_SIZE >> done', 'SIZE': 64},
    ]))

    # any bytes for the task's stdin
    show(add(client, 'thumbnails', {'command': 'cat > bytes', 'payload': b'\x00\x01\xfe\xff\n'}))

    # a task that is refused
    try:
        add(client, 'thumbnails', {'command': 'echo never >> done', 'result_ttl': 'soon'})
    except redis.ResponseError as error:
        if not str(error).startswith('REFUSED'):
            raise
        print(error, 'refused: 65', sep='\n')

    # a signed task, for workers with [security] key_files = 2026a:FILE
    if 'LEAT_KEY' in os.environ:
        task = {'command': 'echo signed $TASK_SIZE >> done', 'SIZE': 32, 'a': '', 'payload': b'\x00\xff'}
        add(client, 'thumbnails', signed(task, 'thumbnails', '2026a', os.environ['LEAT_KEY']))


if __name__ == '__main__':
    try:
        main()
    except redis.ResponseError as error:
        # FULL: nothing was added, try again later
        print(error, file=sys.stderr)
        sys.exit(75 if str(error).startswith('FULL') else 69)
