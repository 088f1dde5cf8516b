/*
 * Resource limits (rlimits) and priorities (nice, I/O priority, OOM score) of tasks' processes:
 * computed once from the config, applied between fork and exec.
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
        const char *key; /* its key in the config */
    } limits[ALLOWANCE_LIMITS];
    int nice, ionice;
    char oom_score_adj[8]; /* as text; "": inherited from the daemon */
    bool has_nice, has_ionice;
};

/* Computes the limits and priorities that the config sets; all others are inherited. */
void allowance_make(struct allowance *allowance, const struct config *config);

/* Returns true if the config sets that limit. */
bool allowance_limits(const struct allowance *allowance, int resource);

/* Applies them in the child, with system calls only; one descriptor is open for a moment. Returns
 * NULL, or the key of the config that could not be applied, with errno. */
const char *allowance_apply(const struct allowance *allowance);

#endif
