/*
 * What becomes of a task after an attempt: a pure function of how it ended, how often it was tried,
 * and the policy.
 */
#ifndef LEAT_EXEC_JOB_OUTCOME_H
#define LEAT_EXEC_JOB_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

/* How an attempt ended. The names are those of dead letters and journal fields. */
enum cause {
    CAUSE_EXIT,           /* the process exited with a code */
    CAUSE_SIGNAL,         /* a signal that leat did not send ended it */
    CAUSE_KILLED,         /* that signal was KILL, and why it came is not known */
    CAUSE_OOM,            /* it failed, and the kernel had killed of it for want of memory */
    CAUSE_TIMEOUT,        /* it ran longer than its timeout */
    CAUSE_OUTPUT_LIMIT,   /* it wrote more than it may */
    CAUSE_CANNOT_EXECUTE, /* no program could be executed with what the task has: too much of it */
    CAUSE_REFUSED,        /* the task's fields must not run: a dead letter */
    CAUSE_HOST,           /* not the task's fault: fork, directory, program, disk: released */
    CAUSE_NO_PROGRAM,     /* this host lacks the listed program: released, to wait */
    CAUSE_LEASE_LOST,     /* the lease could not be renewed or went to another */
    CAUSE_SHUTDOWN,       /* the worker stopped */
    CAUSE_REPORTED,       /* the process of its batch said on descriptor 3 what becomes of it */
    CAUSE_CHECK,          /* whether it was done before could not be learned: tried again */
    CAUSE_DONE,           /* it was done before: success without running */
    CAUSE_BATCH,          /* its process had to end for the sake of another task: released */
    CAUSE_CANCELLED,      /* somebody wanted it to end, and for good */
};

/* The name of a cause in dead letters, results, histories and the journal. Those of success and of
 * the ends that no worker sees (crash, expired, vanished, damaged) are leat.lua's. */
const char *cause_name(enum cause cause);

enum verdict {
    VERDICT_SUCCESS,
    VERDICT_RETRY,
    VERDICT_DEAD,
    VERDICT_RELEASE,
    VERDICT_CANCELLED,
};

struct ending {
    enum cause cause;
    int exit_code;        /* CAUSE_EXIT */
    int signal;           /* by which the process ended; 0: it exited */
    int64_t attempt;      /* 1 for the first */
    int64_t max_attempts; /* of the task, 0: the policy's */
    int64_t fence;        /* the task's: grows each time it passes on */
    bool shared;          /* the process was others' too: how it failed says nothing of this task */
    enum verdict reported; /* CAUSE_REPORTED: success, retry or dead */
};

struct outcome {
    enum verdict verdict;
    int64_t delay_ms; /* VERDICT_RETRY; VERDICT_RELEASE: 0, or until it may be tried again */
};

/* random is uniform in [0, 1): full jitter takes that share of the backoff. What waits for a
 * program does so for 1 s each time that the task has passed on, for a minute at most, and up to
 * half of that less: where some hosts have it, one of them soon gets the task; where none has it,
 * the task stands in nobody's way. */
struct outcome outcome_decide(const struct config_retry *policy, const struct ending *ending,
                              double random);

/* Whether it was for want of memory that it failed, where it has failed by itself. oom_kills: how
 * many of its processes the kernel has killed for that; 0 or less: none that is known of. */
bool ending_lacked_memory(const struct config_retry *policy, const struct ending *ending,
                          int64_t oom_kills);

/* "exit 3", "SIGSEGV", "out of memory, SIGKILL", "timeout": for people; size ≥ 48. */
void ending_describe(const struct ending *ending, char *text, size_t size);

/* What stands beside the cause: "3", "SIGKILL", or nothing where the cause says it all; size ≥
 * UNITS_INTEGER_SIZE. */
void ending_status(const struct ending *ending, char *text, size_t size);

#endif
