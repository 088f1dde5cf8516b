/*
 * Starts the process of an attempt: prepares its argv, environment, stdin and pipes, then spawns
 * it.
 */
#ifndef LEAT_EXEC_START_START_H
#define LEAT_EXEC_START_START_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "exec/job/outcome.h"
#include "exec/start/recipe.h"
#include "exec/start/spawn.h"
#include "queue/task.h"

/* The kinds of stdout and stderr that a process can have. */
enum start_ends { START_PIPES, START_NULL, START_INHERITED };

/* The settings that all starts share. */
struct start {
    const struct recipe *recipe;
    const struct rlimit *files; /* the limit of open files; or NULL */
    uint64_t signals;           /* from spawn_signals; 0: not called yet */
    int null;                   /* /dev/null, open for reading and writing, number ≥ 3 */
};

/* One process to start. */
struct start_order {
    bool check;              /* run the config's check instead of the command */
    const struct task *task; /* NULL: several tasks, which reach the process through `input` only */
    struct environment_limits limits;
    int cgroup;                /* directory of the cgroup to start in; 0: none */
    const struct bytes *input; /* for stdin; NULL: /dev/null */
    enum start_ends ends;      /* where its stdout and stderr go */
    struct guard_entry *entry; /* as in spawn.h */
    bool verdicts;             /* the process gets descriptor 3 to write verdicts to */
    bool resident;             /* stdin is a pipe, which gets one record after the other */
};

struct started {
    pid_t pid;
    int output, error; /* where stdout and stderr are read, without blocking; or -1: none, or
                          stderr is joined to stdout */
    int verdicts;      /* likewise for descriptor 3 */
    int input;         /* where its stdin is written, without blocking; or -1: not a pipe */
    int report;        /* for spawn_report; or -1 */
    int home_error;    /* as in spawn.h; 0 for a forked child, which spawn_report judges */
};

/* Starts the process. Returns 0, and the caller owns the descriptors of *started; or -1 with the
 * cause and the reason, and nothing is left. */
int start_task(const struct start *start, const struct start_order *order, struct started *started,
               enum cause *cause, char *reason, size_t reason_size);

/* Returns the cause of a failed start. CAUSE_CANNOT_EXECUTE is the fault of a single task: its
 * arguments are too long, or it cannot enter its own directory. CAUSE_LEASE_LOST means that it
 * started too late, CAUSE_NO_PROGRAM that this host cannot execute the listed program. All else is
 * CAUSE_HOST. recipe may be NULL; check and task are those of the start's order. */
enum cause start_failure_cause(const struct recipe *recipe, bool check, const struct task *task,
                               const struct spawn_failure *failure);

/* Describes why a forked child did not execute its program. recipe may be NULL; check and task are
 * those of the start's order. */
void start_describe(const struct recipe *recipe, bool check, const struct task *task,
                    const struct spawn_failure *failure, char *reason, size_t reason_size);

#endif
