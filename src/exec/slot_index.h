/*
 * Slot indexes: small numbers for running processes. A child has its number from before its start
 * until nothing of it is left. Tables with one row per process (guard entries, cgroups) use it as
 * their index.
 */
#ifndef LEAT_EXEC_SLOT_INDEX_H
#define LEAT_EXEC_SLOT_INDEX_H

#include <stddef.h>
#include <stdint.h>

/* A zeroed struct has no number taken. */
struct slot_indexes {
    uint64_t *taken; /* one bit per number; owned, freed by slot_index_free */
    size_t words;
    size_t first; /* all words before this one are full */
};

/* Takes the lowest free number. Returns 0, or -1 without memory. */
int slot_index_take(struct slot_indexes *indexes, size_t *slot_index);

/* Gives back a number that was taken. */
void slot_index_release(struct slot_indexes *indexes, size_t slot_index);

void slot_index_free(struct slot_indexes *indexes);

#endif
