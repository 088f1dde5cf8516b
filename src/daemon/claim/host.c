/*
 * Closes the host after faults, with a backoff, and opens it when a task has run.
 */
#include "daemon/claim/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "base/timer.h"

#define CLOSED_BASE_S 1.0 /* after the first fault; doubles with each more */
#define CLOSED_CAP_S 60.0
#define LOG_PERIOD_NS (60 * CLOCK_NS_PER_S) /* between two lines about missing programs */

struct host {
    struct worker_context *worker;
    bool doubtful;
    bool unguarded;
    int64_t lack_logged_ns; /* CLOCK_BOOTTIME; 0: never */
    double closed_s;        /* how long to close after the next fault */
    char trouble[200];      /* of the last fault */
    struct timer closed;    /* runs while nothing is claimed */
};

void host_fault(struct host *host, const char *tid, const char *reason)
{
    struct log_field fields[] = {LOG_TEXT("LEAT_EVENT", "host-fault"),
                                 LOG_TEXT("LEAT_TASK", tid ? tid : "")};
    size_t count = tid ? 2 : 1;
    (void)snprintf(host->trouble, sizeof host->trouble, "this host cannot run tasks: %s", reason);
    if (timer_runs(&host->closed)) {
        log_event(LOG_ERR, LOG_ID_HOST_FAULT, fields, count, "this host cannot run tasks: %s",
                  reason);
        return;
    }
    log_event(LOG_ERR, LOG_ID_HOST_FAULT, fields, count,
              "this host cannot run tasks: %s; claiming nothing for %.0f s", reason,
              host->closed_s);
    host->doubtful = true;
    timer_start_s(&host->closed, host->closed_s);
    host->closed_s = host->closed_s * 2 < CLOSED_CAP_S ? host->closed_s * 2 : CLOSED_CAP_S;
    host->worker->may_claim = false;
}

/* The host stays open, since it can run other commands. Each task's own record has the details. */
static void log_missing_program(struct host *host, const char *tid, const char *reason)
{
    int64_t now_ns = clock_boot_ns();
    if (host->lack_logged_ns > 0 && now_ns - host->lack_logged_ns < LOG_PERIOD_NS) {
        return;
    }
    host->lack_logged_ns = now_ns;
    struct log_field fields[] = {LOG_TEXT("LEAT_EVENT", "host-fault"), LOG_TEXT("LEAT_TASK", tid)};
    log_event(LOG_ERR, LOG_ID_HOST_FAULT, fields, 2,
              "this host cannot run a listed command: %s; its tasks wait", reason);
}

bool host_fine(struct host *host)
{
    bool doubtful = host->doubtful;
    if (doubtful) {
        host->doubtful = false;
        host->closed_s = CLOSED_BASE_S;
    }
    return doubtful;
}

void host_unguarded(struct host *host, bool unguarded)
{
    host->unguarded = unguarded;
    host->worker->may_claim = host->worker->may_claim && !unguarded;
}

bool host_ended(struct host *host, const struct attempt *attempt)
{
    enum cause cause = attempt->ending.cause;
    bool follows = *attempt->batch && strcmp(attempt->batch, attempt->task->tid) != 0;
    if (cause == CAUSE_HOST && !follows) {
        host_fault(host, attempt->task->tid, attempt->reason);
    } else if (cause == CAUSE_NO_PROGRAM) {
        log_missing_program(host, attempt->task->tid, attempt->reason);
    }
    bool ran = cause != CAUSE_HOST && cause != CAUSE_NO_PROGRAM && cause != CAUSE_CANNOT_EXECUTE &&
               cause != CAUSE_REFUSED;
    return ran && host_fine(host);
}

bool host_is_closed(const struct host *host)
{
    return host->unguarded || timer_runs(&host->closed);
}

const char *host_trouble(const struct host *host)
{
    return host->unguarded ? "no guard over running tasks" : host->trouble;
}

bool host_is_doubtful(const struct host *host)
{
    return host->doubtful;
}

struct host *host_new(struct worker_context *worker)
{
    struct host *host = calloc(1, sizeof *host);
    if (host) {
        host->worker = worker;
        host->closed_s = CLOSED_BASE_S;
        /* the worker decides again in the turn that this timer causes */
        timer_init(&host->closed, worker->loop, NULL, NULL);
    }
    return host;
}

void host_free(struct host *host)
{
    if (host) {
        timer_stop(&host->closed);
        free(host);
    }
}
