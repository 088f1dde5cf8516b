/*
 * The state of queues as metrics for Prometheus.
 */
#ifndef LEAT_VIEW_METRICS_H
#define LEAT_VIEW_METRICS_H

#include <stddef.h>

#include "base/buffer.h"
#include "view/lanes.h"
#include "view/status.h"

#define METRICS_LANES 10 /* at most, of a queue */

/* One queue. */
struct metrics_queue {
    const char *name;
    const struct status *status; /* NULL: it could not be read */
    const struct lanes *lanes;   /* the longest; NULL: none are shown */
};

/* Both are UTF-8. */
enum metrics_format {
    METRICS_OPENMETRICS, /* application/openmetrics-text; version=1.0.0 */
    METRICS_TEXT,        /* text/plain; version=0.0.4, as node_exporter reads it from files */
};

/* Appends the metrics of all these queues, at most 300 series of each. Returns 0, or -1 without
 * memory. */
int metrics_append(const struct metrics_queue *queues, size_t count, enum metrics_format format,
                   struct buffer *out);

#endif
