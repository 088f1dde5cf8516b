/*
 * The server that the session is with: the config's own, or the one that sentinels or a Cluster
 * name, which may be another one at any time.
 */
#ifndef LEAT_DAEMON_SESSION_SERVER_H
#define LEAT_DAEMON_SESSION_SERVER_H

#include "config/config.h"
#include "redis/error.h"

struct ev_loop;
struct server;

struct server_events {
    /* It is known: server_redis tells it. */
    void (*found)(void *context);
    /* Nobody says where it is. */
    void (*failed)(void *context, enum redis_error error, const char *why);
    /* It is another one than was found last; nothing changes before the next server_seek. */
    void (*moved)(void *context, const char *why);
    void *context;
};

/* config must outlive it or be replaced. Returns NULL without memory. */
struct server *server_new(struct ev_loop *loop, const struct config *config,
                          const struct server_events *events);
void server_set_config(struct server *server, const struct config *config);

/* `found` or `failed` follows: at once where the config says it. */
void server_seek(struct server *server);

/* How it is spoken to: the same struct at all times, whose content changes before `found`. */
const struct config_redis *server_redis(const struct server *server);

/* NULL does nothing. */
void server_free(struct server *server);

#endif
