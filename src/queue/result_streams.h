/*
 * Two streams that a task may have besides those of the queue. Its result, {queue}:result:TID, is
 * one entry, which the function library writes when the task has ended. Its live output,
 * {queue}:output:TID, is written by the worker while the task runs. As in queue/calls.h, commands
 * are built here and replies are read here.
 */
#ifndef LEAT_QUEUE_RESULT_STREAMS_H
#define LEAT_QUEUE_RESULT_STREAMS_H

#include "queue/keys.h"
#include "queue/task.h"
#include "redis/command.h"

enum queue_kept { QUEUE_RESULT, QUEUE_OUTPUT };

/* ---- writing live output ---- */

/* One entry of live output. attempt and fence say which run wrote it; the fence grows with each run
 * of the task. offset: how many bytes the attempt had written before, to stdout and stderr
 * together, so a reader knows what was lost and what is repeated. */
struct queue_output {
    const char *tid;
    int64_t attempt, fence, offset;
    int64_t dropped;     /* bytes before this entry that are in no entry */
    int number;          /* 1: stdout, 2: stderr, 0: no data */
    struct bytes data;   /* its size counts for the offset of the next entry */
    const char *worker;  /* the attempt starts; else NULL */
    const char *verdict; /* it has ended: success, retry, dead, release or cancelled; else NULL */
    const char *how;     /* with a verdict: "exit 3", "SIGKILL", "timeout", … */
    int64_t delay_ms;    /* verdict retry: at least so long until the next attempt */
};

/* keep_ms: how long to keep the stream after this entry. */
void queue_output(struct command *command, const struct queue *queue,
                  const struct queue_output *output, int64_t keep_ms);

/* Returns 0, or −1 with *error if Redis refused the entry. */
int queue_output_read(const struct redisReply *reply, const char **error);

/* ---- reading ---- */

#define QUEUE_FROM_START "0-0"

/* The result stream of "*" is no task's: it gets an entry for each end while someone awaits "*". */
struct queue_source {
    enum queue_kept kind;
    const char *tid;
    const char *after; /* the id of an entry, or QUEUE_FROM_START */
};

/* XREAD of at most `most` entries of each source; block_ms 0: answers at once. */
void queue_read(struct command *command, const struct queue *queue,
                const struct queue_source *sources, size_t count, int64_t most, int64_t block_ms);

/* Points into the reply. */
struct queue_entry {
    enum queue_kept kind;
    const char *tid, *id;
    const struct redisReply *fields; /* name, value … */
};

/* Calls `entry` with each entry. Returns how many, 0 for nil, or −1 if the reply has another form:
 * then nothing was called. */
int queue_read_entries(const struct queue *queue, const struct redisReply *reply,
                       void (*entry)(void *context, const struct queue_entry *entry),
                       void *context);

#endif
