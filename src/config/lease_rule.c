/* Computes the margins of a lease. */
#include "config/lease_rule.h"

enum {
    MARGIN_SHARE = 20,
    MARGIN_LEAST_MS = 100,
    START_SHARE = 8,
    START_LEAST_MS = 1000,
    START_MOST_MS = 10000,
    HEARTBEATS = 3,
    SCANS = 4,
};

int64_t lease_rule_margin_ms(int64_t lease_ms)
{
    int64_t share = lease_ms / MARGIN_SHARE;
    return share > MARGIN_LEAST_MS ? share : MARGIN_LEAST_MS;
}

int64_t lease_rule_guard_ms(int64_t lease_ms)
{
    return (lease_rule_margin_ms(lease_ms) + 1) / 2;
}

int64_t lease_rule_notice_ms(int64_t kill_grace_ms, int64_t lease_ms)
{
    return kill_grace_ms + lease_rule_margin_ms(lease_ms);
}

int64_t lease_rule_start_ms(int64_t left_ms)
{
    int64_t most_ms = left_ms / START_SHARE;
    most_ms = most_ms > START_LEAST_MS ? most_ms : START_LEAST_MS;
    most_ms = most_ms < START_MOST_MS ? most_ms : START_MOST_MS;
    return most_ms < left_ms ? most_ms : left_ms;
}

int64_t lease_rule_heartbeat_ms(int64_t lease_ms)
{
    return lease_ms / HEARTBEATS;
}

int64_t lease_rule_connect_ms(int64_t lease_ms)
{
    return lease_ms / 2;
}

int64_t lease_rule_scan_ms(int64_t scan_ms, int64_t lease_ms)
{
    return scan_ms > 0 ? scan_ms : lease_ms / SCANS;
}

int64_t lease_rule_longest_grace_ms(int64_t lease_ms)
{
    return lease_ms / 2 - lease_rule_margin_ms(lease_ms);
}

bool lease_rule_fits(int64_t kill_grace_ms, int64_t lease_ms)
{
    return kill_grace_ms <= lease_rule_longest_grace_ms(lease_ms);
}

int64_t lease_rule_shortest_ms(int64_t kill_grace_ms)
{
    /* 1/2 - 1/20 = 9/20 of the lease is left for kill_grace, or less in a short lease. Rounding
     * shifts the result by a few ms, so the search begins below. */
    int64_t by_share = kill_grace_ms * MARGIN_SHARE / (MARGIN_SHARE / 2 - 1);
    int64_t by_least = 2 * (kill_grace_ms + MARGIN_LEAST_MS);
    int64_t lease_ms = by_share > by_least ? by_share : by_least;
    lease_ms -= MARGIN_SHARE;
    while (!lease_rule_fits(kill_grace_ms, lease_ms)) {
        lease_ms++;
    }
    return lease_ms;
}
