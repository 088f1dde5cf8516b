/* Samples of a queue: rates, and percentiles of what workers have brought since the last sample. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hiredis/hiredis.h>

#include "view/watch/samples.h"

#define START_MS INT64_C(86400000)

/* A reply {name, number}. */
static redisReply *pair(const char *name, int number)
{
    char text[128];
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;
    int size =
        snprintf(text, sizeof text, "*2\r\n$%zu\r\n%s\r\n:%d\r\n", strlen(name), name, number);

    assert_int_equal(redisReaderFeed(reader, text, (size_t)size), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    redisReaderFree(reader);
    return reply;
}

/* Adds a sample of a queue in which that many attempts have waited for 5 to 10 ms, and that many
 * tasks have succeeded. */
static void add(struct samples *samples, int64_t ms, int waited, int succeeded)
{
    redisReply *counts = pair("f:waiting:0.01", waited);
    redisReply *figures = pair("total_succeeded", succeeded);
    const struct status status = {.counts = counts, .figures = figures, .lease_ms = 60000};

    samples_add(samples, &status, START_MS + ms);
    freeReplyObject(counts);
    freeReplyObject(figures);
}

/* The newest value in the ring of the hour; −1: none. */
static double newest(const struct samples *samples, const char *name)
{
    json_t *all = ring_json(&samples->hour, START_MS);
    json_t *value = json_array_get(json_object_get(all, name), RING_POINTS - 1);
    double found = json_is_null(value) ? -1 : json_real_value(value);

    json_decref(all);
    return found;
}

static struct samples *samples_new(void)
{
    struct samples *samples = calloc(1, sizeof *samples);

    samples_init(samples);
    return samples;
}

/* Goal: ends per second come from the difference between two samples, and are not known after a
 * gap, or if the queue was created again. */
static void rates(void **state)
{
    struct samples *samples = samples_new();

    (void)state;
    add(samples, 0, 0, 1000);
    assert_true(newest(samples, "succeeded") == -1);
    add(samples, 10000, 0, 1050);
    assert_true(newest(samples, "succeeded") == 5);
    add(samples, 20000, 0, 10);
    assert_true(newest(samples, "succeeded") == -1);
    add(samples, 120000, 0, 20);
    assert_true(newest(samples, "succeeded") == -1);
    free(samples);
}

/* Goal: percentiles are of the values since the last sample that had any; they hold for a lease,
 * then nothing is known. Those of before the start do not count. */
static void percentiles(void **state)
{
    struct samples *samples = samples_new();

    (void)state;
    add(samples, 0, 1000, 0);
    assert_true(newest(samples, "waiting_p50_ms") == -1);
    add(samples, 10000, 1010, 0);
    assert_true(newest(samples, "waiting_p50_ms") == 7.5);
    assert_true(newest(samples, "waiting_p95_ms") == 9.75);
    assert_true(newest(samples, "duration_p50_ms") == -1);
    add(samples, 70000, 1010, 0);
    assert_true(newest(samples, "waiting_p50_ms") == 7.5);
    add(samples, 80000, 1010, 0);
    assert_true(newest(samples, "waiting_p50_ms") == -1);
    add(samples, 90000, 1011, 0);
    assert_true(newest(samples, "waiting_p50_ms") == 7.5);
    add(samples, 100000, 3, 0);
    assert_true(newest(samples, "waiting_p50_ms") == -1);
    add(samples, 110000, 4, 0);
    assert_true(newest(samples, "waiting_p50_ms") == 7.5);
    free(samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates),
        cmocka_unit_test(percentiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
