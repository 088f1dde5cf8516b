/*
 * Joins the queue on a new session: INFO, CLIENT KILL, the function library, then leat_register.
 */
#include "daemon/session/join.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "daemon/session/shared_defaults.h"
#include "queue/calls.h"
#include "queue/library.h"
#include "queue/replies.h"
#include "redis/server_command.h"

#define FORMER_MOST 8 /* sessions whose connections are remembered */

/* The connections of a session that is over. */
struct former {
    char run_id[48]; /* of the server; "": none */
    int64_t clients[JOIN_CLIENTS];
};

struct join {
    struct worker_context *worker;
    struct connection *connection;
    struct join_events events;
    int64_t register_sent_ns;
    struct former former[FORMER_MOST];
    size_t next_former; /* the oldest of them */
    int64_t timeout_ms;
    char run_id[48];      /* of the server */
    char replid[48];      /* of its data */
    char old_run_id[48];  /* of the server of the last registration */
    bool same;            /* see join_found_same */
    bool warned_of_moves; /* warn_about_moves has logged its warning */
    char warned[400];     /* the last warnings about the server, so that each is logged once */
};

static void send_register(struct join *join);

static void fail(struct join *join, enum redis_error error, const char *why)
{
    join->events.failed(join->events.context, error, why);
}

/* As session_check. */
static bool check(struct join *join, const struct redisReply *reply, int malformed,
                  const char *what)
{
    if (!reply) {
        return false; /* the session handles the end of the connection */
    }
    char why[200];
    enum redis_error error = redis_error_of_reply(reply, malformed, what, why, sizeof why);
    if (error) {
        fail(join, error, why);
    }
    return !error;
}

static void send_command(struct join *join, connection_callback *callback)
{
    struct worker_context *worker = join->worker;
    if (connection_send(join->connection, &worker->command, join->timeout_ms, callback, join)) {
        fail(join, REDIS_ERROR_LOST, "cannot send a command");
    }
}

/* Settings that other workers or an operator made before override this worker's file. */
static void warn_of_overrides(const struct config *config, const struct queue_renew_reply *reply)
{
    struct buffer differences = BUFFER_INIT;
    shared_defaults_compare(config, reply->settings, &differences);
    if (differences.size > 0) {
        log_text(LOG_WARNING,
                 "queue settings override the config file: %.*s; change them with leat conf",
                 (int)differences.size, differences.data);
    }
    buffer_free(&differences);
}

/* They were killed before the registration. */
static void forget_former(struct join *join)
{
    for (size_t i = 0; i < FORMER_MOST; i++) {
        if (strcmp(join->former[i].run_id, join->run_id) == 0) {
            join->former[i].run_id[0] = '\0';
        }
    }
}

static void on_registered(void *context, const struct redisReply *reply)
{
    struct join *join = context;
    struct queue_renew_reply answer;
    if (!check(join, reply, queue_register_read(reply, &answer), "register")) {
        return;
    }
    if (answer.more) {
        send_register(join);
    } else {
        forget_former(join);
        memcpy(join->old_run_id, join->run_id, sizeof join->old_run_id);
        warn_of_overrides(join->worker->config, &answer);
        join->events.joined(join->events.context, &answer, join->register_sent_ns);
    }
}

static void send_register(struct join *join)
{
    struct worker_context *worker = join->worker;
    struct token_list list = {0};
    struct shared_defaults shared_defaults;
    const char *heartbeat = join->events.roll_call(join->events.context, &list);
    if (heartbeat && shared_defaults_make(&shared_defaults, worker->config)) {
        fail(join, REDIS_ERROR_LOST, "out of memory");
    } else if (heartbeat) {
        queue_register(&worker->command, worker->queue, worker->consumer, heartbeat,
                       shared_defaults.list, shared_defaults.count, list.tokens, list.count);
        shared_defaults_free(&shared_defaults);
        join->register_sent_ns = clock_boot_ns();
        send_command(join, on_registered);
    }
    token_list_free(&list);
}

static void on_loaded(void *context, const struct redisReply *reply)
{
    struct join *join = context;
    if (!reply) {
        return;
    }
    char why[200];
    enum redis_error error =
        redis_error_of_reply(reply, 0, "loading the function library", why, sizeof why);
    if (error) {
        fail(join, error == REDIS_ERROR_DENIED ? REDIS_ERROR_NO_LOAD : error, why);
        return;
    }
    log_text(LOG_INFO, "loaded the function library, version %ld", (long)library_version());
    send_register(join);
}

static void on_version(void *context, const struct redisReply *reply)
{
    struct join *join = context;
    if (!reply) {
        return;
    }
    bool missing = reply->type == REDIS_REPLY_ERROR &&
                   redis_error_classify(reply->str, reply->len) == REDIS_ERROR_NO_LIBRARY;
    int64_t protocol = 0, version = 0;
    if (!missing) {
        if (!check(join, reply, 0, "asking for the function library")) {
            return;
        }
        if (queue_version_read(reply, &protocol, &version)) {
            fail(join, REDIS_ERROR_OTHER, "the function library is not leat's");
            return;
        }
    }
    if (!missing && version >= library_version()) {
        send_register(join);
        return;
    }
    if (join->worker->config->queue.load_library == CONFIG_LIBRARY_NEVER) {
        fail(join, missing ? REDIS_ERROR_NO_LIBRARY : REDIS_ERROR_OLD_LIBRARY,
             missing ? "the function library is missing and load_library is never"
                     : "the function library is older than this leatd and load_library is never");
        return;
    }
    queue_load_library(&join->worker->command, true);
    send_command(join, on_loaded);
}

/* Each warning is logged once, and again when it changes. */
static void warn_about(struct join *join, const struct server_info *server)
{
    char warnings[sizeof join->warned] = "";
    const char *persistence =
        server->aof_enabled ? ""
        : server->rdb_enabled
            ? "appendonly is off: a Redis crash loses all changes since the last snapshot"
            : "persistence is off: a Redis restart loses every task";
    char policy[100] = "";
    if (server->maxmemory > 0 && strcmp(server->maxmemory_policy, "noeviction") != 0) {
        (void)snprintf(policy, sizeof policy,
                       "maxmemory-policy is %s: Redis may evict tasks; set noeviction",
                       server->maxmemory_policy);
    }
    const char *refusal =
        server->refused > 0
            ? "it refused changes of its own data when it read them; run leat doctor"
            : "";
    (void)snprintf(warnings, sizeof warnings, "%s%s%s%s%s", persistence,
                   *persistence && *policy ? "; " : "", policy,
                   (*persistence || *policy) && *refusal ? "; " : "", refusal);
    if (*warnings && strcmp(warnings, join->warned) != 0) {
        log_event(LOG_WARNING, LOG_ID_REDIS_WARNING, NULL, 0, "this Redis can lose tasks: %s",
                  warnings);
    }
    memcpy(join->warned, warnings, sizeof warnings);
}

/* Logged once: a worker always has a blocking read in flight. */
static void warn_about_moves(struct join *join, const struct server_info *server)
{
    if (server->move_crashes && join->worker->config->redis.cluster && !join->warned_of_moves) {
        log_event(LOG_WARNING, LOG_ID_REDIS_WARNING, NULL, 0,
                  "this Redis crashes if a hash slot that workers read moves to another node "
                  "(Redis bug #13311); upgrade to Redis 7.2.7, or Valkey 7.2.6, or later");
        join->warned_of_moves = true;
    }
}

/* Commands that former connections sent, and that the server has not read yet, must not run after
 * the registration. If the ACL forbids CLIENT KILL, leases still protect the tasks. A server that
 * was restarted, or another server, has given the client ids to other clients. */
static void kill_clients(struct join *join)
{
    for (size_t i = 0; i < FORMER_MOST; i++) {
        const struct former *former = &join->former[i];
        bool is_here = *former->run_id && strcmp(former->run_id, join->run_id) == 0;
        for (size_t k = 0; is_here && k < JOIN_CLIENTS; k++) {
            if (former->clients[k] >= 0) {
                server_kill_client(&join->worker->command, former->clients[k]);
                send_command(join, NULL);
            }
        }
    }
}

static void note_server(struct join *join, const struct server_info *server)
{
    join->same = strcmp(server->run_id, join->old_run_id) == 0;
    memcpy(join->run_id, server->run_id, sizeof join->run_id);
    memcpy(join->replid, server->replid, sizeof join->replid);
}

static void on_info(void *context, const struct redisReply *reply)
{
    struct join *join = context;
    struct server_info server;
    if (!check(join, reply, server_info_read(reply, &server), "INFO")) {
        return;
    }
    char why[128];
    if (server.is_sentinel) {
        fail(join, REDIS_ERROR_UNFIT, "this server is a sentinel");
    } else if (server.major < 7) {
        (void)snprintf(why, sizeof why, "the server reports Redis version %s", server.version);
        fail(join, REDIS_ERROR_UNFIT, why);
    } else if (server.loading) {
        fail(join, REDIS_ERROR_LATER, "Redis is loading its data");
    } else if (!server.is_master) {
        fail(join, REDIS_ERROR_ROLE, "this Redis is a replica");
    } else {
        note_server(join, &server);
        kill_clients(join);
        warn_about(join, &server);
        warn_about_moves(join, &server);
        queue_version(&join->worker->command);
        send_command(join, on_version);
    }
}

void join_note_former(struct join *join, const int64_t clients[JOIN_CLIENTS])
{
    struct former *former = &join->former[join->next_former++ % FORMER_MOST];
    memcpy(former->run_id, join->old_run_id, sizeof former->run_id);
    memcpy(former->clients, clients, sizeof former->clients);
}

void join_start(struct join *join, int64_t timeout_ms)
{
    join->timeout_ms = timeout_ms;
    server_info(&join->worker->command);
    send_command(join, on_info);
}

struct join *join_new(struct worker_context *worker, struct connection *connection,
                      const struct join_events *events)
{
    struct join *join = calloc(1, sizeof *join);
    if (join) {
        *join = (struct join){.worker = worker, .connection = connection, .events = *events};
    }
    return join;
}

bool join_found_same(const struct join *join)
{
    return join->same;
}

const char *join_replid(const struct join *join)
{
    return join->replid;
}

void join_free(struct join *join)
{
    free(join);
}
