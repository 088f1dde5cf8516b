/*
 * Reads single values of a reply, as Redis or the queue's functions answer them.
 */
#ifndef LEAT_REDIS_VALUE_H
#define LEAT_REDIS_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct redisReply;

/* The element of an array; NULL if reply is no array or is shorter. */
const struct redisReply *value_at(const struct redisReply *reply, size_t index);

/* These two return false for NULL, too. */
bool value_is_string(const struct redisReply *value);

/* Whether it is a string without NUL, so that a C string holds all of it. */
bool value_is_text(const struct redisReply *value);

/* Whether it is an array of such values. */
bool value_are_strings(const struct redisReply *list);
bool value_are_texts(const struct redisReply *list);

/* The text at that place of an array, or NULL. */
const char *value_text_at(const struct redisReply *reply, size_t index);

/* Sets errno to EPROTO, for a reply of another form. Returns -1. */
int value_malformed(void);

/* Reads a number ≥ 0 from an array. Functions send large integers as text, since Lua's doubles
 * would round them. Returns 0 or -1. */
int value_number_at(const struct redisReply *reply, size_t index, int64_t *number);

/* Copies a reply with all its elements, so that it outlives the callback that got it. Returns it,
 * for freeReplyObject, or NULL without memory. */
struct redisReply *value_duplicate(const struct redisReply *value);

/* Copies a string and a NUL to *at, and moves *at past them. */
struct bytes value_put(char **at, const struct redisReply *value);

#endif
