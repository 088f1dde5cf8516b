/*
 * How a guard kills the processes of a task: in rounds, until none is left. A round kills the
 * task's cgroup, if it has one, and every process of the session that the task began. Without a
 * cgroup it also kills processes that have left the session and carry the attempt's environment tag
 * (exec/tree/env_tag.h), which only descendants of that attempt have.
 *
 * A round never kills a wrong process, even if pids are reused meanwhile:
 * - The leader's pid is its own until the daemon announces that it reaps the leader
 *   (guard_entry_ends). After the daemon's death it is its own if the process with this pid is not
 *   younger than the time that the child wrote into the entry.
 * - A session's number is not reused while its leader is not reaped or any member lives. So a
 * process with this session belongs to the task in each of three cases: the leader was still there
 * after the session had been read; the process is older than the last moment at which the number
 * was known to be the task's (the daemon notes such moments while it lives); or its environment tag
 *   says so. The last two are needed because whoever inherits the leader of a dead daemon may reap
 *   it before a guard looks.
 * - A signal goes through a pidfd that was opened before these checks. A signal to a group does too
 *   if the kernel can (Linux 6.9). On older kernels it is kill(2) right after the leader was seen:
 *   the pid would have to be reused within that moment.
 * - A process that cannot be proved to be the task's is neither killed nor taken for dead:
 *   guard_kill_round goes on reporting that something is left.
 */
#ifndef LEAT_EXEC_GUARD_GUARD_KILL_H
#define LEAT_EXEC_GUARD_GUARD_KILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/guard/guard_entry.h"

/* Brings the memory for twice as many entries as are used into RAM, so that killing never waits for
 * a disk. */
void guard_kill_reserve(const struct guard_shared *shared, size_t used);

/* Adds the process whose entry has that word to those to kill. Returns false if it was there. */
bool guard_kill_add(size_t slot_index, uint64_t word);

/* Sets the cgroup of an entry: its cgroup.kill, open for writing, and its cgroup.events. Takes
 * ownership of both; -1 means that there is none any longer. */
void guard_kill_set_cgroup(size_t slot_index, int kill_fd, int events_fd);

/* Notes that the daemon is dead. worker is the environment tag of its worker (exec/tree/env_tag.h).
 */
void guard_kill_orphans(uint64_t worker);

enum guard_left {
    GUARD_LEFT_NONE,     /* all processes to kill are dead */
    GUARD_LEFT_DOUBTFUL, /* processes are left, but they may belong to others */
    GUARD_LEFT_LIVING,
};

/* Kills among the descendants of the daemon only. To be called before the first round of a process:
 * the walk of a round through /proc may take longer than the rest of a lease. Proves nothing. */
void guard_kill_near(const struct guard_shared *shared);

/* Kills in one round. Forgets entries whose word has changed meanwhile. */
enum guard_left guard_kill_round(const struct guard_shared *shared);

#endif
