/* Base64 encoding. */
#include "base/base64.h"

#include <stdlib.h>
#include <string.h>

char *base64_encode(const void *data, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *in = data;
    char *text = malloc((size + 2) / 3 * 4 + 1), *at = text;
    if (!text) {
        return NULL;
    }
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        unsigned group = (unsigned)in[i] << 16 | (left > 1 ? (unsigned)in[i + 1] << 8 : 0) |
                         (left > 2 ? in[i + 2] : 0);
        *at++ = digits[group >> 18];
        *at++ = digits[group >> 12 & 63];
        *at++ = (char)(left > 1 ? digits[group >> 6 & 63] : '=');
        *at++ = (char)(left > 2 ? digits[group & 63] : '=');
    }
    *at = '\0';
    return text;
}

/* ---- decoding */

static int digit_value(char letter)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = letter ? strchr(digits, letter) : NULL;

    return at ? (int)(at - digits) : -1;
}

int base64_decode(const char *text, size_t size, struct buffer *out)
{
    size_t padding = size > 0 && text[size - 1] == '=' ? 1 : 0;

    if (padding > 0 && size > 1 && text[size - 2] == '=') {
        padding = 2;
    }
    if (size % 4 != 0) {
        return -1;
    }
    for (size_t i = 0; i < size; i += 4) {
        size_t kept = i + 4 == size ? 3 - padding : 3;
        unsigned group = 0;
        for (size_t j = 0; j < 4; j++) {
            int value = j > kept ? 0 : digit_value(text[i + j]);
            if (value < 0) {
                return -1;
            }
            group = group << 6 | (unsigned)value;
        }
        const char bytes[] = {(char)(group >> 16 & 255), (char)(group >> 8 & 255),
                              (char)(group & 255)};
        if (buffer_append(out, bytes, kept) != 0) {
            return -1;
        }
    }
    return 0;
}
