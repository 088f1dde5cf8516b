/*
 * The reasons that stop the workers of a queue, if none of them has a free slot.
 */
#include "view/explain_workers.h"

#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "config/config.h"
#include "view/reasons.h"
#include "view/reply_fields.h"

#define MOST_WORKERS 20 /* that are named */

/* The name of the reason why this worker starts nothing now, or NULL if it can. */
static const char *obstacle_of(const struct status_worker *worker)
{
    static const char *const states[] = {"host-fault", "lease-short", "outcome-kept", "pressed",
                                         "starting"};

    if (!worker->live) {
        return "silent";
    }
    if (strcmp(worker->state, "draining") == 0) {
        return "stopping";
    }
    if (worker->drained) {
        return "drained";
    }
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        if (strcmp(worker->state, states[i]) == 0) {
            return states[i];
        }
    }
    return worker->capacity >= 0 && worker->running >= worker->capacity ? "full" : NULL;
}

/* For a drained host: since when, and by whom. If all hosts are drained, this one alone cannot be
 * undrained. */
static void add_drain(struct explain_reason *reason, const struct status *status, const char *host)
{
    char name[300];
    struct bytes by, stamp = fields_bytes(status->conf, "drain:*");
    bool all = stamp.size > 0;
    int64_t since_ms;

    (void)snprintf(name, sizeof name, "drain:%s", host);
    since_ms = fields_stamp(all ? stamp : fields_bytes(status->conf, name), &by);
    reasons_printf(reason, " starts nothing: %s drained ", all ? "all hosts were" : "its host was");
    reasons_time(reason, since_ms, status->now_ms);
    reasons_put_number(reason, "since_ms", since_ms);
    if (by.size > 0) {
        reasons_printf(reason, " by ");
        reasons_bytes(reason, by);
        reasons_put_text(reason, "by", by);
    }
    /* people copy it into a shell, and a host may be named like an option; a failed append marks
     * the buffer */
    reasons_printf(reason, "; run: leat undrain %s", !all && *host == '-' ? "-- " : "");
    escape_append_word(&reason->text, bytes_of(all ? "--all" : host));
}

static void add_obstacle(struct explain_reason *reason, const struct status *status,
                         const struct status_worker *worker)
{
    const char *name = reason->name;

    if (strcmp(name, "silent") == 0) {
        reasons_printf(reason, " has been silent for ");
        reasons_span(reason, status->now_ms - worker->heartbeat_ms);
        reasons_put_number(reason, "seen_ms", worker->heartbeat_ms);
    } else if (strcmp(name, "stopping") == 0) {
        reasons_printf(reason, " is stopping, and starts nothing more");
    } else if (strcmp(name, "drained") == 0) {
        add_drain(reason, status, worker->host);
    } else if (strcmp(name, "lease-short") == 0) {
        reasons_printf(reason, " starts nothing: the lease is too short for its kill_grace; raise "
                               "the lease, or shorten kill_grace");
    } else if (strcmp(name, "full") == 0) {
        reasons_printf(reason, " is full: it runs %lld of %lld", (long long)worker->running,
                       (long long)worker->capacity);
        reasons_put_number(reason, "running", worker->running);
        reasons_put_number(reason, "most", worker->capacity);
    } else {
        /* a worker of 0.1.0 only tells its state */
        reasons_printf(reason, " starts nothing: %s",
                       *worker->trouble ? worker->trouble : worker->state);
        reasons_put_text(reason, "trouble", bytes_of(worker->trouble));
    }
}

/* Workers that are full start a task when one of theirs ends. If some are, the others delay the
 * tasks, but do not block them. */
void explain_workers(struct explanation *explanation)
{
    const struct status *status = &explanation->status;
    struct explain_reason *reason;
    bool any_full = false;

    if (status->worker_count == 0) {
        (void)reasons_add(explanation, "no-worker", true,
                          "no worker serves the queue; start one: systemctl start leatd@%s",
                          explanation->queue->name);
        return;
    }
    for (size_t i = 0; i < status->worker_count; i++) {
        const char *name = obstacle_of(&status->workers[i]);
        if (!name) {
            return;
        }
        any_full |= strcmp(name, "full") == 0;
    }
    for (size_t i = 0; i < status->worker_count && i < MOST_WORKERS; i++) {
        const struct status_worker *worker = &status->workers[i];
        reason =
            reasons_add(explanation, obstacle_of(worker), !any_full, "worker %s", worker->host);
        reasons_put_text(reason, "host", bytes_of(worker->host));
        add_obstacle(reason, status, worker);
    }
    if (status->worker_count > MOST_WORKERS) {
        reason = reasons_add(explanation, "more-workers", !any_full,
                             "%zu more workers start nothing either; see leat status",
                             status->worker_count - MOST_WORKERS);
        reasons_put_number(reason, "workers", (int64_t)(status->worker_count - MOST_WORKERS));
    }
}
