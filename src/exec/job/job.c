/*
 * The table of an attempt's states, one function per state.
 */
#include "exec/job/job.h"

static struct job_step step(enum job_state state, unsigned actions)
{
    return (struct job_step){.state = state, .actions = actions};
}

static struct job_step next_claimed(enum job_event event)
{
    switch (event) {
    case JOB_CHECK_STARTED:
        return step(JOB_CHECKING, 0);
    case JOB_STARTED:
        return step(JOB_RUNNING, 0);
    case JOB_START_FAILED:
    case JOB_LEASE_LOST:
    case JOB_STOP:
    case JOB_CANCEL:
    case JOB_KILL_NOW:
        return step(JOB_DONE, JOB_REPORT);
    case JOB_TO_RUN:
    case JOB_TIMED_OUT:
    case JOB_OVERFLOWED:
    case JOB_GRACE_OVER:
    case JOB_EXITED:
    case JOB_QUIET:
    case JOB_SETTLE_OVER:
        break;
    }
    return step(JOB_CLAIMED, 0);
}

static struct job_step next_checking(enum job_event event)
{
    switch (event) {
    case JOB_TO_RUN:
        return step(JOB_CHECKED, JOB_KILL_GROUP | JOB_START_SETTLE);
    case JOB_TIMED_OUT:
    case JOB_OVERFLOWED:
    case JOB_LEASE_LOST:
    case JOB_STOP:
    case JOB_CANCEL:
        return step(JOB_ENDING, JOB_SEND_TERM | JOB_START_GRACE);
    case JOB_KILL_NOW:
        return step(JOB_KILLING, JOB_SEND_KILL);
    case JOB_EXITED:
        return step(JOB_SETTLING, JOB_KILL_GROUP | JOB_START_SETTLE);
    case JOB_CHECK_STARTED:
    case JOB_STARTED:
    case JOB_START_FAILED:
    case JOB_GRACE_OVER:
    case JOB_QUIET:
    case JOB_SETTLE_OVER:
        break;
    }
    return step(JOB_CHECKING, 0);
}

/* There is no process to end: an event that would end one keeps the task from being started. */
static struct job_step next_checked(enum job_event event)
{
    switch (event) {
    case JOB_QUIET:
    case JOB_SETTLE_OVER:
        return step(JOB_CHECKED, JOB_RUN);
    case JOB_STARTED:
        return step(JOB_RUNNING, 0);
    case JOB_START_FAILED:
        return step(JOB_DONE, JOB_REPORT);
    case JOB_LEASE_LOST:
    case JOB_STOP:
    case JOB_CANCEL:
    case JOB_KILL_NOW:
        return step(JOB_SETTLING, 0);
    case JOB_CHECK_STARTED:
    case JOB_TO_RUN:
    case JOB_TIMED_OUT:
    case JOB_OVERFLOWED:
    case JOB_GRACE_OVER:
    case JOB_EXITED:
        break;
    }
    return step(JOB_CHECKED, 0);
}

static struct job_step next_running(enum job_event event)
{
    switch (event) {
    case JOB_TIMED_OUT:
    case JOB_OVERFLOWED:
    case JOB_LEASE_LOST:
    case JOB_STOP:
    case JOB_CANCEL:
        return step(JOB_ENDING, JOB_SEND_TERM | JOB_START_GRACE);
    case JOB_KILL_NOW:
        return step(JOB_KILLING, JOB_SEND_KILL);
    case JOB_EXITED:
        return step(JOB_SETTLING, JOB_KILL_GROUP | JOB_START_SETTLE);
    case JOB_CHECK_STARTED:
    case JOB_TO_RUN:
    case JOB_STARTED:
    case JOB_START_FAILED:
    case JOB_GRACE_OVER:
    case JOB_QUIET:
    case JOB_SETTLE_OVER:
        break;
    }
    return step(JOB_RUNNING, 0);
}

/* After TERM, further reasons to end it change nothing, except JOB_KILL_NOW. */
static struct job_step next_ending(enum job_event event)
{
    switch (event) {
    case JOB_GRACE_OVER:
    case JOB_KILL_NOW:
        return step(JOB_KILLING, JOB_SEND_KILL);
    case JOB_EXITED:
        return step(JOB_SETTLING, JOB_KILL_GROUP | JOB_START_SETTLE);
    case JOB_CHECK_STARTED:
    case JOB_TO_RUN:
    case JOB_STARTED:
    case JOB_START_FAILED:
    case JOB_TIMED_OUT:
    case JOB_OVERFLOWED:
    case JOB_LEASE_LOST:
    case JOB_STOP:
    case JOB_CANCEL:
    case JOB_QUIET:
    case JOB_SETTLE_OVER:
        break;
    }
    return step(JOB_ENDING, 0);
}

/* A second KILL does no harm. */
static struct job_step next_killing(enum job_event event)
{
    switch (event) {
    case JOB_KILL_NOW:
        return step(JOB_KILLING, JOB_SEND_KILL);
    case JOB_EXITED:
        return step(JOB_SETTLING, JOB_KILL_GROUP | JOB_START_SETTLE);
    case JOB_CHECK_STARTED:
    case JOB_TO_RUN:
    case JOB_STARTED:
    case JOB_START_FAILED:
    case JOB_TIMED_OUT:
    case JOB_OVERFLOWED:
    case JOB_LEASE_LOST:
    case JOB_STOP:
    case JOB_CANCEL:
    case JOB_GRACE_OVER:
    case JOB_QUIET:
    case JOB_SETTLE_OVER:
        break;
    }
    return step(JOB_KILLING, 0);
}

/* Everything has been killed; the processes and the output have to end. */
static struct job_step next_settling(enum job_event event)
{
    if (event == JOB_QUIET || event == JOB_SETTLE_OVER) {
        return step(JOB_DONE, JOB_REPORT);
    }
    return step(JOB_SETTLING, 0);
}

struct job_step job_next(enum job_state state, enum job_event event)
{
    switch (state) {
    case JOB_CLAIMED:
        return next_claimed(event);
    case JOB_CHECKING:
        return next_checking(event);
    case JOB_CHECKED:
        return next_checked(event);
    case JOB_RUNNING:
        return next_running(event);
    case JOB_ENDING:
        return next_ending(event);
    case JOB_KILLING:
        return next_killing(event);
    case JOB_SETTLING:
        return next_settling(event);
    case JOB_DONE:
        break;
    }
    return step(JOB_DONE, 0);
}

bool job_is_under_way(enum job_state state)
{
    return state == JOB_CHECKING || state == JOB_CHECKED || state == JOB_RUNNING;
}

enum cause job_cause(enum job_state state, enum job_event event, enum cause so_far)
{
    /* an attempt that has exited or was told to end keeps its cause */
    if (so_far != CAUSE_EXIT || (state != JOB_CLAIMED && !job_is_under_way(state))) {
        return so_far;
    }

    switch (event) {
    case JOB_START_FAILED:
        return state == JOB_CLAIMED || state == JOB_CHECKED ? CAUSE_HOST : so_far;
    case JOB_TIMED_OUT:
        return state == JOB_RUNNING ? CAUSE_TIMEOUT : state == JOB_CHECKING ? CAUSE_CHECK : so_far;
    case JOB_OVERFLOWED:
        return state == JOB_RUNNING    ? CAUSE_OUTPUT_LIMIT
               : state == JOB_CHECKING ? CAUSE_CHECK
                                       : so_far;
    case JOB_LEASE_LOST:
    case JOB_KILL_NOW:
        return CAUSE_LEASE_LOST;
    case JOB_STOP:
        return CAUSE_SHUTDOWN;
    case JOB_CANCEL:
        return CAUSE_CANCELLED;
    case JOB_CHECK_STARTED:
    case JOB_TO_RUN:
    case JOB_STARTED:
    case JOB_GRACE_OVER:
    case JOB_EXITED:
    case JOB_QUIET:
    case JOB_SETTLE_OVER:
        break;
    }
    return so_far;
}
