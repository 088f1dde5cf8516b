/*
 * Keeps figures of a queue of the last hour and of the last day.
 */
#include "view/watch/ring.h"

#include <math.h>

#include "view/output_json.h"

#define PRECISION 1000.0 /* of a value in JSON: thousandths */

static struct ring_point *point_at(struct ring *ring, int64_t step)
{
    return &ring->points[step % RING_POINTS];
}

void ring_add(struct ring *ring, int64_t now_ms, const double values[RING_VALUES])
{
    int64_t step = now_ms / ring->step_ms;
    int64_t first = ring->last + 1;
    struct ring_point *point;

    if (step - first >= RING_POINTS) {
        first = step - RING_POINTS + 1;
    }
    for (int64_t at = first; at <= step; at++) {
        *point_at(ring, at) = (struct ring_point){0};
    }
    if (step > ring->last) {
        ring->last = step;
    }
    point = point_at(ring, ring->last);
    for (size_t i = 0; i < RING_VALUES; i++) {
        if (!isnan(values[i])) {
            point->sums[i] += (float)values[i];
            point->samples[i]++;
        }
    }
}

static json_t *value_json(const struct ring_point *point, size_t value)
{
    if (point->samples[value] == 0) {
        return json_null();
    }
    return json_real(round((double)point->sums[value] / point->samples[value] * PRECISION) /
                     PRECISION);
}

json_t *ring_json(const struct ring *ring, int64_t now_ms)
{
    static const char *const names[RING_VALUES] = {
        [RING_READY] = "ready",
        [RING_RUNNING] = "running",
        [RING_DELAYED] = "delayed",
        [RING_DEAD] = "dead",
        [RING_SUCCEEDED] = "succeeded",
        [RING_RETRIED] = "retried",
        [RING_DIED] = "died",
        [RING_CANCELLED] = "cancelled",
        [RING_WAITING_P50] = "waiting_p50_ms",
        [RING_WAITING_P95] = "waiting_p95_ms",
        [RING_DURATION_P50] = "duration_p50_ms",
        [RING_DURATION_P95] = "duration_p95_ms",
    };
    int64_t end_ms = (ring->last + 1) * ring->step_ms;
    json_t *object = json_pack("{s:I, s:I}", "step_ms", (json_int_t)ring->step_ms, "age_ms",
                               (json_int_t)(now_ms - end_ms));

    for (size_t value = 0; value < RING_VALUES; value++) {
        json_t *list = json_array();
        for (int64_t i = RING_POINTS - 1; i >= 0; i--) {
            int64_t at = ring->last - i;
            output_push(&list,
                        at > 0 ? value_json(&ring->points[at % RING_POINTS], value) : json_null());
        }
        output_put(&object, names[value], list);
    }
    return object;
}
