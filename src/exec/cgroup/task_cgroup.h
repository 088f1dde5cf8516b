/*
 * The cgroup of one slot index, in which its tasks run one after the other.
 */
#ifndef LEAT_EXEC_CGROUP_TASK_CGROUP_H
#define LEAT_EXEC_CGROUP_TASK_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "exec/cgroup/bounds.h"
#include "exec/cgroup/usage.h"

struct task_cgroup;

/* Creates the cgroup below the directory, named by the number. controllers are those that it has
 * (enum bounds_controller). Returns NULL with errno. */
struct task_cgroup *task_cgroup_new(int directory, size_t number, unsigned controllers);

/* Makes the cgroup ready for the next task: clean, and with these limits. Returns 0; or -1 with
 * errno, and *what is the name of the file that failed. */
int task_cgroup_prepare(struct task_cgroup *task_cgroup, const struct bounds *bounds,
                        const char **what);

/* Return its directory, for starting processes in it, and its cgroup.kill. It owns both, and may
 * replace them in task_cgroup_prepare. */
int task_cgroup_directory(const struct task_cgroup *task_cgroup);
int task_cgroup_kill_fd(const struct task_cgroup *task_cgroup);

/* Returns its cgroup.events, likewise. */
int task_cgroup_events_fd(const struct task_cgroup *task_cgroup);
/* Returns a number that changes, and is never 0, when the cgroup is created again. */
int64_t task_cgroup_version(const struct task_cgroup *task_cgroup);

/* Has the cgroup created again for the next task, since something was wrong with it or somebody
 * else may have killed it. */
void task_cgroup_doubt(struct task_cgroup *task_cgroup);

/* Sends KILL to every process in it. */
void task_cgroup_kill(struct task_cgroup *task_cgroup);

/* Returns true if no process is left in it; zombies do not count. Takes one system call. */
bool task_cgroup_is_empty(struct task_cgroup *task_cgroup);

/* Returns a process that is in it; 0: there is none, or only in a cgroup below. */
pid_t task_cgroup_member(const struct task_cgroup *task_cgroup);

/* Sets the items of *usage that the kernel accounts for here: what the last task has used. To be
 * called when the cgroup is empty. */
void task_cgroup_usage(struct task_cgroup *task_cgroup, struct usage *usage);

/* Removes the cgroup if it is empty, and frees the struct. NULL does nothing. */
void task_cgroup_free(struct task_cgroup *task_cgroup);

#endif
