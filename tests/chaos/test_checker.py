"""The checker on histories made by hand: a correct one passes, and each violation is found by its invariant,
and by no other."""
import copy

import pytest

from checker import check, story
from history import read

S = 10 ** 9
META = {'e': 'meta', 'lease_ns': 2 * S, 'timeout_ns': 8 * S, 'late_ns': 0, 'max_attempts': 3, 'max_crashes': 3,
        'permanent': 100, 'workers': 1, 'slots': 20, 'alone': [], 'wall_ns': 0}
FINAL = {'e': 'final', 'left': {'stream': 0, 'pending': 0}, 'dead': [], 'names': 0, 'stats': {}, 'orphans': [],
         'zombies': [], 'descriptors': [[0, 20, 22]]}
PID = 10  # the worker's


class Made:
    """A history. Times are in seconds."""

    def __init__(self):
        self.events, self.final, self.meta, self.calls = [], copy.deepcopy(FINAL), {}, 0
        self.pid = 1000
        self.say(0, 'up', w=0, pid=PID)

    def say(self, at, event, **values):
        self.events.append({'t': round(at * S), 'e': event, **values})
        return self.events[-1]

    def enqueue(self, at, n, answer='ok', what='new', tid=None, **values):
        task = {'payload': 'p', 'fails': 0, 'code': 1, 'kills': 0, 'key': '', **values}
        self.say(at, 'invoke', n=n, **task)
        if answer == 'ok':
            self.say(at + 0.01, 'ok', n=n, what=what, tid=tid or f'{n}-0')
        else:
            self.say(at + 0.01, answer, n=n)

    def claim(self, at, n, fence=1, attempt=1, crashes=0):
        self.say(at, 'claim', w=0, token=f's{n}-{fence}', n=n, tid=f'{n}-0', attempt=attempt, crashes=crashes,
                 fence=fence)

    def run(self, at, n, fence=1, attempt=1, lasts=0.1, code=0, beats=(), worker=PID):
        """A code of None: the run is killed."""
        self.pid += 1
        who = {'n': n, 'task': f'{n}-0', 'attempt': attempt, 'fence': fence, 'worker': f'h:{worker}:x',
               'pid': self.pid, 'code': 0}
        self.say(at, 'start', **who)
        for beat in beats:
            self.say(at + beat, 'beat', **who)
        if code is not None:
            self.say(at + lasts, 'end', **{**who, 'code': code})

    def finish(self, at, n, fence=1, outcome='success', state='ok', cause=''):
        """A state of None: no reply comes."""
        self.calls += 1
        self.say(at, 'finish', w=0, call=self.calls, results=[[f's{n}-{fence}', outcome, cause]])
        if state is not None:
            self.say(at + 0.01, 'finished', w=0, call=self.calls, states=[state])

    def attempt(self, at, n, fence=1, attempt=1, outcome='success', code=0, **values):
        """A complete attempt of 0.2 s."""
        self.claim(at, n, fence, attempt)
        self.run(at + 0.01, n, fence, attempt, code=code, **values)
        self.finish(at + 0.15, n, fence, outcome)

    def letter(self, at, n, cause='exit', attempts=3, crashes=0, payload='p'):
        self.final['dead'].append({'n': n, 'cause': cause, 'attempts': attempts, 'crashes': crashes,
                                   'payload': payload, 'died_ms': round(at * 1000)})

    def fault(self, number, since, until, w=0, kind='kill'):
        self.say(since, 'fault', id=number, kind=kind, w=w)
        self.say(until, 'healed', id=number)

    def upgrade(self, at, to='same', former=PID, new=PID + 1):
        """former is replaced by new."""
        self.say(at, 'asked', w=0, pid=former, program=to)
        self.say(at + 0.1, 'up', w=0, pid=new, former=former, program=to)

    def heal(self, at=50.0, again=51.0):
        self.say(at, 'heal')
        self.say(again, 'renewed', w=0)

    def close(self, drained=True, history=None, **stats):
        if not any(event['e'] == 'heal' for event in self.events):
            self.heal()
        if drained:
            self.say(90, 'drained')
        ended = {event['n'] for event in self.events if event['e'] == 'end' and event['code'] == 0}
        dead = len(self.final['dead'])
        self.final['stats'] = {'succeeded': len(ended), 'dead': dead, **stats}
        if history is not None:
            self.final['ended'] = history
        self.say(100, 'final', **{name: value for name, value in self.final.items() if name != 'e'})
        self.say(100, 'meta', **{name: value for name, value in {**META, **self.meta}.items() if name != 'e'})
        return self.events

    def found(self, **close):
        """The violated invariants, with their tasks."""
        return sorted({(violation.invariant, violation.n) for violation in check(self.close(**close))})


@pytest.fixture
def made():
    """A history with one correct task."""
    one = Made()
    one.enqueue(1, 0)
    one.attempt(2, 0)
    return one


def lost_worker(made, n):
    """A run that its worker's death ends at 4 s, and another one after the lease."""
    made.fault(n, 4, 5)
    made.claim(3.5, n)
    made.run(3.6, n, code=None, beats=[0.1, 0.3])
    made.attempt(7, n, fence=2)


# ---- correct histories

def test_sound(made):
    """Successes, retries up to a dead letter, lost workers, lost replies, cancels and unique keys are
    correct."""
    made.enqueue(3, 1)
    lost_worker(made, 1)
    made.enqueue(3, 2, fails=1000)
    for i in (1, 2, 3):
        made.attempt(3 + i, 2, i, i, 'dead' if i == 3 else 'retry', code=1)
    made.letter(6.15, 2)
    made.enqueue(3, 3)
    made.claim(4, 3)
    made.run(4.1, 3)
    made.finish(4.2, 3, state=None)
    made.finish(4.5, 3, state='gone')
    made.enqueue(3, 4)
    made.say(3.1, 'cancel', n=4, tid='4-0')
    made.say(3.2, 'cancelled', n=4, state='cancelled')
    made.enqueue(3, 5, key='k')
    made.enqueue(3.5, 6, key='k', what='exists', tid='5-0')
    made.attempt(4, 5)
    made.enqueue(5, 7, key='k')
    made.attempt(6, 7)
    made.enqueue(3, 8, answer='info')
    made.enqueue(3, 9, answer='fail')
    made.enqueue(3, 10, answer='info')
    made.attempt(4, 10)
    made.enqueue(3, 11, fails=1000, code=100)
    made.attempt(4, 11, outcome='dead', code=100)
    made.letter(4.15, 11, attempts=1)
    assert made.found() == []


def test_killers(made):
    """A task that kills its worker each time is dead after its budget, and a task beside it runs again."""
    made.enqueue(3, 1, kills=1)
    made.enqueue(3, 2)
    for i in (1, 2, 3):
        made.claim(4 + 3 * i, 1, fence=i, attempt=1, crashes=i - 1)
        made.run(4 + 3 * i + 0.1, 1, fence=i, code=None)
        made.say(4 + 3 * i + 0.2, 'kill', n=1, task='1-0', attempt=1, fence=i, worker=f'h:{PID}:x', pid=1,
                 code=PID)
    made.letter(15, 1, 'crash', 0, 3)
    made.claim(7.1, 2)
    made.run(7.11, 2, code=None)
    made.attempt(10, 2, fence=2)
    assert made.found() == []


# ---- a violation of each invariant

def forget(made):
    """Redis forgets what happened from 4 s to 5 s."""
    made.fault(1, 4, 5, w=-1, kind='redis-forgets')


def test_forgotten(made):
    """What Redis has forgotten may be lost or run again, but with a greater fence. A task that was claimed is
    claimed again from the same entry."""
    forget(made)
    made.enqueue(4.1, 1)
    made.attempt(4.2, 1)
    made.enqueue(3, 2)
    made.attempt(4.2, 2)
    made.claim(6, 2, fence=7)
    made.events[-1]['token'] = 's2-1'
    made.run(6.1, 2, fence=7)
    made.say(6.3, 'finish', w=0, call=99, results=[['s2-1', 'success', '']])
    made.say(6.4, 'finished', w=0, call=99, states=['ok'])
    made.enqueue(3, 3)
    made.say(4.1, 'cancel', n=3, tid='3-0')
    made.say(4.2, 'cancelled', n=3, state='cancelled')
    made.attempt(6, 3)
    made.enqueue(6, 4, bad=True)
    made.letter(6.1, 4, 'refused', 0)
    assert made.found() == []


@pytest.mark.parametrize('fence, beats, invariant', [(1, [], 'I4'), (2, [1.9], 'I3')])
def test_forgotten_twice(made, fence, beats, invariant):
    """A claim that Redis has forgotten excuses neither its fence for the next one, nor a run beside that one."""
    forget(made)
    made.enqueue(3, 1)
    made.claim(4.2, 1)
    made.run(4.3, 1, code=None, beats=beats)
    made.attempt(6, 1, fence=fence)
    assert invariant in {found for found, _ in made.found()}


def test_lost_but_not_forgotten(made):
    made.enqueue(3, 1)
    forget(made)
    assert made.found() == [('I1', 1)]


def test_i1_lost(made):
    """An enqueue with a reply has no outcome."""
    made.enqueue(3, 1)
    assert made.found() == [('I1', 1)]


def test_i1_two_ends(made):
    """A task has a success and a dead letter."""
    made.enqueue(3, 1, fails=1000, code=100)
    made.attempt(4, 1, code=100, outcome='dead')
    made.letter(4.2, 1, attempts=1)
    made.finish(4.4, 1)
    assert ('I1', 1) in made.found()


def test_i1_refused_but_run(made):
    """A refused task has run."""
    made.enqueue(3, 1, answer='fail')
    made.attempt(4, 1)
    assert made.found() == [('I1', 1)]


def test_i1_unknown(made):
    """A task runs that no producer has enqueued."""
    made.attempt(4, 1)
    assert made.found() == [('I1', 1)]


def test_i1_cancelled_but_run(made):
    """A task that was cancelled before its start has succeeded."""
    made.enqueue(3, 1)
    made.say(3.1, 'cancel', n=1, tid='1-0')
    made.say(3.2, 'cancelled', n=1, state='cancelled')
    made.attempt(4, 1)
    assert made.found() == [('I1', 1)]


def test_i1_not_drained(made):
    """A queue that is not empty is a violation; that workers go on after the end of the history is none."""
    made.final['left']['stream'] = 1
    made.final['names'] = 1
    made.enqueue(3, 1)
    made.attempt(4, 1)
    assert made.found(drained=False, succeeded=0) == [('I1', -1), ('I8', -1)]


@pytest.mark.parametrize('code', [1, None])
def test_i2_success_unearned(made, code):
    """A failure is reported as a success."""
    made.enqueue(3, 1, fails=1)
    made.attempt(4, 1, code=code)
    assert made.found(succeeded=2) == [('I2', 1)]


def test_i2_success_before_the_end(made):
    made.enqueue(3, 1)
    made.claim(4, 1)
    made.run(4.1, 1, lasts=2)
    made.finish(5, 1)
    assert made.found() == [('I2', 1)]


def test_i3_overlap(made):
    """A second worker starts a task that the first still runs."""
    made.enqueue(3, 1)
    made.fault(1, 4, 6)
    made.claim(3.5, 1)
    made.run(3.6, 1, lasts=3)
    made.attempt(6, 1, fence=2)
    assert made.found() == [('I3', 1)]


def test_i3_descendant_lives_on(made):
    """A run is dead, but not its descendant; a shorter run in between does not hide it."""
    made.enqueue(3, 1, fails=2)
    made.attempt(3.5, 1, code=1, outcome='retry', beats=[1.8])
    made.attempt(4.5, 1, fence=2, attempt=2, code=1, outcome='retry')
    made.attempt(5.2, 1, fence=3, attempt=3)
    assert made.found() == [('I3', 1)]


def test_i4_fence_twice(made):
    """Two claims have the same fencing token."""
    made.enqueue(3, 1)
    lost_worker(made, 1)
    made.say(6.9, 'claim', w=0, token='g9-9', n=1, tid='1-0', attempt=1, crashes=1, fence=2)
    assert made.found() == [('I4', 1)]


def test_i4_falls(made):
    """A later run has a smaller fencing token."""
    made.enqueue(3, 1)
    made.fault(1, 4, 5)
    made.run(3.6, 1, fence=5, code=None)
    made.attempt(7, 1, fence=2)
    assert made.found() == [('I4', 1)]


def test_i4_stale_accepted(made):
    """The old owner's outcome is accepted after a new attempt has started."""
    made.enqueue(3, 1)
    made.fault(1, 4, 5)
    made.claim(3.5, 1)
    made.run(3.6, 1, lasts=1)
    made.claim(7, 1, fence=2)
    made.run(7.1, 1, fence=2)
    made.finish(7.2, 1, fence=1)
    assert made.found() == [('I4', 1)]


def test_i5_attempt_too_many(made):
    made.enqueue(3, 1, fails=3)
    for i in (1, 2, 3, 4):
        made.attempt(3 + i, 1, i, i, 'retry' if i < 4 else 'success', code=i < 4)
    assert ('I5', 1) in made.found()


@pytest.mark.parametrize('values', [
    {'attempts': 2}, {'cause': 'refused'}, {'payload': 'q'}, {'cause': 'crash', 'crashes': 2},
    {'cause': 'crash', 'crashes': 3}])
def test_i5_letters(made, values):
    """A dead letter that is too early, without a reason, with another payload, or with crashes that nothing
    explains."""
    made.enqueue(3, 1, fails=1000)
    for i in (1, 2, 3):
        made.attempt(3 + i, 1, i, i, 'dead' if i == 3 else 'retry', code=1)
    made.letter(6.15, 1, **values)
    assert made.found() == [('I5', 1)]


def test_i5_outages_are_no_crashes(made):
    """A crash is counted, and only Redis was away."""
    made.fault(1, 3.5, 6, w=-1, kind='redis-outage')
    made.enqueue(3, 1)
    made.claim(7, 1, crashes=1)
    made.run(7.01, 1)
    made.finish(7.15, 1)
    assert made.found() == [('I5', 1)]


def test_i5_bad(made):
    """A task that may not start was claimed; a good one was refused."""
    made.enqueue(3, 1, bad=True)
    made.attempt(4, 1)
    made.enqueue(3, 2)
    made.letter(4, 2, 'refused', 0)
    assert made.found() == [('I5', 1), ('I5', 2)]


def test_i5_fails_never(made):
    """A dead letter of a task that does not fail, and one of a task that fails once."""
    for n, fails in ((1, 0), (2, 1)):
        made.enqueue(3, n, fails=fails)
        made.attempt(4, n, outcome='dead', code=1)
        made.letter(4.15, n)
    assert made.found() == [('I5', 1), ('I5', 2)]


def test_i5_twice(made):
    made.enqueue(3, 1, fails=1000, code=100)
    made.attempt(4, 1, outcome='dead', code=100)
    made.letter(4.15, 1, attempts=1)
    made.letter(4.15, 1, attempts=1)
    assert made.found() == [('I5', 1)]


def test_i5_must_be_dead(made):
    made.enqueue(3, 1, fails=1000)
    made.attempt(4, 1)
    assert made.found() == [('I5', 1)]


def test_i6_unexplained(made):
    """A second run after a good first one; a fault of another worker, or long ago, is no reason."""
    made.enqueue(20, 1)
    made.fault(1, 2, 3)
    made.fault(2, 20, 21, w=1)
    made.claim(20.5, 1)
    made.run(20.6, 1)
    made.attempt(21, 1, fence=2)
    assert made.found() == [('I6', 1)]


def test_i7_two_at_once(made):
    """Two tasks of one key run side by side."""
    made.enqueue(3, 1, key='k')
    made.enqueue(3.2, 2, key='k', answer='info')
    made.attempt(4, 1)
    made.attempt(4.05, 2)
    assert made.found() == [('I7', 2)]


def test_i7_taken_while_held(made):
    """The key is given to another task before its holder has ended."""
    made.enqueue(3, 1, key='k')
    made.enqueue(3.5, 2, key='k')
    made.attempt(4, 1)
    made.attempt(5, 2)
    assert made.found() == [('I7', 2)]


def test_i7_taken_after_an_end_that_was_forgotten(made):
    """The holder ends, and another task gets the key; Redis forgets both, and the holder runs again."""
    made.fault(1, 3.9, 5, w=-1, kind='redis-failover-loss')
    made.enqueue(3, 1, key='k')
    made.claim(4, 1)
    made.run(4.1, 1)
    made.enqueue(4.5, 2, key='k')
    made.attempt(6, 1, fence=2)
    assert made.found() == []


@pytest.mark.parametrize('dies', [False, True])
def test_i7_not_released(made, dies):
    """The key is refused for a task that has ended."""
    made.enqueue(3, 1, key='k', code=100, fails=1000 * dies)
    made.attempt(4, 1, outcome='dead' if dies else 'success', code=100 * dies)
    if dies:
        made.letter(4.15, 1, attempts=1)
    made.enqueue(5, 2, key='k', what='exists', tid='1-0')
    assert made.found() == [('I7', 2)]


def test_i7_names_left(made):
    made.final['names'] = 1
    assert made.found() == [('I7', -1)]


@pytest.mark.parametrize('final', [
    {'left': {'pending': 1}}, {'orphans': [4711]}, {'zombies': [4711]}, {'descriptors': [[0, 20, 60]]}])
def test_i8(made, final):
    made.final.update(final)
    assert made.found() == [('I8', -1)]


@pytest.mark.parametrize('again', [49.0, 56.5])
def test_i9(made, again):
    """A worker does not come back, or comes back too late."""
    made.heal(again=again)
    assert made.found() == [('I9', -1)]


def test_i9_busy(made):
    """A worker sends calls in a loop."""
    for i in range(600):
        made.say(20 + i / 1000, 'renewed', w=0, call='leat_claim')
    assert made.found() == [('I9', -1)]


@pytest.mark.parametrize('kind, status', [
    ('cut', 0), ('cut', -9), ('term', 1), ('term', -6), ('term', -9), (None, -11)])
def test_i9_ended(made, kind, status):
    """A daemon ends by itself, or with a wrong status."""
    if kind:
        made.fault(1, 4, 5, kind=kind)
    made.say(4.5, 'down', w=0, pid=PID, status=status)
    assert made.found() == [('I9', -1)]


@pytest.mark.parametrize('kind, status', [('kill', -9), ('guard-kill', -9), ('term', 0), ('term', 75)])
def test_ended_by_a_fault(made, kind, status):
    made.fault(1, 4, 5, kind=kind)
    made.say(4.5, 'down', w=0, pid=PID, status=status)
    assert made.found() == []


@pytest.mark.parametrize('by', ['nothing', 'a fault', 'a task'])
def test_a_former_process_fails(made, by):
    """It may, if the process that has replaced it was killed."""
    made.upgrade(4)
    if by == 'a fault':
        made.fault(1, 4.5, 4.6)
    elif by == 'a task':
        made.say(4.5, 'kill', n=1, task='1-0', attempt=1, fence=1, worker=f'h:{PID + 1}:x', pid=1, code=PID + 1)
    made.say(5, 'down', w=0, pid=PID, status=70)
    assert made.found() == ([('I9', -1)] if by == 'nothing' else [])


@pytest.mark.parametrize('stats', [{'succeeded': 0}, {'succeeded': 2}, {'dead': 1}])
def test_i10(made, stats):
    assert made.found(**stats) == [('I10', -1)]


@pytest.mark.parametrize('history, wrong', [
    ([['0-0', 'succeeded'], ['1-0', 'dead'], ['9-0', 'cancelled']], set()),
    ([['1-0', 'dead']], {('I10', -1)}),
    ([['0-0', 'succeeded']] * 2 + [['1-0', 'dead']], {('I10', 0), ('I10', -1)}),
    ([['1-0', 'succeeded'], ['1-0', 'dead']], {('I10', 1)}),
    ([['0-0', 'succeeded']], {('I10', -1)}),
    ([['0-0', 'succeeded'], ['1-0', 'dead'], ['0-0', 'dead']], {('I10', -1)})])
def test_i10_history(made, history, wrong):
    """The queue's own history lacks an end, has one twice, or has one that did not happen."""
    made.enqueue(3, 1, fails=1000, code=100)
    made.attempt(4, 1, outcome='dead', code=100)
    made.letter(4.15, 1, attempts=1)
    assert made.found(history=history) == sorted(wrong)


def test_i10_fenced(made):
    """A refused outcome is counted."""
    made.enqueue(3, 1)
    lost_worker(made, 1)
    made.finish(8, 1, state='fenced')
    assert made.found() == [('I10', -1)]


def upgraded(made, code=0, until=2.5):
    """A task that runs for 5 s, through an upgrade at 5 s; it has beats until then and for so long after."""
    made.enqueue(3, 1)
    made.claim(4, 1)
    made.run(4.1, 1, lasts=4.9, code=code, beats=[0.5, until])
    made.upgrade(5)


def test_upgrade(made):
    """A former process goes on with its task and ends by itself, and its successor, another worker, takes others.
    A program that does not work changes nothing, and a fault may prevent an upgrade."""
    upgraded(made)
    made.enqueue(5, 2)
    made.claim(5.5, 2)
    made.run(5.6, 2, worker=PID + 1)
    made.finish(5.8, 2)
    made.finish(9.1, 1)
    made.say(9.3, 'down', w=0, pid=PID, status=0)
    made.say(10, 'asked', w=0, pid=PID + 1, program='crashes')
    made.say(10.1, 'refused', w=0, pid=PID + 1, program='crashes', why='it ended', elders=0)
    made.fault(7, 11, 12, kind='cut')
    made.say(11, 'asked', w=0, pid=PID + 1, program='next')
    made.say(11.1, 'refused', w=0, pid=PID + 1, program='next', why='no answer', elders=0)
    made.say(30, 'asked', w=0, pid=PID + 1, program='next')
    made.say(30.1, 'refused', w=0, pid=PID + 1, program='next', why='too many', elders=7)
    assert made.found() == []


@pytest.mark.parametrize('code', [0, 1])
def test_i9_successor_ended(made, code):
    """The new process ends by itself; or the former one has another status than 0."""
    made.upgrade(5)
    made.say(6, 'down', w=0, pid=PID if code else PID + 1, status=code)
    assert made.found() == [('I9', -1)]


def test_i6_upgrades_explain_nothing(made):
    """A task of a former process runs again."""
    made.fault(8, 5, 5.2, kind='upgrade')
    upgraded(made, code=None)
    made.attempt(8, 1, fence=2)
    assert made.found() == [('I11', 1), ('I6', 1)]


def test_i11_released(made):
    """A former process gives its running task back: that is no failure of the task, but not what it promised."""
    upgraded(made, code=None)
    made.finish(7, 1, outcome='release')
    made.attempt(8, 1, fence=2)
    assert made.found() == [('I11', 1)]


def test_i11_slots(made):
    """Two processes together run more tasks than there are slots. One that was killed does not count."""
    made.meta['slots'] = 2
    upgraded(made)
    made.finish(9.1, 1)
    for n in (2, 3):
        made.enqueue(5, n)
        made.claim(6, n)
        made.run(6.1, n, worker=PID + 1)
        made.finish(6.3, n)
    assert made.found() == [('I11', -1)]
    made.fault(9, 5.9, 6)
    made.say(6, 'down', w=0, pid=PID, status=-9)
    assert made.found() == []


@pytest.mark.parametrize('to', ['same', 'next'])
def test_i11_refused(made, to):
    """An upgrade fails for no reason."""
    made.say(10, 'asked', w=0, pid=PID, program=to)
    made.say(10.1, 'refused', w=0, pid=PID, program=to, why='no answer', elders=6)
    assert made.found() == [('I11', -1)]


def test_i11_broken(made):
    """A program that does not work takes over."""
    made.upgrade(5, to='crashes')
    assert made.found() == [('I11', -1)]


def test_story(made):
    """The story of a task has its own events and the faults around it."""
    made.enqueue(3, 1)
    lost_worker(made, 1)
    made.fault(9, 30, 31)
    shown = story(made.close(), 1)
    assert {event.get('n', 1) for event in shown} == {1}
    assert [event['id'] for event in shown if event['e'] == 'fault'] == [1]
    assert [event['e'] for event in shown].count('finished') == 1


def test_torn_lines(tmp_path):
    """An incomplete line of a task that was killed while it wrote damages no other line."""
    file = tmp_path / 'history'
    file.write_text('\n{"t": 2, "e": "a"}\n\n{"t": 3, "e": \n{"t": 1, "e": "b"}\n{"t": 4')
    assert [event['e'] for event in read([file])] == ['b', 'a']


# ---- resident processes

def failed_by_process(made, cause, lasts=0.1, runs=True):
    """An attempt of task 1 fails without a report, and the next one succeeds."""
    made.enqueue(3, 1)
    made.claim(4, 1)
    if runs:
        made.run(4.01, 1, code=None, beats=[lasts - 0.02])
    made.finish(4 + lasts, 1, outcome='retry', cause=cause)
    made.attempt(30, 1, fence=2, attempt=2)


def break_process(made, event='break'):
    """The process of the run that was made last is of no use from now on."""
    made.say(4.05, event, n=1, task='1-0', attempt=1, fence=1, worker=f'h:{PID}:x', pid=made.pid - 1, code=0)


@pytest.mark.parametrize('cause', ['no-verdict', 'output-limit'])
def test_process_that_fails(made, cause):
    """An attempt may fail without a report if its process was broken, or hurt from outside."""
    failed_by_process(made, cause)
    break_process(made)
    assert made.found() == []


def hit(made, kills=True, mine=True, task=''):
    """A fault hurts the process of the run that was made first for task 1, or another process."""
    made.fault(1, 4.02, 4.03, kind='handler-kill')
    made.say(4.02, 'hit', w=0, pid=made.pid - mine, kills=kills, task=task)


@pytest.mark.parametrize('how, violated', [
    ({}, []), ({'kills': False}, [('I5', 1)]), ({'mine': False}, [('I5', 1)])])
def test_process_that_is_hurt(made, how, violated):
    """A process that is killed fails its task. One that is stopped does not, nor does another one."""
    failed_by_process(made, 'no-verdict')
    hit(made, **how)
    assert made.found() == violated


@pytest.mark.parametrize('cause', ['no-verdict', 'output-limit'])
def test_i5_sound_process(made, cause):
    """An attempt fails without a report of a process with which nothing is wrong."""
    failed_by_process(made, cause)
    assert made.found() == [('I5', 1)]


def test_i5_never_read(made):
    """A task that no process has read has failed."""
    failed_by_process(made, 'no-verdict', runs=False)
    assert made.found() == [('I5', 1)]


@pytest.mark.parametrize('cause', ['no-verdict', 'timeout'])
@pytest.mark.parametrize('task, violated', [('1-0', []), ('', [('I5', 1)]), ('2-0', [('I5', 1)])])
def test_i5_hurt_and_never_read(made, cause, task, violated):
    """A process that was hurt may have failed a task that it never read only if it was the task's own."""
    failed_by_process(made, cause, lasts=9, runs=False)
    hit(made, mine=False, task=task)
    assert made.found() == violated


@pytest.mark.parametrize('cause, violated', [('timeout', []), ('no-verdict', [('I5', 1)])])
def test_i5_starved_and_never_read(made, cause, violated):
    """If the machine was busy, a task may have timed out before its own process had read it."""
    failed_by_process(made, cause, lasts=9, runs=False)
    made.fault(1, 5, 6, kind='starved')
    assert made.found() == violated


@pytest.mark.parametrize('reads, violated', [
    ([(4.01, 1)], []), ([(4.01, 1), (4.02, 0)], [('I5', 1)]), ([(3.9, 1)], [('I5', 1)]),
    ([(4.2, 1)], [('I5', 1)])])
def test_i5_read_and_not_begun(made, reads, violated):
    """A process may have read a task that it did not begin, if it read then, and began nothing of it."""
    failed_by_process(made, 'no-verdict', runs=False)
    for at, code in reads:
        made.say(at, 'read', n=-1, worker=f'h:{PID}:x', pid=77, code=code)
    assert made.found() == violated


@pytest.mark.parametrize('lasts, violated', [(8.1, []), (7.9, [('I5', 1)])])
def test_i5_timeout(made, lasts, violated):
    """A task times out, but not before its time is over."""
    failed_by_process(made, 'timeout', lasts)
    assert made.found() == violated


@pytest.mark.parametrize('ordered', [False, True])
def test_i2_lie(made, ordered):
    """A report of success by a process that is being ended counts only if its worker stops."""
    made.enqueue(3, 1)
    made.claim(4, 1)
    made.run(4.01, 1, code=None)
    made.say(4.05, 'lie', n=1, task='1-0', attempt=1, fence=1, worker=f'h:{PID}:x', pid=made.pid, code=0)
    if ordered:
        made.fault(1, 4.03, 4.04, kind='term')
    made.finish(4.1, 1)
    assert made.found(succeeded=2) == ([] if ordered else [('I2', 1)])


def test_i2_lie_in_the_end(made):
    """The same if the worker is asked to stop at the end of the run, long after the last fault."""
    made.enqueue(63, 1)
    made.claim(64, 1)
    made.run(64.01, 1, code=None)
    made.say(64.03, 'fault', id=-1, kind='term', w=0)
    made.say(64.05, 'lie', n=1, task='1-0', attempt=1, fence=1, worker=f'h:{PID}:x', pid=made.pid, code=0)
    made.finish(64.1, 1)
    assert made.found(drained=False) == [('I1', -1)]


def test_i8_outlive_the_worker(made):
    """Processes are left when all workers have ended."""
    made.say(95, 'stopped', processes=[77])
    assert made.found() == [('I8', -1)]


@pytest.mark.parametrize('named, alone, violated', [
    (['0-0'], [0], []), (['1-0'], [0], [('I12', 0)]), ([''], [0], [('I12', 0)]), ([], [0], [('I12', 0)]),
    ([''], [], []), (['1-0'], [], [('I12', 0)]), ([], [], [])])
def test_i12(made, named, alone, violated):
    """Output is logged as that of the next task, as that of a process that has one task at a time, or not at
    all."""
    made.meta['alone'] = alone
    for tid in named:
        made.say(96, 'output', w=0, named=tid, said='0-0', fence=1)
    assert made.found() == violated


@pytest.mark.parametrize('order, again, violated', [
    (None, None, [('I6', 1)]), (3.9, None, []), (4.5, None, [('I6', 1)]), (1, 2, []), (1, 1.5, [('I6', 1)])])
def test_i6_stopped(made, order, again, violated):
    """A worker gives a task back since it stops, and nobody has told it to, or it has started again since then."""
    made.meta['lease_ns'] = S
    made.enqueue(3, 1)
    made.claim(3.5, 1)
    made.run(3.6, 1, code=None)
    if order:
        made.fault(1, order, order + 0.1, kind='term')
        made.say(order + 0.2, 'down', w=0, pid=PID, status=0) if again else None
    if again:
        made.say(again, 'up', w=0, pid=PID)
    made.finish(4, 1, outcome='release')
    made.say(4, 'returned', w=0, tid='1-0')
    made.attempt(5, 1, fence=2)
    made.fault(2, 3, 3.1, kind='starved')
    assert made.found() == violated


def test_returned_before_it_ran(made):
    """A worker that was replaced returns what it has not started."""
    made.enqueue(3, 1)
    made.claim(3.5, 1)
    made.finish(4, 1, outcome='release')
    made.say(4, 'returned', w=0, tid='1-0')
    made.attempt(5, 1, fence=2)
    assert made.found() == []
