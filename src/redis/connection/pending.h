/*
 * Commands that have been sent and not been answered. Redis answers in order, so this is a queue; a
 * connection keeps its own, since hiredis would call back in the middle of freeing.
 */
#ifndef LEAT_REDIS_CONNECTION_PENDING_H
#define LEAT_REDIS_CONNECTION_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct redisReply;

/* reply is NULL when the connection closed before the answer; else it is hiredis's and valid only
 * during the call. */
typedef void connection_callback(void *context, const struct redisReply *reply);

struct pending_command {
    connection_callback *callback;
    void *context;
    int64_t deadline_ns; /* 0: none */
};

/* A ring that grows. A zeroed struct is an empty one. */
struct pending {
    struct pending_command *commands;
    size_t first, count, capacity;
};

/* Returns 0, or -1 without memory. */
int pending_push(struct pending *pending, const struct pending_command *command);

/* Takes back what was pushed last. */
void pending_unpush(struct pending *pending);

/* Takes the oldest out and calls its callback, which may push and settle too; false where there is
 * none. */
bool pending_settle(struct pending *pending, const struct redisReply *reply);

/* Calls the oldest one's callback, and leaves it in. */
void pending_tell(const struct pending *pending, const struct redisReply *reply);

/* The earliest deadline of all; 0: none has one. */
int64_t pending_deadline(const struct pending *pending);

/* Frees the ring; callbacks still in it are not called. */
void pending_free(struct pending *pending);

#endif
