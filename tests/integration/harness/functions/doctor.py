"""leat_doctor and leat_repair as leat doctor calls them."""
from ..queue import text

PAGE = 100


class Finding:
    """kind and the problem are text, the subject is bytes."""

    def __init__(self, row):
        self.kind, self.subject = text(row[0]), row[1]
        self.detail = row[2].decode(errors='replace')

    @property
    def what(self):
        return self.kind, self.subject.decode(errors='replace')

    def __repr__(self):
        return f'{self.kind} {self.subject}: {self.detail}'


class Doctor:
    def __init__(self, queue):
        self.queue = queue

    def pages(self, start='start'):
        cursor = start
        while cursor:
            cursor, rows = self.queue.call('doctor', self.queue.group, cursor)
            yield [Finding(row) for row in rows]

    def second(self, findings):
        """The answers of leat_repair."""
        args = [part for one in findings for part in (one.kind, one.subject, '')]
        return [text(state) for state in self.queue.call('repair', self.queue.group, '', *args)]

    def look(self):
        """All findings."""
        return [one for page in self.pages() for one in page]

    def kinds(self):
        return sorted({one.kind for one in self.look()} - {'unbegun'})

    def repair(self, findings=None):
        """[(finding, answer)]; a repair that answers 'more' is repeated."""
        answers = []
        for one in self.look() if findings is None else findings:
            state = 'more'
            while state == 'more':
                [state] = self.second([one])
            answers.append((one, state))
        return answers
