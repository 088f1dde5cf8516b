/*
 * One cgroup that is kept for the tasks of one place, which run in it one after the other.
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

/* Below the directory, named by the number; with these controllers (enum bounds_controller).
 * Returns NULL with errno. */
struct task_cgroup *task_cgroup_new(int directory, size_t number, unsigned controllers);

/* Makes it ready for the next task: clean, and with these bounds. Returns 0; or -1 with errno, and
 * the name of the file that was refused in *what. */
int task_cgroup_prepare(struct task_cgroup *task_cgroup, const struct bounds *bounds,
                        const char **what);

/* Its directory, for starting processes in it, and cgroup.kill; both are the cell's and stay while
 * nothing but cell_prepare is called. */
int task_cgroup_directory(const struct task_cgroup *task_cgroup);
int task_cgroup_kill_fd(const struct task_cgroup *task_cgroup);

/* Likewise cgroup.events, and a number that another group of this cell does not have. */
int task_cgroup_events_fd(const struct task_cgroup *task_cgroup);
int64_t task_cgroup_mark(const struct task_cgroup *task_cgroup);

/* Something was wrong with it, or somebody else may have killed it: the next task gets another. */
void task_cgroup_doubt(struct task_cgroup *task_cgroup);

/* KILL to every process in it, whatever it has become. */
void task_cgroup_kill(struct task_cgroup *task_cgroup);

/* No process is left in it; zombies do not count. One system call. */
bool task_cgroup_is_empty(struct task_cgroup *task_cgroup);

/* A process that is in it; 0: none, or only in a group below. */
pid_t task_cgroup_member(const struct task_cgroup *task_cgroup);

/* What the last task has used, once it is empty: sets what the kernel tells here. */
void task_cgroup_usage(struct task_cgroup *task_cgroup, struct usage *usage);

/* Removes the group, as far as it is empty. NULL does nothing. */
void task_cgroup_free(struct task_cgroup *task_cgroup);

#endif
