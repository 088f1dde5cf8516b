/*
 * Runs tasks: starts their processes, watches their exits, output and time limits, and reports each
 * once when nothing of it is left. Knows nothing of Redis. Each task is an attempt of its own, also
 * where a process has several of them: a batch.
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
    /* Nothing of the attempt is left; the receiver owns it now. Those of a batch come one after the
     * other. May come from within runner_start only for a failed start (CAUSE_HOST,
     * CAUSE_NO_PROGRAM, CAUSE_CANNOT_EXECUTE, CAUSE_REFUSED).
     */
    void (*ended)(void *context, struct attempt *attempt);
    /* It was killed a while ago, and this process of it has not ended (0: one that is not known);
     * comes once. Of a batch: the first. NULL: nobody is told. */
    void (*lingers)(void *context, const struct attempt *attempt, pid_t pid);
    /* The tasks' user cannot enter that home, for the reason errno, so its tasks start in /; comes
     * once for each config. NULL: nobody is told. */
    void (*homeless)(void *context, const char *home, int error);
    void *context;
};

/* worker is the consumer's name (LEAT_WORKER); nofile the limit of open files that tasks get,
 * copied. config must outlive the runner or be replaced. Installs the SIGCHLD watcher; so the
 * loop must not be libev's default one, which reaps children itself (EINVAL). Returns NULL with
 * errno. */
struct runner *runner_new(struct ev_loop *loop, const struct config *config, const char *worker,
                          const struct rlimit *nofile, const struct runner_events *events);

/* One that runs other things beside the tasks of `first`, with a config of its own: its attempts
 * are counted and listed here, and the first hears of their exits. To be freed before it. They are
 * not told of a worker: LEAT_WORKER is the task's to say. Returns NULL with errno. */
struct runner *runner_new_beside(struct runner *first, const struct config *config,
                                 const struct runner_events *events);

/* Each attempt gets a cgroup of these, which must outlive the runner: before the first start, and
 * before runner_new_beside. */
void runner_set_cgroups(struct runner *runner, struct cgroups *cgroups);

/* Who ends processes where the daemon cannot, also those of runners beside this one; outlives the
 * runner. To be called before the first start. */
void runner_set_guard(struct runner *runner, struct guard *guard);

/* So long before a lease's end the guard acts. */
void runner_set_guard_margin(struct runner *runner, int64_t margin_ns);

/* Leases of attempts were renewed (lease_deadline_ns). */
void runner_renewed(struct runner *runner);

/* For attempts started from now on. */
void runner_set_config(struct runner *runner, const struct config *config);

/* Whether the config's listed commands let the task run, where it has any; else false with the
 * reason. */
bool runner_accepts(struct runner *runner, const struct task *task, char *reason,
                    size_t reason_size);

/* Starts one process for these tasks, and takes them; count > 0, and more than 1 only where the
 * config has batches. Reports each through `ended` whatever happens. Returns 0, or -1 without
 * memory for the attempts themselves: the tasks are then still the caller's. */
int runner_start(struct runner *runner, const struct claimed_task *tasks, size_t count);

/* Reports the task through `ended` without starting it: CAUSE_REFUSED with that reason. Takes the
 * task unless it returns -1 (no memory). */
int runner_refuse(struct runner *runner, struct task *task, const char *reason);

/* For attempts started from now on. */
void runner_set_follow(struct runner *runner, const struct attempt_follow *follow);

/* `wrote` has refused more, and it is wanted again. */
void runner_hear(struct runner *runner, struct attempt *attempt);

/* Running attempts, newest first: walk with ->next. */
struct attempt *runner_first(struct runner *runner);
size_t runner_count(const struct runner *runner);

/* How many processes they are. */
size_t runner_processes(const struct runner *runner);

/* Ends one: JOB_LEASE_LOST, JOB_STOP, JOB_CANCEL (TERM, grace, KILL) or JOB_KILL_NOW (KILL at
 * once). It is its process that ends: the others of a batch end with CAUSE_BATCH, or all with that
 * of JOB_STOP. */
void runner_end(struct runner *runner, struct attempt *attempt, enum job_event event);

/* Kills what still runs and frees; `ended` is not called. NULL does nothing. */
void runner_free(struct runner *runner);

#endif
