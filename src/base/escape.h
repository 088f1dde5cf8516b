/*
 * Bytes that came from elsewhere, made safe for a terminal or a line of a file: control characters,
 * those that turn the direction of text, and what is not valid UTF-8 become \n, \t, \r or \xNN; all
 * else stays as it is.
 */
#ifndef LEAT_BASE_ESCAPE_H
#define LEAT_BASE_ESCAPE_H

#include <stddef.h>

#include "base/buffer.h"

/* Appends the bytes, escaped. Returns 0, or -1 without memory. */
int escape_append(struct buffer *buffer, const void *data, size_t size);

#endif
