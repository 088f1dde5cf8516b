/* The rings of samples: points, averages and gaps. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "view/watch/ring.h"

#define STEP_MS 10000
#define START_MS INT64_C(86400000)

static void add(struct ring *ring, int64_t ms, double ready)
{
    double values[RING_VALUES];

    for (size_t i = 0; i < RING_VALUES; i++) {
        values[i] = NAN;
    }
    values[RING_READY] = ready;
    ring_add(ring, START_MS + ms, values);
}

/* The value that many points before the newest one; −1: a gap. */
static double value_at(const struct ring *ring, size_t back, const char *name)
{
    json_t *all = ring_json(ring, START_MS);
    json_t *list = json_object_get(all, name);
    json_t *value = json_array_get(list, RING_POINTS - 1 - back);
    double found = json_is_null(value) ? -1 : json_real_value(value);

    assert_int_equal(json_array_size(list), RING_POINTS);
    json_decref(all);
    return found;
}

/* Goal: samples of one step are averaged, steps without one are gaps, and so is a value that is not
 * known. */
static void averages_and_gaps(void **state)
{
    struct ring *ring = calloc(1, sizeof *ring);

    (void)state;
    ring->step_ms = STEP_MS;
    assert_true(value_at(ring, 0, "ready") == -1);
    add(ring, 0, 4);
    add(ring, STEP_MS - 1, 8);
    add(ring, 3 * STEP_MS, 1.5);
    assert_true(value_at(ring, 0, "ready") == 1.5);
    assert_true(value_at(ring, 1, "ready") == -1);
    assert_true(value_at(ring, 3, "ready") == 6);
    assert_true(value_at(ring, 4, "ready") == -1);
    assert_true(value_at(ring, 0, "succeeded") == -1);
    free(ring);
}

/* Goal: a new round overwrites the oldest points, and a pause longer than the ring empties it. */
static void goes_round(void **state)
{
    struct ring *ring = calloc(1, sizeof *ring);

    (void)state;
    ring->step_ms = STEP_MS;
    for (int64_t i = 0; i < RING_POINTS + 5; i++) {
        add(ring, i * STEP_MS, (double)i);
    }
    assert_true(value_at(ring, 0, "ready") == RING_POINTS + 4);
    assert_true(value_at(ring, RING_POINTS - 1, "ready") == 5);
    add(ring, 5 * RING_POINTS * STEP_MS, 7);
    assert_true(value_at(ring, 0, "ready") == 7);
    assert_true(value_at(ring, 1, "ready") == -1);
    assert_true(value_at(ring, RING_POINTS - 1, "ready") == -1);
    free(ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(averages_and_gaps),
        cmocka_unit_test(goes_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
