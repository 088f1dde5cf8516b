/*
 * Discovers lists that begin with a prefix, by walks through the keys of the database. In each
 * period only one worker of the queue walks, in small steps with pauses between them, so that the
 * walk uses only a share of the server's time.
 */
#ifndef LEAT_DAEMON_LISTS_SEEK_H
#define LEAT_DAEMON_LISTS_SEEK_H

#include <stdint.h>

#include "daemon/lists/watch.h"

struct seek;

struct seek_events {
    /* There is a list that holds items. The name is valid during the call. */
    void (*found)(void *context, struct bytes name);
    /* Redis refused a command; the next period tries again. */
    void (*failed)(void *context, const char *error);
    void *context;
};

/* watch must outlive the object. Returns NULL without memory. */
struct seek *seek_new(struct worker_context *worker, struct watch *watch,
                      const struct seek_events *events);
void seek_free(struct seek *seek);

/* Starts at once, then in each period. The prefix is not copied. The watch must be up. */
void seek_begin(struct seek *seek, const char *prefix, int64_t period_ms);

/* Stops; allowed also after the watch went down. */
void seek_end(struct seek *seek);

#endif
