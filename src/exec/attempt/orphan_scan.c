/*
 * Scans the children of this process for orphans of tasks.
 */
#include "exec/attempt/orphan_scan.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/proc.h"
#include "base/process/proc_tree.h"
#include "exec/attempt/child_state.h"
#include "exec/attempt/child_table.h"
#include "exec/guard/guard.h"

/* A scan that is not needed at once waits this many times as long as the last one took. */
enum { REST = 4 };

/* The state of a scan in progress. */
struct progress {
    struct orphan_scan *orphan_scan;
    pid_t leader;    /* the zombie on whose behalf it is done, which is not reaped here */
    pid_t dead[256]; /* orphans to reap */
    size_t dead_count;
};

static bool is_started(void *context, pid_t pid)
{
    const struct orphan_scan *orphan_scan = context;
    return child_table_find(orphan_scan->running, pid) ||
           (orphan_scan->guard && guard_is(orphan_scan->guard, pid));
}

/* Returns true if that child of this process is dead, with all its threads. */
static bool is_zombie(pid_t child)
{
    siginfo_t exit = {0};
    return waitid(P_PID, (id_t)child, &exit, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           exit.si_pid == child;
}

/* Calls visit for each child of the process's first thread until it returns true. Returns true if
 * it did, or if the kernel does not list children. Also finds children that arrive meanwhile. */
static bool any_child(pid_t pid, bool (*visit)(struct progress *progress, pid_t child),
                      struct progress *progress)
{
    struct proc_children children;
    pid_t child = 0;
    bool found = false;
    if (proc_children_open(&children, pid, pid)) {
        return true;
    }
    while (!found && (child = proc_children_next(&children)) > 0) {
        found = visit(progress, child);
    }
    proc_children_close(&children);
    return found || child < 0;
}

static bool is_any(struct progress *progress, pid_t child)
{
    (void)progress;
    (void)child;
    return true;
}

/* Returns GROUP_MEMBERS for an orphan that was killed with its group and has no children, so that
 * it leaves nothing; otherwise GROUP_STRAYS. */
static enum group_left what_is(const struct proc *orphan, pid_t leader)
{
    bool leaves =
        orphan->group != leader || orphan->threads > 1 || any_child(orphan->pid, is_any, NULL);
    return leaves ? GROUP_STRAYS : GROUP_MEMBERS;
}

/* Notes a living orphan with the leader of its session. Returns true if that leader is unknown. */
static bool note_alive(const struct orphan_scan *orphan_scan, const struct proc *orphan)
{
    struct child *child = child_table_find(orphan_scan->running, orphan->session);
    child = child ? child : child_table_find(orphan_scan->settling, orphan->session);
    if (child && (child->tree.left == GROUP_NOTHING || child->tree.left == GROUP_MEMBERS)) {
        child->tree.left = what_is(orphan, child->pid);
    }
    return !child && (!orphan_scan->guard || !guard_is(orphan_scan->guard, orphan->session));
}

/* Handles one child. Returns true if it counts for all leaders: the scan then need not read on. */
static bool note(struct progress *progress, pid_t child)
{
    struct proc proc;
    if (child == progress->leader || is_started(progress->orphan_scan, child)) {
        return false;
    }
    if (!is_zombie(child)) {
        return !proc_read(child, &proc) || note_alive(progress->orphan_scan, &proc);
    }
    if (progress->dead_count < sizeof progress->dead / sizeof *progress->dead) {
        progress->dead[progress->dead_count++] = child;
    }
    return false;
}

/* Finds the leaders that are dead now, and kills their groups. The scan's results count for these.
 */
static void begin(const struct orphan_scan *orphan_scan)
{
    struct child *child = NULL;
    while ((child = child_table_next(orphan_scan->settling, child))) {
        child->tree.left = GROUP_NOTHING;
    }
    while ((child = child_table_next(orphan_scan->running, child))) {
        enum group_left *left = &child->tree.left;
        if ((*left == GROUP_UNKNOWN || *left == GROUP_STRAYS) && !child->tree.task_cgroup &&
            is_zombie(child->pid)) {
            group_signal(child->pid, SIGKILL);
            *left = GROUP_NOTHING;
        }
    }
}

/* Withdraws all results, also those of earlier scans. */
static void doubt_all(const struct child_table *children)
{
    struct child *child = NULL;
    while ((child = child_table_next(children, child))) {
        if (child->tree.left != GROUP_UNKNOWN) {
            child->tree.left = GROUP_STRAYS;
        }
    }
}

static void scan_now(struct orphan_scan *orphan_scan, pid_t leader)
{
    int64_t begun_ns = clock_boot_ns();
    struct progress progress;
    progress.orphan_scan = orphan_scan;
    progress.leader = leader;
    progress.dead_count = 0;
    begin(orphan_scan);
    if (any_child(getpid(), note, &progress)) {
        doubt_all(orphan_scan->running);
        doubt_all(orphan_scan->settling);
    }

    /* reap dead orphans, or the next scan would meet them again. This comes last, since the kernel
     * may skip children when its list changes while it is read */
    for (size_t i = 0; i < progress.dead_count; i++) {
        (void)waitpid(progress.dead[i], NULL, WNOHANG); /* a zombie: does not fail */
    }
    orphan_scan->ended_ns = clock_boot_ns();
    orphan_scan->took_ns = orphan_scan->ended_ns - begun_ns;
}

/* Returns the child whose leader has died; or NULL if this process is no subreaper, so that nothing
 * can be known of what the leader has left. */
static struct child *find(const struct orphan_scan *orphan_scan, pid_t leader)
{
    int adopts = 0;
    return prctl(PR_GET_CHILD_SUBREAPER, &adopts) == 0 && adopts
               ? child_table_find(orphan_scan->settling, leader)
               : NULL;
}

static enum group_left left(void *context, pid_t leader, bool now)
{
    struct orphan_scan *orphan_scan = context;
    const struct child *child = find(orphan_scan, leader);
    if (!child) {
        return GROUP_STRAYS;
    }
    enum group_left known = child->tree.left;
    bool rests = clock_boot_ns() - orphan_scan->ended_ns < REST * orphan_scan->took_ns;
    if (!now && known != GROUP_NOTHING && rests) {
        return GROUP_UNKNOWN;
    }
    if (now ? known == GROUP_UNKNOWN || known == GROUP_STRAYS : known != GROUP_NOTHING) {
        scan_now(orphan_scan, leader);
    }
    return child->tree.left;
}

struct group_orphans orphan_scan_orphans(struct orphan_scan *orphan_scan)
{
    return (struct group_orphans){.is_started = is_started, .left = left, .context = orphan_scan};
}
