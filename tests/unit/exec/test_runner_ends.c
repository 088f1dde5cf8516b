// How tasks are ended, and that no process is left of them.
#include "../lib/log_tail.h"
#include "../lib/runner_trial.h"
#include "exec/attempt/child.h"
#include "exec/tree/process_tree.h"

enum { MOST_LATE_MS = 5000 }; /* on a busy machine */

static void set_timeout(struct trial *trial, int64_t ms)
{
    trial->config.task.timeout_ms = ms;
}

static int64_t elapsed_ms(const struct attempt *attempt)
{
    return attempt->duration_us / 1000;
}

// Goal: a task past its timeout gets TERM, and an exit with 0 afterwards is still a timeout.
static void timeout_stays_a_timeout(void **state)
{
    struct trial *trial = *state;
    set_timeout(trial, 3000); /* the shell needs some of it until its trap is set */
    trial->config.task.kill_grace_ms = 30000;
    struct attempt *attempt = run(trial, "trap 'echo got it; exit 0' TERM; sleep 50 & wait");
    assert_ending(attempt, "timeout");
    assert_bytes(attempt->stdout_tail, "got it\n");
    assert_true(elapsed_ms(attempt) >= 2995);
}

// Goal: the task's own timeout overrides the configured one, and 0 means none.
static void own_timeout_counts(void **state)
{
    struct trial *trial = *state;
    assert_ending(run_task(trial, make_task(TEXTS("command", "sleep 50", "timeout", "100ms"), NULL,
                                            0, false)),
                  "timeout");
    set_timeout(trial, 50);
    assert_ending(
        run_task(trial, make_task(TEXTS("command", "sleep 0.3", "timeout", "0"), NULL, 0, false)),
        "exit 0");
}

// Goal: a task that ignores TERM is killed after the grace, children included.
static void grace_ends_with_kill(void **state)
{
    struct trial *trial = *state;
    set_timeout(trial, 3000);
    trial->config.task.kill_grace_ms = 300;
    struct attempt *attempt =
        run(trial, "trap '' TERM; sleep 50 & echo $!; while :; do sleep 1; done");
    assert_ending(attempt, "timeout");
    assert_int_equal(attempt->ending.signal, SIGKILL);
    assert_true(elapsed_ms(attempt) >= 3290);
    assert_true(is_dead(number_in(attempt->stdout_tail)));
}

// Goal: a stopped task is continued so that it receives TERM.
static void stopped_task_hears_term(void **state)
{
    struct trial *trial = *state;
    set_timeout(trial, 3000);
    trial->config.task.kill_grace_ms = 30000;
    struct attempt *attempt = run(trial, "trap 'echo woken; exit 1' TERM; kill -STOP $$");
    assert_ending(attempt, "timeout");
    assert_bytes(attempt->stdout_tail, "woken\n");
}

/* Ends a running task with the event, and returns the attempt. */
static struct attempt *end_with(struct trial *trial, const char *command, enum job_event event)
{
    struct attempt *attempt = begin(trial, command);
    runner_end(trial->runner, attempt, event);
    await(trial, 1);
    return trial->last;
}

// Goal: a lost lease, a stop and a cancel begin with TERM, the last moment with KILL; each has its
// cause.
static void ends_have_their_causes(void **state)
{
    struct trial *trial = *state;
    trial->config.task.kill_grace_ms = 30000;
    struct attempt *attempt = end_with(trial, "sleep 50", JOB_LEASE_LOST);
    assert_ending(attempt, "lease-lost");
    assert_int_equal(attempt->ending.signal, SIGTERM);
    attempt = end_with(trial, "sleep 50", JOB_STOP);
    assert_ending(attempt, "shutdown");
    assert_int_equal(attempt->ending.signal, SIGTERM);
    attempt = end_with(trial, "sleep 50", JOB_CANCEL);
    assert_ending(attempt, "cancelled");
    assert_int_equal(attempt->ending.signal, SIGTERM);
    attempt = end_with(trial, "trap '' TERM; sleep 50", JOB_KILL_NOW);
    assert_ending(attempt, "lease-lost");
    assert_int_equal(attempt->ending.signal, SIGKILL);
}

// Goal: KILL_NOW cuts the grace short, and the first reason stays.
static void kill_now_cuts_the_grace(void **state)
{
    struct trial *trial = *state;
    trial->config.task.kill_grace_ms = 30000;
    struct attempt *attempt = begin(trial, "trap '' TERM; while :; do sleep 1; done");
    runner_end(trial->runner, attempt, JOB_STOP);
    assert_int_equal(attempt->state, JOB_ENDING);
    runner_end(trial->runner, attempt, JOB_LEASE_LOST);
    assert_int_equal(attempt->state, JOB_ENDING);
    runner_end(trial->runner, attempt, JOB_KILL_NOW);
    assert_int_equal(attempt->state, JOB_KILLING);
    await(trial, 1);
    assert_ending(trial->last, "shutdown");
    assert_true(elapsed_ms(trial->last) < 20000);
}

// Goal: a KILL by another process has its own cause. After the lease it is the lease that has ended
// the task, or its check, because the guard was faster.
static void kill_by_others_has_its_cause(void **state)
{
    struct trial *trial = *state;
    static const struct {
        const char *command, *check;
        int64_t deadline_ns;
        const char *ending;
    } table[] = {
        {"kill -9 $$", NULL, 0, "killed by SIGKILL"},
        {"kill -9 $$", NULL, INT64_MAX, "killed by SIGKILL"},
        {"kill -9 $$", NULL, 1, "lease-lost"},
        {"kill -15 $$", NULL, 1, "SIGTERM"},
        {"true", "kill -9 $$", 1, "lease-lost"},
        {"true", "kill -9 $$", INT64_MAX, "check"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct task *task = make_task(TEXTS("command", table[i].command), NULL, 0, false);
        assert_non_null(task);
        task->crashes = 1;
        task->ends = CONFIG_CHECK_AFTER_LOST;
        trial->config.task.check = (char *)table[i].check;
        trial->config.task.check_after = CONFIG_CHECK_AFTER_LOST;
        trial->config.task.check_timeout_ms = 30000;
        runner_set_config(trial->runner, &trial->config);
        const struct claimed_task begun = {.task = task, .lease_deadline_ns = table[i].deadline_ns};
        assert_int_equal(runner_start(trial->runner, &begun, 1), 0);
        await(trial, 1);
        assert_ending(trial->last, table[i].ending);
    }
}

// Goal: a task that has exited keeps its exit status, though the loop learns of it after the order
// to end.
static void own_exit_stands(void **state)
{
    struct trial *trial = *state;
    static const enum job_event events[] = {JOB_LEASE_LOST, JOB_STOP, JOB_CANCEL, JOB_KILL_NOW};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        siginfo_t exit;
        struct attempt *attempt = begin(trial, "exit 5");
        assert_int_equal(waitid(P_ALL, 0, &exit, WEXITED | WNOWAIT), 0);
        runner_end(trial->runner, attempt, events[i]);
        assert_int_equal(trial->ended, i);
        await(trial, 1);
        assert_ending(trial->last, "exit 5");
    }
}

// Goal: background processes of a task are dead when the attempt has ended, in its group, or in
// another group that still holds the output.
static void background_does_not_survive(void **state)
{
    struct trial *trial = *state;
    struct attempt *attempt = run(trial, "sleep 50 >/dev/null 2>&1 & echo $!");
    assert_ending(attempt, "exit 0");
    assert_true(is_dead(number_in(attempt->stdout_tail)));
    attempt = run(trial, "set -m; sleep 50 & echo $!");
    assert_ending(attempt, "exit 0");
    assert_true(is_dead(number_in(attempt->stdout_tail)));
    attempt = end_with(trial, "set -m; sleep 50 >/dev/null 2>&1 & echo $!; wait", JOB_KILL_NOW);
    if (attempt->stdout_tail.size > 0) {
        assert_true(is_dead(number_in(attempt->stdout_tail)));
    }
}

// Goal: a descendant that left the session and holds the output delays the end by at most a second,
// and no earlier output is lost.
static void held_pipe_is_not_waited_for(void **state)
{
    struct trial *trial = *state;
    int64_t before_ns = clock_boot_ns();
    struct attempt *attempt = run(trial, "setsid sh -c 'echo $$; : >up; exec sleep 50' & "
                                         "until [ -e up ]; do sleep 0.01; done");
    int64_t took_ms = (clock_boot_ns() - before_ns) / CLOCK_NS_PER_MS;
    assert_ending(attempt, "exit 0");
    assert_true(took_ms >= 500);
    assert_true(took_ms - elapsed_ms(attempt) < 1000 + MOST_LATE_MS);
    assert_int_equal(kill(number_in(attempt->stdout_tail), SIGKILL), 0);
}

// Goal: a runner that is freed leaves no process.
static void free_leaves_nothing(void **state)
{
    struct trial *trial = *state;
    char path[128], text[32] = "";
    struct timespec pause = {.tv_nsec = 5000000};
    begin(trial, "trap '' TERM; sleep 50 & echo $! >pid.new; mv pid.new pid; wait");
    begin(trial, "sleep 50");
    assert_true(snprintf(path, sizeof path, "%s/pid", trial->folder) > 0);
    int fd = -1;
    for (int tries = 0; fd < 0 && tries < 10000; tries++) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
        nanosleep(&pause, NULL);
    }
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    runner_free(trial->runner);
    trial->runner = NULL;
    assert_int_equal(trial->ended, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    for (int tries = 0; !is_dead((pid_t)strtol(text, NULL, 10)); tries++) {
        assert_true(tries < 10000);
        nanosleep(&pause, NULL);
    }
}

// Goal: children that were not started here are reaped, and do no harm.
static void strangers_are_reaped(void **state)
{
    struct trial *trial = *state;
    pid_t stranger = fork();
    if (stranger == 0) {
        _exit(3);
    }
    assert_ending(run(trial, "sleep 0.05"), "exit 0");
    assert_int_equal(waitpid(stranger, NULL, WNOHANG), -1);
}

// Goal: attempts are listed newest first, and each ends once, in any order.
static void list_holds_what_runs(void **state)
{
    struct trial *trial = *state;
    struct attempt *first = begin(trial, "sleep 50");
    struct attempt *second = begin(trial, "sleep 50");
    struct attempt *third = begin(trial, "sleep 50");
    assert_ptr_equal(runner_first(trial->runner), third);
    assert_ptr_equal(LIST_NEXT(third, link), second);
    assert_ptr_equal(LIST_NEXT(second, link), first);
    assert_null(LIST_NEXT(first, link));
    runner_end(trial->runner, second, JOB_KILL_NOW);
    await(trial, 1);
    assert_ptr_equal(trial->last, second);
    assert_ptr_equal(LIST_NEXT(third, link), first);
    assert_int_equal(runner_count(trial->runner), 2);
    runner_end(trial->runner, third, JOB_KILL_NOW);
    runner_end(trial->runner, first, JOB_KILL_NOW);
    await(trial, 2);
    assert_null(runner_first(trial->runner));
}

// Goal: lines go to the log with the task's fields, also a last one without a newline.
static void lines_are_logged(void **state)
{
    struct trial *trial = *state;
    struct log_tail log;
    log_tail_open(&log);
    trial->config.output.to = CONFIG_OUTPUT_JOURNAL;
    trial->config.output.max_line = 64;
    assert_ending(run(trial, "echo one; printf 'a\\033[31mb\\nlast'; echo bad >&2"), "exit 0");
    const char *text = log_tail_read(&log);
    assert_non_null(strstr(text, "one"));
    assert_non_null(strstr(text, "a\\x1b[31mb"));
    assert_non_null(strstr(text, "last"));
    assert_non_null(strstr(text, "bad"));
    log_tail_close(&log);
}

static long resident_kib(void)
{
    char text[128] = "";
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    const char *resident = strchr(text, ' ');
    assert_non_null(resident);
    return strtol(resident, NULL, 10) * (sysconf(_SC_PAGESIZE) / 1024);
}

// Goal: floods with and without newlines neither make the daemon grow nor delay other tasks'
// timeouts.
static void floods_are_bounded(void **state)
{
    struct trial *trial = *state;
    struct log_tail log;
    log_tail_open_null(&log);
    trial->config.output.to = CONFIG_OUTPUT_JOURNAL;
    assert_ending(run(trial, "echo warm"), "exit 0");
    long before_kib = resident_kib();
    begin(trial, "yes");
    begin(trial, "cat /dev/zero");
    begin(trial, "cat /dev/urandom >&2");
    struct task *quick = make_task(TEXTS("command", "sleep 50", "timeout", "1s"), NULL, 0, false);
    start_task_now(trial, quick);
    await(trial, 1);
    assert_ending(trial->last, "timeout");
    assert_ptr_equal(trial->last->task, quick);
    assert_true(elapsed_ms(trial->last) < 1000 + MOST_LATE_MS);
    for (struct attempt *attempt = runner_first(trial->runner); attempt;
         attempt = LIST_NEXT(attempt, link)) {
        runner_end(trial->runner, attempt, JOB_KILL_NOW);
    }
    await(trial, 3);
    long growth_kib = resident_kib() - before_kib;
    log_tail_close(&log);
    if (growth_kib > 8 * 1024) {
        fail_msg("grown by %ld KiB", growth_kib);
    }
}

/* Goal: a second runner starts, counts and reports its own attempts, with its own config, while
 * the first receives all exits; its processes end with it, and the first goes on. */
static void one_beside_keeps_to_itself(void **state)
{
    struct trial *trial = *state, other = {.loop = trial->loop};
    struct runner_events events = {.ended = on_ended, .context = &other};
    struct config config = trial->config;
    config.task.command = (char *)"echo $LEAT_WORKER-$LEAT_TASK; exit 4";
    size_t descriptors = count_descriptors();
    other.runner = runner_new_beside(trial->runner, &config, &events);
    assert_non_null(other.runner);

    begin(trial, "sleep 60");
    start_task_now(&other, make_task(TEXTS("a", "b"), NULL, 0, true));
    assert_int_equal(runner_count(trial->runner), 1);
    assert_int_equal(runner_count(other.runner), 1);
    await(&other, 1);
    assert_ending(other.last, "exit 4");
    assert_bytes(other.last->stdout_tail, "-1700000000123-0\n");
    assert_int_equal(trial->ended, 0);

    /* more than the table's initial size */
    for (int i = 0; i < 100; i++) {
        begin(trial, "sleep 0.2");
    }
    config.task.command = (char *)"sleep 60";
    runner_set_config(other.runner, &config);
    start_task_now(&other, make_task(TEXTS("a", "b"), NULL, 0, true));
    pid_t left = ((struct child *)runner_first(other.runner))->pid;
    runner_free(other.runner);
    assert_true(is_dead(left));
    await(trial, 100);
    runner_end(trial->runner, runner_first(trial->runner), JOB_STOP);
    await(trial, 1);
    assert_int_equal(runner_count(trial->runner), 0);
    attempt_free(other.last);
    assert_int_equal(count_descriptors(), descriptors);
}

/* The numbers in the file, as soon as there are this many. */
static void await_numbers(const struct trial *trial, const char *name, pid_t *numbers, size_t count)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    char path[128], line[32];
    size_t found = 0;
    assert_true(snprintf(path, sizeof path, "%s/%s", trial->folder, name) > 0);
    for (int tries = 0; found < count; tries++) {
        assert_true(tries < 10000);
        nanosleep(&pause, NULL);
        FILE *file = fopen(path, "re");
        for (found = 0; file && found < count && fgets(line, sizeof line, file); found++) {
            numbers[found] = (pid_t)strtol(line, NULL, 10);
        }
        if (file) {
            fclose(file);
        }
    }
}

// Goal: if many tasks are ended together, all their processes are found, also those that left the
// session, and processes of another task are left alone until its turn comes.
static void many_leave_nothing(void **state)
{
    struct trial *trial = *state;
    enum { EACH = 8 };
    pid_t strays[EACH], neighbours[1];
    assert_int_equal(process_tree_adopt(), 0);
    struct task *other = make_task(
        TEXTS("command", "(setsid sh -c 'echo $$ >>neighbours; exec sleep 50' &); sleep 50"), NULL,
        0, false);
    other->fence++; /* the others are all of one attempt */
    start_task_now(trial, other);
    struct attempt *neighbour = runner_first(trial->runner);
    for (int i = 0; i < EACH; i++) {
        begin(trial, "sleep 50");
        begin(trial, "sleep 50; true");
        begin(trial, "(setsid sh -c 'echo $$ >>strays; exec sleep 50' &); sleep 50");
    }
    await_numbers(trial, "strays", strays, EACH);
    await_numbers(trial, "neighbours", neighbours, 1);
    for (struct attempt *each = runner_first(trial->runner); each != neighbour;
         each = LIST_NEXT(each, link)) {
        runner_end(trial->runner, each, JOB_STOP);
    }
    await(trial, (size_t)3 * EACH);
    for (int i = 0; i < EACH; i++) {
        assert_true(is_dead(strays[i]));
    }
    assert_false(is_dead(neighbours[0]));
    runner_end(trial->runner, neighbour, JOB_STOP);
    await(trial, 1);
    assert_true(is_dead(neighbours[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(timeout_stays_a_timeout),
        TEST(own_timeout_counts),
        TEST(grace_ends_with_kill),
        TEST(stopped_task_hears_term),
        TEST(ends_have_their_causes),
        TEST(kill_now_cuts_the_grace),
        TEST(own_exit_stands),
        TEST(kill_by_others_has_its_cause),
        TEST(background_does_not_survive),
        TEST(held_pipe_is_not_waited_for),
        TEST(free_leaves_nothing),
        TEST(strangers_are_reaped),
        TEST(list_holds_what_runs),
        TEST(lines_are_logged),
        TEST(one_beside_keeps_to_itself),
        TEST(floods_are_bounded),
        TEST(many_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
