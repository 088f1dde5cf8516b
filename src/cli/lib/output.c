/*
 * Output of commands: the terminal, and JSON.
 */
#include "cli/lib/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/base64.h"
#include "cli/lib/cli.h"

#define DECIMALS 15 /* digits of a decimal number that a double keeps */

struct output output_look(void)
{
    struct output output = {0};
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    struct winsize window;

    output.terminal = isatty(STDOUT_FILENO) == 1;
    if (!output.terminal) {
        return output;
    }
    output.width = 80;
    output.height = 24;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 && window.ws_row > 0) {
        output.width = window.ws_col;
        output.height = window.ws_row;
    }
    output.color = !(no_color && *no_color) && term && *term && strcmp(term, "dumb") != 0;
    return output;
}

int output_write(const struct buffer *buffer)
{
    if (buffer->failed) {
        return cli_no_memory();
    }
    /* cli_flush reports failures */
    if (buffer->size > 0) {
        (void)fwrite(buffer->data, 1, buffer->size, stdout);
    }
    return EX_OK;
}

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
    char long_name[128], *encoded;

    if (value) {
        output_put(object, name, value);
        return;
    }

    /* any text form would lose bytes that are not UTF-8 */
    encoded = base64_encode(data, bytes.size);
    if (snprintf(long_name, sizeof long_name, "%s_base64", name) < (int)sizeof long_name) {
        output_put(object, long_name, encoded ? json_string(encoded) : NULL);
    } else {
        keep_if(object, false);
    }
    free(encoded);
}

static int append_piece(const char *text, size_t size, void *context)
{
    return buffer_append(context, text, size);
}

int output_json_text(json_t *value, size_t flags, struct buffer *text)
{
    int result = value ? json_dump_callback(value, append_piece, text,
                                            flags | JSON_ENSURE_ASCII | JSON_ENCODE_ANY |
                                                JSON_REAL_PRECISION(DECIMALS))
                       : -1;

    json_decref(value);
    /* jansson 2.14 does not check whether it could write the names of members, the buffer does */
    return result == 0 && !text->failed ? EX_OK : cli_no_memory();
}

int output_json(json_t *value, bool indent)
{
    struct buffer text = BUFFER_INIT;
    int status = output_json_text(value, indent ? JSON_INDENT(2) : JSON_COMPACT, &text);

    if (status == EX_OK && buffer_append(&text, "\n", 1) != 0) {
        status = cli_no_memory();
    }
    status = status == EX_OK ? output_write(&text) : status;
    buffer_free(&text);
    return status;
}
