/* leat's text, tables and times: pure functions of their arguments. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cli/lib/table.h"
#include "cli/lib/text.h"
#include "view/moment.h"

static void expect_text(struct buffer *buffer, const char *wanted)
{
    assert_false(buffer->failed);
    assert_int_equal(buffer->size, strlen(wanted));
    assert_memory_equal(buffer->data, wanted, buffer->size);
    buffer_free(buffer);
}

static void use_locale(const char *name)
{
    assert_non_null(setlocale(LC_CTYPE, name));
}

/* Goal: bytes that may control a terminal are escaped; printable ones stay if the locale has
 * them. */
static void test_append(void **state)
{
    static const char bytes[] = "a\x1b[2J\n\xc3\xbc\xff\xe2\x80\xa8";
    struct buffer out = BUFFER_INIT;

    (void)state;
    use_locale("C.UTF-8");
    assert_int_equal(text_append(&out, bytes, sizeof bytes - 1), 0);
    expect_text(&out, "a\\x1b[2J\\n\xc3\xbc\\xff\\xe2\\x80\\xa8");
    use_locale("C");
    assert_int_equal(text_append(&out, bytes, sizeof bytes - 1), 0);
    expect_text(&out, "a\\x1b[2J\\n\\xc3\\xbc\\xff\\xe2\\x80\\xa8");
}

/* Goal: each line is indented, also a last one without a newline. */
static void test_lines(void **state)
{
    struct buffer out = BUFFER_INIT;

    (void)state;
    assert_int_equal(text_append_lines(&out, "a\n\nb\tc", 6, "| "), 0);
    expect_text(&out, "| a\n| \n| b\\tc\n");
    assert_true(text_is_printable("a\n\tb", 4));
    assert_true(text_is_printable("", 0));
    assert_false(text_is_printable("a\0b", 3));
    assert_false(text_is_printable("\x1b", 1));
}

/* Goal: width counts columns, and fit never cuts a character. */
static void test_width(void **state)
{
    static const char text[] = "a\xe6\x97\xa5\xc3\xbc"; /* 1, 2 and 1 columns */

    (void)state;
    use_locale("C.UTF-8");
    assert_int_equal(text_width(text, 6), 4);
    assert_int_equal(text_fit(text, 6, 2), 1);
    assert_int_equal(text_fit(text, 6, 3), 4);
    assert_int_equal(text_fit(text, 6, 100), 6);
    assert_int_equal(bytes_whole(text, 6, 6), 6);
    assert_int_equal(bytes_whole(text, 5, 5), 4);
    assert_int_equal(bytes_whole(text, 3, 3), 1);
    assert_int_equal(bytes_whole(text, 2, 2), 1);
    assert_int_equal(bytes_whole("", 0, 0), 0);
}

/* Goal: only what was cut loses its end, and only if this can begin a character. */
static void test_whole_keeps_other_bytes(void **state)
{
    (void)state;
    assert_int_equal(bytes_whole("caf\xe9", 4, 64), 4);
    assert_int_equal(bytes_whole("caf\xe9", 4, 4), 3);
    assert_int_equal(bytes_whole("\xff", 1, 1), 1);
    assert_int_equal(bytes_whole("a\xf9\x80", 3, 3), 3);
}

/* Goal: columns are as wide as their content; the flexible one shrinks if the line is too long. */
static void test_table(void **state)
{
    static const struct table_column columns[] = {{.title = "N", .right = true},
                                                  {.title = "TEXT", .flexible = true}};
    struct table table = {.columns = columns, .column_count = 2};
    struct buffer out = BUFFER_INIT;

    (void)state;
    table_printf(&table, "%d", 5);
    table_add(&table, "short", 5);
    table_printf(&table, "%d", 1234);
    table_add(&table, "rather long\x07 text", 17);
    assert_int_equal(table_rows(&table), 2);
    assert_int_equal(table_render(&table, &out, 0, 0, false), 0);
    expect_text(&out, "   N  TEXT\n   5  short\n1234  rather long\\x07 text\n");
    assert_int_equal(table_render(&table, &out, 1, 17, false), 0);
    expect_text(&out, "    N  TEXT\n    5  short\n 1234  rather ...\n");
    table_style(&table, TEXT_RED);
    assert_int_equal(table_render(&table, &out, 0, 5, true), 0);
    expect_text(&out, "\033[1m   N  TEXT\033[0m\n   5  short\n1234  \033[31mrathe...\033[0m\n");
    table_free(&table);
}

/* Goal: a column without content, and on a narrow terminal the dispensable ones in their order, are
 * left out before a flexible one becomes unreadable. */
static void test_columns_give_way(void **state)
{
    static const struct table_column columns[] = {{.title = "ID"},
                                                  {.title = "LABEL", .optional = true},
                                                  {.title = "AGE", .leave_out = 2},
                                                  {.title = "TRIES", .leave_out = 1},
                                                  {.title = "COMMAND", .flexible = true}};
    struct table table = {.columns = columns, .column_count = 5};
    struct buffer out = BUFFER_INIT;

    (void)state;
    table_add(&table, "12", 2);
    table_add(&table, "", 0);
    table_add(&table, "5s", 2);
    table_add(&table, "1", 1);
    table_add(&table, "a long command", 14);
    assert_int_equal(table_render(&table, &out, 0, 0, false), 0);
    expect_text(&out, "ID  AGE  TRIES  COMMAND\n12  5s   1      a long command\n");
    assert_int_equal(table_render(&table, &out, 0, 26, false), 0);
    expect_text(&out, "ID  AGE  TRIES  COMMAND\n12  5s   1      a long ...\n");
    assert_int_equal(table_render(&table, &out, 0, 25, false), 0);
    expect_text(&out, "ID  AGE  COMMAND\n12  5s   a long command\n");
    assert_int_equal(table_render(&table, &out, 0, 18, false), 0);
    expect_text(&out, "ID  COMMAND\n12  a long command\n");
    assert_int_equal(table_render(&table, &out, 0, 12, false), 0);
    expect_text(&out, "ID  COMMAND\n12  a lon...\n");
    table_free(&table);
}

static void wraps(const char *text, size_t width, const char *wanted)
{
    struct buffer out = BUFFER_INIT;

    assert_int_equal(buffer_append_text(&out, "kept as it is, however wide\n"), 0);
    size_t start = out.size;
    assert_int_equal(buffer_append_text(&out, text), 0);
    assert_int_equal(text_wrap(&out, start, width), 0);
    assert_int_equal(buffer_append(&out, "", 1), 0);
    assert_string_equal(out.data + start, wanted);
    buffer_free(&out);
}

/* Goal: lines are broken at blanks, or else anywhere, with the rest indented; no byte is lost and
 * styles have no width. */
static void test_wrap(void **state)
{
    (void)state;
    use_locale("C.UTF-8");
    wraps("one two three four\n", 0, "one two three four\n");
    wraps("one two three four\n", 18, "one two three four\n");
    wraps("one two three four\nx", 17, "one two three\n  four\nx");
    wraps("  one two three four\n", 12, "  one two\n    three\n    four\n");
    wraps("aaaaaaaaaaaaaaaaaaaa", 12, "aaaaaaaaaaaa\n  aaaaaaaa");
    wraps("\033[31mone two three\033[0m", 13, "\033[31mone two three\033[0m");
    wraps("\xe6\x97\xa5\xe6\x97\xa5", 3, "\xe6\x97\xa5\n\xe6\x97\xa5");
    wraps("\xe6\x97\xa5", 1, "\xe6\x97\xa5");
    wraps("", 10, "");
}

static void expect_moment(const char *text, int64_t wanted_ms)
{
    int64_t ms = -1;

    assert_int_equal(moment_parse(text, &ms), 0);
    assert_int_equal(ms, wanted_ms);
}

/* Goal: each documented form of a time is read, and no other. */
static void test_moment_parse(void **state)
{
    static const char *const wrong[] = {
        "",
        "@",
        "@1x",
        "now",
        "2026-02-29T00:00:00Z",
        "2026-01-31T12:00:00",
        "2026-01-31T12:00Z",
        "2026-01-31T24:01:00Z",
        "2026-01-31T12:00:00+1:00",
        "2026-01-31T12:00:00+25:00",
        "2026-01-31 12:00:00Z",
        "2026-01-31T12:00:00.Z",
        "2026-13-01 00:00",
        "2026-01-31",
        "1969-12-31T23:59:59Z",
    };
    int64_t ms;

    (void)state;
    assert_int_equal(setenv("TZ", "UTC-1", 1), 0);
    tzset();
    expect_moment("@1769860800", 1769860800000);
    expect_moment("2026-01-31T12:00:00Z", 1769860800000);
    expect_moment("2026-01-31t12:00:00.5z", 1769860800500);
    expect_moment("2026-01-31T12:00:00.1239+00:30", 1769859000123);
    expect_moment("2026-01-31T12:00:00-02:00", 1769868000000);
    expect_moment("2026-01-31 13:00", 1769860800000);
    expect_moment("2026-01-31 13:00:01", 1769860801000);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(moment_parse(wrong[i], &ms), -1);
    }
}

static void expect_span(int64_t ms, const char *wanted)
{
    char text[MOMENT_SIZE];

    moment_span(ms, text, sizeof text);
    assert_string_equal(text, wanted);
}

/* Goal: spans have their two largest units; a time 5m ahead is not shown as 4m59s. */
static void test_moment_format(void **state)
{
    char text[MOMENT_SIZE];

    (void)state;
    expect_span(-5, "0s");
    expect_span(250, "250ms");
    expect_span(59999, "59s");
    expect_span(192000, "3m12s");
    expect_span(3600000, "1h");
    expect_span(86400000 * INT64_C(2) + 3 * 3600000 + 59000, "2d3h");
    moment_relative(1000000, 1192000, text, sizeof text);
    assert_string_equal(text, "3m12s ago");
    moment_relative(1300000, 1000005, text, sizeof text);
    assert_string_equal(text, "in 5m");
    moment_relative(1000500, 1000000, text, sizeof text);
    assert_string_equal(text, "now");
    moment_relative(1000000, 1000000, text, sizeof text);
    assert_string_equal(text, "just now");
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    tzset();
    moment_local(1769860800000, text, sizeof text);
    assert_string_equal(text, "2026-01-31 12:00:00 UTC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_width),         cmocka_unit_test(test_whole_keeps_other_bytes),
        cmocka_unit_test(test_table),         cmocka_unit_test(test_columns_give_way),
        cmocka_unit_test(test_wrap),          cmocka_unit_test(test_moment_parse),
        cmocka_unit_test(test_moment_format),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
