"""Records of ended tasks, as workers pack them."""
from .damages import packed


def record(tid, **known):
    """The record that a worker packs for a success."""
    names = ('outcome', 'cause', 'status', 'reason', 'worker', 'attempts', 'enqueued_ms', 'waited_ms', 'begun_ms',
             'duration_us', 'usage', 'id', 'lane', 'command')
    known = {'outcome': 'succeeded', 'attempts': '1', 'worker': 'w1', **known}
    return packed(tid, *(known.get(name, '') for name in names))
