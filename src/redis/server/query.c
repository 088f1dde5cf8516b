/*
 * One command to the server that has a queue: discover it, connect, send, and hand the reply over.
 */
#include "redis/server/query.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "redis/server/link.h"

struct query {
    struct command *command;
    query_callback *callback;
    void *context;
    struct link *link;
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
        return; /* on_changed follows with the reason */
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

/* Only the first connection counts. */
static void on_changed(void *context, enum redis_error error, const char *why)
{
    struct query *query = context;
    if (error != REDIS_ERROR_NONE) {
        finish(query, NULL, error, why);
    } else if (!query->finished && link_send(query->link, query->command, on_reply, query) != 0) {
        finish(query, NULL, REDIS_ERROR_NO_MEMORY, "out of memory");
    }
}

struct query *query_start(struct ev_loop *loop, const struct config_redis *config, const char *name,
                          struct command *command, query_callback *callback, void *context)
{
    struct query *query = calloc(1, sizeof *query);
    if (!query) {
        return NULL;
    }
    *query = (struct query){.command = command, .callback = callback, .context = context};
    query->link = link_new(loop, config, name, on_changed, query);
    if (!query->link) {
        free(query);
        return NULL;
    }
    return query;
}

void query_free(struct query *query)
{
    if (query) {
        link_free(query->link);
        free(query);
    }
}
