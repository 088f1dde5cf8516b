/*
 * Where output goes: is it a terminal, how wide, coloured or not; and data as JSON.
 */
#ifndef LEAT_CLI_LIB_OUTPUT_H
#define LEAT_CLI_LIB_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/buffer.h"
#include "queue/task.h"

struct output {
    bool terminal;
    bool color;    /* a terminal that can, and no NO_COLOR */
    size_t width;  /* 0: not a terminal, lines may be of any length */
    size_t height; /* 0: the same */
};

/* Looks at stdout; call it again after the window has changed. */
struct output output_look(void);

/* Writes to stdout; failures show when it is flushed. Returns 0, or EX_OSERR if the buffer had
 * failed for want of memory, having said so. */
int output_write(const struct buffer *buffer);

/* Sets NAME to the bytes as text where they are UTF-8, else NAME_base64. Returns 0, or -1 without
 * memory. */
int output_json_bytes(json_t *object, const char *name, struct bytes bytes);

/* Appends the value, with jansson's flags, and drops the reference; NULL stands for want of memory.
 * Returns 0, or EX_OSERR without memory, having said so: the text is then not to be used. */
int output_json_text(json_t *value, size_t flags, struct buffer *text);

/* Writes the value and a newline, indented or in one line, and drops the reference; NULL stands for
 * want of memory. Returns 0 or an exit status. */
int output_json(json_t *value, bool indent);

#endif
