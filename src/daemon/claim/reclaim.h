/*
 * Adopting: what a worker of this queue left that died on this host goes back into the queue at
 * once, where it is proved that nothing of its tasks runs any more (exec/guard/worker_locks). Where
 * that is not proved, and for workers of other hosts, their leases run out.
 */
#ifndef LEAT_DAEMON_CLAIM_RECLAIM_H
#define LEAT_DAEMON_CLAIM_RECLAIM_H

#include "config/config.h"
#include "daemon/claim/guard_monitor.h"
#include "daemon/report/dead_hook.h"
#include "daemon/session/session.h"

struct reclaim;
struct ev_loop;

/* consumer: this worker's own. All parts outlive it; herald hears of the dead letters that it
 * makes; warden proves what hold files alone do not. Returns NULL without memory. */
struct reclaim *reclaim_new(struct ev_loop *loop, const struct config *config,
                            struct session *session, const struct queue *queue,
                            const char *consumer, struct dead_hook *dead_hook,
                            const struct guard_monitor *guard_monitor);
void reclaim_set_config(struct reclaim *reclaim, const struct config *config);
void reclaim_free(struct reclaim *reclaim);

/* Looks for dead workers: after a registration, and at each scan. In between the folder tells of
 * changes. */
void reclaim_look(struct reclaim *reclaim);

/* The session has ended. */
void reclaim_down(struct reclaim *reclaim);

#endif
