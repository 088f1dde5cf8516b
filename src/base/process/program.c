/* Runs another program and waits for it. */
#include "base/process/program.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

/* Has the program write its errors where its output goes, or nowhere. Returns 0 or an errno. */
static int add_errors(posix_spawn_file_actions_t *actions, bool errors)
{
    return errors
               ? posix_spawn_file_actions_adddup2(actions, STDOUT_FILENO, STDERR_FILENO)
               : posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
}

/* Returns 0 or an errno. output: -1 for that of this process, whose errors it has then, too. */
static int start(char *const argv[], int output, bool errors, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) {
        return error;
    }
    error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error && output >= 0) {
        error = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        error = error ? error : add_errors(&actions, errors);
    }
    error = error ? error : posix_spawnp(pid, argv[0], &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Reads up to the end, so that the program never blocks, and keeps what fits. */
static void read_text(int fd, char *text, size_t size)
{
    char rest[512] = {0}; /* what does not fit */
    size_t used = 0;
    for (;;) {
        size_t room = size - 1 - used;
        ssize_t got = read(fd, room > 0 ? text + used : rest, room > 0 ? room : sizeof rest);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            break;
        }
        used += room > 0 && got > 0 ? (size_t)got : 0;
    }
    text[used] = '\0';
}

static int wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run(char *const argv[], char *text, size_t size, bool errors)
{
    int ends[2] = {-1, -1};
    pid_t pid;
    if (text) {
        text[0] = '\0';
        if (pipe2(ends, O_CLOEXEC)) {
            return -1;
        }
    }
    int error = start(argv, ends[1], errors, &pid);
    if (text) {
        (void)close(ends[1]);
        if (!error) {
            read_text(ends[0], text, size);
        }
        (void)close(ends[0]);
    }
    errno = error;
    return error ? -1 : wait_for(pid);
}

int program_run(char *const argv[], char *text, size_t size)
{
    return run(argv, text, size, true);
}

int program_read(char *const argv[], char *text, size_t size)
{
    return run(argv, text, size, false);
}
