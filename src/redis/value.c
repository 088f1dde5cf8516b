/* Reads single values of replies. */
#include "redis/value.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
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

static bool are_all(const redisReply *list, bool (*is_fine)(const redisReply *value))
{
    bool fine = list && list->type == REDIS_REPLY_ARRAY;
    for (size_t i = 0; fine && i < list->elements; i++) {
        fine = is_fine(list->element[i]);
    }
    return fine;
}

bool value_are_strings(const redisReply *list)
{
    return are_all(list, value_is_string);
}

bool value_are_texts(const redisReply *list)
{
    return are_all(list, value_is_text);
}

const char *value_text_at(const redisReply *reply, size_t index)
{
    const redisReply *value = value_at(reply, index);
    return value_is_text(value) ? value->str : NULL;
}

int value_malformed(void)
{
    errno = EPROTO;
    return -1;
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

/* Adds copies of all elements; copy has none yet. */
static int copy_elements(const redisReply *value, redisReply *copy)
{
    copy->element = calloc(value->elements + 1, sizeof(redisReply *));
    while (copy->element && copy->elements < value->elements) {
        redisReply *element = value_duplicate(value->element[copy->elements]);
        if (!element) {
            return -1;
        }
        copy->element[copy->elements++] = element;
    }
    return copy->element ? 0 : -1;
}

/* hiredis bounds how deep arrays are nested. */
redisReply *value_duplicate(const redisReply *value)
{
    redisReply *copy = malloc(sizeof *copy);

    if (!copy) {
        return NULL;
    }
    *copy = *value;
    copy->str = NULL;
    copy->element = NULL;
    copy->elements = 0;
    if (value->str) {
        copy->str = malloc(value->len + 1);
    }
    if (copy->str) {
        memcpy(copy->str, value->str, value->len + 1);
    }
    if ((value->str && !copy->str) || (value->element && copy_elements(value, copy) != 0)) {
        freeReplyObject(copy);
        return NULL;
    }
    return copy;
}

struct bytes value_put(char **at, const redisReply *value)
{
    struct bytes bytes = {.data = *at, .size = value->len};
    memcpy(*at, value->str, value->len);
    (*at)[value->len] = '\0';
    *at += value->len + 1;
    return bytes;
}
