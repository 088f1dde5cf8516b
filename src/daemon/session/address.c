/* Follows a changed address of the server: at once if it has the same data. */
#include "daemon/session/address.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "base/timer.h"
#include "redis/server/query.h"

struct place {
    char *host, *socket; /* owned; socket may be NULL */
    int64_t port;
};

struct address {
    struct worker_context *worker;
    struct address_events events;
    struct place used;
    char replid[48];           /* of the data that the worker has registered with; "": none */
    struct config_redis asked; /* the settings of the query */
    struct query *query;       /* asks the server in use, then that of the config; or NULL */
    struct command command;
    bool knows_used;       /* the server in use was asked */
    struct timer answered; /* acts outside of the query's callback */
    bool has_other_data;   /* so the worker has to leave the server in use first */
    char refusal[256];     /* why the server is not taken; "": it is */
};

static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_used(const struct address *address, const struct config_redis *redis)
{
    return is_same(address->used.socket, redis->socket) &&
           (redis->socket ||
            (is_same(address->used.host, redis->host) && address->used.port == redis->port));
}

static int use(struct address *address, const struct config_redis *redis)
{
    struct place place = {.host = strdup(redis->host), .port = redis->port};
    place.socket = redis->socket ? strdup(redis->socket) : NULL;
    if (!place.host || (redis->socket && !place.socket)) {
        free(place.host);
        free(place.socket);
        return -1;
    }
    free(address->used.host);
    free(address->used.socket);
    address->used = place;
    return 0;
}

/* Writes "HOST:PORT" or the socket's path. */
static void describe(const char *host, int64_t port, const char *socket, char *text, size_t size)
{
    if (socket) {
        (void)snprintf(text, size, "%s", socket);
    } else {
        (void)snprintf(text, size, "%s:%lld", host, (long long)port);
    }
}

static void log_refusal(const struct address *address)
{
    char there[200], used[200];
    const struct config_redis *redis = &address->worker->config->redis;
    describe(redis->host, redis->port, redis->socket, there, sizeof there);
    describe(address->used.host, address->used.port, address->used.socket, used, sizeof used);
    log_event(LOG_ERR, LOG_ID_CONFIG_REJECTED, NULL, 0,
              "%s: [redis] host, port, socket: not moving to %s: %s; staying with %s until another "
              "reload",
              address->worker->config->path, there, address->refusal, used);
}

static void log_departure(const struct address *address)
{
    char there[200], used[200];
    const struct config_redis *redis = &address->worker->config->redis;
    describe(redis->host, redis->port, redis->socket, there, sizeof there);
    describe(address->used.host, address->used.port, address->used.socket, used, sizeof used);
    log_text(LOG_NOTICE,
             "%s has other data than %s: finishing the running tasks first, then moving there",
             there, used);
}

static void stop_asking(struct address *address)
{
    timer_stop(&address->answered);
    query_free(address->query);
    address->query = NULL;
}

static void move_or_stay(struct address *address)
{
    char place[200], why[256];
    if (!*address->refusal && use(address, &address->worker->config->redis)) {
        (void)snprintf(address->refusal, sizeof address->refusal, "out of memory");
    }
    bool has_left = address->worker->moving;
    address->worker->moving = false;
    if (*address->refusal) {
        log_refusal(address);
        if (!has_left) {
            return;
        }
    }
    describe(address->used.host, address->used.port, address->used.socket, place, sizeof place);
    (void)snprintf(why, sizeof why, "the configuration now names %s", place);
    address->events.moved(address->events.context, why);
}

static void answer_later(struct address *address)
{
    timer_start_ns(&address->answered, 0);
}

/* Starts the query, or refuses the new address. */
static void ask(struct address *address, const struct config_redis *redis, query_callback *callback)
{
    char name[160];
    address->asked = *redis;
    server_info(&address->command);
    (void)snprintf(name, sizeof name, "leat:%s:address", address->worker->config->queue.name);
    address->query = query_start(address->worker->loop, &address->asked, name, &address->command,
                                 callback, address);
    if (!address->query) {
        (void)snprintf(address->refusal, sizeof address->refusal, "out of memory");
        answer_later(address);
    }
}

static bool is_replid(const char *text)
{
    return *text && strspn(text, "0") != strlen(text);
}

bool address_has_data(const struct server_info *server, const char *replid)
{
    return is_replid(replid) &&
           (strcmp(server->replid, replid) == 0 || strcmp(server->replid2, replid) == 0);
}

static void on_new_info(void *context, const struct redisReply *reply, enum redis_error error,
                        const char *why)
{
    (void)error;
    struct address *address = context;
    struct server_info server;
    const char *refusal = "";
    if (!reply) {
        refusal = why;
    } else if (server_info_read(reply, &server)) {
        refusal = "INFO: unexpected reply";
    } else if (!server.is_master) {
        refusal = "that Redis is a replica; promote it (REPLICAOF NO ONE) and reload again";
    } else if (!address_has_data(&server, address->replid)) {
        address->has_other_data = true;
    }
    (void)snprintf(address->refusal, sizeof address->refusal, "%s", refusal);
    answer_later(address);
}

/* A master takes a new replication id when its first replica comes, so the id is asked for again.
 * If the server in use is gone, the id of the registration counts. */
static void on_used_info(void *context, const struct redisReply *reply, enum redis_error error,
                         const char *why)
{
    (void)error;
    (void)why;
    struct address *address = context;
    struct server_info server;
    if (reply && server_info_read(reply, &server) == 0) {
        address_registered(address, server.replid);
    }
    answer_later(address);
}

static void on_answered(void *context)
{
    struct address *address = context;
    stop_asking(address);
    if (!address->knows_used && !*address->refusal && *address->replid) {
        address->knows_used = true;
        ask(address, &address->worker->config->redis, on_new_info);
    } else if (address->has_other_data) {
        address->worker->moving = true;
        log_departure(address);
    } else {
        move_or_stay(address);
    }
}

void address_reload(struct address *address)
{
    stop_asking(address);
    address->knows_used = address->has_other_data = address->worker->moving = false;
    *address->refusal = '\0';
    if (is_used(address, &address->worker->config->redis)) {
        return;
    }
    if (!*address->replid) {
        answer_later(address);
        return;
    }
    struct config_redis used = address_apply(address);
    ask(address, &used, on_used_info);
}

void address_left(struct address *address)
{
    address->has_other_data = false;
    answer_later(address);
}

void address_registered(struct address *address, const char *replid)
{
    (void)snprintf(address->replid, sizeof address->replid, "%s", replid);
}

struct config_redis address_apply(const struct address *address)
{
    struct config_redis redis = address->worker->config->redis;
    redis.host = address->used.host;
    redis.port = address->used.port;
    redis.socket = address->used.socket;
    return redis;
}

struct address *address_new(struct worker_context *worker, const struct address_events *events)
{
    struct address *address = calloc(1, sizeof *address);
    if (!address) {
        return NULL;
    }
    address->worker = worker;
    address->events = *events;
    timer_init(&address->answered, worker->loop, on_answered, address);
    if (use(address, &worker->config->redis)) {
        free(address);
        return NULL;
    }
    return address;
}

void address_free(struct address *address)
{
    if (address) {
        stop_asking(address);
        command_free(&address->command);
        free(address->used.host);
        free(address->used.socket);
        free(address);
    }
}
