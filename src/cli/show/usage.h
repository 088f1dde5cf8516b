/*
 * What a task has used, as its worker told: "cpu_us 1200 max_rss 4096 …".
 */
#ifndef LEAT_CLI_SHOW_USAGE_H
#define LEAT_CLI_SHOW_USAGE_H

#include <jansson.h>

#include "base/buffer.h"
#include "queue/task.h"

/* An object of numbers; what has another form is left out. NULL without memory. */
json_t *usage_json(struct bytes usage);

/* "1.2 s of CPU time, 34M of memory at the most, …"; nothing where nothing is known. Failures mark
 * the buffer. */
void usage_append(struct buffer *out, struct bytes usage);

#endif
