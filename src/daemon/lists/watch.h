/*
 * The connections for producer lists, separate from the session so that a large intake delays no
 * renewal: one for commands, and one on which Redis notifies the worker of changed lists
 * (client-side caching). Both are opened and closed together. If Redis refuses notifications, only
 * the command connection is used, and lists have to be polled.
 */
#ifndef LEAT_DAEMON_LISTS_WATCH_H
#define LEAT_DAEMON_LISTS_WATCH_H

#include <stdbool.h>

#include "daemon/session/worker_context.h"
#include "queue/task.h"
#include "redis/connection/connection.h"

struct watch;

struct watch_events {
    /* Commands can be sent. Earlier notifications no longer count: look at every list. */
    void (*up)(void *context);
    /* Every pending callback was called with NULL. The watch will come up again. */
    void (*down)(void *context);
    /* The list has changed, and Redis no longer watches it. NULL: any list may have changed. */
    void (*changed)(void *context, const struct bytes *key);
    void *context;
};

/* The session must have been created. Returns NULL without memory. */
struct watch *watch_new(struct worker_context *worker, const struct watch_events *events);
void watch_free(struct watch *watch);

/* Opens, and reopens after each loss, with a backoff between tries, until closed. */
void watch_open(struct watch *watch);
void watch_close(struct watch *watch);

bool watch_is_up(const struct watch *watch);

/* Redis notifies of changes of lists whose length was asked for after queue_watch_next. */
bool watch_listens(const struct watch *watch);

/* Sends worker_context's command. If the watch is not up, or memory is short, it recovers, and the
 * callback is not called. */
void watch_send(struct watch *watch, connection_callback *callback, void *context);

/* Closes and reopens in the loop's next turn: a reply was unusable, or memory ran out. */
void watch_recover(struct watch *watch, const char *why);

#endif
