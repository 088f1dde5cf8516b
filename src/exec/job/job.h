/*
 * The states of one attempt: a pure function from (state, event) to (state, actions), so that tests
 * can check the whole table without a process. Events may come in any order: a lease may be lost
 * and a child may exit in any state.
 */
#ifndef LEAT_EXEC_JOB_JOB_H
#define LEAT_EXEC_JOB_JOB_H

#include <stdbool.h>

#include "exec/job/outcome.h"

enum job_state {
    JOB_CLAIMED,  /* claimed in Redis, not started here */
    JOB_CHECKING, /* the process of [task] check runs */
    JOB_CHECKED,  /* the check has said "not done"; its group and output still have to end */
    JOB_RUNNING,  /* the process runs */
    JOB_ENDING,   /* TERM was sent, and the grace period runs */
    JOB_KILLING,  /* KILL was sent */
    JOB_SETTLING, /* the leader is gone and its group was killed; both and the output have to end */
    JOB_DONE,     /* nothing is left; the result may be sent */
};

enum job_event {
    JOB_CHECK_STARTED,
    JOB_TO_RUN, /* the check has exited and said "not done" */
    JOB_STARTED,
    JOB_START_FAILED,
    JOB_TIMED_OUT,
    JOB_OVERFLOWED,  /* it wrote more than max_output */
    JOB_LEASE_LOST,  /* the lease is lost, or about to expire */
    JOB_STOP,        /* the worker stops, and the drain is over */
    JOB_CANCEL,      /* somebody has cancelled the task */
    JOB_GRACE_OVER,  /* the time between TERM and KILL is over */
    JOB_KILL_NOW,    /* the last moment before another worker may claim the task */
    JOB_EXITED,      /* the leader has exited */
    JOB_QUIET,       /* its group is empty, and its output is read to the end */
    JOB_SETTLE_OVER, /* the longest wait for that is over */
    JOB_MUTE,        /* a resident process can read tasks or report results no longer */
    JOB_VERDICT,     /* a resident process has reported the result, and lives on */
};

enum job_action {
    JOB_SEND_TERM = 1 << 0,
    JOB_SEND_KILL = 1 << 1,
    JOB_START_GRACE = 1 << 2,
    JOB_KILL_GROUP = 1 << 3, /* kill the rest of the group, then reap the leader */
    JOB_START_SETTLE = 1 << 4,
    JOB_REPORT = 1 << 5, /* report the end to the owner */
    JOB_RUN = 1 << 6,    /* start the task itself after its check */
};

struct job_step {
    enum job_state state;
    unsigned actions; /* bits of enum job_action */
};

/* Returns true if the process runs and leat has not told it to end. */
bool job_is_under_way(enum job_state state);

/* Returns the next state and its actions. No other function changes a state. */
struct job_step job_next(enum job_state state, enum job_event event);

/* Returns the cause of the end after `event`. so_far is the cause before it; CAUSE_EXIT means that
 * nothing has ended the attempt yet. The first cause wins, but a process that exits by itself
 * before leat sends a signal keeps its exit. */
enum cause job_cause(enum job_state state, enum job_event event, enum cause so_far);

#endif
