/*
 * Bytes of any value, NUL among them, with their number: what tasks and replies consist of.
 */
#ifndef LEAT_BASE_BYTES_H
#define LEAT_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>

/* Never owns what it points to. */
struct bytes {
    const char *data;
    size_t size;
};

bool bytes_equal(struct bytes bytes, const char *text);

/* A string without its NUL; NULL counts as empty. */
struct bytes bytes_of(const char *text);

/* Copies the bytes as a string, cut to fit size. */
void bytes_copy(struct bytes bytes, char *text, size_t size);

#endif
