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

bool worker_status_is_closed(const struct worker_status *worker_status)
{
    return stop_has_begun(worker_status->stop) || host_is_closed(worker_status->host) ||
           admission_trouble(worker_status->admission) ||
           outcomes_troubled(worker_status->outcomes) || !lease_fits(worker_status->lease);
}

const char *worker_status_state(const struct worker_status *worker_status)
{
    if (stop_has_begun(worker_status->stop)) {
        return "draining";
    }
    if (host_is_closed(worker_status->host)) {
        return "host-fault";
    }
    if (!lease_fits(worker_status->lease)) {
        return "lease-short";
    }
    if (outcomes_troubled(worker_status->outcomes)) {
        return "outcome-kept";
    }
    return admission_trouble(worker_status->admission) ? "pressed" : "running";
}

const char *worker_status_trouble(const struct worker_status *worker_status)
{
    if (!session_is_up(worker_status->session)) {
        return session_trouble(worker_status->session);
    }
    if (host_is_closed(worker_status->host)) {
        return host_trouble(worker_status->host);
    }
    const char *pressure = admission_trouble(worker_status->admission);
    if (pressure) {
        return pressure;
    }
    if (!lease_fits(worker_status->lease)) {
        return "kill_grace is too long for the lease";
    }
    if (outcomes_troubled(worker_status->outcomes)) {
        return "Redis refuses an outcome";
    }
    switch (claim_loop_pause(worker_status->claim_loop)) {
    case PAUSE_HOLD:
        return "waiting one lease: the consumer group was lost";
    case PAUSE_PAUSED:
        return "the queue is paused";
    case PAUSE_DRAINED:
        return "drained";
    case PAUSE_OPEN:
    case PAUSE_RATE:
        return "";
    }
    return "";
}
