/*
 * Chunks of live output, queued or in flight, in order.
 */
#ifndef LEAT_DAEMON_REPORT_LIVE_CHUNKS_H
#define LEAT_DAEMON_REPORT_LIVE_CHUNKS_H

#include "base/buffer.h"
#include "queue/result_streams.h"

#define CHUNK_SIZE ((size_t)8 * 1024) /* bytes of output in one chunk */

struct chunk {
    struct chunk *next;
    struct queue_output output; /* all but the data */
    struct buffer data;
    char how[48];
};

/* A zeroed struct is an empty list. */
struct live_chunks {
    struct chunk *first, *last;
};

/* Returns the cost of keeping and sending the chunk: its bytes, and a fixed overhead. */
size_t chunk_cost(const struct chunk *chunk);
void chunk_free(struct chunk *chunk);

/* Appends the chunk, and owns it from now on. */
void live_chunks_add(struct live_chunks *chunks, struct chunk *chunk);

/* Removes the first chunk and returns it; the caller owns it. NULL: the list is empty. */
struct chunk *live_chunks_take(struct live_chunks *chunks);

/* Appends all chunks of `more`, which is empty then. */
void live_chunks_join(struct live_chunks *chunks, struct live_chunks *more);

/* Frees all chunks. */
void live_chunks_free(struct live_chunks *chunks);

#endif
