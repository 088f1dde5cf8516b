#include "exec/group.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

enum { MARKS = 3 };

/* Of whom processes are looked for. */
struct search {
    pid_t leader, self;
    const struct group_orphans *orphans;
    char marks[MARKS][96]; /* of their environment */
};

static void begin_search(struct search *search, pid_t leader, const struct group_orphans *orphans)
{
    const struct task *task = orphans->task;
    *search = (struct search){.leader = leader, .self = getpid(), .orphans = orphans};
    if (task) {
        (void)snprintf(search->marks[0], sizeof search->marks[0], "LEAT_TASK=%s",
                       task->tid); /* tids are short; a longer one finds nothing */
        (void)snprintf(search->marks[1], sizeof search->marks[1], "LEAT_ATTEMPT=%" PRId64,
                       task->attempt); /* each fits */
        (void)snprintf(search->marks[2], sizeof search->marks[2], "LEAT_FENCE=%" PRId64,
                       task->fence);
    }
}

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

bool group_is_alive(pid_t leader)
{
    const struct search search = {.leader = leader};
    return count_processes(is_member, &search) > 0;
}

/* The environment that it was executed with, as far as it has not overwritten it, has all marks.
 */
static bool has_marks(pid_t pid, const struct search *search)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid); /* fits */
    FILE *file = fopen(path, "re");
    char *entry = NULL;
    size_t size = 0, found = 0;
    while (file && found < MARKS && getdelim(&entry, &size, '\0', file) > 0) {
        for (size_t i = 0; i < MARKS; i++) {
            found += strcmp(entry, search->marks[i]) == 0;
        }
    }
    free(entry);
    if (file) {
        (void)fclose(file); /* only read from */
    }
    return found == MARKS;
}

/* An orphan that came to us: no child that we started ourselves. */
static bool is_orphan(const struct proc *process, const struct search *search)
{
    const struct group_orphans *orphans = search->orphans;
    return process->parent == search->self && process->pid != search->leader && orphans->task &&
           !orphans->is_started(orphans->context, process->pid) && has_marks(process->pid, search);
}

static bool kill_stray(const struct proc *process, const struct search *search)
{
    bool stray = process->session == search->leader && process->group != search->leader;
    return (stray || is_orphan(process, search)) && kill(process->pid, SIGKILL) == 0;
}

bool group_kill_strays(pid_t leader, const struct group_orphans *orphans)
{
    /* one that was killed may have forked just before: again while there are any, but not for
     * ever. One that is still dying is killed once more, which does no harm. */
    enum { MOST = 4 };
    int rounds = 0;
    struct search search;
    begin_search(&search, leader, orphans);
    while (rounds < MOST && count_processes(kill_stray, &search) > 0) {
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
    struct search search;
    begin_search(&search, leader, orphans);
    return count_processes(is_left, &search) > 0;
}
