/*
 * The terminal that output goes to, its width and colours; output as JSON.
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
    bool color;    /* the terminal has colours and NO_COLOR is not set */
    size_t width;  /* 0: not a terminal, so lines are not cut */
    size_t height; /* 0: not a terminal */
};

/* Examines stdout. Call it again after the window was resized. */
struct output output_look(void);

/* Writes to stdout; cli_flush reports failures. Returns 0, or EX_OSERR after printing the error if
 * an append to the buffer had failed. */
int output_write(const struct buffer *buffer);

/* Add a member or an element. Without memory, or if the value is NULL, they free *json and set it
 * to NULL; if it is NULL, they only free the value. So it suffices to pass the result on to
 * output_json. */
void output_put(json_t **object, const char *name, json_t *value);
void output_push(json_t **array, json_t *value);

/* Sets the member NAME to the bytes if they are UTF-8, or else NAME_base64. */
void output_put_bytes(json_t **object, const char *name, struct bytes bytes);

/* Appends the value, with jansson's flags, and drops the reference. A value of NULL means that
 * there was no memory. Returns 0, or EX_OSERR after printing the error: do not use the text then.
 */
int output_json_text(json_t *value, size_t flags, struct buffer *text);

/* Writes the value, indented or on one line, and a newline, and drops the reference. A value of
 * NULL means that there was no memory. Returns 0, or an exit status after printing the error. */
int output_json(json_t *value, bool indent);

#endif
