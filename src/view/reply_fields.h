/*
 * Lists of names and values in replies of leat_status, leat_list and leat_show. A member that is
 * missing or of another type reads as empty or 0, so that replies of other versions still show.
 */
#ifndef LEAT_VIEW_REPLY_FIELDS_H
#define LEAT_VIEW_REPLY_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/task.h"

struct redisReply;

/* The bytes of a string; empty for any other type. They live as long as the reply. */
struct bytes fields_value(const struct redisReply *value);

/* The number, or the nearest one of which sums and differences of some fit into 64 bits. Whoever
 * can write to Redis can choose numbers. */
int64_t fields_bounded(int64_t number);

/* The value of a number, or of a string that is one; fallback for anything else. */
int64_t fields_integer(const struct redisReply *value, int64_t fallback);

/* The value of a member, or NULL. */
const struct redisReply *fields_find(const struct redisReply *fields, const char *name);

/* The value of a member. */
struct bytes fields_bytes(const struct redisReply *fields, const char *name);
int64_t fields_number(const struct redisReply *fields, const char *name, int64_t fallback);

/* Splits "MS BY" or "MS", which is the value of a pause or a drain. Returns MS, or 0. *by points
 * into the value, or is empty; by may be NULL. */
int64_t fields_stamp(struct bytes value, struct bytes *by);

/* The number of members, and the name and the value of each. */
size_t fields_count(const struct redisReply *fields);
struct bytes fields_name_at(const struct redisReply *fields, size_t index);
const struct redisReply *fields_value_at(const struct redisReply *fields, size_t index);

#endif
