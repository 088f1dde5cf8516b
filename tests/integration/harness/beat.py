"""A task that leaves a trace of every moment that it lives: beat.py FILE SECONDS [EXIT [stubborn]].

Lines of FILE: KIND TID ATTEMPT FENCE PID NANOSECONDS, of CLOCK_BOOTTIME; KIND is start, beat or end.
A stubborn one ignores SIGTERM. Runs as a program of its own.
"""
import os
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
    who = [os.environ.get(name, '-') for name in ('LEAT_TASK', 'LEAT_ATTEMPT', 'LEAT_FENCE')]

    def say(kind, now):
        os.write(file, ' '.join([kind, *who, str(os.getpid()), str(now)]).encode() + b'\n')

    begun = now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    say('start', now)
    while now - begun < seconds * 1e9:
        time.sleep(PERIOD_NS / 1e9)
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        say('beat', now)
    say('end', now)
    sys.exit(code)


if __name__ == '__main__':
    main()
