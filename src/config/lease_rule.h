/*
 * When a task has to end if its lease cannot be renewed. Pure functions; all times are in ms.
 *
 * Counted back from the end of the lease: the daemon sends TERM at kill_grace plus the margin, and
 * KILL at the margin; a guard, the backstop, kills at half of the margin. kill_grace and margin
 * must fit into half of the lease, so that a task is dead before its lease ends even if its worker
 * notices late that it cannot renew it.
 */
#ifndef LEAT_CONFIG_LEASE_RULE_H
#define LEAT_CONFIG_LEASE_RULE_H

#include <stdbool.h>
#include <stdint.h>

/* How long before the end of a lease the daemon sends KILL. */
int64_t lease_rule_margin_ms(int64_t lease_ms);

/* How long before the end of a lease a guard kills. */
int64_t lease_rule_guard_ms(int64_t lease_ms);

/* How long before the end of a lease the daemon sends TERM; and how much has to be left of a lease
 * for a task to start. */
int64_t lease_rule_notice_ms(int64_t kill_grace_ms, int64_t lease_ms);

/* How long the start of a task may take before a guard kills the new process, if so much is left of
 * its lease. The daemon waits for the start and cannot renew other leases meanwhile. */
int64_t lease_rule_start_ms(int64_t left_ms);

/* The time between two renewals. */
int64_t lease_rule_heartbeat_ms(int64_t lease_ms);

/* The longest time for connecting and logging in, and then for each answer to the registration. */
int64_t lease_rule_connect_ms(int64_t lease_ms);

/* How often to look for expired leases. scan_ms: [queue] scan, 0 for auto. */
int64_t lease_rule_scan_ms(int64_t scan_ms, int64_t lease_ms);

bool lease_rule_fits(int64_t kill_grace_ms, int64_t lease_ms);

/* The longest kill_grace that fits into the lease; negative if none does. */
int64_t lease_rule_longest_grace_ms(int64_t lease_ms);

/* The shortest lease that kill_grace fits into. */
int64_t lease_rule_shortest_ms(int64_t kill_grace_ms);

#endif
