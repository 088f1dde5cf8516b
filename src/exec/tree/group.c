/*
 * Searches /proc for the processes of a group, its session and its orphans.
 */
#include "exec/tree/group.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/process/descriptor.h"
#include "base/process/proc.h"
#include "base/process/proc_tree.h"
#include "exec/tree/env_tag.h"

void group_signal(pid_t leader, int signal)
{
    if (kill(-leader, signal) < 0 && errno == ESRCH) {
        (void)kill(leader, signal); /* fails if it has exited in between */
    }
}

bool group_is_empty(pid_t leader)
{
    return kill(-leader, 0) < 0 && errno == ESRCH;
}

/* The attempt whose processes are searched for. */
struct search {
    pid_t leader, self;
    const struct group_orphans *orphans;
    bool *doubtful; /* set if there is an orphan without an environment */
};

/* Handles a process, see count_processes. */
typedef bool act_on(const struct proc *process, const struct search *search);

/* Returns the tag of an orphan that has become a child of this process; 0: it is no orphan. */
static uint64_t orphan_tag(const struct proc *process, const struct search *search)
{
    const struct group_orphans *orphans = search->orphans;
    if (process->parent != search->self || process->pid == search->leader || !orphans->tag ||
        orphans->is_started(orphans->context, process->pid)) {
        return 0;
    }
    return env_tag_read(process->pid);
}

/* Kills processes of the attempt below an orphan that shows no environment. If that exits, which
 * may take long if it has much memory, they become children of this process only afterwards.
 * Returns whether there were any. */
static bool kill_below(pid_t orphan, const struct search *search)
{
    struct proc_tree tree;
    struct proc process;
    bool any = false;
    proc_tree_begin(&tree, orphan);
    while (proc_tree_next(&tree, &process)) {
        int fd = proc_open(process.pid); /* its pid may be reused, since others reap it */
        if (proc_is_alive(&process) && env_tag_read(process.pid) == search->orphans->tag &&
            proc_is_there(fd)) {
            proc_send(fd, process.pid, SIGKILL);
            any = true;
        }
        descriptor_close(&fd);
    }
    return any;
}

/* As count_processes, for the children of this process. A walk may miss a process that was forked
 * only now, by one that has ended since. The list of children does not miss it: this process reaps
 * none meanwhile, and whatever becomes its child is added at the end. */
static size_t count_children(act_on *act, const struct search *search, pid_t *last)
{
    struct proc_children children;
    struct proc process;
    pid_t child;
    size_t count = 0;
    if (proc_children_open(&children, search->self, search->self)) {
        return 0;
    }
    while ((child = proc_children_next(&children)) > 0) {
        if (proc_read(child, &process) && proc_is_alive(&process) &&
            (act(&process, search) ||
             (orphan_tag(&process, search) == ENV_TAG_BLANK && kill_below(child, search)))) {
            *last = child;
            count++;
        }
    }
    proc_children_close(&children);
    return count;
}

/* Returns the number of living processes for which `act` returns true, and sets *last to one of
 * them. If some processes could not be read, one more is counted, since they may be among those. */
static size_t count_processes(act_on *act, const struct search *search, pid_t *last)
{
    struct proc_walk walk;
    struct proc process;
    size_t count = count_children(act, search, last);
    if (proc_walk_open(&walk)) {
        return count + walk.partial;
    }
    while (proc_walk_next(&walk, &process)) {
        if (proc_is_alive(&process) && act(&process, search)) {
            *last = process.pid;
            count++;
        }
    }
    proc_walk_close(&walk);
    return count + walk.partial;
}

static bool is_member(const struct proc *process, const struct search *search)
{
    return process->group == search->leader;
}

/* Returns true for an orphan of the attempt. An orphan shows no environment while it executes a
 * program; or while it exits, and its children are not yet those of this process. */
static bool is_orphan(const struct proc *process, const struct search *search)
{
    uint64_t tag = orphan_tag(process, search);
    *search->doubtful = *search->doubtful || tag == ENV_TAG_BLANK;
    return tag != 0 && tag == search->orphans->tag;
}

static bool kill_stray(const struct proc *process, const struct search *search)
{
    bool stray = process->session == search->leader && process->group != search->leader;
    return (stray || is_orphan(process, search)) && kill(process->pid, SIGKILL) == 0;
}

static bool is_left(const struct proc *process, const struct search *search)
{
    if (is_orphan(process, search)) {
        (void)kill(process->pid, SIGKILL); /* the next look shows whether it died */
        return true;
    }
    return process->session == search->leader;
}

static enum group_left left_of(pid_t leader, const struct group_orphans *orphans, bool now)
{
    return orphans->left ? orphans->left(orphans->context, leader, now) : GROUP_STRAYS;
}

bool group_is_alive(pid_t leader, const struct group_orphans *orphans)
{
    const struct search search = {.leader = leader, .orphans = orphans};
    pid_t last;
    enum group_left left = left_of(leader, orphans, false);
    return left == GROUP_STRAYS ? count_processes(is_member, &search, &last) > 0
                                : left != GROUP_NOTHING;
}

/* Kills strays among the descendants of this process. A walk through /proc may take longer than the
 * lease allows; it comes afterwards, and finds those that this has missed. Returns whether there
 * were any. */
static bool kill_descendants(const struct search *search)
{
    struct proc_tree tree;
    struct proc process;
    bool any = false;
    proc_tree_begin(&tree, search->self);
    while (proc_tree_next(&tree, &process)) {
        any = (proc_is_alive(&process) && kill_stray(&process, search)) || any;
    }
    return any;
}

bool group_kill_strays(pid_t leader, const struct group_orphans *orphans)
{
    /* A process that was killed may have forked just before, so this is repeated a few times. A
     * process that is still dying is killed once more, which does no harm. */
    enum { MOST = 4 };
    bool any = false;
    const struct search search = {leader, getpid(), orphans, &any};
    int rounds = 0;
    pid_t last;
    if (left_of(leader, orphans, true) == GROUP_STRAYS) {
        any = kill_descendants(&search) || any;
        while (rounds < MOST && count_processes(kill_stray, &search, &last) > 0) {
            rounds++;
        }
    }
    return any || rounds > 0;
}

bool group_strays_are_alive(pid_t leader, const struct group_orphans *orphans, bool *doubtful)
{
    const struct search search = {leader, getpid(), orphans, doubtful};
    pid_t last;
    *doubtful = false;
    return count_processes(is_left, &search, &last) > 0;
}

pid_t group_survivor(pid_t leader, const struct group_orphans *orphans)
{
    bool doubtful = false;
    const struct search search = {leader, getpid(), orphans, &doubtful};
    pid_t last = 0;
    (void)count_processes(is_left, &search, &last);
    return last;
}
