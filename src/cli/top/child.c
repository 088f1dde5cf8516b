/*
 * A command of leat in a child process.
 */
#include "cli/top/child.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd_watch.h"

struct child {
    struct ev_loop *loop;
    struct fd_watch watch;
    struct child_events events;
    int fd;    /* of its output */
    pid_t pid; /* 0: it was reaped */
};

/* ---- in the child */

/* Handlers of this process, and signals that it blocks, are not for the command. */
static void reset_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
    sigset_t none;

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        (void)signal(numbers[i], SIG_DFL);
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int redirect(int output)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
        dup2(output, STDERR_FILENO) < 0) {
        return -1;
    }
    return close_range(STDERR_FILENO + 1, ~0U, 0);
}

static _Noreturn void run(const struct config_source *source, const struct subcommand *command,
                          const char *const *words, int output, pid_t parent)
{
    struct cli cli = {.subcommand = command, .source = *source};
    char *argv[CHILD_WORDS + 1] = {NULL};
    int argc = 0, status;

    for (; argc < CHILD_WORDS && words[argc]; argc++) {
        argv[argc] = strdup(words[argc]);
    }
    reset_signals();
    /* a command that follows a task must not outlive leat top */
    if (redirect(output) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
        _exit(EX_OSERR);
    }
    optind = 0;
    status = command->run(&cli, argc, argv);
    _exit(cli_flush() == EX_OK ? status : EX_IOERR);
}

/* ---- in the parent */

static int reap(struct child *child)
{
    int status = 0;

    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
    }
    child->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EX_SOFTWARE;
}

static void on_readable(void *context)
{
    struct child *child = context;
    char bytes[16384];
    ssize_t size = read(child->fd, bytes, sizeof bytes);

    if (size > 0) {
        child->events.output(child->events.context, (struct bytes){bytes, (size_t)size});
    } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
        fd_watch_stop(&child->watch, child->loop);
        child->events.ended(child->events.context, reap(child));
    }
}

struct child *child_start(struct ev_loop *loop, const struct config_source *source,
                          const struct subcommand *command, const char *const *words,
                          const struct child_events *events)
{
    struct child *child = calloc(1, sizeof *child);
    pid_t parent = getpid();
    int ends[2];

    if (!child || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        free(child);
        return NULL;
    }
    *child = (struct child){.loop = loop, .events = *events, .fd = ends[0], .pid = fork()};
    if (child->pid == 0) {
        /* the command waits if this process does not read */
        (void)fcntl(ends[1], F_SETFL, 0);
        run(source, command, words, ends[1], parent);
    }
    (void)close(ends[1]); /* nothing was written to it here */
    if (child->pid < 0) {
        (void)close(ends[0]); /* the same */
        free(child);
        return NULL;
    }
    fd_watch_init(&child->watch, on_readable, child);
    fd_watch_start(&child->watch, loop, child->fd, EV_READ);
    return child;
}

void child_free(struct child *child)
{
    if (!child) {
        return;
    }
    fd_watch_stop(&child->watch, child->loop);
    (void)close(child->fd); /* closing a pipe that was only read loses nothing */
    if (child->pid > 0) {
        (void)kill(child->pid, SIGKILL); /* it is not reaped yet, so it is there */
        (void)reap(child);
    }
    free(child);
}
