/*
 * Adopting: what a worker of this queue left that died on this host goes back into the queue at
 * once, where it is proved that nothing of its tasks runs any more (exec/holds). Where that is not
 * proved, and for workers of other hosts, their leases run out.
 */
#ifndef LEAT_DAEMON_ADOPT_H
#define LEAT_DAEMON_ADOPT_H

#include "config/config.h"
#include "daemon/herald.h"
#include "daemon/session.h"
#include "daemon/warden.h"

struct adopt;
struct ev_loop;

/* consumer: this worker's own. All parts outlive it; herald hears of the dead letters that it
 * makes; warden proves what hold files alone do not. Returns NULL without memory. */
struct adopt *adopt_new(struct ev_loop *loop, const struct config *config, struct session *session,
                        const struct queue *queue, const char *consumer, struct herald *herald,
                        const struct warden *warden);
void adopt_set_config(struct adopt *adopt, const struct config *config);
void adopt_free(struct adopt *adopt);

/* Looks for dead workers: after a registration, and at each scan. In between the folder tells of
 * changes. */
void adopt_look(struct adopt *adopt);

/* The session has ended. */
void adopt_down(struct adopt *adopt);

#endif
