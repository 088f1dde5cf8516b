/*
 * A task's ended attempts: lines of "attempt worker begun-ms ended-ms cause status".
 */
#ifndef LEAT_CLI_SHOW_HISTORY_H
#define LEAT_CLI_SHOW_HISTORY_H

#include <jansson.h>

#include "base/buffer.h"
#include "cli/lib/output.h"
#include "queue/task.h"

/* Appends a titled table, nothing for an empty history. Returns 0, or -1 without memory. */
int history_render(struct bytes history, const struct output *output, struct buffer *out);

/* Calls it for each attempt with the worker it ran on. */
void history_workers(struct bytes history, void (*visit)(void *context, struct bytes worker),
                     void *context);

/* An array of objects, or NULL without memory. */
json_t *history_json(struct bytes history);

#endif
