/*
 * A bitmap of the slot indexes that are taken.
 */
#include "exec/slot_index.h"

#include <stdlib.h>

enum { BITS = 64 };

static int add_word(struct slot_indexes *indexes)
{
    uint64_t *taken = reallocarray(indexes->taken, indexes->words + 1, sizeof *taken);
    if (!taken) {
        return -1;
    }
    taken[indexes->words++] = 0;
    indexes->taken = taken;
    return 0;
}

int slot_index_take(struct slot_indexes *indexes, size_t *slot_index)
{
    while (indexes->first < indexes->words && indexes->taken[indexes->first] == UINT64_MAX) {
        indexes->first++;
    }
    if (indexes->first == indexes->words && add_word(indexes)) {
        return -1;
    }
    uint64_t *word = &indexes->taken[indexes->first];
    size_t bit = (size_t)__builtin_ctzll(~*word);
    *word |= UINT64_C(1) << bit;
    *slot_index = indexes->first * BITS + bit;
    return 0;
}

void slot_index_release(struct slot_indexes *indexes, size_t slot_index)
{
    size_t word = slot_index / BITS;
    indexes->taken[word] &= ~(UINT64_C(1) << slot_index % BITS);
    indexes->first = word < indexes->first ? word : indexes->first;
}

void slot_index_free(struct slot_indexes *indexes)
{
    free(indexes->taken);
    *indexes = (struct slot_indexes){0};
}
