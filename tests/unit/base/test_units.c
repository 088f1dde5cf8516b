/* Durations, sizes and numbers: valid texts are read exactly, all others are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/units.h"

#define COUNT(list) (sizeof list / sizeof((list)[0]))

static const int64_t hour = 3600000, day = 86400000;

/* Goal: each unit and each sum is converted to milliseconds. */
static void durations_are_read(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"0", 0},
        {"5", 5000},
        {"250ms", 250},
        {"30s", 30000},
        {"5m", 300000},
        {"2h", 2 * hour},
        {"1d", day},
        {"1w", 7 * day},
        {"1m30s", 90000},
        {"1m 30s", 90000},
        {"1s500ms", 1500},
        {"1w1d1h1m1s1ms", 8 * day + hour + 61001},
        {"0s", 0},
        {"007s", 7000},
        {"90m", 90 * 60000},
        {"36525d", 36525 * day},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t ms = -1;

        assert_int_equal(units_parse_duration(cases[i].text, &ms), 0);
        assert_int_equal(ms, cases[i].ms);
    }
}

/* Goal: ambiguous and meaningless texts are refused, and the result does not change. */
static void other_durations_are_refused(void **state)
{
    (void)state;
    const char *cases[] = {
        "",
        " ",
        "s",
        "5x",
        "-5s",
        "+5s",
        "1.5s",
        "1m30",
        "30s1m",
        "1s1s",
        "5 s",
        " 5s",
        "5ss",
        "5S",
        "1h2",
        "0x10s",
        "five",
        "5s,",
        "99999999999999999999x",
        "36526d5",
    };
    const char *too_large[] = {
        "36526d",
        "3155760001",
        "99999999999999999999",
        "9223372036854775807w",
        "100w99999999999999999999s",
    };
    int64_t ms = 42;

    for (size_t i = 0; i < COUNT(cases); i++) {
        if (units_parse_duration(cases[i], &ms) != -1) {
            fail_msg("\"%s\" was read as %lld", cases[i], (long long)ms);
        }
    }
    for (size_t i = 0; i < COUNT(too_large); i++) {
        if (units_parse_duration(too_large[i], &ms) != UNITS_TOO_LARGE) {
            fail_msg("\"%s\" was not too large", too_large[i]);
        }
    }
    assert_int_equal(ms, 42);
}

/* Goal: sizes are powers of 1024, up to INT64_MAX. */
static void sizes_are_read(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int64_t bytes;
    } cases[] = {
        {"0", 0},
        {"512", 512},
        {"64K", 65536},
        {"10M", 10 << 20},
        {"1G", 1 << 30},
        {"2T", INT64_C(2) << 40},
        {"9223372036854775807", INT64_MAX},
    };
    const char *wrong[] = {"", "K", "-1", "1k", "1KB", "1 K", "1.5M", "K1", "9223372036854775808x"};
    const char *too_large[] = {"9223372036854775808", "9007199254740992K", "8388608T"};
    int64_t unchanged = 42;

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t bytes = -1;

        assert_int_equal(units_parse_size(cases[i].text, &bytes), 0);
        assert_int_equal(bytes, cases[i].bytes);
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        if (units_parse_size(wrong[i], &unchanged) != -1) {
            fail_msg("\"%s\" was read as %lld", wrong[i], (long long)unchanged);
        }
    }
    for (size_t i = 0; i < COUNT(too_large); i++) {
        assert_int_equal(units_parse_size(too_large[i], &unchanged), UNITS_TOO_LARGE);
    }
    assert_int_equal(unchanged, 42);
}

/* Goal: integers must be within their range, limits included. */
static void integers_keep_to_their_range(void **state)
{
    (void)state;
    int64_t value = 42;

    assert_int_equal(units_parse_integer("-3", -3, 5, &value), 0);
    assert_int_equal(value, -3);
    assert_int_equal(units_parse_integer("5", -3, 5, &value), 0);
    assert_int_equal(value, 5);
    assert_int_equal(units_parse_integer("9223372036854775807", 0, INT64_MAX, &value), 0);
    assert_int_equal(value, INT64_MAX);

    value = 42;
    const char *wrong[] = {"",   "-",   "--1", "+1", " 1",  "1 ",
                           "1x", "0x1", "6",   "-4", "1e3", "9223372036854775808x"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(units_parse_integer(wrong[i], -3, 5, &value), -1);
    }
    assert_int_equal(units_parse_integer("9223372036854775808", -3, 5, &value), UNITS_TOO_LARGE);
    assert_int_equal(units_parse_integer("-9223372036854775808", -3, 5, &value), UNITS_TOO_LARGE);
    assert_int_equal(value, 42);
}

/* Goal: a duration is formatted in its shortest exact form, and parsing returns the same value. */
static void durations_are_written(void **state)
{
    (void)state;
    const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        {0, "0s"},
        {-5, "0s"},
        {1, "1ms"},
        {1500, "1s500ms"},
        {90000, "1m30s"},
        {60000, "1m"},
        {hour, "1h"},
        {36525 * day, "5217w6d"},
        {36525 * day - 1, "5217w5d23h59m59s999ms"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[48];
        int64_t ms = -1;

        units_format_duration(cases[i].ms, text, sizeof text);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(units_parse_duration(text, &ms), 0);
        assert_int_equal(ms, cases[i].ms < 0 ? 0 : cases[i].ms);
    }
}

/* Goal: formatting never writes beyond a buffer that is too small. */
static void short_buffers_are_not_overrun(void **state)
{
    (void)state;
    for (size_t size = 0; size < 30; size++) {
        char text[32];

        for (size_t i = 0; i < sizeof text; i++) {
            text[i] = 'x';
        }
        units_format_duration(36525 * day - 1, text, size);
        for (size_t i = size; i < sizeof text; i++) {
            assert_int_equal(text[i], 'x');
        }
    }
}

/* Goal: both clocks return plausible times, and boot time never goes back. */
static void clocks_go_forward(void **state)
{
    (void)state;
    int64_t before = clock_boot_ns();

    assert_true(before > 0);
    assert_true(clock_boot_ns() >= before);
    assert_true(clock_wall_ms() > INT64_C(1600000000000));
}

/* Goal: integers of every size are formatted completely, including the smallest. */
static void integers_are_written(void **state)
{
    (void)state;
    const struct {
        int64_t number;
        const char *text;
    } cases[] = {
        {0, "0"},
        {7, "7"},
        {-10, "-10"},
        {INT64_MAX, "9223372036854775807"},
        {INT64_MIN, "-9223372036854775808"},
    };
    char text[UNITS_INTEGER_SIZE];

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(units_format_integer(cases[i].number, text), strlen(cases[i].text));
        assert_string_equal(text, cases[i].text);
    }
}

/* Goal: times are formatted as seconds with three decimals; negative ones are zero. */
static void seconds_are_written(void **state)
{
    (void)state;
    const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        {0, "0.000"},
        {7, "0.007"},
        {1500, "1.500"},
        {60000, "60.000"},
        {-5, "0.000"},
        {1763798400123, "1763798400.123"},
        {INT64_MAX, "9223372036854775.807"},
    };
    char text[UNITS_SECONDS_SIZE];

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(units_format_seconds(cases[i].ms, text), strlen(cases[i].text));
        assert_string_equal(text, cases[i].text);
    }
}

/* Goal: the shortest exact form of a size, which is read as the same size. */
static void formats_sizes(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0"},
        {1000, "1000"},
        {65536, "64K"},
        {65537, "65537"},
        {INT64_C(16) << 20, "16M"},
        {INT64_C(1) << 40, "1T"},
        {INT64_MAX, "9223372036854775807"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[UNITS_INTEGER_SIZE];
        int64_t bytes;

        units_format_size(cases[i].bytes, text);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(units_parse_size(text, &bytes), 0);
        assert_int_equal(bytes, cases[i].bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_sizes),
        cmocka_unit_test(durations_are_read),
        cmocka_unit_test(other_durations_are_refused),
        cmocka_unit_test(sizes_are_read),
        cmocka_unit_test(integers_keep_to_their_range),
        cmocka_unit_test(durations_are_written),
        cmocka_unit_test(short_buffers_are_not_overrun),
        cmocka_unit_test(integers_are_written),
        cmocka_unit_test(seconds_are_written),
        cmocka_unit_test(clocks_go_forward),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
