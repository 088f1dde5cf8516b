/*
 * Commands that were sent and are not answered yet, oldest first: Redis answers in order. Each
 * connection has a ring of its own, since hiredis would call back while it frees.
 */
#ifndef LEAT_REDIS_CONNECTION_PENDING_H
#define LEAT_REDIS_CONNECTION_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct redisReply;

/* reply is NULL if the connection closed before the answer came; otherwise it belongs to hiredis
 * and is valid only during the call. */
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

/* Returns 0, or -1 if there is no memory. */
int pending_push(struct pending *pending, const struct pending_command *command);

/* Removes the newest command. */
void pending_unpush(struct pending *pending);

/* Removes the oldest command and calls its callback, which may push and settle, too. Returns false
 * if there is none. */
bool pending_settle(struct pending *pending, const struct redisReply *reply);

/* Calls the callback of the oldest command, and keeps the command. */
void pending_tell(const struct pending *pending, const struct redisReply *reply);

/* The earliest deadline of all commands; 0: none has one. */
int64_t pending_deadline(const struct pending *pending);

/* Frees the ring without calling the callbacks in it. */
void pending_free(struct pending *pending);

#endif
