"""Waiting for a condition, never for a time."""
import time

STEP_S = 0.005


def wait_until(condition, timeout=10.0, message=None):
    """Polls until condition() is true and returns what it returned; fails the test at the deadline.

    message may be text or a function that says what is there instead.
    """
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            text = message() if callable(message) else message
            raise AssertionError(f'not within {timeout} s: {text or condition}')
        time.sleep(STEP_S)
