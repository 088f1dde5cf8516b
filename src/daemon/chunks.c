#include "daemon/chunks.h"

#include <stdlib.h>

#define ENTRY_COST 2048

size_t chunk_cost(const struct chunk *chunk)
{
    return ENTRY_COST + chunk->data.size;
}

void chunk_free(struct chunk *chunk)
{
    buffer_free(&chunk->data);
    free(chunk);
}

void chunks_add(struct chunks *chunks, struct chunk *chunk)
{
    chunk->next = NULL;
    if (chunks->last) {
        chunks->last->next = chunk;
    } else {
        chunks->first = chunk;
    }
    chunks->last = chunk;
}

struct chunk *chunks_take(struct chunks *chunks)
{
    struct chunk *chunk = chunks->first;
    if (chunk) {
        chunks->first = chunk->next;
        chunks->last = chunks->first ? chunks->last : NULL;
    }
    return chunk;
}

void chunks_join(struct chunks *chunks, struct chunks *more)
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
    *more = (struct chunks){0};
}

void chunks_free(struct chunks *chunks)
{
    for (struct chunk *chunk = chunks_take(chunks); chunk; chunk = chunks_take(chunks)) {
        chunk_free(chunk);
    }
}
