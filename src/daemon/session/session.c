/*
 * Opens the worker's connections, joins the queue, sends commands, and reconnects after every
 * failure.
 */
#include "daemon/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "base/timer.h"
#include "base/units.h"
#include "config/lease_rule.h"
#include "daemon/session/join.h"
#include "daemon/session/server.h"
#include "queue/calls.h"
#include "queue/replies.h"
#include "redis/connection/backoff.h"
#include "redis/server_command.h"

#define UNBLOCK_REPEAT_S 0.01
#define SOONEST_S 0.02               /* after errors that a new registration mends at once */
#define STABLE_MS 1000               /* shorter sessions do not reset the failure count */
#define PATIENCE_MS (60 * 60 * 1000) /* how long a slow server gets more time for its answers */

enum session_state {
    SESSION_CLOSED,      /* waiting for the next try */
    SESSION_DISCOVERING, /* the server is being discovered */
    SESSION_OPENING,     /* connections are opening */
    SESSION_JOINING,     /* all connections are up: see join.h */
    SESSION_UP,
};

enum { WORK, COMMAND, WAKEUP, REPLICA_WAIT, CONNECTIONS = JOIN_CLIENTS };
enum { WHY_SIZE = 256, LOST_MOST = 8 };

struct session {
    struct worker_context *worker;
    struct session_events events;

    struct server *server;
    enum session_state state;
    struct connection *connections[CONNECTIONS];
    int opened; /* how many connections are in use: without [redis] wait_replicas, all but the last
                 */
    struct join *join;

    struct timer retry;   /* SESSION_CLOSED: the next try */
    struct timer unblock; /* repeats CLIENT UNBLOCK */
    struct timer failed;  /* runs session_recover in the next turn */
    unsigned failures;    /* tries since the last stable session */
    int64_t up_ns;        /* when the session came up last */
    int64_t unblock_ns;   /* when CLIENT UNBLOCK was first sent, or more of the answer arrived */
    size_t unblock_bytes; /* of the answer that had arrived then */
    bool was_up;          /* at least once */
    bool outage;          /* the log says that there is no session */
    unsigned logged;      /* errors logged in this outage, as 1 << error */
    char lost[LOST_MOST][WHY_SIZE]; /* reasons of lost connections that were logged in it */
    int lost_count;
    bool late;          /* an answer has not come in time since the last registration */
    unsigned patience;  /* how often the time for an answer was doubled */
    int64_t patient_ns; /* when it was doubled last */
    bool answered;      /* see session_has_answer */
    bool moved;         /* the server has changed, which is no failure */
    bool blocked;       /* a blocking read is pending */
    bool unblocking;    /* CLIENT UNBLOCK is not answered */
    connection_callback *block_callback;
    void *block_context;
    char wakeup_id[QUEUE_CURSOR_SIZE];
    int64_t joined;       /* the number of the newest worker that this one has heard of */
    int64_t registration; /* the number of the last one */
    enum redis_error error;
    char why[WHY_SIZE];
};

static void listen_for_wakeups(struct session *session);

/* ---- how long to wait for answers ---- */

static bool is_patient(const struct session *session)
{
    return session->patience > 0 &&
           clock_boot_ns() - session->patient_ns < PATIENCE_MS * CLOCK_NS_PER_MS;
}

/* A server that does not answer until the next heartbeat counts as lost, so that there is time
 * to reconnect before the leases end. Without tasks there is no hurry, and a large one may take
 * Redis longer. */
static int64_t reply_timeout_ms(const struct session *session)
{
    int64_t lease_ms = session->worker->lease_ms;
    bool has_tasks = session->events.has_tasks(session->events.context);
    int64_t most_ms = has_tasks ? lease_rule_heartbeat_ms(lease_ms) : lease_ms;
    int64_t timeout_ms = session->worker->config->redis.command_timeout_ms;
    for (unsigned i = is_patient(session) ? session->patience : 0; i > 0 && timeout_ms < most_ms;
         i--) {
        timeout_ms *= 2;
    }
    return timeout_ms < most_ms ? timeout_ms : most_ms;
}

/* After a late answer. If the same server runs on, it was busy: with a large task, or on a starved
 * host. All that it did for the answer was in vain, and it has to do it again. Without more time
 * for that, this would go on as long as it is slow. */
static void be_patient(struct session *session)
{
    char former[48], longer[48];
    int64_t former_ms = reply_timeout_ms(session);
    session->patience = is_patient(session) ? session->patience : 0;
    session->patient_ns = clock_boot_ns();
    session->patience++;
    int64_t longer_ms = reply_timeout_ms(session);
    units_format_duration(former_ms, former, sizeof former);
    units_format_duration(longer_ms, longer, sizeof longer);
    if (longer_ms > former_ms) {
        log_text(LOG_WARNING,
                 "Redis was busy for longer than %s: from now on, waiting up to %s for an answer; "
                 "if this comes often, raise [redis] command_timeout",
                 former, longer);
    } else {
        session->patience--;
        log_text(LOG_WARNING,
                 "Redis was busy for longer than %s, which is too long for the queue's lease; if "
                 "this comes again, set a longer lease with leat conf, or lower [queue] max_task",
                 former);
    }
}

/* ---- failing and trying again ---- */

/* The client ids of a session that was up are noted, so that none of its commands comes late. A
 * session that was not up can only have sent a registration: Redis refuses one that comes late. */
static void close_all(struct session *session, bool was_up)
{
    int64_t clients[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++) {
        clients[i] = connection_client_id(session->connections[i]);
        connection_close(session->connections[i]);
    }
    if (was_up) {
        join_note_former(session->join, clients);
    }
    timer_stop(&session->unblock);
    session->blocked = false;
}

/* After an outage, Redis awaits a worker for one lease, and after a very short one not at all:
 * later, it counts as crashed. So no pause is longer than half the time between two heartbeats. */
static double pause_for(const struct session *session)
{
    struct config_redis redis = session->worker->config->redis;
    int64_t most_ms = lease_rule_heartbeat_ms(session->worker->lease_ms) / 2;
    if (session->moved || (session->failures <= 1 && (session->error == REDIS_ERROR_NO_GROUP ||
                                                      session->error == REDIS_ERROR_NO_LIBRARY))) {
        return SOONEST_S;
    }
    redis.backoff_cap_ms = redis.backoff_cap_ms < most_ms ? redis.backoff_cap_ms : most_ms;
    return backoff_delay(&redis, session->failures);
}

/* In an outage each kind of error is logged once. Connections are lost for many reasons, and the
 * first one, that Redis closed them, does not tell why it cannot be reached again: so each of these
 * reasons is logged, as long as there are few. Returns true if this one need not be logged. */
static bool is_known(struct session *session)
{
    unsigned kind = 1U << session->error;
    bool known = session->logged & kind;

    session->logged |= kind;
    if (session->error != REDIS_ERROR_LOST) {
        return known;
    }
    for (int i = 0; i < session->lost_count; i++) {
        if (strcmp(session->lost[i], session->why) == 0) {
            return true;
        }
    }
    if (session->lost_count == LOST_MOST) {
        return true;
    }
    (void)snprintf(session->lost[session->lost_count++], WHY_SIZE, "%s", session->why);
    return false;
}

static void log_outage(struct session *session, double delay)
{
    if (!session->outage) {
        session->logged = 0;
        session->lost_count = 0;
    }
    int priority = is_known(session) ? LOG_DEBUG : LOG_WARNING;
    const char *step =
        session->moved ? "following it"
                       : redis_error_advice(session->error, session->worker->config->redis.by_url);
    if (session->error == REDIS_ERROR_NO_LIBRARY &&
        session->worker->config->queue.load_library == CONFIG_LIBRARY_AUTO) {
        step = "loading it again";
    }
    struct log_field fields[] = {LOG_TEXT("LEAT_EVENT", "redis-down"),
                                 LOG_TEXT("LEAT_ERROR", redis_error_name(session->error))};
    log_event(priority, LOG_ID_REDIS_DOWN, fields, 2,
              "no session with Redis: %s; %s; retrying in %.1f s", session->why, step, delay);
    session->outage = true;
}

/* Returns the exit code for an error that only an operator can mend, if it comes before the first
 * success; 0: retry. */
static int exit_code_of(enum redis_error error)
{
    bool denied = error == REDIS_ERROR_DENIED || error == REDIS_ERROR_NO_LOAD;
    bool config =
        error == REDIS_ERROR_UNFIT || error == REDIS_ERROR_FOREIGN || error == REDIS_ERROR_CALLER;
    return denied ? EX_NOPERM : config ? EX_CONFIG : EX_OK;
}

static void on_failed(void *context)
{
    struct session *session = context;
    if (session->state == SESSION_UP &&
        clock_boot_ns() - session->up_ns > STABLE_MS * CLOCK_NS_PER_MS) {
        session->failures = 0;
    }
    bool was_up = session->state == SESSION_UP;
    session->state = SESSION_CLOSED;
    close_all(session, was_up);
    session->failures++;

    int exit_code = session->was_up ? 0 : exit_code_of(session->error);
    if (exit_code) {
        log_text(LOG_ERR, "%s; %s", session->why,
                 redis_error_advice(session->error, session->worker->config->redis.by_url));
        session->events.fatal(session->events.context, exit_code);
        return;
    }
    session->answered = true;
    double delay = pause_for(session);
    log_outage(session, delay);
    session->moved = false;
    timer_start_s(&session->retry, delay);
    session->events.down(session->events.context);
}

void session_recover(struct session *session, enum redis_error error, const char *why)
{
    /* the first reason counts: later ones are mostly its consequences */
    if (timer_runs(&session->failed) || session->state == SESSION_CLOSED) {
        return;
    }
    session->error = error;
    (void)snprintf(session->why, sizeof session->why, "%s", why);
    timer_start_ns(&session->failed, 0);
}

bool session_check(struct session *session, const struct redisReply *reply, int malformed,
                   const char *what)
{
    if (!reply) {
        return false; /* on_lost handles the end of the connection */
    }
    char why[200];
    enum redis_error error = redis_error_of_reply(reply, malformed, what, why, sizeof why);
    if (error) {
        session_recover(session, error, why);
    }
    return !error;
}

static void on_lost(void *context, struct connection *connection, enum redis_error error,
                    const char *why)
{
    struct session *session = context;
    /* if Redis is busy, other commands are late first: a blocking read without an answer has lost
     * its connection */
    bool blocks =
        connection == session->connections[WORK] || connection == session->connections[WAKEUP];
    session->late |= !blocks && connection_is_late(connection);
    session_recover(session, error, why);
}

/* ---- joining ---- */

static void on_joined(void *context, const struct queue_renew_reply *reply, int64_t sent_ns)
{
    struct session *session = context;
    if (session->outage || !session->was_up) {
        struct log_field fields[] = {LOG_TEXT("LEAT_EVENT", "redis-up")};
        log_event(LOG_INFO, LOG_ID_REDIS_UP, fields, 1, "registered with Redis as %s",
                  session->worker->consumer);
    }
    session->state = SESSION_UP;
    if (session->late && join_found_same(session->join)) {
        be_patient(session);
    } else if (!join_found_same(session->join)) {
        session->patience = 0;
    }
    session->late = false;
    server_registered(session->server, join_replid(session->join));
    session->up_ns = clock_boot_ns();
    session->outage = false;
    session->was_up = true;
    session->answered = true;
    session->why[0] = '\0';
    (void)snprintf(session->wakeup_id, sizeof session->wakeup_id, "%s", reply->wakeup_id);
    session->joined = reply->joined;
    listen_for_wakeups(session);
    session->events.up(session->events.context, reply, sent_ns);
}

const char *session_roll_call(struct session *session, struct token_list *list)
{
    if (list) {
        session->events.tokens(session->events.context, list);
    }
    const char *heartbeat = session->events.heartbeat(session->events.context);
    if ((list && list->failed) || !heartbeat) {
        session_recover(session, REDIS_ERROR_LOST, "out of memory");
        return NULL;
    }
    return heartbeat;
}

static void on_up(void *context, struct connection *connection)
{
    (void)connection;
    struct session *session = context;
    for (int i = 0; i < session->opened; i++) {
        if (!connection_is_up(session->connections[i])) {
            return;
        }
    }
    if (session->state != SESSION_OPENING) {
        return;
    }
    session->state = SESSION_JOINING;
    /* the registration is what renews the leases, so a third of them is no limit here; but Redis
     * awaits the worker for one lease, and there must be time for another attempt */
    int64_t timeout_ms = reply_timeout_ms(session);
    int64_t least_ms = session->worker->config->redis.command_timeout_ms;
    int64_t most_ms = lease_rule_connect_ms(session->worker->lease_ms);
    timeout_ms = timeout_ms > least_ms ? timeout_ms : least_ms;
    join_start(session->join, timeout_ms < most_ms ? timeout_ms : most_ms);
}

static void on_server(void *context)
{
    struct session *session = context;
    session->state = SESSION_OPENING;
    for (int i = 0; i < session->opened; i++) {
        connection_open(session->connections[i]);
    }
}

static void open_all(struct session *session)
{
    session->state = SESSION_DISCOVERING;
    server_discover(session->server);
}

static void on_failure(void *context, enum redis_error error, const char *why)
{
    session_recover(context, error, why);
}

/* Failures on the former server do not count. */
static void on_moved(void *context, const char *why)
{
    struct session *session = context;
    session->failures = 0;
    if (session->state == SESSION_CLOSED) {
        timer_stop(&session->retry);
        open_all(session);
    } else {
        session->moved = true;
        session_recover(session, REDIS_ERROR_ROLE, why);
    }
}

static void on_retry(void *context)
{
    open_all(context);
}

/* ---- the wakeup stream ---- */

static void on_wakeup(void *context, const struct redisReply *reply)
{
    struct session *session = context;
    if (!reply || session->state != SESSION_UP) {
        return;
    }
    struct queue_wakeup wakeup;
    int woken = queue_listen_read(reply, session->wakeup_id, sizeof session->wakeup_id, &wakeup);
    if (!session_check(session, reply, woken < 0, "reading the wakeup stream")) {
        return;
    }
    listen_for_wakeups(session);
    session->joined = wakeup.joined > 0 ? wakeup.joined : session->joined;
    if (woken > 0) {
        session->events.woken(session->events.context, &wakeup);
    }
}

/* ---- commands ---- */

static int send_on(struct session *session, int connection, int64_t timeout_ms,
                   connection_callback *callback, void *context)
{
    if (!session_is_up(session)) {
        return -1; /* it recovers already */
    }
    int result = connection_send(session->connections[connection], &session->worker->command,
                                 timeout_ms, callback, context);
    if (result) {
        session_recover(session, REDIS_ERROR_LOST, "cannot send a command");
    }
    return result;
}

int session_send(struct session *session, connection_callback *callback, void *context)
{
    return send_on(session, COMMAND, reply_timeout_ms(session), callback, context);
}

int session_send_replica_wait(struct session *session, int64_t timeout_ms,
                              connection_callback *callback, void *context)
{
    return send_on(session, REPLICA_WAIT, reply_timeout_ms(session) + timeout_ms, callback,
                   context);
}

int64_t session_block_ms(const struct session *session)
{
    return lease_rule_heartbeat_ms(session->worker->lease_ms);
}

static int send_blocking(struct session *session, int connection, connection_callback *callback)
{
    int64_t timeout_ms = session_block_ms(session) + reply_timeout_ms(session);
    return send_on(session, connection, timeout_ms, callback, session);
}

static void listen_for_wakeups(struct session *session)
{
    queue_listen(&session->worker->command, session->worker->queue, session->wakeup_id,
                 session_block_ms(session));
    (void)send_blocking(session, WAKEUP, on_wakeup); /* a failure recovers */
}

static void on_block(void *context, const struct redisReply *reply)
{
    struct session *session = context;
    session->blocked = false;
    timer_stop(&session->unblock);
    session->block_callback(session->block_context, reply);
}

int session_block(struct session *session, connection_callback *callback, void *context)
{
    session->block_callback = callback;
    session->block_context = context;
    session->blocked = send_blocking(session, WORK, on_block) == 0;
    return session->blocked ? 0 : -1;
}

static void on_unblocked(void *context, const struct redisReply *reply)
{
    struct session *session = context;
    (void)reply;
    session->unblocking = false;
}

/* If writes are paused, as during FAILOVER, Redis holds back a read that comes then, and most
 * versions crash if CLIENT UNBLOCK is to end it. So that is sent behind a write, which is held back
 * for as long. */
static void send_unblock(struct session *session)
{
    queue_write_nothing(&session->worker->command, session->worker->queue);
    (void)session_send(session, NULL, NULL); /* a failure recovers */
    server_unblock(&session->worker->command, connection_client_id(session->connections[WORK]));
    session->unblocking = session_send(session, on_unblocked, session) == 0;
}

/* The read may not have reached the server yet, or its reply may be on the way: repeats CLIENT
 * UNBLOCK until the reply is here. If it never comes, the connection is dead. */
static void on_unblock(void *context)
{
    struct session *session = context;
    size_t arrived = connection_arrived(session->connections[WORK]);
    if (session->state != SESSION_UP) {
        timer_stop(&session->unblock);
    } else if (arrived != session->unblock_bytes) {
        /* a large task takes long to arrive */
        session->unblock_bytes = arrived;
        session->unblock_ns = clock_boot_ns();
    } else if (clock_boot_ns() - session->unblock_ns >
               reply_timeout_ms(session) * CLOCK_NS_PER_MS) {
        session->late = true;
        session_recover(session, REDIS_ERROR_LOST, "the blocking read does not end");
    } else if (arrived == 0 && !session->unblocking) {
        send_unblock(session);
    }
}

void session_unblock(struct session *session)
{
    if (!session->blocked || timer_runs(&session->unblock)) {
        return;
    }
    timer_repeat_s(&session->unblock, UNBLOCK_REPEAT_S);
    session->unblock_ns = clock_boot_ns();
    session->unblock_bytes = 0;
    on_unblock(session);
}

/* ---- creation and state ---- */

static const char *on_roll_call(void *context, struct token_list *list)
{
    struct session *session = context;
    session->registration++;
    return session_roll_call(session, list);
}

static int create_parts(struct session *session)
{
    static const char *const names[CONNECTIONS] = {"work", "command", "wakeup", "replica-wait"};
    const struct server_events server_events = {
        .found = on_server, .failed = on_failure, .moved = on_moved, .context = session};
    const struct connection_events connection_events = {
        .up = on_up, .lost = on_lost, .context = session};
    const struct join_events join_events = {
        .roll_call = on_roll_call, .joined = on_joined, .failed = on_failure, .context = session};
    session->server = server_new(session->worker, &server_events);
    for (int i = 0; i < CONNECTIONS && session->server; i++) {
        char name[160];
        (void)snprintf(name, sizeof name, "leat:%s:%s", session->worker->config->queue.name,
                       names[i]);
        session->connections[i] =
            connection_new(session->worker->loop, session_redis(session), name, &connection_events);
        if (!session->connections[i]) {
            return -1;
        }
    }
    session->join = join_new(session->worker, session->connections[COMMAND], &join_events);
    return session->server && session->join ? 0 : -1;
}

struct session *session_new(struct worker_context *worker, const struct session_events *events)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session) {
        return NULL;
    }
    session->worker = worker;
    session->events = *events;
    session->opened = worker->config->redis.wait_replicas > 0 ? CONNECTIONS : REPLICA_WAIT;
    timer_init(&session->retry, worker->loop, on_retry, session);
    timer_init(&session->unblock, worker->loop, on_unblock, session);
    timer_init(&session->failed, worker->loop, on_failed, session);
    if (create_parts(session)) {
        session_free(session);
        return NULL;
    }
    return session;
}

void session_reload(struct session *session)
{
    server_reload(session->server);
}

void session_left(struct session *session)
{
    session->joined = 0;
    server_left(session->server);
}

int64_t session_newest(const struct session *session)
{
    return session->joined;
}

int64_t session_registration(const struct session *session)
{
    return session->registration;
}

const struct config_redis *session_redis(const struct session *session)
{
    return server_redis(session->server);
}

void session_start(struct session *session)
{
    open_all(session);
}

bool session_is_up(const struct session *session)
{
    return session->state == SESSION_UP && !timer_runs(&session->failed);
}

bool session_is_away(const struct session *session)
{
    return !session_is_up(session) && (session->failures > 1 || !session->was_up);
}

bool session_has_answer(const struct session *session)
{
    return session->answered;
}

const char *session_trouble(const struct session *session)
{
    return session->why;
}

void session_free(struct session *session)
{
    if (!session) {
        return;
    }
    timer_stop(&session->retry);
    timer_stop(&session->unblock);
    timer_stop(&session->failed);
    for (int i = 0; i < CONNECTIONS; i++) {
        connection_free(session->connections[i]);
    }
    join_free(session->join);
    server_free(session->server);
    free(session);
}
