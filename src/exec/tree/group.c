/*
 * Searches /proc for the processes of a group, its session and its orphans.
 */
#include "exec/tree/group.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

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

/* Returns the number of living processes for which `act` returns true, and sets *last to one of
 * them. If some processes could not be read, one more is counted, since they may be among those. */
static size_t count_processes(bool (*act)(const struct proc *process, const struct search *search),
                              const struct search *search, pid_t *last)
{
    struct proc_walk walk;
    struct proc process;
    size_t count = 0;
    if (proc_walk_open(&walk)) {
        return walk.partial;
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

/* Returns true for an orphan of the attempt that has become a child of this process. An orphan
 * shows no environment while it executes a program; or while it exits, and its children are not yet
 * those of this process. */
static bool is_orphan(const struct proc *process, const struct search *search)
{
    const struct group_orphans *orphans = search->orphans;
    if (process->parent != search->self || process->pid == search->leader || !orphans->tag ||
        orphans->is_started(orphans->context, process->pid)) {
        return false;
    }
    uint64_t tag = env_tag_read(process->pid);
    *search->doubtful = *search->doubtful || tag == ENV_TAG_BLANK;
    return tag == orphans->tag;
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
    const struct search search = {.leader = leader};
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
