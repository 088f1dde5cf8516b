/*
 * The calls for lists of producers that do not use leat, and for what earlier job systems left
 * behind: taking items in, and learning of changes. As in queue/calls.h, each call is built here
 * and its reply is read here; how it is sent is not known here.
 *
 * Changes are learned by Redis's client-side caching, which takes nothing out of a list and needs
 * one connection for all lists. One connection listens. Another one names the listener by CLIENT
 * TRACKING. The server then reports, once, the next change of each key whose length was read after
 * queue_watch_next.
 */
#ifndef LEAT_QUEUE_LISTS_H
#define LEAT_QUEUE_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/keys.h"
#include "queue/replies.h"
#include "queue/task.h"
#include "redis/command.h"

struct redisReply;

/* ---- calls ---- */

/* The arguments of leat_intake; see src/queue/lua/lists.lua. */
struct queue_intake {
    struct bytes key;
    const char *kind; /* "list", "set" or "zset" */
    int64_t most;
    const char *field;
    struct bytes lane; /* size 0: none */
    bool unique;       /* each item is its own unique key */
    bool marks;        /* items end in *UNIXTIME */
};
void queue_intake(struct command *command, const struct queue *queue,
                  const struct queue_intake *intake);
/* Asks how many items there are, and for the first ones. kind and marks: see struct queue_intake.
 */
void queue_preview(struct command *command, struct bytes key, const char *kind, int64_t most,
                   bool marks);
/* Asks whether to look for new lists now, or when to ask again. busy: the caller is still looking.
 */
void queue_lists_turn(struct command *command, const struct queue *queue, int64_t period_ms,
                      bool busy);

/* One step of a walk through the keys: lists that begin with the prefix. The first cursor is "0".
 */
void queue_scan_lists(struct command *command, const char *cursor, const char *prefix);
void queue_type(struct command *command, struct bytes key);
void queue_list_length(struct command *command, struct bytes key);

/* For the connection that listens, by connection_subscribe. */
void queue_watch_listen(struct command *command);
/* For the other connection: the client id of the listener. */
void queue_watch_begin(struct command *command, int64_t listener);
/* Watches the key that the next command reads. */
void queue_watch_next(struct command *command);

/* ---- replies: as in queue/calls.h, −1: the reply does not have the expected form ---- */

struct queue_intake_reply {
    int64_t taken; /* items removed from the list */
    int64_t added; /* tasks made of them */
    int64_t left;
    bool full; /* the length limit keeps the rest in the list */
};
int queue_intake_read(const struct redisReply *reply, struct queue_intake_reply *out);

/* *wait_ms 0: it is the caller's turn. */
int queue_lists_turn_read(const struct redisReply *reply, int64_t *wait_ms);

/* Calls `key` with each key. Copies the next cursor, "0" at the end, to `cursor`. */
int queue_scan_lists_read(const struct redisReply *reply, char cursor[QUEUE_CURSOR_SIZE],
                          void (*key)(void *context, struct bytes key), void *context);

/* Reads an integer reply that is not negative. */
int queue_list_length_read(const struct redisReply *reply, int64_t *length);

/* Reads what the listener received: calls `changed` with each key, or with NULL if anything may
 * have changed. Returns 1 for the answer to the listening itself, 0 for a message. */
int queue_watch_read(const struct redisReply *reply,
                     void (*changed)(void *context, const struct bytes *key), void *context);

#endif
