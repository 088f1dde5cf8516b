/*
 * Entries of live output that are to be sent, or are under way, in their order.
 */
#ifndef LEAT_DAEMON_REPORT_LIVE_CHUNKS_H
#define LEAT_DAEMON_REPORT_LIVE_CHUNKS_H

#include "base/buffer.h"
#include "queue/result_streams.h"

#define CHUNK_SIZE ((size_t)8 * 1024) /* bytes in one */

struct chunk {
    struct chunk *next;
    struct queue_output output; /* but for its data */
    struct buffer data;
    char how[48];
};

/* A zeroed struct is an empty list. */
struct live_chunks {
    struct chunk *first, *last;
};

/* What it takes to keep and to send it: an entry costs something beside its bytes. */
size_t chunk_cost(const struct chunk *chunk);
void chunk_free(struct chunk *chunk);

/* Takes the chunk. */
void live_chunks_add(struct live_chunks *chunks, struct chunk *chunk);

/* The first, which is the caller's then, or NULL. */
struct chunk *live_chunks_take(struct live_chunks *chunks);

/* All that is in `more` comes behind what is there. */
void live_chunks_join(struct live_chunks *chunks, struct live_chunks *more);

/* Frees all that are in it. */
void live_chunks_free(struct live_chunks *chunks);

#endif
