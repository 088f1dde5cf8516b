/* A growable byte string. */
#include "base/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALLEST = 64 };

void buffer_free(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = BUFFER_INIT;
}

void buffer_clear(struct buffer *buffer)
{
    buffer->size = 0;
    buffer->failed = false;
}

int buffer_reserve(struct buffer *buffer, size_t more)
{
    size_t needed, capacity;
    char *data;

    /* after a failure nothing is appended: a later, smaller piece would leave a gap */
    if (buffer->failed) {
        return -1;
    }
    if (__builtin_add_overflow(buffer->size, more, &needed) || needed > PTRDIFF_MAX) {
        goto fail;
    }
    if (needed <= buffer->capacity) {
        return 0;
    }

    /* grow by at least half, so that appending byte by byte takes linear time */
    if (__builtin_add_overflow(buffer->capacity, buffer->capacity / 2, &capacity)) {
        capacity = needed;
    }
    if (capacity < needed) {
        capacity = needed;
    }
    if (capacity < SMALLEST) {
        capacity = SMALLEST;
    }
    data = realloc(buffer->data, capacity);
    if (!data) {
        goto fail;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return 0;

fail:
    buffer->failed = true;
    return -1;
}

int buffer_append(struct buffer *buffer, const void *data, size_t size)
{
    bool fits = !buffer->failed && size <= buffer->capacity - buffer->size; /* nearly always */

    if (!fits && buffer_reserve(buffer, size) != 0) {
        return -1;
    }
    if (size > 0) {
        memcpy(buffer->data + buffer->size, data, size);
    }
    buffer->size += size;
    return 0;
}

int buffer_append_text(struct buffer *buffer, const char *text)
{
    return buffer_append(buffer, text, strlen(text));
}

int buffer_printf(struct buffer *buffer, const char *format, ...)
{
    va_list arguments;
    int result;

    va_start(arguments, format);
    result = buffer_vprintf(buffer, format, arguments);
    va_end(arguments);
    return result;
}

int buffer_vprintf(struct buffer *buffer, const char *format, va_list arguments)
{
    int length;

    if (buffer->failed) {
        return -1;
    }

    /* try with the available memory, and again when the needed size is known; vsnprintf also writes
     * a final NUL, which is not part of the content */
    for (int round = 0; round < 2; round++) {
        size_t room = buffer->capacity - buffer->size;
        va_list again;

        va_copy(again, arguments);
        length = vsnprintf(room > 0 ? buffer->data + buffer->size : NULL, room, format, again);
        va_end(again);
        if (length < 0) {
            break;
        }
        if ((size_t)length < room) {
            buffer->size += (size_t)length;
            return 0;
        }
        if (buffer_reserve(buffer, (size_t)length + 1) != 0) {
            return -1;
        }
    }
    buffer->failed = true;
    return -1;
}

struct bytes buffer_bytes(const struct buffer *buffer)
{
    return (struct bytes){buffer->data ? buffer->data : "", buffer->size};
}

void buffer_consume(struct buffer *buffer, size_t size)
{
    if (size == 0) {
        return;
    }
    buffer->size -= size;
    memmove(buffer->data, buffer->data + size, buffer->size);
}
