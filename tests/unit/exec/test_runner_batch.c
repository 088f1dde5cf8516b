/* Batches in the runner: each task is reported once, with its own outcome, however the process
 * ends. */
#include "../lib/runner_trial.h"

enum { MANY = 5 };
#define LEASE_END INT64_MAX /* of the first task; each other's ends 1 ns before */

/* Starts one process for this many tasks, all with that payload. */
static void begin_payloads(struct trial *trial, const char *command, const char *const *payloads,
                           size_t count)
{
    struct claimed_task begun[MANY];
    static const char *const tids[MANY] = {"1-1", "1-2", "1-3", "1-4", "1-5"};
    trial->config.task.command = (char *)command;
    trial->config.task.batch = 10;
    runner_set_config(trial->runner, &trial->config);
    for (size_t i = 0; i < count; i++) {
        struct task *task = make_task(TEXTS("size", "x"), payloads[i], strlen(payloads[i]), true);
        assert_non_null(task);
        task->tid = tids[i];
        begun[i] = (struct claimed_task){.task = task, .lease_deadline_ns = LEASE_END - (int64_t)i};
    }
    assert_int_equal(runner_start(trial->runner, begun, count), 0);
}

static void begin_batch(struct trial *trial, const char *command, size_t count)
{
    static const char *const payloads[MANY] = {"line", "line", "line", "line", "line"};
    begin_payloads(trial, command, payloads, count);
}

static struct attempt *find_state(struct trial *trial, enum job_state state)
{
    struct attempt *one = runner_first(trial->runner);
    while (one && one->state != state) {
        one = LIST_NEXT(one, link);
    }
    return one;
}

/* Starts a batch that fails at once, and whose first half then runs until it is ended. */
static void begin_halves(struct trial *trial)
{
    begin_batch(trial, "[ $LEAT_BATCH = 5 ] && exit 3; exec sleep 600", MANY);
    while (!find_state(trial, JOB_CLAIMED)) {
        ev_run(trial->loop, EVRUN_ONCE);
    }
}

/* Goal: one process has as many attempts as tasks, which are all reported in their order. */
static void all_are_reported(void **state)
{
    struct trial *trial = *state;
    begin_batch(trial, "test \"$(cat; echo end)\" = \"line\nline\nline\nline\nline\nend\"", MANY);
    assert_int_equal(runner_count(trial->runner), MANY);
    assert_int_equal(runner_processes(trial->runner), 1);
    await(trial, MANY);
    assert_string_equal(trial->last->task->tid, "1-5");
    assert_string_equal(trial->last->batch, "1-1");
    assert_int_equal(trial->last->lease_deadline_ns, LEASE_END - (MANY - 1));
    assert_ending(trial->last, "exit 0");
    assert_true(trial->last->ending.shared);
    assert_int_equal(runner_count(trial->runner), 0);
    assert_int_equal(runner_processes(trial->runner), 0);
}

/* Goal: the task that is ended has its own cause, those of the same process have another;
 * earlier verdicts stay. */
static void others_end_with_one(void **state)
{
    struct trial *trial = *state;
    begin_batch(trial, "echo 5 ok >&3; echo said; exec sleep 600", MANY);
    while (runner_first(trial->runner)->has_verdict == false) {
        ev_run(trial->loop, EVRUN_ONCE);
    }
    /* newest first: the fourth task */
    struct attempt *meant = LIST_NEXT(runner_first(trial->runner), link);
    assert_string_equal(meant->task->tid, "1-4");
    runner_end(trial->runner, meant, JOB_LEASE_LOST);
    assert_int_equal(meant->ending.cause, CAUSE_LEASE_LOST);
    for (struct attempt *one = runner_first(trial->runner); one; one = LIST_NEXT(one, link)) {
        assert_int_equal(one->state, JOB_ENDING);
        if (one != meant) {
            assert_int_equal(one->ending.cause, CAUSE_BATCH);
        }
    }
    await(trial, MANY);
    assert_ending(trial->last, "reported ok");
}

/* Goal: a stop and a timeout end all of them alike. */
static void all_end_together(void **state)
{
    struct trial *trial = *state;
    begin_batch(trial, "exec sleep 600", MANY);
    runner_end(trial->runner, runner_first(trial->runner), JOB_STOP);
    for (struct attempt *one = runner_first(trial->runner); one; one = LIST_NEXT(one, link)) {
        assert_int_equal(one->ending.cause, CAUSE_SHUTDOWN);
    }
    await(trial, MANY);
    trial->config.task.timeout_ms = 100;
    begin_batch(trial, "exec sleep 600", MANY);
    await(trial, MANY);
    assert_ending(trial->last, "timeout");
}

/* Goal: a failed start is reported for each task, and counts against none. */
static void starts_fail_for_all(void **state)
{
    struct trial *trial = *state;
    trial->config.task.directory = (char *)"/nonexistent";
    begin_batch(trial, "true", MANY);
    assert_int_equal(trial->ended, MANY);
    assert_ending(trial->last, "host");
    assert_non_null(strstr(trial->last->reason, "/nonexistent"));
    assert_int_equal(runner_count(trial->runner), 0);
}

/* Goal: a batch that still runs is freed with all its attempts. */
static void runs_on_at_the_end(void **state)
{
    struct trial *trial = *state;
    begin_batch(trial, "exec sleep 600", MANY);
    begin_batch(trial, "exec sleep 600", 1);
    assert_int_equal(runner_count(trial->runner), MANY + 1);
    assert_int_equal(runner_processes(trial->runner), 2);
    runner_free(trial->runner);
    trial->runner = NULL;
    assert_int_equal(trial->ended, 0);
}

/* Goal: of a batch that fails, only the bad task fails, alone and with its own output, in the same
 * attempt. If a first half succeeds, the second does not run as a whole. */
static void halves_find_the_bad_task(void **state)
{
    struct trial *trial = *state;
    static const char *const payloads[MANY] = {"one", "two", "three", "four", "bad"};
    begin_payloads(trial,
                   "cat >&2; echo $LEAT_BATCH >> sizes; [ $LEAT_BATCH != 5 ] || exit 3;"
                   " [ \"$LEAT_TASK\" != 1-5 ] || { cat sizes >&2; exit 1; }",
                   payloads, MANY);
    await(trial, MANY);
    assert_string_equal(trial->last->task->tid, "1-5");
    assert_ending(trial->last, "exit 1");
    assert_false(trial->last->ending.shared);
    assert_string_equal(trial->last->batch, "");
    assert_int_equal(trial->last->task->attempt, 2);
    assert_bytes(trial->last->stderr_tail, "bad\n5\n2\n1\n1\n1\n");
    assert_int_equal(trial->last->lease_deadline_ns, LEASE_END - (MANY - 1));
    assert_int_equal(runner_count(trial->runner), 0);
    assert_int_equal(runner_processes(trial->runner), 0);
}

/* Goal: an attempt that waits for its half ends at once and alone; a stop ends all. */
static void those_that_wait_are_ended(void **state)
{
    struct trial *trial = *state;
    begin_halves(trial);
    assert_int_equal(runner_count(trial->runner), MANY);
    runner_end(trial->runner, find_state(trial, JOB_CLAIMED), JOB_CANCEL);
    assert_int_equal(trial->ended, 1);
    assert_int_equal(trial->last->ending.cause, CAUSE_CANCELLED);
    runner_end(trial->runner, find_state(trial, JOB_CLAIMED), JOB_KILL_NOW);
    assert_int_equal(trial->ended, 2);
    assert_int_equal(trial->last->ending.cause, CAUSE_LEASE_LOST);
    runner_end(trial->runner, find_state(trial, JOB_CLAIMED), JOB_STOP);
    assert_int_equal(trial->ended, 3);
    assert_int_equal(trial->last->ending.cause, CAUSE_SHUTDOWN);
    assert_int_equal(runner_processes(trial->runner), 1);
    runner_end(trial->runner, runner_first(trial->runner), JOB_STOP);
    await(trial, 2);
    assert_ending(trial->last, "shutdown");
    assert_int_equal(runner_count(trial->runner), 0);
}

/* Goal: if the config is replaced, those that wait go back when the running half is over. */
static void those_that_wait_go_back_after_a_reload(void **state)
{
    struct trial *trial = *state;
    begin_halves(trial);
    runner_set_config(trial->runner, &trial->config);
    runner_end(trial->runner, find_state(trial, JOB_RUNNING), JOB_CANCEL);
    await(trial, MANY);
    assert_int_equal(runner_count(trial->runner), 0);
    assert_int_equal(runner_processes(trial->runner), 0);
}

/* Goal: attempts that wait are freed with the runner. */
static void waits_at_the_end(void **state)
{
    struct trial *trial = *state;
    begin_halves(trial);
    runner_free(trial->runner);
    trial->runner = NULL;
    assert_int_equal(trial->ended, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_are_reported),          TEST(others_end_with_one),
        TEST(all_end_together),          TEST(starts_fail_for_all),
        TEST(runs_on_at_the_end),        TEST(halves_find_the_bad_task),
        TEST(those_that_wait_are_ended), TEST(those_that_wait_go_back_after_a_reload),
        TEST(waits_at_the_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
