/*
 * Reads processes from /proc, without allocating memory.
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

/* The kernel reports start times in hundredths of a second, whatever its own clock rate. */
#define PROC_TICK_NS INT64_C(10000000)

/* Returns false if there is no such process, if it is hidden, or, with errno, if it could not be
 * read. */
bool proc_read(pid_t pid, struct proc *proc);

/* True unless it is a zombie. A process whose first thread has ended while others run is alive. */
bool proc_is_alive(const struct proc *proc);

/* Returns a pidfd, which the caller closes, or -1 with errno. ESRCH: there is no such process.
 * Other errors: there are no pidfds, so use process ids. */
int proc_open(pid_t pid);

/* Calls pidfd_send_signal(2) and returns its result. */
int proc_signal(int fd, int signal, unsigned flags);

/* Sends the signal to the process of the pidfd, or to the process id if fd is -1. Errors are
 * ignored: the caller sees whether the process still lives. */
void proc_send(int fd, pid_t pid, int signal);

/* True if the process of the pidfd is not reaped, so that its id cannot have been reused. True if
 * fd is -1. */
bool proc_is_there(int fd);

/* Iterates over the numeric names in a folder of /proc: open, call next until it is negative,
 * close. Uses only system calls, so a child may use it between fork and exec. */
struct proc_numbers {
    int directory;
    long size, at; /* size < 0: the last read failed */
    _Alignas(8) char bytes[4096];
};
int proc_numbers_open(struct proc_numbers *numbers, const char *folder); /* 0, or -1 with errno */
int proc_numbers_next(struct proc_numbers *numbers);
void proc_numbers_close(struct proc_numbers *numbers);

/* Iterates over all processes in the same way; next returns false at the end. */
struct proc_walk {
    struct proc_numbers numbers;
    bool partial; /* some were not seen, for lack of descriptors or memory */
};
int proc_walk_open(struct proc_walk *walk); /* 0, or -1 with errno; also sets `partial` */
bool proc_walk_next(struct proc_walk *walk, struct proc *proc);
void proc_walk_close(struct proc_walk *walk);

#endif
