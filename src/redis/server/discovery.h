/*
 * Finds the server that has the queue where the config names sentinels, or nodes of a Cluster,
 * instead of it. All of them are asked at once, over connections that stay; the answer with the
 * highest epoch counts. Nodes also tell of other nodes, which are asked where none of the config's
 * is of use. A lower epoch than was seen before is believed only if more than half of
 * them answer and none knows better: one that was cut off must not lead back to a stale master.
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
    /* Who has it: after each discovery_ask, and then twice a second, as all were asked again.
     * endpoint NULL: nobody says, and why tells the reason. Valid only during the call. */
    void (*told)(void *context, const struct endpoint *endpoint, enum redis_error error,
                 const char *why);
    void *context;
};

/* False: the config itself says where the server is. */
bool discovery_is_needed(const struct config_redis *config);

/* The connections are called name. config must outlive it or be replaced. Returns NULL without
 * memory. */
struct discovery *discovery_new(struct ev_loop *loop, const struct config_redis *config,
                                const char *name, const struct discovery_events *events);
/* For connections that are opened from now on; who is asked does not change. */
void discovery_set_config(struct discovery *discovery, const struct config_redis *config);

/* Asks now, or goes on where that is under way. `told` follows, never from within this call. */
void discovery_ask(struct discovery *discovery);

/* Not from within `told`; NULL does nothing. */
void discovery_free(struct discovery *discovery);

/* Waits for one answer, connect_timeout at the most. Returns 0, or -1 with class and message. */
int discovery_find(const struct config_redis *config, struct endpoint *endpoint,
                   enum redis_error *error, char *why, size_t why_size);

/* config with that server's address in place of its own: it lives as long as both. */
struct config_redis discovery_apply(const struct config_redis *config, struct endpoint *endpoint);

#endif
