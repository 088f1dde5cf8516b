"""Calls of leatd and leat that fail: see tests/inject/inject.c, which is preloaded into them."""
import mmap
import os
import subprocess
import time
from pathlib import Path

from ..daemon import BUILD, is_sanitized, program

LIBRARY = BUILD / 'tests/inject/inject.so'
# in the order of enum kind
KINDS = ('none', 'alloc', 'library', 'fork', 'pipe', 'send', 'read', 'open', 'payload', 'epoll', 'timer',
         'socket', 'child', 'file', 'map', 'ends', 'before', 'after')
EVER = 2 ** 63
LAST_S = 0.2  # how long calls fail if all of them fail from one on


class NotHere(Exception):
    """Calls cannot be made to fail on this machine, for the given reason."""


def _runtime():
    """AddressSanitizer's runtime, which must be loaded after ours, because ours calls its functions."""
    if b'libasan.so' not in Path(program('leatd')).read_bytes():
        raise NotHere('a program with the sanitizer linked into it cannot be told')
    asked = subprocess.run(['gcc', '-print-file-name=libasan.so'], capture_output=True, text=True, check=True)
    return os.path.realpath(asked.stdout.strip())


class Injector:
    """The orders for a program's calls, in memory that it shares with the test."""

    def __init__(self, path):
        path.write_bytes(bytes(5 * 8))
        with open(path, 'r+b') as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._words = memoryview(self._map).cast('Q')
        self._since = None
        self.env = {'LD_PRELOAD': str(LIBRARY), 'INJECT_FILE': str(path)}
        if is_sanitized():
            self.env['LD_PRELOAD'] += f' {_runtime()}'
            options = [os.environ.get('ASAN_OPTIONS'), 'verify_asan_link_order=0']
            self.env['ASAN_OPTIONS'] = ':'.join(filter(None, options))

    def arm(self, kind, first, last=None):
        """Counts calls of this kind from now on; the first-th call fails, or all up to the last."""
        self.disarm()
        self._words[1], self._words[2] = first, last or first
        self._words[3] = self._words[4] = 0
        self._since = None
        self._words[0] = KINDS.index(kind)

    def disarm(self):
        self._words[0] = 0

    @property
    def failed(self):
        """How many calls have failed since then."""
        return self._words[4]

    def has_failed(self, seconds):
        """Whether calls have failed for this long."""
        if self.failed and self._since is None:
            self._since = time.monotonic()
        return self._since is not None and time.monotonic() >= self._since + seconds

    def close(self):
        self._words.release()
        self._map.close()


def points(some):
    """The numbers of the calls that are to fail: with LEAT_INJECT=all every one, until the test finds that
    there are no more; with LEAT_INJECT=A-B these."""
    asked = os.environ.get('LEAT_INJECT')
    if asked == 'all':
        return range(1, EVER)
    if asked:
        first, last = asked.split('-')
        return range(int(first), int(last) + 1)
    return some
