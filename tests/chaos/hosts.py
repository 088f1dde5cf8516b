"""Hosts of a run: network, name and mount namespaces, held by a process that ends with us; links between the
hosts, and cuts of the links. Needs root, nsenter, ip and nft."""
import ctypes
import os
import shutil
import subprocess

from harness import processes

CLONE_NEWNET = 0x40000000
PROGRAMS = ('unshare', 'nsenter', 'ip', 'nft', 'mount')
HOLD = 'echo "$1" >/proc/sys/kernel/hostname && ip link set lo up && echo up && exec cat'
FULL_TRIES, FULL_ROOM = 20, 65536  # room: bytes that may be written while a disk is made small
UNREACHABLE = 'reject with icmp type host-unreachable'
RESET = 'meta l4proto tcp reject with tcp reset'


class NotHere(Exception):
    """This machine does not allow it, for the given reason."""


class Host:
    def __init__(self, name):
        if os.geteuid() != 0:
            raise NotHere('needs root')
        for program in PROGRAMS:
            if not shutil.which(program):
                raise NotHere(f'{program} is not installed')
        # cat ends when our end of its stdin is closed, however we end, and the namespaces end with it
        self.process = processes.start(
            ['unshare', '--net', '--uts', '--mount', '--propagation', 'private', 'sh', '-c', HOLD, 'sh', name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = self.process.stdout.readline().decode().strip()
        if said != 'up':
            self.close()
            raise NotHere(f'no namespaces: {said}')

    @property
    def pid(self):
        return self.process.pid

    def prefix(self, mounts=False):
        """Words before a program that runs there. Without mounts it sees our files. With them it has that host's
        root folder, which is not the one of its mounts if we run in a chroot."""
        return ['nsenter', '-t', str(self.pid), '-n', '-u', *(['-m', '-r'] if mounts else []), '--']

    def run(self, *argv, text=None):
        """Runs a program there; returns its output."""
        done = subprocess.run([*self.prefix(mounts=True), *map(str, argv)], input=text, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              **({} if text else {'stdin': subprocess.DEVNULL}))
        if done.returncode != 0:
            raise NotHere(f'{argv[0]}: {done.stdout.strip()}')
        return done.stdout

    def enter(self):
        """Makes the calling thread create its sockets in this host's network from now on."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f'/proc/{self.pid}/ns/net', 'rb') as file:
            if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), 'setns')

    # ---- disks

    def mount(self, path, size):
        self.run('mount', '-t', 'tmpfs', '-o', f'size={size}', 'leat-chaos', path)

    def fill(self, path):
        """Keeps the data, and leaves room for hardly anything more."""
        for left in reversed(range(FULL_TRIES)):
            about = os.statvfs(f'/proc/{self.pid}/root{path}')
            used = (about.f_blocks - about.f_bfree) * about.f_frsize
            try:
                self.resize(path, used + FULL_ROOM)
                return
            except NotHere:
                if not left:
                    raise

    def resize(self, path, size):
        self.run('mount', '-o', f'remount,size={size}', path)

    # ---- the network

    def reject(self, name, interface, how='drop'):
        """Packets that arrive there are dropped, or answered as `how` says, until accept(name)."""
        self.run('nft', '-f', '-', text=f'table ip {name} {{ chain input {{ type filter hook input priority 0; '
                                        f'iifname "{interface}" {how}; }}; }}\n')

    def accept(self, name):
        self.run('nft', 'delete', 'table', 'ip', name)

    def link(self, interface, up):
        self.run('ip', 'link', 'set', interface, 'up' if up else 'down')

    def close(self):
        processes.end(self.process)
        self.process.stdin.close()
        self.process.stdout.close()


class Link:
    """The link between the server's host and the one of worker w."""

    def __init__(self, server, worker, w):
        self.server, self.worker = server, worker
        self.at_server, self.at_worker = f'worker{w}', 'server'
        self.address = f'10.77.{w}.1'
        server.run('ip', 'link', 'add', self.at_server, 'type', 'veth', 'peer', 'name', self.at_worker,
                   'netns', worker.pid)
        for host, interface, last in (server, self.at_server, 1), (worker, self.at_worker, 2):
            host.run('ip', 'address', 'add', f'10.77.{w}.{last}/24', 'dev', interface)
            host.link(interface, True)

    def cut(self, name, to_server=True, to_worker=False, how='drop'):
        """Packets in these directions are lost, or answered by the receiver."""
        if to_server:
            self.server.reject(f'{name}_{self.at_server}', self.at_server, how)
        if to_worker:
            self.worker.reject(name, self.at_worker, how)

    def join(self, name, to_server=True, to_worker=False):
        if to_server:
            self.server.accept(f'{name}_{self.at_server}')
        if to_worker:
            self.worker.accept(name)


def why_not():
    """Why no hosts can be made here, or ''."""
    made = []
    try:
        for name in 'server', 'worker':
            made.append(Host(name))
        Link(*made, 0).cut('probe')
        made[0].mount('/mnt', '1m')
    except NotHere as error:
        return str(error)
    finally:
        for host in made:
            host.close()
    return ''
