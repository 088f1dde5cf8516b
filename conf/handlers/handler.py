#!/usr/bin/python3
"""A resident process for leat, to copy. RESIDENT PROCESSES in leatd(8) has the rules.

[task]
command = exec /usr/local/bin/handler.py
resident = yes
batch_format = json
"""
import json
import os
import sys


def work(task):
    """Does one task. An exception is a failure, and its text is the reason."""
    payload = task['fields'].get('payload')
    if not payload:
        raise ValueError('there is no payload')
    print('attempt', task['attempt'], 'of', payload)


def main():
    report = os.fdopen(3, 'w', buffering=1)
    print('ready', file=report)
    for line in sys.stdin:  # until the end of the file
        task = json.loads(line)
        try:
            work(task)
            result = 'ok'
        except Exception as error:
            result = f'retry {error}'.replace('\n', ' ')[:500]
        sys.stdout.flush()  # before the report, so that it is this task's
        print(task['index'], result, file=report)


main()
