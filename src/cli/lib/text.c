/*
 * Text for a terminal: escaped, measured and cut.
 */
#include "cli/lib/text.h"

#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <wchar.h>

#include "base/escape.h"

void text_use_locale(void)
{
    static bool is_used;

    if (!is_used && strcmp(setlocale(LC_CTYPE, NULL), "C") == 0) {
        (void)setlocale(LC_CTYPE, "");
    }
    is_used = true;
}

static bool is_utf8(void)
{
    text_use_locale();
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

int text_append(struct buffer *out, const void *data, size_t size)
{
    struct buffer escaped = BUFFER_INIT;
    int result;

    if (is_utf8()) {
        return escape_append(out, data, size);
    }

    /* a terminal without UTF-8 could take its bytes for control characters */
    result = escape_append(&escaped, data, size);
    for (size_t i = 0; i < escaped.size && result == 0; i++) {
        unsigned char byte = (unsigned char)escaped.data[i];
        result = byte < 0x80 ? buffer_append(out, &byte, 1) : buffer_printf(out, "\\x%02x", byte);
    }
    buffer_free(&escaped);
    return result;
}

int text_append_lines(struct buffer *out, const void *data, size_t size, const char *indent)
{
    const char *at = data, *end = at + size, *newline;
    int result = 0;

    while (at < end && result == 0) {
        newline = memchr(at, '\n', (size_t)(end - at));
        result = buffer_append_text(out, indent);
        if (result == 0) {
            result = text_append(out, at, (size_t)((newline ? newline : end) - at));
        }
        result = result == 0 ? buffer_append_text(out, "\n") : result;
        at = newline ? newline + 1 : end;
    }
    return result;
}

bool text_is_printable(const void *data, size_t size)
{
    struct buffer escaped = BUFFER_INIT;
    const char *bytes = data;
    size_t expected = size;
    bool same;

    /* text_append writes a newline and a tab as two characters each */
    for (size_t i = 0; i < size; i++) {
        expected += bytes[i] == '\n' || bytes[i] == '\t';
    }
    same = text_append(&escaped, data, size) == 0 && escaped.size == expected;
    buffer_free(&escaped);
    return same;
}

/* The width of the first character. *length becomes its number of bytes. */
static size_t character(const char *text, size_t size, size_t *length)
{
    mbstate_t state = {0};
    wchar_t wide;
    int columns;

    text_use_locale();
    *length = mbrtowc(&wide, text, size, &state);
    if (*length == 0 || *length > size) {
        *length = 1;
        return 1;
    }
    columns = wcwidth(wide);
    return columns < 0 ? 1 : (size_t)columns;
}

size_t text_fit(const char *text, size_t size, size_t width)
{
    size_t at = 0, length, columns;

    while (at < size) {
        columns = character(text + at, size - at, &length);
        if (columns > width) {
            break;
        }
        width -= columns;
        at += length;
    }
    return at;
}

size_t text_width(const char *text, size_t size)
{
    size_t width = 0, length;

    for (size_t at = 0; at < size; at += length) {
        width += character(text + at, size - at, &length);
    }
    return width;
}

/* The next character or, with no width, the next style. */
static size_t piece(const char *text, size_t size, size_t *length)
{
    const char *end = size > 1 && memcmp(text, "\033[", 2) == 0 ? memchr(text, 'm', size) : NULL;

    if (!end) {
        return character(text, size, length);
    }
    *length = (size_t)(end - text) + 1;
    return 0;
}

/* The number of bytes of the line that go before the break: up to the last blank that leaves at
 * least half of the width. */
static size_t break_of(const char *line, size_t size, size_t width)
{
    size_t used = 0, blank = 0, length;

    for (size_t at = 0; at < size; at += length) {
        used += piece(line + at, size - at, &length);
        if (used > width) {
            return blank > 0 ? blank : at;
        }
        if (line[at] == ' ' && used > width / 2) {
            blank = at;
        }
    }
    return size;
}

static void wrap_line(struct buffer *out, const char *line, size_t size, size_t width)
{
    size_t indent = 0, left = width;

    while (indent < size && line[indent] == ' ') {
        indent++;
    }
    indent = indent + 2 < width / 2 ? indent + 2 : 0;
    /* a failed append marks the buffer */
    for (;;) {
        size_t part = break_of(line, size, left);
        part = part > 0 ? part : size; /* a character that is wider than the line */
        (void)buffer_append(out, line, part);
        if (part == size) {
            return;
        }
        line += part + (line[part] == ' ');
        size -= part + (line[-1] == ' ');
        (void)buffer_printf(out, "\n%*s", (int)indent, "");
        left = width - indent;
    }
}

int text_wrap(struct buffer *text, size_t start, size_t width)
{
    struct buffer wrapped = BUFFER_INIT;
    size_t at = start;

    if (width == 0 || text->failed) {
        return text->failed ? -1 : 0;
    }
    while (at < text->size) {
        const char *line = text->data + at, *end = memchr(line, '\n', text->size - at);
        size_t size = end ? (size_t)(end - line) : text->size - at;
        wrap_line(&wrapped, line, size, width);
        /* a failed append marks the buffer */
        (void)buffer_append(&wrapped, "\n", end ? 1 : 0);
        at += size + 1;
    }
    text->size = start;
    (void)buffer_append(text, wrapped.data, wrapped.size);
    text->failed |= wrapped.failed;
    buffer_free(&wrapped);
    return text->failed ? -1 : 0;
}

int text_style(struct buffer *out, enum text_style style, bool color)
{
    static const char *const codes[] = {
        [TEXT_PLAIN] = "\033[0m", [TEXT_BOLD] = "\033[1m",   [TEXT_DIM] = "\033[2m",
        [TEXT_RED] = "\033[31m",  [TEXT_GREEN] = "\033[32m", [TEXT_YELLOW] = "\033[33m",
    };

    return color ? buffer_append_text(out, codes[style]) : 0;
}
