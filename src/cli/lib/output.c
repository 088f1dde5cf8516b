/*
 * Output of commands: the terminal, and JSON.
 */
#include "cli/lib/output.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/lib/cli.h"
#include "cli/lib/text.h"

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

int output_printf(const char *format, ...)
{
    struct buffer text = BUFFER_INIT;
    va_list args;
    int status;

    /* a failed append marks the buffer */
    va_start(args, format);
    (void)buffer_vprintf(&text, format, args);
    va_end(args);
    (void)text_wrap(&text, 0, output_look().width);
    status = output_write(&text);
    buffer_free(&text);
    return status;
}

int output_json_text(json_t *value, size_t flags, struct buffer *text)
{
    return output_json_append(value, flags, text) == 0 ? EX_OK : cli_no_memory();
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
