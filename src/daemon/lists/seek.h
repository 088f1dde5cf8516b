/*
 * Looking for lists that begin with a prefix, by walks through the keys of the database: of all
 * workers of the queue one walks in each period, in small steps, with pauses between them, so that
 * it never uses more than a part of the server's time.
 */
#ifndef LEAT_DAEMON_LISTS_SEEK_H
#define LEAT_DAEMON_LISTS_SEEK_H

#include <stdint.h>

#include "daemon/lists/watch.h"
#include "queue/queue.h"

struct seek;

struct seek_events {
    /* There is such a list; the name is not kept. */
    void (*found)(void *context, struct bytes name);
    /* Redis has refused it; it is tried again in the next period. */
    void (*failed)(void *context, const char *error);
    void *context;
};

/* watch and queue must outlive it. Returns NULL without memory. */
struct seek *seek_new(struct ev_loop *loop, struct watch *watch, const struct queue *queue,
                      const struct seek_events *events);
void seek_free(struct seek *seek);

/* Begins at once, and again in each period; prefix must stay. The watch is up. */
void seek_begin(struct seek *seek, const char *prefix, int64_t period_ms);

/* Also after the watch has gone down. */
void seek_end(struct seek *seek);

#endif
