/*
 * Resource usage of a task's processes.
 */
#ifndef LEAT_EXEC_CGROUP_USAGE_H
#define LEAT_EXEC_CGROUP_USAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

enum usage_item {
    USAGE_CPU_US,      /* user and system time of all processes; without a cgroup, of the leader and
                          the processes that it waited for */
    USAGE_MAX_RSS,     /* bytes of the largest process among the leader and those it waited for */
    USAGE_MEMORY_PEAK, /* bytes of all processes together */
    USAGE_OOM_KILLS,   /* how many processes were OOM-killed */
    USAGE_IO_READ,     /* bytes, from block devices */
    USAGE_IO_WRITTEN,
    USAGE_ITEMS,
};

struct usage {
    int64_t items[USAGE_ITEMS]; /* −1: not known */
};

/* Room for usage_format. */
#define USAGE_TEXT 192

/* A usage of which nothing is known yet. */
#define USAGE_NONE                                                                                 \
    {                                                                                              \
        {                                                                                          \
            -1, -1, -1, -1, -1, -1                                                                 \
        }                                                                                          \
    }

/* Sets what wait4 reported for the leader. */
void usage_add_exit(struct usage *usage, const struct rusage *exit);

/* Writes the items that are known: "cpu_us 1200 max_rss 4096 …". */
void usage_format(const struct usage *usage, char *text, size_t size);

#endif
