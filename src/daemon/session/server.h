/*
 * The server of the session: the one in the config, or the one that sentinels or a Cluster name,
 * which may change at any time, as may the config's.
 */
#ifndef LEAT_DAEMON_SESSION_SERVER_H
#define LEAT_DAEMON_SESSION_SERVER_H

#include "daemon/session/worker_context.h"
#include "redis/error.h"

struct server;

struct server_events {
    /* The server is known: see server_redis. */
    void (*found)(void *context);
    /* No source knows the server. */
    void (*failed)(void *context, enum redis_error error, const char *why);
    /* The server is not the one found last; server_redis changes only with the next
     * server_discover. */
    void (*moved)(void *context, const char *why);
    void *context;
};

/* Returns NULL without memory. */
struct server *server_new(struct worker_context *worker, const struct server_events *events);

/* The config was replaced. */
void server_reload(struct server *server);

/* Starts discovery. `found` or `failed` follows: at once if the config names the server. */
void server_discover(struct server *server);

/* Notes that the worker has registered with the server, whose data has this replication id. */
void server_registered(struct server *server, const char *replid);

/* The worker, which was to move to the address of the config, has left this server. */
void server_left(struct server *server);

/* The server's settings: always the same struct; its content changes before `found`. */
const struct config_redis *server_redis(const struct server *server);

/* NULL does nothing. */
void server_free(struct server *server);

#endif
