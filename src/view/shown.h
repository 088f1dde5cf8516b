/*
 * What leat list, leat top and the board show of a row of leat_list that a row of JSON does not
 * have word for word.
 */
#ifndef LEAT_VIEW_SHOWN_H
#define LEAT_VIEW_SHOWN_H

#include <jansson.h>

#include "base/buffer.h"

struct redisReply;

/* Appends why a task failed: "exit 3", "timeout", … A failed append marks the buffer. */
void shown_append_cause(struct bytes cause, struct bytes status, struct buffer *out);

/* Appends how a task of the history ended: "succeeded", "cancelled", "dead: exit 3". A failed
 * append marks the buffer. */
void shown_append_end(const struct redisReply *row, struct buffer *out);

/* The row as rows_json has it. That of an ended task has a member `end` besides, which is the text
 * of shown_append_end. Returns NULL without memory. */
json_t *shown_row(const struct redisReply *row);

#endif
