/*
 * One asynchronous connection to Redis on an event loop, with deadlines of its own: hiredis 0.14
 * has none, so it would never call back if packets were dropped. Logs nothing: that is the owner's
 * decision. SIGPIPE must be ignored, so that a closed connection is an error and not a signal.
 */
#ifndef LEAT_REDIS_CONNECTION_CONNECTION_H
#define LEAT_REDIS_CONNECTION_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "redis/command.h"
#include "redis/connection/pending.h"
#include "redis/error.h"

struct ev_loop;
struct redisReply;
struct connection;

struct connection_events {
    /* AUTH, SELECT, CLIENT SETNAME and CLIENT ID have been answered: commands may be sent. */
    void (*up)(void *context, struct connection *connection);
    /* The connection could not be opened, or broke, or a command's deadline passed; it is closed.
     * Called once for each connection_open, after the callbacks of all pending commands were called
     * with NULL. */
    void (*lost)(void *context, struct connection *connection, enum redis_error error,
                 const char *why);
    void *context;
};

/* name becomes the client name ("leat:QUEUE:work"). config must outlive the connection and
 * is read at each open. Returns NULL if there is no memory. */
struct connection *connection_new(struct ev_loop *loop, const struct config_redis *config,
                                  const char *name, const struct connection_events *events);

/* From the next open on, the connection comes up also if its user may not run CLIENT SETNAME or
 * CLIENT ID. Without the latter its id is −1. */
void connection_need_no_id(struct connection *connection);

/* Starts to connect a closed connection; `up` or `lost` follows, never from within this call. The
 * name of a host is looked up first, under the same deadline. */
void connection_open(struct connection *connection);

/* Closes an open connection at once: the callbacks of pending commands get NULL, and `lost` is not
 * called. Safe in callbacks. */
void connection_close(struct connection *connection);

/* Queues a command. timeout_ms 0: no deadline (a blocking read). callback NULL: the reply does not
 * matter. An answer that is still arriving at its deadline gets more time, but at most a hundred
 * times its timeout. Returns 0; or -1 if it is not up or there is no memory: the callback is then
 * not called. All that one turn of the loop sends goes out in one write. */
int connection_send(struct connection *connection, struct command *command, int64_t timeout_ms,
                    connection_callback *callback, void *context);

/* Sends a SUBSCRIBE while nothing is pending. The callback gets the answer, every message after it,
 * and NULL at the end; nothing else may be sent. A refusal closes the connection, and `lost` gets
 * its words. Returns 0, or -1 as connection_send does. */
int connection_subscribe(struct connection *connection, struct command *command,
                         connection_callback *callback, void *context);

bool connection_is_up(const struct connection *connection);

/* Whether an open connection was lost because an answer was late. Valid from `lost` until the next
 * open. */
bool connection_is_late(const struct connection *connection);

/* How many bytes of an unfinished answer have arrived. The number changes as long as a long answer
 * is on its way. */
size_t connection_arrived(const struct connection *connection);

/* CLIENT ID of the connection; −1 before it is up, or if it needs none. After a loss or close it
 * stays the last one until the next open. */
int64_t connection_client_id(const struct connection *connection);

/* Closes and frees; NULL does nothing. Must not be called from its own callbacks. */
void connection_free(struct connection *connection);

#endif
