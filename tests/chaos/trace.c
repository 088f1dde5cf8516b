/*
 * Writes the records of a run, and starts its witness.
 */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BEAT_MS = 50, ORPHAN_MS = 60000, FORK_TRIES = 200, FAILED = 99 };

static const char *worker_name(void)
{
    const char *name = getenv("LEAT_WORKER");
    return name ? name : "";
}

int trace_open(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

void trace_say(const struct run *run, const char *event, int code)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    char line[1024];
    int size = snprintf(line, sizeof line,
                        "\n{\"t\":%lld,\"e\":\"%s\",\"n\":%d,\"task\":\"%s\",\"attempt\":%lld,"
                        "\"fence\":%lld,\"worker\":\"%s\",\"pid\":%d,\"code\":%d}\n",
                        (long long)now.tv_sec * 1000000000 + now.tv_nsec, event, run->n, run->task,
                        run->attempt, run->fence, worker_name(), (int)run->pid, code);
    /* in one write, because others append to the same file; KILL can stop it in the middle, so
     * that a line does not depend on the one before */
    if (size < 0 || (size_t)size >= sizeof line ||
        write(run->trace, line, (size_t)size) != (ssize_t)size) {
        _exit(FAILED);
    }
}

/* Writes beats until the task sends a byte to say that it is done, and then for left_ms; a pipe
 * that ends without a byte means that the task was killed. */
_Noreturn static void beat(const struct run *run, int pipe_end, int left_ms)
{
    struct pollfd done = {.fd = pipe_end, .events = POLLIN};
    /* some are ended by KILL only */
    (void)signal(SIGTERM, run->n % 3 == 0 ? SIG_IGN : SIG_DFL);
    for (int ms = ORPHAN_MS; ms > 0; ms -= BEAT_MS) {
        if (poll(&done, 1, BEAT_MS) > 0) {
            char byte;
            if (read(pipe_end, &byte, 1) == 1) {
                if (left_ms == 0) {
                    _exit(0);
                }
                ms = left_ms;
            }
            done.fd = -1;
        }
        trace_say(run, "beat", 0);
    }
    _exit(0);
}

pid_t trace_witness(const struct run *run, int left_ms, int closes, int *end)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    pid_t child = fork();
    /* a lack of processes is the worker's, and no failure of the task */
    for (int tries = FORK_TRIES; child < 0 && errno == EAGAIN && tries > 0; tries--) {
        (void)poll(NULL, 0, BEAT_MS);
        child = fork();
    }
    if (child == 0) {
        (void)close(ends[1]);
        for (int fd = 0; closes && fd <= 3; fd += fd == 0 ? 1 : 2) {
            (void)close(fd);
        }
        beat(run, ends[0], left_ms);
    }
    (void)close(ends[0]);
    *end = ends[1];
    return child;
}

void trace_end(pid_t witness, int *end, int waits)
{
    if (witness > 0) {
        if (write(*end, "e", 1) != 1) {
            _exit(FAILED);
        }
        if (waits) {
            (void)waitpid(witness, NULL, 0);
        }
    }
    (void)close(*end);
}

/* LEAT_WORKER is host:pid:nonce. */
void trace_kill_worker(const struct run *run)
{
    const char *worker = worker_name(), *nonce = strrchr(worker, ':');
    while (nonce && nonce > worker && *--nonce != ':')
        ;
    int pid = nonce ? atoi(nonce + 1) : 0;
    if (pid <= 1) {
        _exit(FAILED);
    }
    trace_say(run, "kill", pid);
    (void)kill(pid, SIGKILL);
}
