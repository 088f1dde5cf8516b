// Output of tasks: lines are cut right wherever reads end, and the last bytes are kept within
// limits.
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec/attempt/output.h"

/* Appends a line, ended by '|', or by '/' if it continues. */
static bool take_line(void *context, const void *data, size_t size, bool ends)
{
    assert_int_equal(buffer_append(context, data, size), 0);
    assert_int_equal(buffer_append(context, ends ? "|" : "/", 1), 0);
    return true;
}

static char scratch[65536];

static bool read_lines(struct output *output, char *into, size_t size, size_t tail,
                       const struct output_lines *lines)
{
    bool more = output_read(output, into, size, tail);
    assert_int_equal(output_cut(output, into, output->got, lines), output->got);
    return more;
}

/* Writes the bytes to a pipe in pieces of `step`, reads each, and compares the lines. */
static void assert_lines(const char *data, size_t size, size_t step, size_t max,
                         const char *expected)
{
    int ends[2];
    struct output output;
    struct buffer got = BUFFER_INIT;
    struct output_lines lines = {.max = max, .line = take_line, .context = &got};
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    output_open(&output, ends[0]);
    for (size_t at = 0; at < size; at += step) {
        size_t piece = size - at < step ? size - at : step;
        assert_int_equal(write(ends[1], data + at, piece), piece);
        assert_true(read_lines(&output, scratch, sizeof scratch, 10, &lines));
        assert_true(output.line.size <= max);
    }
    assert_false(
        read_lines(&output, scratch, sizeof scratch, 10, &lines)); /* there is nothing to read */
    assert_true(output.fd >= 0);
    close(ends[1]);
    assert_false(read_lines(&output, scratch, sizeof scratch, 10, &lines));
    assert_int_equal(output.fd, -1);
    output_finish(&output, &lines);
    if (got.size != strlen(expected) ||
        strncmp(got.data ? got.data : "", expected, got.size) != 0) {
        fail_msg("\"%.*s\" is not \"%s\" (pieces of %zu)", (int)got.size, got.data, expected, step);
    }
    buffer_free(&got);
    output_free(&output);
}

// Goal: lines are the same for any pieces; a last one without an end is passed on.
static void lines_do_not_depend_on_reads(void **state)
{
    (void)state;
    static const char data[] = "one\n\ntwo three\n12345678\n123456789\nlong-long-long-line\nend";
    for (size_t step = 1; step < sizeof data; step++) {
        assert_lines(data, sizeof data - 1, step, 8,
                     "one||two thre/e|12345678|12345678/9|long-lon/g-long-l/ine|end|");
        assert_lines(data, sizeof data - 1, step, 1000,
                     "one||two three|12345678|123456789|long-long-long-line|end|");
    }
    assert_lines("", 0, 1, 8, "");
    assert_lines("\n", 1, 1, 8, "|");
}

/* Takes every third line that it is offered. */
struct picky {
    struct buffer got;
    size_t offered;
};

static bool take_some(void *context, const void *data, size_t size, bool ends)
{
    struct picky *picky = context;
    return ++picky->offered % 3 == 0 && take_line(&picky->got, data, size, ends);
}

// Goal: a line that is not taken is offered again, whole and in its place, wherever the reads
// ended.
static void lines_that_are_not_taken_come_again(void **state)
{
    (void)state;
    static const char data[] = "one\n\ntwo three\n12345678\n123456789\nlong-long-long-line\nend";
    static const char expected[] = "one||two thre/e|12345678|12345678/9|long-lon/g-long-l/ine|end|";
    for (size_t step = 1; step < sizeof data; step++) {
        struct picky picky = {.got = BUFFER_INIT};
        struct output_lines lines = {.max = 8, .line = take_some, .context = &picky};
        struct output output;
        output_open(&output, -1);
        for (size_t at = 0; at < sizeof data - 1;) {
            size_t left = sizeof data - 1 - at;
            at += output_cut(&output, data + at, left < step ? left : step, &lines);
        }
        while (!output_end(&output, &lines)) {
        }
        assert_int_equal(picky.got.size, sizeof expected - 1);
        assert_memory_equal(picky.got.data, expected, sizeof expected - 1);
        buffer_free(&picky.got);
        output_free(&output);
    }
}

static struct bytes tail_of(size_t total, size_t step, size_t limit)
{
    int ends[2];
    struct output output;
    static char data[65536];
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    output_open(&output, ends[0]);
    for (size_t at = 0; at < total; at += step) {
        size_t piece = total - at < step ? total - at : step;
        for (size_t i = 0; i < piece; i++) {
            data[i] = (char)('a' + (at + i) % 26);
        }
        assert_int_equal(write(ends[1], data, piece), piece);
        assert_true(output_read(&output, scratch, sizeof scratch, limit));
        assert_true(output.tail.capacity <= 3 * limit + 64);
    }
    close(ends[1]);
    struct bytes tail = output_take_tail(&output, limit);
    output_free(&output);
    return tail;
}

// Goal: the tail is exactly the last bytes, in little memory, for every size of writes.
static void tails_are_the_last_bytes(void **state)
{
    (void)state;
    static const size_t totals[] = {1, 99, 100, 101, 199, 200, 201, 1000, 5000};
    static const size_t steps[] = {1, 7, 50, 99, 100, 101, 150, 250, 5000};
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++) {
        for (size_t j = 0; j < sizeof steps / sizeof *steps; j++) {
            struct bytes tail = tail_of(totals[i], steps[j], 100);
            size_t expected = totals[i] < 100 ? totals[i] : 100;
            assert_int_equal(tail.size, expected);
            for (size_t k = 0; k < expected; k++) {
                assert_int_equal(tail.data[k], 'a' + (totals[i] - expected + k) % 26);
            }
            free((char *)tail.data);
        }
    }
}

// Goal: without a wanted tail none is kept; a silent task costs nothing.
static void nothing_is_kept_for_nothing(void **state)
{
    (void)state;
    struct bytes tail = tail_of(1000, 100, 0);
    assert_int_equal(tail.size, 0);
    free((char *)tail.data);
    tail = tail_of(0, 1, 100);
    assert_null(tail.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_do_not_depend_on_reads),
        cmocka_unit_test(lines_that_are_not_taken_come_again),
        cmocka_unit_test(tails_are_the_last_bytes),
        cmocka_unit_test(nothing_is_kept_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
