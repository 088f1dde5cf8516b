/*
 * All that a task's process has started, as far as it can be reached: with a cgroup everything,
 * whatever it has become; without one the process group, the session, and of what has left both
 * that which came to this process as a child (see family_adopt) and still has the task's
 * environment.
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
    struct task_cgroup *task_cgroup; /* not owned; NULL: it has no cgroup */
    struct group_orphans orphans;
    enum group_left left; /* by looks at this process's children, which note it here */
    bool strays;          /* some that had left the group were killed */
    bool empty;           /* nothing of it is left; stays so */
};

/* Orphans of tasks become children of this process, instead of process 1's. */
int process_tree_adopt(void);

/* The orphans' context is not owned. */
void process_tree_begin(struct process_tree *tree, pid_t leader, struct task_cgroup *task_cgroup,
                        const struct group_orphans *orphans);

/* TERM to the process group; what of it is stopped is woken to hear it. Only before the leader is
 * reaped, as the next two. */
void process_tree_term(const struct process_tree *tree);

/* KILL to all of it but what without a cgroup is only found by a search. */
void process_tree_kill(struct process_tree *tree);

/* KILL to what has left the process group: reads all of /proc where there is no cgroup. */
void process_tree_kill_strays(struct process_tree *tree);

/* A KILL has ended it, or others may have killed its cgroup: that is not used again, see
 * cell_kill. */
void process_tree_was_killed(struct process_tree *tree);

/* KILL once more to what has not ended; is_led: its leader is not reaped yet. */
void process_tree_kill_again(struct process_tree *tree, bool is_led);

/* A process of it that has not ended; 0: none is found. */
pid_t process_tree_survivor(const struct process_tree *tree, bool is_led);

/* Nothing of it is left. closely: zombies do not count either, which takes a look at all of /proc
 * where there is no cgroup. */
bool process_tree_is_gone(struct process_tree *tree, bool closely);

/* What it has used beyond what its exit told; once it is gone. */
void process_tree_usage(struct process_tree *tree, struct usage *usage);

#endif
