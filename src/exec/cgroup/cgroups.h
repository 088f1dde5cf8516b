/*
 * The cgroups of a worker below the service's own: `daemon` holds the daemon and its guard,
 * `tasks/N` the task at place N (see places.h). A group is kept for the next task at its place.
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
    CGROUPS_UNUSED, /* the config does not want them, or the service may not make any */
    CGROUPS_FAILED, /* they are wanted and cannot be had: the worker must not start */
};

/* Room for what cgroups_new has to tell. */
#define CGROUPS_TEXT 512

/* Moves this process into its group, and kills what an earlier worker of this service has left,
 * which may take some seconds. *cgroups is the caller's where they are used, else NULL. text: why
 * they are not, or "" where that needs no words; where they are used, what the config asks for and
 * is not held. */
enum cgroups_state cgroups_new(const struct config *config, const struct hierarchy *hierarchy,
                               struct cgroups **cgroups, char *text, size_t size);

/* "cpu io memory", as far as the groups of tasks have them; or "none". */
void cgroups_controllers(const struct cgroups *cgroups, char *text, size_t size);

/* Which of the config's bounds cannot be held, "memory_max, cpu_max"; "": all can. cgroups NULL:
 * none can. */
void cgroups_missing(const struct cgroups *cgroups, const struct config *config, char *text,
                     size_t size);

/* The group for the process at that place, ready for the task; NULL: for several. Returns 0, or -1
 * with the reason. */
int cgroups_prepare(struct cgroups *cgroups, size_t slot_index, const struct config *config,
                    const struct task *task, struct task_cgroup **task_cgroup, char *reason,
                    size_t reason_size);

/* No process is in the service's group but those named and the tasks of this worker: whatever
 * earlier workers in that group had started is dead. Without cgroups (NULL) tasks are not told
 * apart from others. */
bool cgroups_is_alone(const struct cgroups *cgroups, const struct hierarchy *hierarchy,
                      const pid_t *own, size_t count);

/* Kills what is left in the groups of tasks, and removes them. NULL does nothing. */
void cgroups_free(struct cgroups *cgroups);

#endif
