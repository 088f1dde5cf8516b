/*
 * The states of one attempt: a pure function from (state, event) to (state, actions), so that the
 * whole table is tested without a process. Events may come in any order: a lost lease and a child's
 * exit in any state.
 */
#ifndef LEAT_EXEC_JOB_JOB_H
#define LEAT_EXEC_JOB_JOB_H

#include <stdbool.h>

#include "exec/job/outcome.h"

enum job_state {
    JOB_CLAIMED,  /* begun in Redis, not started here */
    JOB_CHECKING, /* the process lives that says whether the task was done before */
    JOB_CHECKED,  /* it has said no and is gone; its group and output are awaited, then it runs */
    JOB_RUNNING,  /* the process lives */
    JOB_ENDING,   /* it was sent TERM and has its grace */
    JOB_KILLING,  /* it was sent KILL */
    JOB_SETTLING, /* the leader is gone and its group was killed; output and group are awaited */
    JOB_DONE,     /* nothing of it is left; its result may be sent */
};

enum job_event {
    JOB_CHECK_STARTED,
    JOB_TO_RUN, /* the check's leader has exited: not done yet */
    JOB_STARTED,
    JOB_START_FAILED,
    JOB_TIMED_OUT,
    JOB_OVERFLOWED,  /* it wrote more than it may */
    JOB_LEASE_LOST,  /* or about to run out */
    JOB_STOP,        /* the worker's drain is over */
    JOB_CANCEL,      /* nobody wants it any more */
    JOB_GRACE_OVER,  /* the time between TERM and KILL */
    JOB_KILL_NOW,    /* the last moment before the lease passes on */
    JOB_EXITED,      /* the leader has exited */
    JOB_QUIET,       /* its group is empty and its output at the end */
    JOB_SETTLE_OVER, /* they were waited for long enough */
};

enum job_action {
    JOB_SEND_TERM = 1 << 0,
    JOB_SEND_KILL = 1 << 1,
    JOB_START_GRACE = 1 << 2,
    JOB_KILL_GROUP = 1 << 3, /* what is left of it after the leader's exit, then reap */
    JOB_START_SETTLE = 1 << 4,
    JOB_REPORT = 1 << 5, /* tell the owner that it ended */
    JOB_RUN = 1 << 6,    /* start the task itself, now that it was checked */
};

struct job_step {
    enum job_state state;
    unsigned actions; /* of enum job_action */
};

/* Nothing has told it to end yet. */
bool job_is_under_way(enum job_state state);

/* The one function that changes a state. */
struct job_step job_next(enum job_state state, enum job_event event);

/* Which cause stands when `event` comes while `so_far` is what ended it first (CAUSE_EXIT: nothing
 * yet). The first reason wins, but a process that exited by itself before any signal of ours keeps
 * its exit. */
enum cause job_cause(enum job_state state, enum job_event event, enum cause so_far);

#endif
