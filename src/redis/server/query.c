/*
 * One command to the server that has a queue: discover it, connect, send, and hand the reply over.
 */
#include "redis/server/query.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/connection/connection.h"
#include "redis/server/discovery.h"

struct query {
    struct ev_loop *loop;
    const struct config_redis *config;
    struct command *command;
    query_callback *callback;
    void *context;
    char *name;
    struct discovery *discovery; /* NULL: the config has the address */
    struct endpoint endpoint;    /* the discovered address */
    struct config_redis redis;   /* the settings of the connection */
    struct connection *connection;
    bool finished;
};

static void finish(struct query *query, const redisReply *reply, enum redis_error error,
                   const char *why)
{
    if (!query->finished) {
        query->finished = true;
        query->callback(query->context, reply, error, why);
    }
}

static void on_reply(void *context, const redisReply *reply)
{
    struct query *query = context;
    if (!reply) {
        return; /* `lost` follows with the reason */
    }
    if (reply->type != REDIS_REPLY_ERROR) {
        finish(query, reply, REDIS_ERROR_NONE, "");
        return;
    }
    char why[256];
    const char *text = NULL;
    size_t size = redis_error_text(reply->str, reply->len, &text);
    (void)snprintf(why, sizeof why, "%.*s", (int)size, text); /* cut if it is too long */
    finish(query, NULL, redis_error_classify(reply->str, reply->len), why);
}

static void on_up(void *context, struct connection *connection)
{
    struct query *query = context;
    if (connection_send(connection, query->command, query->redis.command_timeout_ms, on_reply,
                        query)) {
        finish(query, NULL, REDIS_ERROR_OTHER, "out of memory");
    }
}

static void on_lost(void *context, struct connection *connection, enum redis_error error,
                    const char *why)
{
    (void)connection;
    finish(context, NULL, error, why);
}

static int connect_to_server(struct query *query)
{
    const struct connection_events events = {.up = on_up, .lost = on_lost, .context = query};
    query->connection = connection_new(query->loop, &query->redis, query->name, &events);
    if (!query->connection) {
        return -1;
    }
    connection_open(query->connection);
    return 0;
}

/* Discovery keeps asking: only its first answer counts. */
static void on_told(void *context, const struct endpoint *endpoint, enum redis_error error,
                    const char *why)
{
    struct query *query = context;
    if (query->connection) {
        return;
    }
    if (!endpoint) {
        finish(query, NULL, error, why);
        return;
    }
    query->endpoint = *endpoint;
    query->redis = discovery_apply(query->config, &query->endpoint);
    if (!query->finished && connect_to_server(query)) {
        finish(query, NULL, REDIS_ERROR_OTHER, "out of memory");
    }
}

static int begin(struct query *query)
{
    const struct discovery_events events = {.told = on_told, .context = query};
    if (!discovery_is_needed(query->config)) {
        query->redis = *query->config;
        return connect_to_server(query);
    }
    query->discovery = discovery_new(query->loop, query->config, query->name, &events);
    if (!query->discovery) {
        return -1;
    }
    discovery_ask(query->discovery);
    return 0;
}

struct query *query_start(struct ev_loop *loop, const struct config_redis *config, const char *name,
                          struct command *command, query_callback *callback, void *context)
{
    struct query *query = calloc(1, sizeof *query);
    if (!query) {
        return NULL;
    }
    *query = (struct query){.loop = loop,
                            .config = config,
                            .command = command,
                            .callback = callback,
                            .context = context,
                            .name = strdup(name)};
    if (!query->name || begin(query)) {
        query_free(query);
        return NULL;
    }
    return query;
}

void query_free(struct query *query)
{
    if (query) {
        connection_free(query->connection);
        discovery_free(query->discovery);
        free(query->name);
        free(query);
    }
}
