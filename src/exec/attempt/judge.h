/*
 * Judges the exit of a process: how the attempts ended for which it was started.
 */
#ifndef LEAT_EXEC_ATTEMPT_JUDGE_H
#define LEAT_EXEC_ATTEMPT_JUDGE_H

#include <signal.h>

#include "exec/attempt/child_state.h"

/* Sets the attempts' endings from the exit of the leader. Returns JOB_TO_RUN if it was a check that
 * says "not done", otherwise JOB_EXITED. */
enum job_event judge_exit(struct child *child, const siginfo_t *exit);

/* Completes the endings when nothing of the process is left and its output was read. Its verdicts
 * on single tasks take precedence over its own end. */
void judge_end(struct child *child);

#endif
