/*
 * The protocol of leases and fencing, for spin: which worker may run a task, until when, and what a late worker can
 * still do. The functions of src/queue/lua are steps of Redis; src/daemon and the guard are steps of workers. Lanes,
 * names, delays, and the search for processes are left out.
 *
 * Checked in every order of all steps:
 *   I1  after the last fault each task ends: it has succeeded or is a dead letter
 *   I2  when a success is accepted no process of the task runs, and a task that has ended never runs again
 *   I3  two processes never run one task at the same time
 *   I4  if Redis was away, and nothing else was wrong, no task has counted a crash
 *
 * Time is a count of ticks, which may pass at any moment, but not before urgent steps: at its deadline a process is
 * killed, if a daemon or guard is there to do it. A lease expires LEASE ticks after Redis heard of its owner; the
 * deadline is MARGIN earlier, and counts from the sending of that call.
 *
 * FAULTS of these happen, in any order and at any step: a connection breaks, a daemon is stopped, it is killed alone
 * or with all its processes, the group is lost, a reply takes longer than a tick, Redis goes away and comes back, with
 * all that it knew or without the claims, and then perhaps without one of the workers, of which all others have heard.
 * Guards that are killed together with their daemon while their tasks live on are left out, because cgroups handle
 * them.
 *
 * Each BUG removes one rule, and must be found: see run.
 */
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef ONLY
#define ONLY 0 /* the number of the one invariant to check, of I1 to I4; 0: all */
#endif
#define TASKS 2
#define STARTS 3  /* of workers in all: each start is a consumer of its own */
#define WORKERS 2 /* maximum of live workers */
#define LEASE 2
#ifdef BUG_NO_MARGIN
#define MARGIN 0
#else
#define MARGIN 1
#endif
#define CRASHES 2
#define NONE 15

/* ---- Redis ---- */

mtype:place = { ready, pending, succeeded, died };
mtype:place place[TASKS]; /* of the task's one entry, or its outcome */
byte owner[TASKS];        /* pending: its owner */
byte idle[TASKS];         /* pending: ticks since Redis heard of its owner */
byte record[TASKS];       /* `running`: the worker that claimed this entry, or NONE */
byte moved[TASKS];        /* the worker that had claimed the former entry, whose success still counts, or NONE */
byte crashes[TASKS];
byte hold;                /* ticks for which nothing is claimed */
byte outage;              /* ticks for which nothing is taken over, unless all workers return before */
bool forgot;              /* nothing ends the outage early: workers tell of one that Redis does not know */
bool away;                /* Redis answers nothing */

/* ---- workers ---- */

mtype:life = { unborn, up, stopped, dead };
mtype:life life[STARTS];
bool guard[STARTS];
bool proof[STARTS];       /* the guard's line in the lock file */
bool process[STARTS];     /* its task's process lives */
byte deadline[STARTS];    /* ticks until it is killed */

mtype:state = { free, named, running, ended };
mtype:state state[STARTS];
byte task[STARTS];        /* its task, unless free */
mtype:token = { current, former, stale };
mtype:token token[STARTS]; /* and the entry of its claim: the task's current one, the former, or an older one */
mtype:result = { exit0, failed, released };
mtype:result result[STARTS]; /* of a process that has ended: the outcome to send */

/* The call under way, and the session. */
mtype:call = { nothing, read, claim, renew, finish, register };
mtype:call call[STARTS];
bool answered[STARTS];    /* the reply is on its way */
bool granted[STARTS];     /* the reply is a success */
byte age[STARTS];         /* ticks since the call was sent */
bool broken[STARTS];      /* the connection is broken: the reply is lost */
bool awaited[STARTS];     /* it has not returned after the outage */

byte faults = FAULTS;
bool calm;                /* no more faults, and all workers go on */
bool only_outages;        /* there were faults, and all of them were that Redis was away */

/* Not checked; they name a failed assertion. */
bool I1 = (ONLY && ONLY != 1), I2 = (ONLY && ONLY != 2), I3 = (ONLY && ONLY != 3);
bool I4 = (ONLY && ONLY != 4);

#define is_up(c) (life[c] == up)
#define is_alive(c) (life[c] == up || life[c] == stopped)
#define alive (is_alive(0) + is_alive(1) + is_alive(2))
#define to_come ((life[0] == unborn) + (life[1] == unborn) + (life[2] == unborn))
#define is_idle(c) (is_up(c) && call[c] == nothing && !broken[c])
#define has_answer(c) (is_up(c) && call[c] != nothing && answered[c] && !broken[c])
#define will_run(c) (call[c] != nothing && !answered[c])
#define can_take(c, t) (place[t] == pending && owner[t] != c && record[t] == NONE)
#define is_over(t) (place[t] == succeeded || place[t] == died)
#define is_named(c, t) (state[c] != free && task[c] == t && token[c] == current)
#define is_new(t) (moved[t] == NONE && record[t] == NONE && crashes[t] == 0)
#define runs(c, t) (process[c] && task[c] == t)
#define awaits(c) (is_up(c) && !broken[c] && call[c] != nothing)
#define is_waiting (awaits(0) || awaits(1) || awaits(2))
#define is_late(c) (is_up(c) && (broken[c] || awaited[c] || (state[c] == running && !process[c])))
#define can_kill(c) (process[c] && deadline[c] == 0 && (is_up(c) || guard[c]))

/* ---- steps of Redis: each is one function call ---- */

/* A new entry, and nothing of the old one is left: whoever holds that has something stale. Only whether entries
 * are the same matters, so they have no numbers. */
inline requeue_as(t, what)
{
    place[t] = ready;
    owner[t] = NONE;
    idle[t] = 0;
    record[t] = NONE;
    age_tokens(t, what)
}

/* Tokens of the current entry become `what`; those of the former entry become old ones. */
inline age_tokens(t, what)
{
    i = 0;
    do
    :: i < STARTS ->
        if
        :: state[i] == free || task[i] != t -> skip
        :: state[i] != free && task[i] == t && token[i] == former && what == former -> token[i] = stale
        :: state[i] != free && task[i] == t && token[i] == current -> token[i] = what
        :: else -> skip
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

#define requeue(t) requeue_as(t, stale)

/* The record of the former claim stays, and points to the new entry. */
inline requeue_begun(t)
{
    moved[t] = record[t];
    requeue_as(t, former)
}

inline end_task(t, how)
{
    place[t] = how;
    owner[t] = NONE;
    idle[t] = 0;
    record[t] = NONE;
    moved[t] = NONE;
    age_tokens(t, stale);
    forget_former(t)
}

inline forget_former(t)
{
    moved[t] = NONE;
    i = 0;
    do
    :: i < STARTS ->
        if
        :: state[i] != free && task[i] == t && token[i] == former -> token[i] = stale
        :: else -> skip
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

/* take_over: its lease expired, or its worker is proved dead. */
inline take_over(t)
{
    if
    :: record[t] == NONE -> requeue(t)
    :: record[t] != NONE && crashes[t] + 1 >= CRASHES ->
        assert(I4 || !only_outages);
        end_task(t, died)
    :: record[t] != NONE && crashes[t] + 1 < CRASHES ->
        assert(I4 || !only_outages);
        crashes[t]++;
        requeue_begun(t)
    fi
}

/* The blocking read, where something is ready: delivered, not begun. Of two that nobody has touched it is the
 * first: they are alike. */
inline do_read(c)
{
    if
    :: place[0] == ready -> t = 0
    :: place[1] == ready && !(place[0] == ready && is_new(0) && is_new(1)) -> t = 1
    fi;
    place[t] = pending;
    owner[t] = c;
    if
    :: broken[c] || life[c] == dead -> skip
    :: else ->
        state[c] = named;
        task[c] = t;
        token[c] = current
    fi
}

/* A claimed task was delivered to another worker: the group was recreated, or Redis had forgotten the claim. */
inline give_back(t)
{
    owner[t] = record[t];
    idle[t] = 0
}

/* leat_claim with that name takes an unclaimed task from the worker that read it. */
inline do_claim(c)
{
    t = task[c];
    granted[c] = false;
    if
    :: place[t] == pending && token[c] == current && (owner[t] == c || (hold == 0 && record[t] == NONE)) ->
        if
        :: hold > 0 && record[t] == NONE -> requeue(t)
#ifndef BUG_NO_OWNER_CHECK
        :: record[t] != NONE && record[t] != c -> give_back(t)
        :: hold > 0 && record[t] == c -> skip
        :: hold == 0 && (record[t] == NONE || record[t] == c) ->
#else
        :: hold > 0 && record[t] != NONE -> skip
        :: hold == 0 ->
#endif
            record[t] = c;
            owner[t] = c;
            idle[t] = 0;
#ifndef BUG_LATE_ALWAYS
            forget_former(t);
#endif
            granted[c] = true
        fi
    :: else -> skip
    fi
}

/* Renews the lease of the named token. XCLAIM takes it from its owner. */
inline do_renew(c)
{
    t = task[c];
    granted[c] = false;
    if
    :: state[c] != free && (place[t] == pending || place[t] == ready) && token[c] == current &&
#ifndef BUG_NO_OWNER_CHECK
       (record[t] == c || (record[t] == NONE && (owner[t] == c || state[c] != named)))
#else
       true
#endif
       ->
        if
        :: place[t] == pending ->
            owner[t] = c;
            idle[t] = 0
        :: else -> skip /* Redis forgot the claim; the worker that reads it next gives it back */
        fi;
        /* a record that somebody has deleted is restored; what was not claimed is not named as claimed */
        if
        :: record[t] == NONE && state[c] != named -> record[t] = c
        :: else -> skip
        fi;
        granted[c] = true
    :: else -> skip
    fi;
#ifdef BUG_RETURNED_BLINDLY
    return_worker(c)
#else
    if
    :: granted[c] || state[c] == free -> return_worker(c)
    :: else -> skip
    fi
#endif
}

/* After an outage, a worker has returned once it names nothing that is lost. */
inline return_worker(c)
{
    awaited[c] = false;
    if
#ifdef BUG_FORGETS_WORKERS
    :: outage > 0 && !awaited[0] && !awaited[1] && !awaited[2] ->
#else
    :: outage > 0 && !forgot && !awaited[0] && !awaited[1] && !awaited[2] ->
#endif
        outage = 0;
        hold = 0
    :: else -> skip
    fi
}

inline succeed(t)
{
    assert(I2 || (!runs(0, t) && !runs(1, t) && !runs(2, t)));
    end_task(t, succeeded)
}

inline do_finish(c)
{
    t = task[c];
    if
    :: !is_over(t) && token[c] == current &&
#ifndef BUG_NO_OWNER_CHECK
       record[t] == c
#else
       record[t] != NONE
#endif
       ->
        if
        :: result[c] == exit0 -> succeed(t)
        :: result[c] == failed -> end_task(t, died)
        :: result[c] == released -> requeue(t) /* a retry does the same */
        fi
    :: !is_over(t) && token[c] == former && moved[t] == c && result[c] == exit0 ->
        succeed(t) /* late, but no attempt has started since */
    :: else -> skip /* fenced, or gone */
    fi
}

/* The first call of a session: renews named tokens, and requeues all others that are pending for the caller. */
inline do_register(c)
{
    if
    :: state[c] == running || state[c] == ended -> do_renew(c)
    :: else ->
        granted[c] = false;
        return_worker(c)
    fi;
    t = 0;
    do
    :: t < TASKS && place[t] == pending && owner[t] == c && !is_named(c, t) ->
        if
        :: record[t] != NONE && record[t] != c -> give_back(t)
        :: else -> requeue(t)
        fi;
        t++
    :: t < TASKS && !(place[t] == pending && owner[t] == c && !is_named(c, t)) -> t++
    :: t >= TASKS -> break
    od
}

/* Values that are no longer used must not distinguish states. */
inline forget(c)
{
    state[c] = free;
    task[c] = 0;
    token[c] = stale;
    result[c] = released;
    deadline[c] = 0
}

inline forget_call(c)
{
    call[c] = nothing;
    answered[c] = false;
    granted[c] = false;
    age[c] = 0
}

/* Clears unused values of dead workers. */
inline forget_dead(c)
{
    if
    :: life[c] == dead && !process[c] && !will_run(c) -> forget(c); forget_call(c)
    :: else -> skip
    fi
}

active [TASKS] proctype leases()
{
    byte i;
    byte t = _pid;
end:
    do
    /* the scan of any live worker */
#ifndef BUG_NO_SCAN
    :: atomic { place[t] == pending && owner[t] != NONE && idle[t] >= LEASE && !away &&
#ifndef BUG_NO_OUTAGE
        outage == 0
#else
        true
#endif
        -> take_over(t)
    }
#endif
    /* reclaim by any live worker */
    :: atomic { place[t] == pending && owner[t] != NONE && !away &&
#ifdef BUG_ADOPT_UNPROVED
        life[owner[t]] == dead
#else
        proof[owner[t]]
#endif
        ->
#ifdef BUG_DROP_CONSUMER
        owner[t] = NONE /* DELCONSUMER with pending entries: no worker finds them */
#else
        if
#ifndef BUG_ADOPT_BLINDLY
        :: record[t] != NONE && record[t] != owner[t] -> give_back(t) /* that worker may live */
#endif
        :: else -> take_over(t)
        fi
#endif
    }
    od
}

/* The group is lost and recreated: everything is delivered again, after one lease. */
active proctype group()
{
    byte t;
end:
    do
    :: atomic { faults > 0 && !calm && hold == 0 && !away ->
        faults--;
        only_outages = false;
        do
        :: t < TASKS ->
            if
            :: place[t] == pending ->
                place[t] = ready;
                owner[t] = NONE;
                idle[t] = 0
            :: else -> skip
            fi;
            t++
        :: else -> break
        od;
        hold = LEASE;
        t = 0
    }
    od
}

/* ---- steps of workers ---- */

inline send(c, what)
{
    call[c] = what;
    answered[c] = false;
    granted[c] = false;
    age[c] = 0
}

inline start_process(c)
{
    assert(I2 || !is_over(task[c]));
    assert(I3 || (!runs(0, task[c]) && !runs(1, task[c]) && !runs(2, task[c])));
    process[c] = true;
    state[c] = running;
    set_deadline(c)
}

inline set_deadline(c)
{
#ifdef BUG_FROM_ANSWER
    deadline[c] = LEASE - MARGIN
#else
    deadline[c] = LEASE - MARGIN - age[c]
#endif
}

#ifdef BUG_FROM_ANSWER
#define in_time(c) true
#else
#define in_time(c) (age[c] < LEASE - MARGIN)
#endif

inline release(c)
{
    state[c] = ended;
    result[c] = released
}

inline take_answer(c)
{
    if
    :: call[c] == read ->
#ifdef BUG_UNGATED
        start_process(c)
#else
        skip
#endif
    :: call[c] == claim && granted[c] && in_time(c) -> start_process(c)
    :: call[c] == claim && granted[c] && !in_time(c) -> release(c)
    :: call[c] == claim && !granted[c] -> forget(c)
    :: (call[c] == renew || call[c] == register) && state[c] == running ->
        if
        :: !granted[c] -> process[c] = false; forget(c)
        :: granted[c] && process[c] && in_time(c) -> set_deadline(c)
        :: else -> skip
        fi
    :: (call[c] == renew || call[c] == register) && state[c] != running -> skip
    :: call[c] == finish -> forget(c)
    fi;
    forget_call(c);
    go_on(c)
}

/* A call is sent at once, and arrives at any later time. */
inline go_on(c)
{
    if
    :: is_idle(c) && state[c] == named -> send(c, claim)
    :: is_idle(c) && state[c] == ended -> send(c, finish)
    :: else -> skip
    fi
}

/* A free worker waits in a blocking read, which may deliver a task even if the reply is lost. */
inline leave_read(c)
{
    if
    :: state[c] == free && call[c] == nothing -> send(c, read)
    :: else -> skip
    fi
}

proctype worker(byte c)
{
    byte t, i;
end:
    do
    :: atomic { life[c] == unborn && alive < WORKERS && (c == 0 || life[c - 1] != unborn) ->
        life[c] = up;
#ifndef BUG_NO_GUARD
        guard[c] = true
#endif
    }

    /* its calls arrive when they arrive, also those of the dead and of broken connections; only a read that
     * nobody waits for is one that was sent before, see below */
    :: atomic { will_run(c) && !away && (call[c] != read || place[0] == ready || place[1] == ready) ->
        if
        :: call[c] == read -> do_read(c)
        :: call[c] == claim -> do_claim(c)
        :: call[c] == renew -> do_renew(c)
        :: call[c] == finish -> do_finish(c)
        :: call[c] == register -> do_register(c)
        fi;
        answered[c] = true;
        forget_dead(c);
        t = 0
    }

    /* steps of its own */
    :: atomic { is_idle(c) && state[c] == free && (place[0] == ready || place[1] == ready) &&
        !(calm && hold > 0) && !away ->
        send(c, read);
        do_read(c);
        answered[c] = true;
        t = 0
    }
    /* a free slot reads the entry of the task that this worker runs, which was delivered again: a claim leaves it alone */
    :: atomic { is_up(c) && !broken[c] && !away && state[c] == running && token[c] == current &&
        place[task[c]] == ready && record[task[c]] == c ->
        t = task[c];
        place[t] = pending;
        owner[t] = c;
#ifdef BUG_OWN_PUT_BACK
        if
        :: hold > 0 -> requeue(t)
        :: else -> skip
        fi;
#endif
        t = 0
    }
    /* a claim of a task that was delivered to another worker and not claimed: a deferred poison candidate */
    :: atomic { is_idle(c) && state[c] == free && hold == 0 && !away && (can_take(c, 0) || can_take(c, 1)) ->
        if
        :: can_take(c, 0) -> t = 0
        :: can_take(c, 1) -> t = 1
        fi;
        owner[t] = c;
        state[c] = named;
        task[c] = t;
        token[c] = current;
        send(c, claim);
        do_claim(c);
        answered[c] = true;
        t = 0
    }
    :: atomic { is_idle(c) && state[c] == running && process[c] && deadline[c] == 0 && !calm -> send(c, renew) }
    :: atomic { is_idle(c) && awaited[c] && state[c] != named && state[c] != ended -> send(c, renew) }
    :: atomic { has_answer(c) -> take_answer(c) }
    :: atomic { is_up(c) && broken[c] && !away -> /* the former connections are killed first, and a late
         * registration is refused: see join_start and check_order */
        if
        :: state[c] == named -> forget(c)
        :: else -> skip
        fi;
        broken[c] = false;
        send(c, register)
    }

    /* the process, and who ends it: itself, the daemon or its guard, the guard of a dead daemon */
    :: atomic { process[c] ->
        process[c] = false;
        deadline[c] = 0;
        if
        :: result[c] = exit0
        :: result[c] = failed
        fi;
        forget_dead(c)
    }
#ifndef BUG_NO_DEADLINE
    :: atomic { can_kill(c) -> process[c] = false; forget_dead(c) }
#endif
    :: atomic { is_up(c) && state[c] == running && !process[c] -> state[c] = ended; go_on(c) }
    :: atomic { life[c] == dead && guard[c] ->
        process[c] = false;
        guard[c] = false;
        proof[c] = true;
        return_worker(c);
        forget_dead(c)
    }

    /* faults: a broken connection, SIGSTOP, the daemon killed, all of its unit killed */
    :: atomic { faults > 0 && !calm && is_up(c) && !broken[c] ->
        faults--;
        only_outages = false;
        broken[c] = true;
        leave_read(c)
    }
    :: atomic { faults > 0 && !calm && is_up(c) -> faults--; only_outages = false; life[c] = stopped }
    :: atomic { life[c] == stopped -> life[c] = up }
    :: atomic { faults > 0 && !calm && is_alive(c) && alive + to_come > 1 ->
        faults--;
        only_outages = false;
        life[c] = dead;
        broken[c] = false;
        leave_read(c);
        if
        :: skip
        :: guard[c] = false; process[c] = false
        fi;
        if
        :: skip
        :: call[c] = nothing /* it was not sent yet */
        fi;
        forget_dead(c)
    }
    od
}

/* Redis goes away and comes back: with all that it knew, or, from a snapshot, without the claims. The snapshot has the
 * entries that workers name, or older ones. */
active proctype outages()
{
    byte t, i, c;
end:
    do
    :: atomic { faults > 0 && !calm && !away ->
        only_outages = only_outages || faults == FAULTS;
        faults--;
        away = true;
        do
        :: c < STARTS ->
            if
            :: is_alive(c) -> broken[c] = true; leave_read(c)
            :: else -> skip
            fi;
            c++
        :: else -> break
        od;
        c = 0
    }
    :: atomic { away ->
        away = false;
        do
        :: c < STARTS ->
            /* calls that were under way do not arrive any more */
            if
            :: call[c] != nothing -> forget_call(c); forget_dead(c)
            :: else -> skip
            fi;
#ifdef BUG_SILENT_NOT_AWAITED
            awaited[c] = is_up(c) || (life[c] == dead && !proof[c]);
#else
            /* Redis awaits also one that is silent: it may have returned, and claimed, after the snapshot */
            awaited[c] = is_alive(c) || (life[c] == dead && !proof[c]);
#endif
            c++
        :: else -> break
        od;
        if
        :: awaited[0] || awaited[1] || awaited[2] ->
            outage = LEASE;
#ifndef BUG_NO_HOLD
            hold = LEASE
#endif
        :: else -> skip
        fi;
        if
        :: skip
        :: do
            :: t < TASKS && place[t] == pending && record[t] != NONE ->
                if
                :: age_tokens(t, stale)
                :: skip
                fi;
                forget_former(t);
                place[t] = ready;
                owner[t] = NONE;
                idle[t] = 0;
                record[t] = NONE;
                t++
            :: t < TASKS && !(place[t] == pending && record[t] != NONE) -> t++
            :: t >= TASKS -> break
            od;
            if
            :: skip
            :: awaited[0] && is_alive(0) && (awaited[1] || awaited[2]) -> awaited[0] = false; forgot = true
            :: awaited[1] && is_alive(1) && (awaited[0] || awaited[2]) -> awaited[1] = false; forgot = true
            :: awaited[2] && is_alive(2) && (awaited[0] || awaited[1]) -> awaited[2] = false; forgot = true
            fi
        fi;
        t = 0;
        c = 0
    }
    od
}

/* ---- time, and the end ---- */

active proctype clock()
{
    byte c, t;
    do
    :: atomic { !calm -> calm = true }
    :: atomic { calm && is_over(0) && is_over(1) -> break }
    :: atomic {
#ifdef BUG_NO_DEADLINE
        (!calm || timeout) && (!is_waiting || (faults > 0 && !calm)) ->
#else
        (!calm || timeout) && !can_kill(0) && !can_kill(1) && !can_kill(2) &&
        !(only_outages && !away && (is_late(0) || is_late(1) || is_late(2))) &&
        (!is_waiting || (faults > 0 && !calm)) ->
#endif
        faults = faults - is_waiting;
        only_outages = only_outages && !is_waiting;
        /* if no other step is possible, something must wait for time, or it would wait forever */
        assert(I1 || !calm || hold > 0 || outage > 0 || (place[0] == pending && idle[0] < LEASE) ||
               (place[1] == pending && idle[1] < LEASE));
        do
        :: c < STARTS ->
            deadline[c] = deadline[c] - (process[c] && deadline[c] > 0);
            age[c] = age[c] + (age[c] < LEASE - MARGIN &&
                               (call[c] == claim || call[c] == renew || call[c] == register));
            /* calls of dead workers have arrived by now, or never will */
            if
            :: life[c] == dead && call[c] != nothing -> forget_call(c); forget_dead(c)
            :: else -> skip
            fi;
            c++
        :: else -> break
        od;
        do
        :: t < TASKS ->
            idle[t] = idle[t] + (place[t] == pending && idle[t] < LEASE);
            t++
        :: else -> break
        od;
        hold = hold - (hold > 0);
        outage = outage - (outage > 0);
        if
        :: outage == 0 -> awaited[0] = false; awaited[1] = false; awaited[2] = false; forgot = false
        :: else -> skip
        fi;
        c = 0;
        t = 0
    }
    od
}

init {
    byte t, c;
    atomic {
        do
        :: t < TASKS ->
            place[t] = ready;
            owner[t] = NONE;
            record[t] = NONE;
            moved[t] = NONE;
            t++
        :: else -> break
        od;
        do
        :: c < STARTS ->
            life[c] = unborn;
            forget(c);
            forget_call(c);
            run worker(c);
            c++
        :: else -> break
        od
    }
}
