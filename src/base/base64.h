/*
 * Base64 as in RFC 4648, with padding: bytes that some text form could not carry.
 */
#ifndef LEAT_BASE_BASE64_H
#define LEAT_BASE_BASE64_H

#include <stddef.h>

/* The text, NUL-terminated, which the caller frees; NULL without memory. */
char *base64_encode(const void *data, size_t size);

#endif
