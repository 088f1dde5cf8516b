/* Reads single values of replies. */
#include "redis/value.h"

#include <hiredis/hiredis.h>
#include <string.h>

#include "base/units.h"

const redisReply *value_at(const redisReply *reply, size_t index)
{
    return reply && reply->type == REDIS_REPLY_ARRAY && index < reply->elements
               ? reply->element[index]
               : NULL;
}

bool value_is_string(const redisReply *value)
{
    return value && (value->type == REDIS_REPLY_STRING || value->type == REDIS_REPLY_STATUS);
}

bool value_is_text(const redisReply *value)
{
    return value_is_string(value) && strlen(value->str) == value->len;
}

int value_number_at(const redisReply *reply, size_t index, int64_t *number)
{
    const redisReply *value = value_at(reply, index);
    if (value && value->type == REDIS_REPLY_INTEGER) {
        *number = value->integer;
        return value->integer < 0 ? -1 : 0;
    }
    return value_is_text(value) ? units_parse_integer(value->str, 0, INT64_MAX, number) : -1;
}

struct bytes value_put(char **at, const redisReply *value)
{
    struct bytes bytes = {.data = *at, .size = value->len};
    memcpy(*at, value->str, value->len);
    (*at)[value->len] = '\0';
    *at += value->len + 1;
    return bytes;
}
