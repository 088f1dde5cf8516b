/*
 * An attempt: one try of a task, from its claim to the report of its end, and the callbacks that
 * receive its output while it runs.
 */
#ifndef LEAT_EXEC_ATTEMPT_ATTEMPT_H
#define LEAT_EXEC_ATTEMPT_ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "exec/cgroup/usage.h"
#include "exec/job/job.h"
#include "exec/job/outcome.h"
#include "queue/task.h"

struct child;

/* The place of a task that waits to run again in half of its batch. */
enum half {
    HALF_WITHIN, /* it is not the first of its half */
    HALF_FIRST,  /* it is the first of its half */
    HALF_SECOND, /* the same; it is the second half, and the first half has not failed so far */
};

/* The place of a task in the hands of a resident process. */
struct in_hand {
    uint64_t number;  /* of its record, from 1 on; 0: it has no resident process */
    uint64_t at;      /* how many bytes of other records come before it */
    int64_t since_ns; /* CLOCK_BOOTTIME at which it was handed over */
    int64_t end_ns;   /* CLOCK_BOOTTIME of its timeout; 0: none */
    int64_t cpu_ns;   /* the CPU time of the process then */
    bool beside;      /* the process had another task beside it */
};

/* One attempt. The runner owns it until it is reported, then the receiver (attempt_free). Others
 * may change only `owner`, the daemon's fields and, once they own it, the links. */
struct attempt {
    struct task *task; /* owned */
    enum job_state state;
    struct ending ending; /* valid when reported */
    char reason[160];     /* details for people, such as the errno of a failed start */
    char batch[48];       /* the id of the batch's first task; "": it does not share its process */
    bool has_verdict;     /* the process has written a verdict on descriptor 3 */
    bool told_to_end; /* cancelled, its lease lost, or the worker stops: it must not run again */
    enum verdict verdict;
    int verdict_code; /* the exit code in the verdict of a resident process, which takes
                         precedence over `verdict`; -1: none */
    int64_t started_wall_ms;
    int64_t duration_us;                   /* from start to the leader's exit */
    struct bytes stdout_tail, stderr_tail; /* valid when reported */
    struct usage usage;                    /* valid when reported; of its process, shared or not */
    int64_t lease_deadline_ns;             /* CLOCK_BOOTTIME; set by the daemon */
    uint64_t renewal;                      /* the last renewal that named it; set by the daemon */
    LIST_ENTRY(attempt) link;              /* the runner's list of running attempts */
    struct child *child;                   /* its process, or the one after which it runs again; set
                                              by the runner */
    struct in_hand in_hand;                /* while a resident process has it */
    enum half half;                        /* while it waits */
    struct attempt *after;                 /* the next that waits for the same child */
    void *owner;
};

/* A claimed task, and when its lease ends (CLOCK_BOOTTIME). */
struct claimed_task {
    struct task *task;
    int64_t lease_deadline_ns;
    uint64_t renewal; /* of a task that runs again in the same attempt; 0 for all others */
};

/* Callbacks for live output: for tasks that ask for it (task->live), or are wanted when they start,
 * and do not share a process. */
struct attempt_follow {
    /* Whether somebody follows the task, although it does not ask for it. NULL: nobody does. */
    bool (*wanted)(void *context, const struct task *task);
    void (*began)(void *context, struct attempt *attempt);
    /* The task has written `size` bytes to stdout (1) or stderr (2). data is NULL for bytes beyond
     * its limit, which are dropped. Returns false to pause: nothing more is read until
     * runner_resume, so the process blocks. At its end, the content of its pipes is delivered
     * nevertheless. */
    bool (*wrote)(void *context, struct attempt *attempt, int number, const void *data,
                  size_t size);
    void *context;
};

/* What an attempt has written to stdout or stderr. */
struct attempt_written {
    int64_t total; /* bytes that were read */
    struct bytes
        tail; /* the last of them, or what was written before by other tasks, and of them */
};

/* Sets up the attempt of a task that was claimed and has not started. */
void attempt_init(struct attempt *attempt, const struct claimed_task *claimed);

/* Whether its usage counts for it. The processes of a batch are measured together: they count for
 * the first task. */
bool attempt_has_own_usage(const struct attempt *attempt);

/* Frees an attempt and what it owns. NULL does nothing. */
void attempt_free(struct attempt *attempt);

#endif
