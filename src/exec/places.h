/*
 * Places of processes: small numbers, each one child's from before its start until nothing of it is
 * left. What is kept for children side by side (a slot of shared memory, a cgroup) is indexed by
 * them.
 */
#ifndef LEAT_EXEC_PLACES_H
#define LEAT_EXEC_PLACES_H

#include <stddef.h>
#include <stdint.h>

/* All zero: none taken. */
struct places {
    uint64_t *taken; /* a bit each; owned, let go by places_free */
    size_t words;
    size_t first; /* all words before this one are full */
};

/* The lowest free one. Returns 0, or -1 without memory. */
int places_take(struct places *places, size_t *place);

/* One that was taken. */
void places_release(struct places *places, size_t place);

void places_free(struct places *places);

#endif
