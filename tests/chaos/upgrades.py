"""Sums up the upgrades of a run: how many there were, what became of the tasks that ran meanwhile, and for how
long a worker started nothing."""
import itertools

from checker import WORKS, Facts, crossing

CALM_NS = 10 ** 9  # after a fault, a worker needs a moment to reconnect


def gates(facts):
    """[(since, until)] in which the queue was paused, or may have been."""
    found, since = [], None
    for event in facts.of['gate']:
        if event['closes'] and since is None:
            since = event['t']
        elif not event['closes'] and since is not None:
            found.append((since, event['t'] + CALM_NS))
            since = None
    return found


def is_calm(facts, shut, w, since, until):
    """Whether no fault but upgrades was felt by the worker in that time."""
    slack = 2 * facts.lease + facts.meta['late_ns'] - CALM_NS
    return not any(fault[2] in (w, -1) and fault[0] <= until and fault[1] - slack >= since
                   for fault in facts.faults) and not any(begin <= until and end >= since for begin, end in shut)


def gaps(facts):
    """Two lists of [(ms, whether it was calm)]: from the last start of a task in a worker to the first one in its
    successor; and, to compare, between starts in one process."""
    starts, shut = {}, gates(facts)
    for runs in facts.runs_of.values():
        for run in runs:
            starts.setdefault(run.daemon, []).append(run.start)

    def gap(pid, since, until):
        return (until - since) / 1e6, is_calm(facts, shut, facts.index_of[pid], since, until)

    across = [gap(up['pid'], max(starts[up['former']]), min(starts[up['pid']])) for up in facts.of['up']
              if up['pid'] in starts and up.get('former') in starts]
    within = [gap(pid, *pair) for pid, times in starts.items() if pid in facts.index_of
              for pair in itertools.pairwise(sorted(times))]
    return across, within


def calm(pairs):
    return [ms for ms, is_so in pairs if is_so]


def share(values, part):
    """The value below which that part of them is."""
    return sorted(values)[min(int(part * len(values)), len(values) - 1)] if values else 0


def report(events, hand_overs):
    """Lines about the upgrades of a run, or none. hand_overs: see Service."""
    facts = Facts(sorted(events, key=lambda event: event['t']))
    asked, refused = facts.of['asked'], facts.of['refused']
    done = [event for event in facts.of['up'] if 'former' in event]
    if not asked:
        return []
    runs = crossing(facts)
    well = sum(run.end is not None for run in runs)
    across, within = gaps(facts)
    return [
        f'{len(done)} upgrades of {len(asked)} asked for, '
        f'{sum(up["program"] == "next" for up in done)} of them to the next version; '
        f'{sum(event["program"] not in WORKS for event in asked)} broken programs; '
        f'{sum(event["program"] in WORKS for event in refused)} that faults prevented',
        f'{len(runs)} tasks ran at an upgrade, {well} of them to their end in the former process, '
        f'{len(runs) - well} until another fault',
        *(f'{what}: {len(values)}, p50 {share(values, 0.5):.0f} ms, p99 {share(values, 0.99):.0f} ms, '
          f'longest {max(values):.0f} ms' for values, what in (
              (hand_overs, 'hand-overs, in which nobody claims'),
              ([ms for ms, _ in across], 'from the last start in a process to the first in its successor'),
              (calm(across), 'of these without a fault meanwhile'),
              (calm(within), 'from start to start in one process without a fault meanwhile')) if values)]
