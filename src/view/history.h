/*
 * The attempts of a task that have ended: lines of "attempt worker begun-ms ended-ms cause status".
 */
#ifndef LEAT_VIEW_HISTORY_H
#define LEAT_VIEW_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/bytes.h"

/* One attempt. The bytes point into the history; a status of "-" means that there is none. */
struct history_line {
    struct bytes worker, cause, status;
    int64_t attempt, begun_ms, ended_ms;
};

/* Reads the next valid line and moves *at, which is 0 at first, past it. Returns false at the end.
 */
bool history_next(struct bytes history, size_t *at, struct history_line *line);

/* Returns an array of objects, or NULL without memory. */
json_t *history_json(struct bytes history);

#endif
