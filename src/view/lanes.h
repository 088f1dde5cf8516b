/*
 * The longest lanes of a queue, kept while all of them are read page by page.
 */
#ifndef LEAT_VIEW_LANES_H
#define LEAT_VIEW_LANES_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buffer.h"

struct redisReply;

struct lane {
    struct buffer name;     /* any bytes; empty: tasks without a lane that wait like one */
    struct buffer settings; /* as in leat conf; empty: none */
    int64_t waiting, running;
    int64_t oldest_ms; /* Unix time since when its first task waits */
};

/* Set only `most`, the number of lanes to keep, before lanes_begin. */
struct lanes {
    size_t most;
    struct lane *list; /* the longest first */
    size_t count;
    int64_t total; /* all lanes with waiting tasks */
};

/* Makes room. Returns 0, or -1 without memory. Call lanes_free in any case. */
int lanes_begin(struct lanes *lanes);

/* Keeps the longest lanes of a page: an array of rows of leat_lanes. Returns 0, or -1 without
 * memory. */
int lanes_keep(struct lanes *lanes, const struct redisReply *rows);

void lanes_free(struct lanes *lanes);

/* Returns a new reference to an array, or NULL without memory. */
json_t *lanes_json(const struct lanes *lanes);

#endif
