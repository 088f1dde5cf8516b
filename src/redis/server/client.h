/*
 * A synchronous client for the command line: connects, authenticates, sends commands one by one or
 * many before reading.
 */
#ifndef LEAT_REDIS_SERVER_CLIENT_H
#define LEAT_REDIS_SERVER_CLIENT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "redis/command.h"
#include "redis/error.h"

struct redisReply;
struct client;

/* The part of connecting and calling that is the caller's. */
struct client_setup {
    /* A connection was opened. Returns 0, or -1 with class and message: the client cannot be used
     * there. */
    int (*opened)(void *context, struct client *client, enum redis_error *error, char *why,
                  size_t why_size);
    /* A command was refused with that class. Returns true if the reason is gone and the command
     * should be sent again; may replace class and message. */
    bool (*mend)(void *context, struct client *client, enum redis_error *error, char *why,
                 size_t why_size);
    void *context;
};

/* Connects, authenticates and calls setup->opened; setup may be NULL. If sentinels or a Cluster say
 * which server it is, asks them for up to connect_timeout until it is a master. Returns a client,
 * or NULL with the class in *error and a message for people in `why`. SIGPIPE must be ignored: a
 * closed connection is an error here, not a signal. config and setup must outlive the client. */
struct client *client_open(const struct config_redis *config, const struct client_setup *setup,
                           enum redis_error *error, char *why, size_t why_size);
void client_close(struct client *client);

/* Sends and waits. Returns the reply (free it with freeReplyObject), or NULL with class and
 * message, also for an error reply. The call is repeated if setup->mend has removed the
 * reason of a refusal, and for up to connect_timeout if sentinels or a Cluster say that another
 * server has the queue now, or none yet. After REDIS_ERROR_LOST nothing but client_close works. */
struct redisReply *client_call(struct client *client, struct command *command,
                               enum redis_error *error, char *why, size_t why_size);

/* Like client_call, but once: nothing is mended and no other server is tried. For the functions of
 * client_setup. */
struct redisReply *client_call_once(struct client *client, struct command *command,
                                    enum redis_error *error, char *why, size_t why_size);

/* client_call_once for a call of which only success matters. `what`, such as "SELECT", goes before
 * the message. Returns 0 or -1. */
int client_perform(struct client *client, struct command *command, const char *what,
                   enum redis_error *error, char *why, size_t why_size);

/* Like client_call, but only on the server of the last call, for commands that depend on it. */
struct redisReply *client_call_here(struct client *client, struct command *command,
                                    enum redis_error *error, char *why, size_t why_size);

/* Waits for the reply to an appended command, as client_receive does, until deadline_ns
 * (CLOCK_BOOTTIME) or until a signal is caught; then returns NULL with REDIS_ERROR_NONE, and the
 * caller may wait again. `mask`: the signals that are blocked meanwhile; NULL: no change. */
struct redisReply *client_wait(struct client *client, int64_t deadline_ns, const sigset_t *mask,
                               enum redis_error *error, char *why, size_t why_size);

/* Pipelining: append commands without waiting (returns 0, or -1 if there is no memory), then call
 * client_receive once for each, in order. An error reply does not end the series. */
int client_append(struct client *client, struct command *command);
struct redisReply *client_receive(struct client *client, enum redis_error *error, char *why,
                                  size_t why_size);

#endif
