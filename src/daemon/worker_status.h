/*
 * The status of the worker: whether it may claim tasks, the name of its state, and why it claims
 * nothing.
 */
#ifndef LEAT_DAEMON_WORKER_STATUS_H
#define LEAT_DAEMON_WORKER_STATUS_H

struct admission;
struct host;
struct claim_loop;
struct lease;
struct outcomes;
struct session;
struct stop;
struct worker_context;

/* The modules that decide the status; nothing is owned. */
struct worker_status {
    const struct worker_context *context;
    const struct session *session;
    const struct stop *stop;
    const struct host *host;
    const struct admission *admission;
    const struct outcomes *outcomes;
    const struct lease *lease;
    const struct claim_loop *claim_loop;
};

/* An obstacle that keeps this worker, not the queue, from claiming and starting tasks. */
enum worker_obstacle {
    OBSTACLE_NONE,
    OBSTACLE_STOPPING,
    OBSTACLE_MOVING,
    OBSTACLE_HOST,
    OBSTACLE_LEASE,
    OBSTACLE_OUTCOME,
    OBSTACLE_WAITING,
    OBSTACLE_PRESSURE,
};

/* Returns the first of them that there is: the only place that decides whether the worker may
 * claim. */
enum worker_obstacle worker_status_obstacle(const struct worker_status *worker_status);

/* "running", "draining", "host-fault", "lease-short", "outcome-kept", "starting" or "pressed". */
const char *worker_status_state(const struct worker_status *worker_status);

/* Returns why nothing is claimed, for people; "" if tasks are claimed. */
const char *worker_status_trouble(const struct worker_status *worker_status);

#endif
