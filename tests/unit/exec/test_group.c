// Processes that a leader has left: real processes, in a session of their own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/tree/group.h"

static const struct group_orphans unknown; /* without knowledge of orphans all of /proc is read */

static _Noreturn void stay(void)
{
    (void)alarm(60); /* if the test hangs */
    for (;;) {
        pause();
    }
}

/* The leader of a session, dead but not reaped, has left one process: in its group, or in
 * another. */
static pid_t leave(bool apart, pid_t *left)
{
    int ends[2];
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(pipe(ends), 0);
    pid_t leader = fork();
    if (leader == 0) {
        pid_t pid = setsid() < 0 ? -1 : fork();
        if (pid == 0) {
            pid = getpid();
            if ((apart && setpgid(0, 0) < 0) ||
                write(ends[1], &pid, sizeof pid) != (ssize_t)sizeof pid) {
                _exit(1);
            }
            stay();
        }
        _exit(0);
    }
    assert_true(leader > 0);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(read(ends[0], left, sizeof *left), sizeof *left);
    assert_int_equal(close(ends[0]), 0);
    siginfo_t exit;
    assert_int_equal(waitid(P_PID, (id_t)leader, &exit, WEXITED | WNOWAIT), 0);
    return leader;
}

static void end(pid_t pid)
{
    (void)kill(pid, SIGKILL); /* it may be dead */
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* From now on only this many descriptors can be opened. */
static void leave_free(unsigned count, struct rlimit *former)
{
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(next >= 0);
    assert_int_equal(close(next), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, former), 0);
    const struct rlimit limit = {(rlim_t)next + count, former->rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void free_all(const struct rlimit *former)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, former), 0);
}

// Goal: a group with a living process is not called dead if there is no descriptor to look for that
// process, or only one, which reading the folder of processes takes.
static void what_cannot_be_looked_at_is_alive(void **state)
{
    (void)state;
    pid_t left;
    pid_t leader = leave(false, &left);
    end(leader);
    assert_true(group_is_alive(leader, &unknown));
    for (unsigned count = 0; count < 2; count++) {
        struct rlimit former;
        leave_free(count, &former);
        bool alive = group_is_alive(leader, &unknown);
        free_all(&former);
        assert_true(alive);
    }
    end(left);
    assert_false(group_is_alive(leader, &unknown));
}

// Goal: if a process has left the group and could not be looked for at the kill, it is looked for
// again.
static void strays_that_cannot_be_looked_for_may_be_there(void **state)
{
    (void)state;
    for (unsigned count = 0; count < 2; count++) {
        pid_t left;
        pid_t leader = leave(true, &left);
        struct rlimit former;
        leave_free(count, &former);
        bool strays = group_kill_strays(leader, &unknown);
        bool alive = group_strays_are_alive(leader, &unknown);
        free_all(&former);
        assert_true(strays);
        assert_true(alive);
        assert_true(count > 0 || group_kill_strays(leader, &unknown)); /* one is enough */
        end(left);
        end(leader);
        assert_false(group_strays_are_alive(leader, &unknown));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_looked_at_is_alive),
        cmocka_unit_test(strays_that_cannot_be_looked_for_may_be_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
