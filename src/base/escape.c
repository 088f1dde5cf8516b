#include "base/escape.h"

#include <stdbool.h>
#include <stdint.h>

/* Separators of lines and paragraphs, and what makes text run the other way: with those a line
 * could show as something else than it is. */
static bool turns_text(uint32_t point)
{
    return (point >= 0x200e && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2066 && point <= 0x2069) || point == 0x061c;
}

/* Length of the valid UTF-8 sequence beyond ASCII at the front that shows as something; 0 where
 * there is none. */
static size_t printable_length(const unsigned char *at, size_t size)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t point;
    size_t length;

    if (at[0] >= 0xf8 || at[0] < 0xc0) {
        return 0;
    }
    length = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (length > size) {
        return 0;
    }
    point = at[0] & (0x7fU >> length);
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
        point = point << 6 | (at[i] & 0x3fU);
    }

    /* overlong forms, surrogates, what lies past Unicode, and the C1 controls, which terminals obey
     */
    if (point < smallest[length] || (point >= 0xd800 && point <= 0xdfff) || point > 0x10ffff) {
        return 0;
    }
    return point < 0xa0 || turns_text(point) ? 0 : length;
}

static int append_escaped(struct buffer *buffer, unsigned char byte)
{
    switch (byte) {
    case '\n':
        return buffer_append_text(buffer, "\\n");
    case '\r':
        return buffer_append_text(buffer, "\\r");
    case '\t':
        return buffer_append_text(buffer, "\\t");
    default:
        return buffer_printf(buffer, "\\x%02x", byte);
    }
}

int escape_append(struct buffer *buffer, const void *data, size_t size)
{
    const unsigned char *at = data;
    size_t start = 0, i = 0, length;

    /* printable stretches go in whole, the rest byte by byte */
    while (i < size) {
        if (at[i] >= 0x20 && at[i] < 0x7f) {
            i++;
            continue;
        }
        length = printable_length(at + i, size - i);
        if (length > 0) {
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
