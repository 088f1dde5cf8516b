/*
 * Samples of a queue: its numbers, ends per second, and percentiles of waiting and duration, in the
 * rings of the last hour and the last day.
 */
#ifndef LEAT_VIEW_WATCH_SAMPLES_H
#define LEAT_VIEW_WATCH_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "view/histogram.h"
#include "view/status.h"
#include "view/watch/ring.h"

#define SAMPLES_TOTALS (RING_CANCELLED - RING_SUCCEEDED + 1)

/* Percentiles of one histogram. Workers bring their figures with a heartbeat, so a sample can have
 * none of them: then those before it count for as long as a lease. */
struct percentiles {
    struct histogram last; /* as it was when values came */
    int64_t last_ms;       /* 0: not known */
    double p50, p95;       /* ms, of the values that came last; NAN: none */
};

struct samples {
    struct ring hour, day;
    int64_t sampled_ms;             /* the last sample; 0: none */
    int64_t totals[SAMPLES_TOTALS]; /* of the last sample */
    struct percentiles waiting, duration;
};

/* Begins with a zeroed struct. */
void samples_init(struct samples *samples);

/* Adds the status to both rings; now_ms never goes back. */
void samples_add(struct samples *samples, const struct status *status, int64_t now_ms);

#endif
