/* Lists of words as text of limited size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/join.h"

/* Goal: the separator stands only between words. */
static void separates_words(void **state)
{
    char text[32] = "";

    (void)state;
    join_word(text, sizeof text, ", ", "web1");
    assert_string_equal(text, "web1");
    join_word(text, sizeof text, ", ", "web2");
    join_word(text, sizeof text, " ", "web3");
    assert_string_equal(text, "web1, web2 web3");
}

/* Goal: a word that does not fit is left out whole, and one that fits may follow. */
static void leaves_out_what_does_not_fit(void **state)
{
    char text[10] = "";

    (void)state;
    join_word(text, sizeof text, ", ", "0123456789");
    assert_string_equal(text, "");
    join_word(text, sizeof text, ", ", "abc");
    join_word(text, sizeof text, ", ", "12345");
    assert_string_equal(text, "abc");
    join_word(text, sizeof text, ", ", "1234");
    assert_string_equal(text, "abc, 1234");
    join_word(text, sizeof text, ", ", "");
    assert_string_equal(text, "abc, 1234");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(separates_words),
        cmocka_unit_test(leaves_out_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
