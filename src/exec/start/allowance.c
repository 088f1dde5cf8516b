/*
 * Computes and applies the resource limits and priorities of tasks' processes.
 */
#include "exec/start/allowance.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/process/control_file.h"

enum { IOPRIO_PROCESS = 1 }; /* IOPRIO_WHO_PROCESS, which libc's headers lack */

static void add_limit(struct allowance *allowance, const char *key, int resource, int64_t value)
{
    if (value == CONFIG_INHERIT) {
        return;
    }
    rlim_t most = value == CONFIG_UNLIMITED ? RLIM_INFINITY : (rlim_t)value;
    allowance->limits[allowance->limit_count].key = key;
    allowance->limits[allowance->limit_count].resource = resource;
    allowance->limits[allowance->limit_count].limit =
        (struct rlimit){.rlim_cur = most, .rlim_max = most};

    /* the kernel sends SIGXCPU at the soft limit and KILL at the hard one, which must be higher */
    if (resource == RLIMIT_CPU && most != RLIM_INFINITY) {
        allowance->limits[allowance->limit_count].limit.rlim_max = most + 1;
    }
    allowance->limit_count++;
}

void allowance_make(struct allowance *allowance, const struct config *config)
{
    const struct config_limits *limits = &config->limits;
    const struct config_task *task = &config->task;
    *allowance = (struct allowance){
        .has_nice = task->nice != CONFIG_INHERIT,
        .has_ionice = task->ionice != CONFIG_INHERIT,
    };
    allowance->nice = allowance->has_nice ? (int)task->nice : 0;
    allowance->ionice = allowance->has_ionice ? (int)task->ionice : 0;
    if (task->oom_score_adj != CONFIG_INHERIT) {
        (void)snprintf(allowance->oom_score_adj, sizeof allowance->oom_score_adj, "%d",
                       (int)task->oom_score_adj);
    }
    add_limit(allowance, "[limits] open_files", RLIMIT_NOFILE, limits->open_files);
    add_limit(allowance, "[limits] core", RLIMIT_CORE, limits->core);
    add_limit(allowance, "[limits] cpu_time", RLIMIT_CPU, limits->cpu_time_s);
    add_limit(allowance, "[limits] file_size", RLIMIT_FSIZE, limits->file_size);
    add_limit(allowance, "[limits] processes", RLIMIT_NPROC, limits->processes);
    add_limit(allowance, "[limits] stack", RLIMIT_STACK, limits->stack);
    add_limit(allowance, "[limits] locked_memory", RLIMIT_MEMLOCK, limits->locked_memory);
    add_limit(allowance, "[limits] address_space", RLIMIT_AS, limits->address_space);
}

bool allowance_limits(const struct allowance *allowance, int resource)
{
    for (size_t i = 0; i < allowance->limit_count; i++) {
        if (allowance->limits[i].resource == resource) {
            return true;
        }
    }
    return false;
}

const char *allowance_apply(const struct allowance *allowance)
{
    /* this needs a descriptor, so it comes before the limit of open files */
    if (allowance->oom_score_adj[0] != '\0' &&
        control_file_write(AT_FDCWD, "/proc/self/oom_score_adj", allowance->oom_score_adj) < 0) {
        return "[task] oom_score_adj";
    }
    if (allowance->has_nice && setpriority(PRIO_PROCESS, 0, allowance->nice) < 0) {
        return "[task] nice";
    }
    if (allowance->has_ionice &&
        syscall(SYS_ioprio_set, IOPRIO_PROCESS, 0, allowance->ionice) < 0) {
        return "[task] ionice";
    }
    for (size_t i = 0; i < allowance->limit_count; i++) {
        if (setrlimit((__rlimit_resource_t)allowance->limits[i].resource,
                      &allowance->limits[i].limit) < 0) {
            return allowance->limits[i].key;
        }
    }
    return NULL;
}
