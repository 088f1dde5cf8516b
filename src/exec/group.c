#include "exec/group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

struct process {
    pid_t pid;
    char state;
    int group;
    int session;
};

/* Returns false for what is no process, or is one no longer. */
static bool read_process(int directory, const char *name, struct process *process)
{
    char path[64], text[512];
    char *rest;
    process->pid = (pid_t)strtol(name, &rest, 10);
    if (process->pid <= 0 || *rest != '\0') {
        return false;
    }
    int length = snprintf(path, sizeof path, "%s/stat", name);
    if (length < 0 || (size_t)length >= sizeof path) {
        return false;
    }
    int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size <= 0) {
        return false;
    }

    /* PID (NAME) STATE PARENT GROUP SESSION …; the name may hold anything, parentheses too */
    text[size] = '\0';
    const char *behind = strrchr(text, ')');
    int parent;
    return behind && sscanf(behind, ") %c %d %d %d", &process->state, &parent, &process->group,
                            &process->session) == 4;
}

/* How many processes there are for which `act` is true. */
static size_t count_processes(bool (*act)(const struct process *process, pid_t leader),
                              pid_t leader)
{
    DIR *directory = opendir("/proc");
    const struct dirent *entry;
    struct process process;
    size_t count = 0;
    /* cppcheck-suppress readdirCalled ; the stream is nobody else's */
    while (directory && (entry = readdir(directory))) {
        count += read_process(dirfd(directory), entry->d_name, &process) && act(&process, leader);
    }
    if (directory) {
        closedir(directory);
    }
    return count;
}

static bool is_living(const struct process *process)
{
    return process->state != 'Z' && process->state != 'X';
}

static bool is_member(const struct process *process, pid_t leader)
{
    return process->group == leader && is_living(process);
}

bool group_is_alive(pid_t leader)
{
    return count_processes(is_member, leader) > 0;
}

static bool kill_stray(const struct process *process, pid_t leader)
{
    return process->session == leader && process->group != leader && is_living(process) &&
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

static bool is_of_session(const struct process *process, pid_t leader)
{
    return process->session == leader && is_living(process);
}

bool group_session_is_alive(pid_t leader)
{
    return count_processes(is_of_session, leader) > 0;
}
