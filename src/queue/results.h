/*
 * Two streams that a single task may have beside those of the queue: its result,
 * {queue}:result:TID, one entry that leat.lua writes when the task has ended; and its live output,
 * {queue}:output:TID, which the worker writes while it runs. As in queue/queue.h, commands are
 * built here and replies are read here.
 */
#ifndef LEAT_QUEUE_RESULTS_H
#define LEAT_QUEUE_RESULTS_H

#include "queue/queue.h"

enum queue_kept { QUEUE_RESULT, QUEUE_OUTPUT };

/* ---- reading ---- */

#define QUEUE_FROM_START "0-0"

/* The result of "*" is no task's: it rings with each end while somebody awaits "*". */
struct queue_source {
    enum queue_kept kind;
    const char *tid;
    const char *after; /* an entry's id, or QUEUE_FROM_START */
};

/* XREAD of at most so many entries of each; block_ms 0: answers at once. */
void queue_read(struct command *command, const struct queue *queue,
                const struct queue_source *sources, size_t count, int64_t most, int64_t block_ms);

/* Within the reply. */
struct queue_entry {
    enum queue_kept kind;
    const char *tid, *id;
    const struct redisReply *fields; /* name, value … */
};

/* Calls `entry` with each; returns how many, 0 for nil, −1 where the reply has another form:
 * nothing was called then. */
int queue_read_entries(const struct queue *queue, const struct redisReply *reply,
                       void (*entry)(void *context, const struct queue_entry *entry),
                       void *context);

#endif
