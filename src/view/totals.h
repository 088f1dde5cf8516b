/*
 * The totals of a queue since it was created, as JSON.
 */
#ifndef LEAT_VIEW_TOTALS_H
#define LEAT_VIEW_TOTALS_H

#include <jansson.h>

#include "view/status.h"

/* Percentiles of waiting, duration, CPU time and memory, attempts that started, lost leases, stale
 * results, and ends by cause. Returns a new reference, or NULL without memory. */
json_t *totals_json(const struct status *status);

#endif
