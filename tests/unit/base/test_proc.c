#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/proc.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_numbers),
        cmocka_unit_test(test_walk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
