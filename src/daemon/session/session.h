/*
 * The worker's session with Redis. Its connections are opened, checked and registered together, and
 * closed together when one of them breaks or a reply leaves doubt:
 *
 *   work          blocking reads
 *   command       everything else, so that no renewal waits behind a blocking read
 *   wakeup        the wakeup stream
 *   replica-wait  only with [redis] wait_replicas: WAIT, which delays every command after it
 *
 * There is one way to recover: close all, wait, open all, and start with the strict renewal
 * (leat_register).
 */
#ifndef LEAT_DAEMON_SESSION_SESSION_H
#define LEAT_DAEMON_SESSION_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "daemon/session/tokens.h"
#include "daemon/session/worker_context.h"
#include "queue/replies.h"
#include "redis/connection/connection.h"

struct session;

struct session_events {
    /* Every token that the worker holds: of running tasks, of outcomes that are not settled, and of
     * entries read but not yet claimed. */
    void (*tokens)(void *context, struct token_list *list);
    /* Whether any of them is of a task that has started. */
    bool (*has_tasks)(void *context);
    /* The worker's heartbeat record (JSON), valid until the next call; NULL without memory. */
    const char *(*heartbeat)(void *context);
    /* Registered: commands may be sent. sent_ns: when the registration, which renews, was sent. */
    void (*up)(void *context, const struct queue_renew_reply *reply, int64_t sent_ns);
    /* Every pending callback was called with NULL. Entries that were read but not claimed must not
     * be started. A new session will come up. */
    void (*down)(void *context);
    /* A message came on the wakeup stream. */
    void (*woken)(void *context, const struct queue_wakeup *wakeup);
    /* Only an operator can mend the error. Called only before the first `up`. exit_code is one of
     * sysexits. */
    void (*fatal)(void *context, int exit_code);
    void *context;
};

/* Returns NULL without memory. */
struct session *session_new(struct worker_context *worker, const struct session_events *events);

/* The config was replaced. */
void session_reload(struct session *session);

/* The worker, whose context is `moving`, has nothing left at this server: the session moves to the
 * one of the config. */
void session_left(struct session *session);

/* Returns the number of the newest worker that this one has heard of at the server; 0: none. */
int64_t session_newest(const struct session *session);

/* Returns the number of the last registration that was sent, or is about to be: each has a greater
 * one. */
int64_t session_registration(const struct session *session);

/* The server's settings: always the same struct; its content may change while the session is
 * down. */
const struct config_redis *session_redis(const struct session *session);

void session_start(struct session *session);
bool session_is_up(const struct session *session);

/* Returns whether there is no session, and at least one try to reconnect has failed. */
bool session_is_away(const struct session *session);

/* Returns true after the first registration, or after a first failure that is worth retrying. */
bool session_has_answer(const struct session *session);

/* Returns why there is no session, for STATUS; "" while up. */
const char *session_trouble(const struct session *session);

/* Collects all that a renewal or a registration says: adds every token that the worker holds, and
 * returns its heartbeat record, valid until the next call. list NULL: only the record is wanted.
 * Without memory it recovers and returns NULL. */
const char *session_roll_call(struct session *session, struct token_list *list);

/* The next three send worker_context's command, and return 0. If the session is not up, or memory
 * is short, they recover and return −1; the callback is not called then. */

/* Sends on the command connection. Redis must answer within the config's timeout, and within a
 * third of the lease while the worker has tasks, or a lease. */
int session_send(struct session *session, connection_callback *callback, void *context);
/* Sends on the replica-wait connection, for WAIT; Redis may take timeout_ms longer to answer. */
int session_send_replica_wait(struct session *session, int64_t timeout_ms,
                              connection_callback *callback, void *context);
/* Sends a blocking read of session_block_ms() on the work connection; none may be in flight. */
int session_block(struct session *session, connection_callback *callback, void *context);

/* Returns how long a blocking read lasts. Each ends by itself, so that a connection on which no
 * answer arrives is noticed: keepalive takes longer, and none reaches past a proxy. */
int64_t session_block_ms(const struct session *session);

/* Ends the blocking read: sends CLIENT UNBLOCK until session_block's callback was called. */
void session_unblock(struct session *session);

/* Closes everything and reconnects after a time that depends on the error; logs it once in an
 * outage. Safe in callbacks: the connections close in the loop's next turn. */
void session_recover(struct session *session, enum redis_error error, const char *why);

/* Returns whether a reply came that is no error and could be read; otherwise recovers, unless the
 * end of the connection has done so. malformed: what the reader of the reply returned, 0 if it
 * could read it; what: the command, for the log. */
bool session_check(struct session *session, const struct redisReply *reply, int malformed,
                   const char *what);

void session_free(struct session *session);

#endif
