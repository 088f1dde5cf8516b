/*
 * The table of an attempt's states and events.
 */
#include "exec/job/job.h"

#include <stddef.h>

#define ON(event) (1U << (event))

/* Reasons to end an attempt: those that do not need a process, and all. */
#define UNWANTED (ON(JOB_LEASE_LOST) | ON(JOB_STOP) | ON(JOB_CANCEL))
#define EXCESS (UNWANTED | ON(JOB_TIMED_OUT) | ON(JOB_OVERFLOWED) | ON(JOB_MUTE))

#define TERMINATE (JOB_SEND_TERM | JOB_START_GRACE)
#define SETTLE (JOB_KILL_GROUP | JOB_START_SETTLE)

/* An event without a row changes nothing. */
static const struct {
    enum job_state from;
    unsigned events; /* bits */
    enum job_state to;
    unsigned actions;
} changes[] = {
    {JOB_CLAIMED, ON(JOB_CHECK_STARTED), JOB_CHECKING, 0},
    {JOB_CLAIMED, ON(JOB_STARTED), JOB_RUNNING, 0},
    {JOB_CLAIMED, ON(JOB_START_FAILED) | UNWANTED | ON(JOB_KILL_NOW), JOB_DONE, JOB_REPORT},

    {JOB_CHECKING, ON(JOB_TO_RUN), JOB_CHECKED, SETTLE},
    {JOB_CHECKING, EXCESS, JOB_ENDING, TERMINATE},
    {JOB_CHECKING, ON(JOB_KILL_NOW), JOB_KILLING, JOB_SEND_KILL},
    {JOB_CHECKING, ON(JOB_EXITED), JOB_SETTLING, SETTLE},

    /* there is no process to end: an event that would end one keeps the task from being started */
    {JOB_CHECKED, ON(JOB_QUIET) | ON(JOB_SETTLE_OVER), JOB_CHECKED, JOB_RUN},
    {JOB_CHECKED, ON(JOB_STARTED), JOB_RUNNING, 0},
    {JOB_CHECKED, ON(JOB_START_FAILED), JOB_DONE, JOB_REPORT},
    {JOB_CHECKED, UNWANTED | ON(JOB_KILL_NOW), JOB_SETTLING, 0},

    {JOB_RUNNING, EXCESS, JOB_ENDING, TERMINATE},
    {JOB_RUNNING, ON(JOB_KILL_NOW), JOB_KILLING, JOB_SEND_KILL},
    {JOB_RUNNING, ON(JOB_EXITED), JOB_SETTLING, SETTLE},
    {JOB_RUNNING, ON(JOB_VERDICT), JOB_DONE, JOB_REPORT},

    /* after TERM, further reasons to end it change nothing, except JOB_KILL_NOW */
    {JOB_ENDING, ON(JOB_GRACE_OVER) | ON(JOB_KILL_NOW), JOB_KILLING, JOB_SEND_KILL},
    {JOB_ENDING, ON(JOB_EXITED), JOB_SETTLING, SETTLE},

    /* a second KILL does no harm */
    {JOB_KILLING, ON(JOB_KILL_NOW), JOB_KILLING, JOB_SEND_KILL},
    {JOB_KILLING, ON(JOB_EXITED), JOB_SETTLING, SETTLE},

    /* everything has been killed; the processes and the output have to end */
    {JOB_SETTLING, ON(JOB_QUIET) | ON(JOB_SETTLE_OVER), JOB_DONE, JOB_REPORT},
};

struct job_step job_next(enum job_state state, enum job_event event)
{
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        if (changes[i].from == state && changes[i].events & ON(event)) {
            return (struct job_step){changes[i].to, changes[i].actions};
        }
    }
    return (struct job_step){state, 0};
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
    case JOB_MUTE:
        return state == JOB_RUNNING ? CAUSE_NO_VERDICT : so_far;
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
    case JOB_VERDICT:
    case JOB_QUIET:
    case JOB_SETTLE_OVER:
        break;
    }
    return so_far;
}
