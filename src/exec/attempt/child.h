/*
 * One process from its start until nothing of it is left, for one attempt or for those of a batch,
 * which go through the same states together: carries out what the state machine (job.h) says, with
 * real signals, timers and pipes. The runner holds the children; this part knows only its own.
 */
#ifndef LEAT_EXEC_ATTEMPT_CHILD_H
#define LEAT_EXEC_ATTEMPT_CHILD_H

#include <signal.h>
#include <stddef.h>

#include "exec/attempt/child_state.h"

/* Takes the tasks, count > 0. Returns NULL without memory; they are then still the caller's. */
struct child *child_new(struct child_host *host, const struct claimed_task *tasks, size_t count);

/* Starts the process: the check's, if there is one and an earlier attempt may have finished.
 * Returns 0; or -1 where that failed: the attempts are then over and their endings set, but `done`
 * is not called. */
int child_start(struct child *child);

/* Starts the task's own process after its check, likewise. */
int child_run(struct child *child);

/* Ends the attempts before a start, likewise. */
void child_refuse(struct child *child, const char *reason);

/* A timer, lease or stop event. Does nothing where the process has exited already and that is only
 * still to be heard of: its exit stands. meant: whom the event is about; the others of a batch end
 * with it. NULL: it is about all. */
void child_end(struct child *child, const struct attempt *meant, enum job_event event);

/* The leader is a zombie; it is reaped here. The child may be gone afterwards. */
void child_exited(struct child *child, const siginfo_t *exit);

/* Stops the watchers and closes the pipes of one that still runs. */
void child_release(struct child *child);

#endif
