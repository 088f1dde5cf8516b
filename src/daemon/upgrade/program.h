/*
 * The installed program of leatd, started beside this process: with the same command line and
 * environment, and as a child of the same parent. So the service manager hears of its end.
 */
#ifndef LEAT_DAEMON_UPGRADE_PROGRAM_H
#define LEAT_DAEMON_UPGRADE_PROGRAM_H

#include <sys/resource.h>
#include <sys/types.h>

/* Nothing is owned. */
struct program {
    const char *path;            /* of the file to execute */
    char *const *arguments;      /* the first one is not used; NULL ends them */
    const struct rlimit *nofile; /* the limit of open files with which it starts */
};

/* The option that tells the new process to take over: it finds a socket as HAND_OVER_FD. */
#define PROGRAM_TAKE_OVER "--take-over"

/* Starts it with the socket, whose number is above HAND_OVER_FD. Sets *pidfd, which the caller
 * closes, to a descriptor of the process, or to -1 if the kernel has none. Returns its pid, or -1
 * with errno. If the process cannot execute the program, it sends HAND_OVER_REFUSED with the
 * reason. */
pid_t program_start(const struct program *program, int socket, int *pidfd);

#endif
