/*
 * Figures of a queue of the last hour and of the last day: points at equal distances, as many as
 * fit, of a few numbers each. A point without a sample is a gap.
 */
#ifndef LEAT_VIEW_WATCH_RING_H
#define LEAT_VIEW_WATCH_RING_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

enum ring_value {
    RING_READY,
    RING_RUNNING,
    RING_DELAYED, /* with those that are retried */
    RING_DEAD,
    RING_SUCCEEDED, /* these are per second */
    RING_RETRIED,
    RING_DIED,
    RING_CANCELLED,
    RING_WAITING_P50, /* these are in milliseconds */
    RING_WAITING_P95,
    RING_DURATION_P50,
    RING_DURATION_P95,
    RING_VALUES,
};

#define RING_POINTS 360

/* The sum of the samples of one point. */
struct ring_point {
    float sums[RING_VALUES];
    uint32_t samples[RING_VALUES];
};

/* Set only step_ms. */
struct ring {
    int64_t step_ms;
    int64_t last; /* time of the newest point, in steps; 0: none yet */
    struct ring_point points[RING_POINTS];
};

/* Adds a sample to the point of its time; now_ms never goes back. A value that is NaN does not
 * count. */
void ring_add(struct ring *ring, int64_t now_ms, const double values[RING_VALUES]);

/* {"step_ms", "age_ms" of the newest point's end, "ready": [oldest … newest], …}, with null for
 * gaps. Returns NULL without memory. */
json_t *ring_json(const struct ring *ring, int64_t now_ms);

#endif
