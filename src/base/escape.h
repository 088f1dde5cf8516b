/*
 * Escapes untrusted bytes for a terminal or a line of a file. Control characters, characters that
 * change the direction of text, and invalid UTF-8 become \n, \t, \r or \xNN. Other bytes do not
 * change.
 */
#ifndef LEAT_BASE_ESCAPE_H
#define LEAT_BASE_ESCAPE_H

#include <stddef.h>

#include "base/buffer.h"

/* Appends the bytes, escaped. Returns 0, or -1 if memory ran out. */
int escape_append(struct buffer *buffer, const void *data, size_t size);

#endif
