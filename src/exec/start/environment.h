/*
 * The environment of tasks: nothing of the daemon's but what is listed here.
 *
 *  - PATH and SHELL as configured, PWD (the task's directory, else the configured one, else the
 *    home), HOME, USER and LOGNAME of the task's user, LANG if the daemon has it;
 *  - what [task] environment says, which may replace those. Names that begin with TASK_ or LEAT_
 *    are not taken from there: they are the task's and leat's;
 *  - LEAT_QUEUE, LEAT_WORKER, LEAT_TASK, LEAT_ID (if the task has an id), LEAT_ATTEMPT,
 *    LEAT_MAX_ATTEMPTS, LEAT_FENCE, LEAT_ENQUEUED_AT and, if there is a timeout, LEAT_DEADLINE;
 * both times in seconds since 1970 with three decimals;
 *  - TASK_NAME for each other field of the task;
 *  - LEAT_BATCH where tasks come in batches: how many the process got. Of several tasks there is
 *    nothing else of their own.
 *
 * Of a dead letter (task->end), instead of LEAT_ATTEMPT and LEAT_MAX_ATTEMPTS: LEAT_CAUSE,
 * LEAT_STATUS, LEAT_REASON, LEAT_ATTEMPTS, LEAT_WORKER (the task's last) and LEAT_COMMAND, if it
 * has one.
 */
#ifndef LEAT_EXEC_START_ENVIRONMENT_H
#define LEAT_EXEC_START_ENVIRONMENT_H

#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "exec/start/identity.h"
#include "queue/task.h"

/* What is the same for all tasks. */
struct environment;

/* Returns NULL without memory. Copies what it needs. identity NULL: the daemon's own; worker NULL:
 * LEAT_WORKER is left out. */
struct environment *environment_new(const struct config *config, const struct identity *identity,
                                    const char *worker);
void environment_free(struct environment *environment);

/* The home of the tasks' user, also where [task] environment gives them another HOME; "/" for a
 * user without one. Lives as long as the environment. */
const char *environment_home(const struct environment *environment);

/* What differs from attempt to attempt and is no field of the task. */
struct environment_limits {
    int64_t max_attempts;
    int64_t deadline_wall_ms; /* 0: none */
    size_t batch;             /* 0: tasks do not come in batches */
};

/* The block for execve, one allocation that the caller frees. It points into *environment and the
 * task; task NULL: several. Returns NULL without memory. */
char **environment_block(const struct environment *environment, const struct task *task,
                         const struct environment_limits *limits);

#endif
