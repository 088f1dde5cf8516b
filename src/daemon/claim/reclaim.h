/*
 * Reclaims the tasks of dead workers of this queue on this host: they return to the queue at once
 * if it is proved that none of their processes is left (exec/guard/worker_locks). Without proof,
 * and for workers of other hosts, the tasks wait until their leases expire.
 */
#ifndef LEAT_DAEMON_CLAIM_RECLAIM_H
#define LEAT_DAEMON_CLAIM_RECLAIM_H

#include "config/config.h"
#include "daemon/claim/guard_monitor.h"
#include "daemon/report/dead_hook.h"
#include "daemon/session/session.h"

struct reclaim;
struct ev_loop;

/* consumer: this worker's name. dead_hook: learns of dead letters that reclaiming makes.
 * guard_monitor: proves what lock files alone do not. All arguments must outlive the object; config
 * may be replaced. Returns NULL without memory. */
struct reclaim *reclaim_new(struct ev_loop *loop, const struct config *config,
                            struct session *session, const struct queue *queue,
                            const char *consumer, struct dead_hook *dead_hook,
                            const struct guard_monitor *guard_monitor);
void reclaim_set_config(struct reclaim *reclaim, const struct config *config);
void reclaim_free(struct reclaim *reclaim);

/* Looks for dead workers: call it after a registration and at each scan. Between these, changes in
 * the folder of lock files start a look. */
void reclaim_look(struct reclaim *reclaim);

/* The session has ended. */
void reclaim_down(struct reclaim *reclaim);

#endif
