// Escaped text in a buffer of a fixed size.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/escape.h"

enum { SIZE = 8, LONG = 70000 };

/* What escape_copy writes, between bytes that it must not touch. */
static const char *copied(struct bytes bytes)
{
    static char text[1 + SIZE + LONG * 4];
    memset(text, '#', sizeof text);
    escape_copy(bytes, text + 1, SIZE);
    assert_int_equal(text[0], '#');
    for (size_t i = 1 + SIZE; i < sizeof text; i++) {
        assert_int_equal(text[i], '#');
    }
    assert_true(strlen(text + 1) < SIZE);
    return text + 1;
}

static void assert_copied(const char *from, const char *to)
{
    assert_string_equal(copied(bytes_of(from)), to);
}

// Goal: a text of any length, before or after it is escaped, stays within the buffer, and no
// character or escape is cut.
static void it_fits(void **state)
{
    static char much[LONG];
    (void)state;
    assert_copied("", "");
    assert_copied("seven..", "seven..");
    assert_copied("eight...", "eight..");
    assert_copied("a\nb", "a\\nb");
    assert_copied("\x1b\x1b\x1b", "\\x1b");
    assert_copied("123456\xc3\xa9", "123456");
    assert_copied("12345\xc3\xa9", "12345\xc3\xa9");
    assert_copied("1234\xf0\x9f\x98\x80", "1234");
    memset(much, 'x', sizeof much);
    assert_string_equal(copied((struct bytes){much, sizeof much}), "xxxxxxx");
    memset(much, '\x9b', sizeof much);
    assert_string_equal(copied((struct bytes){much, sizeof much}), "\\x9b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_fits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
