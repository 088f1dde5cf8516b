#include "exec/attempt/orphan_scan.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/proc.h"
#include "exec/attempt/child_state.h"
#include "exec/attempt/child_table.h"
#include "exec/guard/guard.h"

/* A look that is not needed at once waits so many times as long as the last one took. */
enum { REST = 4 };

/* While one is taken. */
struct taking {
    struct orphan_scan *orphan_scan;
    pid_t leader;    /* on whose behalf: a zombie that is not reaped here */
    pid_t dead[256]; /* orphans */
    size_t dead_count;
};

static bool is_started(void *context, pid_t pid)
{
    const struct orphan_scan *orphan_scan = context;
    return child_table_find(orphan_scan->running, pid) ||
           (orphan_scan->guard && guard_is(orphan_scan->guard, pid));
}

/* A child of this process that has ended with all its threads. */
static bool is_zombie(pid_t child)
{
    siginfo_t exit = {0};
    return waitid(P_PID, (id_t)child, &exit, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           exit.si_pid == child;
}

/* Calls visit with each child of the process's first thread until one answers true. Returns whether
 * one did, or true where the kernel does not list them. Finds those, too, that come meanwhile. */
static bool any_child(pid_t pid, bool (*visit)(struct taking *taking, pid_t child),
                      struct taking *taking)
{
    char path[64], bytes[4096];
    bool found = false;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid); /* fits */
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : 0;
    for (pid_t child = 0; !found && size >= 0;) {
        size = read(fd, bytes, sizeof bytes);
        for (ssize_t i = 0; !found && i < size; i++) {
            if (bytes[i] >= '0' && bytes[i] <= '9') {
                child = child * 10 + (bytes[i] - '0');
            } else {
                found = visit(taking, child);
                child = 0;
            }
        }
        if (size == 0) {
            break;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return found || size < 0;
}

static bool is_any(struct taking *taking, pid_t child)
{
    (void)taking;
    (void)child;
    return true;
}

/* What was killed with its group and has no children leaves nothing. */
static enum group_left what_is(const struct proc *orphan, pid_t leader)
{
    bool leaves =
        orphan->group != leader || orphan->threads > 1 || any_child(orphan->pid, is_any, NULL);
    return leaves ? GROUP_STRAYS : GROUP_MEMBERS;
}

/* Returns whether nobody knows who has left it. */
static bool note_alive(const struct orphan_scan *orphan_scan, const struct proc *orphan)
{
    struct child *child = child_table_find(orphan_scan->running, orphan->session);
    child = child ? child : child_table_find(orphan_scan->settling, orphan->session);
    if (child && (child->tree.left == GROUP_NOTHING || child->tree.left == GROUP_MEMBERS)) {
        child->tree.left = what_is(orphan, child->pid);
    }
    return !child && (!orphan_scan->guard || !guard_is(orphan_scan->guard, orphan->session));
}

/* True where it counts for all, so that no more need be read, however many come meanwhile. */
static bool note(struct taking *taking, pid_t child)
{
    struct proc proc;
    if (child == taking->leader || is_started(taking->orphan_scan, child)) {
        return false;
    }
    if (!is_zombie(child)) {
        return !proc_read(child, &proc) || note_alive(taking->orphan_scan, &proc);
    }
    if (taking->dead_count < sizeof taking->dead / sizeof *taking->dead) {
        taking->dead[taking->dead_count++] = child;
    }
    return false;
}

/* What is found of those that are dead now is noted from here on. */
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

/* What earlier looks have answered too: those are taken once more. */
static void doubt_all(const struct child_table *children)
{
    struct child *child = NULL;
    while ((child = child_table_next(children, child))) {
        if (child->tree.left != GROUP_UNKNOWN) {
            child->tree.left = GROUP_STRAYS;
        }
    }
}

static void take(struct orphan_scan *orphan_scan, pid_t leader)
{
    int64_t begun_ns = clock_boot_ns();
    struct taking taking;
    taking.orphan_scan = orphan_scan;
    taking.leader = leader;
    taking.dead_count = 0;
    begin(orphan_scan);
    if (any_child(getpid(), note, &taking)) {
        doubt_all(orphan_scan->running);
        doubt_all(orphan_scan->settling);
    }

    /* the next look would meet them again; only now, since a list that changes is not told whole */
    for (size_t i = 0; i < taking.dead_count; i++) {
        (void)waitpid(taking.dead[i], NULL, WNOHANG); /* it is there */
    }
    orphan_scan->taken_ns = clock_boot_ns();
    orphan_scan->took_ns = orphan_scan->taken_ns - begun_ns;
}

/* The child whose leader has died, if anything can be known of what it has left. */
static struct child *find(const struct orphan_scan *orphan_scan, pid_t leader)
{
    int adopts = 0;
    return prctl(PR_GET_CHILD_SUBREAPER, &adopts) == 0 && adopts
               ? child_table_find(orphan_scan->settling, leader)
               : NULL;
}

static enum group_left left(void *context, pid_t leader)
{
    struct orphan_scan *orphan_scan = context;
    const struct child *child = find(orphan_scan, leader);
    if (child && (child->tree.left == GROUP_UNKNOWN || child->tree.left == GROUP_STRAYS)) {
        take(orphan_scan, leader);
    }
    return child ? child->tree.left : GROUP_STRAYS;
}

static enum group_left left_by_now(void *context, pid_t leader)
{
    struct orphan_scan *orphan_scan = context;
    const struct child *child = find(orphan_scan, leader);
    if (child && child->tree.left != GROUP_NOTHING) {
        if (clock_boot_ns() - orphan_scan->taken_ns < REST * orphan_scan->took_ns) {
            return GROUP_UNKNOWN;
        }
        take(orphan_scan, leader);
    }
    return child ? child->tree.left : GROUP_STRAYS;
}

struct group_orphans orphan_scan_orphans(struct orphan_scan *orphan_scan)
{
    return (struct group_orphans){
        .is_started = is_started, .left = left, .left_by_now = left_by_now, .context = orphan_scan};
}
