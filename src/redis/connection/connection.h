/*
 * One asynchronous connection to Redis on an event loop, with deadlines of its own: hiredis 0.14
 * has none, and where packets are dropped nothing else would ever call back. Logs nothing; whoever
 * owns it decides. SIGPIPE must be ignored: a closed connection is an error here, not a signal.
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
    /* It could not be opened, or broke, or a command's deadline passed; it is closed. Called once
     * for each connection_open, after every pending command's callback has been called with NULL.
     */
    void (*lost)(void *context, struct connection *connection, enum redis_error error,
                 const char *why);
    void *context;
};

/* name becomes the client name ("leat:QUEUE:work"). config must outlive the connection; each
 * open takes what it says then. Returns NULL without memory. */
struct connection *connection_new(struct ev_loop *loop, const struct config_redis *config,
                                  const char *name, const struct connection_events *events);

/* Begins to connect; `up` or `lost` follows, never from within this call. It must be closed. A host
 * that is a name is looked up first, under the same deadline. */
void connection_open(struct connection *connection);

/* Closes at once, if open; pending commands' callbacks get NULL; `lost` is not called. Safe in
 * callbacks. */
void connection_close(struct connection *connection);

/* Queues a command. timeout_ms 0: no deadline (a blocking read). Returns 0, or -1: not up, or no
 * memory; the callback is then not called. What one turn of the loop sends goes out in one write.
 */
int connection_send(struct connection *connection, struct command *command, int64_t timeout_ms,
                    connection_callback *callback, void *context);

/* Sends a SUBSCRIBE while nothing is pending: the callback gets the answer and every message after
 * it, and NULL in the end. Nothing else may be sent then. A refusal closes the connection; `lost`
 * tells its words. Returns 0, or -1 as connection_send. */
int connection_subscribe(struct connection *connection, struct command *command,
                         connection_callback *callback, void *context);

bool connection_is_up(const struct connection *connection);

/* CLIENT ID of the connection; −1 before it is up. After it was lost or closed still the last one,
 * until the next open. */
int64_t connection_client_id(const struct connection *connection);

/* Closes and frees; NULL does nothing. Not from within its own callbacks. */
void connection_free(struct connection *connection);

#endif
