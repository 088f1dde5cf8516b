/*
 * What each process of a task may use (rlimits) and how it stands against others (nice, I/O
 * priority, the kernel's choice without memory): worked out once from the config, applied between
 * fork and exec.
 */
#ifndef LEAT_EXEC_START_ALLOWANCE_H
#define LEAT_EXEC_START_ALLOWANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

#include "config/config.h"

enum { ALLOWANCE_LIMITS = 8 };

struct allowance {
    size_t limit_count;
    struct {
        int resource;
        struct rlimit limit;
        const char *key; /* of the config */
    } limits[ALLOWANCE_LIMITS];
    int nice, ionice;
    char oom_score_adj[8]; /* as text; "": as the daemon has it */
    bool has_nice, has_ionice;
};

/* Only what the config says. */
void allowance_make(struct allowance *allowance, const struct config *config);

/* That limit is among them. */
bool allowance_limits(const struct allowance *allowance, int resource);

/* For the child: system calls only, and one descriptor for a moment. Returns NULL, or the key of
 * the config that could not be followed, with errno. */
const char *allowance_apply(const struct allowance *allowance);

#endif
