/*
 * Byte strings with a length, for tasks and replies, which may contain NUL.
 */
#ifndef LEAT_BASE_BYTES_H
#define LEAT_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>

/* Does not own the data. */
struct bytes {
    const char *data;
    size_t size;
};

bool bytes_equal(struct bytes bytes, const char *text);

/* The bytes of a string, without its NUL; none if text is NULL. */
struct bytes bytes_of(const char *text);

/* Copies the bytes as a string, truncated to size. */
void bytes_copy(struct bytes bytes, char *text, size_t size);

#endif
