/*
 * Waits until replicas have what Redis has settled, for [redis] wait_replicas. WAIT has a
 * connection of its own: it delays every command after it, and no renewal may wait for a replica.
 * Each question starts with a write; replicas that have this write have everything that was settled
 * before it.
 */
#ifndef LEAT_DAEMON_REPORT_REPLICAS_H
#define LEAT_DAEMON_REPORT_REPLICAS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/session/session.h"

struct replicas;

/* known: Redis has answered that there are enough replicas or too few. Too few is logged once in an
 * outage and counted in Redis. If known is false, the session was lost before the answer. */
typedef void replicas_callback(void *context, bool known);

/* Returns NULL without memory. */
struct replicas *replicas_new(struct worker_context *worker, replicas_callback *answered,
                              void *context);
void replicas_free(struct replicas *replicas); /* NULL does nothing */

/* Returns whether the config asks for replicas. */
bool replicas_are_wanted(const struct replicas *replicas);

/* Returns whether a question is in flight. */
bool replicas_are_asked(const struct replicas *replicas);

/* Asks about everything that Redis has answered so far; no question may be in flight. tasks: how
 * many outcomes wait for the answer, at least 1. Returns 0, or −1 if nothing was sent and the
 * session recovers. */
int replicas_ask(struct replicas *replicas, size_t tasks);

#endif
