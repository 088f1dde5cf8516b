/*
 * Arrays that grow by one element at a time. They need not keep a capacity: it follows from the
 * number of elements.
 */
#ifndef LEAT_BASE_ARRAY_H
#define LEAT_BASE_ARRAY_H

#include <stddef.h>

/* Makes room for one more element. array: NULL, or the result of an earlier call; count: its
 * elements, which may also have become fewer; size: of an element. Returns the array, which may
 * have moved and which the caller frees, or NULL without memory: then array is unchanged. */
void *array_grow(void *array, size_t count, size_t size);

#endif
