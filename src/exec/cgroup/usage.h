/*
 * What a task's processes have used.
 */
#ifndef LEAT_EXEC_CGROUP_USAGE_H
#define LEAT_EXEC_CGROUP_USAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

enum usage_item {
    USAGE_CPU_US,      /* user and system time: of all its processes where it has a cgroup, else of
                          the first and of those that were waited for */
    USAGE_MAX_RSS,     /* bytes, of the largest of those that were waited for */
    USAGE_MEMORY_PEAK, /* bytes, of all its processes together */
    USAGE_OOM_KILLS,   /* how many of them the kernel killed for want of memory */
    USAGE_IO_READ,     /* bytes, from block devices */
    USAGE_IO_WRITTEN,
    USAGE_ITEMS,
};

struct usage {
    int64_t items[USAGE_ITEMS]; /* −1: not known */
};

/* Room for usage_format. */
#define USAGE_TEXT 192

/* Nothing is known yet. */
#define USAGE_NONE                                                                                 \
    {                                                                                              \
        {                                                                                          \
            -1, -1, -1, -1, -1, -1                                                                 \
        }                                                                                          \
    }

/* What wait4 said of the first process. */
void usage_add_exit(struct usage *usage, const struct rusage *exit);

/* "cpu_us 1200 max_rss 4096 …": names and numbers of what is known. */
void usage_format(const struct usage *usage, char *text, size_t size);

#endif
