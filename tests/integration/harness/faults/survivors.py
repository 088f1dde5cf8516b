"""A task whose descendants do everything to outlive it: survivors.py FILE COUNT [EXIT].

Each is double-forked, has its own session, ignores signals and has none of the task's descriptors. Their pids
are appended to FILE. Then the task itself waits, ignoring SIGTERM, or exits with EXIT.
"""
import os
import signal
import sys


def ignore_signals():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


def survive(path, ready):
    if os.fork():
        return
    os.setsid()
    os.closerange(0, 3)  # also those of the process in between, which may end later than the task
    if os.fork():
        os._exit(0)
    ignore_signals()
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(file, b'%d\n' % os.getpid())
    os.write(ready, b'.')
    os.closerange(0, 256)
    while True:
        signal.pause()


def main():
    path, count = sys.argv[1], int(sys.argv[2])
    reader, ready = os.pipe()
    ignore_signals()
    for _ in range(count):
        survive(path, ready)
    left = count
    while left:
        left -= len(os.read(reader, left))
    if len(sys.argv) > 3:
        os._exit(int(sys.argv[3]))
    os.write(os.open(path + '.all', os.O_WRONLY | os.O_CREAT, 0o666), b'.')
    while True:
        signal.pause()


if __name__ == '__main__':
    main()
