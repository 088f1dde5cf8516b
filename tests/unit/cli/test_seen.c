/* The set of seen names: no seen name is denied, and hardly any other is reported as seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "cli/doctor/seen.h"

#define MANY 1000000

/* Names as Redis makes them, which differ in a few digits only. */
static size_t name_of(unsigned number, char name[32])
{
    return (size_t)snprintf(name, 32, "17953%08u-%u", number / 7, number % 7);
}

/* Goal: of a million names none is denied, and of a million others almost none is reported as
 * seen. */
static void test_many(void **state)
{
    struct seen *seen = seen_new();
    char name[32];
    unsigned wrong = 0;

    (void)state;
    assert_non_null(seen);
    for (unsigned i = 0; i < MANY; i++) {
        seen_add(seen, name, name_of(i, name));
    }
    for (unsigned i = 0; i < MANY; i++) {
        assert_true(seen_has(seen, name, name_of(i, name)));
    }
    for (unsigned i = MANY; i < 2 * MANY; i++) {
        wrong += seen_has(seen, name, name_of(i, name));
    }
    assert_in_range(wrong, 0, 3);
    seen_free(seen);
}

/* Goal: an empty set has seen nothing; names are bytes, and an empty name is a name. */
static void test_bytes(void **state)
{
    struct seen *seen = seen_new();

    (void)state;
    assert_non_null(seen);
    assert_false(seen_has(seen, "", 0));
    seen_add(seen, "a\0b", 3);
    assert_true(seen_has(seen, "a\0b", 3));
    assert_false(seen_has(seen, "a\0c", 3));
    assert_false(seen_has(seen, "a", 1));
    seen_add(seen, "", 0);
    assert_true(seen_has(seen, "", 0));
    seen_free(seen);
    seen_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
