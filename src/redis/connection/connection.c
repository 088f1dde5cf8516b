/* Opens one connection, sends its commands, and closes it when a deadline passes. */
#include "redis/connection/connection.h"

#include <errno.h>
#include <ev.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/timer.h"
#include "base/units.h"
#include "redis/connection/adapter.h"
#include "redis/connection/lookup.h"
#include "redis/connection/pending.h"
#include "redis/connection/socket.h"
#include "redis/connection/tls.h"
#include "redis/server_command.h"

/* An answer that is still arriving may take this many times the timeout of its command. */
enum { MOST_TIMEOUTS = 100 };

enum state {
    CLOSED,
    CONNECTING, /* looking the name up, or in connect(2) */
    GREETING,   /* AUTH … CLIENT ID have been sent */
    UP,
    FAILED, /* hiredis's context is gone; `lost` will be called */
};

struct connection {
    struct ev_loop *loop;
    const struct config_redis *config;
    struct connection_events events;
    char *name;

    enum state state;
    redisAsyncContext *redis; /* NULL when hiredis has freed it or is about to */
    struct adapter adapter;
    struct lookup *lookup; /* running, or NULL */
    struct pending pending;
    bool subscribed; /* the oldest pending command gets every message */
    bool late;       /* see connection_is_late */
    int64_t client_id;
    bool needs_no_id;

    struct timer deadline; /* for connecting, then for the pending commands */
    int64_t armed_ns;      /* when it will fire */
    size_t arrived;        /* bytes of an unfinished answer at the last check of the deadline */
    int64_t limit_ms;      /* the timeout of the last command */
    ev_prepare flush;      /* sends what this turn has queued */
    bool unsent;

    struct timer failed; /* calls `lost` later, outside of the code that found the failure */
    enum redis_error error;
    char why[256];
};

/* ---- closing ---- */

/* To be called only outside of hiredis's connect and disconnect callbacks. */
static void drop_redis(struct connection *connection)
{
    redisAsyncContext *redis = connection->redis;
    connection->redis = NULL;
    connection->unsent = false;
    if (redis) {
        redis->data = NULL; /* from here on its callbacks do nothing */
        adapter_detach(&connection->adapter);
        redisAsyncFree(redis);
    }
}

/* Calls the callback of every pending command with NULL. A callback may close or reopen the
 * connection, so the old commands must not mix with new ones. */
static void settle_all(struct connection *connection)
{
    struct pending owed = connection->pending;
    connection->pending = (struct pending){0};
    while (pending_settle(&owed, NULL)) {
    }
    pending_free(&owed);
}

static void stop_watchers(struct connection *connection)
{
    timer_stop(&connection->deadline);
    timer_stop(&connection->failed);
    ev_prepare_stop(connection->loop, &connection->flush);
    lookup_cancel(connection->lookup);
    connection->lookup = NULL;
}

static const char *address(const struct connection *connection, char *text, size_t size)
{
    const struct config_redis *config = connection->config;
    if (config->socket) {
        return config->socket;
    }
    (void)snprintf(text, size, "%s:%lld", config->host, (long long)config->port);
    return text;
}

/* what: "connecting to" …, or NULL if the detail says all. `lost` is called later, from the loop.
 */
static void fail(struct connection *connection, enum redis_error error, const char *what,
                 const char *detail)
{
    if (connection->state == CLOSED || connection->state == FAILED) {
        return;
    }
    char text[128];
    (void)snprintf(connection->why, sizeof connection->why, "%s %s: %s", what,
                   address(connection, text, sizeof text), detail);
    connection->error = error;
    connection->state = FAILED;
    stop_watchers(connection);
    drop_redis(connection);
    timer_start_ns(&connection->failed, 0);
}

static void on_failed(void *context)
{
    struct connection *connection = context;

    /* if a callback closes the connection, there is nothing left to report */
    settle_all(connection);
    if (connection->state == FAILED) {
        connection->state = CLOSED;
        connection->events.lost(connection->events.context, connection, connection->error,
                                connection->why);
    }
}

void connection_close(struct connection *connection)
{
    if (connection->state == CLOSED) {
        return;
    }
    connection->state = CLOSED;
    stop_watchers(connection);
    drop_redis(connection);
    settle_all(connection);
}

/* ---- deadlines ---- */

/* The timer may fire too early, since libev's time may lag; on_deadline checks again. */
static void arm(struct connection *connection, int64_t deadline_ns)
{
    connection->armed_ns = deadline_ns;
    timer_start_ns(&connection->deadline, deadline_ns - clock_boot_ns());
}

size_t connection_arrived(const struct connection *connection)
{
    const redisReader *reader = connection->redis ? connection->redis->c.reader : NULL;
    return reader ? reader->len - reader->pos : 0;
}

static void on_deadline(void *context)
{
    struct connection *connection = context;
    bool up = connection->state == UP;
    int64_t deadline_ns = up ? pending_deadline(&connection->pending) : connection->armed_ns;
    if (!deadline_ns) {
        return;
    }
    int64_t now_ns = clock_boot_ns(), limit_ns = connection->limit_ms * CLOCK_NS_PER_MS;
    if (now_ns < deadline_ns) {
        arm(connection, deadline_ns);
        return;
    }

    /* a long answer that is still arriving extends the deadline */
    size_t arrived = up ? connection_arrived(connection) : 0;
    if (arrived != connection->arrived && now_ns - deadline_ns < MOST_TIMEOUTS * limit_ns) {
        connection->arrived = arrived;
        arm(connection, now_ns + limit_ns);
        return;
    }

    int64_t limit_ms = up ? connection->limit_ms : connection->config->connect_timeout_ms;
    char duration[48], detail[256];
    units_format_duration(limit_ms, duration, sizeof duration);
    /* Redis does not answer a TLS handshake on a plain port: it waits for a line break */
    if (connection->state != GREETING ||
        tls_explain(&connection->redis->c, detail, sizeof detail)) {
        (void)snprintf(detail, sizeof detail, "no answer within %s", duration);
    }
    connection->late = up;
    fail(connection, REDIS_ERROR_LOST, up ? "waiting for" : "connecting to", detail);
}

/* ---- sending ---- */

static void on_reply(redisAsyncContext *redis, void *reply, void *context)
{
    (void)context;
    struct connection *connection = redis->data;
    if (!connection || !reply) {
        return;
    }
    if (connection->subscribed) {
        pending_tell(&connection->pending, reply);
        return;
    }
    /* an idle connection needs no timer */
    if (connection->state == UP && connection->pending.count == 1) {
        timer_stop(&connection->deadline);
    }
    (void)pending_settle(
        &connection->pending,
        reply); /* there is always one: hiredis answers only commands that were sent */
}

static int enqueue(struct connection *connection, struct command *command, int64_t timeout_ms,
                   connection_callback *callback, void *context)
{
    const char *data = NULL;
    size_t size = 0;
    int64_t deadline_ns = timeout_ms > 0 ? clock_boot_ns() + timeout_ms * CLOCK_NS_PER_MS : 0;
    struct pending_command pending = {
        .callback = callback, .context = context, .deadline_ns = deadline_ns};
    if (command_finish(command, &data, &size) || pending_push(&connection->pending, &pending)) {
        return -1;
    }
    if (adapter_send(&connection->adapter, on_reply, data, size)) {
        pending_unpush(&connection->pending);
        return -1;
    }
    connection->unsent = true;

    bool armed = timer_runs(&connection->deadline);
    if (deadline_ns) {
        connection->limit_ms = timeout_ms;
    }
    if (deadline_ns && (!armed || deadline_ns < connection->armed_ns)) {
        arm(connection, deadline_ns);
    }
    return 0;
}

int connection_send(struct connection *connection, struct command *command, int64_t timeout_ms,
                    connection_callback *callback, void *context)
{
    if (connection->state != UP) {
        return -1;
    }
    return enqueue(connection, command, timeout_ms, callback, context);
}

int connection_subscribe(struct connection *connection, struct command *command,
                         connection_callback *callback, void *context)
{
    if (connection->pending.count > 0 ||
        connection_send(connection, command, 0, callback, context)) {
        return -1;
    }
    connection->subscribed = true;
    return 0;
}

/* Runs last before the loop waits. hiredis would first ask the loop whether the socket is writable,
 * at the cost of a turn and two system calls for every batch. Only bytes that the socket does not
 * take at once go that way. */
static void on_flush(struct ev_loop *loop, ev_prepare *watcher, int events)
{
    (void)loop;
    (void)events;
    struct connection *connection = watcher->data;
    if (connection->adapter.broken) {
        fail(connection, REDIS_ERROR_LOST, "sending to", "out of memory");
    } else if (connection->unsent && connection->redis) {
        connection->unsent = false;
        redisAsyncHandleWrite(connection->redis);
    }
}

/* ---- greeting: the first commands are sent together, and the first error is reported ---- */

static bool greeting_failed(struct connection *connection, const redisReply *reply,
                            const char *what)
{
    if (connection->state != GREETING || !reply) {
        return true;
    }
    char detail[192];
    enum redis_error error = redis_error_of_reply(reply, 0, what, detail, sizeof detail);
    if (error) {
        fail(connection, error, "connecting to", detail);
    }
    return error;
}

static void on_auth(void *context, const struct redisReply *reply)
{
    (void)greeting_failed(context, reply, "AUTH");
}

static void on_select(void *context, const struct redisReply *reply)
{
    (void)greeting_failed(context, reply, "SELECT");
}

/* Whether the user lacks a right that this connection does not need. A user who has not logged in
 * gets another error. */
static bool may_be_refused(const struct connection *connection, const redisReply *reply)
{
    return connection->needs_no_id && reply && reply->type == REDIS_REPLY_ERROR &&
           strncmp(reply->str, "NOPERM", strlen("NOPERM")) == 0;
}

static void on_set_name(void *context, const struct redisReply *reply)
{
    if (!may_be_refused(context, reply)) {
        (void)greeting_failed(context, reply, "CLIENT SETNAME");
    }
}

static void on_client_id(void *context, const struct redisReply *reply)
{
    struct connection *connection = context;
    bool has_id = !may_be_refused(connection, reply);
    if (connection->state != GREETING ||
        (has_id && greeting_failed(connection, reply, "CLIENT ID"))) {
        return;
    }
    if (has_id && (reply->type != REDIS_REPLY_INTEGER || reply->integer < 0)) {
        fail(connection, REDIS_ERROR_OTHER, "connecting to", "CLIENT ID: not a number");
        return;
    }
    timer_stop(&connection->deadline);
    connection->client_id = has_id ? reply->integer : -1;
    connection->state = UP;
    connection->events.up(connection->events.context, connection);
}

static int greet(struct connection *connection, struct command *command,
                 connection_callback *callback)
{
    return enqueue(connection, command, 0, callback, connection);
}

static int send_greeting(struct connection *connection)
{
    const struct config_redis *config = connection->config;
    struct command command = {0};
    int result = 0;
    if (config->password) {
        server_auth(&command, config->user, config->password);
        result = greet(connection, &command, on_auth);
    }
    if (result == 0 && config->db != 0) {
        server_select(&command, config->db);
        result = greet(connection, &command, on_select);
    }
    if (result == 0) {
        server_client_name(&command, connection->name);
        result = greet(connection, &command, on_set_name);
    }
    if (result == 0) {
        server_client_id(&command);
        result = greet(connection, &command, on_client_id);
    }
    command_wipe(&command);
    return result;
}

/* ---- opening ---- */

/* After either callback hiredis frees the context itself if there was an error. */
static void on_connect(const redisAsyncContext *redis, int status)
{
    struct connection *connection = redis->data;
    if (!connection) {
        return;
    }
    if (status != REDIS_OK) {
        connection->redis = NULL;
        fail(connection, REDIS_ERROR_LOST, "connecting to", redis->c.errstr);
        return;
    }
    connection->state = GREETING;
    if (send_greeting(connection)) {
        connection->adapter.broken = true; /* hiredis forbids freeing here */
    }
}

static void on_disconnect(const redisAsyncContext *redis, int status)
{
    (void)status;
    struct connection *connection = redis->data;
    if (!connection) {
        return;
    }
    connection->redis = NULL;

    char text[192];
    bool known = redis->errstr && *redis->errstr;
    (void)snprintf(text, sizeof text, "%s",
                   connection->adapter.refused ? connection->adapter.refused
                   : known                     ? redis->errstr
                                               : "closed");
    enum redis_error error = connection->state == GREETING
                                 ? socket_find_last_words(&redis->c, text, sizeof text)
                             : connection->subscribed && redis->err == REDIS_ERR_OTHER
                                 ? redis_error_classify(text, strlen(text))
                                 : REDIS_ERROR_LOST;
    fail(connection, error, "connection to", text);
}

static int attach(struct connection *connection, redisAsyncContext *redis)
{
    redis->data = connection;
    adapter_attach(&connection->adapter, connection->loop, redis);
    /* each returns 0 or -1 */
    return redisAsyncSetConnectCallback(redis, on_connect) |
           redisAsyncSetDisconnectCallback(redis, on_disconnect);
}

/* host: an address; NULL: the unix socket. */
static void connect_to(struct connection *connection, const char *host)
{
    char why[192];
    const struct config_redis *config = connection->config;
    redisAsyncContext *redis =
        host ? redisAsyncConnect(host, (int)config->port) : redisAsyncConnectUnix(config->socket);
    connection->redis = redis;
    if (redis && redis->err) {
        fail(connection, REDIS_ERROR_LOST, "connecting to", redis->errstr);
    } else if (redis && socket_prepare(&redis->c, config, why, sizeof why)) {
        fail(connection, REDIS_ERROR_LOST, "connecting to", why);
    } else if (!redis || attach(connection, redis)) {
        fail(connection, REDIS_ERROR_LOST, "connecting to", "out of memory");
    }
}

static void on_looked_up(void *context, const char *host, const char *why)
{
    struct connection *connection = context;
    connection->lookup = NULL;
    if (host) {
        connect_to(connection, host);
    } else {
        fail(connection, REDIS_ERROR_LOST, "looking up", why);
    }
}

void connection_open(struct connection *connection)
{
    const struct config_redis *config = connection->config;
    connection->state = CONNECTING;
    connection->client_id = -1;
    connection->subscribed = connection->late = false;
    arm(connection, clock_boot_ns() + config->connect_timeout_ms * CLOCK_NS_PER_MS);
    ev_prepare_start(connection->loop, &connection->flush);
    if (config->socket || !lookup_is_needed(config->host)) {
        connect_to(connection, config->socket ? NULL : config->host);
        return;
    }
    connection->lookup = lookup_start(connection->loop, config->host, on_looked_up, connection);
    if (!connection->lookup) {
        fail(connection, REDIS_ERROR_LOST, "looking up", strerror(errno));
    }
}

/* ---- life ---- */

struct connection *connection_new(struct ev_loop *loop, const struct config_redis *config,
                                  const char *name, const struct connection_events *events)
{
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection) {
        return NULL;
    }
    *connection = (struct connection){
        .loop = loop,
        .config = config,
        .events = *events,
        .name = strdup(name),
        .client_id = -1,
    };
    if (!connection->name) {
        free(connection);
        return NULL;
    }

    /* a reply that waits in the socket counts before a deadline that has passed meanwhile; the
     * flush runs after everything else that sends at the end of a turn */
    timer_init(&connection->deadline, loop, on_deadline, connection);
    ev_set_priority(&connection->deadline.watcher, EV_MINPRI);
    ev_prepare_init(&connection->flush, on_flush);
    ev_set_priority(&connection->flush, EV_MINPRI);
    connection->flush.data = connection;
    timer_init(&connection->failed, loop, on_failed, connection);
    return connection;
}

void connection_need_no_id(struct connection *connection)
{
    connection->needs_no_id = true;
}

bool connection_is_up(const struct connection *connection)
{
    return connection->state == UP;
}

bool connection_is_late(const struct connection *connection)
{
    return connection->late;
}

int64_t connection_client_id(const struct connection *connection)
{
    return connection->client_id;
}

void connection_free(struct connection *connection)
{
    if (!connection) {
        return;
    }
    connection_close(connection);
    pending_free(&connection->pending);
    free(connection->name);
    free(connection);
}
