#include "exec/usage.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int64_t microseconds(const struct timeval *time)
{
    return (int64_t)time->tv_sec * 1000000 + (int64_t)time->tv_usec;
}

void usage_add_exit(struct usage *usage, const struct rusage *exit)
{
    usage->cpu_us = microseconds(&exit->ru_utime) + microseconds(&exit->ru_stime);
    usage->max_rss = (int64_t)exit->ru_maxrss * 1024;
}

static void add(char *text, size_t size, const char *name, int64_t value)
{
    size_t used = strlen(text);
    if (value >= 0) {
        (void)snprintf(text + used, size - used, "%s%s %" PRId64, used > 0 ? " " : "", name,
                       value); /* USAGE_TEXT holds all */
    }
}

void usage_format(const struct usage *usage, char *text, size_t size)
{
    text[0] = '\0';
    add(text, size, "cpu_us", usage->cpu_us);
    add(text, size, "max_rss", usage->max_rss);
    add(text, size, "memory_peak", usage->memory_peak);
    add(text, size, "oom_kills", usage->oom_kills);
    add(text, size, "io_read", usage->io_read);
    add(text, size, "io_written", usage->io_written);
}
