"""A private wall clock for a program, which the test sets: see tests/inject/wall.c, which is preloaded."""
import struct

from ..daemon import BUILD

LIBRARY = BUILD / 'tests/inject/wall.so'


class Wall:
    """env is for the program."""

    def __init__(self, path):
        path.write_bytes(bytes(8))
        self._path = path
        self.env = {'LD_PRELOAD': str(LIBRARY), 'WALL_FILE': str(path)}

    def words(self):
        """Words before a program that runs by this clock."""
        return ['env', *(f'{name}={value}' for name, value in self.env.items())]

    def set(self, ahead_s):
        """Sets the clock this many seconds ahead of the real one."""
        with open(self._path, 'r+b', buffering=0) as file:
            file.write(struct.pack('=q', int(ahead_s * 10 ** 9)))
