/*
 * The head of the screen of a queue: its state and the reasons, numbers, rates and times.
 */
#ifndef LEAT_CLI_TOP_HEADER_H
#define LEAT_CLI_TOP_HEADER_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/buffer.h"

/* The time at the queue's Redis, as far as it is known: Unix ms. */
int64_t header_now_ms(const json_t *summary);

/* Appends the lines, from watched_summary or watched_page. A failed append marks the buffer. */
void header_render(const json_t *summary, size_t width, bool color, struct buffer *out);

#endif
