/*
 * The daemon's side of the guards. A guard is a process of leatd's own program
 * (exec/guard/guard_process.h). It reads the deadlines of running tasks from memory that it shares
 * with the daemon, and kills each task whose deadline passes without a renewal, whatever has become
 * of the daemon: stopped, swapped out, hung, crashed or killed. When the daemon is dead, the guards
 * kill all of its tasks at once.
 *
 * There are GUARD_COUNT guards, equal and independent: if one guard and then the daemon are killed,
 * another guard is left. If somebody kills all of them together, tasks may survive. The worker's
 * lock file then lacks its proof of death, and other workers wait until the leases expire.
 *
 * Without cgroups a guard kills the task's session. A descendant that has begun a session of its
 * own may escape it.
 */
#ifndef LEAT_EXEC_GUARD_GUARD_H
#define LEAT_EXEC_GUARD_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "exec/guard/guard_entry.h"

struct guard;

/* Makes the guards of the worker `consumer` without starting any. Copies both names. lock_fd is the
 * worker's lock file, open for appending and locked, or -1 for none. The caller still owns lock_fd,
 * but its lock lasts until guard_free is called and all guards have ended. Returns NULL with errno.
 */
struct guard *guard_new(const char *queue, const char *consumer, int lock_fd);

/* Starts guard number index, and replaces the one that had this number. The guard works once
 * guard_hear has returned GUARD_HEARD_READY. Returns 0, or -1 with errno. */
int guard_start(struct guard *guard, size_t index);

/* Returns the socket that becomes readable when guard_hear has news, or -1 without such a guard. */
int guard_socket(const struct guard *guard, size_t index);

enum guard_heard {
    GUARD_HEARD_NOTHING,
    GUARD_HEARD_READY,
    GUARD_HEARD_DEAD, /* also if it was never started */
};
enum guard_heard guard_hear(struct guard *guard, size_t index);

/* Returns the errno with which a guard that is ready has failed to bound itself by its filter
 * (exec/guard/guard_filter.h), or 0. */
int guard_filter_error(const struct guard *guard, size_t index);

/* Kills each guard that has not looked at the deadlines since the last check, for instance because
 * somebody has stopped it. The caller checks regularly while any entry is armed. */
void guard_check(struct guard *guard);

/* ---- one process, named by its slot index; deadlines are CLOCK_BOOTTIME, or GUARD_NEVER */

/* Arms the entry of a process that is started next. tag is its environment tag
 * (exec/tree/env_tag.h). Returns the entry for spawn, or NULL if the index is too large. */
struct guard_entry *guard_arm(struct guard *guard, size_t slot_index, int64_t deadline_ns,
                              uint64_t tag);

/* Moves the deadline to a later time after a renewal. Does nothing if a guard has already taken the
 * entry. */
void guard_renew(struct guard *guard, size_t slot_index, int64_t deadline_ns);

/* The same, but the deadline may also move to an earlier time: wakes guards that sleep for longer.
 */
void guard_hasten(struct guard *guard, size_t slot_index, int64_t deadline_ns);

/* Notes that the daemon lives now. If the daemon is killed next, guards can still attribute a
 * process older than this moment to its session, even after somebody else has reaped the leader.
 * guard_arm and guard_renew do it too. */
void guard_tell_alive(struct guard *guard);

/* Returns true if a guard has killed the process or is about to. */
bool guard_has_taken(const struct guard *guard, size_t slot_index);

/* Notes that the daemon reaps the leader next. */
void guard_reaps(struct guard *guard, size_t slot_index);

/* Disarms the entry: nothing is left of the process. */
void guard_disarm(struct guard *guard, size_t slot_index);

/* Sets the cgroup of the processes with this index: its cgroup.kill, open for writing, and its
 * cgroup.events, open for reading. -1 and -1 mean that there is none any longer. Both are
 * duplicated, also for guards that are started later. version is never 0 and differs from the one
 * before. Nothing may run in the cgroup during the call. Returns 0, or -1 with errno: then either
 * no cgroup is set, or a guard did not take the message and was killed. */
int guard_set_cgroup(struct guard *guard, size_t slot_index, int kill_fd, int events_fd,
                     int64_t version);
/* Returns the version of the cgroup that was set last, or 0. */
int64_t guard_cgroup_version(const struct guard *guard, size_t slot_index);

/* ---- the end */

/* Returns true if any entry is armed. */
bool guard_is_needed(const struct guard *guard);

/* Returns true if pid is one of the guards. */
bool guard_is(const struct guard *guard, pid_t pid);

/* Returns the process id of guard number index, or 0. */
pid_t guard_pid(const struct guard *guard, size_t index);

/* Tells the guards to exit, and waits a short time for that. Nothing may be armed, and the guards
 * report no death. */
void guard_leave(struct guard *guard);

/* Frees it; NULL does nothing. Guards that were not told to leave take this for the daemon's death.
 */
void guard_free(struct guard *guard);

#endif
