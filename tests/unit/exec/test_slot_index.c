#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/slot_index.h"

/* Goal: each index is the lowest free one, also if earlier ones were returned. */
static void test_lowest_free(void **state)
{
    (void)state;
    struct slot_indexes slot_indexes = {0};
    size_t slot_index;
    for (size_t i = 0; i < 200; i++) {
        assert_int_equal(slot_index_take(&slot_indexes, &slot_index), 0);
        assert_int_equal(slot_index, i);
    }
    static const size_t given_back[] = {130, 3, 64, 63};
    static const size_t expected[] = {3, 63, 64, 130, 200};
    for (size_t i = 0; i < sizeof given_back / sizeof *given_back; i++) {
        slot_index_release(&slot_indexes, given_back[i]);
    }
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_int_equal(slot_index_take(&slot_indexes, &slot_index), 0);
        assert_int_equal(slot_index, expected[i]);
    }
    slot_index_free(&slot_indexes);
}

/* Goal: after all were returned, it begins with 0 again. */
static void test_all_given_back(void **state)
{
    (void)state;
    struct slot_indexes slot_indexes = {0};
    size_t slot_index;
    for (size_t i = 0; i < 65; i++) {
        assert_int_equal(slot_index_take(&slot_indexes, &slot_index), 0);
    }
    for (size_t i = 65; i-- > 0;) {
        slot_index_release(&slot_indexes, i);
    }
    assert_int_equal(slot_index_take(&slot_indexes, &slot_index), 0);
    assert_int_equal(slot_index, 0);
    slot_index_free(&slot_indexes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lowest_free),
        cmocka_unit_test(test_all_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
