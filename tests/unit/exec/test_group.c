// Processes that a leader has left: real processes, in a session of their own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/tree/env_tag.h"
#include "exec/tree/group.h"
#include "exec/tree/process_tree.h"

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
        bool doubtful;
        bool strays = group_kill_strays(leader, &unknown);
        bool alive = group_strays_are_alive(leader, &unknown, &doubtful);
        free_all(&former);
        assert_true(strays);
        assert_true(alive);
        assert_true(count > 0 || group_kill_strays(leader, &unknown)); /* one is enough */
        end(left);
        end(leader);
        assert_false(group_strays_are_alive(leader, &unknown, &doubtful));
    }
}

static bool has_started_none(void *context, pid_t pid)
{
    (void)context;
    (void)pid;
    return false;
}

#define VARIABLES "LEAT_WORKER=w:1:a LEAT_TASK=1-2 LEAT_FENCE=1"

/* The orphans of the attempt 1-2, which has the variables. */
static struct group_orphans own_orphans(void)
{
    uint64_t worker = env_tag_worker("w:1:a");
    return (struct group_orphans){
        .tag = env_tag_attempt(worker, &(struct task){.tid = "1-2", .fence = 1}),
        .is_started = has_started_none};
}

/* A dead leader that is not reaped. */
static pid_t start_dead_leader(void)
{
    siginfo_t exit;
    pid_t leader = fork();
    if (leader == 0) {
        _exit(setsid() < 0 ? 1 : 0);
    }
    assert_int_equal(waitid(P_PID, (id_t)leader, &exit, WEXITED | WNOWAIT), 0);
    return leader;
}

/* Starts a shell without any environment in a session of its own. Returns when it shows none. */
static pid_t start_orphan(char *script, int *input, int *output)
{
    char *const words[] = {"sh", "-c", script, NULL};
    char *const nothing[] = {NULL};
    int in[2], out[2], executed[2];
    assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC) | pipe2(executed, O_CLOEXEC), 0);
    pid_t orphan = fork();
    if (orphan == 0) {
        if (dup2(in[0], 0) == 0 && dup2(out[1], 1) == 1 && setsid() > 0) {
            execve("/bin/sh", words, nothing);
        }
        _exit(127);
    }
    assert_true(orphan > 0);
    assert_int_equal(close(in[0]) | close(out[1]) | close(executed[1]), 0);
    char end_of_file;
    assert_int_equal(read(executed[0], &end_of_file, 1), 0);
    assert_int_equal(close(executed[0]), 0);
    assert_true(env_tag_read(orphan) == ENV_TAG_BLANK);
    *input = in[1];
    *output = out[0];
    return orphan;
}

// Goal: an orphan that shows no environment, as while it executes a program, may be the task's: it
// is looked at again, and killed when it shows the task's. One that never does holds up nothing for
// long.
static void an_orphan_without_environment_is_doubtful(void **state)
{
    (void)state;
    const struct group_orphans orphans = own_orphans();
    for (int shows = 0; shows < 2; shows++) {
        int input, output, looks = 1;
        siginfo_t exit = {0};
        pid_t leader = start_dead_leader();
        pid_t orphan = start_orphan("read x; export " VARIABLES "; exec cat", &input, &output);

        struct process_tree tree;
        process_tree_begin(&tree, leader, NULL, &orphans);
        process_tree_kill_strays(&tree);
        end(leader);
        assert_false(process_tree_is_gone(&tree, true));
        if (shows) {
            char echo;
            assert_int_equal(write(input, "\nx", 2), 2);
            assert_int_equal(read(output, &echo, 1), 1); /* cat runs */
            assert_false(process_tree_is_gone(&tree, true));
            assert_int_equal(waitid(P_PID, (id_t)orphan, &exit, WEXITED | WNOWAIT), 0);
            assert_int_equal(exit.si_status, SIGKILL);
            assert_true(process_tree_is_gone(&tree, true));
        } else {
            for (; !process_tree_is_gone(&tree, true); looks++) {
                assert_true(looks < 10);
            }
            assert_int_equal(waitpid(orphan, NULL, WNOHANG), 0);
        }
        end(orphan);
        assert_int_equal(close(input) | close(output), 0);
    }
}

// Goal: a process of the task is killed although its parent, which shows no environment, keeps it
// from becoming this process's child, as one does that exits slowly.
static void a_process_below_such_an_orphan_is_killed(void **state)
{
    (void)state;
    enum { PATIENCE_MS = 60000 };
    const struct group_orphans orphans = own_orphans();
    int input, output;
    char echo;
    pid_t leader = start_dead_leader();
    pid_t orphan =
        start_orphan("exec 3<&0; " VARIABLES " cat <&3 & exec 1>&-; wait", &input, &output);
    assert_int_equal(write(input, "x", 1), 1);
    assert_int_equal(read(output, &echo, 1), 1); /* cat runs */

    struct process_tree tree;
    process_tree_begin(&tree, leader, NULL, &orphans);
    process_tree_kill_strays(&tree);
    end(leader);
    struct pollfd end_of_file = {.fd = output, .events = POLLIN};
    assert_int_equal(poll(&end_of_file, 1, PATIENCE_MS), 1); /* cat has ended */
    assert_int_equal(read(output, &echo, 1), 0);
    end(orphan);
    assert_int_equal(close(input) | close(output), 0);
}

/* Executed as an orphan: forks and ends again and again, in a session of its own each time, until
 * the test closes the other end. */
static _Noreturn void hop(int input)
{
    struct pollfd closed = {.fd = input};
    while (poll(&closed, 1, 0) == 0) {
        if (fork() != 0 || setsid() < 0) {
            break;
        }
    }
    _exit(0);
}

// Goal: no look misses a process that forks and ends all the time, although each of its processes
// is there for a moment only.
static void a_process_that_forks_and_ends_is_never_missed(void **state)
{
    (void)state;
    enum { LOOKS = 300 };
    const struct group_orphans orphans = {.tag = 1, .is_started = has_started_none};
    bool doubtful;
    int ends[2];
    char *const words[] = {"test_group", "hop", NULL}, *const nothing[] = {NULL};
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t first = fork();
    if (first == 0) {
        execve(dup2(ends[0], 0) == 0 ? "/proc/self/exe" : "", words, nothing);
        _exit(127);
    }
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(waitpid(first, NULL, 0), first); /* it has forked */
    for (int look = 0; look < LOOKS; look++) {
        assert_false(group_strays_are_alive(first, &orphans, &doubtful));
        assert_true(doubtful);
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
    }
    assert_int_equal(close(ends[1]), 0);
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1) {
        hop(0);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_looked_at_is_alive),
        cmocka_unit_test(strays_that_cannot_be_looked_for_may_be_there),
        cmocka_unit_test(an_orphan_without_environment_is_doubtful),
        cmocka_unit_test(a_process_below_such_an_orphan_is_killed),
        cmocka_unit_test(a_process_that_forks_and_ends_is_never_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
