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

void live_chunks_free(struct live_chunks *chunks)
{
    for (struct chunk *chunk; (chunk = TAILQ_FIRST(chunks));) {
        TAILQ_REMOVE(chunks, chunk, link);
        chunk_free(chunk);
    }
}
