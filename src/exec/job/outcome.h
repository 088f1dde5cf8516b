/*
 * Decides what happens to a task after an attempt (success, retry, dead letter, release): a pure
 * function of how the attempt ended, the number of attempts, and the policy.
 */
#ifndef LEAT_EXEC_JOB_OUTCOME_H
#define LEAT_EXEC_JOB_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "queue/verdict.h"

/* How an attempt ended. cause_name has the names for dead letters and journal fields. */
enum cause {
    CAUSE_EXIT,           /* the process exited */
    CAUSE_SIGNAL,         /* a signal that leat did not send ended it */
    CAUSE_KILLED,         /* a KILL from an unknown sender ended it */
    CAUSE_OOM,            /* it failed, and processes of it were OOM-killed */
    CAUSE_TIMEOUT,        /* it ran longer than its timeout */
    CAUSE_OUTPUT_LIMIT,   /* it wrote more than max_output */
    CAUSE_CANNOT_EXECUTE, /* its command or variables are too long, or its own directory is closed
                           */
    CAUSE_REFUSED,        /* its fields are not acceptable; it never ran */
    CAUSE_HOST,           /* this host could not start it; released */
    CAUSE_NO_PROGRAM,     /* this host lacks the listed program; released after a pause */
    CAUSE_LEASE_LOST,     /* the lease could not be renewed, or another worker has the task */
    CAUSE_SHUTDOWN,       /* the worker stopped */
    CAUSE_REPORTED,       /* the process of its batch reported the outcome on descriptor 3 */
    CAUSE_CHECK,          /* [task] check could not tell whether it was done before */
    CAUSE_DONE,           /* it was done before; success without running */
    CAUSE_BATCH,          /* its process was ended because of another task, or before it read
                             this one; released */
    CAUSE_CANCELLED,      /* somebody cancelled it */
    CAUSE_NO_VERDICT,     /* its resident process ended without a report on it */
};

/* Returns a cause's name in dead letters, results, histories and the journal. The Lua library names
 * success, and the causes that no worker sees: crash, expired, vanished and damaged. */
const char *cause_name(enum cause cause);

struct ending {
    enum cause cause;
    int exit_code;         /* CAUSE_EXIT */
    int signal;            /* that ended the process; 0: it exited */
    int64_t attempt;       /* 1 for the first */
    int64_t max_attempts;  /* the task's own; 0: use the policy's */
    bool shared;           /* other tasks shared the process, so its failure may be theirs */
    enum verdict reported; /* CAUSE_REPORTED: success, retry or dead */
};

struct outcome {
    enum verdict verdict;
    int64_t max_attempts; /* VERDICT_RETRY, VERDICT_DEAD: the limit that was applied; 0: none was */
    int64_t delay_ms;     /* VERDICT_RETRY, VERDICT_RELEASE: until the task may run again */
};

/* Decides the outcome. random is uniform in [0, 1); full jitter takes that share of the backoff. A
 * task whose program is missing waits 1 s, minus a random part of up to one half; leat_finish makes
 * it wait longer each time. So it soon reaches a host that has the program, and if no host has it,
 * it does not hold up others. */
struct outcome outcome_decide(const struct config_retry *policy, const struct ending *ending,
                              double random);

/* Returns whether the task has ended its process. If the process has to report, that is the result
 * of the task then, whatever it still reports. */
bool ending_is_decided(const struct ending *ending);

/* Returns true if the attempt failed by itself and some of its processes were OOM-killed. oom_kills
 * is their number; 0 or less: none, or unknown. */
bool ending_lacked_memory(const struct config_retry *policy, const struct ending *ending,
                          int64_t oom_kills);

/* Describes the end for people: "exit 3", "SIGSEGV", "out of memory, SIGKILL", "timeout"; size
 * ≥ 48.
 */
void ending_describe(const struct ending *ending, char *text, size_t size);

/* Writes the exit status or signal: "3", "SIGKILL", or "" if the cause has neither; size ≥
 * UNITS_INTEGER_SIZE. */
void ending_status(const struct ending *ending, char *text, size_t size);

#endif
