/* Arrays that grow by one element at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/array.h"

/* Adds numbers until there are `count`. */
static int *fill(int *numbers, size_t from, size_t count)
{
    for (size_t i = from; i < count; i++) {
        int *grown = array_grow(numbers, i, sizeof *numbers);
        assert_non_null(grown);
        numbers = grown;
        numbers[i] = (int)i;
    }
    return numbers;
}

/* Goal: there is room for each element, and no element is lost when the array moves. */
static void keeps_elements(void **state)
{
    int *numbers = fill(NULL, 0, 1000);

    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(numbers[i], i);
    }
    free(numbers);
}

/* Goal: an array may lose elements and grow again, from any number of them. Sanitizers and valgrind
 * see a write beyond its end. */
static void grows_again(void **state)
{
    int *numbers = fill(NULL, 0, 40);

    (void)state;
    for (size_t left = 0; left < 40; left++) {
        numbers = fill(numbers, left, 40);
        assert_int_equal(numbers[39], 39);
    }
    free(numbers);
}

/* Goal: between two powers of two the array is not allocated anew. */
static void moves_rarely(void **state)
{
    int *numbers = fill(NULL, 0, 9);

    (void)state;
    for (size_t i = 9; i < 16; i++) {
        assert_ptr_equal(array_grow(numbers, i, sizeof *numbers), numbers);
    }
    free(numbers);
}

#ifndef __SANITIZE_ADDRESS__ /* which ends the program instead */
/* Goal: a size that cannot be allocated is refused, and the array stays. */
static void refuses_too_much(void **state)
{
    int *numbers = fill(NULL, 0, 8);

    (void)state;
    assert_null(array_grow(numbers, 8, SIZE_MAX / 8));
    assert_int_equal(numbers[7], 7);
    free(numbers);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_elements),
        cmocka_unit_test(grows_again),
        cmocka_unit_test(moves_rarely),
#ifndef __SANITIZE_ADDRESS__
        cmocka_unit_test(refuses_too_much),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
