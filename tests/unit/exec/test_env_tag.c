/* The tag in the environment, by which processes of a task are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/proc.h"
#include "exec/tree/env_tag.h"

#define WORKER "host:1:ab"
#define OWN "LEAT_WORKER=" WORKER, "LEAT_TASK=17-3", "LEAT_FENCE=2"

/* A process has an environment a moment after it has begun to execute. */
static bool has_environment(pid_t pid)
{
    char path[32], byte;
    assert_true(snprintf(path, sizeof path, "/proc/%d/environ", (int)pid) > 0);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t size = read(fd, &byte, 1);
    close(fd);
    return size > 0;
}

/* A process that was executed with that environment. */
static pid_t start_with(const char *const *environment)
{
    char *words[] = {"sleep", "60", NULL};
    int ends[2], tries = 0;
    char byte;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        execve("/bin/sleep", words, (char *const *)(uintptr_t)environment);
        _exit(127);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 0); /* it has executed */
    close(ends[0]);
    while (!has_environment(pid)) {
        assert_true(tries++ < 1000000);
    }
    return pid;
}

static void end(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static uint64_t mark_with(const char *const *environment)
{
    pid_t pid = start_with(environment);
    uint64_t mark = env_tag_read(pid);
    end(pid);
    return mark;
}

#define ENV_TAG_WITH(...) mark_with((const char *const[]){__VA_ARGS__, NULL})

static uint64_t wanted(const char *worker, char *tid, int64_t fence)
{
    return env_tag_attempt(env_tag_worker(worker), &(struct task){.tid = tid, .fence = fence});
}

/* Goal: a process with the three variables has the attempt's tag, at any position among others,
 * very long ones too. */
static void the_three_are_found(void **state)
{
    (void)state;
    char *most = malloc(100000);
    assert_non_null(most);
    memset(most, 'x', 99999);
    memcpy(most, "TASK_X=", 7);
    most[99999] = '\0';
    uint64_t mark = wanted(WORKER, "17-3", 2);
    assert_true(mark != 0);
    assert_int_equal(ENV_TAG_WITH(OWN), mark);
    assert_int_equal(ENV_TAG_WITH("A=b", OWN, most), mark);
    assert_int_equal(
        ENV_TAG_WITH(most, "LEAT_FENCE=2", most, "LEAT_TASK=17-3", "", most, "LEAT_WORKER=" WORKER),
        mark);
    free(most);
}

/* Goal: a process without one of them, or with another value, has another tag or none. */
static void others_are_not(void **state)
{
    (void)state;
    uint64_t mark = wanted(WORKER, "17-3", 2);
    assert_true(wanted("host:1:ac", "17-3", 2) != mark);
    assert_true(wanted(WORKER, "17-2", 2) != mark);
    assert_true(wanted(WORKER, "17-3", 3) != mark);
    assert_true(wanted(WORKER, "17-", 32) != mark);
    assert_int_equal(ENV_TAG_WITH("LEAT_WORKER=" WORKER, "LEAT_TASK=17-3", "LEAT_FENCE=3"),
                     wanted(WORKER, "17-3", 3));
    assert_int_equal(ENV_TAG_WITH("LEAT_WORKER=" WORKER, "LEAT_TASK=17-3"), 0);
    assert_int_equal(ENV_TAG_WITH("LEAT_WORKER=" WORKER, "LEAT_FENCE=2", "XLEAT_TASK=17-3"), 0);
    assert_int_equal(ENV_TAG_WITH("LEAT_TASK=17-3", "LEAT_FENCE=2"), 0);
    assert_int_equal(ENV_TAG_WITH("A=b"), 0);
    assert_int_equal(ENV_TAG_WITH(OWN, "LEAT_CAUSE=exit"), 0); /* a dead-letter hook */
    assert_int_equal(env_tag_read(getpid()), 0);
    assert_int_equal(env_tag_worker(NULL), 0);
}

/* Goal: a zombie shows no environment, and a process that is gone has no tag. */
static void the_dead_have_none(void **state)
{
    (void)state;
    siginfo_t exit;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    assert_int_equal(waitid(P_PID, (id_t)pid, &exit, WEXITED | WNOWAIT), 0);
    assert_int_equal(env_tag_read(pid), ENV_TAG_BLANK);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(env_tag_read(pid), 0);
}

static void *stay(void *context)
{
    (void)alarm(60); /* if the test hangs */
    for (;;) {
        pause();
    }
    return context;
}

/* This program executed again: its first thread ends, and another one goes on. */
static int go_on_without_first_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, stay, NULL) != 0) {
        return 1;
    }
    pthread_exit(NULL);
}

/* Goal: a process whose first thread has ended has a tag as long as other threads run. */
static void other_threads_have_the_tag(void **state)
{
    (void)state;
    char *words[] = {"test_env_tag", "threads", NULL};
    static const char *const environment[] = {OWN, NULL};
    struct proc proc = {.state = '?'};
    int tries = 0;
    pid_t pid = fork();
    if (pid == 0) {
        execve("/proc/self/exe", words, (char *const *)(uintptr_t)environment);
        _exit(127);
    }
    while (proc.state != 'Z') {
        assert_true(tries++ < 1000000);
        assert_true(proc_read(pid, &proc));
    }
    assert_int_equal(proc.threads, 2);
    assert_int_equal(env_tag_read(pid), wanted(WORKER, "17-3", 2));
    end(pid);
}

/* Goal: the processes of a dead worker are killed, and no others. */
static void a_worker_is_killed(void **state)
{
    (void)state;
    /* the names are this process's: the same test may run elsewhere on this machine */
    char dead[64], lives[64];
    assert_true(snprintf(dead, sizeof dead, "LEAT_WORKER=test:%d:dead", (int)getpid()) > 0);
    assert_true(snprintf(lives, sizeof lives, "LEAT_WORKER=test:%d:lives", (int)getpid()) > 0);
    const char *const worker = dead + strlen("LEAT_WORKER=");
    const char *const environments[][3] = {
        {dead, "LEAT_BATCH=2"}, {lives, "LEAT_BATCH=2"}, {dead, "LEAT_CAUSE=exit"}};
    pid_t pids[3];
    int status;
    for (size_t i = 0; i < 3; i++) {
        pids[i] = start_with(environments[i]);
    }
    assert_int_equal(env_tag_kill(worker), 1);
    assert_int_equal(waitpid(pids[0], &status, 0), pids[0]);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(env_tag_kill(worker), 0);
    for (size_t i = 1; i < 3; i++) {
        assert_int_equal(waitpid(pids[i], NULL, WNOHANG), 0);
        end(pids[i]);
    }
}

int main(int count, char **words)
{
    (void)words;
    if (count > 1) {
        return go_on_without_first_thread();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_three_are_found), cmocka_unit_test(others_are_not),
        cmocka_unit_test(the_dead_have_none),  cmocka_unit_test(other_threads_have_the_tag),
        cmocka_unit_test(a_worker_is_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
