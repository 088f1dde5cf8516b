/* The rule between a queue's lease and a worker's kill_grace. */
#include "config/lease_rule.h"

enum { MARGIN_SHARE = 20, MARGIN_LEAST_MS = 100 };

int64_t lease_rule_margin_ms(int64_t lease_ms)
{
    int64_t share = lease_ms / MARGIN_SHARE;
    return share > MARGIN_LEAST_MS ? share : MARGIN_LEAST_MS;
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
