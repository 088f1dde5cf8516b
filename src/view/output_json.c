/*
 * JSON of objects and lists that may lack memory, and of bytes that may not be text.
 */
#include "view/output_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"

#define DECIMALS 15 /* digits of a decimal number that a double keeps */

static void keep_if(json_t **json, bool fine)
{
    if (!fine) {
        json_decref(*json);
        *json = NULL;
    }
}

void output_put(json_t **object, const char *name, json_t *value)
{
    keep_if(object, json_object_set_new(*object, name, value) == 0);
}

void output_push(json_t **array, json_t *value)
{
    keep_if(array, json_array_append_new(*array, value) == 0);
}

void output_put_bytes(json_t **object, const char *name, struct bytes bytes)
{
    const char *data = bytes.data ? bytes.data : "";
    json_t *value = json_stringn(data, bytes.size);
    struct buffer long_name = BUFFER_INIT;
    char *encoded;

    if (value) {
        output_put(object, name, value);
        return;
    }

    /* any text form would lose bytes that are not UTF-8 */
    encoded = base64_encode(data, bytes.size);
    if (buffer_printf(&long_name, "%s_base64", name) == 0 &&
        buffer_append(&long_name, "", 1) == 0) {
        output_put(object, long_name.data, encoded ? json_string(encoded) : NULL);
    } else {
        keep_if(object, false);
    }
    free(encoded);
    buffer_free(&long_name);
}

int output_get_bytes(const json_t *object, const char *name, struct buffer *decoded,
                     struct bytes *bytes)
{
    char coded[128];
    const json_t *value = json_object_get(object, name);

    if (json_is_string(value)) {
        *bytes = (struct bytes){json_string_value(value), json_string_length(value)};
        return 0;
    }
    (void)snprintf(coded, sizeof coded, "%s_base64", name);
    value = json_object_get(object, coded);
    buffer_clear(decoded);
    if (!json_is_string(value) ||
        base64_decode(json_string_value(value), json_string_length(value), decoded) != 0) {
        return -1;
    }
    *bytes = buffer_bytes(decoded);
    return 0;
}

/* jansson escapes all control characters but DEL. */
static int append_piece(const char *text, size_t size, void *context)
{
    const char *end = text + size, *del;

    while ((del = memchr(text, 0x7f, (size_t)(end - text)))) {
        if (buffer_append(context, text, (size_t)(del - text)) != 0 ||
            buffer_append_text(context, "\\u007f") != 0) {
            return -1;
        }
        text = del + 1;
    }
    return buffer_append(context, text, (size_t)(end - text));
}

int output_json_append(json_t *value, size_t flags, struct buffer *text)
{
    int result = value ? json_dump_callback(value, append_piece, text,
                                            flags | JSON_ENSURE_ASCII | JSON_ENCODE_ANY |
                                                JSON_REAL_PRECISION(DECIMALS))
                       : -1;

    json_decref(value);
    /* jansson 2.14 does not check whether it could write the names of members, the buffer does */
    return result == 0 && !text->failed ? 0 : -1;
}
