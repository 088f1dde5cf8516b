/*
 * Resource limits for all processes of a task together, as its cgroup enforces them.
 */
#ifndef LEAT_EXEC_CGROUP_BOUNDS_H
#define LEAT_EXEC_CGROUP_BOUNDS_H

#include <stdint.h>

#include "config/config.h"
#include "queue/task.h"

enum bounds_controller {
    BOUNDS_MEMORY = 1 << 0,
    BOUNDS_PIDS = 1 << 1,
    BOUNDS_CPU = 1 << 2,
    BOUNDS_IO = 1 << 3,
};

/* Indexed by enum task_bound; 0: no limit. */
struct bounds {
    int64_t values[TASK_BOUNDS];
};

/* Sets *bounds to the queue's limits, or the task's if they are lower. task is NULL if several
 * tasks share a process. */
void bounds_make(struct bounds *bounds, const struct config *config, const struct task *task);

/* Returns the limit's file in a cgroup, and the controller that the file belongs to. */
const char *bounds_file(size_t bound);
enum bounds_controller bounds_controller_of(size_t bound);

/* Returns "memory", "pids", "cpu" or "io". */
const char *bounds_controller_name(enum bounds_controller controller);

/* Writes one limit to the cgroup's directory. Returns 0, or -1 with errno. */
int bounds_write(int directory, size_t bound, int64_t value);

#endif
