/*
 * One process from its start until nothing of it is left, for one attempt or for those of a batch,
 * which go through the same states together: carries out what the state machine (job.h) says, with
 * real signals, timers and pipes. The runner holds the children; this part knows only its own.
 */
#ifndef LEAT_EXEC_ATTEMPT_CHILD_H
#define LEAT_EXEC_ATTEMPT_CHILD_H

#include <ev.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "exec/attempt/outlet.h"
#include "exec/attempt/stream.h"
#include "exec/attempt/stuck_kill.h"
#include "exec/cgroup/cgroups.h"
#include "exec/guard/guard.h"
#include "exec/runner.h"
#include "exec/start/start.h"
#include "exec/tree/process_tree.h"

struct child;

/* What all children of a runner share. */
struct child_host {
    struct ev_loop *loop;
    const struct config *config; /* of now: it may change while a child runs */
    struct start start;
    uint64_t worker_mark;    /* of its worker, see exec/tree/env_tag.h; 0: none */
    struct guard *guard;     /* NULL: none */
    int64_t guard_margin_ns; /* it acts so long before a lease's end */
    char *scratch;           /* for reading output */
    size_t scratch_size;
    struct cgroups *cgroups;      /* not owned; NULL: none */
    struct runner_follow follow;  /* its functions NULL: nobody does */
    bool files_fail;              /* output could not be written to its file, and that was told */
    uint64_t files_lost;          /* bytes since then */
    struct group_orphans orphans; /* of all: without a mark */
    /* Nothing of the child is left but its memory, which goes to the receiver. Comes from the loop,
     * or from child_exited. */
    void (*done)(struct child_host *host, struct child *child);
    /* Nothing is left of the child's check, which was for running the task: child_run is to follow.
     */
    void (*run)(struct child_host *host, struct child *child);
    /* See struct runner_events. */
    void (*lingers)(void *context, const struct attempt *attempt, pid_t pid);
    void *lingers_context;
};

struct child {
    struct attempt attempt;  /* first: attempt_free frees the child */
    struct attempt **others; /* the rest of its batch, owned, or NULL */
    size_t count;            /* of attempts: 1 and the others */
    bool live;               /* somebody follows what it writes */
    bool batch;              /* stdin has the form of a batch, and descriptor 3 is read */
    bool checking;           /* its process is the check, or was before it is to run */
    struct child_host *host;
    size_t slot_index; /* see places.h; the runner allots it, from before the start to the end */
    pid_t pid;
    struct process_tree tree;
    int report;         /* of a forked start, or -1 */
    int64_t started_ns; /* CLOCK_BOOTTIME, as the others */
    int64_t settle_ns;  /* until when output is waited for */
    double wait_s;      /* until the group is looked at again */
    struct stuck_kill stuck_kill;
    ev_timer timeout;
    ev_timer pause; /* until its output is watched; then the grace; then the settling */
    struct outlet outlet;
    size_t lines;    /* that the last read has brought to the log */
    ev_timer ration; /* until more of its output is taken */
    struct stream streams[STREAMS];
    size_t ignored;               /* lines of descriptor 3 */
    bool within_line;             /* the last piece of one had no end */
    struct child *next_in_bucket; /* the table's */
};

/* Takes the tasks, count > 0. Returns NULL without memory; they are then still the caller's. */
struct child *child_new(struct child_host *host, const struct begun *tasks, size_t count);

/* Number index of its attempts, from 0 on. */
struct attempt *child_attempt(struct child *child, size_t index);

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

/* One of its streams was read. The child may be gone afterwards. */
void child_heard(struct child *child);

/* The leader is a zombie; it is reaped here. The child may be gone afterwards. */
void child_exited(struct child *child, const siginfo_t *exit);

/* Stops the watchers and closes the pipes of one that still runs. */
void child_release(struct child *child);

#endif
