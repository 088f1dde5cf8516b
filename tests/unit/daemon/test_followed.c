/* The table of tasks that somebody follows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "daemon/report/followed.h"

static void keeps_the_longest_time(void **state)
{
    (void)state;
    struct followed followed = {0};
    followed_add(&followed, "1-0", 50);
    followed_add(&followed, "2-0", 60);
    followed_add(&followed, "1-0", 40);
    assert_int_equal(followed_until(&followed, "1-0"), 50);
    followed_add(&followed, "1-0", 70);
    assert_int_equal(followed_until(&followed, "1-0"), 70);
    assert_int_equal(followed_until(&followed, "2-0"), 60);
    assert_int_equal(followed_until(&followed, "3-0"), 0);
}

/* Goal: the table never grows; the task whose time ends first gives way. */
static void is_bounded(void **state)
{
    (void)state;
    struct followed followed = {0};
    char tid[32];
    for (int i = 0; i < FOLLOWED_MOST + 1; i++) {
        (void)snprintf(tid, sizeof tid, "%d-0", i);
        followed_add(&followed, tid, 100 + (i + 7) % FOLLOWED_MOST);
    }
    (void)snprintf(tid, sizeof tid, "%d-0", FOLLOWED_MOST - 7);
    assert_int_equal(followed_until(&followed, tid), 0);
    assert_int_equal(followed_until(&followed, "0-0"), 107);
    (void)snprintf(tid, sizeof tid, "%d-0", FOLLOWED_MOST);
    assert_int_equal(followed_until(&followed, tid), 107);
}

static void ignores_a_tid_that_is_too_long(void **state)
{
    (void)state;
    struct followed followed = {0};
    char tid[FOLLOWED_TID_SIZE + 1];
    for (size_t i = 0; i < FOLLOWED_TID_SIZE; i++) {
        tid[i] = '1';
    }
    tid[FOLLOWED_TID_SIZE] = '\0';
    followed_add(&followed, tid, 50);
    assert_int_equal(followed_until(&followed, tid), 0);
    followed_add(&followed, tid + 1, 50);
    assert_int_equal(followed_until(&followed, tid + 1), 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_longest_time),
        cmocka_unit_test(is_bounded),
        cmocka_unit_test(ignores_a_tid_that_is_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
