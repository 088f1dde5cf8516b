/*
 * Resource limits of tasks, and how they are written to the files of a cgroup.
 */
#include "exec/cgroup/bounds.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/process/control_file.h"
#include "queue/task_bounds.h"

enum { CPU_PERIOD_US = 100000 };

static const struct {
    const char *file;
    enum bounds_controller controller;
    const char *before, *behind; /* what the file has around the number */
    const char *standard;        /* the file's initial content */
} files[TASK_BOUNDS] = {
    [TASK_MEMORY_MAX] = {"memory.max", BOUNDS_MEMORY, "", "", "max"},
    [TASK_MEMORY_HIGH] = {"memory.high", BOUNDS_MEMORY, "", "", "max"},
    [TASK_PIDS_MAX] = {"pids.max", BOUNDS_PIDS, "", "", "max"},
    [TASK_CPU_MAX] = {"cpu.max", BOUNDS_CPU, "", " 100000", "max 100000"},
    [TASK_CPU_WEIGHT] = {"cpu.weight", BOUNDS_CPU, "", "", "100"},
    [TASK_IO_WEIGHT] = {"io.weight", BOUNDS_IO, "default ", "", "default 100"},
};
enum { STANDARD_WEIGHT = 100 };

const char *bounds_file(size_t bound)
{
    return files[bound].file;
}

enum bounds_controller bounds_controller_of(size_t bound)
{
    return files[bound].controller;
}

const char *bounds_controller_name(enum bounds_controller controller)
{
    static const char *const names[] = {[BOUNDS_MEMORY] = "memory",
                                        [BOUNDS_PIDS] = "pids",
                                        [BOUNDS_CPU] = "cpu",
                                        [BOUNDS_IO] = "io"};
    return names[controller];
}

/* Returns the lower limit. Without a limit of the queue, a weight is the kernel's default, and
 * anything else is unlimited. */
static int64_t lower(size_t bound, int64_t queue, int64_t task)
{
    bool weight = bound == TASK_CPU_WEIGHT || bound == TASK_IO_WEIGHT;
    int64_t most = queue == 0 && weight ? STANDARD_WEIGHT : queue;
    return task > 0 && (most == 0 || task < most) ? task : queue;
}

void bounds_make(struct bounds *bounds, const struct config *config, const struct task *task)
{
    const struct config_isolation *isolation = &config->isolation;
    *bounds = (struct bounds){.values = {
                                  [TASK_MEMORY_MAX] = isolation->memory_max,
                                  [TASK_MEMORY_HIGH] = isolation->memory_high,
                                  [TASK_PIDS_MAX] = isolation->pids_max,
                                  [TASK_CPU_MAX] = isolation->cpu_max,
                                  [TASK_CPU_WEIGHT] = isolation->cpu_weight,
                                  [TASK_IO_WEIGHT] = isolation->io_weight,
                              }};
    for (size_t i = 0; task && i < TASK_BOUNDS; i++) {
        bounds->values[i] = lower(i, bounds->values[i], task->bounds[i]);
    }
}

int bounds_write(int directory, size_t bound, int64_t value)
{
    char text[64];
    if (value == 0) {
        return control_file_write(directory, files[bound].file, files[bound].standard);
    }
    if (bound == TASK_CPU_MAX) {
        value *= CPU_PERIOD_US / 100; /* the file counts microseconds per period */
    }
    (void)snprintf(text, sizeof text, "%s%" PRId64 "%s", files[bound].before, value,
                   files[bound].behind);
    return control_file_write(directory, files[bound].file, text);
}
