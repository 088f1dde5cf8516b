/*
 * The longest lanes of a queue, for leat status.
 */
#ifndef LEAT_CLI_STATUS_LANES_H
#define LEAT_CLI_STATUS_LANES_H

#include <stdint.h>

#include "base/buffer.h"
#include "cli/lib/cli.h"
#include "cli/lib/output.h"
#include "view/lanes.h"

/* Reads all lanes, page by page, from lanes that have only `most`. Returns 0, or an exit status
 * after printing the error. Call lanes_free in any case. */
int lanes_read(struct cli *cli, struct lanes *lanes);
/* Appends the table. Returns 0, or -1 without memory. */
int lanes_render(const struct lanes *lanes, int64_t now_ms, const struct output *output,
                 struct buffer *out);

#endif
