/* A runner on a loop of its own, with a folder for its tasks, for tests with real processes. */
#ifndef LEAT_TESTS_RUNNER_TRIAL_H
#define LEAT_TESTS_RUNNER_TRIAL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log/log.h"
#include "config_made.h"
#include "exec/runner.h"
#include "task_made.h"

enum { PATIENCE_S = 60 };

struct trial {
    struct ev_loop *loop;
    struct runner *runner;
    struct config config;
    char folder[32];
    struct attempt *last; /* the last one that ended */
    size_t ended;
    size_t awaited;
};

/* A task that fails here has hung. */
static void on_patience_over(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop;
    (void)watcher;
    (void)events;
    fail_msg("nothing happened for %d s", PATIENCE_S);
}

static void on_ended(void *context, struct attempt *attempt)
{
    struct trial *trial = context;
    assert_int_equal(attempt->state, JOB_DONE);
    attempt_free(trial->last);
    trial->last = attempt;
    if (++trial->ended >= trial->awaited) {
        ev_break(trial->loop, EVBREAK_ONE);
    }
}

__attribute__((unused)) static int set_up(void **state)
{
    struct trial *trial = calloc(1, sizeof *trial);
    struct rlimit files;
    struct runner_events events = {.ended = on_ended, .context = trial};
    if (!trial || getrlimit(RLIMIT_NOFILE, &files) < 0) {
        return -1;
    }
    files.rlim_cur = 300;
    *state = trial;
    memcpy(trial->folder, "/tmp/leat-run-XXXXXX", 21);
    if (!mkdtemp(trial->folder)) {
        return -1;
    }
    trial->config = (struct config){
        .queue.name = (char *)"mails",
        .task = {.shell = (char *)"/bin/sh",
                 .directory = trial->folder,
                 .path = (char *)"/usr/local/bin:/usr/bin:/bin",
                 .umask = 027,
                 .timeout_ms = 30000,
                 .kill_grace_ms = 200},
        .retry.max_attempts = 5,
        .dead.output_tail = 4096,
        .output = {.to = CONFIG_OUTPUT_DISCARD, .max_line = 8192},
    };
    inherit_limits(&trial->config);
    trial->loop = ev_loop_new(EVFLAG_AUTO);
    trial->runner = runner_new(trial->loop, &trial->config, "host:1:x", &files, &events);
    return trial->runner ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

__attribute__((unused)) static int tear_down(void **state)
{
    struct trial *trial = *state;
    runner_free(trial->runner);
    attempt_free(trial->last);
    ev_loop_destroy(trial->loop);
    nftw(trial->folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(trial);
    return 0;
}

/* Runs the loop until this many more attempts have ended. */
__attribute__((unused)) static void await(struct trial *trial, size_t more)
{
    ev_timer patience;
    ev_timer_init(&patience, on_patience_over, PATIENCE_S, 0);
    ev_now_update(trial->loop);
    ev_timer_start(trial->loop, &patience);
    trial->awaited = trial->ended + more;
    ev_run(trial->loop, 0);
    ev_timer_stop(trial->loop, &patience);
    assert_int_equal(trial->ended, trial->awaited);
}

__attribute__((unused)) static void start_task_now(struct trial *trial, struct task *task)
{
    assert_non_null(task);
    const struct claimed_task begun = {.task = task};
    assert_int_equal(runner_start(trial->runner, &begun, 1), 0);
}

/* Starts a command; the runner owns the attempt. */
__attribute__((unused)) static struct attempt *begin(struct trial *trial, const char *command)
{
    start_task_now(trial, make_task(TEXTS("command", command), NULL, 0, false));
    return runner_first(trial->runner);
}

/* Runs a task to its end; the attempt is valid until the next ends. */
__attribute__((unused)) static struct attempt *run_task(struct trial *trial, struct task *task)
{
    size_t before = trial->ended;
    start_task_now(trial, task);
    if (trial->ended == before) {
        await(trial, 1);
    }
    assert_int_equal(trial->ended, before + 1);
    assert_int_equal(runner_count(trial->runner), 0);
    return trial->last;
}

__attribute__((unused)) static struct attempt *run(struct trial *trial, const char *command)
{
    return run_task(trial, make_task(TEXTS("command", command), NULL, 0, false));
}

__attribute__((unused)) static void assert_ending(const struct attempt *attempt,
                                                  const char *expected)
{
    char text[32];
    ending_describe(&attempt->ending, text, sizeof text);
    if (strcmp(text, expected) != 0) {
        fail_msg("%s (%s) is not %s; stderr: %.*s", text, attempt->reason, expected,
                 (int)attempt->stderr_tail.size, attempt->stderr_tail.data);
    }
}

__attribute__((unused)) static void assert_bytes(struct bytes bytes, const char *expected)
{
    if (bytes.size != strlen(expected) || memcmp(bytes.data, expected, bytes.size) != 0) {
        fail_msg("\"%.*s\" is not \"%s\"", (int)bytes.size, bytes.data, expected);
    }
}

/* The number at the beginning of the text. */
__attribute__((unused)) static pid_t number_in(struct bytes bytes)
{
    char text[32] = "";
    assert_true(bytes.size > 0);
    memcpy(text, bytes.data, bytes.size < sizeof text ? bytes.size : sizeof text - 1);
    pid_t number = (pid_t)strtol(text, NULL, 10);
    assert_true(number > 1);
    return number;
}

/* Gone, or a zombie that another process has to reap. */
__attribute__((unused)) static bool is_dead(pid_t pid)
{
    char path[64], text[256] = "";
    assert_true(snprintf(path, sizeof path, "/proc/%d/stat", (int)pid) > 0);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return true;
    }
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    const char *behind = size > 0 ? strrchr(text, ')') : NULL;
    return !behind || behind[2] == 'Z' || behind[2] == 'X';
}

__attribute__((unused)) static size_t count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    size_t count = 0;
    assert_non_null(directory);
    /* cppcheck-suppress readdirCalled ; the stream is nobody else's */
    while (readdir(directory)) {
        count++;
    }
    closedir(directory);
    return count;
}

/* Files in the trial's folder. */
__attribute__((unused)) static void write_file(const struct trial *trial, const char *name,
                                               const void *data, size_t size, mode_t mode)
{
    char path[128];
    assert_true(snprintf(path, sizeof path, "%s/%s", trial->folder, name) > 0);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
}

__attribute__((unused)) static void write_text(const struct trial *trial, const char *name,
                                               const char *text, mode_t mode)
{
    write_file(trial, name, text, strlen(text), mode);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

#endif
