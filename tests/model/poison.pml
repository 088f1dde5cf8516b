/*
 * The protocol of poison candidates, for spin: whose crash it is if a worker is lost, and what may run beside what.
 * `judge` of src/queue/lua/claim.lua is start and postpone here, `take_over` of requeue.lua is take_over. Leases and
 * fencing are in leat.pml. A worker runs several tasks here, and Redis and the network do not fail.
 *
 * Task 0 is poison: it kills its worker each time, at any moment, and never ends otherwise. The others are innocent.
 * KILLS of the workers are killed from outside as well.
 *
 * Checked in every order of all steps:
 *   P1  an innocent task never becomes a dead letter
 *   P2  the poison task becomes one after MAX crashes; it is spared once at most, so it kills MAX + 1 workers at most
 *   P3  a task is spared if a candidate ran beside it, the first time; otherwise its crash is counted
 *   P4  two candidates never run on one worker, and the last chance of a task is alone
 *   P5  each task ends: no postponed task is forgotten
 *
 * Each BUG removes one rule, and must be found: see run.
 */
#ifndef KILLS
#define KILLS 1
#endif
#ifndef ONLY
#define ONLY 0 /* the number of the one invariant to check; 0: all */
#endif
#define TASKS 3
#define POISON 0
#define SLOTS 2
#define CONSUMERS 3 /* a dead one is used again when nothing of it is left */
#define WORKERS 2   /* maximum of live ones */
#define MAX 3
#define NONE 15
#define LOST 14 /* of a mark: the candidate was taken over */

mtype:place = { ready, postponed, pending, succeeded, died };
mtype:place place[TASKS];
byte owner[TASKS];
byte crashes[TASKS];
bool spared[TASKS];
byte mark[CONSUMERS]; /* the last candidate that it has claimed, LOST, or NONE */
bool up[CONSUMERS];
bool known[CONSUMERS]; /* it has started, and is not deleted yet */
byte kills = KILLS;

/* Of what really happened; the rules do not look at them. */
bool beside[TASKS];    /* a candidate ran beside it when its worker was lost */
byte killed;           /* workers, by the poison task */

bool P1 = (ONLY && ONLY != 1), P2 = (ONLY && ONLY != 2), P3 = (ONLY && ONLY != 3), P4 = (ONLY && ONLY != 4);
bool P5 = (ONLY && ONLY != 5);

#define is_over(t) (place[t] == succeeded || place[t] == died)
#define is_candidate(t) (crashes[t] > 0)
#define is_last(t) (crashes[t] + 1 >= MAX)
#define alive (up[0] + up[1] + up[2])
#define runs_on(t, c) (place[t] == pending && owner[t] == c)

byte busy, candidates, last;

/* What runs on c. */
inline look_at(c)
{
    busy = 0;
    candidates = 0;
    last = 0;
    i = 0;
    do
    :: i < TASKS ->
        busy = busy + runs_on(i, c);
        candidates = candidates + (runs_on(i, c) && is_candidate(i));
        last = last + (runs_on(i, c) && is_candidate(i) && is_last(i));
        i++
    :: else -> break
    od;
    i = 0
}

inline forget()
{
    busy = 0;
    candidates = 0;
    last = 0;
    i = 0
}

#ifdef BUG_STALE_MARK
#define has_candidate(c) (mark[c] < LOST)
#else
#define has_candidate(c) (mark[c] < LOST && runs_on(mark[c], c))
#endif

/* Whether the worker may claim the task now. */
#ifdef BUG_NEVER_ALONE
#define may_start(t, c) (busy < SLOTS && !(is_candidate(t) && has_candidate(c)))
#else
#define may_start(t, c) (busy < SLOTS && last == 0 && \
    (!is_candidate(t) || (is_last(t) -> busy == 0 : !has_candidate(c))))
#endif

inline start(t, c)
{
    assert(P4 || !is_candidate(t) || (candidates == 0 && (!is_last(t) || busy == 0)));
    assert(P4 || last == 0);
    place[t] = pending;
    owner[t] = c;
    if
    :: is_candidate(t) -> mark[c] = t
    :: else -> skip
    fi
}

/* A candidate has ended on its worker, or was taken over: the next one may run. */
inline bring()
{
#ifndef BUG_NOT_BROUGHT
    if
    :: place[0] == postponed -> place[0] = ready
    :: place[0] != postponed && place[1] == postponed -> place[1] = ready
    :: place[0] != postponed && place[1] != postponed && place[2] == postponed -> place[2] = ready
    :: else -> skip
    fi
#else
    skip
#endif
}

inline lose(c)
{
    look_at(c);
    up[c] = false;
    i = 0;
    do
    :: i < TASKS ->
        beside[i] = (runs_on(i, c) -> !is_candidate(i) && candidates > 0 : beside[i]);
        i++
    :: else -> break
    od;
    forget()
}

inline take_over(t, c)
{
    if
#ifndef BUG_NEIGHBOURS_BLAMED
#ifdef BUG_ALWAYS_SPARED
    :: !is_candidate(t) && (mark[c] == LOST || has_candidate(c)) ->
#else
    :: !is_candidate(t) && !spared[t] && (mark[c] == LOST || has_candidate(c)) ->
#endif
        assert(P3 || beside[t]);
        spared[t] = true;
        place[t] = ready
#endif
    :: else ->
        assert(P3 || !beside[t] || spared[t]);
#ifndef BUG_BLAME_FORGOTTEN
        mark[c] = (mark[c] == t -> LOST : mark[c]);
#else
        mark[c] = (mark[c] == t -> NONE : mark[c]);
#endif
        if
        :: is_candidate(t) -> bring()
        :: else -> skip
        fi;
        crashes[t]++;
        if
        :: crashes[t] >= MAX ->
            assert(P1 || t == POISON);
            place[t] = died
        :: else -> place[t] = ready
        fi
    fi;
    owner[t] = NONE;
    beside[t] = false
}

/* Deletes a consumer that is gone, once nothing of it is pending. */
inline drop(c)
{
    known[c] = false;
    mark[c] = NONE
}

active [CONSUMERS] proctype consumer()
{
    byte c = _pid, t, i;
end:
    do
    :: atomic { !known[c] && alive < WORKERS && !(is_over(0) && is_over(1) && is_over(2)) ->
        known[c] = true;
        up[c] = true
    }
    :: atomic { up[c] ->
        select(t : 0 .. TASKS - 1);
        if
        :: place[t] == ready ->
            look_at(c);
            if
            :: may_start(t, c) -> start(t, c)
            :: !may_start(t, c) && is_candidate(t) && !is_last(t) && has_candidate(c) -> place[t] = postponed
            :: else -> skip
            fi;
            forget()
        :: runs_on(t, c) && t != POISON ->
            place[t] = succeeded;
            owner[t] = NONE;
            if
            :: is_candidate(t) -> bring()
            :: else -> skip
            fi
        :: runs_on(t, c) && t == POISON ->
            killed++;
            assert(P2 || killed <= MAX + 1);
            lose(c)
        :: else -> skip
        fi;
        t = 0
    }
    :: atomic { up[c] && kills > 0 -> kills--; killed = killed + runs_on(POISON, c); lose(c) }
    :: atomic { known[c] && !up[c] ->
        if
        :: runs_on(0, c) -> take_over(0, c)
        :: runs_on(1, c) -> take_over(1, c)
        :: runs_on(2, c) -> take_over(2, c)
        :: !runs_on(0, c) && !runs_on(1, c) && !runs_on(2, c) -> drop(c)
        fi
    }
    od
}

/* Nothing can become ready any more, and nothing runs: all tasks must be over. */
active proctype observer()
{
end:
    do
    :: atomic { place[0] != 0 && place[0] != ready && place[1] != ready && place[2] != ready && place[0] != pending &&
        place[1] != pending && place[2] != pending ->
        assert(P5 || (is_over(0) && is_over(1) && is_over(2)));
        break
    }
    od
}

init {
    byte t, c;
    atomic {
        do
        :: t < TASKS -> place[t] = ready; owner[t] = NONE; t++
        :: else -> break
        od;
        do
        :: c < CONSUMERS -> mark[c] = NONE; c++
        :: else -> break
        od
    }
}
