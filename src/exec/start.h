/*
 * Starts one attempt's process: its argv, environment, stdin and pipes, then the process itself.
 */
#ifndef LEAT_EXEC_START_H
#define LEAT_EXEC_START_H

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "exec/outcome.h"
#include "exec/recipe.h"
#include "exec/spawn.h"
#include "queue/task.h"

/* What is common to all starts. */
struct start {
    const struct recipe *recipe;
    const struct rlimit *files; /* or NULL */
    uint64_t signals;           /* see spawn_signals; 0: not asked yet */
    int null;                   /* /dev/null, open for reading, number ≥ 3 */
};

struct started {
    pid_t pid;
    int output; /* the ends that the task's stdout and stderr are read from; do not block */
    int error;
    int report; /* for spawn_report, or -1 */
};

/* Returns 0, with *started the caller's; or -1 with the cause and the reason, nothing being left.
 */
int start_task(const struct start *start, const struct task *task,
               const struct environment_limits *limits, struct started *started, enum cause *cause,
               char *reason, size_t reason_size);

/* Arguments that are too long are the task's own fault: CAUSE_REFUSED; else CAUSE_HOST. */
enum cause start_failure_cause(const struct spawn_failure *failure);

/* The reason of a forked child that did not come to execute. */
void start_describe(const struct recipe *recipe, const struct spawn_failure *failure, char *reason,
                    size_t reason_size);

/* The same descriptor with a number above those of the standard streams, close-on-exec; closes the
 * former. Takes and gives back -1 with errno. */
int start_above_standard(int fd);

#endif
