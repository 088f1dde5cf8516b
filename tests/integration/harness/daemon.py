"""The real leatd and leat, each with a configuration file of its own."""
import os
import re
import signal
import subprocess
from pathlib import Path

from . import processes
from .polling import PATIENCE_S, wait_until

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / os.environ.get('LEAT_BUILD', 'build')


def program(name, build=BUILD):
    path = build / name
    if not path.exists():
        raise FileNotFoundError(f'{path}: build it first, or set LEAT_BUILD')
    return str(path)


def write_config(path, sections):
    """sections: {section: {key: value}}; a value of None leaves the key out, a list repeats it."""
    lines = []
    for section, values in sections.items():
        lines.append(f'[{section}]')
        for key, value in values.items():
            several = value if isinstance(value, list) else [value]
            lines += [f'{key} = {one}' for one in several if one is not None]
    path.write_text('\n'.join(lines) + '\n')
    return path


def merged(*parts):
    """Later sections add to and override earlier ones key by key."""
    result = {}
    for part in parts:
        for section, values in (part or {}).items():
            result.setdefault(section, {}).update(values)
    return result


def is_sanitized():
    """AddressSanitizer keeps freed memory for a while, so that sizes mean nothing."""
    return b'__asan_init' in Path(program('leatd')).read_bytes()


class Daemon:
    """A leatd that runs, or has run."""

    def __init__(self, folder, number, sections, argv=(), env=None):
        self.config_path = write_config(folder / f'leatd-{number}.ini', sections)
        self.log_path = folder / f'leatd-{number}.log'
        self.sections = sections
        self.source = ['-c', str(self.config_path)]  # the options that name its configuration
        self.program = program('leatd')
        self.argv = list(argv)
        # workers of one host share this folder, but not with those of another test
        self.env = dict(os.environ, RUNTIME_DIRECTORY=str(folder / 'state'), **(env or {}))
        self.env.pop('NOTIFY_SOCKET', None)
        self.env.update(env or {})
        self.prefix = []  # a program that executes it in an environment of the test's making
        self.popen = {}  # further options of subprocess.Popen, for state that the daemon inherits
        self.process = None
        self.log_start = 0

    def start(self):
        self.log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
        with open(self.log_path, 'ab') as log:
            options = dict(stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env, cwd='/')
            self.process = processes.start(
                [*self.prefix, self.program, *self.source, *self.argv],
                **dict(options, **self.popen))
        return self

    @property
    def pid(self):
        return self.process.pid

    def log(self, whole=False):
        """The log of this run; with whole, of all runs."""
        if not self.log_path.exists():
            return ''
        data = self.log_path.read_bytes()
        return data[0 if whole else self.log_start:].decode(errors='replace')

    def wait_log(self, text, timeout=PATIENCE_S):
        def there():
            if text in self.log():
                return True
            self._must_run(text)
            return False
        wait_until(there, timeout, lambda: f'leatd logs {text!r}; its log:\n{self.log()}')
        return self

    def wait_ready(self, timeout=PATIENCE_S):
        return self.wait_log('ready', timeout)

    def _must_run(self, wanted):
        if self.process.poll() is not None and wanted not in self.log():
            raise AssertionError(
                f'leatd ended with {self.process.returncode} before {wanted!r}:\n{self.log()}')

    def running(self):
        return self.process.poll() is None

    def listens(self):
        """Whether it handles signals, by a descriptor or a handler: then its parts exist."""
        with open(f'/proc/{self.pid}/status', encoding='ascii', errors='replace') as file:
            masks = re.findall(r'^Sig(?:Blk|Cgt):\s+([0-9a-f]+)$', file.read(), re.M)
        return any(int(mask, 16) >> (signal.SIGTERM - 1) & 1 for mask in masks)

    def told(self):
        """Whether it runs, and the state of it and all processes below."""
        return processes.told(self.process) if self.process else 'never started'

    def signal(self, number):
        self.process.send_signal(number)

    def terminate(self):
        self.signal(signal.SIGTERM)

    def reload(self):
        self.signal(signal.SIGHUP)

    def kill9(self):
        """Kills the daemon alone; the test, or the clean-up, ends its other processes."""
        self.signal(signal.SIGKILL)
        self.process.wait()

    def kill_guards(self):
        """Kills the guards, and returns when they are dead and hold no lock."""
        guards = self.guards()
        for pid in guards:
            processes.send(pid, signal.SIGKILL)
        wait_until(lambda: not any(map(processes.alive, guards)), message='guards die')

    def kill9_unguarded(self):
        """Kills the daemon and its guards at once, so that no process ends the tasks."""
        self.stop()
        self.kill_guards()
        self.kill9()

    def stop(self):
        self.signal(signal.SIGSTOP)

    def cont(self):
        self.signal(signal.SIGCONT)

    def wait_exit(self, timeout=PATIENCE_S):
        """The exit status: negative for a signal."""
        wait_until(lambda: self.process.poll() is not None, timeout,
                   lambda: 'leatd ends; its log:\n' + self.log())
        return self.process.returncode

    def descendants(self):
        """The processes below it, without its guards."""
        guards = self.guards()
        return [pid for pid in self._below() if pid not in guards]

    def guards(self):
        """Process ids of its guards, in the order of their numbers."""
        named = [pid for pid in self._below() if processes.name(pid) == 'leat-guard']
        return sorted(named, key=lambda pid: processes.arguments(pid)[-1:])

    def _below(self):
        """Empty after the daemon has ended, because its pid may belong to another process."""
        return processes.descendants(self.pid) if self.running() else []

    def close(self):
        if self.process:
            processes.end(self.process)


def run_leat(config_path, *args, input=None, stdin=subprocess.DEVNULL, timeout=4 * PATIENCE_S, env=None,
             build=BUILD):
    """Runs leat -c FILE ARGS…; stdout and stderr are text if input is text or None, otherwise bytes."""
    text = not isinstance(input, (bytes, bytearray))
    stdin = {'input': input} if input is not None else {'stdin': stdin}
    return subprocess.run(
        [program('leat', build), '-c', str(config_path), *map(str, args)], capture_output=True, text=text,
        timeout=timeout, env=dict(os.environ, **(env or {})), check=False, **stdin)
