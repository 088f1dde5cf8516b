#include "exec/group.h"

#include <errno.h>
#include <signal.h>

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

/* How many living processes there are for which `act` is true. */
static size_t count_processes(bool (*act)(const struct proc *process, pid_t leader), pid_t leader)
{
    struct proc_walk walk;
    struct proc process;
    size_t count = 0;
    if (proc_walk_open(&walk)) {
        return 0;
    }
    while (proc_walk_next(&walk, &process)) {
        count += proc_is_alive(&process) && act(&process, leader);
    }
    proc_walk_close(&walk);
    return count;
}

static bool is_member(const struct proc *process, pid_t leader)
{
    return process->group == leader;
}

bool group_is_alive(pid_t leader)
{
    return count_processes(is_member, leader) > 0;
}

static bool kill_stray(const struct proc *process, pid_t leader)
{
    return process->session == leader && process->group != leader &&
           kill(process->pid, SIGKILL) == 0;
}

bool group_kill_session(pid_t leader)
{
    /* one that was killed may have forked just before: again while there are any, but not for
     * ever. One that is still dying is killed once more, which does no harm. */
    enum { MOST = 4 };
    int rounds = 0;
    while (rounds < MOST && count_processes(kill_stray, leader) > 0) {
        rounds++;
    }
    return rounds > 0;
}

static bool is_of_session(const struct proc *process, pid_t leader)
{
    return process->session == leader;
}

bool group_session_is_alive(pid_t leader)
{
    return count_processes(is_of_session, leader) > 0;
}
