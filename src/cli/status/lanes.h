/*
 * The longest lanes of a queue: read page by page, shown as a part of leat status.
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
    struct buffer settings; /* as conf has them; empty: none */
    int64_t waiting, running;
    int64_t oldest_ms; /* unix time since which its first task is there */
};

/* Zeroed but for `most`, how many are kept, it is ready for lanes_read. */
struct lanes {
    size_t most;
    struct lane *list; /* the longest first */
    size_t count;
    int64_t total; /* lanes with waiting tasks, those that are not kept too */
};

/* Returns 0 or an exit status, having said why. Either way lanes_free comes next. */
int lanes_read(struct cli *cli, struct lanes *lanes);
void lanes_free(struct lanes *lanes);

/* Appends the table. Returns 0, or -1 without memory. */
int lanes_render(const struct lanes *lanes, int64_t now_ms, const struct output *output,
                 struct buffer *out);

/* Returns a new reference to an array, or NULL without memory. */
json_t *lanes_json(const struct lanes *lanes);

#endif
