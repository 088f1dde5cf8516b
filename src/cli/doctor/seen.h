/*
 * Which names have been seen, in bounded memory however many they are. It never denies one that was
 * seen; of those that were not it may take a few for seen (one in 500 behind ten million).
 */
#ifndef LEAT_CLI_DOCTOR_SEEN_H
#define LEAT_CLI_DOCTOR_SEEN_H

#include <stdbool.h>
#include <stddef.h>

struct seen;

/* NULL without memory. */
struct seen *seen_new(void);
void seen_add(struct seen *seen, const void *name, size_t size);
bool seen_has(const struct seen *seen, const void *name, size_t size);
void seen_free(struct seen *seen);

#endif
