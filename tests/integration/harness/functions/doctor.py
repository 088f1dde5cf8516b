"""leat_doctor, leat_recheck and leat_repair as leat doctor calls them."""
from ..queue import text

PAGE = 100


class Finding:
    """kind and the problem are text, the subject is bytes; tid is the task that must not be in the requeue
    stream."""

    def __init__(self, row):
        self.kind, self.subject = text(row[0]), row[1]
        self.detail, self.tid = row[2].decode(errors='replace'), text(row[3])

    @property
    def what(self):
        return self.kind, self.subject.decode(errors='replace')

    def __repr__(self):
        return f'{self.kind} {self.subject}: {self.detail}'


class Doctor:
    def __init__(self, queue):
        self.queue, self.cursor, self.in_go = queue, 'tids', set()

    def read_go(self):
        """Continues where it stopped."""
        while True:
            cursor, tids = self.queue.call('doctor', self.queue.group, self.cursor)
            self.cursor = text(cursor)
            if not tids:
                return
            self.in_go |= {text(tid) for tid in tids}

    def pages(self, start='start'):
        """Every row of every page, before the second check."""
        cursor = start
        while cursor:
            cursor, rows = self.queue.call('doctor', self.queue.group, cursor)
            yield [Finding(row) for row in rows]

    def second(self, function, findings):
        """The answers of leat_recheck or leat_repair."""
        args = [part for one in findings for part in (one.kind, one.subject, one.tid)]
        return [text(state) for state in self.queue.call(
            function, self.queue.group, self.cursor, *args)]

    def unproved(self):
        """All findings, apart from those that may be in the requeue stream."""
        self.read_go()
        return [one for page in self.pages() for one in page if one.tid not in self.in_go]

    def look(self):
        """All findings, after the second check."""
        found = self.unproved()
        self.read_go()
        found = [one for one in found if one.tid not in self.in_go]
        proved = [one for one in found if not one.tid]
        for one in found:
            if one.tid and self.second('recheck', [one]) == ['found']:
                proved.append(one)
        return proved

    def kinds(self):
        return sorted({one.kind for one in self.look()} - {'unbegun'})

    def repair(self, findings=None):
        """[(finding, answer)]; a repair that answers 'more' is repeated."""
        answers = []
        for one in self.look() if findings is None else findings:
            state = 'more'
            while state == 'more':
                [state] = self.second('repair', [one])
            answers.append((one, state))
        return answers
