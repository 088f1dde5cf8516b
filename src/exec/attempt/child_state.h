/*
 * The state of one child process, and what its parts call of each other. Only the modules of this
 * folder use it; child.h is the interface for others.
 */
#ifndef LEAT_EXEC_ATTEMPT_CHILD_STATE_H
#define LEAT_EXEC_ATTEMPT_CHILD_STATE_H

#include "base/buffer.h"
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
#include <sys/queue.h>
#include <sys/types.h>
#include <time.h>

struct batch_verdict;
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
    size_t nonsense;       /* those since the last verdict, and pieces of long ones */
    bool within_line;      /* the line of descriptor 3 goes on in the next piece */
};

enum resident_news {
    RESIDENT_READY,   /* it takes tasks from now on, unless it has ended already */
    RESIDENT_WORN,    /* it has done or used enough, or is too old: a successor is wanted */
    RESIDENT_IDLE,    /* it has had no task for long enough */
    RESIDENT_ENDS,    /* it is being ended, or has exited: it takes no more tasks */
    RESIDENT_TROUBLE, /* text says what was wrong with it, and what to do */
};

/* A resident process: a child that stays, and gets one task after the other. It reads records from
 * standard input, as a batch does, but without an end, and reports the result of each by a line on
 * descriptor 3, after a first line "ready". So it is a batch whose tasks come and go: its `others`
 * are the tasks in its hands, and its own `attempt` stands for the process, with a task that no
 * queue knows.
 *
 * The tasks go through the states of the process while they are in its hands. A verdict ends one of
 * them and nothing else. If the process ends, all of them end with it. */
struct resident {
    struct child *child;
    TAILQ_ENTRY(resident) link;  /* of all; the owner of the list is exec/residents.h */
    TAILQ_ENTRY(resident) place; /* of those that can take a task */
    bool listed;                 /* it is in such a list */
    enum config_format format;
    size_t most;              /* tasks in its hands at a time */
    bool ready;               /* it has written its first line */
    bool worn;                /* its successor is on its way */
    bool closing;             /* it gets no more tasks */
    bool troubled;            /* the log says what was wrong with it */
    int input;                /* where its records are written; -1: closed */
    uint64_t read;            /* bytes of records that it had read when `input` was closed */
    uint64_t written;         /* bytes of records that are in the pipe, or that it has read */
    uint64_t number;          /* of the last record */
    uint64_t ended;           /* tasks with a verdict */
    struct buffer unsent;     /* records that the pipe had no room for */
    struct fd_watch writable; /* started while there are such records */
    struct fd_watch unread;   /* becomes ready when nobody has the other end of `input` open */
    bool shut;                /* that is the case */
    int64_t free_ns;          /* CLOCK_BOOTTIME since when it has no task */
    int64_t mute_ns; /* CLOCK_BOOTTIME at which `input` or descriptor 3 was shut; 0: not yet */
    int64_t end_ns;  /* CLOCK_BOOTTIME at which it gets TERM, after its input was closed */
    int64_t due_ns;  /* when the child's timer fires; 0: it does not */
    int64_t look_ns; /* when its memory was last looked at */
    clockid_t cpu;   /* its CPU time */
    bool has_cpu;
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
    /* A resident process has reported the result of a task, which is no longer in its hands. The
     * receiver owns the attempt. */
    void (*settled)(struct child_host *host, struct child *child, struct attempt *attempt);
    /* News of a resident process. The receiver may call resident_close. */
    void (*resident)(struct child_host *host, struct child *child, enum resident_news news,
                     const char *text);
    /* See struct runner_events. */
    void (*stuck)(void *context, const struct attempt *attempt, pid_t pid);
    void *stuck_context;
};

struct child {
    struct attempt attempt;    /* first: attempt_free frees the child */
    struct attempt **others;   /* the rest of its batch, owned; or NULL */
    struct resident *resident; /* owned; its others come and go. NULL: it has its tasks from the
                                  start to the end */
    size_t count;              /* of attempts: 1 plus the others */
    struct attempt *waiting;   /* run after it, linked by `after`; owned by the runner */
    bool outdated;             /* the config was replaced since its start */
    bool live;                 /* somebody follows its output */
    bool batch;                /* stdin has the form of a batch, and descriptor 3 is read */
    bool needs_verdict;        /* without a report, its task has failed, whatever its exit status */
    bool checking;             /* its process is the check, and the task has not started yet */
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

/* Whether the output of a task that starts now is to be followed, if it has its process alone. */
bool child_is_followed(const struct child_host *host, const struct task *task);

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

/* Reads what is on descriptor 3 now. */
void streams_read_reports(struct child *child);

/* Begins to watch the streams, and calls child_was_read after each read. */
void streams_watch(struct child *child);

/* Reads what a resident process has written to stdout and stderr so far, and ends their last lines,
 * so that what follows is another task's. Returns true if the log has accepted all of it. With
 * `last`, what it refuses is lost. */
bool streams_part(struct child *child, bool last);

/* Gives the tails so far to a task of a resident process, if they are the task's or it is a dead
 * letter. */
void streams_give_tails(struct child *child, struct attempt *attempt);

/* Sets the verdict on a task; its last one counts. */
void streams_set_verdict(struct attempt *attempt, const struct batch_verdict *verdict);

/* Returns true if output was read that the log has not accepted yet. */
bool streams_are_blocked(const struct child *child);

/* Returns true if all streams are at their ends and the log has accepted everything. */
bool streams_are_done(const struct child *child);

/* Stops reading, passes on last lines without a newline, and gives the tails to the attempts. */
void streams_finish(struct child *child);

/* Stops watching, closes and frees the streams. */
void streams_free(struct child *child);

/* ---- resident.c: a process that stays. ---- */

/* Makes the child of a resident process without starting it. Returns NULL without memory. */
struct child *resident_new(struct child_host *host);

/* Takes over the process that was just started. */
void resident_begin(struct child *child, const struct started *started);

/* Returns how many tasks it has. */
size_t resident_count(const struct child *child);

/* Hands the task over, and takes ownership of it. The process must be ready and have less than
 * `most`. Returns the attempt, which the child owns; or NULL without memory, or if the process has
 * to end because of what it wrote before, and the caller still owns the task. */
struct attempt *resident_take(struct child *child, const struct claimed_task *claimed);

/* Gives it no more tasks. When it has none, its standard input ends; then it has the grace period
 * to end, then TERM and a second one. */
void resident_close(struct child *child);

/* Handles a line of descriptor 3. Returns false to have it again: output that the process wrote
 * before has to be logged first. Sets *known to false if the line is none that it may write. */
bool resident_line(struct child *child, const char *line, size_t size, bool *known);

/* Descriptor 3 is at its end. The process may be about to exit, or has to be ended. */
void resident_mute(struct child *child);

/* It has written so much nonsense that it is ended. */
void resident_babbles(struct child *child);

/* Its timer has fired. */
void resident_due(struct child *child);

/* The config was replaced, so it may be due earlier. */
void resident_reload(struct child *child);

/* Returns the only task in its hands, or NULL. */
struct attempt *resident_only(const struct child *child);

/* Sets the ending of a task that was in its hands when it ended. */
void resident_judge(struct child *child, struct attempt *attempt);

/* Stops watching, and closes its standard input. */
void resident_release(struct child *child);

/* Frees what child_new does not know. NULL does nothing. */
void resident_free(struct resident *resident);

/* ---- judge.c: how the attempts ended ---- */

/* Sets the attempts' endings from the exit of the leader. Returns JOB_TO_RUN if it was a check that
 * says "not done", otherwise JOB_EXITED. */
enum job_event judge_exit(struct child *child, const siginfo_t *exit);

/* Completes the endings when nothing of the process is left and its output was read. Its verdicts
 * on single tasks take precedence over its own end. */
void judge_end(struct child *child);

/* Ends a task without a report with CAUSE_NO_VERDICT if its process ended by itself. */
void judge_no_verdict(struct attempt *attempt);

/* Turns the verdict into the ending. */
void judge_verdict(struct attempt *attempt);

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
