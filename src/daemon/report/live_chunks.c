/*
 * A linked list of live output chunks.
 */
#include "daemon/report/live_chunks.h"

#include <stdlib.h>

#define ENTRY_COST 2048 /* of an entry beside its bytes: memory here and in Redis */

size_t chunk_cost(const struct chunk *chunk)
{
    return ENTRY_COST + chunk->data.size;
}

void chunk_free(struct chunk *chunk)
{
    buffer_free(&chunk->data);
    free(chunk);
}

void live_chunks_add(struct live_chunks *chunks, struct chunk *chunk)
{
    chunk->next = NULL;
    if (chunks->last) {
        chunks->last->next = chunk;
    } else {
        chunks->first = chunk;
    }
    chunks->last = chunk;
}

struct chunk *live_chunks_take(struct live_chunks *chunks)
{
    struct chunk *chunk = chunks->first;
    if (chunk) {
        chunks->first = chunk->next;
        chunks->last = chunks->first ? chunks->last : NULL;
    }
    return chunk;
}

void live_chunks_join(struct live_chunks *chunks, struct live_chunks *more)
{
    if (!more->first) {
        return;
    }
    if (chunks->last) {
        chunks->last->next = more->first;
    } else {
        chunks->first = more->first;
    }
    chunks->last = more->last;
    *more = (struct live_chunks){0};
}

void live_chunks_free(struct live_chunks *chunks)
{
    for (struct chunk *chunk = live_chunks_take(chunks); chunk; chunk = live_chunks_take(chunks)) {
        chunk_free(chunk);
    }
}
