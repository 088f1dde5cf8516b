/*
 * The containment of tasks on this host: with cgroups or without, and what the log says about it.
 */
#ifndef LEAT_DAEMON_CLAIM_ISOLATION_H
#define LEAT_DAEMON_CLAIM_ISOLATION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "config/config.h"
#include "exec/cgroup/cgroups.h"

struct isolation {
    struct hierarchy hierarchy; /* the group that the daemon was started in */
    struct cgroups *cgroups;    /* owned; NULL: none */
};

/* Call it before anything else is started, since later processes belong in the daemon's group.
 * Kills processes that an earlier worker of this service left. beside: the daemon that has started
 * this one lives, and has cgroups. Returns 0, or an exit code of sysexits; call isolation_close in
 * both cases. */
int isolation_open(struct isolation *isolation, const struct config *config, bool beside);

/* Warns about limits of a reloaded config that cannot be enforced. */
void isolation_warn(const struct isolation *isolation, const struct config *config);

/* Returns whether no process is left that an earlier worker in the same group started. own: the
 * processes of this worker beside its tasks; without cgroups it must not have tasks yet. */
bool isolation_is_alone(const struct isolation *isolation, const pid_t *own, size_t count);

void isolation_close(struct isolation *isolation);

#endif
