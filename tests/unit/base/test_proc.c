#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/proc.h"
#include "base/process/proc_tree.h"

/* Goal: the ids of a process and its start time, in hundredths of a second, are read even if its
 * name looks like the end of a name. */
static void test_own_numbers(void **state)
{
    (void)state;
    struct proc proc;
    assert_int_equal(prctl(PR_SET_NAME, "a) Z 1 (b)"), 0);
    int64_t before_ns = clock_boot_ns();
    pid_t child = fork();
    if (child == 0) {
        for (;;) {
            pause();
        }
    }
    int64_t after_ns = clock_boot_ns();
    assert_true(proc_read(child, &proc));
    assert_int_equal(proc.pid, child);
    assert_int_equal(proc.parent, getpid());
    assert_int_equal(proc.group, getpgrp());
    assert_int_equal(proc.session, getsid(0));
    assert_int_equal(proc.threads, 1);
    assert_true(proc_is_alive(&proc));
    assert_true(proc.started_ns > before_ns - PROC_TICK_NS && proc.started_ns <= after_ns);

    assert_int_equal(kill(child, SIGKILL), 0);
    siginfo_t exit;
    assert_int_equal(waitid(P_PID, (id_t)child, &exit, WEXITED | WNOWAIT), 0);
    assert_true(proc_read(child, &proc));
    assert_false(proc_is_alive(&proc));
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(proc_read(child, &proc));
}

/* Goal: a walk returns every process once. */
static void test_walk(void **state)
{
    (void)state;
    struct proc_walk walk;
    struct proc proc;
    int met = 0;
    assert_int_equal(proc_walk_open(&walk), 0);
    while (proc_walk_next(&walk, &proc)) {
        met += proc.pid == getpid();
        assert_true(proc.pid > 0);
    }
    proc_walk_close(&walk);
    assert_int_equal(met, 1);
}

/* Writes the id of a new child to the pipe, and waits. */
static void *start_grandchild(void *context)
{
    const int *output = context;
    pid_t pid = fork();
    if (pid > 0 && write(*output, &pid, sizeof pid) != sizeof pid) {
        _exit(1);
    }
    for (;;) {
        pause();
    }
}

static pid_t start_child(bool threaded, pid_t *grandchild)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        setsid();
        if (threaded && pthread_create(&thread, NULL, start_grandchild, &ends[1]) == 0) {
            pause();
        }
        (void)start_grandchild(&ends[1]);
    }
    assert_int_equal(read(ends[0], grandchild, sizeof *grandchild), sizeof *grandchild);
    close(ends[0]);
    close(ends[1]);
    return child;
}

/* Goal: all descendants are found, parents first, also the children of threads; nothing else is. */
static void test_tree(void **state)
{
    (void)state;
    for (int threaded = 0; threaded < 2; threaded++) {
        pid_t grandchild;
        pid_t child = start_child(threaded, &grandchild);
        struct proc_tree tree;
        struct proc proc;
        proc_tree_begin(&tree, getpid());
        assert_true(proc_tree_next(&tree, &proc));
        assert_int_equal(proc.pid, child);
        assert_true(proc_tree_next(&tree, &proc));
        assert_int_equal(proc.pid, grandchild);
        assert_int_equal(proc.parent, child);
        assert_false(proc_tree_next(&tree, &proc));
        assert_int_equal(kill(-child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        proc_tree_begin(&tree, child);
        assert_false(proc_tree_next(&tree, &proc));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_numbers),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
