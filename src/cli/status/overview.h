/*
 * leat status for all queues of /etc/leat: a line for each.
 */
#ifndef LEAT_CLI_STATUS_OVERVIEW_H
#define LEAT_CLI_STATUS_OVERVIEW_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buffer.h"
#include "cli/lib/output.h"
#include "cli/status/status.h"
#include "view/queue_state.h"

/* One queue as it was answered. */
struct overview_line {
    char *name; /* of its file; owned */
    enum queue_state state;
    int exit_status; /* what leat -q NAME status would return */
    int64_t ready, running, delayed, dead, oldest_ms;
    size_t live_workers;
    struct buffer reason; /* why there are no figures; or what is not healthy, a line each; owned */
    json_t *page;         /* as leat -q NAME status --json has it; NULL: no figures; owned */
};

struct overview {
    struct overview_line *lines; /* by name; owned */
    size_t count;
};

/* Asks all queues side by side, for two seconds each at most to connect and as long to answer.
 * Returns 0 or an exit status; the error has been printed. *overview is for overview_free in any
 * case. */
int overview_ask(const struct status_limits *limits, struct overview *overview);
void overview_free(struct overview *overview);

/* The highest exit status of all queues. */
int overview_exit_status(const struct overview *overview);

/* Appends the table for people, and what is not healthy. Returns 0, or -1 without memory. */
int overview_render(const struct overview *overview, const struct output *output,
                    struct buffer *out);

/* A list with an object for each queue; a new reference, or NULL without memory. */
json_t *overview_json(const struct overview *overview);

#endif
