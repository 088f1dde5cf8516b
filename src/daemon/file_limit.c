/* Raises the limit of open files, and compares it with what all slots need. */
#include "daemon/file_limit.h"

#include <inttypes.h>

#include "base/log/log.h"

/* Descriptors of the daemon itself, with those that a start needs for a moment; then those of a
 * running process: its pipes, and the files of its cgroup (exec/cgroup/task_cgroup.c). A resident
 * process has two pipes more, and its successor starts beside it. */
enum { OF_DAEMON = 64, PIPES = 2, OF_CGROUP = 7 };

int file_limit_raise(struct rlimit *found)
{
    if (getrlimit(RLIMIT_NOFILE, found)) {
        return -1;
    }
    struct rlimit raised = {.rlim_cur = found->rlim_max, .rlim_max = found->rlim_max};
    return setrlimit(RLIMIT_NOFILE, &raised);
}

static int64_t needed_for_slot(const struct config *config, bool has_cgroups)
{
    int64_t count = config->output.to == CONFIG_OUTPUT_INHERIT ? 0 : PIPES;
    count += config->output.to == CONFIG_OUTPUT_FILE;
    count += config->task.batch > 1 || config->task.resident;
    count += config->task.resident;
    count += has_cgroups ? OF_CGROUP : 0;
    return config->task.resident ? 2 * count : count;
}

void file_limit_warn(const struct config *config, bool has_cgroups)
{
    struct rlimit limit;
    int64_t slot = needed_for_slot(config, has_cgroups);
    int64_t needed = OF_DAEMON + config->queue.concurrency * slot;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= (rlim_t)needed) {
        return;
    }
    int64_t spare = (int64_t)limit.rlim_cur - OF_DAEMON;
    log_text(LOG_WARNING,
             "%s: [queue] concurrency: %" PRId64 " slots need up to %" PRId64
             " open files, but the limit is %ju; set LimitNOFILE=%" PRId64
             " in the unit (ulimit -n), or concurrency to %" PRId64 " or less",
             config->path, config->queue.concurrency, needed, (uintmax_t)limit.rlim_cur, needed,
             spare > slot ? spare / slot : 1);
}
