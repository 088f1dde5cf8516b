/*
 * How tasks are held together on this host: with cgroups or without, and what the log says of it.
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

/* Before anything else is started: what is started later lives in the daemon's group. Kills what an
 * earlier worker of this service has left. Returns 0, or an exit code of sysexits; isolation_close
 * in both cases. */
int isolation_open(struct isolation *isolation, const struct config *config);

/* Says what of a reloaded config is not held. */
void isolation_look(const struct isolation *isolation, const struct config *config);

/* Nothing lives any more that an earlier worker in the same group had started. own: the processes
 * of this one beside its tasks; without cgroups it must have no tasks yet. */
bool isolation_is_alone(const struct isolation *isolation, const pid_t *own, size_t count);

void isolation_close(struct isolation *isolation);

#endif
