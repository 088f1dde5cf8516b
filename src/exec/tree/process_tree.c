/*
 * Signals and checks the processes of a task by its cgroup, or by its group and session.
 */
#include "exec/tree/process_tree.h"

#include <signal.h>
#include <sys/prctl.h>

enum { DOUBTS_MOST = 7 }; /* with the caller's pauses, a tenth of a second */

int process_tree_adopt(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void process_tree_begin(struct process_tree *tree, pid_t leader, struct task_cgroup *task_cgroup,
                        const struct group_orphans *orphans)
{
    *tree =
        (struct process_tree){.leader = leader, .task_cgroup = task_cgroup, .orphans = *orphans};
}

void process_tree_term(const struct process_tree *tree)
{
    group_signal(tree->leader, SIGTERM);
    group_signal(tree->leader, SIGCONT);
}

void process_tree_kill(struct process_tree *tree)
{
    group_signal(tree->leader, SIGKILL);
    tree->empty = tree->task_cgroup && task_cgroup_is_empty(tree->task_cgroup);
    if (tree->task_cgroup && !tree->empty) {
        task_cgroup_kill(tree->task_cgroup);
    }
}

void process_tree_kill_strays(struct process_tree *tree)
{
    if (!tree->task_cgroup) {
        tree->strays = group_kill_strays(tree->leader, &tree->orphans);
    }
}

void process_tree_kill_again(struct process_tree *tree, bool is_led)
{
    if (is_led) {
        process_tree_kill(tree);
        process_tree_kill_strays(tree);
    } else if (tree->task_cgroup) {
        /* without leader and cgroup no pid is certain to be the task's any longer */
        task_cgroup_kill(tree->task_cgroup);
    }
}

pid_t process_tree_survivor(const struct process_tree *tree, bool is_led)
{
    if (is_led) {
        return tree->leader;
    }
    return tree->task_cgroup ? task_cgroup_member(tree->task_cgroup)
                             : group_survivor(tree->leader, &tree->orphans);
}

void process_tree_was_killed(struct process_tree *tree)
{
    if (tree->task_cgroup) {
        task_cgroup_doubt(tree->task_cgroup);
    }
}

static bool is_gone(struct process_tree *tree, bool closely)
{
    if (tree->task_cgroup) {
        return task_cgroup_is_empty(tree->task_cgroup);
    }
    /* a stray that was killed may have left children that nobody has found yet */
    if (tree->strays) {
        bool doubtful;
        if (group_strays_are_alive(tree->leader, &tree->orphans, &doubtful)) {
            tree->doubts = 0;
            return false;
        }
        if (doubtful && tree->doubts++ < DOUBTS_MOST) {
            return false;
        }
    }
    return group_is_empty(tree->leader) ||
           (closely && !group_is_alive(tree->leader, &tree->orphans));
}

bool process_tree_is_gone(struct process_tree *tree, bool closely)
{
    tree->empty = tree->empty || is_gone(tree, closely);
    return tree->empty;
}

void process_tree_usage(struct process_tree *tree, struct usage *usage)
{
    if (tree->task_cgroup) {
        task_cgroup_usage(tree->task_cgroup, usage);
    }
}
