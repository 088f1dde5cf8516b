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
    assert_int_equal(lease_rule_scan_ms(0, 60000), 15000);
    assert_int_equal(lease_rule_scan_ms(7000, 60000), 7000);
}

/* Goal: TERM comes before KILL, and KILL before a guard's, all before the lease ends; the start of
 * a task never takes longer than the rest of its lease. */
static void test_margins_are_in_order(void **state)
{
    (void)state;
    for (int64_t lease_ms = 1000; lease_ms < 86400000; lease_ms += lease_ms / 7) {
        int64_t grace_ms = lease_rule_longest_grace_ms(lease_ms);
        int64_t notice_ms = lease_rule_notice_ms(grace_ms, lease_ms);
        assert_true(notice_ms <= lease_ms / 2 && notice_ms > lease_rule_margin_ms(lease_ms));
        assert_true(lease_rule_margin_ms(lease_ms) > lease_rule_guard_ms(lease_ms));
        assert_true(lease_rule_guard_ms(lease_ms) >= 50);
        assert_true(2 * lease_rule_heartbeat_ms(lease_ms) < lease_ms);
        /* a pause before a reconnect is at most half of a heartbeat */
        assert_true(lease_rule_connect_ms(lease_ms) + lease_rule_heartbeat_ms(lease_ms) / 2 <
                    lease_ms);
    }
    assert_int_equal(lease_rule_start_ms(300), 300);
    assert_int_equal(lease_rule_start_ms(4000), 1000);
    assert_int_equal(lease_rule_start_ms(40000), 5000);
    assert_int_equal(lease_rule_start_ms(3600000), 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds_are_exact),
                                       cmocka_unit_test(test_margins_are_in_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
