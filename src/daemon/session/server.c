/*
 * Knows the server of the session, and notices when sentinels or a Cluster name another one.
 */
#include "daemon/session/server.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/lease_rule.h"
#include "daemon/session/address.h"
#include "redis/server/discovery.h"

struct server {
    struct worker_context *worker;
    struct server_events events;
    struct discovery *discovery; /* NULL: the config names the server */
    struct address *address;     /* NULL: discovery finds it */
    bool discovering;
    struct endpoint endpoint;          /* where the server was found last; port 0: never */
    struct config_redis redis, sought; /* sought: for discovery */
};

/* After an outage, Redis awaits a worker for one lease. If packets of an attempt to connect were
 * lost in it, there must be time for another attempt. */
static struct config_redis in_time(const struct server *server, struct config_redis redis)
{
    int64_t most_ms = lease_rule_connect_ms(server->worker->lease_ms);
    if (redis.connect_in_lease && redis.connect_timeout_ms > most_ms) {
        redis.connect_timeout_ms = most_ms;
    }
    return redis;
}

static void set_sought(struct server *server)
{
    server->sought = in_time(server, server->worker->config->redis);
    discovery_set_config(server->discovery, &server->sought);
}

static void on_discovered(void *context, const struct endpoint *endpoint, enum redis_error error,
                          const char *why)
{
    struct server *server = context;
    bool discovering = server->discovering;
    server->discovering = false;
    if (discovering && endpoint) {
        server->endpoint = *endpoint;
        server->redis = discovery_apply(&server->sought, &server->endpoint);
        server->events.found(server->events.context);
    } else if (discovering) {
        server->events.failed(server->events.context, error, why);
    } else if (endpoint && server->endpoint.port && !endpoint_equal(endpoint, &server->endpoint)) {
        char text[ADDRESSES_HOST_SIZE + 64];
        (void)snprintf(text, sizeof text, "%s %s:%lld",
                       server->worker->config->redis.cluster ? "the queue's hash slot is now at"
                                                             : "the master is now",
                       endpoint->host, (long long)endpoint->port);
        server->events.moved(server->events.context, text);
    }
}

void server_discover(struct server *server)
{
    if (!server->discovery) {
        server->redis = in_time(server, address_apply(server->address));
        server->events.found(server->events.context);
        return;
    }
    set_sought(server);
    server->discovering = true;
    discovery_ask(server->discovery);
}

const struct config_redis *server_redis(const struct server *server)
{
    return &server->redis;
}

void server_reload(struct server *server)
{
    if (!server->discovery) {
        address_reload(server->address);
        server->redis = in_time(server, address_apply(server->address));
        return;
    }
    set_sought(server);
    server->redis = server->endpoint.port ? discovery_apply(&server->sought, &server->endpoint)
                                          : server->sought;
}

void server_registered(struct server *server, const char *replid)
{
    if (server->address) {
        address_registered(server->address, replid);
    }
}

void server_left(struct server *server)
{
    if (server->address) {
        address_left(server->address);
    }
}

static void on_address(void *context, const char *why)
{
    struct server *server = context;
    /* the former strings are gone */
    server->redis = in_time(server, address_apply(server->address));
    server->events.moved(server->events.context, why);
}

struct server *server_new(struct worker_context *worker, const struct server_events *events)
{
    const struct config *config = worker->config;
    struct server *server = calloc(1, sizeof *server);
    if (!server) {
        return NULL;
    }
    server->worker = worker;
    server->redis = config->redis;
    server->events = *events;
    if (discovery_is_needed(&config->redis)) {
        const struct discovery_events discovery_events = {.told = on_discovered, .context = server};
        char name[160];
        (void)snprintf(name, sizeof name, "leat:%s:discovery", config->queue.name);
        server->discovery = discovery_new(worker->loop, &config->redis, name, &discovery_events);
    } else {
        const struct address_events address_events = {.moved = on_address, .context = server};
        server->address = address_new(worker, &address_events);
    }
    if (!server->discovery && !server->address) {
        server_free(server);
        return NULL;
    }
    return server;
}

void server_free(struct server *server)
{
    if (server) {
        discovery_free(server->discovery);
        address_free(server->address);
        free(server);
    }
}
