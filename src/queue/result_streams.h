/*
 * Two streams that a single task may have beside those of the queue: its result,
 * {queue}:result:TID, one entry that leat.lua writes when the task has ended; and its live output,
 * {queue}:output:TID, which the worker writes while it runs. As in queue/queue.h, commands are
 * built here and replies are read here.
 */
#ifndef LEAT_QUEUE_RESULT_STREAMS_H
#define LEAT_QUEUE_RESULT_STREAMS_H

#include "queue/queue.h"

enum queue_kept { QUEUE_RESULT, QUEUE_OUTPUT };

/* ---- writing live output ---- */

/* One entry. Of which attempt it is: attempt and fence, which grows with each run of the task.
 * offset: how many bytes the attempt had written before, to stdout and stderr together; so a reader
 * knows what was lost, and what comes twice. */
struct queue_output {
    const char *tid;
    int64_t attempt, fence, offset;
    int64_t dropped;     /* bytes before this entry that are in none */
    int number;          /* 1: stdout, 2: stderr, 0: no data */
    struct bytes data;   /* its size counts for the offset of the next */
    const char *worker;  /* the attempt begins; else NULL */
    const char *verdict; /* it has ended; else NULL: success, retry, dead, release, cancelled */
    const char *how;     /* "exit 3", "SIGKILL", "timeout", …: with a verdict */
    int64_t delay_ms;    /* verdict retry: until the next one, at the least */
};

/* keep_ms: for how long the stream is kept after this entry. */
void queue_output(struct command *command, const struct queue *queue,
                  const struct queue_output *output, int64_t keep_ms);

/* 0, or −1 with *error where Redis has refused the entry. */
int queue_output_read(const struct redisReply *reply, const char **error);

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
