/*
 * A child's process under guard (exec/guard/guard.h), from before its start until nothing of it is
 * left. Nothing is done where its host has no guard.
 */
#ifndef LEAT_EXEC_ATTEMPT_CHILD_GUARD_H
#define LEAT_EXEC_ATTEMPT_CHILD_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/attempt/child_state.h"

/* What its processes are known by, see exec/tree/env_tag.h. 0: a batch, and what is no worker's
 * task, cannot be. */
uint64_t child_guard_mark(const struct child *child);

/* Before the start, in the cell or without (NULL). For spawn; NULL: there is no guard. The daemon
 * waits for the child to execute: a guard ends one that does not in time, well before the lease.
 * ward_renew is to follow the start. */
struct guard_entry *child_guard_arm(struct child *child, const struct task_cgroup *task_cgroup);

/* It has started, or leases of its attempts may have been renewed. */
void child_guard_renew(struct child *child);

/* Its leader is reaped next. */
void child_guard_reaps(struct child *child);

/* A guard has ended it, or will. */
bool child_guard_is_taken(const struct child *child);

/* The process is gone, or none came to be. */
void child_guard_release(struct child *child);

#endif
