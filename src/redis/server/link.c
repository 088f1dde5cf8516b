/*
 * A connection to the Redis of one queue.
 */
#include "redis/server/link.h"

#include <ev.h>
#include <stdlib.h>
#include <string.h>

#include "base/timer.h"
#include "redis/connection/backoff.h"
#include "redis/server/discovery.h"

struct link {
    struct ev_loop *loop;
    const struct config_redis *config;
    link_changed *changed;
    void *context;
    char *name;
    struct discovery *discovery;   /* NULL: the config has the address */
    struct endpoint endpoint;      /* the discovered address */
    struct config_redis redis;     /* the settings of the connection */
    struct connection *connection; /* NULL: not discovered yet */
    struct timer again;            /* opens the connection after a failure */
    bool opening;
    unsigned failures;
};

static void try_later(struct link *link)
{
    link->failures++;
    timer_start_s(&link->again, backoff_delay(link->config, link->failures));
}

static void on_up(void *context, struct connection *connection)
{
    struct link *link = context;

    (void)connection;
    link->opening = false;
    link->failures = 0;
    link->changed(link->context, REDIS_ERROR_NONE, "");
}

static void on_lost(void *context, struct connection *connection, enum redis_error error,
                    const char *why)
{
    struct link *link = context;

    (void)connection;
    link->opening = false;
    link->changed(link->context, error, why);
    try_later(link);
}

static void open_connection(struct link *link)
{
    const struct connection_events events = {.up = on_up, .lost = on_lost, .context = link};

    if (!link->connection) {
        link->connection = connection_new(link->loop, &link->redis, link->name, &events);
    }
    if (!link->connection) {
        link->changed(link->context, REDIS_ERROR_NO_MEMORY, "out of memory");
        try_later(link);
        return;
    }
    link->opening = true;
    connection_open(link->connection);
}

/* Told twice a second. Another server than the one in use has the queue after a failover. */
static void on_told(void *context, const struct endpoint *endpoint, enum redis_error error,
                    const char *why)
{
    struct link *link = context;

    if (link->opening || timer_runs(&link->again)) {
        return;
    }
    if (!endpoint) {
        if (!link_is_up(link)) {
            link->changed(link->context, error, why);
        }
        return;
    }
    if (link_is_up(link) && endpoint_equal(endpoint, &link->endpoint)) {
        return;
    }
    if (link_is_up(link)) {
        connection_close(link->connection);
        link->changed(link->context, REDIS_ERROR_LOST, "another server has the queue now");
    }
    link->endpoint = *endpoint;
    link->redis = discovery_apply(link->config, &link->endpoint);
    open_connection(link);
}

static void on_again(void *context)
{
    struct link *link = context;

    if (link->discovery) {
        discovery_ask(link->discovery);
    } else {
        open_connection(link);
    }
}

static int begin(struct link *link)
{
    const struct discovery_events events = {.told = on_told, .context = link};

    link->redis = *link->config;
    if (discovery_is_needed(link->config)) {
        link->discovery = discovery_new(link->loop, link->config, link->name, &events);
        if (!link->discovery) {
            return -1;
        }
    }
    timer_start_ns(&link->again, 0);
    return 0;
}

struct link *link_new(struct ev_loop *loop, const struct config_redis *config, const char *name,
                      link_changed *changed, void *context)
{
    struct link *link = calloc(1, sizeof *link);

    if (!link) {
        return NULL;
    }
    *link = (struct link){.loop = loop, .config = config, .changed = changed, .context = context};
    timer_init(&link->again, loop, on_again, link);
    link->name = strdup(name);
    if (!link->name || begin(link) != 0) {
        link_free(link);
        return NULL;
    }
    return link;
}

bool link_is_up(const struct link *link)
{
    return link->connection && connection_is_up(link->connection);
}

int link_send(struct link *link, struct command *command, connection_callback *callback,
              void *context)
{
    return link_is_up(link) ? connection_send(link->connection, command,
                                              link->redis.command_timeout_ms, callback, context)
                            : -1;
}

void link_free(struct link *link)
{
    if (link) {
        timer_stop(&link->again);
        connection_free(link->connection);
        discovery_free(link->discovery);
        free(link->name);
        free(link);
    }
}
