#include "exec/group.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/mark.h"
#include "exec/proc.h"

void group_signal(pid_t leader, int signal)
{
    if (kill(-leader, signal) < 0 && errno == ESRCH) {
        (void)kill(leader, signal); /* it may have exited in between */
    }
}

bool group_is_empty(pid_t leader)
{
    return kill(-leader, 0) < 0 && errno == ESRCH;
}

/* Orphans that were found dead. */
struct dead {
    pid_t pids[256];
    size_t count;
};

/* Of whom processes are looked for. */
struct search {
    pid_t leader, self;
    struct dead *dead; /* NULL: they are not wanted */
    const struct group_orphans *orphans;
};

/* How many living processes there are for which `act` is true. */
static size_t count_processes(bool (*act)(const struct proc *process, const struct search *search),
                              const struct search *search)
{
    struct proc_walk walk;
    struct proc process;
    size_t count = 0;
    if (proc_walk_open(&walk)) {
        return 0;
    }
    while (proc_walk_next(&walk, &process)) {
        count += proc_is_alive(&process) && act(&process, search);
    }
    proc_walk_close(&walk);
    return count;
}

static bool is_member(const struct proc *process, const struct search *search)
{
    return process->group == search->leader;
}

/* An orphan that came to us: no child that we started ourselves. */
static bool is_orphan(const struct proc *process, const struct search *search)
{
    const struct group_orphans *orphans = search->orphans;
    return process->parent == search->self && process->pid != search->leader && orphans->mark &&
           !orphans->is_started(orphans->context, process->pid) &&
           mark_read(process->pid) == orphans->mark;
}

static bool kill_stray(const struct proc *process, const struct search *search)
{
    bool stray = process->session == search->leader && process->group != search->leader;
    return (stray || is_orphan(process, search)) && kill(process->pid, SIGKILL) == 0;
}

/* ---- whether there may be any: a look at our children is far cheaper than one at all processes */

/* Calls visit with each child of the process's first thread until one answers true. Returns whether
 * one did, or true where the kernel does not list them. */
static bool any_child(pid_t pid, bool (*visit)(pid_t child, const struct search *search),
                      const struct search *search)
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
                found = visit(child, search);
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

static bool is_any(pid_t child, const struct search *search)
{
    (void)child;
    (void)search;
    return true;
}

static void note_dead(struct dead *dead, pid_t pid)
{
    if (dead && dead->count < sizeof dead->pids / sizeof *dead->pids) {
        dead->pids[dead->count++] = pid;
    }
}

/* Alive, not started here, and not in the session of another that was. */
static bool is_unknown(pid_t child, const struct search *search, struct proc *proc)
{
    const struct group_orphans *orphans = search->orphans;
    if (child == search->leader || orphans->is_started(orphans->context, child) ||
        !proc_read(child, proc)) {
        return false;
    }
    if (!proc_is_alive(proc)) {
        note_dead(search->dead, child);
        return false;
    }
    return proc->session == search->leader || !orphans->is_session(orphans->context, proc->session);
}

static bool may_be_member(pid_t child, const struct search *search)
{
    struct proc proc;
    return is_unknown(child, search, &proc);
}

/* What was killed with the leader's group and has no children is none. */
static bool may_be_stray(pid_t child, const struct search *search)
{
    struct proc proc;
    return is_unknown(child, search, &proc) &&
           (proc.group != search->leader || proc.threads > 1 || any_child(child, is_any, search));
}

/* The children of a process have become ours with its end, and with them all that descends from
 * it. */
static bool any_orphan(bool (*visit)(pid_t child, const struct search *search),
                       struct search *search)
{
    int adopts = 0;
    if (!search->orphans->is_started || prctl(PR_GET_CHILD_SUBREAPER, &adopts) < 0 || !adopts) {
        return true;
    }
    struct dead dead;
    dead.count = 0;
    search->dead = &dead;
    bool found = any_child(search->self, visit, search);
    search->dead = NULL;

    /* the next look would meet them again; only now, since a list that changes is not told whole */
    for (size_t i = 0; i < dead.count; i++) {
        (void)waitpid(dead.pids[i], NULL, WNOHANG); /* it is there */
    }
    return found;
}

static bool may_have_strays(struct search *search)
{
    struct proc leader;
    return !proc_read(search->leader, &leader) || proc_is_alive(&leader) ||
           any_orphan(may_be_stray, search);
}

bool group_is_alive(pid_t leader, const struct group_orphans *orphans)
{
    struct search search = {.leader = leader, .self = getpid(), .orphans = orphans};
    return any_orphan(may_be_member, &search) && count_processes(is_member, &search) > 0;
}

bool group_kill_strays(pid_t leader, const struct group_orphans *orphans)
{
    /* one that was killed may have forked just before: again while there are any, but not for
     * ever. One that is still dying is killed once more, which does no harm. */
    enum { MOST = 4 };
    int rounds = 0;
    struct search search = {.leader = leader, .self = getpid(), .orphans = orphans};
    while (rounds < MOST && (rounds > 0 || may_have_strays(&search)) &&
           count_processes(kill_stray, &search) > 0) {
        rounds++;
    }
    return rounds > 0;
}

static bool is_left(const struct proc *process, const struct search *search)
{
    if (is_orphan(process, search)) {
        (void)kill(process->pid, SIGKILL); /* seen at the next look */
        return true;
    }
    return process->session == search->leader;
}

bool group_strays_are_alive(pid_t leader, const struct group_orphans *orphans)
{
    const struct search search = {.leader = leader, .self = getpid(), .orphans = orphans};
    return count_processes(is_left, &search) > 0;
}
