/*
 * One command to the server that has a queue, on an event loop, so that many servers can be asked
 * side by side. Sentinels or nodes of a Cluster are asked first if the config names them.
 */
#ifndef LEAT_REDIS_SERVER_QUERY_H
#define LEAT_REDIS_SERVER_QUERY_H

#include "config/config.h"
#include "redis/command.h"
#include "redis/error.h"

struct ev_loop;
struct query;
struct redisReply;

/* reply is valid only during the call, and never an error. NULL: the query failed; error and why
 * say the reason. */
typedef void query_callback(void *context, const struct redisReply *reply, enum redis_error error,
                            const char *why);

/* Starts to connect. The callback is called once, never from within this call, and at the latest
 * after connect_timeout and command_timeout of the config together. If sentinels or nodes are asked
 * for the server first, connect_timeout counts twice.
 * name becomes the client name. config and command must outlive the query. Returns NULL without
 * memory. */
struct query *query_start(struct ev_loop *loop, const struct config_redis *config, const char *name,
                          struct command *command, query_callback *callback, void *context);

/* Closes and frees; NULL does nothing. Must not be called from the callback. */
void query_free(struct query *query);

#endif
