/*
 * Base64 as in RFC 4648, with padding, for bytes in text formats.
 */
#ifndef LEAT_BASE_BASE64_H
#define LEAT_BASE_BASE64_H

#include <stddef.h>

#include "base/buffer.h"

/* Returns the text, NUL-terminated, which the caller frees; NULL if memory ran out. */
char *base64_encode(const void *data, size_t size);

/* Decodes strictly: whole groups, padding only at the end. Appends the bytes. Returns 0, or -1 if
 * the text is not base64 or there is no memory. */
int base64_decode(const char *text, size_t size, struct buffer *out);

#endif
