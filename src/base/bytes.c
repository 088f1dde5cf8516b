/* Byte strings with a length. */
#include "base/bytes.h"

#include <string.h>

bool bytes_equal(struct bytes bytes, const char *text)
{
    return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

struct bytes bytes_of(const char *text)
{
    return (struct bytes){text ? text : "", text ? strlen(text) : 0};
}

void bytes_copy(struct bytes bytes, char *text, size_t size)
{
    size_t length = bytes.size < size ? bytes.size : size - 1;

    memcpy(text, bytes.data, length);
    text[length] = '\0';
}
