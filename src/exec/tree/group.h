/*
 * What a task leaves behind: the processes of its process group, and of its session. The ids of
 * both are the leader's, and cannot pass to another process while the leader has not been reaped or
 * any member lives. Orphans are children of this process, which alone reaps them: so neither can
 * theirs.
 */
#ifndef LEAT_EXEC_TREE_GROUP_H
#define LEAT_EXEC_TREE_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* To every process of the group, or to the leader alone while it has no group yet. Only before the
 * leader is reaped. A process that cannot be signalled is not a failure here: its end is seen. */
void group_signal(pid_t leader, int signal);

/* What a leader has left that lives, as far as the children of this process tell: see
 * exec/attempt/orphan_scan.h.
 */
enum group_left {
    GROUP_UNKNOWN, /* nobody has looked since it died */
    GROUP_NOTHING, /* for good: nothing can come of nothing */
    GROUP_MEMBERS, /* processes of its group that were killed, and are not dead yet */
    GROUP_STRAYS,  /* perhaps more than that */
};

/* How orphans are told from others, and whether there may be any. */
struct group_orphans {
    uint64_t mark; /* see exec/tree/env_tag.h; 0: they cannot be */
    /* By this process, no orphan, and not reaped yet. */
    bool (*is_started)(void *context, pid_t pid);
    /* Both NULL: nobody knows. left: never GROUP_UNKNOWN; the leader has not been reaped.
     * left_by_now: for those who ask again, so that an earlier answer will do. */
    enum group_left (*left)(void *context, pid_t leader);
    enum group_left (*left_by_now)(void *context, pid_t leader);
    void *context;
};

/* SIGKILL to processes that left the group: those of the session; and orphans that came to this
 * process as children, if their environment is still that of the task's attempt.
 * Returns whether there were any, which then may take a moment to die. Reads all of /proc, so only
 * where there may be some. Only before the leader is reaped. */
bool group_kill_strays(pid_t leader, const struct group_orphans *orphans);

/* Some of them are left that are no zombies; orphans among them are killed again, since one that
 * was just killed may have left them. Reads all of /proc. */
bool group_strays_are_alive(pid_t leader, const struct group_orphans *orphans);

/* One of the group, its session or the orphans that is no zombie; 0: there is none. Likewise. */
pid_t group_survivor(pid_t leader, const struct group_orphans *orphans);

/* Nothing of the group is left, not even zombies. One system call. */
bool group_is_empty(pid_t leader);

/* Something of the group may be left that is no zombie; once the leader is reaped. Reads all of
 * /proc where the answer is not known without. */
bool group_is_alive(pid_t leader, const struct group_orphans *orphans);

#endif
