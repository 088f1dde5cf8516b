/*
 * Hash slots of a Redis Cluster: which keys are on the same node.
 */
#ifndef LEAT_BASE_HASH_SLOT_H
#define LEAT_BASE_HASH_SLOT_H

#include <stdbool.h>

#define HASH_SLOTS 16384

/* The hash slot of the key. Redis hashes the tag, the part between the first { and the next }, or
 * the whole key if the tag is missing or empty. */
int hash_slot_of(const char *key);

/* True if the key has a tag. All keys that begin with this key are then in the same slot. */
bool hash_slot_is_tagged(const char *key);

#endif
