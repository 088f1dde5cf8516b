"""A terminal that a test can see and type into: tmux, with a server of its own."""
import os
import shlex
import socket
import subprocess

from . import processes
from .polling import PATIENCE_S, wait_until

CONFIG = """
set -g status off
set -g default-terminal screen
set -s escape-time 0
"""


class Tmux:
    """A command on a terminal of this size, with these variables. A shell runs it, and notes the settings of the
    terminal before and after it, and its exit status."""

    def __init__(self, folder, argv, columns=80, rows=24, **env):
        self.folder = folder
        self.folder.mkdir()
        self.socket = folder / 'socket'
        config = folder / 'config'
        config.write_text(CONFIG)
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(('LEAT_', 'TMUX')) and name != 'NO_COLOR'}
        self.environment = {**clean, 'LC_ALL': 'C.UTF-8'}
        self.server = processes.start(
            ['tmux', '-D', '-u', '-S', str(self.socket), '-f', str(config)], env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        wait_until(self.listens)
        words = shlex.join(['env', *(f'{name}={value}' for name, value in env.items()), *map(str, argv)])
        script = f'trap : INT QUIT; cd {folder}; stty -g >before; {words} 2>error; echo $? >status; ' \
                 'stty -g >after; echo "back in the shell"; exec cat'
        self.run('new-session', '-d', '-x', columns, '-y', rows, 'sh', '-c', script)

    def listens(self):
        """Whether the server takes connections: before that, a client would start another server."""
        with socket.socket(socket.AF_UNIX) as one:
            return one.connect_ex(str(self.socket)) == 0

    def run(self, *words):
        return subprocess.run(['tmux', '-u', '-S', str(self.socket), *map(str, words)], env=self.environment,
                              capture_output=True, text=True, timeout=4 * PATIENCE_S, check=True).stdout

    def tell(self, form):
        """What tmux knows of the terminal, such as #{alternate_on}."""
        return self.run('display-message', '-p', form).strip()

    def seen(self, colors=False):
        """The lines of the terminal, without blanks at their ends."""
        return self.run('capture-pane', '-p', *(['-e'] if colors else []))

    def press(self, *keys):
        """Keys by their names in tmux, or text."""
        self.run('send-keys', *keys)
        return self

    def resize(self, columns, rows):
        self.run('resize-window', '-x', columns, '-y', rows)

    def wait(self, *texts):
        """Waits until the terminal has all of these; returns what it shows."""
        wait_until(lambda: all(text in self.seen() for text in texts), message=lambda: f'{texts}:\n{self.seen()}')
        return self.seen()

    def wait_not(self, text):
        wait_until(lambda: text not in self.seen(), message=lambda: f'still {text}:\n{self.seen()}')

    def rows(self, title):
        """The words of each line below the line of titles that begins with this one."""
        lines = self.seen().splitlines()
        at = [number for number, line in enumerate(lines) if line.startswith(title)]
        return [line.split() for line in lines[at[0] + 1:] if line.strip()][:-1] if at else []

    def wait_rows(self, title, condition):
        """Waits until condition(rows) is true of these rows: the terminal may show a page that is half drawn."""
        def there():
            rows = self.rows(title)
            return rows and condition(rows)
        wait_until(there, message=self.seen)

    def ended(self):
        """The exit status of the command and its errors, when the shell goes on."""
        wait_until(lambda: (self.folder / 'after').exists() and 'back in the shell' in self.seen(),
                   message=self.seen)
        return int((self.folder / 'status').read_text()), (self.folder / 'error').read_text()

    def close(self):
        processes.end(self.server)
