/*
 * The names of a queue's keys in Redis.
 */
#ifndef LEAT_QUEUE_KEYS_H
#define LEAT_QUEUE_KEYS_H

#include "queue/shared/limits.h"

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
};

/* Stream "emails" gives "{emails}:dead"; a stream with a {tag} gets suffixes only ("{a}b:dead").
 * Returns 0, or -1 if there is no memory. */
int queue_init(struct queue *queue, const char *stream, const char *group);
void queue_free(struct queue *queue);

#endif
