/*
 * The rule between a queue's lease and a worker's kill_grace: TERM, kill_grace and a safety margin
 * must fit into half of the lease, so that a task is dead before its lease ends even if its worker
 * notices late that it cannot renew it. Pure functions; all times are in ms.
 */
#ifndef LEAT_CONFIG_LEASE_RULE_H
#define LEAT_CONFIG_LEASE_RULE_H

#include <stdbool.h>
#include <stdint.h>

/* How long before the end of a lease KILL is sent. */
int64_t lease_rule_margin_ms(int64_t lease_ms);

bool lease_rule_fits(int64_t kill_grace_ms, int64_t lease_ms);

/* The longest kill_grace that fits into the lease; negative if none does. */
int64_t lease_rule_longest_grace_ms(int64_t lease_ms);

/* The shortest lease that kill_grace fits into. */
int64_t lease_rule_shortest_ms(int64_t kill_grace_ms);

#endif
