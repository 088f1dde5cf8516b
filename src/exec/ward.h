/*
 * A child's process under guard (exec/guard.h), from before its start until nothing of it is left.
 * Nothing is done where its host has no guard.
 */
#ifndef LEAT_EXEC_WARD_H
#define LEAT_EXEC_WARD_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/child.h"

/* What its processes are known by, see exec/mark.h. 0: a batch, and what is no worker's task,
 * cannot be. */
uint64_t ward_mark(const struct child *child);

/* Before the start, in the cell or without (NULL). For spawn; NULL: there is no guard. The daemon
 * waits for the child to execute: a guard ends one that does not in time, well before the lease.
 * ward_renew is to follow the start. */
struct guard_slot *ward_arm(struct child *child, const struct cell *cell);

/* It has started, or leases of its attempts may have been renewed. */
void ward_renew(struct child *child);

/* Its leader is reaped next. */
void ward_reaps(struct child *child);

/* A guard has ended it, or will. */
bool ward_is_taken(const struct child *child);

/* The process is gone, or none came to be. */
void ward_release(struct child *child);

#endif
