/*
 * The worker's heartbeat record, sent with each renewal: one JSON object in the queue's `workers`,
 * which `leat status` reads.
 */
#ifndef LEAT_DAEMON_HEARTBEAT_H
#define LEAT_DAEMON_HEARTBEAT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "daemon/report/figures.h"
#include "daemon/session/tokens.h"
#include "exec/guard/worker_name.h"
#include "exec/job/outcome.h"

struct heartbeat {
    char host[WORKER_NAME_HOST_SIZE];
    char consumer[128]; /* exec/guard/worker_name.h */
    int64_t started_wall_ms;
    uint64_t ended[VERDICTS]; /* attempts, by outcome */
    uint64_t counted;         /* ended attempts at the last update of the rate */
    int64_t counted_ns;       /* when that was */
    double rate;              /* ended attempts per second, smoothed */
    int64_t fence;            /* the greatest fencing token that the worker was given */
    int64_t joined;           /* the number of the newest worker that it has heard of */
    int64_t registration;     /* the number of its last registration */
    int64_t lease_ms;         /* the longest that tasks may have; 0: Redis has not told it yet */
    struct figures figures;   /* for the next record */
    struct buffer text;
};

/* Names this incarnation. Returns 0, or −1 with errno. */
int heartbeat_init(struct heartbeat *heartbeat);
void heartbeat_free(struct heartbeat *heartbeat);

/* Returns the record, valid until the next call; NULL without memory. capacity: the tasks
 * that may run at once, several in a slot with [task] batch; running: those that do. trouble: why
 * the worker takes no tasks, for people; "" if it does. unclaimed: the tokens that the worker has
 * read but not claimed; all others that it renews are claimed. */
const char *heartbeat_text(struct heartbeat *heartbeat, size_t slots, size_t capacity,
                           size_t running, int64_t kill_grace_ms, const char *state,
                           const char *trouble, const struct token_list *unclaimed);

#endif
