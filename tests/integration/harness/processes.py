"""Starts, finds and ends processes by pid, so that a test leaves none behind."""
import contextlib
import ctypes
import os
import re
import signal
import subprocess
from pathlib import Path

from .polling import wait_until

PR_SET_CHILD_SUBREAPER = 36

_started = {}


def become_subreaper():
    """Makes orphans of a killed daemon our children, because otherwise no one could find them."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), 'prctl')


def start(argv, **options):
    """subprocess.Popen, whose process the clean-up knows."""
    process = subprocess.Popen(argv, **options)
    _started[process.pid] = process
    return process


def _stat(pid):
    """(state, parent, session) from /proc, or None if the process is gone."""
    try:
        with open(f'/proc/{pid}/stat', 'rb') as file:
            values = file.read().rsplit(b')', 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return values[0].decode(), int(values[1]), int(values[3])


def alive(pid):
    """A zombie counts as dead."""
    stat = _stat(pid)
    return stat is not None and stat[0] not in 'ZX'


def _children():
    parents = {}
    for name in os.listdir('/proc'):
        stat = _stat(name) if name.isdigit() else None
        if stat:
            parents.setdefault(stat[1], []).append(int(name))
    return parents


def name(pid):
    """The name that ps shows, or '' if the process is gone."""
    try:
        with open(f'/proc/{pid}/comm', encoding='ascii', errors='replace') as file:
            return file.read().rstrip('\n')
    except (FileNotFoundError, ProcessLookupError):
        return ''


def waits(pid):
    """How often the process has waited for something: its voluntary context switches."""
    text = Path(f'/proc/{pid}/status').read_text()
    return int(re.search(r'^voluntary_ctxt_switches:\s*(\d+)', text, re.MULTILINE)[1])


def takes_signals(pid):
    """Whether the process has taken all signals that it was sent."""
    status = Path(f'/proc/{pid}/status').read_text()
    return all(int(mask, 16) == 0 for mask in re.findall(r'^(?:Sig|Shd)Pnd:\s+(\w+)$', status, re.M))


def arguments(pid, of='cmdline'):
    """Its command line, or with 'environ' its environment; [] if the process is gone."""
    try:
        with open(f'/proc/{pid}/{of}', encoding='utf-8', errors='replace') as file:
            return file.read().split('\0')[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _below(pid, children):
    found, todo = [], [pid]
    while todo:
        for child in children.get(todo.pop(), []):
            found.append(child)
            todo.append(child)
    return [child for child in found if alive(child)]


def children():
    """The living children of this process, also those that it has not started."""
    return [pid for pid in _children().get(os.getpid(), []) if alive(pid)]


def descendants(pid):
    """All living descendants of the process, in any session."""
    return _below(pid, _children())


def _text(path):
    """The file's text, or '' if the process is gone or the file is not readable."""
    try:
        with open(path, encoding='utf-8', errors='replace') as file:
            return file.read().replace('\0', ' ').strip()
    except OSError:
        return ''


def told(process):
    """What it and each process below it do, one line each, to find out why it does not end."""
    if process.poll() is not None:
        return f'{process.pid}: ended with {process.returncode}'
    lines = []
    for one in [process.pid, *descendants(process.pid)]:
        state, parent, _ = _stat(one) or ('gone', 0, 0)
        at = [f'{name} {_text(f"/proc/{one}/{name}") or "?"}' for name in ('wchan', 'syscall')]
        lines.append(f'{one} of {parent}: {state}, {", ".join(at)}: {_text(f"/proc/{one}/cmdline") or name(one)}')
    return '\n'.join(lines)


def send(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def end(process):
    """Kills a process of ours and all below it. Does nothing if it has ended, because its pid may belong to
    another process."""
    if process.poll() is None:
        below = descendants(process.pid)
        send(process.pid, signal.SIGKILL)
        process.wait()
        for pid in below:
            send(pid, signal.SIGKILL)
    _started.pop(process.pid, None)


def _orphans(children):
    """Children that we have not started: a daemon left them, in a session of their own."""
    mine = os.getsid(0)
    found = []
    for pid in children.get(os.getpid(), []):
        stat = _stat(pid)
        if pid not in _started and stat and stat[2] != mine:
            found.append(pid)
    return found


def _reap(pid):
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def reap_orphans():
    """Reaps those that are dead. Each of thousands of zombies would make every walk through /proc slower."""
    for pid in _orphans(_children()):
        _reap(pid)


def end_orphans():
    """Kills and reaps processes that daemons left behind; returns how many still ran."""
    running = 0

    def none_left():
        nonlocal running
        children = _children()
        left = _orphans(children)
        for pid in left:
            running += alive(pid)
            for below in _below(pid, children):
                send(below, signal.SIGKILL)
            send(pid, signal.SIGKILL)
            _reap(pid)
        return not left

    wait_until(none_left, message='orphans are gone')
    return running
