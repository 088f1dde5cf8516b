/*
 * Resources that a task has used, as its worker reported: "cpu_us 1200 max_rss 4096 …".
 */
#ifndef LEAT_VIEW_USAGE_H
#define LEAT_VIEW_USAGE_H

#include <jansson.h>

#include "base/buffer.h"
#include "queue/task.h"

/* Returns an object of numbers, up to the first part of another form. NULL without memory. */
json_t *usage_json(struct bytes usage);

/* Appends "cpu 1.2 s, memory 34M, …", or nothing if nothing is known. A failed append marks the
 * buffer. */
void usage_append(struct buffer *out, struct bytes usage);

#endif
