/*
 * Puts a child's process under guard (exec/guard/guard.h), from before its start until nothing of
 * it is left. Without a guard these functions do nothing.
 */
#ifndef LEAT_EXEC_ATTEMPT_CHILD_GUARD_H
#define LEAT_EXEC_ATTEMPT_CHILD_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/attempt/child_state.h"

/* Returns the environment tag of its processes (exec/tree/env_tag.h). It is 0 for a batch, and for
 * a program that is no task. */
uint64_t child_guard_tag(const struct child *child);

/* Arms the entry before a start. task_cgroup is NULL without a cgroup. While the child starts, the
 * daemon waits for it and cannot renew leases, so the deadline of the start is well before the end
 * of the lease; after the start, child_guard_renew has to be called. Returns the entry for spawn,
 * or NULL without a guard. */
struct guard_entry *child_guard_arm(struct child *child, const struct task_cgroup *task_cgroup);

/* Sets the deadline after the start, and after renewals. */
void child_guard_renew(struct child *child);

/* Notes that the leader is reaped next. */
void child_guard_reaps(struct child *child);

/* Returns true if a guard has killed it or is about to. */
bool child_guard_is_taken(const struct child *child);

/* Disarms the entry: the process is gone, or was not started. */
void child_guard_release(struct child *child);

#endif
