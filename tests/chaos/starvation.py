"""Starvation by the machine itself: processes that got no processor for so long that leases may have expired.
The kernel counts the time; it becomes a fault in the history, kind `starved`."""
from history import now_ns

LOOK_NS = 200_000_000
MOST_NS = 400_000_000  # waiting for a processor between two checks; shorter waits explain nothing


def waited_ns(pid):
    """How long the process wanted to run and could not; 0 if it is gone."""
    try:
        with open(f'/proc/{pid}/schedstat', encoding='ascii') as file:
            return int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        return 0


class Starvation:
    def __init__(self, writer):
        self._writer, self._looked, self._waited, self.count = writer, now_ns(), {}, 0

    def look(self, watched):
        """watched: [(pid, w)]; w -1 is a process that all depend on. The check itself may be late, and then
        all may be."""
        now = now_ns()
        if now < self._looked + LOOK_NS:
            return
        late = now - self._looked - LOOK_NS
        hungry = {-1: late} if late > MOST_NS else {}
        for pid, w in watched:
            total = waited_ns(pid)
            waited = total - self._waited.get(pid, total)
            if waited > MOST_NS:
                hungry[w] = max(waited, hungry.get(w, 0))
            self._waited[pid] = total
        for w, waited in hungry.items():
            # the kernel counts a wait at its end, so it may have begun long before the last check
            self.count += 1
            self._writer.say('fault', at=self._looked - waited, id=f'starved {self.count}', kind='starved', w=w)
            self._writer.say('healed', at=now, id=f'starved {self.count}')
        self._looked = now
