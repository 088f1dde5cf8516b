"""Holds a process between its death and its end, by ptrace. A test does it, or a task's descendant, by
`tracer.py FILE`, which traces the task's first process from its own session and then writes FILE."""
import contextlib
import ctypes
import os
import signal
import sys

SEIZE, DETACH, TRACE_EXIT = 0x4206, 17, 0x40
ANYBODY, SET_PTRACER = ctypes.c_ulong(-1), 0x59616d61
WAIT_ALL = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)


def _ptrace(request, pid, data=0):
    if _libc.ptrace(ctypes.c_long(request), pid, ctypes.c_void_p(0), ctypes.c_void_p(data)) < 0:
        raise OSError(ctypes.get_errno(), 'ptrace')


def hold_dead(pid):
    """When the process dies, no one learns of it: it stays a zombie until it is released."""
    _ptrace(SEIZE, pid)


def hold_dying(pid):
    """When the process is killed, it stops in the kernel, and no further KILL ends it, until it is released."""
    _ptrace(SEIZE, pid, TRACE_EXIT)


def was_killed(pid):
    """Whether a process under hold_dying was killed; call it until it is true."""
    return os.waitpid(pid, WAIT_ALL | os.WNOHANG)[0] == pid


def let_go(pid):
    with contextlib.suppress(OSError):
        _ptrace(DETACH, pid)
    with contextlib.suppress(OSError):
        os.waitpid(pid, WAIT_ALL | os.WNOHANG)  # this releases a zombie


def main():
    leader = os.getpid()
    reader, ready = os.pipe()
    _libc.prctl(SET_PTRACER, ANYBODY, 0, 0, 0)
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        hold_dead(leader)
        with open(sys.argv[1], 'w', encoding='ascii') as file:
            file.write(f'{os.getpid()}\n')
        os.write(ready, b'.')
        os.closerange(0, 256)
        while True:
            signal.pause()
    os.read(reader, 1)
    while True:
        signal.pause()


if __name__ == '__main__':
    main()
