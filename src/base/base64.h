/*
 * Base64 as in RFC 4648, with padding, for bytes in text formats.
 */
#ifndef LEAT_BASE_BASE64_H
#define LEAT_BASE_BASE64_H

#include <stddef.h>

/* Returns the text, NUL-terminated, which the caller frees; NULL if memory ran out. */
char *base64_encode(const void *data, size_t size);

#endif
