/*
 * A growable byte string. If memory runs out, an append leaves the content unchanged and sets
 * failed. A caller may therefore append many pieces and check once at the end.
 */
#ifndef LEAT_BASE_BUFFER_H
#define LEAT_BASE_BUFFER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct buffer {
    char *data; /* owned; not NUL-terminated */
    size_t size;
    size_t capacity;
    bool failed;
};

#define BUFFER_INIT ((struct buffer){0})

/* Frees the content; the buffer is then empty and usable. */
void buffer_free(struct buffer *buffer);

/* Empties the buffer, keeps its memory, and clears failed. */
void buffer_clear(struct buffer *buffer);

/* Reserves memory for that many more bytes. Returns 0, or -1 and sets failed. */
int buffer_reserve(struct buffer *buffer, size_t more);

/* Each appends a copy. Returns 0, or -1 and sets failed. */
int buffer_append(struct buffer *buffer, const void *data, size_t size);
int buffer_append_text(struct buffer *buffer, const char *text);
int buffer_printf(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int buffer_vprintf(struct buffer *buffer, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* The content, until the next change. Its data is never NULL. */
struct bytes buffer_bytes(const struct buffer *buffer);

/* Removes that many bytes from the front; size must not exceed buffer->size. */
void buffer_consume(struct buffer *buffer, size_t size);

#endif
