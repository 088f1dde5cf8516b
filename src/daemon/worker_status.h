/*
 * How the worker stands: whether it takes tasks, what it is called then, and what keeps it from
 * taking more.
 */
#ifndef LEAT_DAEMON_WORKER_STATUS_H
#define LEAT_DAEMON_WORKER_STATUS_H

#include <stdbool.h>

struct admission;
struct host;
struct claim_loop;
struct lease;
struct outcomes;
struct session;
struct stop;

/* What it depends on; nothing of it is owned. */
struct worker_status {
    const struct session *session;
    const struct stop *stop;
    const struct host *host;
    const struct admission *admission;
    const struct outcomes *outcomes;
    const struct lease *lease;
    const struct claim_loop *claim_loop;
};

/* No task is to be claimed: for reasons of this worker's own, not of the queue's. */
bool worker_status_is_closed(const struct worker_status *worker_status);

/* "running", "draining", "host-fault", "lease-short", "outcome-kept" or "pressed". */
const char *worker_status_state(const struct worker_status *worker_status);

/* Why nothing is claimed, for people; "" where it is. */
const char *worker_status_trouble(const struct worker_status *worker_status);

#endif
