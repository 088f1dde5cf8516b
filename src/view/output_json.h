/*
 * JSON of objects and lists that may lack memory, and of bytes that may not be text.
 */
#ifndef LEAT_VIEW_OUTPUT_JSON_H
#define LEAT_VIEW_OUTPUT_JSON_H

#include <stddef.h>

#include <jansson.h>

#include "base/buffer.h"

/* Add a member or an element. Without memory, or if the value is NULL, they free *json and set it
 * to NULL; if it is NULL, they only free the value. So it suffices to pass the result on to
 * output_json_append. */
void output_put(json_t **object, const char *name, json_t *value);
void output_push(json_t **array, json_t *value);

/* Sets the member NAME to the bytes if they are UTF-8, or else NAME_base64. */
void output_put_bytes(json_t **object, const char *name, struct bytes bytes);

/* Reads such a member. The bytes are in the object or, if it is NAME_base64, in `decoded`. Returns
 * 0, or -1 if there is no such member or no memory. */
int output_get_bytes(const json_t *object, const char *name, struct buffer *decoded,
                     struct bytes *bytes);

/* Appends the value as ASCII, with jansson's flags, and drops the reference. A value of NULL means
 * that there was no memory. Returns 0, or -1 without memory: do not use the text then. */
int output_json_append(json_t *value, size_t flags, struct buffer *text);

#endif
