/*
 * The histograms of a queue, and what else its workers have counted since the queue was created, as
 * leat_status answers them.
 */
#ifndef LEAT_VIEW_HISTOGRAM_H
#define LEAT_VIEW_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/figures.h"
#include "view/status.h"

struct histogram {
    const struct figures_bound *bounds; /* of the buckets, which are not cumulative */
    size_t count;                       /* of the buckets */
    int64_t buckets[FIGURES_BUCKETS];
    int64_t total; /* how many values */
    int64_t sum;   /* of all values, µs or bytes */
};

/* Reads one; it is empty if the library is an older one. */
void histogram_read(const struct status *status, enum figures_histogram histogram,
                    struct histogram *out);

/* Takes away what an earlier reading of the same histogram had, so that the values since then are
 * left. Returns false if the earlier one had more: the queue was created again. */
bool histogram_subtract(struct histogram *histogram, const struct histogram *earlier);

/* About the value below which this share (0 to 1) of the values is, in µs or bytes; 0 if there is
 * none. It is exact to the width of its bucket: bounds grow by 2 or 2.5. */
int64_t histogram_quantile(const struct histogram *histogram, double share);

/* The number of a figure that was counted, such as "f:started" or "e:retry:exit"; 0 if none was. */
int64_t histogram_counter(const struct status *status, const char *name);

/* A counter of ends: how attempts ended ("retry", "release") or tasks became dead letters ("dead"),
 * and the cause. The bytes point into the reply. */
struct histogram_end {
    struct bytes outcome, cause;
    int64_t number;
};

/* Reads the next counter of ends and moves *at, which is 0 at first, past it. Returns false at the
 * end. */
bool histogram_next_end(const struct status *status, size_t *at, struct histogram_end *end);

#endif
