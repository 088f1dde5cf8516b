/*
 * One child process from its start until nothing of it is left, for one attempt or for those of a
 * batch, which go through the same states together. It carries out the actions of the state machine
 * (exec/job/job.h) with real signals, timers and pipes. The runner keeps the list of children.
 *
 * Its parts are in child.c, stream.c, judge.c, child_guard.c and stuck_kill.c; child_state.h has
 * what they share.
 */
#ifndef LEAT_EXEC_ATTEMPT_CHILD_H
#define LEAT_EXEC_ATTEMPT_CHILD_H

#include <signal.h>
#include <stddef.h>

#include "exec/attempt/child_state.h"

/* Makes a child, and takes ownership of the tasks; count > 0. Returns NULL without memory, and the
 * caller still owns the tasks. */
struct child *child_new(struct child_host *host, const struct claimed_task *tasks, size_t count);

/* Starts the process: that of [task] check, if it is set and an earlier attempt may have finished
 * the task. Returns 0. If the start fails it returns -1: the attempts are over and their endings
 * are set, but `done` is not called. */
int child_start(struct child *child);

/* Starts the task's own process after its check, or refuses the task if its signature has expired
 * meanwhile. Returns as child_start. */
int child_run(struct child *child);

/* Ends the attempts without a start, as CAUSE_REFUSED. `done` is not called. */
void child_refuse(struct child *child, const char *reason);

/* Handles a timer, lease, cancel or stop event. Does nothing if the process has already exited and
 * child_exited is still to come: the exit counts. meant is the attempt that the event is about; the
 * others of its batch end with it. NULL means all. */
void child_end(struct child *child, const struct attempt *meant, enum job_event event);

/* Handles the exit of the leader, which is a zombie until it is reaped here. The child may be gone
 * afterwards. */
void child_exited(struct child *child, const siginfo_t *exit);

/* Reads output again that a follower had paused. */
void child_resume(struct child *child);

/* See runner_follow and runner_unfollow. */
bool child_follow(struct child *child, const struct attempt *attempt,
                  struct attempt_written written[2]);
void child_unfollow(struct child *child);

/* Passes renewed leases on to the guards. */
void child_renew(struct child *child);

/* The same if the earliest lease of its tasks may now be an earlier one. */
void child_hasten(struct child *child);

/* Tells the guards that the leader is reaped next. */
void child_reaps(struct child *child);

/* Stops the watchers and closes the pipes. */
void child_release(struct child *child);

/* Returns attempt number index, from 0 on. */
struct attempt *child_attempt(struct child *child, size_t index);

/* Returns the number of the first attempt that is one of a task: 1 for a resident process, whose
 * attempt number 0 stands for the process itself. Otherwise 0. */
size_t child_first(const struct child *child);

/* Returns the task to which the process belongs from its start to its end, or NULL: it has several,
 * or it stays. */
const struct task *child_task(const struct child *child);

#endif
