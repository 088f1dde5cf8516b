/*
 * Runs tasks: starts their processes, watches exits, output and time limits, and reports each
 * attempt once, when nothing of it is left. Each task is an attempt of its own, also in a batch,
 * where one process has several tasks. The runner knows nothing of Redis.
 */
#ifndef LEAT_EXEC_RUNNER_H
#define LEAT_EXEC_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "config/config.h"
#include "exec/attempt/attempt.h"
#include "exec/runner_events.h"
#include "queue/task.h"

struct cgroups;
struct child;
struct ev_loop;
struct guard;
struct rlimit;
struct runner;

/* Makes the runner for tasks. worker is the consumer's name (LEAT_WORKER); nofile, which is copied,
 * is the limit of open files for tasks. config must outlive the runner or be replaced. The runner
 * watches SIGCHLD, so the loop must not be libev's default one, which reaps children itself
 * (EINVAL). Returns NULL with errno. */
struct runner *runner_new(struct ev_loop *loop, const struct config *config, const char *worker,
                          const struct rlimit *nofile, const struct runner_events *events);

/* Makes a second runner for other programs beside the tasks of `first`, with a config of its own.
 * It counts and lists its own attempts; the first runner watches their exits, and must be freed
 * after it. It does not set LEAT_WORKER, which the programs get with the dead letter. Returns NULL
 * with errno. */
struct runner *runner_new_beside(struct runner *first, const struct config *config,
                                 const struct runner_events *events);

/* Gives each process a cgroup of these, which must outlive the runner. To be called before the
 * first start, and before runner_new_beside. */
void runner_set_cgroups(struct runner *runner, struct cgroups *cgroups);

/* Puts processes under guard, also those of runners beside this one. The guard must outlive the
 * runner. To be called before the first start. */
void runner_set_guard(struct runner *runner, struct guard *guard);

/* Sets the length of the queue's leases. */
void runner_set_lease(struct runner *runner, int64_t lease_ms);

/* Passes renewed leases (lease_deadline_ns of attempts) on to the guards. */
void runner_renewed(struct runner *runner);

/* Replaces the config for attempts that are started from now on. Batches that fail later do not run
 * again in halves, since their tasks passed the checks of another config. */
void runner_set_config(struct runner *runner, const struct config *config);

/* Returns true if the config's listed commands allow the task, or if none are listed; otherwise
 * false with the reason. */
bool runner_accepts(struct runner *runner, const struct task *task, char *reason,
                    size_t reason_size);

/* Starts one process for these tasks, and takes ownership of them. count > 0, and more than 1 only
 * with [task] batch. Whatever happens, `ended` reports each. Returns 0; or -1 without memory for
 * the attempts, and the caller still owns the tasks. */
int runner_start(struct runner *runner, const struct claimed_task *tasks, size_t count);

/* ---- resident processes: with [task] resident, the config's command runs once for each slot, and
 * tasks are handed to it. The functions above start processes for tasks that need their own. */

/* Starts the resident processes that are missing. waiting tasks want one. */
void runner_keep_residents(struct runner *runner, size_t waiting);

/* Returns how many more tasks resident processes can take if `slots` slots are free: those that
 * start for them, too. */
size_t runner_room(const struct runner *runner, size_t slots);

/* Returns whether one can take a task now; slot: a slot is free, so one without a task may. */
bool runner_can_hand_over(const struct runner *runner, bool slot);

/* Returns whether leatd reads the output of resident processes. */
bool runner_reads_residents(const struct runner *runner);

/* Hands the task to a resident process, if runner_can_hand_over is true for `slot`, and takes
 * ownership of it. Returns 0; or -1 without memory, and the caller still owns the task. */
int runner_hand_over(struct runner *runner, const struct claimed_task *claimed, bool slot);

/* Returns how many resident processes there are, with and without tasks. */
size_t runner_residents(const struct runner *runner);

/* Ends resident processes as soon as they have no task, and starts none. */
void runner_close_residents(struct runner *runner);

/* The same, and those without a task get JOB_STOP or JOB_KILL_NOW. */
void runner_end_residents(struct runner *runner, enum job_event event);

/* Reports the task through `ended` without starting it, as CAUSE_REFUSED with that reason. Takes
 * ownership of the task, unless it returns -1 without memory. */
int runner_refuse(struct runner *runner, struct task *task, const char *reason);

/* Sets the follower of live output for attempts that are started from now on. */
void runner_set_follow(struct runner *runner, const struct attempt_follow *follow);

/* Passes on the output of an attempt that runs already, from now on. `written` gets what it has
 * written before to stdout and stderr, valid until the loop turns. Returns false if the attempt
 * shares its process, or has shared it, or if its process has not started: in the last case `began`
 * is called later. */
bool runner_follow(struct runner *runner, struct attempt *attempt,
                   struct attempt_written written[2]);

/* Passes on no more of its output. */
void runner_unfollow(struct runner *runner, struct attempt *attempt);

/* Reads the output of an attempt again, after `wrote` has paused it. */
void runner_resume(struct runner *runner, struct attempt *attempt);

/* Returns the newest running attempt; LIST_NEXT(attempt, link) leads to the older ones. Those of a
 * batch that wait to run again (JOB_CLAIMED) are among them. */
struct attempt *runner_first(struct runner *runner);
size_t runner_count(const struct runner *runner);

/* Returns how many processes the attempts have, which is how many slots are taken. */
size_t runner_processes(const struct runner *runner);

/* Ends the process of an attempt. JOB_LEASE_LOST, JOB_STOP and JOB_CANCEL send TERM, and KILL after
 * the grace period; JOB_KILL_NOW sends KILL at once. The other attempts of a batch end with
 * CAUSE_BATCH; for JOB_STOP all have the same cause. An attempt that waits to run again ends at
 * once, alone: this calls `ended`. */
void runner_end(struct runner *runner, struct attempt *attempt, enum job_event event);

/* Kills what still runs, and frees the runner; does not call `ended`. NULL does nothing. */
void runner_free(struct runner *runner);

#endif
