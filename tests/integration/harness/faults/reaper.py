"""Runs a command as process 1 would: reaper.py COMMAND…

Orphans of the command become children of this process and are reaped as soon as they end. It ends when all
are gone. It runs as a program of its own.
"""
import contextlib
import ctypes
import os
import signal
import sys

PR_SET_CHILD_SUBREAPER = 36


def main():
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit('no subreaper')
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    if os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.execvp(sys.argv[1], sys.argv[1:])
    with contextlib.suppress(ChildProcessError):
        os.wait()  # for the last of them


if __name__ == '__main__':
    main()
