"""A task that writes a heartbeat at every moment that it lives: heartbeat.py FILE SECONDS [EXIT [stubborn]
[leaves]].

Lines of FILE: KIND TID ATTEMPT FENCE PID NANOSECONDS, of CLOCK_BOOTTIME; KIND is start, beat or end. With
stubborn it ignores SIGTERM. With leaves it ends as soon as a child of it runs, which writes the heartbeats;
their lines look like those of one process. It runs as a program of its own.
"""
import os
import select
import signal
import sys
import time

PERIOD_NS = 10_000_000


def main():
    path, seconds = sys.argv[1], float(sys.argv[2])
    code = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    if 'stubborn' in sys.argv[4:]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    leaves = 'leaves' in sys.argv[4:]
    pid = os.getsid(0) if leaves else os.getpid()
    who = [os.environ.get(name, '-') for name in ('LEAT_TASK', 'LEAT_ATTEMPT', 'LEAT_FENCE')]

    def say(kind, now):
        os.write(file, ' '.join([kind, *who, str(pid), str(now)]).encode() + b'\n')

    begun = now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    say('start', now)
    reader, writer = os.pipe()
    if leaves and os.fork():
        os.read(reader, 1)
        os._exit(code)
    while now - begun < seconds * 1e9:
        select.select([], [], [], PERIOD_NS / 1e9)
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        say('beat', now)
        os.write(writer, b'.')
    say('end', now)
    sys.exit(code)


if __name__ == '__main__':
    main()
