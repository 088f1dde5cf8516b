"""Waits for conditions, never for a time."""
import os
import threading
import time

STEP_S = 0.005
# A deadline is for conditions that never come true: on a busy machine everything else may take long. A
# promised time is measured, and Lateness allows for the machine.
PATIENCE_S = 30.0
BUSY = 5  # with this many processes for each processor, deadlines grow


def wait_until(condition, timeout=PATIENCE_S, message=None):
    """Polls until condition() is true and returns its value; fails the test at the deadline, which is never
    shorter than PATIENCE_S, and further away on a very busy machine.

    message may be text, or a function that returns the actual state.
    """
    timeout = max(timeout, PATIENCE_S) * max(1.0, os.getloadavg()[0] / os.cpu_count() / BUSY)
    deadline = time.monotonic() + timeout
    while True:
        # a machine that stalled has not given the condition its time either
        late = time.monotonic() > deadline
        value = condition()
        if value:
            return value
        if late:
            text = message() if callable(message) else message
            raise AssertionError(f'not within {timeout:.0f} s: {text or condition}')
        threading.Event().wait(STEP_S)


class Lateness:
    """How late events may be on this machine now: some milliseconds on an idle one. A thread that mostly
    sleeps measures it."""

    HOPS = 10     # processes that run one after the other before a task has written something
    WORK_S = 0.3  # time to start a daemon, or a task in Python, under the sanitizers
    WINDOW_S = 0.5

    def __init__(self):
        self._worst = self._queue = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        before = time.monotonic()
        window, running = before, []
        while not self._ended.wait(STEP_S):
            now = time.monotonic()
            self._worst = max(self._worst, now - before - STEP_S)
            before = now
            running.append(runnable())
            if now - window >= self.WINDOW_S:
                self._queue = max(self._queue, sum(running) / len(running))
                window, running = now, []

    def __call__(self):
        """Seconds, for an event that only wakes up a process."""
        return self._worst * self.HOPS

    def start(self):
        """Seconds, for an event that also starts programs."""
        return self() + self.WORK_S * max(0.0, self._queue / os.cpu_count() - 1)

    def close(self):
        self._ended.set()
        self._thread.join()


def runnable():
    """How many threads run or want to."""
    with open('/proc/loadavg', encoding='ascii') as file:
        return int(file.read().split()[3].split('/')[0])
