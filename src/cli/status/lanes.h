/*
 * The longest lanes of a queue, for leat status.
 */
#ifndef LEAT_CLI_STATUS_LANES_H
#define LEAT_CLI_STATUS_LANES_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buffer.h"
#include "cli/lib/cli.h"
#include "cli/lib/output.h"

struct lane {
    struct buffer name;     /* any bytes; empty: tasks without a lane that wait like one */
    struct buffer settings; /* as in leat conf; empty: none */
    int64_t waiting, running;
    int64_t oldest_ms; /* Unix time since when its first task waits */
};

/* Set only `most`, the number of lanes to keep, before lanes_read. */
struct lanes {
    size_t most;
    struct lane *list; /* the longest first */
    size_t count;
    int64_t total; /* all lanes with waiting tasks */
};

/* Reads all lanes, page by page. Returns 0, or an exit status after printing the error. Call
 * lanes_free in any case. */
int lanes_read(struct cli *cli, struct lanes *lanes);
void lanes_free(struct lanes *lanes);

/* Appends the table. Returns 0, or -1 without memory. */
int lanes_render(const struct lanes *lanes, int64_t now_ms, const struct output *output,
                 struct buffer *out);

/* Returns a new reference to an array, or NULL without memory. */
json_t *lanes_json(const struct lanes *lanes);

#endif
