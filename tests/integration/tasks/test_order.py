"""With one slot, tasks run in the order in which they came, also while the worker claims ahead."""
import pytest

from harness.tasks import wait_succeeded

pytestmark = pytest.mark.usefixtures('quick_tasks')

SLOW = 'if [ $((item % 50)) = 0 ]; then sleep 0.04; fi; '


@pytest.mark.parametrize('slow', ['', SLOW])
def test_one_slot_keeps_the_order(daemon, client, queue, folder, slow):
    """A task that was claimed ahead and waits too long for the slot is requeued, and still runs before later
    tasks."""
    output, total = folder / 'output', 600
    command = f'read -r item; {slow}echo "$item" >> {output}'
    pipeline = client.pipeline(transaction=False)
    for number in range(total):
        pipeline.xadd(queue.stream, {'payload': str(number)})
    pipeline.execute()
    worker = daemon({'queue': {'concurrency': 1}, 'task': {'command': command}}).wait_ready()
    wait_succeeded(queue, total, 60.0)
    ran = [int(line) for line in output.read_text().split()]
    assert ran == list(range(total)), [pair for pair in zip(ran, ran[1:]) if pair[1] < pair[0]]
    assert worker.running()
