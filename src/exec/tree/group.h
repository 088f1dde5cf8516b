/*
 * Finds and kills what a task leaves behind without a cgroup: the processes of its process group
 * and session, and orphans. Group and session have the leader's pid as their id, which is not
 * reused while the leader is not reaped or any member lives. Orphans of tasks become children of
 * this process. Only this process can reap them, so their pids are not reused either.
 */
#ifndef LEAT_EXEC_TREE_GROUP_H
#define LEAT_EXEC_TREE_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Signals every process of the group, or only the leader if it has no group yet. To be called
 * before the leader is reaped. Failures to signal are ignored: later checks show what still lives.
 */
void group_signal(pid_t leader, int signal);

/* Which living processes a dead leader has left. exec/attempt/orphan_scan.h finds that out from the
 * list of this process's children. */
enum group_left {
    GROUP_UNKNOWN, /* nobody has looked since the leader died */
    GROUP_NOTHING, /* none, and there cannot be any later */
    GROUP_MEMBERS, /* members of its group, which were killed and are not dead yet */
    GROUP_STRAYS,  /* possibly others too */
};

/* How to tell orphans of an attempt from other processes, and whether there may be any. */
struct group_orphans {
    uint64_t tag; /* see exec/tree/env_tag.h; 0: orphans cannot be recognized */
    /* Returns true if this process has started that one itself and not reaped it yet. */
    bool (*is_started)(void *context, pid_t pid);
    /* Says what the leader has left; NULL if nobody knows. With `now` it looks again, never returns
     * GROUP_UNKNOWN, and is called before the leader is reaped. Without, it may repeat an earlier
     * answer, for callers that ask again and again. */
    enum group_left (*left)(void *context, pid_t leader, bool now);
    void *context;
};

/* Kills processes that have left the group: those of the session, and orphans of this process that
 * have the attempt's tag. Returns true if there were any, which may take a moment to die, or if
 * there is an orphan without an environment, which may be one. Reads all of /proc if there may be
 * some. To be called before the leader is reaped. */
bool group_kill_strays(pid_t leader, const struct group_orphans *orphans);

/* Returns true if any of these processes is left and no zombie. Kills orphans again, since a
 * process that was just killed may have left new ones. Sets *doubtful if there is an orphan without
 * an environment: it may show one in a moment, or leave children. Reads all of /proc. */
bool group_strays_are_alive(pid_t leader, const struct group_orphans *orphans, bool *doubtful);

/* Returns a process of the group, the session or the orphans that is no zombie, or 0. Reads all of
 * /proc. */
pid_t group_survivor(pid_t leader, const struct group_orphans *orphans);

/* Returns true if nothing of the group is left, not even zombies. Takes one system call. */
bool group_is_empty(pid_t leader);

/* Returns true if a process of the group may be left that is no zombie. To be called after the
 * leader was reaped. Reads all of /proc if left_by_now does not know. */
bool group_is_alive(pid_t leader, const struct group_orphans *orphans);

#endif
