#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/guard/guard_entry.h"

#define S CLOCK_NS_PER_S

/* Goal: a deadline is rounded down to a millisecond, so it is never later than the lease. */
static void test_deadline(void **state)
{
    (void)state;
    struct guard_entry slot = {0};
    assert_false(guard_entry_is_armed(&slot));
    assert_int_equal(guard_entry_deadline(&slot), UINT64_MAX);
    assert_int_equal(guard_entry_arm(&slot, 5 * S + 999999), 5000);
    assert_true(guard_entry_is_armed(&slot));
    assert_int_equal(guard_entry_deadline(&slot), 5000);
    assert_int_equal(guard_entry_take(&slot, 4999), 0);
    assert_true(guard_entry_take(&slot, 5000) != 0);
    guard_entry_disarm(&slot);
    assert_int_equal(guard_entry_arm(&slot, -1), 1); /* in the past, but armed */
    assert_true(guard_entry_take(&slot, 1) != 0);
}

/* Goal: an entry without a lease is taken only if all are. */
static void test_never(void **state)
{
    (void)state;
    struct guard_entry slot = {0};
    guard_entry_arm(&slot, GUARD_NEVER);
    assert_true(guard_entry_is_armed(&slot));
    assert_int_equal(guard_entry_deadline(&slot), UINT64_MAX);
    assert_int_equal(guard_entry_take(&slot, UINT64_MAX - 1), 0);
    assert_true(guard_entry_take(&slot, UINT64_MAX) != 0);
}

/* Goal: a renewal moves the deadline of an entry that is armed and not taken, both ways, and no
 * other. */
static void test_renew(void **state)
{
    (void)state;
    struct guard_entry slot = {0};
    assert_false(guard_entry_renew(&slot, 9 * S));
    assert_false(guard_entry_is_armed(&slot));
    guard_entry_arm(&slot, 5 * S);
    assert_true(guard_entry_renew(&slot, 9 * S));
    assert_int_equal(guard_entry_take(&slot, 8999), 0);
    assert_true(guard_entry_renew(&slot, 7 * S));
    assert_int_equal(guard_entry_deadline(&slot), 7000);
    uint64_t word = guard_entry_take(&slot, 7000);
    assert_true(word != 0 && guard_entry_is_taken(&slot));
    assert_false(guard_entry_renew(&slot, 99 * S));
    assert_int_equal(guard_entry_take(&slot, 0), word); /* another guard continues with it */
    assert_int_equal(guard_entry_deadline(&slot), UINT64_MAX);
    guard_entry_disarm(&slot);
    assert_false(guard_entry_is_taken(&slot) || guard_entry_is_armed(&slot));
    assert_false(guard_entry_renew(&slot, 99 * S));
}

/* Goal: a state of one process does not apply to the next one in its entry. */
static void test_generations(void **state)
{
    (void)state;
    struct guard_entry slot = {0};
    struct guard_process process;
    guard_entry_arm(&slot, 5 * S);
    assert_true(guard_entry_enter(&slot));
    guard_entry_ends(&slot, 7);
    uint64_t word = guard_entry_take(&slot, UINT64_MAX);
    assert_true(guard_entry_read(&slot, word, &process));
    assert_int_equal(process.pid, getpid());
    assert_true(process.born_ns > 0 && process.born_ns <= clock_boot_ns());
    assert_int_equal(process.ended_ns, 7);
    guard_entry_disarm(&slot);
    assert_false(guard_entry_read(&slot, word, &process));
    guard_entry_arm(&slot, 5 * S);
    uint64_t next = guard_entry_take(&slot, UINT64_MAX);
    assert_true(next != word);
    assert_false(guard_entry_read(&slot, word, &process));
    assert_true(guard_entry_read(&slot, next, &process));
    assert_int_equal(process.pid, 0);
    assert_int_equal(process.ended_ns, 0);
}

/* Goal: a child that starts after its entry was taken learns of it. */
static void test_late_child(void **state)
{
    (void)state;
    struct guard_entry slot = {0};
    guard_entry_arm(&slot, 5 * S);
    assert_true(guard_entry_take(&slot, UINT64_MAX) != 0);
    assert_false(guard_entry_enter(&slot));
    guard_entry_disarm(&slot);
    guard_entry_arm(&slot, 5 * S);
    assert_true(guard_entry_enter(&slot));
}

/* Goal: the generation wraps around. */
static void test_many_generations(void **state)
{
    (void)state;
    struct guard_entry slot = {.word = ((UINT64_C(1) << 23) - 1)};
    guard_entry_arm(&slot, 5 * S);
    assert_false(guard_entry_is_taken(&slot));
    assert_int_equal(guard_entry_deadline(&slot), 5000);
    guard_entry_disarm(&slot);
    assert_int_equal(slot.word, 0);
}

enum { ROUNDS = 20000 };

static void *take_again_and_again(void *context)
{
    struct guard_entry *slot = context;
    size_t taken = 0;
    for (int i = 0; i < ROUNDS; i++) {
        taken += guard_entry_take(slot, 1000) != 0;
    }
    return (void *)taken;
}

/* Goal: with renewals and a guard at the same time, a renewed entry is not taken, a taken one is
 * not renewed, and deadlines are not mixed. */
static void test_race(void **state)
{
    (void)state;
    static struct guard_entry slot;
    pthread_t guard;
    assert_int_equal(pthread_create(&guard, NULL, take_again_and_again, &slot), 0);
    for (int i = 0; i < ROUNDS; i++) {
        guard_entry_arm(&slot, i % 2 ? 2 * S : S);
        bool renewed = guard_entry_renew(&slot, 3 * S);
        assert_true(renewed != guard_entry_is_taken(&slot));
        assert_true(!renewed || guard_entry_deadline(&slot) == 3000);
        assert_true(!guard_entry_is_taken(&slot) || i % 2 == 0);
        guard_entry_disarm(&slot);
    }
    assert_int_equal(pthread_join(guard, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deadline),   cmocka_unit_test(test_never),
        cmocka_unit_test(test_renew),      cmocka_unit_test(test_generations),
        cmocka_unit_test(test_late_child), cmocka_unit_test(test_many_generations),
        cmocka_unit_test(test_race),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
