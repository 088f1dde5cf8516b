/*
 * Slots of a Redis Cluster: which keys live together.
 */
#ifndef LEAT_BASE_HASH_SLOT_H
#define LEAT_BASE_HASH_SLOT_H

#include <stdbool.h>

#define SLOTS 16384

/* The part of the key that decides is what stands between the first { and the next }, if there is
 * something; else all of it. */
int hash_slot_of(const char *key);

/* True where the key has such a part: then whatever begins with that key has its slot. */
bool hash_slot_is_tagged(const char *key);

#endif
