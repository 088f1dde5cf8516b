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

/* True if all bytes are A-Z a-z 0-9, or in `others`. */
bool bytes_are_letters(struct bytes bytes, const char *others);

/* Compares byte by byte; a beginning of the other comes first. Returns as memcmp. */
int bytes_compare(struct bytes left, struct bytes right);

/* The size of a text of at most `limit` bytes. If it has that many it may have been cut, so an
 * incomplete UTF-8 sequence at its end does not count. */
size_t bytes_whole(const char *text, size_t size, size_t limit);

#endif
