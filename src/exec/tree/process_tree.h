/*
 * All processes of a task, as far as leatd can find them. With a cgroup these are all. Without one
 * they are the process group, the session, and the orphans that have left both, have become
 * children of this process (see process_tree_adopt) and still have the attempt's environment tag.
 */
#ifndef LEAT_EXEC_TREE_PROCESS_TREE_H
#define LEAT_EXEC_TREE_PROCESS_TREE_H

#include <stdbool.h>
#include <sys/types.h>

#include "exec/cgroup/task_cgroup.h"
#include "exec/cgroup/usage.h"
#include "exec/tree/group.h"

struct process_tree {
    pid_t leader;
    struct task_cgroup *task_cgroup; /* not owned; NULL: no cgroup */
    struct group_orphans orphans;
    enum group_left left; /* set by exec/attempt/orphan_scan.h */
    bool strays;          /* there may be processes that had left the group */
    int doubts;           /* how many looks in a row found nothing certain */
    bool empty;           /* nothing is left, for good */
};

/* Makes this process a subreaper: orphans of tasks become its children instead of process 1's. */
int process_tree_adopt(void);

/* Begins the tree of a process that was just started. The orphans' context is not owned. */
void process_tree_begin(struct process_tree *tree, pid_t leader, struct task_cgroup *task_cgroup,
                        const struct group_orphans *orphans);

/* Sends TERM to the process group, and CONT, so that stopped processes receive it. This function
 * and the next two must be called before the leader is reaped. */
void process_tree_term(const struct process_tree *tree);

/* Kills all of its processes, except those that only a search of /proc finds without a cgroup. */
void process_tree_kill(struct process_tree *tree);

/* Kills processes that have left the process group. Without a cgroup it reads all of /proc; with
 * one it does nothing. */
void process_tree_kill_strays(struct process_tree *tree);

/* Notes that a KILL has ended the task, or that others may have killed its cgroup, which is then
 * not used again (see task_cgroup_kill). */
void process_tree_was_killed(struct process_tree *tree);

/* Kills again what has not died. is_led says that the leader is not reaped yet. */
void process_tree_kill_again(struct process_tree *tree, bool is_led);

/* Returns a process of it that has not died; 0: none was found. */
pid_t process_tree_survivor(const struct process_tree *tree, bool is_led);

/* Returns true if nothing of it is left. With `closely`, zombies do not count, and without a cgroup
 * all of /proc is read. To be called again with growing pauses while it is false. */
bool process_tree_is_gone(struct process_tree *tree, bool closely);

/* Adds the cgroup's accounting to *usage. To be called when the tree is gone. */
void process_tree_usage(struct process_tree *tree, struct usage *usage);

#endif
