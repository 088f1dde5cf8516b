/*
 * Escapes untrusted bytes for a terminal, a line of a file, a shell, or a string of JSON.
 * Characters that can be shown as they are do not change. Control characters and those that change
 * the direction of text do.
 */
#ifndef LEAT_BASE_ESCAPE_H
#define LEAT_BASE_ESCAPE_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/bytes.h"

/* Appends the bytes; those of other characters, and of invalid UTF-8, become \n, \t, \r or \xNN.
 * Returns 0, or -1 if memory ran out. */
int escape_append(struct buffer *buffer, const void *data, size_t size);

/* Writes the same as a string, cut to what fits whole. */
void escape_copy(struct bytes bytes, char *text, size_t size);

/* Appends a word of a shell's command, in single quotes if a shell would take a character of it for
 * something else. Only without memory the buffer is marked as failed. */
void escape_append_word(struct buffer *buffer, struct bytes word);

/* Appends the text of a JSON string, without its quotes. Each byte of invalid UTF-8 becomes U+FFFD.
 * Returns 0, or -1 if memory ran out. */
int escape_append_json(struct buffer *buffer, const void *data, size_t size);

#endif
