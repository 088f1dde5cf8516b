/*
 * What the exit of a process says of the attempts for which it was started.
 */
#ifndef LEAT_EXEC_ATTEMPT_JUDGE_H
#define LEAT_EXEC_ATTEMPT_JUDGE_H

#include <signal.h>

#include "exec/attempt/child_state.h"

/* The leader has exited. Sets the attempts' endings as far as that tells, and returns what follows:
 * JOB_TO_RUN where it was a check that says so, else JOB_EXITED. */
enum job_event judge_exit(struct child *child, const siginfo_t *exit);

/* Nothing of it is left, and all of its output was read: what it said of single tasks goes before
 * how it ended. */
void judge_end(struct child *child);

#endif
