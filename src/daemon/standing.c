#include "daemon/standing.h"

#include "daemon/admission.h"
#include "daemon/host.h"
#include "daemon/intake.h"
#include "daemon/lease.h"
#include "daemon/results.h"
#include "daemon/session.h"
#include "daemon/stop.h"

bool standing_is_closed(const struct standing *standing)
{
    return stop_has_begun(standing->stop) || host_is_closed(standing->host) ||
           admission_trouble(standing->admission) || results_troubled(standing->results) ||
           !lease_fits(standing->lease);
}

const char *standing_state(const struct standing *standing)
{
    if (stop_has_begun(standing->stop)) {
        return "draining";
    }
    if (host_is_closed(standing->host)) {
        return "host-fault";
    }
    if (!lease_fits(standing->lease)) {
        return "lease-short";
    }
    if (results_troubled(standing->results)) {
        return "outcome-kept";
    }
    return admission_trouble(standing->admission) ? "pressed" : "running";
}

const char *standing_trouble(const struct standing *standing)
{
    if (!session_is_up(standing->session)) {
        return session_trouble(standing->session);
    }
    if (host_is_closed(standing->host)) {
        return host_trouble(standing->host);
    }
    const char *pressure = admission_trouble(standing->admission);
    if (pressure) {
        return pressure;
    }
    if (!lease_fits(standing->lease)) {
        return "kill_grace does not fit into the lease";
    }
    if (results_troubled(standing->results)) {
        return "Redis refuses to take an outcome";
    }
    switch (intake_gate(standing->intake)) {
    case GATE_HOLD:
        return "waiting one lease after the group was lost";
    case GATE_PAUSED:
        return "the queue is paused";
    case GATE_DRAINED:
        return "drained";
    case GATE_OPEN:
    case GATE_RATE:
        return "";
    }
    return "";
}
