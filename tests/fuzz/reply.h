/* Builds a tree of Redis replies from fuzz input, as hiredis would have read it from a server
 * that sends anything. */
#ifndef LEAT_FUZZ_REPLY_H
#define LEAT_FUZZ_REPLY_H

#include <hiredis/hiredis.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define REPLY_DEPTH 5

struct input {
    const uint8_t *data;
    size_t size;
};

static inline uint8_t input_byte(struct input *input)
{
    if (input->size == 0) {
        return 0;
    }
    input->size--;
    return *input->data++;
}

/* Text up to a zero byte or the end, because most replies have short texts or numbers. */
static inline size_t input_text(struct input *input, const char **text)
{
    const uint8_t *end = input->size ? memchr(input->data, 0, input->size) : NULL;
    size_t size = end ? (size_t)(end - input->data) : input->size;

    *text = (const char *)input->data;
    input->data += end ? size + 1 : size;
    input->size -= end ? size + 1 : size;
    return size;
}

static inline void reply_free(redisReply *reply)
{
    if (!reply) {
        return;
    }
    for (size_t i = 0; i < reply->elements; i++) {
        reply_free(reply->element[i]);
    }
    free(reply->element);
    free(reply->str);
    free(reply);
}

static inline redisReply *reply_grow(struct input *input, int depth)
{
    static const int types[] = {REDIS_REPLY_STRING, REDIS_REPLY_ARRAY,  REDIS_REPLY_INTEGER,
                                REDIS_REPLY_NIL,    REDIS_REPLY_STATUS, REDIS_REPLY_ERROR};
    redisReply *reply = calloc(1, sizeof *reply);
    uint8_t head = input_byte(input);
    const char *text = NULL;

    if (!reply) {
        abort();
    }
    reply->type = types[head % 6];
    if (reply->type == REDIS_REPLY_ARRAY) {
        reply->elements = depth > 0 && input->size ? head / 6U : 0;
        reply->element = calloc(reply->elements + 1, sizeof(redisReply *));
        if (!reply->element) {
            abort();
        }
        for (size_t i = 0; i < reply->elements; i++) {
            reply->element[i] = reply_grow(input, depth - 1);
        }
    } else if (reply->type == REDIS_REPLY_INTEGER) {
        for (int i = 0; i < head / 6 % 9; i++) {
            reply->integer =
                (long long)((unsigned long long)reply->integer << 8 | input_byte(input));
        }
    } else if (reply->type != REDIS_REPLY_NIL) {
        reply->len = input_text(input, &text);
        reply->str = malloc(reply->len + 1);
        if (!reply->str) {
            abort();
        }
        memcpy(reply->str, text, reply->len);
        reply->str[reply->len] = '\0';
    }
    return reply;
}

#endif
