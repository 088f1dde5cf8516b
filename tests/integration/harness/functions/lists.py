"""Producers' lists, and the functions that take their items."""
from ..queue import PRODUCER_KEYS, PROTOCOL, text


def intake(queue, key, most=1000, field='payload', lane='', unique=False, kind='', marks=False):
    """leat_intake; returns a dict."""
    reply = queue.redis.execute_command(
        'FCALL', 'leat_intake', PRODUCER_KEYS + 1, *queue.keys[:PRODUCER_KEYS], key, most, field,
        lane, 'item' if unique else '', kind, '1' if marks else '')
    assert reply[0] == PROTOCOL, reply
    return dict(zip(('taken', 'added', 'left', 'full'), reply[1:]))


def preview(queue, key, kind='list', most=5, marks=False):
    """leat_preview; returns the number of items and [(first bytes, size, due ms)]."""
    reply = queue.redis.execute_command(
        'FCALL_RO', 'leat_preview', 1, key, kind, most, '1' if marks else '')
    assert reply[0] == PROTOCOL, reply
    rows = reply[2:]
    return reply[1], [(rows[i], rows[i + 1], int(rows[i + 2])) for i in range(0, len(rows), 3)]


def turn(queue, period, busy=False):
    """leat_lists_turn; returns the ms to wait."""
    reply = queue.redis.execute_command(
        'FCALL', 'leat_lists_turn', PRODUCER_KEYS, *queue.keys[:PRODUCER_KEYS], period,
        '1' if busy else '')
    assert reply[0] == PROTOCOL, reply
    return int(text(reply[1]))


def items_of(queue, name='stream', field=b'payload'):
    """This field of each entry, in order."""
    return [dict(zip(fields[::2], fields[1::2]))[field] for _, fields in queue.entries(name)]


def watching(client):
    """How many workers are notified of changes of lists."""
    return sum('t' in one['flags'] for one in client.client_list())


def watched(client):
    """How many keys Redis would notify of."""
    return client.info('stats')['tracking_total_keys']


class Output:
    """Output of items' tasks: a file with a line for each."""

    def __init__(self, path, before=''):
        self.path = path
        # one write, so that lines of several tasks do not mix
        self.command = f'{before}read -r item; echo "$item" >> {path}'

    def lines(self):
        return self.path.read_text().split('\n')[:-1] if self.path.exists() else []
