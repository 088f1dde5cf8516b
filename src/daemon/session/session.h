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
#include "queue/keys.h"
#include "queue/replies.h"
#include "redis/connection/connection.h"

struct ev_loop;
struct session;

struct session_events {
    /* Every token that the worker holds: of running tasks, of outcomes that are not settled, and of
     * entries read but not yet claimed. */
    void (*tokens)(void *context, struct token_list *list);
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

/* config (until it is replaced), queue and consumer must outlive the session. Returns NULL without
 * memory. */
struct session *session_new(struct ev_loop *loop, const struct config *config,
                            const struct queue *queue, const char *consumer,
                            const struct session_events *events);
void session_set_config(struct session *session, const struct config *config);

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

/* Sets the queue's lease: Redis must answer a command within a third of it. */
void session_set_lease(struct session *session, int64_t lease_ms);

/* Sends on the command connection, with the config's timeout. Returns 0, or −1 if the session is
 * not up or memory is short. */
int session_send(struct session *session, struct command *command, connection_callback *callback,
                 void *context);
/* Sends on the replica-wait connection, for WAIT; Redis may take timeout_ms longer to answer.
 * Returns as session_send. */
int session_send_replica_wait(struct session *session, struct command *command, int64_t timeout_ms,
                              connection_callback *callback, void *context);
/* Sends a blocking read on the work connection. Returns as session_send. */
int session_block(struct session *session, struct command *command, connection_callback *callback,
                  void *context);
/* Ends the blocking read: sends CLIENT UNBLOCK until session_block's callback was called. */
void session_unblock(struct session *session);

/* Closes everything and reconnects after a time that depends on the error; logs it once in an
 * outage. Safe in callbacks: the connections close in the loop's next turn. */
void session_recover(struct session *session, enum redis_error error, const char *why);

/* Recovers if the reply is an error. Returns whether there is a reply and it is no error. what: the
 * command, for the log. */
bool session_check(struct session *session, const struct redisReply *reply, const char *what);

void session_free(struct session *session);

#endif
