/*
 * The worker's session with Redis: connections (work: blocking reads; command: everything else, so
 * that renewals never wait behind a block; bell; aside, only with [redis] wait_replicas: questions
 * that hold up what follows them), opened, checked and registered together,
 * and closed together whenever one of them breaks or an error leaves doubt. There is one way to
 * recover: close all, wait, open all, and begin with the strict renewal (leat_register).
 */
#ifndef LEAT_DAEMON_SESSION_SESSION_H
#define LEAT_DAEMON_SESSION_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "daemon/session/tokens.h"
#include "queue/queue.h"
#include "redis/connection/connection.h"

struct ev_loop;
struct session;

struct session_events {
    /* Every token that the worker holds: running, finished but not yet settled, read but not begun.
     */
    void (*tokens)(void *context, struct token_list *list);
    /* The worker's beat record (JSON), valid until the next call; NULL without memory. */
    const char *(*heartbeat)(void *context);
    /* Registered: commands may be sent. sent_ns: when the registration that renewed was sent. */
    void (*up)(void *context, const struct queue_renew_reply *reply, int64_t sent_ns);
    /* Every pending callback has had its NULL; what was read but not begun is no longer this
     * worker's to start unchecked. A new session will come up. */
    void (*down)(void *context);
    /* Something rang the bell. */
    void (*rang)(void *context, const struct queue_wakeup *wakeup);
    /* Nothing can be done before an operator acts; only before the first `up`. exit_code is of
     * sysexits. */
    void (*fatal)(void *context, int exit_code);
    void *context;
};

/* config, queue and consumer must outlive the session. Returns NULL without memory. */
struct session *session_new(struct ev_loop *loop, const struct config *config,
                            const struct queue *queue, const char *consumer,
                            const struct session_events *events);
void session_set_config(struct session *session, const struct config *config);

/* How its server is spoken to: the same struct at all times, whose content may change while the
 * session is down. */
const struct config_redis *session_redis(const struct session *session);

void session_start(struct session *session);
bool session_is_up(const struct session *session);

/* There is no session, and it was not just lost: at least one try to join again has failed. */
bool session_is_away(const struct session *session);

/* True once a first connection was registered or has failed in a way that only needs patience. */
bool session_has_answer(const struct session *session);

/* Why there is no session, for STATUS; "" while up. */
const char *session_trouble(const struct session *session);

/* The queue's lease as Redis told it: commands are answered within a third of it, or are not. */
void session_set_lease(struct session *session, int64_t lease_ms);

/* Sends on the command connection under the config's deadline. −1: not up, or no memory. */
int session_send(struct session *session, struct command *command, connection_callback *callback,
                 void *context);
/* Sends where nothing else waits behind it, as WAIT wants it; Redis may take timeout_ms longer to
 * answer. */
int session_send_aside(struct session *session, struct command *command, int64_t timeout_ms,
                       connection_callback *callback, void *context);
/* Sends a blocking read on the work connection. */
int session_block(struct session *session, struct command *command, connection_callback *callback,
                  void *context);
/* Ends the blocking read, however often it takes until session_block's callback has come. */
void session_unblock(struct session *session);

/* Closes everything and begins anew after a time that fits the error; logs it once an outage. Safe
 * in callbacks: it happens in the loop's next turn. */
void session_recover(struct session *session, enum redis_error error, const char *why);

/* Recovers if the reply is NULL or an error; returns whether it was fine. what: for the log. */
bool session_check(struct session *session, const struct redisReply *reply, const char *what);

void session_free(struct session *session);

#endif
