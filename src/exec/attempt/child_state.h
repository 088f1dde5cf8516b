/*
 * The state of one process, for the modules of this folder alone: child.h says what others may ask
 * of it.
 */
#ifndef LEAT_EXEC_ATTEMPT_CHILD_STATE_H
#define LEAT_EXEC_ATTEMPT_CHILD_STATE_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fd_watch.h"
#include "config/config.h"
#include "exec/attempt/attempt.h"
#include "exec/attempt/outlet.h"
#include "exec/attempt/output.h"
#include "exec/cgroup/cgroups.h"
#include "exec/guard/guard.h"
#include "exec/start/start.h"
#include "exec/tree/process_tree.h"

struct child;

enum { STREAM_OUTPUT, STREAM_ERROR, STREAM_VERDICTS, STREAMS };

/* One of its stdout, stderr and descriptor 3; see stream.h. */
struct stream {
    struct output output;
    struct fd_watch watch;
    struct child *child;
    bool held; /* whoever follows the task wants no more for now */
};

/* What a stream tells its child. */
struct stream_events {
    /* One of the streams was read. The child may be gone afterwards. */
    void (*heard)(struct child *child);
    /* The process has written more than it may, and is to be ended for it. */
    void (*overflowed)(struct child *child);
};

/* See stuck_kill.h. */
struct stuck_kill {
    int64_t since_ns; /* CLOCK_BOOTTIME, as the other; 0: it was not killed yet */
    int64_t next_ns;  /* it is killed again */
    bool told;
};

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
    struct attempt_follow follow; /* its functions NULL: nobody does */
    bool files_fail;              /* output could not be written to its file, and that was told */
    uint64_t files_lost;          /* bytes since then */
    struct group_orphans orphans; /* of all: without a mark */
    /* Nothing of the child is left but its memory, which goes to the receiver. Comes from the loop,
     * or from child_exited. */
    void (*done)(struct child_host *host, struct child *child);
    /* Nothing is left of the child's check, which was for running the task: child_run is to follow.
     */
    void (*run)(struct child_host *host, struct child *child);
    /* The process could not enter its home and is in /; error is the errno. */
    void (*homeless)(struct child_host *host, int error);
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
    const struct stream_events *stream_events;
    size_t ignored;               /* lines of descriptor 3 */
    bool within_line;             /* the last piece of one had no end */
    struct child *next_in_bucket; /* the table's */
};

/* Number index of its attempts, from 0 on. */
struct attempt *child_attempt(struct child *child, size_t index);

/* Reports the home_error of a start, see exec/start/spawn.h; 0 does nothing. */
void child_note_home(struct child *child, int error);

#endif
