"""Waiting for a condition, never for a time."""
import os
import threading
import time

STEP_S = 0.005
# A deadline is for what never comes: on a busy machine everything else may take long. Where a time
# itself is promised it is measured, and allowed for by Lateness.
PATIENCE_S = 30.0
BUSY = 5  # so many processes for each processor, and more patience is needed


def wait_until(condition, timeout=PATIENCE_S, message=None):
    """Polls until condition() is true and returns what it returned; fails the test at the deadline,
    which is never shorter than PATIENCE_S, and further away on a machine that is very busy.

    message may be text or a function that says what is there instead.
    """
    timeout = max(timeout, PATIENCE_S) * max(1.0, os.getloadavg()[0] / os.cpu_count() / BUSY)
    deadline = time.monotonic() + timeout
    while True:
        # a machine that stood still has not given the condition its time either
        late = time.monotonic() > deadline
        value = condition()
        if value:
            return value
        if late:
            text = message() if callable(message) else message
            raise AssertionError(f'not within {timeout:.0f} s: {text or condition}')
        time.sleep(STEP_S)


class Lateness:
    """How much later than promised things may happen on this machine now: some milliseconds on an
    idle one. Measured by a thread that mostly sleeps."""

    HOPS = 10     # what waits for a processor one after the other before a task has said something
    WORK_S = 0.3  # what it takes to start a daemon, or a task in Python, under the sanitizers
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
        """Seconds, for what only wakes up."""
        return self._worst * self.HOPS

    def start(self):
        """Seconds, for what also starts programs."""
        return self() + self.WORK_S * max(0.0, self._queue / os.cpu_count() - 1)

    def close(self):
        self._ended.set()
        self._thread.join()


def runnable():
    """How many threads run or want to."""
    with open('/proc/loadavg', encoding='ascii') as file:
        return int(file.read().split()[3].split('/')[0])
