/*
 * The environment of tasks. It has these variables and nothing else of the daemon's environment:
 *
 *  - PATH and SHELL as configured, PWD (the task's directory, else the configured one, else the
 *    home), HOME, USER and LOGNAME of the task's user, LANG if the daemon has it;
 *  - the variables of [task] environment, which may replace those above. Names that begin with
 * TASK_ or LEAT_ are ignored there;
 *  - LEAT_QUEUE, LEAT_WORKER, LEAT_TASK, LEAT_ID (if the task has an id), LEAT_ATTEMPT,
 *    LEAT_MAX_ATTEMPTS, LEAT_FENCE, LEAT_ENQUEUED_AT and, if there is a timeout, LEAT_DEADLINE;
 * both times are seconds since 1970 with three decimals;
 *  - TASK_NAME for each other field of the task;
 *  - TRACEPARENT, TRACESTATE and BAGGAGE, if the fields of these names are well-formed: see
 *    queue/trace.h;
 *  - LEAT_BATCH with [task] batch: how many tasks the process has. If there are several, variables
 * of single tasks are left out.
 *
 * A program that is run for a dead letter (task->end) has LEAT_CAUSE, LEAT_STATUS, LEAT_REASON,
 * LEAT_ATTEMPTS, LEAT_WORKER (the task's last worker) and, if the task has one, LEAT_COMMAND,
 * instead of LEAT_ATTEMPT and LEAT_MAX_ATTEMPTS.
 */
#ifndef LEAT_EXEC_START_ENVIRONMENT_H
#define LEAT_EXEC_START_ENVIRONMENT_H

#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "exec/start/identity.h"
#include "queue/task.h"

/* The variables that are the same for all tasks. */
struct environment;

/* Makes the environment, and copies what it needs. identity NULL means the daemon's own user;
 * worker NULL leaves LEAT_WORKER out. Returns NULL without memory. */
struct environment *environment_new(const struct config *config, const struct identity *identity,
                                    const char *worker);
void environment_free(struct environment *environment);

/* Returns the home of the tasks' user, even if [task] environment sets another HOME; "/" for a user
 * without a home. Valid as long as the environment. */
const char *environment_home(const struct environment *environment);

/* Values that differ between attempts and are no fields of the task. */
struct environment_limits {
    int64_t max_attempts;
    int64_t deadline_wall_ms; /* 0: none */
    size_t batch;             /* how many tasks the process has; 0: no batches */
};

/* Returns the block for execve, in one allocation that the caller frees; NULL without memory. It
 * points into *environment and the task. task is NULL if several share the process. */
char **environment_block(const struct environment *environment, const struct task *task,
                         const struct environment_limits *limits);

#endif
