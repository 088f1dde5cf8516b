/* Sums up log records about tasks that never ran or got less than they asked for. */
#include "daemon/report/refusals.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "base/timer.h"
#include "base/units.h"
#include "daemon/session/worker_context.h"

enum { AT_ONCE = 5, SECOND_MS = 1000, TID_SIZE = 48, REASON_SIZE = 200 };

/* The present second of one kind of records. */
struct sum {
    unsigned logged;
    int64_t count; /* not logged */
    int64_t since_ns;
    char tid[TID_SIZE], reason[REASON_SIZE]; /* of the last one */
};

struct refusals {
    const struct worker_context *worker;
    struct timer timer; /* runs while a second has records */
    struct sum sums[REFUSAL_KINDS];
};

/* How each kind is logged: its priority, MESSAGE_ID and event are those of a single record. */
static const struct {
    int priority;
    const char *id, *event, *text, *hint;
} kinds[REFUSAL_KINDS] = {
    [REFUSAL_DEAD] = {LOG_ERR, LOG_ID_TASK_DEAD, "dead", "not started and dead-lettered",
                      "dead list"},
    [REFUSAL_LOWERED] = {LOG_NOTICE, LOG_ID_TASK_LOWERED, "lowered",
                         "asked for more than the configuration allows", "list"},
};

static void log_sum(const struct refusals *refusals, enum refusal_kind kind)
{
    const struct sum *sum = &refusals->sums[kind];
    const char *queue = refusals->worker->config->queue.name;
    char count[UNITS_INTEGER_SIZE], since[UNITS_SECONDS_SIZE];
    (void)units_format_integer(sum->count, count);
    (void)units_format_seconds((clock_boot_ns() - sum->since_ns) / CLOCK_NS_PER_MS, since);
    struct log_field fields[] = {LOG_TEXT("LEAT_EVENT", kinds[kind].event),
                                 LOG_TEXT("LEAT_COUNT", count)};
    log_event(kinds[kind].priority, kinds[kind].id, fields, 2,
              "queue %s: %s more %s %s in the last %s s; the last was task %s: %s; see: leat -q "
              "%s %s",
              queue, count, sum->count == 1 ? "task" : "tasks", kinds[kind].text, since, sum->tid,
              sum->reason, queue, kinds[kind].hint);
}

void refusals_flush(struct refusals *refusals)
{
    for (enum refusal_kind kind = 0; kind < REFUSAL_KINDS; kind++) {
        struct sum *sum = &refusals->sums[kind];
        if (sum->count > 0) {
            log_sum(refusals, kind);
        }
        sum->logged = 0;
        sum->count = 0;
    }
}

static void on_second(void *context)
{
    refusals_flush(context);
}

struct refusals *refusals_new(const struct worker_context *worker)
{
    struct refusals *refusals = calloc(1, sizeof *refusals);
    if (refusals) {
        refusals->worker = worker;
        timer_init(&refusals->timer, worker->loop, on_second, refusals);
    }
    return refusals;
}

void refusals_free(struct refusals *refusals)
{
    if (refusals) {
        timer_stop(&refusals->timer);
        free(refusals);
    }
}

bool refusals_note(struct refusals *refusals, enum refusal_kind kind, const char *tid,
                   const char *reason)
{
    if (!refusals) {
        return true;
    }
    struct sum *sum = &refusals->sums[kind];
    if (!timer_runs(&refusals->timer)) {
        timer_start_ms(&refusals->timer, SECOND_MS);
    }
    if (sum->logged < AT_ONCE) {
        sum->logged++;
        return true;
    }
    if (sum->count == 0) {
        sum->since_ns = clock_boot_ns();
    }
    sum->count++;
    (void)snprintf(sum->tid, sizeof sum->tid, "%s", tid);
    (void)snprintf(sum->reason, sizeof sum->reason, "%s", reason);
    return false;
}
