/*
 * How a guard kills: every process of a place's task, again and again until none is left. That is
 * the cgroup of the place where it has one, and in any case every process of the session that the
 * task began; without a cgroup also what has left the session and is known by its environment
 * (exec/tree/env_tag.h), which nobody has but descendants of that attempt.
 *
 * Never a wrong process, whatever numbers are used again meanwhile:
 * - The leader's number is its own as long as the daemon has not said that it reaps it
 *   (guard_slot_ends), and after the daemon's death as long as the process with that number is not
 *   younger than the child's own word in the slot.
 * - The session's number cannot pass to another process while the leader is not reaped, or any of
 *   its members lives. So a process with that session is of the task if the leader was there after
 *   the session had been read, or if it is older than the last moment at which the number was known
 *   to be the task's (the daemon tells it, too, while it lives), or if its environment says so
 *   (exec/tree/env_tag.h): whoever inherits the leader of a dead daemon may reap it before a guard
 * has looked.
 * - A signal goes through a pidfd that was opened before these questions were asked; the group's
 *   likewise where the kernel can (Linux 6.9). Before that it is kill(2) right after the leader was
 *   seen: the number would have to come round within that moment.
 * - What cannot be proved to be the task's is not killed, and not taken for dead either: guard_kill
 *   goes on telling that something is left.
 */
#ifndef LEAT_EXEC_GUARD_GUARD_KILL_H
#define LEAT_EXEC_GUARD_GUARD_KILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/guard/guard_entry.h"

/* So many places are in use: what they and as many more need stands in memory from now on. */
void guard_kill_reserve(const struct guard_shared *shared, size_t slot_indexes);

/* From now on the process that has that word in its slot is to be killed. False: it is already. */
bool guard_kill_add(size_t slot_index, uint64_t word);

/* The place has a cgroup: what kills it (cgroup.kill, to be written to) and what tells that it is
 * empty (cgroup.events). Takes both; -1: none any more. */
void guard_kill_set_cgroup(size_t slot_index, int kill_fd, int events_fd);

/* The daemon is dead, and that was its worker's mark (exec/tree/env_tag.h). */
void guard_kill_orphans(uint64_t worker);

enum guard_left {
    GUARD_LEFT_NONE,     /* all are dead that are to be killed */
    GUARD_LEFT_DOUBTFUL, /* what is left may be others' processes */
    GUARD_LEFT_LIVING,
};

/* One round. Places whose slot has passed on are forgotten. */
enum guard_left guard_kill_round(const struct guard_shared *shared);

#endif
