/* Buffers grow, keep every byte, and survive a lack of memory. Bytes are escaped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/escape.h"

static void assert_holds(const struct buffer *buffer, const char *data, size_t size)
{
    assert_int_equal(buffer->size, size);
    assert_true(buffer->capacity >= size);
    if (size > 0) {
        assert_memory_equal(buffer->data, data, size);
    }
}

/* Goal: appended pieces are kept in order, including NUL bytes and empty pieces. */
static void appends_keep_every_byte(void **state)
{
    (void)state;
    struct buffer buffer = BUFFER_INIT;

    assert_int_equal(buffer_append(&buffer, NULL, 0), 0);
    assert_int_equal(buffer_append(&buffer, "a\0b", 3), 0);
    assert_int_equal(buffer_append_text(&buffer, ""), 0);
    assert_int_equal(buffer_append_text(&buffer, "text"), 0);
    assert_int_equal(buffer_printf(&buffer, "%d-%s", 7, "x"), 0);
    assert_int_equal(buffer_printf(&buffer, "%s", ""), 0);
    assert_holds(&buffer, "a\0btext7-x", 10);
    buffer_free(&buffer);
    assert_holds(&buffer, "", 0);
    buffer_free(&buffer);
}

/* Goal: a megabyte appended byte by byte is complete, and needs few reallocations. */
static void growth_is_steady(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    struct buffer buffer = BUFFER_INIT;
    size_t capacity = 0, moves = 0;

    for (size_t i = 0; i < SIZE; i++) {
        char byte = (char)(i * 31);

        assert_int_equal(buffer_append(&buffer, &byte, 1), 0);
        moves += buffer.capacity != capacity ? 1 : 0;
        capacity = buffer.capacity;
    }
    assert_int_equal(buffer.size, SIZE);
    for (size_t i = 0; i < SIZE; i += 997) {
        assert_int_equal(buffer.data[i], (char)(i * 31));
    }
    assert_true(moves < 40);
    buffer_free(&buffer);
}

/* Goal: all, some or no bytes are removed from the front. */
static void consuming_keeps_the_rest(void **state)
{
    (void)state;
    struct buffer buffer = BUFFER_INIT;

    buffer_consume(&buffer, 0);
    assert_int_equal(buffer_append_text(&buffer, "abcdef"), 0);
    buffer_consume(&buffer, 2);
    assert_holds(&buffer, "cdef", 4);
    buffer_consume(&buffer, 0);
    assert_holds(&buffer, "cdef", 4);
    buffer_consume(&buffer, 4);
    assert_holds(&buffer, "", 0);
    assert_int_equal(buffer_append_text(&buffer, "again"), 0);
    assert_holds(&buffer, "again", 5);
    buffer_free(&buffer);
}

/* Goal: clearing keeps the memory. */
static void clearing_keeps_the_memory(void **state)
{
    (void)state;
    struct buffer buffer = BUFFER_INIT;

    assert_int_equal(buffer_reserve(&buffer, 1000), 0);
    assert_true(buffer.capacity >= 1000);
    const char *data = buffer.data;
    assert_int_equal(buffer_append_text(&buffer, "abc"), 0);
    buffer_clear(&buffer);
    assert_holds(&buffer, "", 0);
    assert_ptr_equal(buffer.data, data);
    buffer_free(&buffer);
}

/* Goal: after a failed append the content is unchanged, and nothing is appended until the buffer is
 * cleared. */
static void failure_leaves_no_hole(void **state)
{
    (void)state;
    struct buffer buffer = BUFFER_INIT;

    assert_int_equal(buffer_append_text(&buffer, "abc"), 0);
    assert_int_equal(buffer_reserve(&buffer, SIZE_MAX - 1), -1);
    assert_true(buffer.failed);
    assert_int_equal(buffer_append_text(&buffer, "def"), -1);
    assert_int_equal(buffer_printf(&buffer, "%d", 1), -1);
    assert_holds(&buffer, "abc", 3);
    buffer_clear(&buffer);
    assert_int_equal(buffer_append_text(&buffer, "def"), 0);
    assert_holds(&buffer, "def", 3);

    /* the sum does not overflow, but is more than any allocation */
    assert_int_equal(buffer_reserve(&buffer, PTRDIFF_MAX), -1);
    assert_true(buffer.failed);
    assert_holds(&buffer, "def", 3);
    buffer_free(&buffer);
}

/* Goal: only printable, valid UTF-8 stays unescaped. */
static void escapes_make_bytes_safe(void **state)
{
    (void)state;
    const struct {
        const char *data;
        size_t size;
        const char *text;
    } cases[] = {
        {"", 0, ""},
        {"plain text", 10, "plain text"},
        {"a\0b", 3, "a\\x00b"},
        {"a\nb\r\tc", 6, "a\\nb\\r\\tc"},
        {"\033[31m\x7f", 6, "\\x1b[31m\\x7f"},
        {"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 12, "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        /* a lone byte, a truncated sequence, an overlong one, a surrogate, a value beyond Unicode,
         * a C1 control */
        {"\xff", 1, "\\xff"},
        {"\xe2\x82", 2, "\\xe2\\x82"},
        {"\xe2\x82z", 3, "\\xe2\\x82z"},
        {"\xc0\xaf", 2, "\\xc0\\xaf"},
        {"\xe0\x80\xaf", 3, "\\xe0\\x80\\xaf"},
        {"\xed\xa0\x80", 3, "\\xed\\xa0\\x80"},
        {"\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80"},
        {"\xc2\x9b", 2, "\\xc2\\x9b"},
        {"\x80", 1, "\\x80"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buffer buffer = BUFFER_INIT;

        assert_int_equal(escape_append(&buffer, cases[i].data, cases[i].size), 0);
        assert_holds(&buffer, cases[i].text, strlen(cases[i].text));
        buffer_free(&buffer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_keep_every_byte),  cmocka_unit_test(growth_is_steady),
        cmocka_unit_test(consuming_keeps_the_rest), cmocka_unit_test(clearing_keeps_the_memory),
        cmocka_unit_test(failure_leaves_no_hole),   cmocka_unit_test(escapes_make_bytes_safe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
