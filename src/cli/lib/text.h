/*
 * Bytes of tasks as text for a terminal: escaped, measured in columns, and cut.
 */
#ifndef LEAT_CLI_LIB_TEXT_H
#define LEAT_CLI_LIB_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Uses the locale of the environment, unless another one was chosen; if it does not exist, C is
 * used. The functions below call it. Call it before a function of the C library that depends on the
 * locale. Most commands need none, and reading it takes time. */
void text_use_locale(void);

enum text_style { TEXT_PLAIN, TEXT_BOLD, TEXT_DIM, TEXT_RED, TEXT_GREEN, TEXT_YELLOW };

/* Appends the bytes as one line in which control characters are escaped. In a locale other than
 * UTF-8, everything but ASCII is escaped. Returns 0, or -1 without memory. */
int text_append(struct buffer *out, const void *data, size_t size);

/* The same for text of several lines. Each line is indented and ends with a newline. */
int text_append_lines(struct buffer *out, const void *data, size_t size, const char *indent);

/* True if text_append would change only newlines and tabs. */
bool text_is_printable(const void *data, size_t size);

/* The width in columns of text that text_append wrote. */
size_t text_width(const char *text, size_t size);

/* The number of bytes at the start of such text that fill at most `width` columns. */
size_t text_fit(const char *text, size_t size, size_t width);

/* Breaks each line that is wider than `width`, at a blank if there is one, and indents the rest.
 * Begins at byte `start` of the text, which may have styles. width 0: changes nothing. Returns 0,
 * or -1 without memory. */
int text_wrap(struct buffer *text, size_t start, size_t width);

/* Starts a style; TEXT_PLAIN ends it. Appends nothing without color. */
int text_style(struct buffer *out, enum text_style style, bool color);

#endif
