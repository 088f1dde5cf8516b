/*
 * What a task's processes have used.
 */
#ifndef LEAT_EXEC_USAGE_H
#define LEAT_EXEC_USAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

struct usage {
    int64_t cpu_us;  /* user and system time: of all its processes where it has a cgroup, else
                        of the first and of those that were waited for */
    int64_t max_rss; /* bytes, of the largest of those that were waited for */
    int64_t
        memory_peak;   /* bytes, of all its processes together; -1: not known, as the next three */
    int64_t oom_kills; /* how many of its processes the kernel killed for want of memory */
    int64_t io_read, io_written; /* bytes, of block devices */
};

/* Room for usage_format. */
#define USAGE_TEXT 192

/* Nothing is known yet. */
#define USAGE_NONE                                                                                 \
    {                                                                                              \
        .memory_peak = -1, .oom_kills = -1, .io_read = -1, .io_written = -1                        \
    }

/* What wait4 said of the first process. */
void usage_add_exit(struct usage *usage, const struct rusage *exit);

/* "cpu_us 1200 max_rss 4096 …": names and numbers of what is known. */
void usage_format(const struct usage *usage, char *text, size_t size);

#endif
