// Processes that dead leaders have left, by scans of our children: real processes, in tables like
// the runner's.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/attempt/child.h"
#include "exec/attempt/child_table.h"
#include "exec/attempt/orphan_scan.h"

enum { LEADERS = 20 };

struct trial {
    struct child_table running, settling;
    struct orphan_scan look;
    struct group_orphans orphans;
    struct child leaders[LEADERS];
    size_t count;
    pid_t strays[LEADERS];
    size_t stray_count;
};

static int set_up(void **state)
{
    struct trial *trial = calloc(1, sizeof *trial);
    *state = trial;
    if (!trial || child_table_init(&trial->running) || child_table_init(&trial->settling)) {
        return -1;
    }
    trial->look = (struct orphan_scan){.running = &trial->running, .settling = &trial->settling};
    trial->orphans = orphan_scan_orphans(&trial->look);
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static int tear_down(void **state)
{
    struct trial *trial = *state;
    for (size_t i = 0; i < trial->count; i++) {
        (void)kill(-trial->leaders[i].pid, SIGKILL); /* it may be dead */
    }
    for (size_t i = 0; i < trial->stray_count; i++) {
        (void)kill(trial->strays[i], SIGKILL);
    }
    while (waitpid(-1, NULL, 0) > 0) {
    }
    child_table_free(&trial->running);
    child_table_free(&trial->settling);
    free(trial);
    return 0;
}

static _Noreturn void stay(void)
{
    for (;;) {
        pause();
    }
}

/* The process that a leader leaves. */
enum kind { NOTHING, OTHER_GROUP, OTHER_SESSION };

/* An orphan of this process when its parent, the process in between, has died. */
static pid_t leave(enum kind kind)
{
    int ends[2];
    pid_t left = 0;
    if (pipe(ends) < 0) {
        _exit(1);
    }
    pid_t between = fork();
    if (between == 0) {
        left = fork();
        if (left == 0) {
            if ((kind == OTHER_GROUP ? setpgid(0, 0) : setsid()) < 0) {
                _exit(1);
            }
            left = getpid();
            if (write(ends[1], &left, sizeof left) != (ssize_t)sizeof left) {
                _exit(1);
            }
            stay();
        }
        stay();
    }
    if (read(ends[0], &left, sizeof left) != (ssize_t)sizeof left || kill(between, SIGKILL) < 0 ||
        waitpid(between, NULL, 0) < 0) {
        _exit(1);
    }
    return left;
}

/* A leader in the table of running ones that leaves such a process. */
static struct child *lead(struct trial *trial, enum kind kind)
{
    int ends[2];
    pid_t left = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (setsid() < 0) {
            _exit(1);
        }
        left = kind == NOTHING ? 0 : leave(kind);
        if (write(ends[1], &left, sizeof left) != (ssize_t)sizeof left) {
            _exit(1);
        }
        stay();
    }
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(read(ends[0], &left, sizeof left), sizeof left);
    assert_int_equal(close(ends[0]), 0);
    if (left > 0) {
        trial->strays[trial->stray_count++] = left;
    }
    struct child *child = &trial->leaders[trial->count++];
    child->pid = child->tree.leader = pid;
    child_table_add(&trial->running, child);
    return child;
}

static void die(pid_t pid)
{
    siginfo_t exit;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &exit, WEXITED | WNOWAIT), 0);
}

/* Handles its exit as the runner does. Returns what it has left. */
static enum group_left settle(struct trial *trial, struct child *child)
{
    child_table_remove(&trial->running, child);
    child_table_add(&trial->settling, child);
    enum group_left left = trial->orphans.left(trial->orphans.context, child->pid, true);
    assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
    return left;
}

// Goal: one scan answers for all leaders that were dead by then, and for no others, so that many
// ends together need no scan each.
static void one_look_serves_all_that_are_dead(void **state)
{
    struct trial *trial = *state;
    for (size_t i = 0; i < LEADERS; i++) {
        lead(trial, NOTHING);
    }
    for (size_t i = 0; i + 1 < LEADERS; i++) {
        die(trial->leaders[i].pid);
    }
    assert_int_equal(settle(trial, &trial->leaders[5]), GROUP_NOTHING);
    int64_t ended_ns = trial->look.ended_ns;
    for (size_t i = 0; i + 1 < LEADERS; i++) {
        assert_int_equal(trial->leaders[i].tree.left, GROUP_NOTHING);
    }
    assert_int_equal(settle(trial, &trial->leaders[7]), GROUP_NOTHING);
    assert_int_equal(trial->look.ended_ns, ended_ns);

    struct child *last = &trial->leaders[LEADERS - 1];
    assert_int_equal(last->tree.left, GROUP_UNKNOWN);
    die(last->pid);
    assert_int_equal(settle(trial, last), GROUP_NOTHING);
    assert_true(trial->look.ended_ns > ended_ns);
}

// Goal: a process that has left its group, but not its session, counts for the leader of that
// session alone, for none while the leader runs, and no longer after its own death.
static void strays_count_for_their_session(void **state)
{
    struct trial *trial = *state;
    struct child *plain = lead(trial, NOTHING), *strewing = lead(trial, OTHER_GROUP),
                 *neighbour = lead(trial, OTHER_GROUP), *next = lead(trial, OTHER_GROUP);
    die(plain->pid);
    die(strewing->pid);
    die(next->pid);
    assert_int_equal(settle(trial, plain), GROUP_NOTHING);
    assert_int_equal(neighbour->tree.left, GROUP_UNKNOWN);
    assert_int_equal(settle(trial, strewing), GROUP_STRAYS);
    die(trial->strays[2]);
    assert_int_equal(settle(trial, next), GROUP_NOTHING);
    assert_int_equal(kill(trial->strays[1], 0), 0);
}

// Goal: a process in an unknown session may belong to any leader, and so counts for all dead ones.
static void strays_of_no_session_count_for_all(void **state)
{
    struct trial *trial = *state;
    struct child *plain = lead(trial, NOTHING), *strewing = lead(trial, OTHER_SESSION),
                 *next = lead(trial, NOTHING);
    die(plain->pid);
    die(strewing->pid);
    die(next->pid);
    assert_int_equal(settle(trial, plain), GROUP_STRAYS);
    assert_int_equal(settle(trial, strewing), GROUP_STRAYS);
    die(trial->strays[0]);
    assert_int_equal(settle(trial, next), GROUP_NOTHING);
    /* the scan has reaped the dead one */
    assert_int_equal(waitpid(trial->strays[0], NULL, WNOHANG), -1);
}

// Goal: if orphans do not become children of this process, nothing is known.
static void nothing_is_known_without_adoption(void **state)
{
    struct trial *trial = *state;
    struct child *plain = lead(trial, NOTHING);
    die(plain->pid);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    assert_int_equal(settle(trial, plain), GROUP_STRAYS);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_look_serves_all_that_are_dead),
        TEST(strays_count_for_their_session),
        TEST(strays_of_no_session_count_for_all),
        TEST(nothing_is_known_without_adoption),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
