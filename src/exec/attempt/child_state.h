/*
 * The state of one child process, and what its parts call of each other. Only the modules of this
 * folder use it; child.h is the interface for others.
 */
#ifndef LEAT_EXEC_ATTEMPT_CHILD_STATE_H
#define LEAT_EXEC_ATTEMPT_CHILD_STATE_H

#include "base/fd_watch.h"
#include "base/timer.h"
#include "config/config.h"
#include "exec/attempt/attempt.h"
#include "exec/attempt/outlet.h"
#include "exec/attempt/output.h"
#include "exec/attempt/stuck_kill.h"
#include "exec/cgroup/cgroups.h"
#include "exec/guard/guard.h"
#include "exec/start/start.h"
#include "exec/tree/process_tree.h"
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct child;

enum { STREAM_OUTPUT, STREAM_ERROR, STREAM_VERDICTS, STREAMS };

/* One of stdout, stderr and descriptor 3. */
struct stream {
    struct output output;
    struct fd_watch watch;
    struct child *child;
    bool paused; /* the follower wants no more for now */
};

/* The part of stream.c. */
struct streams {
    struct stream list[STREAMS];
    struct outlet outlet;
    size_t lines;          /* how many the last read has logged */
    struct timer throttle; /* while it runs, no output is read */
    size_t ignored;        /* lines of descriptor 3 that are no verdicts */
    bool within_line;      /* the line of descriptor 3 goes on in the next piece */
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
    struct timer timeout;
    struct timer
        pause; /* first until output is watched, then the grace period, then while settling */
    struct streams streams;
    struct child *next_in_bucket; /* in the table of children */
};

/* ---- child.c ---- */

/* Reports the home_error of a start, see exec/start/spawn.h; 0 does nothing. */
void child_note_home(struct child *child, int error);

/* A stream was read. The child may be gone afterwards. */
void child_was_read(struct child *child);

/* ---- stream.c: what the process writes to its pipes. Lines of stdout and stderr are logged and
 * their tails kept; on descriptor 3 the process of a batch writes verdicts on single tasks. ---- */

/* Sets up the child's streams without descriptors. */
void streams_init(struct child *child);

/* Takes ownership of the descriptors of a process that was started. */
void streams_open(struct child *child, const struct started *started);

/* Reads what the streams have now, with a limited number of reads. */
void streams_drain(struct child *child);

/* Begins to watch the streams, and calls child_was_read after each read. */
void streams_watch(struct child *child);

/* Returns true if output was read that the log has not accepted yet. */
bool streams_are_blocked(const struct child *child);

/* Returns true if all streams are at their ends and the log has accepted everything. */
bool streams_are_done(const struct child *child);

/* Stops reading, passes on last lines without a newline, and gives the tails to the attempts. */
void streams_finish(struct child *child);

/* Stops watching, closes and frees the streams. */
void streams_free(struct child *child);

/* ---- judge.c: how the attempts ended ---- */

/* Sets the attempts' endings from the exit of the leader. Returns JOB_TO_RUN if it was a check that
 * says "not done", otherwise JOB_EXITED. */
enum job_event judge_exit(struct child *child, const siginfo_t *exit);

/* Completes the endings when nothing of the process is left and its output was read. Its verdicts
 * on single tasks take precedence over its own end. */
void judge_end(struct child *child);

/* ---- child_guard.c: puts the process under guard (exec/guard/guard.h), from before its start
 * until nothing of it is left. Without a guard these functions do nothing. ---- */

/* Returns the environment tag of its processes (exec/tree/env_tag.h). It is 0 for a batch, and for
 * a program that is no task. */
uint64_t child_guard_tag(const struct child *child);

/* Arms the entry before a start. task_cgroup is NULL without a cgroup. While the child starts, the
 * daemon waits for it and cannot renew leases, so the deadline of the start is well before the end
 * of the lease; after the start, child_renew has to be called. Returns the entry for spawn,
 * or NULL without a guard. */
struct guard_entry *child_guard_arm(struct child *child, const struct task_cgroup *task_cgroup);

/* Returns true if a guard has killed it or is about to. */
bool child_guard_is_taken(const struct child *child);

/* Disarms the entry: the process is gone, or was not started. */
void child_guard_release(struct child *child);

#endif
