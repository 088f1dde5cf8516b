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

bool bytes_are_letters(struct bytes bytes, const char *others)
{
    for (size_t i = 0; i < bytes.size; i++) {
        char c = bytes.data[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!letter && (c == '\0' || !strchr(others, c))) {
            return false;
        }
    }
    return true;
}

int bytes_compare(struct bytes left, struct bytes right)
{
    size_t common = left.size < right.size ? left.size : right.size;
    int order = common > 0 ? memcmp(left.data, right.data, common) : 0;

    return order != 0 ? order : (left.size > right.size) - (left.size < right.size);
}

size_t bytes_whole(const char *text, size_t size, size_t limit)
{
    size_t back = 0;
    unsigned char lead;

    /* look for a lead byte among the last three whose sequence is longer than the rest of the text
     */
    while (size >= limit && back < 4 && back < size) {
        lead = (unsigned char)text[size - 1 - back];
        back++;
        if ((lead & 0xc0) == 0x80) {
            continue;
        }
        if ((lead >= 0xf0 && lead < 0xf8 && back < 4) ||
            (lead >= 0xe0 && lead < 0xf0 && back < 3) ||
            (lead >= 0xc0 && lead < 0xe0 && back < 2)) {
            return size - back;
        }
        break;
    }
    return size;
}
