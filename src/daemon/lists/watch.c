/*
 * Opens the two connections for producer lists, subscribes to change notifications, and falls back
 * to polling if Redis refuses them.
 */
#include "daemon/lists/watch.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log/log.h"
#include "base/timer.h"
#include "daemon/session/session.h"
#include "queue/lists.h"
#include "redis/connection/backoff.h"
#include "redis/error.h"

#define LISTEN_TRIES 3      /* to subscribe; after that lists are polled */
#define LISTEN_AGAIN_S 60.0 /* until the next try to subscribe */

enum watch_state {
    WATCH_CLOSED,
    WATCH_WAITING, /* for the next try */
    WATCH_OPENING, /* connections are opening, then the subscription is settled */
    WATCH_UP,
};

struct watch {
    struct worker_context *worker;
    struct watch_events events;
    enum watch_state state;
    struct connection *commands, *listener;
    bool listens; /* Redis notifies of changes */
    bool refused; /* Redis refused to: lists are polled */
    bool logged;  /* the log says so */
    unsigned failures;
    struct timer failed; /* runs watch_recover in the next turn */
    struct timer retry;  /* the next try; while opening, the deadline of the subscription */
};

/* ---- closing and retrying ---- */

static void close_both(struct watch *watch)
{
    connection_close(watch->commands);
    connection_close(watch->listener);
    watch->listens = false;
}

static void on_failed(void *context)
{
    struct watch *watch = context;
    bool was_up = watch->state == WATCH_UP;
    watch->state = WATCH_WAITING;
    close_both(watch);
    watch->failures++;
    timer_start_s(&watch->retry, backoff_delay(&watch->worker->config->redis, watch->failures));
    if (was_up) {
        watch->events.down(watch->events.context);
    }
}

/* Logs for debugging only: the session logs outages of the server, which is the same. */
void watch_recover(struct watch *watch, const char *why)
{
    if (watch->state == WATCH_OPENING || watch->state == WATCH_UP) {
        log_text(LOG_DEBUG, "connections for lists: reopening: %s", why);
        timer_start_ns(&watch->failed, 0);
    }
}

/* ---- coming up ---- */

static void come_up(struct watch *watch, bool listens)
{
    if (listens && watch->logged) {
        log_text(LOG_INFO, "lists: Redis notifies of changes again");
    }
    watch->logged = watch->logged && !listens;
    watch->listens = listens;
    watch->state = WATCH_UP;
    if (listens) {
        watch->failures = 0;
    } else {
        timer_start_s(&watch->retry, LISTEN_AGAIN_S);
    }
    watch->events.up(watch->events.context);
}

/* The subscription was refused or timed out: retries it, or comes up without it. */
static void fall_back(struct watch *watch, enum redis_error error, const char *why)
{
    if (watch->state != WATCH_OPENING || watch->refused) {
        return;
    }
    if (!connection_is_up(watch->commands) ||
        (error != REDIS_ERROR_DENIED && watch->failures < LISTEN_TRIES)) {
        watch_recover(watch, why);
        return;
    }
    if (!watch->logged) {
        const char *text = NULL;
        size_t size = redis_error_text(why, strlen(why), &text);
        log_text(LOG_WARNING,
                 "lists: Redis does not notify of changes: %.*s; polling every %.1f s; %s",
                 (int)size, text, (double)watch->worker->config->intake.scan_ms / 1000,
                 error == REDIS_ERROR_DENIED
                     ? "allow the user CLIENT TRACKING, CLIENT CACHING and SUBSCRIBE on the "
                       "channel __redis__:invalidate"
                     : redis_error_advice(error, watch->worker->config->redis.by_url));
    }
    watch->logged = true;
    watch->refused = true;
    connection_close(watch->listener);
    come_up(watch, false);
}

/* Handles the reply to CLIENT TRACKING, and to the first CLIENT CACHING, which can be refused
 * too. */
static void on_tracking(void *context, const struct redisReply *reply)
{
    struct watch *watch = context;
    if (reply && reply->type == REDIS_REPLY_ERROR) {
        fall_back(watch, redis_error_classify(reply->str, reply->len), reply->str);
    }
}

static void on_tracked(void *context, const struct redisReply *reply)
{
    struct watch *watch = context;
    on_tracking(context, reply);
    if (reply && watch->state == WATCH_OPENING && !timer_runs(&watch->failed)) {
        come_up(watch, true);
    }
}

static void begin_tracking(struct watch *watch)
{
    int64_t timeout_ms = watch->worker->config->redis.command_timeout_ms;
    queue_watch_begin(&watch->worker->command, connection_client_id(watch->listener));
    int failed =
        connection_send(watch->commands, &watch->worker->command, timeout_ms, on_tracking, watch);
    queue_watch_next(&watch->worker->command);
    if (failed ||
        connection_send(watch->commands, &watch->worker->command, timeout_ms, on_tracked, watch)) {
        watch_recover(watch, "out of memory");
    }
}

static void on_changed(void *context, const struct bytes *key)
{
    struct watch *watch = context;
    if (watch->state == WATCH_UP) {
        watch->events.changed(watch->events.context, key);
    }
}

static void on_message(void *context, const struct redisReply *reply)
{
    struct watch *watch = context;
    if (!reply) {
        return; /* on_lost handles the end of the connection */
    }
    int kind = queue_watch_read(reply, on_changed, watch);
    if (kind < 0) {
        watch_recover(watch, "notification: unexpected reply");
    } else if (kind > 0 && watch->state == WATCH_OPENING) {
        timer_stop(&watch->retry);
        begin_tracking(watch);
    }
}

static void on_up(void *context, struct connection *connection)
{
    (void)connection;
    struct watch *watch = context;
    if (watch->state != WATCH_OPENING || !connection_is_up(watch->commands)) {
        return;
    }
    if (watch->refused) {
        come_up(watch, false);
    } else if (connection_is_up(watch->listener)) {
        queue_watch_listen(&watch->worker->command);
        if (connection_subscribe(watch->listener, &watch->worker->command, on_message, watch)) {
            watch_recover(watch, "out of memory");
        }
        /* connection_subscribe has no deadline */
        timer_start_ms(&watch->retry, watch->worker->config->redis.command_timeout_ms);
    }
}

static void on_lost(void *context, struct connection *connection, enum redis_error error,
                    const char *why)
{
    struct watch *watch = context;
    if (connection == watch->listener && watch->state == WATCH_OPENING) {
        fall_back(watch, error, why);
    } else {
        watch_recover(watch, why);
    }
}

static void open_both(struct watch *watch)
{
    watch->state = WATCH_OPENING;
    connection_open(watch->commands);
    if (!watch->refused) {
        connection_open(watch->listener);
    }
}

static void on_retry(void *context)
{
    struct watch *watch = context;
    if (watch->state == WATCH_UP) {
        watch->refused = false;
        watch->failures = LISTEN_TRIES - 1; /* one try, and a short pause */
        watch_recover(watch, "trying to subscribe again");
    } else if (watch->state == WATCH_OPENING) {
        fall_back(watch, REDIS_ERROR_LOST, "SUBSCRIBE: no reply");
    } else {
        open_both(watch);
    }
}

/* ---- interface ---- */

void watch_open(struct watch *watch)
{
    if (watch->state == WATCH_CLOSED) {
        watch->refused = false;
        watch->failures = 0;
        open_both(watch);
    }
}

void watch_close(struct watch *watch)
{
    bool was_up = watch->state == WATCH_UP;
    watch->state = WATCH_CLOSED;
    timer_stop(&watch->retry);
    timer_stop(&watch->failed);
    close_both(watch);
    if (was_up) {
        watch->events.down(watch->events.context);
    }
}

bool watch_is_up(const struct watch *watch)
{
    return watch->state == WATCH_UP;
}

bool watch_listens(const struct watch *watch)
{
    return watch->listens;
}

void watch_send(struct watch *watch, connection_callback *callback, void *context)
{
    struct worker_context *worker = watch->worker;
    if (watch->state != WATCH_UP ||
        connection_send(watch->commands, &worker->command, worker->config->redis.command_timeout_ms,
                        callback, context)) {
        watch_recover(watch, "cannot send a command");
    }
}

/* ---- creation ---- */

static struct connection *make_connection(struct watch *watch, const char *what)
{
    const struct connection_events events = {.up = on_up, .lost = on_lost, .context = watch};
    const struct worker_context *worker = watch->worker;
    char name[160];
    (void)snprintf(name, sizeof name, "leat:%s:%s", worker->config->queue.name, what);
    return connection_new(worker->loop, session_redis(worker->session), name, &events);
}

struct watch *watch_new(struct worker_context *worker, const struct watch_events *events)
{
    struct watch *watch = calloc(1, sizeof *watch);
    if (!watch) {
        return NULL;
    }
    watch->worker = worker;
    watch->events = *events;
    timer_init(&watch->failed, worker->loop, on_failed, watch);
    timer_init(&watch->retry, worker->loop, on_retry, watch);
    watch->commands = make_connection(watch, "lists");
    watch->listener = make_connection(watch, "watch");
    if (!watch->commands || !watch->listener) {
        watch_free(watch);
        return NULL;
    }
    return watch;
}

void watch_free(struct watch *watch)
{
    if (!watch) {
        return;
    }
    timer_stop(&watch->failed);
    timer_stop(&watch->retry);
    connection_free(watch->commands);
    connection_free(watch->listener);
    free(watch);
}
