/*
 * Single values of a reply, as Redis or the queue's functions answer them.
 */
#ifndef LEAT_REDIS_VALUE_H
#define LEAT_REDIS_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct redisReply;

/* The element of an array, or NULL. */
const struct redisReply *value_at(const struct redisReply *reply, size_t index);

/* False also for NULL, as below. */
bool value_is_string(const struct redisReply *value);

/* One without NUL: what is taken as a C string must not be cut by one. */
bool value_is_text(const struct redisReply *value);

/* A number from 0 on in an array: integers come as such, or as text where Lua's doubles would round
 * them. Returns 0 or -1. */
int value_number_at(const struct redisReply *reply, size_t index, int64_t *number);

/* Copies a string to *at, with a NUL behind it, and moves *at behind that. */
struct bytes value_put(char **at, const struct redisReply *value);

#endif
