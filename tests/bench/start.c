#include "start.h"

#include <err.h>
#include <signal.h>
#include <unistd.h>

pid_t bench_start(char *const argv[])
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);

    /* the child shares our memory until it execs, so it calls nothing but these */
    pid_t pid = vfork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        execve(argv[0], argv, environ);
        _exit(127);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) {
        err(1, "vfork");
    }
    return pid;
}
