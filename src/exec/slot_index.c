#include "exec/slot_index.h"

#include <stdlib.h>

enum { BITS = 64 };

static int add_word(struct slot_indexes *slot_indexes)
{
    uint64_t *taken = reallocarray(slot_indexes->taken, slot_indexes->words + 1, sizeof *taken);
    if (!taken) {
        return -1;
    }
    taken[slot_indexes->words++] = 0;
    slot_indexes->taken = taken;
    return 0;
}

int slot_index_take(struct slot_indexes *slot_indexes, size_t *slot_index)
{
    while (slot_indexes->first < slot_indexes->words &&
           slot_indexes->taken[slot_indexes->first] == UINT64_MAX) {
        slot_indexes->first++;
    }
    if (slot_indexes->first == slot_indexes->words && add_word(slot_indexes)) {
        return -1;
    }
    uint64_t *word = &slot_indexes->taken[slot_indexes->first];
    size_t bit = (size_t)__builtin_ctzll(~*word);
    *word |= UINT64_C(1) << bit;
    *slot_index = slot_indexes->first * BITS + bit;
    return 0;
}

void slot_index_release(struct slot_indexes *slot_indexes, size_t slot_index)
{
    size_t word = slot_index / BITS;
    slot_indexes->taken[word] &= ~(UINT64_C(1) << slot_index % BITS);
    slot_indexes->first = word < slot_indexes->first ? word : slot_indexes->first;
}

void slot_index_free(struct slot_indexes *slot_indexes)
{
    free(slot_indexes->taken);
    *slot_indexes = (struct slot_indexes){0};
}
