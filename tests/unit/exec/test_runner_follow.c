/* Goal: a follower gets every byte of the tasks that ask for it, as it was read; a process waits
 * while no more is wanted, and the bytes that it leaves in its pipe still arrive. */
#include "../lib/runner_trial.h"
#include "base/buffer.h"

struct followed {
    struct trial *trial;
    struct attempt *attempt;
    struct buffer written[3]; /* by descriptor */
    size_t began, most;       /* beyond `most` bytes no more is wanted */
    size_t refused, looks;
};

static void on_began(void *context, struct attempt *attempt)
{
    struct followed *followed = context;
    followed->began++;
    followed->attempt = attempt;
}

static bool on_wrote(void *context, struct attempt *attempt, int number, const void *data,
                     size_t size)
{
    struct followed *followed = context;
    assert_ptr_equal(attempt, followed->attempt);
    assert_in_range(number, 1, 2);
    assert_true(size > 0);
    assert_int_equal(buffer_append(&followed->written[number], data, size), 0);
    bool more = followed->written[1].size + followed->written[2].size < followed->most;
    followed->refused += !more;
    return more;
}

static void follow(struct trial *trial, struct followed *followed, size_t most)
{
    *followed = (struct followed){.trial = trial, .most = most};
    const struct attempt_follow hooks = {.began = on_began, .wrote = on_wrote, .context = followed};
    runner_set_follow(trial->runner, &hooks);
}

static void forget(struct followed *followed)
{
    for (int i = 0; i < 3; i++) {
        buffer_free(&followed->written[i]);
    }
}

static struct task *live_task(const char *command)
{
    return make_task(TEXTS("command", command, "live", "1"), NULL, 0, false);
}

static void assert_written(const struct followed *followed, int number, const char *expected)
{
    assert_bytes((struct bytes){followed->written[number].data, followed->written[number].size},
                 expected);
}

static void passes_on_every_byte(void **state)
{
    struct trial *trial = *state;
    struct followed followed;
    follow(trial, &followed, SIZE_MAX);
    struct attempt *attempt =
        run_task(trial, live_task("printf one; printf bad >&2; sleep 0.05; printf two; exit 3"));
    assert_ending(attempt, "exit 3");
    assert_int_equal(followed.began, 1);
    assert_written(&followed, 1, "onetwo");
    assert_written(&followed, 2, "bad");
    assert_bytes(attempt->stdout_tail, "onetwo");
    forget(&followed);
}

static void follows_only_who_asks(void **state)
{
    struct trial *trial = *state;
    struct followed followed;
    follow(trial, &followed, SIZE_MAX);
    run(trial, "echo x");
    assert_int_equal(followed.began, 0);
    assert_int_equal(followed.written[1].size, 0);
    run_task(trial, live_task("exec >&- 2>&-; exit 0"));
    assert_int_equal(followed.began, 1);
    assert_int_equal(followed.written[1].size, 0);
    forget(&followed);
}

/* The process would write 200,000 bytes and exit: held, it still runs until reading goes on. */
static void on_later(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)events;
    struct followed *followed = watcher->data;
    assert_int_equal(runner_count(followed->trial->runner), 1);
    assert_true(followed->written[1].size < 200000);
    followed->looks += followed->refused > 0;
    if (followed->looks < 2) {
        return; /* it has not written enough, or had no time to go on */
    }
    ev_timer_stop(loop, watcher);
    followed->most = SIZE_MAX;
    runner_resume(followed->trial->runner, followed->attempt);
}

static void holds_a_process(void **state)
{
    struct trial *trial = *state;
    struct followed followed;
    ev_timer later;
    follow(trial, &followed, 10000);
    ev_timer_init(&later, on_later, 0.3, 0.3);
    later.data = &followed;
    ev_timer_start(trial->loop, &later);
    assert_ending(run_task(trial, live_task("head -c 200000 /dev/zero")), "exit 0");
    assert_int_equal(followed.written[1].size, 200000);
    forget(&followed);
}

/* Goal: if a process is held when it ends, the bytes in the pipe still arrive. */
static void takes_what_is_left(void **state)
{
    struct trial *trial = *state;
    struct followed followed;
    follow(trial, &followed, 1);
    run_task(trial, live_task("echo first; sleep 0.1; head -c 60000 /dev/zero"));
    assert_ending(trial->last, "exit 0");
    assert_int_equal(followed.written[1].size, 60006);
    forget(&followed);
}

/* Goal: a process that is held forever is ended by its timeout. */
static void a_held_process_times_out(void **state)
{
    struct trial *trial = *state;
    struct followed followed;
    follow(trial, &followed, 1);
    trial->config.task.timeout_ms = 500;
    assert_ending(run_task(trial, live_task("exec yes")), "timeout");
    assert_true(followed.written[1].size < 1000000);
    forget(&followed);
}

/* Begins to follow the task that runs when it has written something. */
static void on_look(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)events;
    struct followed *followed = watcher->data;
    struct attempt *attempt = runner_first(followed->trial->runner);
    struct attempt_written written[2];
    assert_true(runner_follow(followed->trial->runner, attempt, written));
    if (written[1].total < 3) {
        runner_unfollow(followed->trial->runner, attempt);
        return;
    }
    assert_int_equal(written[0].total, 10000);
    assert_in_range(written[0].tail.size, 4096, 8192);
    assert_bytes(written[1].tail, "bad");
    followed->attempt = attempt;
    ev_timer_stop(loop, watcher);
    write_text(followed->trial, "go", "", 0600);
}

/* Goal: a task that does not ask for it can be followed while it runs: with what it has written,
 * and every byte from then on. */
static void follows_later(void **state)
{
    struct trial *trial = *state;
    struct followed followed;
    ev_timer look;
    follow(trial, &followed, SIZE_MAX);
    ev_timer_init(&look, on_look, 0.01, 0.01);
    look.data = &followed;
    ev_timer_start(trial->loop, &look);
    assert_ending(
        run_task(trial,
                 make_task(TEXTS("command", "mkfifo go; head -c 10000 /dev/zero; printf bad >&2; "
                                            "read line <go; printf end"),
                           NULL, 0, false)),
        "exit 0");
    assert_int_equal(followed.began, 0);
    assert_written(&followed, 1, "end");
    assert_int_equal(followed.written[2].size, 0);
    forget(&followed);
}

static bool wants_all(void *context, const struct task *task)
{
    (void)context;
    (void)task;
    return true;
}

/* Goal: a task that does not ask for it is followed from its start if it is wanted. */
static void follows_who_is_wanted(void **state)
{
    struct trial *trial = *state;
    struct followed followed;
    follow(trial, &followed, SIZE_MAX);
    const struct attempt_follow hooks = {wants_all, on_began, on_wrote, &followed};
    runner_set_follow(trial->runner, &hooks);
    run(trial, "printf x");
    assert_int_equal(followed.began, 1);
    assert_written(&followed, 1, "x");
    forget(&followed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(passes_on_every_byte),  TEST(follows_only_who_asks),    TEST(holds_a_process),
        TEST(takes_what_is_left),    TEST(a_held_process_times_out), TEST(follows_later),
        TEST(follows_who_is_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
