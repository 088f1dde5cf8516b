/*
 * Discovers the server of the queue if the config names sentinels or nodes of a Cluster. It asks
 * all of them at once, over connections that stay open, and the answer with the highest epoch
 * counts. Nodes also name other nodes, which it asks if none of the config's is of use. It believes
 * an epoch lower than an earlier one only if more than half of the sources answer and none knows a
 * higher one: a source that was cut off must not lead back to a stale master.
 */
#ifndef LEAT_REDIS_SERVER_DISCOVERY_H
#define LEAT_REDIS_SERVER_DISCOVERY_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "redis/error.h"
#include "redis/server/endpoint.h"

struct ev_loop;
struct discovery;

struct discovery_events {
    /* The server, after each discovery_ask and then twice a second. endpoint NULL: no source knows
     * it, and why says the reason. Valid only during the call. */
    void (*told)(void *context, const struct endpoint *endpoint, enum redis_error error,
                 const char *why);
    void *context;
};

/* False if the config itself has the address of the server. */
bool discovery_is_needed(const struct config_redis *config);

/* name becomes the client name of the connections. config must outlive it or be replaced. Returns
 * NULL if there is no memory. */
struct discovery *discovery_new(struct ev_loop *loop, const struct config_redis *config,
                                const char *name, const struct discovery_events *events);
/* Applies to connections that are opened from now on; the sources stay the same. */
void discovery_set_config(struct discovery *discovery, const struct config_redis *config);

/* Asks now, or continues a running round. `told` follows, never from within this call. */
void discovery_ask(struct discovery *discovery);

/* Must not be called from `told`; NULL does nothing. */
void discovery_free(struct discovery *discovery);

/* Waits for one answer, at most connect_timeout. Returns 0, or -1 with class and message. */
int discovery_find(const struct config_redis *config, struct endpoint *endpoint,
                   enum redis_error *error, char *why, size_t why_size);

/* A copy of config with the address of that server; valid as long as both arguments. */
struct config_redis discovery_apply(const struct config_redis *config, struct endpoint *endpoint);

#endif
