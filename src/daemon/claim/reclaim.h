/*
 * Reclaims the tasks of dead workers of this queue on this host: they return to the queue at once
 * if it is proved that none of their processes is left (exec/guard/worker_locks). Without proof,
 * and for workers of other hosts, the tasks wait until their leases expire.
 */
#ifndef LEAT_DAEMON_CLAIM_RECLAIM_H
#define LEAT_DAEMON_CLAIM_RECLAIM_H

#include "daemon/claim/guard_monitor.h"
#include "daemon/report/dead_hook.h"
#include "daemon/session/worker_context.h"

struct reclaim;

/* dead_hook: learns of dead letters that reclaiming makes. guard_monitor: proves what lock files
 * alone do not, and checks this worker's own. Both must outlive the object. Returns NULL without
 * memory. */
struct reclaim *reclaim_new(struct worker_context *worker, struct dead_hook *dead_hook,
                            struct guard_monitor *guard_monitor);
void reclaim_free(struct reclaim *reclaim);

/* Looks for dead workers: call it after a registration and at each scan. Between these, changes in
 * the folder of lock files start a look. */
void reclaim_look(struct reclaim *reclaim);

/* The session has ended. */
void reclaim_down(struct reclaim *reclaim);

#endif
