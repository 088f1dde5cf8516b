/*
 * The record of an ended task in the history of its queue: a packed list of texts, in the order of
 * src/queue/lua/history.lua.
 */
#ifndef LEAT_QUEUE_HISTORY_RECORD_H
#define LEAT_QUEUE_HISTORY_RECORD_H

#include <stddef.h>

#include "base/bytes.h"
#include "queue/shared/limits.h"

enum history_item {
    HISTORY_TID,
    HISTORY_OUTCOME, /* "succeeded", "dead" or "cancelled" */
    HISTORY_CAUSE,
    HISTORY_STATUS,
    HISTORY_REASON,
    HISTORY_WORKER,
    HISTORY_ATTEMPTS,
    HISTORY_ENQUEUED_MS,
    HISTORY_WAITED_MS, /* from when the last attempt could start until it was claimed */
    HISTORY_BEGUN_MS,  /* by the clock of the worker, like all that follows */
    HISTORY_DURATION_US,
    HISTORY_USAGE,
    HISTORY_LABEL,
    HISTORY_LANE,
    HISTORY_COMMAND,
    HISTORY_ITEMS
};

/* Packs the items into `out`, which has QUEUE_HISTORY_RECORD bytes. Unknown ones are empty, and so
 * is one that does not fit. Returns the size. */
size_t history_record_pack(const struct bytes items[HISTORY_ITEMS], char *out);

#endif
