/*
 * Sets up and frees attempts. The first attempt of a child is the first member of its struct, and
 * frees it.
 */
#include "exec/attempt/attempt.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

void attempt_init(struct attempt *attempt, const struct claimed_task *claimed)
{
    const struct task *task = claimed->task;
    *attempt = (struct attempt){
        .task = claimed->task,
        .state = JOB_CLAIMED,
        .ending = {.cause = CAUSE_EXIT,
                   .attempt = task->attempt,
                   .max_attempts = task->max_attempts},
        .started_wall_ms = clock_wall_ms(),
        .usage = USAGE_NONE,
        .verdict_code = -1,
        .lease_deadline_ns = claimed->lease_deadline_ns,
        .renewal = claimed->renewal,
    };
}

bool attempt_has_own_usage(const struct attempt *attempt)
{
    return !*attempt->batch || strcmp(attempt->batch, attempt->task->tid) == 0;
}

void attempt_free(struct attempt *attempt)
{
    if (!attempt) {
        return;
    }
    free((char *)attempt->stdout_tail.data);
    free((char *)attempt->stderr_tail.data);
    task_free(attempt->task);
    free(attempt);
}
