"""A round of tasks, or of batches, for a daemon with faults, and the outcome that is known at its end."""
from ..short_leases import is_empty
from ..tasks import letters


class Round:
    """trace is the file in which tasks record their runs; wanted is the number of expected successes."""

    def __init__(self, queue, trace, batch, wanted):
        self.queue, self.trace, self.batch, self.wanted = queue, trace, batch, wanted
        trace.unlink(missing_ok=True)
        queue.redis.delete(queue.dead)
        self.before = queue.counter('succeeded')

    @property
    def successes(self):
        return self.queue.counter('succeeded') - self.before

    def over(self):
        return is_empty(self.queue) and self.successes >= self.wanted

    def check_ends(self):
        """Each task is counted once; of single tasks, one is dead."""
        assert self.successes == self.wanted
        dead = [(letter.cause, letter.status, letter.attempts) for letter in letters(self.queue)]
        assert dead == ([] if self.batch else [('exit', '3', '2')])
