/* Escapes untrusted bytes for terminals and lines. */
#include "base/escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* True for separators of lines and paragraphs, and for characters that change the direction of
 * text. With these, a terminal could show other text than the line has. */
static bool turns_text(uint32_t point)
{
    return (point >= 0x200e && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2066 && point <= 0x2069) || point == 0x061c;
}

/* Decodes the UTF-8 sequence at the front. Returns its length, or 0 if it is not valid. */
static size_t decode(const unsigned char *at, size_t size, uint32_t *point)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length;

    if (at[0] < 0x80) {
        *point = at[0];
        return 1;
    }
    if (at[0] >= 0xf8 || at[0] < 0xc0) {
        return 0;
    }
    length = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (length > size) {
        return 0;
    }
    *point = at[0] & (0x7fU >> length);
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
        *point = *point << 6 | (at[i] & 0x3fU);
    }

    /* reject overlong forms, surrogates, and values beyond Unicode */
    if (*point < smallest[length] || (*point >= 0xd800 && *point <= 0xdfff) || *point > 0x10ffff) {
        return 0;
    }
    return length;
}

/* C1 controls are obeyed by terminals, too. */
static bool is_printable(uint32_t point)
{
    return point < 0x7f ? point >= 0x20 : point >= 0xa0 && !turns_text(point);
}

enum { ESCAPED_SIZE = sizeof "\\x00" };

/* Returns what stands for the byte: a constant, or text. */
static const char *escaped(unsigned char byte, char text[ESCAPED_SIZE])
{
    switch (byte) {
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        (void)snprintf(text, ESCAPED_SIZE, "\\x%02x", byte); /* always fits */
        return text;
    }
}

static int append_escaped(struct buffer *buffer, unsigned char byte)
{
    char text[ESCAPED_SIZE];

    return buffer_append_text(buffer, escaped(byte, text));
}

int escape_append(struct buffer *buffer, const void *data, size_t size)
{
    const unsigned char *at = data;
    size_t start = 0, i = 0, length;
    uint32_t point;

    /* append printable runs at once, and other bytes one by one */
    while (i < size) {
        if (at[i] >= 0x20 && at[i] < 0x7f) { /* nearly always */
            i++;
            continue;
        }
        length = decode(at + i, size - i, &point);
        if (length > 0 && is_printable(point)) {
            i += length;
            continue;
        }
        if (buffer_append(buffer, at + start, i - start) != 0 ||
            append_escaped(buffer, at[i]) != 0) {
            return -1;
        }
        start = ++i;
    }
    return size > start ? buffer_append(buffer, at + start, size - start) : 0;
}

void escape_append_word(struct buffer *buffer, struct bytes word)
{
    /* a failed append marks the buffer */
    if (word.size > 0 && bytes_are_letters(word, "%+,-./:=@_")) {
        (void)buffer_append(buffer, word.data, word.size);
        return;
    }
    (void)buffer_append_text(buffer, "'");
    for (size_t i = 0; i < word.size; i++) {
        bool is_quote = word.data[i] == '\'';
        (void)buffer_append(buffer, is_quote ? "'\\''" : word.data + i, is_quote ? 4 : 1);
    }
    (void)buffer_append_text(buffer, "'");
}

static int append_json(struct buffer *buffer, uint32_t point)
{
    switch (point) {
    case '"':
    case '\\':
        return buffer_printf(buffer, "\\%c", (int)point);
    case '\n':
    case '\r':
    case '\t':
        return append_escaped(buffer, (unsigned char)point);
    default: /* none of the others is beyond U+FFFF */
        return buffer_printf(buffer, "\\u%04x", (unsigned)point);
    }
}

int escape_append_json(struct buffer *buffer, const void *data, size_t size)
{
    enum { REPLACEMENT = 0xfffd };
    const unsigned char *at = data;
    size_t start = 0, i = 0, length;
    uint32_t point;

    while (i < size) {
        length = decode(at + i, size - i, &point);
        if (length > 0 && is_printable(point) && point != '"' && point != '\\') {
            i += length;
            continue;
        }
        if (buffer_append(buffer, at + start, i - start) != 0 ||
            append_json(buffer, length > 0 ? point : REPLACEMENT) != 0) {
            return -1;
        }
        i += length > 0 ? length : 1;
        start = i;
    }
    return size > start ? buffer_append(buffer, at + start, size - start) : 0;
}

void escape_copy(struct bytes bytes, char *text, size_t size)
{
    const unsigned char *at = (const unsigned char *)bytes.data;
    size_t used = 0, step, length;
    uint32_t point;

    for (size_t i = 0; i < bytes.size; i += step) {
        char other[ESCAPED_SIZE];
        const char *shown = bytes.data + i;

        length = step = decode(at + i, bytes.size - i, &point);
        if (length == 0 || !is_printable(point)) {
            shown = escaped(at[i], other);
            length = strlen(shown);
            step = 1;
        }
        if (length >= size - used) {
            break;
        }
        memcpy(text + used, shown, length);
        used += length;
    }
    text[used] = '\0';
}
