/*
 * What all processes of a task together may use, as its cgroup holds it.
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

/* By enum task_bound; 0: none. */
struct bounds {
    int64_t values[TASK_BOUNDS];
};

/* Those of the queue; and where the task has lower ones, those. task NULL: several share a process.
 */
void bounds_make(struct bounds *bounds, const struct config *config, const struct task *task);

/* Its file in a cgroup, and the controller that has it. */
const char *bounds_file(size_t bound);
enum bounds_controller bounds_controller_of(size_t bound);

/* "memory", "pids", "cpu", "io". */
const char *bounds_controller_name(enum bounds_controller controller);

/* Writes one of them to the group's directory. Returns 0, or -1 with errno. */
int bounds_write(int directory, size_t bound, int64_t value);

#endif
