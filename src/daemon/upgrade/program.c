/*
 * Starts the new program with clone(2).
 */
#include "daemon/upgrade/program.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/upgrade/hand_over.h"

enum { STACK_SIZE = 256 * 1024 };

/* For the watchdog, this variable has the process id of the daemon. Without it, each process takes
 * itself for the one that is meant. */
#define WATCHDOG "WATCHDOG_PID="

struct start {
    const struct program *program;
    int socket;
    char **arguments, **environment; /* owned, not so their texts */
};

/* ---- before the start */

static size_t count(char *const *texts)
{
    size_t number = 0;
    while (texts[number]) {
        number++;
    }
    return number;
}

static int make_arguments(struct start *start)
{
    static char take_over[] = PROGRAM_TAKE_OVER;
    char *const *given = start->program->arguments;
    size_t used = 1;
    start->arguments = calloc(count(given) + 3, sizeof(char *));
    if (!start->arguments) {
        return -1;
    }
    start->arguments[0] = (char *)(uintptr_t)start->program->path;
    for (size_t i = 1; given[0] && given[i]; i++) {
        if (strcmp(given[i], take_over) != 0) {
            start->arguments[used++] = given[i];
        }
    }
    start->arguments[used] = take_over;
    return 0;
}

static int make_environment(struct start *start)
{
    size_t used = 0;
    start->environment = calloc(count(environ) + 1, sizeof(char *));
    if (!start->environment) {
        return -1;
    }
    for (size_t i = 0; environ[i]; i++) {
        if (strncmp(environ[i], WATCHDOG, sizeof WATCHDOG - 1) != 0) {
            start->environment[used++] = environ[i];
        }
    }
    return 0;
}

static void free_start(struct start *start)
{
    free(start->arguments);
    free(start->environment);
}

/* ---- in the child, which has a copy of the parent's memory */

static void refuse(const struct start *start, int error)
{
    struct hand_over packet = {.word = HAND_OVER_REFUSED};
    (void)snprintf(packet.text, sizeof packet.text, "cannot execute %s: %s", start->program->path,
                   strerror(error));                   /* a long path may be cut */
    (void)hand_over_send(HAND_OVER_FD, &packet, NULL); /* its end tells enough */
}

static int run_child(void *context)
{
    const struct start *start = context;
    if (dup2(start->socket, HAND_OVER_FD) < 0) { /* all others are close-on-exec */
        return EXIT_FAILURE;
    }
    if (setrlimit(RLIMIT_NOFILE, start->program->nofile) == 0) {
        (void)execve(start->program->path, start->arguments, start->environment);
    }
    refuse(start, errno);
    return EXIT_FAILURE;
}

/* ---- in the parent */

static pid_t start_child(struct start *start, int *pidfd)
{
    char *stack = malloc(STACK_SIZE);
    if (!stack) {
        return -1;
    }
    /* a child of the same parent: the service manager, if it has started this process */
    pid_t pid =
        clone(run_child, stack + STACK_SIZE, CLONE_PARENT | CLONE_PIDFD | SIGCHLD, start, pidfd);
    int error = errno;
    free(stack);
    errno = error;
    return pid;
}

pid_t program_start(const struct program *program, int socket, int *pidfd)
{
    struct start start = {.program = program, .socket = socket};
    pid_t pid = -1;
    *pidfd = -1;
    if (make_arguments(&start) || make_environment(&start)) {
        errno = ENOMEM;
    } else {
        pid = start_child(&start, pidfd);
    }
    int error = errno;
    free_start(&start);
    errno = error;
    return pid;
}
