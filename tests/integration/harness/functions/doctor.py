"""leat_doctor, leat_recheck and leat_repair as leat doctor calls them."""
from ..queue import text

PAGE = 100


class Finding:
    """kind and what is wrong are text, the subject is bytes; tid: the task that must not be in go."""

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
        """Goes on where it stopped."""
        while True:
            cursor, tids = self.queue.call('doctor', self.queue.group, self.cursor)
            self.cursor = text(cursor)
            if not tids:
                return
            self.in_go |= {text(tid) for tid in tids}

    def pages(self, start='start'):
        """Every row of every page, unproved."""
        cursor = start
        while cursor:
            cursor, rows = self.queue.call('doctor', self.queue.group, cursor)
            yield [Finding(row) for row in rows]

    def second(self, function, findings):
        """leat_recheck's or leat_repair's answers."""
        args = [part for one in findings for part in (one.kind, one.subject, one.tid)]
        return [text(state) for state in self.queue.call(
            function, self.queue.group, self.cursor, *args)]

    def suspects(self):
        """All that is found but for what may be in go."""
        self.read_go()
        return [one for page in self.pages() for one in page if one.tid not in self.in_go]

    def look(self):
        """What is found, looked at twice."""
        found = self.suspects()
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
        """[(finding, answer)]; what answers 'more' is said again."""
        answers = []
        for one in self.look() if findings is None else findings:
            state = 'more'
            while state == 'more':
                [state] = self.second('repair', [one])
            answers.append((one, state))
        return answers
