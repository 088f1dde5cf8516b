/*
 * The status of the worker: whether it claims tasks, the name of its state, and why it claims
 * nothing.
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

/* The modules that decide the status; nothing is owned. */
struct worker_status {
    const struct session *session;
    const struct stop *stop;
    const struct host *host;
    const struct admission *admission;
    const struct outcomes *outcomes;
    const struct lease *lease;
    const struct claim_loop *claim_loop;
};

/* Returns whether a state of this worker, not of the queue, forbids claiming tasks. */
bool worker_status_is_closed(const struct worker_status *worker_status);

/* "running", "draining", "host-fault", "lease-short", "outcome-kept" or "pressed". */
const char *worker_status_state(const struct worker_status *worker_status);

/* Returns why nothing is claimed, for people; "" if tasks are claimed. */
const char *worker_status_trouble(const struct worker_status *worker_status);

#endif
