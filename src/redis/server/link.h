/*
 * A connection to the Redis of one queue that is opened again whenever it breaks, on the server
 * that sentinels or a Cluster name.
 */
#ifndef LEAT_REDIS_SERVER_LINK_H
#define LEAT_REDIS_SERVER_LINK_H

#include <stdbool.h>

#include "config/config.h"
#include "redis/command.h"
#include "redis/connection/connection.h"
#include "redis/error.h"

struct ev_loop;
struct link;

/* Called when the connection is up (error is REDIS_ERROR_NONE), and each time that it broke or
 * could not be opened; why says the reason. */
typedef void link_changed(void *context, enum redis_error error, const char *why);

/* Starts to connect; `changed` follows, never from within this call. name becomes the client name.
 * config must outlive the link. Returns NULL without memory. */
struct link *link_new(struct ev_loop *loop, const struct config_redis *config, const char *name,
                      link_changed *changed, void *context);

bool link_is_up(const struct link *link);

/* Sends a command; see connection_send. The callback gets NULL if the connection breaks. */
int link_send(struct link *link, struct command *command, connection_callback *callback,
              void *context);

/* NULL does nothing. Must not be called from the callbacks. */
void link_free(struct link *link);

#endif
