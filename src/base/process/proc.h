/*
 * Processes as /proc tells of them, without any memory but the caller's.
 */
#ifndef LEAT_BASE_PROCESS_PROC_H
#define LEAT_BASE_PROCESS_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc {
    pid_t pid;
    char state; /* as in ps */
    pid_t parent, group, session;
    int threads;
    int64_t started_ns; /* CLOCK_BOOTTIME, rounded down to PROC_TICK_NS */
};

/* The kernel tells starts to a hundredth of a second, whatever its own clock is. */
#define PROC_TICK_NS INT64_C(10000000)

/* Returns false where there is no such process, or it is hidden, or, with errno, it could not be
 * read. */
bool proc_read(pid_t pid, struct proc *proc);

/* It is no zombie. One whose first thread has ended while others run is none either. */
bool proc_is_alive(const struct proc *proc);

/* A descriptor that stands for the process, the caller's to close; -1 with errno: ESRCH where there
 * is none of that number, else there are no such descriptors, and numbers have to do. */
int proc_open(pid_t pid);

/* flags as in pidfd_send_signal(2), whose result is returned. */
int proc_signal(int fd, int signal, unsigned flags);

/* To the process of the descriptor; of the number where that is -1. What cannot be signalled is
 * seen to live on. */
void proc_send(int fd, pid_t pid, int signal);

/* The process of the descriptor is not reaped: so its number was its own until now. True for -1. */
bool proc_is_there(int fd);

/* The names in one of its folders that are numbers. To be opened, stepped through until next is
 * negative, closed; only system calls, also for a child between fork and exec. */
struct proc_numbers {
    int directory;
    long size, at; /* size < 0: the last read failed */
    _Alignas(8) char bytes[4096];
};
int proc_numbers_open(struct proc_numbers *numbers, const char *folder); /* 0, or -1 with errno */
int proc_numbers_next(struct proc_numbers *numbers);
void proc_numbers_close(struct proc_numbers *numbers);

/* A walk over all processes that are there, likewise; false: no more. */
struct proc_walk {
    struct proc_numbers numbers;
    bool partial; /* not all were seen, for want of descriptors or memory */
};
int proc_walk_open(struct proc_walk *walk); /* 0, or -1 with errno; `partial` is set, too */
bool proc_walk_next(struct proc_walk *walk, struct proc *proc);
void proc_walk_close(struct proc_walk *walk);

#endif
