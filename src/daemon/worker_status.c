/*
 * Derives the worker's status from the states of its modules.
 */
#include "daemon/worker_status.h"

#include "daemon/claim/admission.h"
#include "daemon/claim/claim_loop.h"
#include "daemon/claim/host.h"
#include "daemon/claim/lease.h"
#include "daemon/report/outcomes.h"
#include "daemon/session/session.h"
#include "daemon/stop.h"

enum worker_obstacle worker_status_obstacle(const struct worker_status *worker_status)
{
    if (stop_has_begun(worker_status->stop)) {
        return OBSTACLE_STOPPING;
    }
    if (worker_status->context->moving) {
        return OBSTACLE_MOVING;
    }
    if (host_is_closed(worker_status->host)) {
        return OBSTACLE_HOST;
    }
    if (!lease_fits(worker_status->lease)) {
        return OBSTACLE_LEASE;
    }
    if (outcomes_troubled(worker_status->outcomes)) {
        return OBSTACLE_OUTCOME;
    }
    if (worker_status->context->waiting) {
        return OBSTACLE_WAITING;
    }
    return admission_trouble(worker_status->admission) ? OBSTACLE_PRESSURE : OBSTACLE_NONE;
}

const char *worker_status_state(const struct worker_status *worker_status)
{
    static const char *const names[] = {
        [OBSTACLE_NONE] = "running",      [OBSTACLE_STOPPING] = "draining",
        [OBSTACLE_MOVING] = "draining",   [OBSTACLE_HOST] = "host-fault",
        [OBSTACLE_LEASE] = "lease-short", [OBSTACLE_OUTCOME] = "outcome-kept",
        [OBSTACLE_WAITING] = "starting",  [OBSTACLE_PRESSURE] = "pressed",
    };
    return names[worker_status_obstacle(worker_status)];
}

static const char *describe_pause(enum pause_kind pause)
{
    static const char *const texts[] = {
        [PAUSE_OPEN] = "",
        [PAUSE_HOLD] = "waiting one lease: the consumer group was lost",
        [PAUSE_OUTAGE] = "waiting for the other workers: Redis was restarted or replaced",
        [PAUSE_PAUSED] = "the queue is paused",
        [PAUSE_DRAINED] = "drained",
        [PAUSE_RATE] = "",
    };
    return texts[pause];
}

const char *worker_status_trouble(const struct worker_status *worker_status)
{
    if (!session_is_up(worker_status->session)) {
        return session_trouble(worker_status->session);
    }
    switch (worker_status_obstacle(worker_status)) {
    case OBSTACLE_MOVING:
        return "finishing tasks before the move to another Redis";
    case OBSTACLE_HOST:
        return host_trouble(worker_status->host);
    case OBSTACLE_LEASE:
        return "kill_grace is too long for the lease";
    case OBSTACLE_OUTCOME:
        return "Redis refuses an outcome";
    case OBSTACLE_PRESSURE:
        return admission_trouble(worker_status->admission);
    case OBSTACLE_WAITING:
        return "waiting until the former leatd hands over";
    case OBSTACLE_STOPPING:
    case OBSTACLE_NONE:
        return describe_pause(claim_loop_pause(worker_status->claim_loop));
    }
    return "";
}
