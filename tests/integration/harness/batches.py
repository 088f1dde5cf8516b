"""Batches: their configuration, and what their processes have read."""
from .tasks import environment


def batched(command, batch=10, wait='0', form='lines', **task):
    """Sections of a config with batches."""
    return {'task': {'command': command, 'batch': batch, 'batch_wait': wait, 'batch_format': form,
                     **task}}


class Seen:
    """The input of each process: a file each, named by the size of its batch (0: no batch), and a file with these
    names in order of time. (Times of files are too coarse for that.)"""

    def __init__(self, folder):
        self.folder = folder / 'seen'
        self.folder.mkdir()

    def command(self, then='exit 0'):
        return (f'f={self.folder}/${{LEAT_BATCH:-0}}-$$; cat > $f.new; env -0 > $f.env;'
                f' echo ${{f##*/}} >> {self.folder}/order; mv $f.new $f.txt; {then}')

    def all(self):
        """[(size of the batch, input)], in order of time."""
        order = self.folder / 'order'
        names = order.read_text().split('\n')[:-1] if order.exists() else []
        found = [path for path in (self.folder / f'{name}.txt' for name in names) if path.exists()]
        return [(int(path.name.split('-')[0]), path.read_bytes()) for path in found]

    def environments(self):
        return [environment(path.with_suffix('.env')) for path in self.folder.glob('*.txt')]


def add(queue, *payloads, **fields):
    """Adds tasks with these payloads at once. Returns their tids."""
    return queue.add(*[{'payload': payload, **fields} for payload in payloads])


def numbers(count):
    return [str(number) for number in range(1, count + 1)]
