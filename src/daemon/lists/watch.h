/*
 * The connections for producer lists, separate from the session so that a large intake delays no
 * renewal: one for commands, and one on which Redis notifies the worker of changed lists
 * (client-side caching). Both are opened and closed together. If Redis refuses notifications, only
 * the command connection is used, and lists have to be polled.
 */
#ifndef LEAT_DAEMON_LISTS_WATCH_H
#define LEAT_DAEMON_LISTS_WATCH_H

#include <stdbool.h>

#include "config/config.h"
#include "queue/task.h"
#include "redis/connection/connection.h"

struct ev_loop;
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

/* config must outlive the watch or be replaced. redis: the server's settings, read at each opening;
 * must outlive the watch. Returns NULL without memory. */
struct watch *watch_new(struct ev_loop *loop, const struct config *config,
                        const struct config_redis *redis, const struct watch_events *events);
void watch_set_config(struct watch *watch, const struct config *config);
void watch_free(struct watch *watch);

/* Opens, and reopens after each loss, with a backoff between tries, until closed. */
void watch_open(struct watch *watch);
void watch_close(struct watch *watch);

bool watch_is_up(const struct watch *watch);

/* Redis notifies of changes of lists whose length was asked for after queue_watch_next. */
bool watch_listens(const struct watch *watch);

/* Returns 0, or −1 if the watch is not up or memory is short; the callback is not called then. */
int watch_send(struct watch *watch, struct command *command, connection_callback *callback,
               void *context);

/* Closes and reopens in the loop's next turn: a reply was unusable, or memory ran out. */
void watch_recover(struct watch *watch, const char *why);

#endif
