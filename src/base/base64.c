/* Base64 encoding. */
#include "base/base64.h"

#include <stdlib.h>

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
