/*
 * A set of names in bounded memory: a Bloom filter. It never denies a name that was added. It may
 * report a name that was not added: one in 500 after ten million names.
 */
#ifndef LEAT_CLI_DOCTOR_SEEN_H
#define LEAT_CLI_DOCTOR_SEEN_H

#include <stdbool.h>
#include <stddef.h>

struct seen;

/* Returns NULL without memory. */
struct seen *seen_new(void);
void seen_add(struct seen *seen, const void *name, size_t size);
bool seen_has(const struct seen *seen, const void *name, size_t size);
void seen_free(struct seen *seen);

#endif
