/*
 * Places of processes: small numbers, each one child's from before its start until nothing of it is
 * left. What is kept for children side by side (a slot of shared memory, a cgroup) is indexed by
 * them.
 */
#ifndef LEAT_EXEC_SLOT_INDEX_H
#define LEAT_EXEC_SLOT_INDEX_H

#include <stddef.h>
#include <stdint.h>

/* All zero: none taken. */
struct slot_indexes {
    uint64_t *taken; /* a bit each; owned, let go by places_free */
    size_t words;
    size_t first; /* all words before this one are full */
};

/* The lowest free one. Returns 0, or -1 without memory. */
int slot_index_take(struct slot_indexes *slot_indexes, size_t *slot_index);

/* One that was taken. */
void slot_index_release(struct slot_indexes *slot_indexes, size_t slot_index);

void slot_index_free(struct slot_indexes *slot_indexes);

#endif
