/*
 * The function library as it was built in.
 */
#ifndef LEAT_QUEUE_LIBRARY_H
#define LEAT_QUEUE_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

extern const char library_source[];
extern const char library_source_end[];

size_t library_size(void);

/* VERSION of the built-in library, read from its source. */
int64_t library_version(void);

#endif
