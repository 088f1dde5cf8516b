/*
 * Chunks of live output, queued or in flight, in order.
 */
#ifndef LEAT_DAEMON_REPORT_LIVE_CHUNKS_H
#define LEAT_DAEMON_REPORT_LIVE_CHUNKS_H

#include <sys/queue.h>

#include "base/buffer.h"
#include "queue/result_streams.h"

#define CHUNK_SIZE ((size_t)8 * 1024) /* bytes of output in one chunk */

struct chunk {
    TAILQ_ENTRY(chunk) link;
    struct queue_output output; /* all but the data */
    struct buffer data;
    char how[48];
};

/* The list owns its chunks. */
TAILQ_HEAD(live_chunks, chunk);

/* Returns the cost of keeping and sending the chunk: its bytes, and a fixed overhead. */
size_t chunk_cost(const struct chunk *chunk);
void chunk_free(struct chunk *chunk);

/* Frees all chunks. */
void live_chunks_free(struct live_chunks *chunks);

#endif
