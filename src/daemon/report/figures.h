/*
 * What the worker has seen since its last heartbeat: histograms and counters, which the next
 * heartbeat brings to Redis. They have a number, so that Redis counts them once if a heartbeat
 * whose reply was lost is sent again.
 */
#ifndef LEAT_DAEMON_REPORT_FIGURES_H
#define LEAT_DAEMON_REPORT_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "exec/attempt/attempt.h"
#include "queue/figures.h"

enum figures_counter {
    FIGURES_STARTED,       /* attempts */
    FIGURES_LEASES_LOST,   /* attempts that were ended because their lease was lost */
    FIGURES_STALE_RESULTS, /* outcomes that Redis refused, since another worker had the task */
    FIGURES_COUNTERS
};

struct figures_set {
    bool used;
    uint64_t buckets[FIGURES_HISTOGRAMS][FIGURES_BUCKETS];
    uint64_t sums[FIGURES_HISTOGRAMS];
    uint64_t counters[FIGURES_COUNTERS];
};

/* All zero at first. */
struct figures {
    struct figures_set seen; /* since the last heartbeat that was made */
    struct figures_set sent; /* of a heartbeat that is not confirmed */
    uint64_t number;         /* of `sent` */
};

/* An attempt of the task has begun. figures NULL: not counted. */
void figures_started(struct figures *figures, const struct task *task);

/* An attempt has ended. */
void figures_ended(struct figures *figures, const struct attempt *attempt);

/* Redis has refused an outcome. */
void figures_stale(struct figures *figures);

/* Appends the member "figures" of a heartbeat, with a comma, or nothing. It has what the last one
 * had until figures_confirmed is called. An error is kept in text->failed. */
void figures_append(struct figures *figures, struct buffer *text);

/* Redis has answered a heartbeat with the figures that were appended last. */
void figures_confirmed(struct figures *figures);

/* Whether there is something that Redis has not confirmed. */
bool figures_are_left(const struct figures *figures);

#endif
