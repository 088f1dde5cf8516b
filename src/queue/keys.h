/*
 * The names of a queue's keys in Redis, and calls that begin with them.
 */
#ifndef LEAT_QUEUE_KEYS_H
#define LEAT_QUEUE_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "queue/shared/limits.h"
#include "redis/command.h"

#define QUEUE_KEYS QUEUE_ALL_KEYS

/* Positions in the keys of struct queue, in the order of leat.lua. */
enum queue_key {
    QUEUE_KEY_STREAM,
    QUEUE_KEY_BELL,
    QUEUE_KEY_WAITING,
    QUEUE_KEY_DELAYED,
    QUEUE_KEY_NAMES,
    QUEUE_KEY_CONF,
    QUEUE_KEY_STATS,
    QUEUE_KEY_LANES,
    QUEUE_KEY_LANED,
    QUEUE_KEY_GO,
    QUEUE_KEY_RUNNING,
    QUEUE_KEY_DEAD,
    QUEUE_KEY_WORKERS,
    QUEUE_KEY_CANCEL,
    QUEUE_KEY_AWAITED,
};

/* The names of a queue's keys, and its group. */
struct queue {
    char *group;
    char *keys[QUEUE_KEYS];
    bool read_only; /* calls use FCALL_RO, which Redis allows for functions without writes only */
};

/* Stream "emails" gives "{emails}:dead"; a stream with a {tag} gets suffixes only ("{a}b:dead").
 * Returns 0, or -1 if there is no memory. */
int queue_init(struct queue *queue, const char *stream, const char *group);
void queue_free(struct queue *queue);

/* The size of "{emails}:", with which all keys of the queue begin except the stream. */
size_t queue_prefix_size(const struct queue *queue);

/* Adds the key with that beginning and the two parts of a name. */
void queue_add_key(struct command *command, const struct queue *queue, const char *first,
                   const char *second);

/* Starts the call of a function with the first `keys` keys of the queue; the caller adds `more`. */
void queue_begin(struct command *command, const struct queue *queue, const char *function,
                 size_t keys, size_t more);

#endif
