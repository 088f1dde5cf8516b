/* task TRACE: a task of the chaos test. It appends its events to TRACE, as JSON lines with times
 * in ns of CLOCK_BOOTTIME: its start, its end, and every 50 ms a beat of a descendant, which
 * goes on if the task was killed: whoever requeues the task must have killed the descendant,
 * too.
 *
 * Its fields are parameters: N is its number, MS its duration, FAILS how many attempts fail,
 * CODE with which status, LEFT for how many ms the descendant stays behind, and KILLS=1 makes it
 * kill its worker. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BEAT_MS = 50, ORPHAN_MS = 60000, FORK_TRIES = 200 };

struct run {
    int trace;
    pid_t pid;
};

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "0";
}

static int number(const char *name)
{
    return atoi(variable(name));
}

static void say(const struct run *run, const char *event, int code)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    char line[1024];
    int size = snprintf(line, sizeof line,
                        "\n{\"t\":%lld,\"e\":\"%s\",\"n\":%d,\"task\":\"%s\",\"attempt\":%s,"
                        "\"fence\":%s,\"worker\":\"%s\",\"pid\":%d,\"code\":%d}\n",
                        (long long)now.tv_sec * 1000000000 + now.tv_nsec, event, number("TASK_N"),
                        variable("LEAT_TASK"), variable("LEAT_ATTEMPT"), variable("LEAT_FENCE"),
                        variable("LEAT_WORKER"), (int)run->pid, code);
    /* in one write, because others append to the same file; KILL can stop it in the middle, so
     * that a line does not depend on the one before */
    if (size < 0 || (size_t)size >= sizeof line ||
        write(run->trace, line, (size_t)size) != (ssize_t)size) {
        _exit(99);
    }
}

/* Writes beats until the task sends a byte to say that it is done, and then for left_ms; a pipe
 * that ends without a byte means that the task was killed. */
_Noreturn static void beat(const struct run *run, int pipe_end, int left_ms)
{
    struct pollfd done = {.fd = pipe_end, .events = POLLIN};
    /* some are ended by KILL only */
    if (number("TASK_N") % 3 == 0) {
        (void)signal(SIGTERM, SIG_IGN);
    }
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
        say(run, "beat", 0);
    }
    _exit(0);
}

/* LEAT_WORKER is host:pid:nonce. */
static void kill_worker(const struct run *run)
{
    const char *worker = variable("LEAT_WORKER"), *nonce = strrchr(worker, ':');
    while (nonce && nonce > worker && *--nonce != ':')
        ;
    int pid = nonce ? atoi(nonce + 1) : 0;
    if (pid <= 1) {
        _exit(99);
    }
    say(run, "kill", pid);
    (void)kill(pid, SIGKILL);
}

int main(int argc, char **argv)
{
    int ends[2];
    if (argc != 2 || pipe(ends) != 0) {
        return 99;
    }
    struct run run = {.trace = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666),
                      .pid = getpid()};
    if (run.trace < 0) {
        return 99;
    }
    say(&run, "start", 0);

    pid_t child = fork();
    /* a lack of processes is the worker's, and no failure of the task */
    for (int tries = FORK_TRIES; child < 0 && errno == EAGAIN && tries > 0; tries--) {
        (void)poll(NULL, 0, BEAT_MS);
        child = fork();
    }
    if (child < 0) {
        return 99;
    }
    if (child == 0) {
        (void)close(ends[1]);
        beat(&run, ends[0], number("TASK_LEFT"));
    }
    (void)close(ends[0]);
    if (number("TASK_KILLS")) {
        kill_worker(&run);
    }
    (void)poll(NULL, 0, number("TASK_MS"));

    if (write(ends[1], "e", 1) != 1) {
        return 99;
    }
    if (number("TASK_LEFT") == 0) {
        (void)waitpid(child, NULL, 0);
    }
    int code = number("LEAT_ATTEMPT") <= number("TASK_FAILS") ? number("TASK_CODE") : 0;
    say(&run, "end", code);
    return code;
}
