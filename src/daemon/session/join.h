/*
 * The first exchange of a session, on its command connection: kill the clients of former sessions,
 * check the server, load the function library, register. Registration is the strict renewal:
 * entries that Redis has for this consumer and that the worker does not name go back into the
 * queue.
 */
#ifndef LEAT_DAEMON_SESSION_JOIN_H
#define LEAT_DAEMON_SESSION_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/session/tokens.h"
#include "daemon/session/worker_context.h"
#include "queue/replies.h"
#include "redis/connection/connection.h"

#define JOIN_CLIENTS 4 /* the connections of a session */

struct join;

struct join_events {
    /* See session_roll_call. */
    const char *(*roll_call)(void *context, struct token_list *list);
    /* sent_ns: when the registration was sent. */
    void (*joined)(void *context, const struct queue_renew_reply *reply, int64_t sent_ns);
    void (*failed)(void *context, enum redis_error error, const char *why);
    void *context;
};

/* The connection must outlive the object. Returns NULL without memory. */
struct join *join_new(struct worker_context *worker, struct connection *connection,
                      const struct join_events *events);

/* Whether the server that joined last is the one that joined before it, and was not restarted. */
bool join_found_same(const struct join *join);

/* The replication id of the data of the server that joined last; "" if it has none. */
const char *join_replid(const struct join *join);
void join_free(struct join *join);

/* The session that joined last is over: the CLIENT IDs of its connections, or −1. The next join at
 * the same server kills them, also if others joined elsewhere meanwhile. */
void join_note_former(struct join *join, const int64_t clients[JOIN_CLIENTS]);

/* Starts. timeout_ms: of each answer. `joined` or `failed` follows, unless the connection closes.
 */
void join_start(struct join *join, int64_t timeout_ms);

#endif
