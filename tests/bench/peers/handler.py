"""A resident process that does nothing, as people would write it: handler.py [MS], which is how long its imports
take."""
import json
import os
import sys
import time

end = time.process_time() + int(sys.argv[1] if len(sys.argv) > 1 else 0) / 1000
while time.process_time() < end:
    pass


def work(task):
    """Does nothing."""


report = os.fdopen(3, 'w', buffering=1)
print('ready', file=report)
for line in sys.stdin:
    task = json.loads(line)
    try:
        work(task)
        result = 'ok'
    except Exception as error:
        result = f'retry {error}'
    print(task['index'], result, file=report)
