/*
 * Rows of {name, value …} in the queue's replies: what leat_status, leat_list and leat_show answer.
 * Members that are missing or of another type read as empty or 0, so that other versions' rows
 * still show.
 */
#ifndef LEAT_CLI_LIB_REPLY_FIELDS_H
#define LEAT_CLI_LIB_REPLY_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "queue/task.h"

struct redisReply;

/* A string's bytes; empty for anything else. They live as long as the reply. */
struct bytes fields_value(const struct redisReply *value);

/* A number, or a string that is one; else otherwise. */
int64_t fields_integer(const struct redisReply *value, int64_t otherwise);

/* Members by name. */
struct bytes fields_bytes(const struct redisReply *record, const char *name);
int64_t fields_number(const struct redisReply *record, const char *name, int64_t otherwise);

/* "MS" or "MS BY", as conf has of a gate: since when it is closed, or 0; *by points into the value,
 * and is empty where it does not say. by may be NULL. */
int64_t fields_stamp(struct bytes value, struct bytes *by);

/* Pairs in the record, and name and value of each. */
size_t fields_count(const struct redisReply *record);
struct bytes fields_name_at(const struct redisReply *record, size_t index);
const struct redisReply *fields_value_at(const struct redisReply *record, size_t index);

/* All of it as a JSON object: numbers where the name promises one, text otherwise (see
 * output_json_bytes). Returns NULL without memory. */
json_t *fields_json(const struct redisReply *record);

#endif
