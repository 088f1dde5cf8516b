/*
 * One try of a task, from its claim to the report of its end, and what those who started it hear
 * while it runs.
 */
#ifndef LEAT_EXEC_ATTEMPT_ATTEMPT_H
#define LEAT_EXEC_ATTEMPT_ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/cgroup/usage.h"
#include "exec/job/job.h"
#include "exec/job/outcome.h"
#include "queue/task.h"

struct child;

/* One running task; the runner's until reported, then the receiver's (attempt_free). The receiver
 * may set `owner` and link; everything else is to be read only. */
struct attempt {
    struct task *task; /* owned */
    enum job_state state;
    struct ending ending; /* valid when reported */
    char reason[160];     /* more for people: the errno of a failed start, … */
    char batch[48];       /* the id of the first task that the process got; "": the only one */
    bool has_verdict;     /* the process has said what becomes of it */
    enum verdict verdict;
    int64_t started_wall_ms;
    int64_t duration_us;                   /* from start to the leader's exit */
    struct bytes stdout_tail, stderr_tail; /* valid when reported */
    struct usage usage;              /* likewise; of its process, also where that is others' */
    int64_t lease_deadline_ns;       /* CLOCK_BOOTTIME; the daemon's */
    uint64_t renewal;                /* the last renewal that named it; the daemon's */
    struct attempt *next, *previous; /* links in the list of running attempts; the runner's */
    struct child *child;             /* its process, while it runs; the runner's */
    void *owner;
};

/* A task that has begun, and until when it is the worker's (CLOCK_BOOTTIME). */
struct claimed_task {
    struct task *task;
    int64_t lease_deadline_ns;
};

/* For those who follow what tasks write while they run: only tasks that ask for it (task->live) and
 * have their process for themselves. */
struct attempt_follow {
    void (*began)(void *context, struct attempt *attempt);
    /* It has written that to stdout (1) or stderr (2); data NULL: so much over its limit, which is
     * dropped. Returns false where no more is wanted for
     * now: the process then waits, until runner_hear; what its pipe holds at its end still comes.
     */
    bool (*wrote)(void *context, struct attempt *attempt, int number, const void *data,
                  size_t size);
    void *context;
};

/* Frees it and what it owns. NULL does nothing. */
void attempt_free(struct attempt *attempt);

#endif
