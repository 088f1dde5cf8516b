/*
 * Lists of names and values in replies.
 */
#include "view/reply_fields.h"

#include <string.h>

#include <hiredis/hiredis.h>

#include "base/units.h"

struct bytes fields_value(const struct redisReply *value)
{
    if (value && (value->type == REDIS_REPLY_STRING || value->type == REDIS_REPLY_STATUS)) {
        return (struct bytes){value->str, (size_t)value->len};
    }
    return (struct bytes){"", 0};
}

int64_t fields_bounded(int64_t number)
{
    const int64_t most = INT64_C(1) << 58;

    return number > most ? most : number < -most ? -most : number;
}

int64_t fields_integer(const struct redisReply *value, int64_t fallback)
{
    int64_t number;

    if (value && value->type == REDIS_REPLY_INTEGER) {
        return fields_bounded(value->integer);
    }
    if (value && value->type == REDIS_REPLY_STRING &&
        units_parse_integer(value->str, 0, INT64_MAX, &number) == 0) {
        return fields_bounded(number);
    }
    return fallback;
}

size_t fields_count(const struct redisReply *fields)
{
    return fields && fields->type == REDIS_REPLY_ARRAY ? fields->elements / 2 : 0;
}

struct bytes fields_name_at(const struct redisReply *fields, size_t index)
{
    return fields_value(fields->element[index * 2]);
}

const struct redisReply *fields_value_at(const struct redisReply *fields, size_t index)
{
    return fields->element[index * 2 + 1];
}

const struct redisReply *fields_find(const struct redisReply *fields, const char *name)
{
    for (size_t i = 0; i < fields_count(fields); i++) {
        if (bytes_equal(fields_name_at(fields, i), name)) {
            return fields_value_at(fields, i);
        }
    }
    return NULL;
}

struct bytes fields_bytes(const struct redisReply *fields, const char *name)
{
    return fields_value(fields_find(fields, name));
}

int64_t fields_number(const struct redisReply *fields, const char *name, int64_t fallback)
{
    return fields_integer(fields_find(fields, name), fallback);
}

int64_t fields_stamp(struct bytes value, struct bytes *by)
{
    const char *blank = value.size > 0 ? memchr(value.data, ' ', value.size) : NULL;
    size_t size = blank ? (size_t)(blank - value.data) : value.size;
    char number[32];
    int64_t ms;

    bytes_copy((struct bytes){value.data, size}, number, sizeof number);
    if (by) {
        *by = blank ? (struct bytes){blank + 1, value.size - size - 1} : (struct bytes){"", 0};
    }
    return units_parse_integer(number, 0, INT64_MAX, &ms) == 0 ? fields_bounded(ms) : 0;
}
