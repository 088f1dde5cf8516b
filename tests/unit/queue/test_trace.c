/* Goal: trace contexts have the forms of the W3C's recommendations, and nothing else counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "queue/trace.h"

#define ID "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"
#define FINE "00-" ID "-" PARENT "-01"

static bool is_fine(enum trace_part part, const char *text)
{
    return trace_is_fine(part, bytes_of(text));
}

/* Goal: traceparents of version 00 have 55 characters; later versions may have more parts. */
static void traceparents(void **state)
{
    static const char *const fine[] = {FINE, "00-" ID "-" PARENT "-00", "cc-" ID "-" PARENT "-01",
                                       "cc-" ID "-" PARENT "-01-what.the.future.brings"};
    static const char *const wrong[] = {
        "",
        "00",
        FINE "-",
        FINE "-00",
        FINE "0",
        "ff-" ID "-" PARENT "-01",
        "0g-" ID "-" PARENT "-01",
        "00_" ID "-" PARENT "-01",
        "00-" ID "_" PARENT "-01",
        "00-" ID "-" PARENT "_01",
        "00-" ID "-" PARENT "-0x",
        "00-0AF7651916CD43DD8448EB211C80319C-" PARENT "-01",
        "00-00000000000000000000000000000000-" PARENT "-01",
        "00-" ID "-0000000000000000-01",
        "cc-" ID "-" PARENT "-01.x",
        "cc-" ID "-" PARENT "-01-\n",
        " " FINE,
    };
    (void)state;
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        assert_true(is_fine(TRACE_PARENT, fine[i]));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(is_fine(TRACE_PARENT, wrong[i]));
    }
    for (size_t size = 0; size < strlen(FINE); size++) {
        assert_false(trace_is_fine(TRACE_PARENT, (struct bytes){FINE, size}));
    }
    assert_false(trace_is_fine(TRACE_PARENT, (struct bytes){"00-" ID "-" PARENT "-\0"
                                                            "1",
                                                            55}));
}

/* Goal: lists of keys and values, within bounds. */
static void lists(void **state)
{
    static const char *const states[] = {"a=1", "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7",
                                         "a=1 , b=2", "fw529a3039@dt=FfAB", "0a=x y"};
    static const char *const wrong_states[] = {"",      "a",      "a=",         "=1",
                                               "A=1",   "a=1,",   "a=1,,b=2",   "_a=1",
                                               "a=b=c", "a=\x01", "a=\xc3\xa4", "a b=1"};
    static const char *const baggages[] = {"k=v", "k=", "userId=Am%C3%A9lie,server=DF%2028",
                                           "k = v ; p ; q=2 , x=1", "K.-_~=v"};
    static const char *const wrong_baggages[] = {"",       "k",    "=v",   "k v=1",      "k=\"v\"",
                                                 "k=a\\b", "k=v,", "k=\n", "k=\xc3\xa4", "{k}=v"};
    char many[4 * 33];
    (void)state;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        assert_true(is_fine(TRACE_STATE, states[i]));
    }
    for (size_t i = 0; i < sizeof wrong_states / sizeof *wrong_states; i++) {
        assert_false(is_fine(TRACE_STATE, wrong_states[i]));
    }
    for (size_t i = 0; i < sizeof baggages / sizeof *baggages; i++) {
        assert_true(is_fine(TRACE_BAGGAGE, baggages[i]));
    }
    for (size_t i = 0; i < sizeof wrong_baggages / sizeof *wrong_baggages; i++) {
        assert_false(is_fine(TRACE_BAGGAGE, wrong_baggages[i]));
    }

    for (size_t i = 0; i < 33; i++) {
        memcpy(many + 4 * i, "a=1,", 4);
    }
    assert_true(trace_is_fine(TRACE_STATE, (struct bytes){many, 4 * 32 - 1}));
    assert_false(trace_is_fine(TRACE_STATE, (struct bytes){many, 4 * 33 - 1}));
}

/* Goal: no part is longer than 8 KiB, and no key or value of a tracestate than 256 bytes. */
static void sizes(void **state)
{
    static char text[9000];
    (void)state;
    memset(text, 'v', sizeof text);
    text[1] = '=';
    assert_true(trace_is_fine(TRACE_BAGGAGE, (struct bytes){text, 8192}));
    assert_false(trace_is_fine(TRACE_BAGGAGE, (struct bytes){text, 8193}));
    assert_true(trace_is_fine(TRACE_STATE, (struct bytes){text, 258}));
    assert_false(trace_is_fine(TRACE_STATE, (struct bytes){text, 259}));
}

/* Goal: a tracestate belongs to a traceparent, a baggage stands alone, and only a traceparent gives
 * a field of the log. */
static void parts_of_a_task(void **state)
{
    struct trace trace = {0};
    struct log_field field;
    (void)state;
    trace_take(&trace, bytes_of("TRACEPARENT"), bytes_of(FINE));
    trace_take(&trace, bytes_of("traceparent"), bytes_of("00-1-2-3"));
    trace_take(&trace, bytes_of("tracestate"), bytes_of("a=1"));
    trace_take(&trace, bytes_of("baggage"), bytes_of("k=v"));
    assert_null(trace_part(&trace, TRACE_PARENT).data);
    assert_null(trace_part(&trace, TRACE_STATE).data);
    assert_true(bytes_equal(trace_part(&trace, TRACE_BAGGAGE), "k=v"));
    assert_int_equal(trace_log_field(&trace, &field), 0);

    trace_take(&trace, bytes_of("traceparent"), bytes_of(FINE));
    assert_true(bytes_equal(trace_part(&trace, TRACE_PARENT), FINE));
    assert_true(bytes_equal(trace_part(&trace, TRACE_STATE), "a=1"));
    assert_int_equal(trace_log_field(&trace, &field), 1);
    assert_string_equal(field.name, "TRACE_ID");
    assert_true(bytes_equal((struct bytes){field.data, field.size}, ID));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traceparents),
        cmocka_unit_test(lists),
        cmocka_unit_test(sizes),
        cmocka_unit_test(parts_of_a_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
