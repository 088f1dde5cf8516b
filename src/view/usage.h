/*
 * Resources that a task has used, as its worker reported: "cpu_us 1200 max_rss 4096 …".
 */
#ifndef LEAT_VIEW_USAGE_H
#define LEAT_VIEW_USAGE_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buffer.h"
#include "queue/task.h"

/* Returns an object of numbers, up to the first part of another form. NULL without memory. */
json_t *usage_json(struct bytes usage);

/* The number of an item, such as "cpu_us", or -1. The text is NUL-terminated. */
int64_t usage_item(struct bytes usage, const char *name);

/* Writes a number of bytes for people: "3.4M"; size ≥ 32. */
void usage_format_size(int64_t bytes, char *text, size_t size);

/* Appends "cpu 1.2 s, memory 34M, …", or nothing if nothing is known. A failed append marks the
 * buffer. */
void usage_append(struct buffer *out, struct bytes usage);

#endif
