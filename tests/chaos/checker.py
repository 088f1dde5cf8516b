"""Checks the history of a run against the invariants of a queue: a pure function, check(events).

Events, all with `t` and `e`:

    meta      lease_ns, timeout_ns (of tasks; 0: none), late_ns (the machine's delay), max_attempts,
              max_crashes, permanent (an exit code that is not retried), workers, slots (tasks that a
              worker may run), alone (workers whose resident processes have one task at a time), wall_ns
              (wall clock less CLOCK_BOOTTIME)
    invoke    n, payload, fails, code, kills, key ('' for none), bad (it may not start) is sent; then one of
              ok {n, what, tid}, fail {n} (it was refused), info {n} (the outcome is unknown)
    cancel    n, tid is sent; cancelled {n, state} its reply
    up, down {status}  a daemon: w, pid. up {former, program}: it has replaced the process former in an upgrade,
              and is another worker; former goes on until its tasks have ended
    asked     w, pid, program: pid is to be replaced by the program, which works if it is one of WORKS;
              refused {why, elders}: it was not, and elders former processes still run
    fault     id, kind, w (-1: all; kind starved: the machine gave it no processor); healed {id}. At the end of
              those that FORGETS names, Redis has forgotten what happened since their beginning
    heal      all faults have ended; drained: the queue is empty
    claim     w, token, n, tid, attempt, crashes, fence: Redis's reply
    finish    w, call, results [[token, outcome, cause]]: it is on its way to Redis;
              finished {w, call, states} Redis's reply, [] for an error
    renewed   w, call: Redis answered a renewal, a claim or a register
    start, beat, end {code}, kill {code: pid of the worker}: n, task, attempt, fence, worker, pid, by the task
    break, lie  the same, by a task of a resident process: the process will be of no use; it was asked to end,
              and reports success
    read {code}  worker, pid: a resident process may have read (1), or has not (0), a part of a record that it
              has not begun
    hit       w, pid, kills, task: a fault kills or stops a resident process; task: the tid of its only one, ''
              if it takes one after the other
    output    w, named, said, fence: the tid with which a line was logged, '' for that of the process, and the tid
              and fence of the task that wrote it
    returned  w, tid: by the log, a task was given back because the worker stops
    stopped   processes: those of tasks that are left when all workers have ended
    final     left {place: count}, dead [{n, cause, attempts, crashes, payload, died_ms}], names, stats,
              orphans, zombies, descriptors [[w, at the start, at the end]], ended [[tid, outcome]]: the queue's
              own history, all of it
"""
import itertools
from collections import Counter, defaultdict, namedtuple

Violation = namedtuple('Violation', 'invariant n text')  # n: -1 if it is about no single task
FINISHED = ('ok', 'cancelled')
# faults that end a daemon, with its exit status; 75: Redis did not take all outcomes
ENDS = {'kill': {-9}, 'guard-kill': {-9}, 'term': {0, 75}, 'elder-kill': {-9}}
FAILED = 70  # of a former process, if the one that replaced it was killed
NO_CRASH = 'redis-', 'pause', 'handler-'  # faults of kinds that begin so explain no crash
WORKS, ELDERS = ('same', 'next'), 7  # programs that can replace a worker; so many former ones may run beside it
# these must change nothing for tasks, so they explain nothing; the kill in an upgrade is a fault of its own
NO_FAULT = 'upgrade', 'upgrade-broken', 'kill-in-upgrade'
OF_PROCESS = 'no-verdict', 'timeout', 'output-limit'  # causes of failures of which a task may be innocent
FORGETS = 'redis-forgets', 'redis-failover-loss'
FOLLOW_NS = 10 ** 9  # so much later the rig may notice that a process has taken over
CLOCK_NS = 10 ** 7  # resolution of the wall clock in ms
MORE_DESCRIPTORS = 8
BUSY = 500  # calls per second that bring no task; a few renewals, scans and wakeups are usual


def daemon_of(worker):
    return int(worker.split(':')[-2])


class Run:
    """One process of a task, by the records of it and its descendant."""

    def __init__(self, event):
        self.n, self.fence, self.attempt = event['n'], event['fence'], event['attempt']
        self.worker, self.pid = event['worker'], event['pid']
        self.start = self.last = event['t']
        self.end = self.code = None

    def add(self, event):
        self.last = max(self.last, event['t'])
        if event['e'] == 'end':
            self.end, self.code = event['t'], event['code']

    @property
    def daemon(self):
        return daemon_of(self.worker)

    def __repr__(self):
        return (f'run(attempt {self.attempt}, fence {self.fence}, pid {self.pid} of {self.worker}, '
                f'{self.start / 1e9:.3f}–{self.last / 1e9:.3f}, code {self.code})')


class Result:
    """One try to finish an attempt. state is '' if no reply came."""

    def __init__(self, n, token, outcome, cause, sent):
        self.n, self.token, self.outcome, self.cause, self.sent = n, token, outcome, cause, sent
        self.state, self.answered = '', None

    def accepted(self):
        return self.state in FINISHED


class Facts:
    """The events, sorted by their subjects."""

    def __init__(self, events):
        self.of = defaultdict(list)
        for event in events:
            self.of[event['e']].append(event)
        self.meta, self.final = self.of['meta'][0], self.of['final'][0]
        self.heal = self.of['heal'][0]['t'] if self.of['heal'] else None
        self.lease = self.meta['lease_ns']
        self.tasks = {event['n']: event for event in self.of['invoke']}
        self.ok = {event['n']: event for event in self.of['ok']}
        self.info = {event['n'] for event in self.of['info']}
        self.number_of = {event['tid']: event['n'] for event in self.of['ok'] if event['what'] == 'new'}
        self.forgotten = self._forgotten()
        self.claims = defaultdict(list)  # of a token, which is claimed once unless Redis has forgotten it
        self.claims_of = defaultdict(list)
        for claim in self.of['claim']:
            self.number_of[claim['tid']] = claim['n']
            self.claims[claim['token']].append(claim)
            self.claims_of[claim['n']].append(claim)
        self.runs_of = self._runs(events)
        self.results_of = self._results(events)
        self.letters = defaultdict(list)
        for letter in self.final['dead']:
            self.letters[letter['n']].append(letter)
        self.cancels = {event['n']: event['t'] for event in reversed(self.of['cancel'])}
        self.cancelled = {event['n'] for event in self.of['cancelled']
                          if event['state'] == 'cancelled' and not self.was_forgotten(event['t'])}
        self.index_of = {event['pid']: event['w'] for event in self.of['up']}
        self.replaced = {event['former']: event['t'] for event in self.of['up'] if 'former' in event}
        self.faults = self._faults()
        self.printed = {(event['said'], event['fence']) for event in self.of['output']}

    def _forgotten(self):
        """[(since, until)] of what Redis has forgotten."""
        ends = {event['id']: event['t'] for event in self.of['healed']}
        return [(event['t'], ends[event['id']]) for event in self.of['fault'] if event['kind'] in FORGETS]

    def was_forgotten(self, since, until=None):
        """Whether Redis may have forgotten what it did at that time."""
        return any(since <= end and (until or since) >= begin for begin, end in self.forgotten)

    def is_forgotten(self, n):
        """Whether Redis may have forgotten that the task was enqueued."""
        until = self.ok[n]['t'] if n in self.ok else None
        return n in self.tasks and self.was_forgotten(self.tasks[n]['t'], until)

    def claim(self, token, when):
        """The claim of that token which counted at that time, or None."""
        return next((claim for claim in reversed(self.claims.get(token, [])) if claim['t'] <= when), None)

    def claim_of(self, result):
        return self.claim(result.token, result.sent)

    def _runs(self, events):
        found, order = {}, defaultdict(list)
        for event in events:
            if event['e'] in ('start', 'beat', 'end'):
                key = event['n'], event['pid'], event['fence']
                if key not in found:
                    found[key] = Run(event)
                    order[event['n']].append(found[key])
                found[key].add(event)
        return order

    def _results(self, events):
        calls, found = {}, defaultdict(list)
        for event in events:
            if event['e'] == 'finish':
                calls[event['call']] = []
                for token, outcome, cause in event['results']:
                    claim = self.claim(token, event['t'])
                    n = claim['n'] if claim else -1
                    calls[event['call']].append(Result(n, token, outcome, cause, event['t']))
                    found[n].append(calls[event['call']][-1])
            elif event['e'] == 'finished':
                for result, state in zip(calls[event['call']], event['states']):
                    result.answered = event['t']
                    if not self.was_forgotten(event['t']):
                        result.state = state
        return found

    def _faults(self):
        """[(begin, end of its effects, w, kind)]; kills by tasks are among them."""
        ends = {event['id']: event['t'] for event in self.of['healed']}
        healed = self.of['heal'][0]['t'] if self.of['heal'] else self.final['t']
        found = []
        for event in self.of['fault']:
            if event['kind'] in NO_FAULT:
                continue
            # in the end, each worker is asked to stop; if the queue has not drained, it has tasks then
            end = ends.get(event['id'], max(healed, event['t']))
            found.append((event['t'], end, event['w'], event['kind']))
        for event in self.of['kill']:
            found.append((event['t'], event['t'], self.index_of.get(event['code'], -1), 'killer'))
        # effects of a fault, such as a lease that expires, end this much later
        slack = 2 * self.lease + self.meta['late_ns']
        return [(begin, end + slack, w, kind) for begin, end, w, kind in found]

    def disturbances(self, w, since, until):
        """Faults that may have affected this worker in that time."""
        return [fault for fault in self.faults
                if fault[2] in (w, -1) and fault[0] <= until and fault[1] >= since]

    def lied_at_stop(self, n, fence):
        """Whether the task's process was ended, with an order to its worker as the reason, and then reported
        success: nobody can know that this is wrong."""
        return any(lie['n'] == n and lie['fence'] == fence and any(
            kind in ENDS for *_, kind in self.disturbances(
                self.index_of.get(daemon_of(lie['worker']), -1), lie['t'], lie['t']))
            for lie in self.of['lie'])

    def accepted(self, n, outcome):
        return [result for result in self.results_of[n] if result.outcome == outcome and result.accepted()]

    def unanswered(self, n, outcome):
        return [result for result in self.results_of[n] if result.outcome == outcome
                and result.state not in FINISHED and result.state != 'fenced']

    def succeeded(self, n):
        """Redis has accepted a success, or may have, and has nothing left of the task."""
        if self.accepted(n, 'success'):
            return not any(result.state == 'cancelled' for result in self.accepted(n, 'success'))
        return bool(self.unanswered(n, 'success')) and not self.letters[n] and n not in self.cancelled

    def was_cancelled(self, n):
        """An operator cancelled it before or while it ran."""
        return n in self.cancels and (
            n in self.cancelled or bool(self.accepted(n, 'cancelled'))
            or any(result.state == 'cancelled' for result in self.results_of[n])
            or not self.letters[n] and not self.accepted(n, 'success'))

    def ended(self, n):
        """The task's end as (earliest, latest known), or None if it is unknown."""
        for result in self.accepted(n, 'success'):
            tries = [other.sent for other in self.results_of[n] if other.outcome == 'success']
            return min(tries), result.answered
        for letter in self.letters[n]:
            died = letter['died_ms'] * 10 ** 6 - self.meta['wall_ns']
            return died - CLOCK_NS, died + CLOCK_NS
        return None


def lost(facts):
    """I1: each enqueue with a reply ends in exactly one way, and a refused task does not appear."""
    for n, task in facts.tasks.items():
        ends = [bool(facts.succeeded(n)), bool(facts.letters[n])]
        if not any(ends) and facts.was_cancelled(n):
            continue
        if n in facts.cancelled and any(ends):
            yield Violation('I1', n, 'it was cancelled before it began, and ended otherwise')
        answer = facts.ok.get(n)
        if facts.is_forgotten(n) and not any(ends):
            continue
        if answer and answer['what'] == 'new' and sum(ends) != 1:
            yield Violation('I1', n, f'ended in {sum(ends)} ways: success {ends[0]}, dead letter {ends[1]}')
        elif (not answer and n not in facts.info or answer and answer['what'] == 'exists') and (
                any(ends) or facts.runs_of[n]):
            yield Violation('I1', n, 'it was never in the queue, and ran or ended there')
        elif n in facts.info and facts.runs_of[n] and sum(ends) != 1:
            yield Violation('I1', n, f'its enqueue had no answer, it ran, and ended in {sum(ends)} ways')
    for n in (set(facts.runs_of) | set(facts.letters)) - set(facts.tasks):
        if facts.runs_of[n] or facts.letters[n]:
            yield Violation('I1', n, 'no producer has enqueued it')
    if not facts.of['drained']:
        yield Violation('I1', -1, f'the queue has not drained: {facts.final["left"]}')


def unearned(facts):
    """I2: a task with an accepted success ran to exit status 0 before."""
    for n in list(facts.results_of):
        for result in facts.accepted(n, 'success'):
            claim = facts.claim_of(result)
            if claim and facts.lied_at_stop(n, claim['fence']):
                continue
            if not claim or not any(run.fence == claim['fence'] and run.code == 0 and run.end <= result.answered
                                    for run in facts.runs_of[n]):
                yield Violation('I2', n, f'success of {result.token} accepted without a run that exited with 0')


def overlapping(facts):
    """I3: the executions of a task do not overlap, descendants included."""
    for n, runs in list(facts.runs_of.items()):
        last = None
        for run in sorted(runs, key=lambda one: one.start):
            if last and run.start <= last.last:
                yield Violation('I3', n, f'{run} began before {last} was dead')
            if not last or run.last > last.last:
                last = run


def fences(facts):
    """I4: fencing tokens grow, and nothing is accepted from an attempt after a newer one has started."""
    for n, claims in list(facts.claims_of.items()):
        for fence, times in Counter(claim['fence'] for claim in claims).items():
            if times > 1:
                yield Violation('I4', n, f'fence {fence} was given twice')
        newer = sorted((claim['fence'], claim['t']) for claim in claims if not facts.was_forgotten(claim['t']))
        for result in facts.results_of[n]:
            mine = facts.claim_of(result)['fence']
            later = [when for fence, when in newer if fence > mine]
            if result.accepted() and later and min(later) < result.sent:
                yield Violation('I4', n, f'{result.outcome} of {result.token}, fence {mine}, was accepted after '
                                         f'a newer attempt had begun')
    for n, runs in list(facts.runs_of.items()):
        ordered = [run.fence for run in sorted(runs, key=lambda one: one.start)]
        if any(later <= earlier for earlier, later in zip(ordered, ordered[1:])):
            yield Violation('I4', n, f'fences of its runs do not grow: {ordered}')


def too_many_crashes(facts, n, crashes, until):
    """Why the task cannot have so many crashes by then; '' if it can. An outage is nobody's crash. Before its last
    crash a task runs alone: not all of them can be by tasks beside it that kill the worker."""
    felt = [kind for begin, end, _, kind in facts.faults if begin <= until and end >= facts.tasks[n]['t']]
    others = [kind for kind in felt if kind != 'killer' and not kind.startswith(NO_CRASH)]
    killers = min(felt.count('killer'), facts.meta['max_crashes'] - 1)
    if facts.tasks[n]['kills'] or crashes <= len(others) + killers:
        return ''
    return f'{len(others)} faults explain {crashes} crashes'


def failed_by_process(facts, n):
    """The tokens of its attempts that failed without a report of a resident process."""
    return {result.token for result in facts.results_of[n] if result.cause in OF_PROCESS}


def may_have_read(facts, claim, until):
    """Whether a process of the claim's worker may have read by then a part of a record that it did not begin."""
    last = {(event['worker'], event['pid']): event for event in facts.of['read'] if event['t'] <= until}
    return any(event['code'] and event['t'] >= claim['t'] and
               facts.index_of.get(daemon_of(worker)) == claim['w'] for (worker, _), event in last.items())


def unexplained(facts, result):
    """Why an attempt cannot have failed without a report of its resident process; '' if it can."""
    claim = facts.claim_of(result)
    since, until, late = claim['t'], result.sent, facts.meta['late_ns']
    hits = [hit for hit in facts.of['hit'] if hit['w'] == claim['w'] and since - late <= hit['t'] <= until]
    run = next((run for run in facts.runs_of[result.n] if run.fence == claim['fence']), None)
    # a process of the task's own may not have got a processor until then
    slow = result.cause == 'timeout' and any(
        kind == 'starved' for *_, kind in facts.disturbances(claim['w'], since, until))
    if not (run or slow or may_have_read(facts, claim, until) or claim['tid'] in [hit['task'] for hit in hits]):
        return f'{result.cause}, and no process has read it'
    if result.cause == 'timeout':
        lasted = until - since
        return '' if lasted >= facts.meta['timeout_ns'] else f'timed out after {lasted / 1e9:.3f} s'
    broken = {event['pid'] for event in facts.of['break'] if since <= event['t'] <= until}
    broken |= {hit['pid'] for hit in hits if hit['kills'] and result.cause == 'no-verdict'}
    return f'{result.cause}, and its process {run.pid} was sound' if run and run.pid not in broken else ''


def cause_is_right(facts, n, letter):
    """Whether it had to become this dead letter; otherwise returns the reason why not."""
    task, meta = facts.tasks[n], facts.meta
    if letter['cause'] == 'exit':
        if not task['fails']:
            return 'it never fails'
        permanent = task['code'] == meta['permanent']
        least, most = (1, 1 + len(failed_by_process(facts, n))) if permanent else (meta['max_attempts'],) * 2
        if not least <= letter['attempts'] <= most:
            return f'after {letter["attempts"]} attempts'
        if task['fails'] < meta['max_attempts'] and not permanent:
            return f'it fails {task["fails"]} times only'
    elif letter['cause'] == 'crash':
        if letter['crashes'] != meta['max_crashes']:
            return f'after {letter["crashes"]} crashes'
        return too_many_crashes(facts, n, letter['crashes'], letter['died_ms'] * 10 ** 6 - meta['wall_ns'])
    elif letter['cause'] == 'refused':
        return '' if task.get('bad') else 'nothing is wrong with it'
    elif letter['cause'] in OF_PROCESS and meta['timeout_ns']:
        return '' if letter['attempts'] == meta['max_attempts'] else f'after {letter["attempts"]} attempts'
    else:
        return 'nothing here ends so'
    return ''


def budgets(facts):
    """I5: no attempt beyond the last; exactly one dead letter if the task must become one, with the right
    content, and none otherwise."""
    for n, runs in list(facts.runs_of.items()):
        if any(run.attempt > facts.meta['max_attempts'] for run in runs):
            yield Violation('I5', n, f'an attempt too many: {runs}')
    for n, claims in list(facts.claims_of.items()):
        wrong = [why for claim in claims if n in facts.tasks
                 and (why := too_many_crashes(facts, n, claim['crashes'], claim['t']))]
        if wrong:
            yield Violation('I5', n, f'it was claimed with crashes that did not happen: {wrong[0]}')
        if facts.tasks.get(n, {}).get('bad'):
            yield Violation('I5', n, 'it may not start, and was claimed')
    for n, results in list(facts.results_of.items()):
        for result in results:
            if result.cause in OF_PROCESS and result.outcome != 'success' and (why := unexplained(facts, result)):
                yield Violation('I5', n, f'{result.token} failed: {why}')
    for n, letters in list(facts.letters.items()):
        if len(letters) > 1:
            yield Violation('I5', n, f'{len(letters)} dead letters')
        for letter in letters:
            if n not in facts.tasks:
                continue
            if letter['payload'] != facts.tasks[n]['payload']:
                yield Violation('I5', n, 'its payload has changed')
            wrong = cause_is_right(facts, n, letter)
            if wrong:
                yield Violation('I5', n, f'a dead letter, cause {letter["cause"]}: {wrong}')
    for n, task in facts.tasks.items():
        if task['fails'] >= facts.meta['max_attempts'] and facts.accepted(n, 'success'):
            yield Violation('I5', n, 'it always fails, and has succeeded')


def is_stopping(facts, w, when):
    """Whether the worker had an order to stop that it may still carry out: the process that got it is the last one
    before a new start."""
    starts = [up['t'] for up in facts.of['up'] if up['w'] == w and 'former' not in up]
    return any(order['kind'] == 'term' and order['w'] == w and order['t'] <= when + CLOCK_NS and
               when <= min([start for start in starts if start > order['t']], default=when)
               + 2 * facts.lease + facts.meta['late_ns'] for order in facts.of['fault'])


def repeated(facts):
    """I6: runs beyond the first have a reason, and a run is not given back for a stop that nobody has ordered."""
    for event in facts.of['returned']:
        n, when = facts.number_of.get(event['tid'], -1), event['t']
        fences = [claim['fence'] for claim in facts.claims_of[n]
                  if claim['w'] == event['w'] and claim['t'] <= when + CLOCK_NS]
        if fences and any(run.fence == fences[-1] for run in facts.runs_of[n]) and \
                not is_stopping(facts, event['w'], when):
            yield Violation('I6', n, f'worker {event["w"]} gave it back for a stop that nobody has ordered')
    for n, runs in list(facts.runs_of.items()):
        ordered = sorted(runs, key=lambda one: one.start)
        for before, after in zip(ordered, ordered[1:]):
            given_back = any(
                result.outcome in ('retry', 'release') and before.start <= result.sent <= after.start
                and facts.claim_of(result)['fence'] == before.fence for result in facts.results_of[n])
            failed = before.code not in (None, 0) and before.code == facts.tasks.get(n, {}).get('code')
            w = facts.index_of.get(before.daemon, -1)
            felt = facts.disturbances(w, before.start - facts.lease, after.start)
            if not failed and not given_back and not felt:
                yield Violation('I6', n, f'ran again without a reason: {before}, {after}')


def unique_keys(facts):
    """I7: a key has one live task and is free after its task's end, neither earlier nor later."""
    holders, answers = defaultdict(list), defaultdict(list)
    for n, task in facts.tasks.items():
        if task['key']:
            holders[task['key']].append(n)
            if n in facts.ok:
                answers[task['key']].append((facts.ok[n]['t'], n))
    for key, numbers in holders.items():
        runs = sorted((run for n in numbers for run in facts.runs_of[n]), key=lambda one: one.start)
        for before, after in zip(runs, runs[1:]):
            if before.n != after.n and after.start <= (before.end or before.last):
                yield Violation('I7', after.n, f'ran beside task {before.n} of the key {key}: {before}, {after}')
    for key, rows in answers.items():
        yield from answers_of_key(facts, key, sorted(rows))
    if facts.of['drained'] and facts.final['names']:
        yield Violation('I7', -1, f'{facts.final["names"]} names are held in the end')


def answers_of_key(facts, key, rows):
    """What Redis forgot later may have been given after an end that it forgot, too."""
    holder = None
    for when, n in rows:
        if facts.ok[n]['what'] == 'new':
            end = facts.ended(holder) if holder is not None else None
            if end and end[0] > when and not facts.was_forgotten(when):
                yield Violation('I7', n, f'it was taken while task {holder} held the key {key}')
            holder = n
            continue
        other = facts.number_of.get(facts.ok[n]['tid'])
        end = facts.ended(other) if other is not None else None
        if end and end[1] < facts.tasks[n]['t']:
            yield Violation('I7', n, f'refused for task {other}, which had ended: the key {key} was not released')


def remains(facts):
    """I8: nothing is left."""
    final = facts.final
    for place, count in final['left'].items():
        if count:
            yield Violation('I8', -1, f'{count} left in {place}')
    for what in ('orphans', 'zombies'):
        if final[what]:
            yield Violation('I8', -1, f'{what}: {final[what]}')
    for event in facts.of['stopped']:
        if event['processes']:
            yield Violation('I8', -1, f'all workers have ended, and processes have not: {event["processes"]}')
    for w, before, after in final['descriptors']:
        if after > before + MORE_DESCRIPTORS:
            yield Violation('I8', -1, f'worker {w} had {before} descriptors, and has {after}')


def killed_by_a_task(facts, w, since, until):
    """Whether a task has killed a process of the worker."""
    own = {event['pid'] for event in facts.of['up'] if event['w'] == w}
    return any(event['code'] in own and since <= event['t'] <= until for event in facts.of['kill'])


def fallen(facts):
    """Daemons that ended without an order, or with a wrong status."""
    for down in facts.of['down']:
        late = FOLLOW_NS + facts.meta['late_ns']
        up = max(event['t'] - late * ('former' in event) for event in facts.of['up']
                 if event['pid'] == down['pid'] and event['t'] <= down['t'])
        replaced = facts.replaced.get(down['pid'], down['t']) < down['t']
        allowed = {0} if replaced else set()
        allowed |= {-9} if any(event['code'] == down['pid'] for event in facts.of['kill']) else set()
        for fault in facts.of['fault']:
            if fault['w'] == down['w'] and fault['kind'] in ENDS and up <= fault['t'] <= down['t']:
                allowed.update(ENDS[fault['kind']])
        if replaced and (-9 in allowed or killed_by_a_task(facts, down['w'], up, down['t'])):
            allowed.add(FAILED)
        if down['status'] not in allowed:
            yield down


def busy(facts):
    """(worker, second, calls) for each second in which a worker spun with calls in vain."""
    asked = Counter((event['w'], event['t'] // 10 ** 9) for event in facts.of['renewed'])
    brought = Counter((event['w'], event['t'] // 10 ** 9) for event in facts.of['claim'])
    for (w, second), calls in sorted(asked.items()):
        if calls > BUSY + 2 * brought[w, second]:
            yield w, second, calls


def recovery(facts):
    """I9: each worker works again within 3 leases after the repair, ends only for a reason, and waits if
    there is nothing to do."""
    for w, second, calls in list(busy(facts))[:1]:
        yield Violation('I9', -1, f'worker {w} called Redis {calls} times in second {second} for next to nothing')
    for down in fallen(facts):
        yield Violation('I9', -1, f'worker {down["w"]}, process {down["pid"]}, ended with status {down["status"]}')
    if facts.heal is None:
        return
    until = facts.heal + 3 * facts.lease + facts.meta['late_ns']
    for w in range(facts.meta['workers']):
        after = [event['t'] for event in facts.of['renewed'] if event['w'] == w and event['t'] > facts.heal]
        if not after or min(after) > until:
            what = f'{(min(after) - facts.heal) / 1e9:.1f} s' if after else 'never'
            yield Violation('I9', -1, f'worker {w} was heard of again after healing: {what}')


def remembered(facts):
    """I10: the queue's own history has each success and each death of a task that ran, once, and no others."""
    ended = facts.final['ended']
    successes = Counter(tid for tid, outcome in ended if outcome == 'succeeded')
    for tid, times in successes.items():
        n = facts.number_of.get(tid, -1)
        if times > 1:
            yield Violation('I10', n, f'the history has {times} successes of it')
        if not any(result.outcome == 'success' and result.state != 'fenced' for result in facts.results_of[n]):
            yield Violation('I10', n, f'the history has a success of {tid} that no worker has reported')
    counted = facts.final['stats'].get('succeeded', 0)
    if sum(successes.values()) != counted:
        yield Violation('I10', -1, f'the history has {sum(successes.values())} successes of {counted}')
    died = Counter(facts.number_of.get(tid, -1) for tid, outcome in ended if outcome == 'dead')
    letters = Counter(letter['n'] for letter in facts.final['dead'] if letter['attempts'] or letter['crashes'])
    if died != letters:
        yield Violation('I10', -1, f'dead in the history, and not so among the dead letters: {died - letters}; '
                                   f'the other way round: {letters - died}')


def counters(facts):
    """I10: the queue's counters agree with the history. If the queue has not drained, workers go on after these
    were read."""
    if not facts.of['drained']:
        return
    stats, known = facts.final['stats'], [n for n in set(facts.tasks) | set(facts.runs_of)]
    accepted = {n for n in known if any(result.state == 'ok' for result in facts.accepted(n, 'success'))}
    likely = {n for n in known if facts.succeeded(n)}
    fenced = sum(result.state == 'fenced' for results in facts.results_of.values() for result in results)
    bounds = {'succeeded': (len(accepted), len(accepted | likely)),
              'dead': (len(facts.final['dead']), len(facts.final['dead'])),
              'fenced': (fenced, float('inf'))}
    for name, (least, most) in bounds.items():
        if not least <= stats.get(name, 0) <= most:
            yield Violation('I10', -1, f'{name} is {stats.get(name, 0)}, and not from {least} to {most}')
    if 'ended' in facts.final:
        yield from remembered(facts)


def chains(facts):
    """{pid: first process} of processes that have replaced each other."""
    first = {}
    for event in facts.of['up']:
        first[event['pid']] = first.get(event.get('former'), event['pid'])
    return first


def gone(facts):
    """{pid: when it was killed, at the latest} of daemons that were."""
    found = {}
    for down in facts.of['down']:
        kills = [event['t'] for event in facts.of['fault']
                 if event['w'] == down['w'] and event['kind'] in ENDS and event['t'] <= down['t']]
        kills += [event['t'] for event in facts.of['kill'] if event['code'] == down['pid']]
        if down['status'] == -9:
            found[down['pid']] = max(kills, default=down['t'])
    return found


def crowded(facts):
    """(worker, time, runs) where processes that have replaced each other ran more tasks than there are slots."""
    first, ends, steps = chains(facts), gone(facts), defaultdict(list)
    for run in itertools.chain.from_iterable(facts.runs_of.values()):
        end = min(run.end or run.last, ends.get(run.daemon, run.last))
        if run.daemon in first and end > run.start:
            steps[first[run.daemon]] += [(run.start, 1), (end, -1)]
    for pid, changes in steps.items():
        counts = itertools.accumulate(change for _, change in sorted(changes))
        for (when, _), count in zip(sorted(changes), counts):
            if count > facts.meta['slots']:
                yield facts.index_of[pid], when, count
                break


def crossing(facts):
    """Runs that an upgrade found in the process that it replaced."""
    return [run for runs in facts.runs_of.values() for run in runs
            if run.daemon in facts.replaced and run.start < facts.replaced[run.daemon] < run.last]


def upgrades(facts):
    """I11: a program that works replaces a worker unless a fault explains why not, one that does not work never
    does, tasks go on meanwhile, and processes that have replaced each other use no more slots together than one
    has."""
    for run in crossing(facts):
        w = facts.index_of[run.daemon]
        if run.end is None and not facts.was_cancelled(run.n) and \
                not facts.disturbances(w, run.start, run.last + facts.lease):
            yield Violation('I11', run.n, f'was ended by an upgrade: {run}')
    asked = sorted(facts.of['asked'], key=lambda event: event['t'])
    for up in facts.of['up']:
        if up.get('program', 'same') not in WORKS:
            yield Violation('I11', -1, f'worker {up["w"]} was replaced by a program that {up["program"]}')
    for refused in facts.of['refused']:
        since = max(event['t'] for event in asked if event['pid'] == refused['pid'] and event['t'] <= refused['t'])
        if refused['program'] in WORKS and refused['elders'] < ELDERS and \
                not facts.disturbances(refused['w'], since, refused['t']):
            yield Violation('I11', -1, f'worker {refused["w"]} was not upgraded: {refused["why"]}')
    for w, when, count in crowded(facts):
        yield Violation('I11', -1, f'worker {w} ran {count} tasks at {when / 1e9:.3f}')


def mixed(facts):
    """I12: what a resident process writes for its only task is logged as this task's, and none of it is logged as
    that of another task. A task whose report counts has written before."""
    for event in facts.of['output']:
        if event['named'] != event['said'] and (event['named'] or event['w'] in facts.meta['alone']):
            yield Violation('I12', facts.number_of.get(event['said'], -1),
                            f'its output was logged as that of {event["named"] or "its process"}')
    for n, runs in list(facts.runs_of.items()):
        for result in facts.accepted(n, 'success'):
            claim = facts.claim_of(result)
            if claim and claim['w'] in facts.meta['alone'] and \
                    (claim['tid'], claim['fence']) not in facts.printed and \
                    any(run.fence == claim['fence'] and run.code == 0 for run in runs):
                yield Violation('I12', n, 'its output was not logged')


INVARIANTS = {'I1': lost, 'I2': unearned, 'I3': overlapping, 'I4': fences, 'I5': budgets, 'I6': repeated,
              'I7': unique_keys, 'I8': remains, 'I9': recovery, 'I10': counters, 'I11': upgrades,
              'I12': mixed}


def check(events):
    """All violations, in the order of the invariants."""
    facts = Facts(sorted(events, key=lambda event: event['t']))
    return [violation for rule in INVARIANTS.values() for violation in rule(facts)]


def story(events, n):
    """The shortest history that explains a task: its own events, without those of its key's other holders,
    and faults from its enqueue to its end."""
    facts = Facts(sorted(events, key=lambda event: event['t']))
    tokens = {claim['token'] for claim in facts.claims_of[n]}
    calls = {event['call'] for event in facts.of['finish']
             if any(row[0] in tokens for row in event['results'])}
    mine = [event for event in events if event.get('n') == n or event.get('call') in calls]
    if not mine:
        return []
    since, until = mine[0]['t'] - 2 * facts.lease, mine[-1]['t'] + facts.lease
    around = [event for event in events if event['e'] in ('fault', 'healed', 'up', 'down', 'kill', 'heal')
              and since <= event['t'] <= until and event.get('n') != n]
    return sorted(mine + around, key=lambda event: event['t'])
