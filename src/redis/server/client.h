/*
 * A synchronous client for the command line: connect, authenticate, load the library where it is
 * missing, send commands one by one or many before reading.
 */
#ifndef LEAT_REDIS_SERVER_CLIENT_H
#define LEAT_REDIS_SERVER_CLIENT_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "redis/command.h"
#include "redis/error.h"

struct redisReply;
struct client;

/* Connects, authenticates and sees to the library. Where sentinels or a Cluster say which server it
 * is, they are asked for up to connect_timeout, until it is a master. Where `library` allows it, a
 * missing or older one is replaced by the built-in one; a newer one stays. Returns a client, or
 * NULL with the class in *error and a message for people in `why`. SIGPIPE must be ignored: a
 * closed connection is an error here, not a signal. config must outlive the client. */
struct client *client_open(const struct config_redis *config, enum config_library library,
                           enum redis_error *error, char *why, size_t why_size);
/* It loaded the library itself. */
bool client_has_loaded(const struct client *client);
void client_close(struct client *client);

/* Sends and waits. Returns the reply (free it with freeReplyObject), or NULL with class and
 * message: error replies come back so too. A missing library is loaded, unless client_open was told
 * never to, and the call repeated; so it is, for up to connect_timeout, where another server has
 * the queue now, or none yet, and others say which. After REDIS_ERROR_LOST nothing but client_close
 * works. */
struct redisReply *client_call(struct client *client, struct command *command,
                               enum redis_error *error, char *why, size_t why_size);

/* The same, but only on the server that the last call was on: for what depends on that. */
struct redisReply *client_call_here(struct client *client, struct command *command,
                                    enum redis_error *error, char *why, size_t why_size);

/* The reply to what was appended, as client_receive has it, or NULL with REDIS_ERROR_NONE where
 * none has come by deadline_ns (CLOCK_BOOTTIME), or a signal was caught: it can be waited for
 * again, for hours if need be. `mask`: the signals that are blocked meanwhile; NULL: as they are.
 */
struct redisReply *client_wait(struct client *client, int64_t deadline_ns, const sigset_t *mask,
                               enum redis_error *error, char *why, size_t why_size);

/* Pipelining: append without waiting (0, or -1 without memory), then one client_receive for each,
 * in order; an error reply does not end the row. */
int client_append(struct client *client, struct command *command);
struct redisReply *client_receive(struct client *client, enum redis_error *error, char *why,
                                  size_t why_size);

#endif
