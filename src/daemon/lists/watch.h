/*
 * Connections of their own for lists, so that a large intake holds up no renewal: one for commands,
 * and one on which Redis tells which lists have changed. Both are opened, closed and opened anew
 * together. Where Redis does not let the worker listen, commands alone are sent, and lists have to
 * be looked at from time to time.
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
    /* Commands can be sent. What was heard of before counts no more: look at everything. */
    void (*up)(void *context);
    /* Every pending callback has had its NULL. It will come up again. */
    void (*down)(void *context);
    /* A watched list has changed and is watched no more; NULL: all may have. */
    void (*changed)(void *context, const struct bytes *key);
    void *context;
};

/* config must outlive it or be replaced. redis: how the server is spoken to at each opening; it
 * must outlive it. Returns NULL without memory. */
struct watch *watch_new(struct ev_loop *loop, const struct config *config,
                        const struct config_redis *redis, const struct watch_events *events);
void watch_set_config(struct watch *watch, const struct config *config);
void watch_free(struct watch *watch);

/* Opens, with pauses between tries until it is up, and again after each loss, until closed. */
void watch_open(struct watch *watch);
void watch_close(struct watch *watch);

bool watch_is_up(const struct watch *watch);

/* Redis tells of changes of those lists that are read behind queue_watch_next. */
bool watch_listens(const struct watch *watch);

/* Returns 0, or −1: not up, or no memory, and the callback is not called. */
int watch_send(struct watch *watch, struct command *command, connection_callback *callback,
               void *context);

/* Closes and opens anew, in the loop's next turn: an answer left doubt, or memory ran out. */
void watch_recover(struct watch *watch, const char *why);

#endif
