/* Which processes a guard kills: real processes, and entries as daemon and child fill them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/proc.h"
#include "exec/guard/guard_kill.h"
#include "exec/tree/env_tag.h"

enum { PLACE = 3, ROUNDS = 500, TICKS = 3 };

static struct guard_shared *shared; /* too large for a stack */
static char worker[32];             /* another one in each process that runs these tests */

static void wait_ns(int64_t ns)
{
    const struct timespec pause = {.tv_nsec = (long)ns};
    assert_int_equal(nanosleep(&pause, NULL), 0);
}

static int set_up(void **state)
{
    (void)state;
    shared = calloc(1, sizeof *shared);
    assert_non_null(shared);
    shared->bound = PLACE + 1;
    (void)snprintf(worker, sizeof worker, "w:%d:a", (int)getpid());
    return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(shared);
    return 0;
}

static _Noreturn void stay(void)
{
    (void)alarm(60); /* if the test hangs */
    for (;;) {
        pause();
    }
}

/* A leader, whose pid the test writes into the entry, and a member of its session, in its group
 * or in one of its own. *member is read through a pipe. */
static pid_t start_task(bool apart, pid_t *member)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t leader = fork();
    if (leader == 0) {
        setsid();
        pid_t other = fork();
        if (other == 0) {
            if (apart) {
                setpgid(0, 0);
            }
            other = getpid();
            if (write(ends[1], &other, sizeof other) != sizeof other) {
                _exit(1);
            }
        }
        stay();
    }
    assert_int_equal(read(ends[0], member, sizeof *member), sizeof *member);
    close(ends[0]);
    close(ends[1]);
    return leader;
}

static bool lives(pid_t pid)
{
    struct proc proc;
    return proc_read(pid, &proc) && proc_is_alive(&proc);
}

static void reap(pid_t pid)
{
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
}

/* Runs rounds until one returns this. Returns the last result. The pauses grow as those of a guard,
 * which gives a busy machine time to execute a program. */
static enum guard_left kill_until(enum guard_left wanted)
{
    enum guard_left left = GUARD_LEFT_LIVING;
    for (int i = 0; i < ROUNDS && left != wanted; i++) {
        left = guard_kill_round(shared);
        wait_ns((i < 6 ? 4 << i : 128) * CLOCK_NS_PER_MS);
    }
    return left;
}

static void take(struct guard_entry *slot)
{
    guard_kill_add(PLACE, guard_entry_take(slot, UINT64_MAX));
}

/* Goal: the whole session dies, also processes that have left the leader's group. */
static void test_session(void **state)
{
    (void)state;
    for (int apart = 0; apart < 2; apart++) {
        struct guard_entry *slot = &shared->entries[PLACE];
        pid_t member;
        guard_entry_arm(slot, GUARD_NEVER);
        pid_t leader = start_task(apart, &member);
        slot->pid = leader;
        slot->born_ns = clock_boot_ns();
        take(slot);
        assert_int_equal(kill_until(GUARD_LEFT_NONE), GUARD_LEFT_NONE);
        assert_false(lives(leader) || lives(member));
        reap(leader);
        reap(member);
        guard_entry_disarm(slot);
    }
}

/* Goal: a process that is younger than the child's record has reused the pid: it is not killed,
 * nor its session, and the child counts as gone. */
static void test_number_of_another(void **state)
{
    (void)state;
    struct guard_entry *slot = &shared->entries[PLACE];
    pid_t member;
    guard_entry_arm(slot, GUARD_NEVER);
    int64_t before_ns = clock_boot_ns();
    wait_ns(TICKS * PROC_TICK_NS);
    pid_t other = start_task(true, &member);
    slot->pid = other;
    slot->born_ns = before_ns;
    take(slot);
    /* a process of that session may be the task's: it is not killed, and the task not called
     * dead */
    for (int i = 0; i < 20; i++) {
        assert_int_equal(guard_kill_round(shared), GUARD_LEFT_DOUBTFUL);
    }
    assert_true(lives(other) && lives(member));
    assert_int_equal(kill(member, SIGKILL), 0);
    assert_int_equal(kill_until(GUARD_LEFT_NONE), GUARD_LEFT_NONE);
    assert_true(lives(other));
    reap(other);
    reap(member);
    guard_entry_disarm(slot);
}

/* Goal: after the daemon has reaped the leader, a process with its pid is not killed; processes
 * of its session by then are. */
static void test_reaped_leader(void **state)
{
    (void)state;
    struct guard_entry *slot = &shared->entries[PLACE];
    pid_t member;
    guard_entry_arm(slot, GUARD_NEVER);
    pid_t leader = start_task(true, &member);
    slot->pid = leader;
    slot->born_ns = clock_boot_ns();
    wait_ns(TICKS * PROC_TICK_NS);
    guard_entry_ends(slot, clock_boot_ns());
    take(slot);
    assert_int_equal(kill_until(GUARD_LEFT_NONE), GUARD_LEFT_NONE);
    assert_false(lives(member));
    assert_true(lives(leader)); /* in the place of another process */
    reap(leader);
    reap(member);
    guard_entry_disarm(slot);
}

/* Goal: after the daemon's death and a reaping by another process, the processes of the session
 * from the daemon's time are killed. Younger ones may be of another session with that id. */
static void test_inherited_leader(void **state)
{
    (void)state;
    struct guard_entry *slot = &shared->entries[PLACE];
    for (int younger = 0; younger < 2; younger++) {
        pid_t member;
        guard_entry_arm(slot, GUARD_NEVER);
        slot->born_ns = shared->alive_ns = clock_boot_ns();
        pid_t leader = start_task(true, &member);
        slot->pid = leader;
        wait_ns(TICKS * PROC_TICK_NS);
        shared->alive_ns = younger ? shared->alive_ns : clock_boot_ns();
        reap(leader);
        take(slot);
        enum guard_left wanted = younger ? GUARD_LEFT_DOUBTFUL : GUARD_LEFT_NONE;
        assert_int_equal(kill_until(wanted), wanted);
        assert_int_equal(lives(member), younger);
        reap(member);
        guard_entry_disarm(slot);
    }
}

/* Goal: if the entry has passed to the next process while the guard was at work, the guard
 * stops. */
static void test_passed_on(void **state)
{
    (void)state;
    struct guard_entry *slot = &shared->entries[PLACE];
    pid_t member;
    guard_entry_arm(slot, GUARD_NEVER);
    take(slot);
    guard_entry_disarm(slot);
    guard_entry_arm(slot, GUARD_NEVER);
    pid_t leader = start_task(false, &member);
    slot->pid = leader;
    slot->born_ns = clock_boot_ns();
    for (int i = 0; i < 10; i++) {
        assert_int_equal(guard_kill_round(shared), GUARD_LEFT_NONE);
    }
    assert_true(lives(leader) && lives(member));
    reap(leader);
    reap(member);
    guard_entry_disarm(slot);
}

/* Executes the shell with that environment, in a session of its own: it reads a line, runs the
 * other commands, and executes sleep, without another program between them, which would show an
 * environment that is neither. */
static pid_t start_stray(int *input, char *const *environment, const char *then)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char line[200];
        (void)snprintf(line, sizeof line, "read x; %s exec sleep 60", then);
        char *const words[] = {"sh", "-c", line, NULL};
        setsid();
        dup2(ends[0], 0);
        close(ends[1]);
        execve("/bin/sh", words, environment);
        _exit(127);
    }
    close(ends[0]);
    *input = ends[1];
    return pid;
}

/* Goal: a process that has left the session shows no environment while it executes: the guard
 * waits for it, and kills it if it is the task's. */
static void test_stray_that_executes(void **state)
{
    (void)state;
    struct guard_entry *slot = &shared->entries[PLACE];
    char *const nothing[] = {NULL};
    char tags[80];
    (void)snprintf(tags, sizeof tags, "export LEAT_WORKER=%s LEAT_TASK=1-2 LEAT_FENCE=1;", worker);
    const char *const then[] = {tags, ""};
    for (int others = 0; others < 2; others++) {
        int input;
        slot->tag =
            env_tag_attempt(env_tag_worker(worker), &(struct task){.tid = "1-2", .fence = 1});
        guard_entry_arm(slot, GUARD_NEVER);
        slot->born_ns = clock_boot_ns();
        slot->ended_ns = slot->born_ns;
        slot->pid = INT32_MAX;
        wait_ns(TICKS * PROC_TICK_NS);
        pid_t stray = start_stray(&input, nothing, then[others]);
        while (env_tag_read(stray) != ENV_TAG_BLANK) {
            wait_ns(CLOCK_NS_PER_MS);
        }
        take(slot);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(guard_kill_round(shared), GUARD_LEFT_LIVING);
        }
        assert_int_equal(write(input, "\n", 1), 1);
        assert_int_equal(kill_until(GUARD_LEFT_NONE), GUARD_LEFT_NONE);
        assert_int_equal(lives(stray), others);
        close(input);
        reap(stray);
        guard_entry_disarm(slot);
        slot->tag = 0;
    }
}

/* Goal: before a walk through /proc, which may take longer than the lease, the guard kills what
 * descends from the daemon: the session of a task, and a stray. It kills nothing else. */
static void test_near(void **state)
{
    (void)state;
    struct guard_entry *slot = &shared->entries[PLACE];
    char worker_tag[64];
    char *const tag[] = {worker_tag, "LEAT_TASK=1-2", "LEAT_FENCE=1", NULL};
    (void)snprintf(worker_tag, sizeof worker_tag, "LEAT_WORKER=%s", worker);
    slot->tag = env_tag_attempt(env_tag_worker(worker), &(struct task){.tid = "1-2", .fence = 1});
    for (int daemon = 0; daemon < 2; daemon++) {
        pid_t member;
        int input;
        guard_entry_arm(slot, GUARD_NEVER);
        pid_t leader = start_task(true, &member);
        slot->pid = leader;
        slot->born_ns = clock_boot_ns(); /* no stray is older */
        pid_t stray = start_stray(&input, tag, "");
        while (env_tag_read(stray) != slot->tag) {
            wait_ns(CLOCK_NS_PER_MS);
        }
        take(slot);
        /* the leader's only descendant is the member */
        shared->daemon = daemon ? getpid() : leader;
        for (int i = 0; i < ROUNDS && (lives(member) || (daemon && lives(stray))); i++) {
            guard_kill_near(shared);
            wait_ns(CLOCK_NS_PER_MS);
        }
        assert_false(lives(member));
        assert_int_equal(lives(stray), !daemon);
        assert_int_equal(kill_until(GUARD_LEFT_NONE), GUARD_LEFT_NONE);
        assert_false(lives(leader) || lives(stray));
        close(input);
        reap(leader);
        reap(stray);
        reap(member);
        guard_entry_disarm(slot);
    }
    slot->tag = 0;
    shared->daemon = 0;
}

/* Goal: before the first child there is nothing to kill. */
static void test_no_child_yet(void **state)
{
    (void)state;
    struct guard_entry *slot = &shared->entries[PLACE];
    guard_entry_arm(slot, GUARD_NEVER);
    take(slot);
    assert_int_equal(guard_kill_round(shared), GUARD_LEFT_NONE);
    guard_entry_disarm(slot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_session),
        cmocka_unit_test(test_number_of_another),
        cmocka_unit_test(test_reaped_leader),
        cmocka_unit_test(test_passed_on),
        cmocka_unit_test(test_no_child_yet),
        cmocka_unit_test(test_inherited_leader),
        cmocka_unit_test(test_stray_that_executes),
        cmocka_unit_test(test_near),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
