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
#include "queue/task.h"

struct cgroups;
struct child;
struct ev_loop;
struct guard;
struct rlimit;
struct runner;

struct runner_events {
    /* Nothing of the attempt is left, and the receiver owns it now. Attempts of a batch are
     * reported one after the other. runner_start calls it only for a failed start (CAUSE_HOST,
     * CAUSE_NO_PROGRAM, CAUSE_CANNOT_EXECUTE, CAUSE_REFUSED). */
    void (*ended)(void *context, struct attempt *attempt);
    /* The process of a batch has failed as a whole, and `count` of its tasks run again in halves,
     * in the same attempt and slot; `ended` is called when they are over. The attempt says how the
     * process ended, and has no task. May be NULL. */
    void (*halved)(void *context, const struct attempt *attempt, size_t count);
    /* The attempt was killed a while ago, but its process pid has not died; 0: the pid is unknown.
     * Called once, for the first attempt of a batch. May be NULL. */
    void (*stuck)(void *context, const struct attempt *attempt, pid_t pid);
    /* The tasks' user cannot enter its home, so its tasks start in /. error is the errno. Called
     * once for each config. May be NULL. */
    void (*homeless)(void *context, const char *home, int error);
    void *context;
};

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

/* Reports the task through `ended` without starting it, as CAUSE_REFUSED with that reason. Takes
 * ownership of the task, unless it returns -1 without memory. */
int runner_refuse(struct runner *runner, struct task *task, const char *reason);

/* Sets the follower of live output for attempts that are started from now on. */
void runner_set_follow(struct runner *runner, const struct attempt_follow *follow);

/* Reads the output of an attempt again, after `wrote` has paused it. */
void runner_resume(struct runner *runner, struct attempt *attempt);

/* Returns the newest running attempt; LIST_NEXT(attempt, link) leads to the older ones. Those of a
 * batch that wait to run again (JOB_CLAIMED) are among them. */
struct attempt *runner_first(struct runner *runner);
size_t runner_count(const struct runner *runner);

/* Returns how many processes the attempts have. */
size_t runner_processes(const struct runner *runner);

/* Ends the process of an attempt. JOB_LEASE_LOST, JOB_STOP and JOB_CANCEL send TERM, and KILL after
 * the grace period; JOB_KILL_NOW sends KILL at once. The other attempts of a batch end with
 * CAUSE_BATCH; for JOB_STOP all have the same cause. An attempt that waits to run again ends at
 * once, alone: this calls `ended`. */
void runner_end(struct runner *runner, struct attempt *attempt, enum job_event event);

/* Kills what still runs, and frees the runner; does not call `ended`. NULL does nothing. */
void runner_free(struct runner *runner);

#endif
