/*
 * The attempts of a task that have ended, as a table; see view/history.h.
 */
#ifndef LEAT_CLI_SHOW_HISTORY_H
#define LEAT_CLI_SHOW_HISTORY_H

#include "base/buffer.h"
#include "cli/lib/output.h"
#include "queue/task.h"
#include "view/history.h"

/* Appends a table with a title, or nothing if no attempt has ended. Returns 0, or -1 without
 * memory. */
int history_render(struct bytes history, const struct output *output, struct buffer *out);

/* Calls visit with the worker of each attempt. */
void history_workers(struct bytes history, void (*visit)(void *context, struct bytes worker),
                     void *context);

#endif
