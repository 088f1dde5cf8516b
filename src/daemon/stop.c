/*
 * Runs the stages of stopping on a timer.
 */
#include "daemon/stop.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "base/timer.h"

/* The time for killed tasks to end, and for Redis to accept the last outcomes. */
#define SETTLE_MS 5000

enum stop_stage {
    STOP_NOT,
    STOP_RETIRED,  /* running tasks may finish, without an end */
    STOP_DRAINING, /* running tasks may finish */
    STOP_ENDING,   /* they got SIGTERM */
    STOP_KILLING,  /* they got SIGKILL */
};

struct stop {
    struct worker_context *worker;
    struct stop_events events;
    enum stop_stage stage;
    int64_t most_ns; /* when the last stage ends */
    struct timer next;
};

static void wait_ms(struct stop *stop, int64_t ms)
{
    timer_start_ms(&stop->next, ms);
}

void stop_retire(struct stop *stop)
{
    stop->stage = STOP_RETIRED;
    stop->worker->may_claim = false;
}

void stop_advance(struct stop *stop)
{
    void *context = stop->events.context;
    switch (stop->stage) {
    case STOP_NOT:
    case STOP_RETIRED:
        stop->most_ns = clock_boot_ns() + stop_left_ms(stop) * CLOCK_NS_PER_MS;
        stop->stage = STOP_DRAINING;
        log_event(LOG_INFO, LOG_ID_WORKER_STOPPING, NULL, 0,
                  "stopping: running tasks may finish for %.0f s",
                  (double)stop->worker->config->shutdown.drain_ms / 1000);
        stop->worker->may_claim = false;
        wait_ms(stop, stop->worker->config->shutdown.drain_ms);
        return;
    case STOP_DRAINING:
        stop->stage = STOP_ENDING;
        log_event(LOG_NOTICE, LOG_ID_WORKER_STOPPING, NULL, 0,
                  "stopping: ending running tasks and returning them to the queue");
        stop->events.end(context, JOB_STOP);
        wait_ms(stop, stop->worker->config->task.kill_grace_ms + SETTLE_MS);
        return;
    case STOP_ENDING:
        stop->stage = STOP_KILLING;
        stop->events.end(context, JOB_KILL_NOW);
        wait_ms(stop, SETTLE_MS);
        return;
    case STOP_KILLING:
        stop->events.give_up(context);
        return;
    }
}

static void on_next(void *context)
{
    stop_advance(context);
}

void stop_finish(struct stop *stop)
{
    timer_stop(&stop->next);
}

bool stop_has_begun(const struct stop *stop)
{
    return stop->stage != STOP_NOT;
}

int64_t stop_left_ms(const struct stop *stop)
{
    if (stop->stage != STOP_NOT && stop->stage != STOP_RETIRED) {
        int64_t left_ms = (stop->most_ns - clock_boot_ns()) / CLOCK_NS_PER_MS;
        return left_ms > 0 ? left_ms : 0;
    }
    return stop->worker->config->shutdown.drain_ms + stop->worker->config->task.kill_grace_ms +
           2 * SETTLE_MS;
}

struct stop *stop_new(struct worker_context *worker, const struct stop_events *events)
{
    struct stop *stop = calloc(1, sizeof *stop);
    if (stop) {
        stop->worker = worker;
        stop->events = *events;
        timer_init(&stop->next, worker->loop, on_next, stop);
    }
    return stop;
}

void stop_free(struct stop *stop)
{
    if (stop) {
        timer_stop(&stop->next);
        free(stop);
    }
}
