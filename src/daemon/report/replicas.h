/*
 * Whether replicas have what Redis has settled, as [redis] wait_replicas asks for it. The question
 * goes over a connection of its own: WAIT holds up all that follows it, and no renewal may wait for
 * a replica. It begins with a write, which replicas have after all that was settled before.
 */
#ifndef LEAT_DAEMON_REPORT_REPLICAS_H
#define LEAT_DAEMON_REPORT_REPLICAS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/session/session.h"

struct replicas;

/* known: Redis has answered, enough replicas or too few, which is logged once an outage and counted
 * in Redis; otherwise the session was lost, and nothing is known. */
typedef void replicas_callback(void *context, bool known);

/* Returns NULL without memory. */
struct replicas *replicas_new(const struct config *config, struct session *session,
                              const struct queue *queue, replicas_callback *answered,
                              void *context);
void replicas_free(struct replicas *replicas); /* NULL does nothing */

/* The config asks for them. */
bool replicas_are_wanted(const struct replicas *replicas);

/* A question is under way. */
bool replicas_are_asked(const struct replicas *replicas);

/* Asks for all that Redis has answered so far, while no question is under way. tasks: how many wait
 * for this, to be counted. Returns 0, or -1 where nothing was sent and the session recovers. */
int replicas_ask(struct replicas *replicas, size_t tasks);

#endif
