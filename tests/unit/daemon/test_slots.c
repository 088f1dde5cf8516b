// The worker's slots, with real processes: which tasks start, how long they wait, and which are
// requeued.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../lib/config_made.h"
#include "../lib/task_made.h"
#include "base/clock.h"
#include "base/log/log.h"
#include "daemon/claim/slots.h"

enum { PATIENCE_S = 60, TOKEN_SIZE = 24, BACK_MOST = 100, AHEAD = 16 };

struct world {
    struct worker_context context; /* its session is never opened: Redis learns of nothing here */
    struct ev_loop *loop;
    struct config config;
    struct queue queue;
    struct runner *runner;
    struct lease *lease;
    struct host *host;
    struct outcomes *outcomes; /* keeps the tokens that were requeued */
    struct slots *slots;
    size_t ended;
};

static size_t back_count(const struct world *world)
{
    return outcomes_count(world->outcomes);
}

static void on_ended(void *context, struct attempt *attempt)
{
    struct world *world = context;
    world->ended++;
    slots_ended(world->slots, attempt);
    attempt_free(attempt);
}

static bool has_none(void *context)
{
    (void)context;
    return false;
}

static void list_nothing(void *context, struct token_list *list)
{
    (void)context;
    (void)list;
}

static void ignore_beat(void *context, bool alive)
{
    (void)context;
    (void)alive;
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    struct rlimit files;
    if (!world || getrlimit(RLIMIT_NOFILE, &files) < 0) {
        return -1;
    }
    *state = world;
    world->config = (struct config){
        .redis.host = (char *)"127.0.0.1",
        .queue = {.name = (char *)"mails", .lease_ms = 60000, .concurrency = 1},
        .task = {.shell = (char *)"/bin/sh",
                 .directory = (char *)"/",
                 .path = (char *)"/usr/local/bin:/usr/bin:/bin",
                 .umask = 027,
                 .timeout_ms = 60000,
                 .batch = 1,
                 .kill_grace_ms = 200},
        .retry.max_attempts = 5,
        .output = {.max_line = 8192},
    };
    inherit_limits(&world->config);
    const struct session_events session_events = {.tokens = list_nothing, .has_tasks = has_none};
    const struct runner_events runner_events = {.ended = on_ended, .context = world};
    const struct lease_events lease_events = {.heartbeat_done = ignore_beat};
    const struct outcomes_events outcomes_events = {.settled = NULL}; /* none ever is */
    struct worker_context *context = &world->context;
    world->loop = ev_loop_new(EVFLAG_AUTO);
    *context = (struct worker_context){.loop = world->loop,
                                       .config = &world->config,
                                       .queue = &world->queue,
                                       .consumer = "host:1:x",
                                       .lease_ms = world->config.queue.lease_ms,
                                       .may_claim = true};
    context->session = session_new(context, &session_events);
    world->runner = runner_new(world->loop, &world->config, "host:1:x", &files, &runner_events);
    world->host = host_new(context);
    world->outcomes = outcomes_new(context, &outcomes_events);
    if (!context->session || !world->runner || !world->host || !world->outcomes) {
        return -1;
    }
    world->lease = lease_new(context, world->runner, 0, &lease_events);
    world->slots =
        world->lease ? slots_new(context, world->runner, world->lease, world->host, world->outcomes)
                     : NULL;
    if (!world->slots) {
        return -1;
    }
    slots_set_max_crashes(world->slots, 3);
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    session_free(world->context.session);
    slots_free(world->slots);
    runner_free(world->runner);
    lease_free(world->lease);
    outcomes_free(world->outcomes);
    host_free(world->host);
    ev_loop_destroy(world->loop);
    free(world);
    return 0;
}

static void set_concurrency(struct world *world, int64_t concurrency)
{
    world->config.queue.concurrency = concurrency;
    slots_reload(world->slots, &world->config);
}

/* The task of that number, with this number of crashes; with one, it runs alone. */
static struct task *numbered(int number, const char *command, int64_t crashes)
{
    static char tokens[BACK_MOST][TOKEN_SIZE];
    assert_in_range(number, 0, BACK_MOST - 1);
    assert_true(snprintf(tokens[number], TOKEN_SIZE, "s%d-0", number) < TOKEN_SIZE);
    struct task *task = make_task(TEXTS("command", command), NULL, 0, false);
    assert_non_null(task);
    task->token = tokens[number];
    task->crashes = crashes;
    task->alone = crashes > 0;
    return task;
}

static void take(struct world *world, int number)
{
    slots_take(world->slots, numbered(number, "exec sleep 600", 0), clock_boot_ns());
}

/* The newest running attempt is the task of that number. */
static void assert_newest(const struct world *world, int number)
{
    char token[TOKEN_SIZE];
    assert_true(snprintf(token, sizeof token, "s%d-0", number) < TOKEN_SIZE);
    assert_non_null(runner_first(world->runner));
    assert_string_equal(runner_first(world->runner)->task->token, token);
}

/* The token at this place among those that were requeued is the task of that number. */
static void assert_back(const struct world *world, size_t at, int number)
{
    char token[TOKEN_SIZE];
    struct token_list list = {0};
    assert_true(snprintf(token, sizeof token, "s%d-0", number) < TOKEN_SIZE);
    outcomes_tokens(world->outcomes, &list);
    assert_true(at < list.count);
    assert_string_equal(list.tokens[at], token);
    token_list_free(&list);
}

/* Reports an attempt that never ran. */
static void tell_ended(struct world *world, enum cause cause, int64_t duration_us)
{
    struct task task = {.token = (char *)"s0-0"};
    struct attempt attempt = {
        .task = &task, .ending.cause = cause, .duration_us = duration_us, .state = JOB_DONE};
    slots_ended(world->slots, &attempt);
}

static void make_short(struct world *world, int64_t duration_us)
{
    for (int i = 0; i < 200; i++) {
        tell_ended(world, CAUSE_EXIT, duration_us);
    }
}

static void on_patience_over(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop;
    (void)watcher;
    (void)events;
    fail_msg("nothing happened for %d s", PATIENCE_S);
}

/* Runs the loop until this many tasks in all have ended, and this many were requeued. */
static void await(struct world *world, size_t ended, size_t back)
{
    ev_timer patience;
    ev_timer_init(&patience, on_patience_over, PATIENCE_S, 0.);
    ev_now_update(world->loop);
    ev_timer_start(world->loop, &patience);
    while (world->ended < ended || back_count(world) < back) {
        ev_run(world->loop, EVRUN_ONCE);
        slots_turn(world->slots);
    }
    ev_timer_stop(world->loop, &patience);
}

/* Kills all running tasks and waits until they are reported. */
static void end_all(struct world *world)
{
    size_t wanted = world->ended + runner_count(world->runner);
    for (struct attempt *attempt = runner_first(world->runner); attempt;
         attempt = LIST_NEXT(attempt, link)) {
        runner_end(world->runner, attempt, JOB_KILL_NOW);
    }
    await(world, wanted, 0);
}

// Goal: nothing is claimed ahead before tasks have proved to be short, or after they no longer are;
// a task that never ran proves nothing.
static void ahead_only_while_short(void **state)
{
    struct world *world = *state;
    assert_int_equal(slots_room(world->slots), 1);
    assert_int_equal(slots_ahead(world->slots), 0);
    for (int i = 0; i < 200; i++) {
        tell_ended(world, CAUSE_REFUSED, 0);
        tell_ended(world, CAUSE_HOST, 0);
    }
    assert_int_equal(slots_ahead(world->slots), 0);
    make_short(world, 500);
    assert_int_equal(slots_ahead(world->slots), AHEAD);
    tell_ended(world, CAUSE_EXIT, 1000000);
    assert_int_equal(slots_ahead(world->slots), 0);
    make_short(world, 500);
    assert_int_equal(slots_ahead(world->slots), AHEAD);
    make_short(world, 3000);
    assert_int_equal(slots_ahead(world->slots), 0);
}

// Goal: no more tasks are claimed ahead than should start before they are requeued; with more slots
// that is a larger number.
static void ahead_fits_the_hold(void **state)
{
    struct world *world = *state;
    make_short(world, 1900);
    assert_in_range(slots_ahead(world->slots), 1, 10);
    set_concurrency(world, 2);
    assert_in_range(slots_ahead(world->slots), 2, AHEAD);
    set_concurrency(world, 8);
    assert_int_equal(slots_ahead(world->slots), 4 * 8);
    set_concurrency(world, 40);
    assert_int_equal(slots_ahead(world->slots), 4 * 40);
}

// Goal: if one crash is the limit, no task waits here that would be dead without having run.
static void not_where_a_crash_is_the_end(void **state)
{
    struct world *world = *state;
    make_short(world, 500);
    slots_set_max_crashes(world->slots, 1);
    assert_int_equal(slots_ahead(world->slots), 0);
    slots_set_max_crashes(world->slots, 2);
    assert_int_equal(slots_ahead(world->slots), AHEAD);
}

// Goal: tasks that are claimed ahead start in order as slots become free, however many wait.
static void starts_in_order(void **state)
{
    struct world *world = *state;
    set_concurrency(world, 40);
    make_short(world, 500);
    set_concurrency(world, 1);
    int next = 1;
    for (int number = 0; number < 35; number++) {
        take(world, number);
        if (number % 5 == 4) {
            /* the ring turns while it is filled */
            set_concurrency(world, next + 1);
            slots_turn(world->slots);
            assert_newest(world, next++);
        }
    }
    assert_int_equal(slots_taken(world->slots), 35);
    assert_int_equal(runner_count(world->runner), next);
    while (next < 35) {
        set_concurrency(world, next + 1);
        slots_turn(world->slots);
        assert_newest(world, next++);
    }
    assert_int_equal(back_count(world), 0);
    assert_int_equal(slots_taken(world->slots), 35);
}

// Goal: tasks that had to wait are requeued in order, and then nothing is claimed ahead for a
// while.
static void waits_only_for_a_moment(void **state)
{
    struct world *world = *state;
    make_short(world, 500);
    int64_t begun_ns = clock_boot_ns();
    for (int number = 0; number < 4; number++) {
        take(world, number);
    }
    assert_int_equal(slots_ahead(world->slots), AHEAD - 3);
    await(world, 0, 3);
    assert_true(clock_boot_ns() - begun_ns > 10 * CLOCK_NS_PER_MS);
    for (int number = 1; number < 4; number++) {
        assert_back(world, (size_t)number - 1, number);
    }
    assert_int_equal(slots_taken(world->slots), 1);
    assert_int_equal(slots_ahead(world->slots), 0);
    assert_int_equal(slots_room(world->slots), 0);
}

// Goal: a free slot goes to a waiting task by itself.
static void free_slots_are_filled(void **state)
{
    struct world *world = *state;
    make_short(world, 500);
    for (int number = 0; number < 5; number++) {
        slots_take(world->slots, numbered(number, "true", 0), clock_boot_ns());
    }
    assert_int_equal(slots_taken(world->slots), 5);
    while (slots_taken(world->slots) > 0) {
        ev_run(world->loop, EVRUN_ONCE);
        slots_turn(world->slots);
    }
    /* on a busy machine some have to be requeued */
    assert_true(world->ended > 0);
    assert_int_equal(world->ended + back_count(world), 5);
    assert_int_equal(slots_room(world->slots), 1);
}

// Goal: after a reload to fewer slots nothing more starts, and waiting tasks are requeued.
static void fewer_slots(void **state)
{
    struct world *world = *state;
    set_concurrency(world, 3);
    make_short(world, 500);
    for (int number = 0; number < 6; number++) {
        take(world, number);
    }
    set_concurrency(world, 1);
    slots_turn(world->slots);
    assert_int_equal(runner_count(world->runner), 3);
    assert_int_equal(slots_room(world->slots), 0);
    await(world, 0, 3);
    assert_back(world, 0, 3);
    assert_int_equal(slots_taken(world->slots), 3);
    /* tasks of a claim that was sent before the reload */
    take(world, 6);
    assert_int_equal(runner_count(world->runner), 3);
    await(world, 0, 4);
    end_all(world);
    assert_int_equal(slots_room(world->slots), 1);
}

// Goal: when closed, all waiting tasks are requeued in the next turn, and later ones at once.
static void closed(void **state)
{
    struct world *world = *state;
    make_short(world, 500);
    for (int number = 0; number < 4; number++) {
        take(world, number);
    }
    world->context.may_claim = false;
    assert_int_equal(slots_room(world->slots) + slots_ahead(world->slots), 0);
    slots_turn(world->slots);
    assert_int_equal(back_count(world), 3);
    take(world, 4);
    assert_int_equal(back_count(world), 4);
    assert_int_equal(slots_taken(world->slots), 1);
    end_all(world);
    slots_turn(world->slots);
    assert_int_equal(slots_taken(world->slots), 0);
    world->context.may_claim = true;
    assert_int_equal(slots_room(world->slots), 1);
}

static struct token_set set_of(const char **tokens, size_t count)
{
    return (struct token_set){.tokens = tokens, .count = count};
}

// Goal: of the waiting tasks, lost ones are dropped, cancelled ones are requeued, and the others
// stay in order; all waiting tasks are named, and no running one is affected.
static void told_of_those_that_wait(void **state)
{
    struct world *world = *state;
    const char *none[1] = {NULL}, *lost[] = {"s0-0", "s4-0"}, *cancelled[] = {"s1-0", "s3-0"};
    struct token_set no = set_of(none, 0), gone = set_of(lost, 2), off = set_of(cancelled, 2);
    struct token_list list = {0};
    make_short(world, 500);
    for (int number = 0; number < 7; number++) {
        take(world, number);
    }
    slots_tokens(world->slots, &list);
    assert_int_equal(list.count, 6);
    assert_string_equal(list.tokens[0], "s1-0");
    assert_string_equal(list.tokens[5], "s6-0");
    token_list_free(&list);

    slots_remove(world->slots, &no, &no);
    assert_int_equal(slots_taken(world->slots), 7);
    slots_remove(world->slots, &gone, &off);
    assert_int_equal(slots_taken(world->slots), 4);
    assert_int_equal(back_count(world), 2);
    assert_back(world, 0, 1);
    assert_back(world, 1, 3);
    slots_put_back_waiting(world->slots);
    assert_int_equal(back_count(world), 5);
    for (int number = 2, at = 2; number < 7; number += number == 2 ? 3 : 1) {
        assert_back(world, (size_t)at++, number);
    }
    assert_int_equal(slots_taken(world->slots), 1);
    slots_remove(world->slots, &gone, &off);
    assert_int_equal(runner_count(world->runner), 1);
}

// Goal: a task that runs alone has the worker for itself until it has ended.
static void a_lone_task_is_alone(void **state)
{
    struct world *world = *state;
    set_concurrency(world, 4);
    make_short(world, 500);
    slots_take(world->slots, numbered(0, "exec sleep 600", 1), clock_boot_ns());
    assert_int_equal(runner_count(world->runner), 1);
    assert_int_equal(slots_room(world->slots) + slots_ahead(world->slots), 0);
    take(world, 1);
    assert_int_equal(back_count(world), 1);
    assert_int_equal(slots_taken(world->slots), 1);
    end_all(world);
    assert_int_equal(slots_room(world->slots), 4);
    make_short(world, 500);
    assert_int_equal(slots_ahead(world->slots), AHEAD);

    /* a refused task never had the worker */
    struct task *task = numbered(2, "true", 1);
    set_concurrency(world, 1);
    world->config.task.command = (char *)"true";
    slots_take(world->slots, task, clock_boot_ns());
    assert_int_equal(runner_count(world->runner), 0);
    assert_int_equal(slots_room(world->slots), 1);
}

// Goal: a poison candidate that need not run alone takes one slot, and others start beside it.
static void a_poison_candidate_runs_beside_others(void **state)
{
    struct world *world = *state;
    struct task *candidate = numbered(1, "exec sleep 600", 1);
    set_concurrency(world, 3);
    candidate->alone = false;
    take(world, 0);
    slots_take(world->slots, candidate, clock_boot_ns());
    assert_int_equal(runner_count(world->runner), 2);
    assert_int_equal(slots_room(world->slots), 1);
    take(world, 2);
    assert_int_equal(runner_count(world->runner), 3);
    end_all(world);
    assert_int_equal(slots_room(world->slots), 3);
}

// Goal: a task too near to the end of its lease is not started, whether it waited or not.
static void no_time_left(void **state)
{
    struct world *world = *state;
    int64_t old_ns = clock_boot_ns() - 59900 * CLOCK_NS_PER_MS;
    slots_take(world->slots, numbered(0, "exec sleep 600", 0), old_ns);
    assert_back(world, 0, 0);
    make_short(world, 500);
    take(world, 1);
    slots_take(world->slots, numbered(2, "exec sleep 600", 0), old_ns);
    take(world, 3);
    set_concurrency(world, 2);
    slots_turn(world->slots);
    assert_int_equal(back_count(world), 2);
    assert_back(world, 1, 2);
    assert_newest(world, 3);
}

// Goal: on a host in doubt one task runs, and nothing is claimed ahead.
static void doubtful_host(void **state)
{
    struct world *world = *state;
    set_concurrency(world, 4);
    make_short(world, 500);
    assert_int_equal(log_open(LOG_TARGET_STDERR, LOG_EMERG, "test"), 0);
    host_fault(world->host, "1-0", "a test");
    assert_int_equal(slots_room(world->slots), 0);
    world->context.may_claim = true; /* the pause after the fault is over */
    assert_int_equal(slots_room(world->slots), 1);
    assert_int_equal(slots_ahead(world->slots), 0);
    assert_true(host_fine(world->host));
    assert_int_equal(slots_room(world->slots), 4);
    assert_int_equal(slots_ahead(world->slots), AHEAD);
}

// Goal: without a session waiting tasks are dropped, not requeued: the next registration does that.
static void session_down(void **state)
{
    struct world *world = *state;
    make_short(world, 500);
    for (int number = 0; number < 4; number++) {
        take(world, number);
    }
    slots_down(world->slots);
    assert_int_equal(slots_taken(world->slots), 1);
    end_all(world);
    assert_int_equal(back_count(world), 0);
    assert_int_equal(slots_room(world->slots), 1);
    take(world, 4);
    assert_newest(world, 4);
}

/* Batches of that size, which wait for this time. */
static void set_batch(struct world *world, int64_t batch, int64_t wait_ms)
{
    struct config former = world->config;
    world->config.task.command = (char *)"exec sleep 600";
    world->config.task.batch = batch;
    world->config.task.batch_wait_ms = wait_ms;
    slots_reload(world->slots, &former);
    runner_set_config(world->runner, &world->config);
}

/* A first attempt without its own command, which may share a process. */
static void take_plain(struct world *world, int number, int64_t attempt)
{
    static char tokens[BACK_MOST][TOKEN_SIZE];
    assert_in_range(number, 0, BACK_MOST - 1);
    assert_true(snprintf(tokens[number], TOKEN_SIZE, "s%d-0", number) < TOKEN_SIZE);
    struct task *task = make_task(TEXTS("size", "x"), NULL, 0, true);
    assert_non_null(task);
    task->token = tokens[number];
    task->attempt = attempt;
    slots_take(world->slots, task, clock_boot_ns());
}

// Goal: with batches a slot has room for a batch; a full one starts in the next turn, and the
// remaining tasks start after the wait.
static void batches_fill(void **state)
{
    struct world *world = *state;
    set_concurrency(world, 2);
    set_batch(world, 3, 2000);
    assert_int_equal(slots_room(world->slots), 6);
    assert_int_equal(slots_ahead(world->slots), 0);
    int64_t begun_ns = clock_boot_ns();
    for (int number = 0; number < 5; number++) {
        take_plain(world, number, 1);
    }
    assert_int_equal(slots_room(world->slots), 1);
    slots_turn(world->slots);
    assert_int_equal(runner_processes(world->runner), 1);
    assert_int_equal(runner_count(world->runner), 3);
    assert_int_equal(slots_taken(world->slots), 5);
    assert_int_equal(slots_room(world->slots), 1);
    while (runner_processes(world->runner) < 2) {
        ev_run(world->loop, EVRUN_ONCE);
        slots_turn(world->slots);
    }
    assert_true(clock_boot_ns() - begun_ns >= 2000 * CLOCK_NS_PER_MS);
    assert_int_equal(runner_count(world->runner), 5);
    assert_int_equal(slots_room(world->slots), 0);
    assert_int_equal(back_count(world), 0);
    end_all(world);
    assert_int_equal(slots_room(world->slots), 6);
}

// Goal: a task that cannot share a process takes a slot for itself. Tasks beyond the limit for
// waiting are requeued at once; fewer are claimed then, and more again with each batch.
static void singles_among_batches(void **state)
{
    struct world *world = *state;
    set_batch(world, 40, 0);
    for (int number = 0; number < 30; number++) {
        take_plain(world, number, 2);
    }
    assert_int_equal(runner_count(world->runner), 1);
    assert_int_equal(slots_taken(world->slots), 1 + AHEAD);
    assert_int_equal(back_count(world), 30 - 1 - AHEAD);
    assert_back(world, 0, 1 + AHEAD);
    world->context.may_claim = false;
    slots_turn(world->slots);
    world->context.may_claim = true;
    assert_int_equal(slots_taken(world->slots), 1);
    end_all(world);
    for (size_t room = 1; room < 40; room = room * 2 < 40 ? room * 2 : 40) {
        assert_int_equal(slots_room(world->slots), room);
        for (size_t i = 0; i < room; i++) {
            take_plain(world, 50 + (int)i, 1);
        }
        slots_turn(world->slots);
        assert_int_equal(runner_processes(world->runner), 1);
        assert_int_equal(runner_count(world->runner), room);
        end_all(world);
    }
    assert_int_equal(slots_room(world->slots), 40);
}

// Goal: if one crash is the limit, no task waits for a batch to fill.
static void no_wait_where_a_crash_is_the_end(void **state)
{
    struct world *world = *state;
    set_batch(world, 3, 5000);
    slots_set_max_crashes(world->slots, 1);
    take_plain(world, 0, 1);
    slots_turn(world->slots);
    assert_int_equal(runner_count(world->runner), 1);
}

// Goal: a reload that changes how tasks are judged requeues waiting tasks.
static void reload_to_batches(void **state)
{
    struct world *world = *state;
    set_batch(world, 3, 5000);
    take_plain(world, 0, 1);
    assert_int_equal(slots_taken(world->slots), 1);
    set_batch(world, 2, 5000);
    assert_int_equal(slots_taken(world->slots), 0);
    assert_back(world, 0, 0);
    assert_int_equal(slots_room(world->slots), 2);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ahead_only_while_short),
        TEST(ahead_fits_the_hold),
        TEST(not_where_a_crash_is_the_end),
        TEST(starts_in_order),
        TEST(waits_only_for_a_moment),
        TEST(free_slots_are_filled),
        TEST(fewer_slots),
        TEST(closed),
        TEST(told_of_those_that_wait),
        TEST(a_lone_task_is_alone),
        TEST(a_poison_candidate_runs_beside_others),
        TEST(no_time_left),
        TEST(doubtful_host),
        TEST(session_down),
        TEST(batches_fill),
        TEST(singles_among_batches),
        TEST(no_wait_where_a_crash_is_the_end),
        TEST(reload_to_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
