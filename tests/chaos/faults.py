"""Faults, each a step that begins it and one that ends it; the plan of a run comes from its seed alone."""
import contextlib
import signal

import redis

from harness import processes
from hosts import RESET, UNREACHABLE
from services import BROKEN

LEASE_S = 2.0
WORKERS = 3

# kind → duration, in seconds
OF_WORKERS = {'kill': (0, 1), 'stop': (0.1, 3 * LEASE_S), 'term': (0, 0.1), 'guard': (0, 0.1),
              'guard-kill': (0, 1), 'no-fork': (0.1, LEASE_S)}
OF_WAYS = {'cut': (0, 0.1), 'half-open': (0.1, 3 * LEASE_S), 'deaf': (0.1, 3 * LEASE_S),
           'mute': (0.1, 3 * LEASE_S), 'refuse': (0.1, 3 * LEASE_S), 'delay': (0.5, 3),
           'drop-reply': (0.5, 2), 'drop-command': (0.5, 2)}
OF_REDIS = {'redis-kill': (0, 1.5 * LEASE_S), 'redis-stop': (0.1, 1.5 * LEASE_S), 'redis-flush': (0, 0.1),
            'redis-group': (0, 0.1), 'redis-oom': (0.1, 1), 'redis-readonly': (0.1, 1),
            'redis-outage': (1.1 * LEASE_S, 2 * LEASE_S), 'redis-forgets': (0.05, LEASE_S),
            'redis-noreplicas': (0.1, 1), 'redis-failover': (0.1, LEASE_S), 'redis-failover-loss': (0.1, LEASE_S),
            'redis-disk-full': (0.1, LEASE_S)}
OF_ALL = {'pause': (1.1 * LEASE_S, 2 * LEASE_S)}
# of resident processes
OF_HANDLERS = {'handler-kill': (0, 0.1), 'handler-stop': (0.1, 3 * LEASE_S)}
# between hosts: each is equally likely to be shorter or longer than the lease
OF_LINKS = dict.fromkeys(('link-silent', 'link-lost-to', 'link-lost-from', 'link-reset', 'link-unreachable',
                          'link-down', 'link-flaps'), ((0.1, 0.9 * LEASE_S), (1.1 * LEASE_S, 3 * LEASE_S)))
# the duration is the time for which no other upgrade of that worker begins; other faults come meanwhile
OF_UPGRADES = {'upgrade': (0.1, 2), 'upgrade-broken': (0.1, 1), 'kill-in-upgrade': (0, 0.3),
               'elder-kill': (0, 0.1), 'elder-stop': (0.1, 3 * LEASE_S)}
KINDS = {**OF_WORKERS, **OF_WAYS, **OF_REDIS, **OF_ALL, **OF_HANDLERS, **OF_LINKS, **OF_UPGRADES}
GROUPS = {'all': [*OF_WORKERS, *OF_WAYS, *OF_REDIS, *OF_ALL], 'hosts': list(OF_LINKS),
          'upgrades': list(OF_UPGRADES), 'residents': list(OF_HANDLERS)}
OF_SERVER = 0.2   # share of link faults that affect all links, those of the server's host
FLAP_S = 0.3      # longest time for which a flapping link is up or down
OF_ELDERS = {'elder-kill', 'elder-stop'}  # these wait until there is one
PARTS = {'elder': OF_ELDERS, 'way': OF_WAYS, 'program': OF_UPGRADES, 'worker': {**OF_WORKERS, **OF_REDIS}}
CALLS = ('leat_claim', 'leat_finish', 'leat_renew', 'leat_register')


class Fault:
    def __init__(self, number, kind, at, randomly):
        self.number, self.kind, self.at = number, kind, at
        self.w = -1 if kind in OF_REDIS or kind in OF_ALL else randomly.randrange(WORKERS)
        span = KINDS[kind]
        self.name = kind
        if kind in OF_LINKS:
            longer = randomly.random() < 0.5
            span = span[longer]
            self.name += '/long' if longer else '/short'
            if randomly.random() < OF_SERVER:
                self.w = -1
        self.lasts = randomly.uniform(*span)
        self.call = randomly.choice(CALLS)
        self.share = randomly.random()
        self.until = self.began = None
        self.flips, self.is_down = 0, False

    def __repr__(self):
        return f'{self.name} of {"all" if self.w < 0 else self.w}, {self.lasts:.2f} s'


def plan(kinds, seconds, every, randomly):
    """[Fault] in the order of their begins. Upgrades are as frequent as all other faults together, and half of
    them are only that."""
    others = [kind for kind in kinds if kind not in OF_UPGRADES]
    upgrades = [kind for kind in kinds if kind in OF_UPGRADES]
    upgrades += [kind for kind in upgrades if kind == 'upgrade'] * len(upgrades[2:])
    found = _plan(others, seconds, every, randomly) + _plan(upgrades, seconds, every, randomly)
    for number, fault in enumerate(found, 1):
        fault.number = number
    return sorted(found, key=lambda fault: fault.at)


def _plan(kinds, seconds, every, randomly):
    found, at = [], 1.0
    while kinds and at < seconds:
        found.append(Fault(len(found) + 1, randomly.choice(kinds), at, randomly))
        at += randomly.uniform(0.2 * every, 1.8 * every)
    return found


class Chaos:
    """Carries out a plan on a rig; one fault at a time for each worker, its connection, and Redis."""

    def __init__(self, rig, faults, writer):
        self._rig, self._todo, self._writer = rig, list(faults), writer
        self._open = []
        self.done = {}  # name → how many began

    @staticmethod
    def _targets(fault):
        if fault.kind in OF_LINKS:
            return {('link', fault.number)}  # several at a time do not interfere
        if fault.kind in OF_HANDLERS:
            return {('handler', fault.number)}
        if fault.kind in OF_ALL:
            return {('worker', w) for w in range(WORKERS)}
        part = next(part for part, kinds in PARTS.items() if fault.kind in kinds)
        return {('redis', 0) if fault.w < 0 else (part, fault.w)}

    def _is_up(self, fault):
        """Whether the daemons are up that it is about."""
        return all(self._rig.is_up(w) for part, w in self._targets(fault) if part in ('worker', 'program'))

    def _has_target(self, fault):
        """Chooses the worker of faults of former processes."""
        if fault.kind in OF_ELDERS:
            there = [w for w, service in enumerate(self._rig.services) if service.elder(0)]
            fault.w = there[int(fault.share * len(there))] if there else -1
        return fault.w >= 0 or fault.kind not in OF_ELDERS

    def turn(self, elapsed):
        for fault in [one for one in self._open if one.until <= elapsed]:
            self._heal(fault)
        for fault in self._open:
            if fault.kind == 'link-flaps':
                self._flap(fault, elapsed)
        due = [fault for fault in self._todo if fault.at <= elapsed and self._has_target(fault)]
        for fault in due:
            self._todo.remove(fault)
            busy = set().union(*map(self._targets, self._open))
            if self._targets(fault) & busy or not self._is_up(fault):
                continue
            fault.until = elapsed + fault.lasts
            self._open.append(fault)
            self._writer.say('fault', id=fault.number, kind=fault.kind, w=fault.w)
            self.done[fault.name] = self.done.get(fault.name, 0) + 1
            self._begin(fault)

    def heal(self):
        """Ends all faults."""
        self._todo.clear()
        for service in self._rig.services:
            service.cancel()
        for fault in list(self._open):
            self._heal(fault)

    def _begin(self, fault):
        with contextlib.suppress(redis.exceptions.RedisError):
            getattr(self, '_' + fault.kind.replace('-', '_'))(fault, True)

    def _heal(self, fault):
        getattr(self, '_' + fault.kind.replace('-', '_'))(fault, False)
        self._open.remove(fault)
        self._writer.say('healed', id=fault.number)

    # ---- workers; the rig restarts a worker that is down at the end of a fault

    def _kill(self, fault, begins):
        if begins:
            self._rig.hold(fault.w)
            self._rig.workers[fault.w].kill9()
        else:
            self._rig.release(fault.w)

    def _stop(self, fault, begins):
        if begins:
            fault.began = self._rig.workers[fault.w].process  # which may be replaced meanwhile
        fault.began.send_signal(signal.SIGSTOP if begins else signal.SIGCONT)

    def _pause(self, _, begins):
        """All workers stop, as in a virtual machine that is paused."""
        for service in self._rig.services:
            for process in service.living():
                process.send_signal(signal.SIGSTOP if begins else signal.SIGCONT)

    def _term(self, fault, begins):
        if begins:
            self._rig.workers[fault.w].terminate()

    def _guard(self, fault, begins):
        """Kills one of its guards, because the others must go on."""
        if begins:
            self._rig.kill_guard(fault.w, fault.share)

    def _guard_kill(self, fault, begins):
        """Kills a guard, and at once the daemon."""
        self._guard(fault, begins)
        self._kill(fault, begins)

    def _no_fork(self, fault, begins):
        self._rig.forks[fault.w].allow(not begins)

    # ---- upgrades of workers

    def _upgrade(self, fault, begins):
        """In place, up to four times in a row; half of them to the next version, and back."""
        if begins:
            times = 1 + int(4 * fault.share)
            programs = ['next', 'same'] if fault.lasts > 1 else ['same']
            self._rig.services[fault.w].upgrade([programs[number % len(programs)] for number in range(times)])

    def _upgrade_broken(self, fault, begins):
        """To a program that does not work, which must change nothing."""
        if begins:
            self._rig.services[fault.w].upgrade([list(BROKEN)[int(fault.share * len(BROKEN))]])

    def _kill_in_upgrade(self, fault, begins):
        """A part of it dies at some time after the upgrade was asked for."""
        if begins:
            self._rig.services[fault.w].upgrade(['same'])
        else:
            self._rig.services[fault.w].kill_in_upgrade(fault.share)

    def _elder_kill(self, fault, begins):
        """A former process, which still has tasks."""
        elder = self._rig.services[fault.w].elder(fault.share)
        if begins and elder:
            elder.send_signal(signal.SIGKILL)

    def _elder_stop(self, fault, begins):
        if begins:
            fault.began = self._rig.services[fault.w].elder(fault.share)
        if fault.began:
            fault.began.send_signal(signal.SIGSTOP if begins else signal.SIGCONT)

    # ---- resident processes

    def _handler_kill(self, fault, begins):
        if begins:
            self._rig.signal_handler(fault.w, fault.share, signal.SIGKILL)

    def _handler_stop(self, fault, begins):
        if begins:
            fault.began = self._rig.signal_handler(fault.w, fault.share, signal.SIGSTOP)
        elif fault.began in self._rig.handlers(fault.w):
            processes.send(fault.began, signal.SIGCONT)

    # ---- connections to Redis

    def _cut(self, fault, begins):
        if begins:
            self._rig.ways[fault.w].cut()

    def _silence(self, fault, begins, **directions):
        way = self._rig.ways[fault.w]
        if begins:
            way.silence(**directions)
        else:
            way.heal()

    def _half_open(self, fault, begins):
        self._silence(fault, begins)

    def _deaf(self, fault, begins):
        self._silence(fault, begins, to_server=False)

    def _mute(self, fault, begins):
        self._silence(fault, begins, to_client=False)

    def _refuse(self, fault, begins):
        way = self._rig.ways[fault.w]
        if begins:
            way.refuse()
        else:
            way.accept()

    def _delay(self, fault, begins):
        self._rig.ways[fault.w].delay(0.2 * fault.share if begins else 0)

    def _drop(self, fault, begins, when):
        way = self._rig.ways[fault.w]
        if begins:
            way.trap(fault.call, when, 'cut')
        else:
            way.run(way.traps.clear)

    def _drop_reply(self, fault, begins):
        """The command has run, and its reply is lost."""
        self._drop(fault, begins, 'after')

    def _drop_command(self, fault, begins):
        self._drop(fault, begins, 'before')

    # ---- Redis

    def _redis_kill(self, _, begins):
        if begins:
            self._rig.server.kill()
        else:
            self._rig.server.restart()

    def _redis_outage(self, fault, begins):
        """Longer than the lease."""
        self._redis_kill(fault, begins)

    def _redis_forgets(self, fault, begins):
        """At the end, Redis is killed and comes back as it was at the beginning."""
        if begins:
            fault.began = self._rig.server.remember()
        elif fault.began is None or not self._rig.server.forget(fault.began):
            self.done[fault.name] -= 1

    def _redis_stop(self, _, begins):
        if begins:
            self._rig.server.stop()
        else:
            self._rig.server.cont()

    def _redis_flush(self, _, begins):
        if begins:
            self._rig.admin.execute_command('FUNCTION', 'FLUSH')

    def _redis_group(self, fault, begins):
        """The group of one of the two streams that workers read."""
        if begins:
            queue = self._rig.queue
            key = queue.stream if fault.share < 0.5 else queue.go
            self._rig.admin.execute_command('XGROUP', 'DESTROY', key, queue.group)

    def _configure(self, begins, name, value):
        self._rig.admin.config_set(name, value if begins else 0)

    def _redis_oom(self, _, begins):
        self._configure(begins, 'maxmemory', 1)

    def _redis_noreplicas(self, _, begins):
        self._configure(begins, 'min-replicas-to-write', 2)

    def _redis_readonly(self, _, begins):
        """A replica without a master: it keeps its data, and takes no writes."""
        master = ('127.0.0.1', '1') if begins else ('NO', 'ONE')
        self._rig.admin.execute_command('REPLICAOF', *master)

    def _redis_failover(self, fault, begins):
        """The master is killed, or demoted: a demoted one answers until clients learn of the new one."""
        servers, killed = self._rig.server, fault.share < 0.5
        if begins:
            fault.began = servers.promote(killed)
            self.done[fault.name] -= not fault.began
        elif fault.began and killed:
            servers.revive()
        if fault.began and begins == killed:
            self._rig.follow()

    def _redis_failover_loss(self, fault, begins):
        """At the end, the master is killed, and the replica that replaces it is as it was at the beginning."""
        servers = self._rig.server
        if begins:
            fault.began = servers.detach()
            self.done[fault.name] -= not fault.began
        elif fault.began:
            servers.replace()
            self._rig.follow()
            servers.revive()

    def _redis_disk_full(self, _, begins):
        if begins:
            self._rig.server.fill_disk()
        else:
            self._rig.server.free_disk()

    # ---- links between hosts

    def _links(self, fault):
        return self._rig.links if fault.w < 0 else [self._rig.links[fault.w]]

    def _cut_links(self, fault, begins, *directions, **how):
        for link in self._links(fault):
            if begins:
                link.cut(f'fault{fault.number}', *directions, **how)
            else:
                link.join(f'fault{fault.number}', *directions)

    def _link_silent(self, fault, begins):
        self._cut_links(fault, begins, True, True)

    def _link_lost_to(self, fault, begins):
        """Only what workers send is lost."""
        self._cut_links(fault, begins, True, False)

    def _link_lost_from(self, fault, begins):
        """Only what the server sends is lost."""
        self._cut_links(fault, begins, False, True)

    def _link_reset(self, fault, begins):
        self._cut_links(fault, begins, how=RESET)

    def _link_unreachable(self, fault, begins):
        self._cut_links(fault, begins, how=UNREACHABLE)

    def _link_down(self, fault, begins):
        for link in self._links(fault):
            link.worker.link(link.at_worker, not begins)

    def _link_flaps(self, fault, begins):
        if not begins:
            self._link_down(fault, False)

    def _flap(self, fault, elapsed):
        if elapsed >= fault.flips:
            fault.flips, fault.is_down = elapsed + FLAP_S * (0.2 + 0.8 * fault.share), not fault.is_down
            self._link_down(fault, fault.is_down)
