/*
 * Lists of names and values in replies, as JSON.
 */
#ifndef LEAT_VIEW_REPLY_JSON_H
#define LEAT_VIEW_REPLY_JSON_H

#include <jansson.h>

struct redisReply;

/* All members as a JSON object: a number if the name says so, or else text (see output_put_bytes).
 * Names are escaped. Returns NULL without memory. */
json_t *fields_json(const struct redisReply *fields);

/* The fields of a task as an array of {"name", "value"}. Returns NULL without memory. */
json_t *fields_pairs_json(const struct redisReply *fields);

#endif
