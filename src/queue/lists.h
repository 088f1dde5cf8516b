/*
 * The calls about lists of producers that know nothing of leat, and about what is left of earlier
 * systems: taking items in, and hearing of changes. As in queue/queue.h, each is built here and its
 * reply is read here; who sends it is not known.
 *
 * Changes are heard of by Redis's client-side caching, which takes nothing out of a list and needs
 * one connection for all of them: one connection listens, another one says by CLIENT TRACKING where
 * it listens, and the server then tells, once, of the next change of each key whose length was
 * asked for behind queue_watch_next.
 */
#ifndef LEAT_QUEUE_LISTS_H
#define LEAT_QUEUE_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/queue.h"
#include "redis/command.h"

struct redisReply;

#define QUEUE_INTAKE_MAX 1000 /* items in one leat_intake */

/* ---- calls ---- */

/* What leat_intake is to do; see there. */
struct queue_intake {
    struct bytes key;
    const char *kind; /* "list", "set" or "zset" */
    int64_t most;
    const char *field;
    struct bytes lane; /* size 0: none */
    bool unique;       /* by the item */
    bool marks;        /* items end with *UNIXTIME */
};
void queue_intake(struct command *command, const struct queue *queue,
                  const struct queue_intake *intake);
/* kind and marks as above: how many items there are, and the first ones. */
void queue_preview(struct command *command, struct bytes key, const char *kind, int64_t most,
                   bool marks);
/* Whether to look for new lists now, or when to ask again; busy: the caller still looks. */
void queue_lists_turn(struct command *command, const struct queue *queue, int64_t period_ms,
                      bool busy);

/* One step of a walk through the keys: lists that begin with the prefix. cursor "0" begins. */
void queue_scan_lists(struct command *command, const char *cursor, const char *prefix);
void queue_type(struct command *command, struct bytes key);
void queue_list_length(struct command *command, struct bytes key);

/* For the connection that listens: by connection_subscribe. */
void queue_watch_listen(struct command *command);
/* For the other one: the client id of the one that listens. */
void queue_watch_begin(struct command *command, int64_t listener);
/* The key that the next command reads is watched from then on. */
void queue_watch_next(struct command *command);

/* ---- replies: as in queue/queue.h, −1 means that the reply has not the form promised ---- */

struct queue_intake_reply {
    int64_t taken; /* items taken away */
    int64_t added; /* tasks that they became */
    int64_t left;
    bool full; /* the length limit keeps the rest where it is */
};
int queue_intake_read(const struct redisReply *reply, struct queue_intake_reply *out);

/* *wait_ms 0: it is the caller's turn. */
int queue_lists_turn_read(const struct redisReply *reply, int64_t *wait_ms);

/* Calls `key` with each; the next cursor, "0" at the end, goes into `cursor`. */
int queue_scan_lists_read(const struct redisReply *reply, char cursor[QUEUE_CURSOR_SIZE],
                          void (*key)(void *context, struct bytes key), void *context);

/* An integer reply that is not negative. */
int queue_list_length_read(const struct redisReply *reply, int64_t *length);

/* What the listener heard: calls `changed` with each key, or with NULL where anything may have
 * changed. 1: the answer to the listening itself, 0: a message. */
int queue_watch_read(const struct redisReply *reply,
                     void (*changed)(void *context, const struct bytes *key), void *context);

#endif
