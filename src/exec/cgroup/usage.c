/*
 * Resource usage as text, and from what wait4 reports.
 */
#include "exec/cgroup/usage.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const names[USAGE_ITEMS] = {
    [USAGE_CPU_US] = "cpu_us",           [USAGE_MAX_RSS] = "max_rss",
    [USAGE_MEMORY_PEAK] = "memory_peak", [USAGE_OOM_KILLS] = "oom_kills",
    [USAGE_IO_READ] = "io_read",         [USAGE_IO_WRITTEN] = "io_written",
};

static int64_t microseconds(const struct timeval *time)
{
    return (int64_t)time->tv_sec * 1000000 + (int64_t)time->tv_usec;
}

void usage_add_exit(struct usage *usage, const struct rusage *exit)
{
    usage->items[USAGE_CPU_US] = microseconds(&exit->ru_utime) + microseconds(&exit->ru_stime);
    usage->items[USAGE_MAX_RSS] = (int64_t)exit->ru_maxrss * 1024;
}

void usage_format(const struct usage *usage, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < USAGE_ITEMS; i++) {
        if (usage->items[i] >= 0 && used < size) {
            int length = snprintf(text + used, size - used, "%s%s %" PRId64, used > 0 ? " " : "",
                                  names[i], usage->items[i]);
            used += length > 0 ? (size_t)length : 0; /* USAGE_TEXT has room for all */
        }
    }
}
