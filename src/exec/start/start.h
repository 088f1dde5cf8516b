/*
 * Starts one attempt's process: its argv, environment, stdin and pipes, then the process itself.
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

/* What a process has for its stdout and stderr. */
enum start_ends { START_PIPES, START_NULL, START_INHERITED };

/* What is common to all starts. */
struct start {
    const struct recipe *recipe;
    const struct rlimit *files; /* or NULL */
    uint64_t signals;           /* see spawn_signals; 0: not asked yet */
    int null;                   /* /dev/null, open for both, number ≥ 3 */
};

/* One process to be started. */
struct start_order {
    bool check;              /* the config's check instead of the command */
    const struct task *task; /* NULL: several, of which nothing but the input is passed on */
    struct environment_limits limits;
    int cgroup;                /* directory of the cgroup to start in; 0: none */
    const struct bytes *input; /* for stdin; NULL: /dev/null */
    enum start_ends ends;      /* of its stdout and stderr */
    struct guard_entry *slot;  /* as in spawn.h */
    bool verdicts;             /* the process gets descriptor 3 to write to */
};

struct started {
    pid_t pid;
    int output; /* the ends that the task's stdout and stderr are read from, or -1; do not block */
    int error;
    int verdicts;   /* the same for descriptor 3, or -1 */
    int report;     /* for spawn_report, or -1 */
    int home_error; /* as in spawn.h; of a forked child spawn_report has it */
};

/* Returns 0, with *started the caller's; or -1 with the cause and the reason, nothing being left.
 */
int start_task(const struct start *start, const struct start_order *order, struct started *started,
               enum cause *cause, char *reason, size_t reason_size);

/* Arguments that are too long and a directory of the task's own that it cannot enter are a single
 * task's own fault: CAUSE_CANNOT_EXECUTE; one that came too late has CAUSE_LEASE_LOST; a listed
 * program that cannot be executed here is CAUSE_NO_PROGRAM; else it is CAUSE_HOST. recipe may be
 * NULL; check and task as in the start's order. */
enum cause start_failure_cause(const struct recipe *recipe, bool check, const struct task *task,
                               const struct spawn_failure *failure);

/* The reason of a forked child that did not come to execute; check and task as in its order. recipe
 * may be NULL. */
void start_describe(const struct recipe *recipe, bool check, const struct task *task,
                    const struct spawn_failure *failure, char *reason, size_t reason_size);

#endif
