/*
 * The cgroups of a worker below the service's own: `daemon` has the daemon and its guards,
 * `tasks/N` the task with slot index N (exec/slot_index.h). A cgroup is kept for the next task with
 * its index.
 *
 * After an upgrade, several daemons of one service run side by side. They share `daemon`, and each
 * has a folder for its tasks: `tasks`, `tasks.2`, … A daemon keeps its folder locked (flock) as
 * long as it lives, so a free one has no owner.
 */
#ifndef LEAT_EXEC_CGROUP_CGROUPS_H
#define LEAT_EXEC_CGROUP_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "config/config.h"
#include "exec/cgroup/hierarchy.h"
#include "exec/cgroup/task_cgroup.h"

struct cgroups;

enum cgroups_state {
    CGROUPS_USED,
    CGROUPS_UNUSED, /* the config turns them off, or the service may not create any */
    CGROUPS_FAILED, /* they are required but cannot be used: the worker must not start */
};

/* The name of the cgroup of all daemons of the service. */
#define CGROUPS_DAEMON "daemon"

/* Room for the text of cgroups_new. */
#define CGROUPS_TEXT 512

/* Moves this process into its cgroup, and kills the processes that an earlier worker of this
 * service has left, which may take some seconds. Sets *cgroups, which the caller owns, or NULL if
 * cgroups are not used. Sets text to the reason if they are not used; "" means that no reason is
 * needed. If beside is set, other daemons of this service may live: it leaves their processes
 * alone, and takes a folder that none of them has. */
enum cgroups_state cgroups_new(const struct config *config, const struct hierarchy *hierarchy,
                               bool beside, struct cgroups **cgroups, char *text, size_t size);

/* Lists the controllers that tasks' cgroups have, "cpu io memory"; or "none". */
void cgroups_controllers(const struct cgroups *cgroups, char *text, size_t size);

/* Lists the config's limits that cannot be enforced here, "memory_max, cpu_max"; "" if all can be.
 * cgroups is NULL if they are not used: then no limit can be enforced. */
void cgroups_missing(const struct cgroups *cgroups, const struct config *config, char *text,
                     size_t size);

/* Sets *task_cgroup to the cgroup for that slot index, clean and with the limits of the task. task
 * is NULL if several share the process. Returns 0, or -1 with the reason. */
int cgroups_prepare(struct cgroups *cgroups, size_t slot_index, const struct config *config,
                    const struct task *task, struct task_cgroup **task_cgroup, char *reason,
                    size_t reason_size);

/* Returns true if the service's cgroup has no processes but the `count` in `own` and this worker's
 * tasks. All processes that earlier workers in it had started are then dead. Without cgroups (NULL)
 * this worker's tasks count as other processes. */
bool cgroups_is_alone(const struct cgroups *cgroups, const struct hierarchy *hierarchy,
                      const pid_t *own, size_t count);

/* Kills the processes that are left in tasks' cgroups, and removes the cgroups. NULL does nothing.
 */
void cgroups_free(struct cgroups *cgroups);

#endif
