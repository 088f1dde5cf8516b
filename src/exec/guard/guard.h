/*
 * The guards, as the daemon has them: processes of leatd's own program (exec/guard/guard_process.h)
 * that hold the deadlines of running tasks in memory they share with it, and kill what passes its
 * deadline unrenewed, whatever has become of the daemon: stopped, swapped out, hung, crashed,
 * killed. When it is dead they kill all of its tasks at once.
 *
 * There are GUARD_COUNT of them, equal and independent, so that one is left where another and the
 * daemon are killed one after the other. Whoever kills all of them together leaves tasks alive that
 * nobody ends; the hold file then lacks its proof, and the leases are waited out.
 *
 * Without cgroups what a guard kills is the task's session: a descendant that has begun one of its
 * own escapes it.
 */
#ifndef LEAT_EXEC_GUARD_GUARD_H
#define LEAT_EXEC_GUARD_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "exec/guard/guard_entry.h"

struct guard;

/* For the worker of that name, copied. hold_fd is its hold file, open for appending and locked; -1:
 * none. It stays the caller's, but its lock lasts until guard_free and the guards' end, too. Starts
 * none yet. Returns NULL with errno. */
struct guard *guard_new(const char *queue, const char *consumer, int hold_fd);

/* Starts number index, in the place of one that was there. It does its work from GUARD_HEARD_READY
 * on. Returns 0, or -1 with errno. */
int guard_start(struct guard *guard, size_t index);

/* Becomes readable when there is something to hear of it; -1: there is none. */
int guard_socket(const struct guard *guard, size_t index);

enum guard_heard {
    GUARD_HEARD_NOTHING,
    GUARD_HEARD_READY,
    GUARD_HEARD_DEAD, /* also where there is none */
};
enum guard_heard guard_hear(struct guard *guard, size_t index);

/* From time to time while something is armed: ends one that has not looked since the last time, as
 * where it was stopped. */
void guard_check(struct guard *guard);

/* ---- the process in a place; the deadline is CLOCK_BOOTTIME, or GUARD_NEVER */

/* Before it is started. mark: see exec/tree/env_tag.h. The slot is for spawn. NULL: no such place.
 */
struct guard_entry *guard_arm(struct guard *guard, size_t slot_index, int64_t deadline_ns,
                              uint64_t mark);

/* The lease was renewed. Does nothing where it has been lost. */
void guard_renew(struct guard *guard, size_t slot_index, int64_t deadline_ns);

/* The daemon lives. What a leader had left by now is known by its session even where the daemon is
 * killed next, and whoever inherits the leader reaps it. Told with each place armed and renewed. */
void guard_tell_alive(struct guard *guard);

/* A guard has ended it, or will. */
bool guard_has_taken(const struct guard *guard, size_t slot_index);

/* Its leader is reaped next. */
void guard_reaps(struct guard *guard, size_t slot_index);

/* Nothing is left of it. */
void guard_disarm(struct guard *guard, size_t slot_index);

/* The cgroup that the processes of this place are in: its cgroup.kill, open for writing, and its
 * cgroup.events, for reading. Copies of both are kept, for guards that are started later, too; -1,
 * -1: none any more. mark is another than the one before, to be asked for with guard_cgroup_mark
 * (0: none). To be called while nothing runs there. Returns 0, or -1 with errno: the place then has
 * none, or a guard could not be told, which is ended. */
int guard_set_cgroup(struct guard *guard, size_t slot_index, int kill_fd, int events_fd,
                     int64_t mark);
int64_t guard_cgroup_mark(const struct guard *guard, size_t slot_index);

/* ---- the end */

/* Something is armed. */
bool guard_is_needed(const struct guard *guard);

/* One of them is that process. */
bool guard_is(const struct guard *guard, pid_t pid);

/* The process of number index, or 0. */
pid_t guard_pid(const struct guard *guard, size_t index);

/* Nothing is armed, and nobody is to be told of a death: the guards exit. Waits for that, but not
 * for long. */
void guard_leave(struct guard *guard);

/* Guards that were not told to leave take this for the daemon's death. NULL does nothing. */
void guard_free(struct guard *guard);

#endif
