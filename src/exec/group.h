/*
 * What a task leaves behind: the processes of its process group, and of its session. The ids of
 * both are the leader's, and cannot pass to another process while the leader has not been reaped or
 * any member lives. Orphans are children of this process, which alone reaps them: so neither can
 * theirs.
 */
#ifndef LEAT_EXEC_GROUP_H
#define LEAT_EXEC_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* To every process of the group, or to the leader alone while it has no group yet. Only before the
 * leader is reaped. A process that cannot be signalled is not a failure here: its end is seen. */
void group_signal(pid_t leader, int signal);

/* How orphans are told from others. */
struct group_orphans {
    uint64_t mark; /* see exec/mark.h; 0: they cannot be */
    bool (*is_started)(const void *context,
                       pid_t pid); /* by this process, no orphan, and not reaped yet */
    bool (*is_session)(const void *context, pid_t session); /* of a task that is not over yet */
    const void *context;
};

/* SIGKILL to processes that left the group: those of the session; and orphans that came to this
 * process as children, if their environment is still that of the task's attempt.
 * Returns whether there were any, which then may take a moment to die. Reads all of /proc, so only
 * where there may be some: not if all children of this process are known, or dead, to which all
 * come that the leader leaves. Only before the leader is reaped. */
bool group_kill_strays(pid_t leader, const struct group_orphans *orphans);

/* Some of them are left that are no zombies; orphans among them are killed again, since one that
 * was just killed may have left them. Reads all of /proc. */
bool group_strays_are_alive(pid_t leader, const struct group_orphans *orphans);

/* Nothing of the group is left, not even zombies. One system call. */
bool group_is_empty(pid_t leader);

/* Something of the group is left that is no zombie; once the leader is reaped. Reads all of /proc
 * where there may be some: see group_kill_strays. */
bool group_is_alive(pid_t leader, const struct group_orphans *orphans);

#endif
