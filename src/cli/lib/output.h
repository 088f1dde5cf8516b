/*
 * The terminal that output goes to, its width and colours; output as JSON.
 */
#ifndef LEAT_CLI_LIB_OUTPUT_H
#define LEAT_CLI_LIB_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/buffer.h"
#include "view/output_json.h"

struct output {
    bool terminal;
    bool color;    /* the terminal has colours and NO_COLOR is not set */
    size_t width;  /* 0: not a terminal, so lines are not cut */
    size_t height; /* 0: not a terminal */
};

/* Examines stdout. Call it again after the window was resized. */
struct output output_look(void);

/* Writes to stdout; cli_flush reports failures. Returns 0, or EX_OSERR after printing the error if
 * an append to the buffer had failed. */
int output_write(const struct buffer *buffer);

/* Writes formatted text, whose lines are broken at the terminal's width. Returns as output_write.
 */
int output_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Like output_json_append. Returns 0, or EX_OSERR after printing the error: do not use the text
 * then. */
int output_json_text(json_t *value, size_t flags, struct buffer *text);

/* Writes the value, indented or on one line, and a newline, and drops the reference. A value of
 * NULL means that there was no memory. Returns 0, or an exit status after printing the error. */
int output_json(json_t *value, bool indent);

#endif
