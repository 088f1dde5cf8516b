/* Goal: the shortest lease for a kill_grace, and the longest kill_grace for a lease, are exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/lease_rule.h"

static void test_bounds_are_exact(void **state)
{
    (void)state;
    for (int64_t grace_ms = 0; grace_ms < 3600000; grace_ms += grace_ms < 5000 ? 1 : 997) {
        int64_t shortest_ms = lease_rule_shortest_ms(grace_ms);
        assert_true(lease_rule_fits(grace_ms, shortest_ms));
        assert_false(lease_rule_fits(grace_ms, shortest_ms - 1));
        assert_true(lease_rule_longest_grace_ms(shortest_ms) >= grace_ms);
    }
    assert_int_equal(lease_rule_shortest_ms(10000), 22222);
    assert_int_equal(lease_rule_margin_ms(1000), 100);
    assert_int_equal(lease_rule_margin_ms(60000), 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds_are_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
