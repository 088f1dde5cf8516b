/*
 * What a task leaves behind: the processes of its process group, and of its session. The ids of
 * both are the leader's, and cannot pass to another process while the leader has not been reaped or
 * any member lives.
 */
#ifndef LEAT_EXEC_GROUP_H
#define LEAT_EXEC_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

/* To every process of the group, or to the leader alone while it has no group yet. Only before the
 * leader is reaped. A process that cannot be signalled is not a failure here: its end is seen. */
void group_signal(pid_t leader, int signal);

/* SIGKILL to processes of the session that left the group; returns whether there were any, which
 * then may take a moment to die. Reads all of /proc, so only where there may be some; only before
 * the leader is reaped. */
bool group_kill_session(pid_t leader);

/* Something of the session is left that is no zombie. Reads all of /proc. */
bool group_session_is_alive(pid_t leader);

/* Nothing of the group is left, not even zombies. One system call. */
bool group_is_empty(pid_t leader);

/* Something of the group is left that is no zombie. Reads all of /proc. */
bool group_is_alive(pid_t leader);

#endif
