/* Timers on an event loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/timer.h"

/* A timer, and how often it has expired. */
struct world {
    struct ev_loop *loop;
    struct timer *timer; /* on the heap, so that it can be freed while it expires */
    int expired, most;   /* most: it frees itself then; 0: never */
};

static void on_expired(void *context)
{
    struct world *world = context;

    world->expired++;
    if (world->expired == world->most) {
        timer_stop(world->timer);
        free(world->timer);
        world->timer = NULL;
    }
}

static int set_up(void **state)
{
    static struct world world;

    world = (struct world){.loop = ev_loop_new(EVFLAG_AUTO), .timer = malloc(sizeof(struct timer))};
    assert_non_null(world.loop);
    assert_non_null(world.timer);
    timer_init(world.timer, world.loop, on_expired, &world);
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    if (world->timer) {
        timer_stop(world->timer);
    }
    free(world->timer);
    ev_loop_destroy(world->loop);
    return 0;
}

/* Goal: the timer expires once, not before its time, and then it does not run. */
static void expires_once(void **state)
{
    struct world *world = *state;
    int64_t begun_ns;

    ev_now_update(world->loop);
    begun_ns = clock_boot_ns();
    timer_start_ms(world->timer, 20);
    assert_true(timer_runs(world->timer));
    assert_int_equal(world->expired, 0);
    ev_run(world->loop, 0);
    assert_int_equal(world->expired, 1);
    assert_true(clock_boot_ns() - begun_ns >= 15 * CLOCK_NS_PER_MS);
    assert_false(timer_runs(world->timer));
}

/* Goal: a time that is past means the next turn, in each unit. */
static void past_is_next_turn(void **state)
{
    struct world *world = *state;

    timer_start_ns(world->timer, -5);
    assert_int_equal(world->expired, 0);
    ev_run(world->loop, EVRUN_ONCE);
    assert_int_equal(world->expired, 1);
    timer_start_ms(world->timer, INT64_MIN);
    ev_run(world->loop, EVRUN_ONCE);
    timer_start_s(world->timer, 0);
    ev_run(world->loop, EVRUN_ONCE);
    assert_int_equal(world->expired, 3);
}

/* Goal: starting a timer that runs replaces its time; a stopped one does not expire. */
static void starts_anew(void **state)
{
    struct world *world = *state;

    timer_start_s(world->timer, 3600);
    timer_start_ns(world->timer, 1000);
    ev_run(world->loop, 0);
    assert_int_equal(world->expired, 1);
    timer_start_ms(world->timer, 1);
    timer_stop(world->timer);
    assert_false(timer_runs(world->timer));
    ev_run(world->loop, 0);
    assert_int_equal(world->expired, 1);
}

/* Goal: a repeated timer expires until it is stopped, and may be freed while it expires. */
static void repeats_until_freed(void **state)
{
    struct world *world = *state;

    world->most = 3;
    timer_repeat_s(world->timer, 0.001);
    ev_run(world->loop, 0);
    assert_int_equal(world->expired, 3);
    assert_null(world->timer);
}

/* Goal: a timer that was never initialized may be stopped. */
static void zeroed_may_be_stopped(void **state)
{
    struct timer timer = {0};

    (void)state;
    timer_stop(&timer);
    assert_false(timer_runs(&timer));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(expires_once),
        TEST(past_is_next_turn),
        TEST(starts_anew),
        TEST(repeats_until_freed),
        cmocka_unit_test(zeroed_may_be_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
