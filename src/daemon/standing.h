/*
 * How the worker stands: whether it takes tasks, what it is called then, and what keeps it from
 * taking more.
 */
#ifndef LEAT_DAEMON_STANDING_H
#define LEAT_DAEMON_STANDING_H

#include <stdbool.h>

struct admission;
struct host;
struct intake;
struct lease;
struct results;
struct session;
struct stop;

/* What it depends on; nothing of it is owned. */
struct standing {
    const struct session *session;
    const struct stop *stop;
    const struct host *host;
    const struct admission *admission;
    const struct results *results;
    const struct lease *lease;
    const struct intake *intake;
};

/* No task is to be claimed: for reasons of this worker's own, not of the queue's. */
bool standing_is_closed(const struct standing *standing);

/* "running", "draining", "host-fault", "lease-short", "outcome-kept" or "pressed". */
const char *standing_state(const struct standing *standing);

/* Why nothing is claimed, for people; "" where it is. */
const char *standing_trouble(const struct standing *standing);

#endif
