/*
 * Bytes of tasks as text for people: safe for a terminal, measured in columns, cut to fit.
 */
#ifndef LEAT_CLI_LIB_TEXT_H
#define LEAT_CLI_LIB_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum text_style { TEXT_PLAIN, TEXT_BOLD, TEXT_DIM, TEXT_RED, TEXT_GREEN, TEXT_YELLOW };

/* Appends the bytes in one line without control characters: escapes stand for what cannot be shown,
 * which in a locale other than UTF-8 is all but ASCII. Returns 0, or -1 without memory. */
int text_append(struct buffer *out, const void *data, size_t size);

/* The same for text of several lines: each line is indented and ended with a newline. */
int text_append_lines(struct buffer *out, const void *data, size_t size, const char *indent);

/* True where text_append changes nothing but newlines and tabs. */
bool text_is_printable(const void *data, size_t size);

/* Columns of what text_append wrote. */
size_t text_width(const char *text, size_t size);

/* Bytes at the front of such text that fill at most width columns. */
size_t text_fit(const char *text, size_t size, size_t width);

/* Starts a style, or ends it with TEXT_PLAIN; appends nothing unless color. */
int text_style(struct buffer *out, enum text_style style, bool color);

/* Without the bytes of a UTF-8 sequence that was cut at the end. */
size_t text_whole(const char *text, size_t size);

#endif
