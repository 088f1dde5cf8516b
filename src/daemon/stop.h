/*
 * The stages of stopping: running tasks may finish, then get SIGTERM, then SIGKILL, then the worker
 * gives up. Each stage ends after its time, or when an operator asks again.
 */
#ifndef LEAT_DAEMON_STOP_H
#define LEAT_DAEMON_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/session/worker_context.h"
#include "exec/job/job.h"

struct stop;

struct stop_events {
    /* All running tasks get JOB_STOP or JOB_KILL_NOW. */
    void (*end)(void *context, enum job_event event);
    void (*give_up)(void *context);
    void *context;
};

/* Returns NULL without memory. */
struct stop *stop_new(struct worker_context *worker, const struct stop_events *events);
void stop_free(struct stop *stop);

/* Claims nothing more, and lets running tasks finish without an end: the stage before the first
 * one.
 */
void stop_retire(struct stop *stop);

/* Starts the next stage. */
void stop_advance(struct stop *stop);

/* Everything is settled: stops the timer, so that no further stage comes. */
void stop_finish(struct stop *stop);

bool stop_has_begun(const struct stop *stop);

/* The longest time that stopping may still take, in milliseconds, or would take from now. */
int64_t stop_left_ms(const struct stop *stop);

#endif
