/*
 * The state of one child process. Only the modules of this folder use it; child.h is the interface
 * for others.
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

/* One of stdout, stderr and descriptor 3; see stream.h. */
struct stream {
    struct output output;
    struct fd_watch watch;
    struct child *child;
    bool paused; /* the follower wants no more for now */
};

/* Callbacks from the streams to their child. */
struct stream_events {
    /* A stream was read. The child may be gone afterwards. */
    void (*was_read)(struct child *child);
    /* The process has written more than max_output and has to be stopped. */
    void (*overflowed)(struct child *child);
};

/* The state of stuck_kill.h. */
struct stuck_kill {
    int64_t since_ns; /* CLOCK_BOOTTIME of the first KILL; 0: not killed yet */
    int64_t next_ns;  /* CLOCK_BOOTTIME of the next KILL */
    bool told;
};

/* The state that all children of a runner share. */
struct child_host {
    struct ev_loop *loop;
    const struct config *config; /* the current one: a reload changes it while children run */
    struct start start;
    uint64_t worker_tag; /* the worker's environment tag (exec/tree/env_tag.h); 0: none */
    struct guard *guard; /* NULL: none */
    int64_t lease_ms;    /* the queue's, for config/lease_rule.h */
    char *scratch;       /* for reading output */
    size_t scratch_size;
    struct cgroups *cgroups;      /* not owned; NULL: none */
    struct attempt_follow follow; /* its functions are NULL if nobody follows */
    bool files_fail;              /* output files cannot be written, and that was logged */
    uint64_t files_lost;          /* bytes lost since then */
    struct group_orphans orphans; /* for all children, so without a tag */
    /* Nothing of the child is left but its memory, which the receiver owns now. Called from the
     * loop, or from child_exited. */
    void (*done)(struct child_host *host, struct child *child);
    /* The check has said "not done", and nothing is left of it. The receiver calls child_run. */
    void (*run)(struct child_host *host, struct child *child);
    /* The process could not enter its home and is in /; error is the errno. */
    void (*homeless)(struct child_host *host, int error);
    /* See struct runner_events. */
    void (*stuck)(void *context, const struct attempt *attempt, pid_t pid);
    void *stuck_context;
};

struct child {
    struct attempt attempt;  /* first: attempt_free frees the child */
    struct attempt **others; /* the rest of its batch, owned; or NULL */
    size_t count;            /* of attempts: 1 plus the others */
    struct attempt *waiting; /* run after it, linked by `after`; owned by the runner */
    bool outdated;           /* the config was replaced since its start */
    bool live;               /* somebody follows its output */
    bool batch;              /* stdin has the form of a batch, and descriptor 3 is read */
    bool checking;           /* its process is the check, and the task has not started yet */
    struct child_host *host;
    size_t slot_index; /* exec/slot_index.h; set by the runner before the start */
    pid_t pid;
    struct process_tree tree;
    int report;         /* for spawn_report, after a forked start; or -1 */
    int64_t started_ns; /* CLOCK_BOOTTIME */
    int64_t settle_ns;  /* CLOCK_BOOTTIME until which it waits for output after the exit */
    double wait_s;      /* until it looks at the group again */
    struct stuck_kill stuck_kill;
    ev_timer timeout;
    ev_timer pause; /* first until output is watched, then the grace period, then while settling */
    struct outlet outlet;
    size_t lines;      /* how many the last read has logged */
    ev_timer throttle; /* while it runs, no output is read */
    struct stream streams[STREAMS];
    const struct stream_events *stream_events;
    size_t ignored;               /* lines of descriptor 3 that are no verdicts */
    bool within_line;             /* the line of descriptor 3 goes on in the next piece */
    struct child *next_in_bucket; /* in the table of children */
};

/* Returns attempt number index, from 0 on. */
struct attempt *child_attempt(struct child *child, size_t index);

/* Reports the home_error of a start, see exec/start/spawn.h; 0 does nothing. */
void child_note_home(struct child *child, int error);

#endif
