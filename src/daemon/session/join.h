/*
 * The first exchange of a session, on its command connection: kill the clients of former sessions,
 * check the server, load the function library, register. Registration is the strict renewal:
 * entries that Redis has for this consumer and that the worker does not name go back into the
 * queue.
 */
#ifndef LEAT_DAEMON_SESSION_JOIN_H
#define LEAT_DAEMON_SESSION_JOIN_H

#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "daemon/session/tokens.h"
#include "queue/keys.h"
#include "queue/replies.h"
#include "redis/connection/connection.h"

struct join;

struct join_events {
    /* Every token that the worker holds. */
    void (*tokens)(void *context, struct token_list *list);
    /* The worker's heartbeat record, valid until the next call; NULL without memory. */
    const char *(*heartbeat)(void *context);
    /* sent_ns: when the registration was sent. */
    void (*joined)(void *context, const struct queue_renew_reply *reply, int64_t sent_ns);
    void (*failed)(void *context, enum redis_error error, const char *why);
    void *context;
};

/* All arguments must outlive the object; config may be replaced. Returns NULL without memory. */
struct join *join_new(struct connection *connection, const struct config *config,
                      const struct queue *queue, const char *consumer,
                      const struct join_events *events);
void join_set_config(struct join *join, const struct config *config);

/* The replication id of the data of the server that joined last; "" if it has none. */
const char *join_replid(const struct join *join);
void join_free(struct join *join);

/* Starts. old_clients: CLIENT IDs of former connections, or −1; not copied. `joined` or `failed`
 * follows, unless the connection closes. */
void join_start(struct join *join, const int64_t *old_clients, size_t count);

#endif
