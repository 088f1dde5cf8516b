"""The parts of a run: a redis-server, a proxy for each worker, workers, and a check of what is left of them."""
import contextlib
import datetime
import os
import re
import signal
import sys
import time
from pathlib import Path

from faults import LEASE_S, OF_HANDLERS, OF_LINKS, WORKERS
from forks import Forks
from harness import processes
from harness.daemon import BUILD, Daemon, merged
from harness.polling import PATIENCE_S, wait_until
from harness.queue import Queue, text, trailer
from harness.short_leases import SHORT
from history import now_ns
from hosts import Host, Link
from servers import Servers
from services import Service
from starvation import Starvation
from witness import Witness
from workload import PERMANENT, mark

MAX_ATTEMPTS, MAX_CRASHES = 3, 3
HISTORY = 100000  # tasks; after more, the history is not checked
RESTART_S = 0.2
DRAIN_S = 2 * LEASE_S  # long enough for a lease to expire that is not renewed meanwhile
ABROAD = 2  # this worker starts on another host each time, where it finds no proof that the last one is dead
REPLICATED = {'redis-failover', 'redis-failover-loss'}
OF_SERVER_HOST = (*OF_LINKS, *REPLICATED, 'redis-disk-full')
TASK = BUILD / 'tests' / 'chaos' / 'task'
HANDLER = TASK.with_name('handler')
TIMEOUT_S = 8  # of tasks of resident processes
# how they are used, by each worker
RESIDENT = ({'batch': 1, 'resident_tasks': 50}, {'batch': 4, 'resident_age': '5s'},
            {'batch': 1, 'resident_idle': '300ms'})
MOST_IN_HAND = max(keys['batch'] for keys in RESIDENT)
RESIDENT_FILES = 12  # descriptors for each slot, of two processes
OUTPUT = re.compile(r'written for (\S+) by (\d+)\. \((?:task=(\S+)|handler=\d+) ')
STOPPED = re.compile(r'^(\S+) .*task (\S+): attempt \d+ released: .* cause=shutdown ', re.M)


def descriptors(pid):
    with contextlib.suppress(OSError):
        return len(os.listdir(f'/proc/{pid}/fd'))
    return 0


class Rig:
    """The processes of a run, in hosts of their own if faults need them."""

    def __init__(self, folder, writer, witnesses, slots, kinds=()):
        """witnesses: a writer for each proxy; slots: of each worker; kinds: the faults of the run."""
        self.folder, self._writer, self._slots = folder, writer, slots
        self.trace = folder / 'history-tasks'
        self.resident = bool(set(kinds) & set(OF_HANDLERS))
        self.hosts, self.links, self.ways, self.forks, self.server = [], [], [], [], None
        self.workers, self.services = [], []
        try:
            self._build(witnesses, set(kinds))
        except BaseException:
            self.close()
            raise

    def _build(self, witnesses, kinds):
        if kinds & set(OF_SERVER_HOST):
            self.hosts.append(Host('server'))
        if kinds & set(OF_LINKS):
            for w in range(WORKERS):
                self.hosts.append(Host(f'worker{w}'))
                self.links.append(Link(self.hosts[0], self.hosts[-1], w))
        if 'no-fork' in kinds:
            self.forks = [Forks(w) for w in range(WORKERS)]
        self.server = Servers(self.folder, self.hosts[0] if self.hosts else None,
                              replica=bool(REPLICATED & kinds), disk='redis-disk-full' in kinds)
        self.admin = self.server.client()
        self.queue = Queue(self.admin, 'chaos').load()
        self.ways = [Witness(self.folder / f'way-{w}.sock', self.server.socket, w, witnesses[w],
                             self.links[w] if self.links else None).start() for w in range(WORKERS)]
        self.workers = [self._worker(w) for w in range(WORKERS)]
        self.services = [Service(worker, w, self.folder, self._writer) for w, worker in enumerate(self.workers)]
        self._abroad, self.starvation = 0, Starvation(self._writer)
        self._held, self._down_since, self._first = set(), {}, {}
        for w in range(WORKERS):
            self._start(w)
        for worker in self.workers:
            worker.wait_ready()

    def _worker(self, w):
        worker = Daemon(self.folder, w, self._sections(w))
        if self.forks:
            worker.prefix += self.forks[w].prefix()
        if self.links:
            worker.prefix += self.links[w].worker.prefix()
            worker.env['RUNTIME_DIRECTORY'] = str(self.folder / f'state-of-{w}')
        return worker

    def follow(self):
        """All clients find the new master; remaining connections to the old one are cut."""
        self.server.follow()
        for way in self.ways:
            way.cut()

    def _sections(self, w):
        return merged(SHORT, {
            'redis': {'connect_timeout': '1s', 'command_timeout': '1s', **self.ways[w].way()},
            'queue': {'name': 'chaos', 'lease': f'{LEASE_S:g}s', 'concurrency': self._slots,
                      'max_crashes': MAX_CRASHES, 'history': HISTORY},
            'task': self._task(w),
            'output': {'max_output': '1M', 'at_max': 'kill'} if self.resident else {},
            'retry': {'base': '200ms', 'max_attempts': MAX_ATTEMPTS, 'permanent': PERMANENT},
            'shutdown': {'drain': f'{DRAIN_S:g}s'},
            'log': {'started': 'yes', 'target': 'stderr'}})

    def _task(self, w):
        if not self.resident:
            return {'command': f'exec {TASK} {self.trace}'}
        return {'command': f'exec {HANDLER} {self.trace}', 'resident': 'yes', 'batch_format': 'json',
                'timeout': f'{TIMEOUT_S}s', **RESIDENT[w]}

    # ---- workers

    def _start(self, w):
        worker = self.workers[w]
        if w == ABROAD:
            self._abroad += 1
            worker.env['RUNTIME_DIRECTORY'] = str(self.folder / f'state-{self._abroad}')
        self.services[w].start()

    def is_up(self, w):
        worker = self.workers[w]
        return w not in self._held and worker.running() and worker.pid in self._first

    def hold(self, w):
        """The worker is not started again until release()."""
        self._held.add(w)

    def release(self, w):
        self._held.discard(w)

    def kill_guard(self, w, share):
        guards = self.services[w].guards()
        if guards:
            processes.send(guards[int(share * len(guards))], signal.SIGKILL)

    def handlers(self, w):
        """The pids of its resident processes."""
        return [pid for pid, parent in self._task_processes() if parent == self.workers[w].pid]

    def signal_handler(self, w, share, number):
        """Returns the pid, or None if there is none."""
        pids = self.handlers(w)
        if not pids:
            return None
        pid = pids[int(share * len(pids))]
        own = [word[10:] for word in processes.arguments(pid, 'environ') if word.startswith('LEAT_TASK=')]
        self._writer.say('hit', w=w, pid=pid, kills=number == signal.SIGKILL, task=own[0] if own else '')
        processes.send(pid, number)
        return pid

    def supervise(self, elapsed):
        """Restarts workers that have ended, follows upgrades, and reaps orphans of killed daemons."""
        self.starvation.look([(pid, -1) for pid in self.server.pids()] +
                             [(pid, w) for w, service in enumerate(self.services) for pid in service.pids()])
        for w, (worker, service) in enumerate(zip(self.workers, self.services)):
            process, runs = worker.process, worker.running()  # one that was replaced has said so before it ends
            self._follow(w)
            if runs or worker.process is not process:
                if worker.pid not in self._first and 'ready' in worker.log():
                    self._first[worker.pid] = descriptors(worker.pid)
                service.turn(self.is_up(w))
                continue
            if w not in self._down_since:
                self._down_since[w] = elapsed
                self._writer.say('down', w=w, pid=worker.pid, status=worker.process.returncode)
                service.main_has_ended()
            if w not in self._held and elapsed >= self._down_since[w] + RESTART_S:
                del self._down_since[w]
                self._start(w)
        self._reap()

    def _follow(self, w):
        """A process that replaces another one must not hold more descriptors in the end."""
        for former, new in self.services[w].follow():
            if former in self._first:
                self._first[new] = self._first[former]
        self.services[w].bury()

    def _reap(self):
        own = {host.pid for host in self.hosts} | self.server.pids()
        own = own.union(*(service.pids() for service in self.services))
        with contextlib.suppress(ChildProcessError):
            while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if found.si_pid in own:
                    break
                os.waitpid(found.si_pid, os.WNOHANG)

    def all_up(self):
        return all(self.is_up(w) for w in range(WORKERS))

    # ---- the end

    def _task_processes(self):
        """[(pid, its parent's)] of the processes of tasks of this run."""
        programs = [[str(program), str(self.trace)] for program in (TASK, HANDLER)]
        for name in filter(str.isdigit, os.listdir('/proc')):
            if processes.arguments(name)[:2] in programs and processes.alive(int(name)):
                with contextlib.suppress(OSError):
                    stat = Path(f'/proc/{name}/stat').read_text()
                    yield int(name), int(stat.rsplit(')', 1)[1].split()[1])

    def orphans(self):
        """Processes of tasks that are left. Resident processes of workers that run are none."""
        parents = {pid for service in self.services for pid in service.pids() if self.resident}
        return [pid for pid, parent in self._task_processes() if parent not in parents]

    def zombies(self):
        found = []
        parents = set().union(*(service.pids() for service in self.services))
        for name in filter(str.isdigit, os.listdir('/proc')):
            with contextlib.suppress(OSError):
                state, parent = Path(f'/proc/{name}/stat').read_text().rsplit(')', 1)[1].split()[:2]
                if state == 'Z' and int(parent) in parents:
                    found.append(int(name))
        return found

    def _settled(self, what):
        """What still exists after a lease has passed."""
        with contextlib.suppress(AssertionError):
            self._wait(lambda: not what(), LEASE_S)
        return what()

    def _wait(self, condition, *options):
        """Reads notifications meanwhile: workers wait if nobody does."""
        def holds():
            for w in range(WORKERS):
                self._follow(w)
            return condition()
        wait_until(holds, *options)

    def final(self):
        """The final event; workers still run."""
        queue, letters, dead = self.queue, [], set()
        for _, flat in queue.entries('dead'):
            own = trailer(flat)
            fields = dict(zip(flat[::2], flat[1::2]))
            dead.add(own.get('leat.tid'))
            letters.append({
                'n': int(fields.get(b'N', -1)), 'cause': own.get('leat.cause', ''),
                'attempts': int(own.get('leat.attempts', 0)), 'crashes': int(own.get('leat.crashes', 0)),
                'payload': mark(fields.get(b'payload', b'').decode()), 'died_ms': int(own.get('leat.died', 0))})
        redis = self.admin
        left = {'stream': redis.xlen(queue.stream), 'go': redis.xlen(queue.go),
                'waiting': redis.hlen(queue.waiting), 'delayed': redis.zcard(queue.delayed),
                'running': redis.hlen(queue.running), 'lanes': redis.zcard(queue.laned),
                'pending': len(queue.pending()), 'cancel': redis.scard(queue.cancel),
                'index': len(set(queue.index()) ^ dead)}
        stats = {name.decode('latin-1'): int(value) for name, value in redis.hgetall(queue.stats).items()
                 if value.lstrip(b'-').isdigit()}
        ended = [[text(row['tid']), text(row['outcome'])] for row in queue.list('done')]
        more = RESIDENT_FILES * self._slots if self.resident else 0
        self._writer.say(
            'final', left=left, dead=letters, names=len(queue.held()), stats=stats,
            **({'ended': ended} if len(ended) < HISTORY else {}),
            orphans=self._settled(self.orphans), zombies=self._settled(self.zombies),
            descriptors=[[w, self._first[worker.pid] + more, descriptors(worker.pid)]
                         for w, worker in enumerate(self.workers) if worker.pid in self._first])

    def stop(self):
        """Each worker is asked to stop, with nothing left to do."""
        for w, worker in enumerate(self.workers):
            self._writer.say('fault', id=-1 - w, kind='term', w=w)
            worker.terminate()
        try:
            self._wait(lambda: not any(service.living() for service in self.services), PATIENCE_S, self._told)
        except AssertionError as stuck:
            print(f'killing what has not stopped: {stuck}', file=sys.stderr)
            self._kill_all()  # the checker sees that they were killed, and not by a fault
        for w, worker in enumerate(self.workers):
            self._writer.say('down', w=w, pid=worker.pid, status=worker.process.returncode)
        self._writer.say('stopped', processes=self._settled(self.orphans))
        for w, worker in enumerate(self.workers):
            self._read_log(w, worker.log(whole=True))

    def _read_log(self, w, log):
        for said, fence, named in set(OUTPUT.findall(log)):
            self._writer.say('output', w=w, said=said, fence=int(fence), named=named)
        since = time.time_ns() - now_ns()
        for at, tid in STOPPED.findall(log):
            at_ns = round(datetime.datetime.fromisoformat(at).timestamp() * 1e9)
            self._writer.say('returned', at=at_ns - since, w=w, tid=tid)

    def _kill_all(self):
        for one in [process for service in self.services for process in service.living()]:
            one.send_signal(signal.SIGKILL)
            one.wait()

    def _told(self):
        return [f'{worker.told()}: {worker.log()[-1000:]}' for worker in self.workers]

    def meta(self, late_s):
        wall = int(self.queue.now()) * 10 ** 6 - now_ns()
        self._writer.say(
            'meta', lease_ns=int(LEASE_S * 1e9), late_ns=int(late_s * 1e9), max_attempts=MAX_ATTEMPTS,
            max_crashes=MAX_CRASHES, permanent=PERMANENT, workers=WORKERS, wall_ns=wall,
            slots=self._slots * (MOST_IN_HAND if self.resident else 1),
            alone=[w for w, keys in enumerate(RESIDENT) if keys['batch'] == 1] if self.resident else [],
            timeout_ns=int(TIMEOUT_S * 1e9) if self.resident else 0)

    def logs(self, text, most=30):
        """The lines of the daemons' logs with this text."""
        found = []
        for worker in self.workers:
            lines = [line for line in worker.log(whole=True).splitlines() if text in line]
            found += [f'{worker.log_path.name}: {line}' for line in lines[:most]]
        return found

    def hand_overs(self):
        return [ms for service in self.services for ms in service.hand_overs()]

    def close(self):
        for service in self.services:
            service.close()
        for way in self.ways:
            way.close()
        if self.server:
            self.server.close()
        for host in self.hosts:
            host.close()
        processes.end_orphans()
        for forks in self.forks:
            forks.close()
