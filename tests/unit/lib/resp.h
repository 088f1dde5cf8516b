/* Replies for tests, written as RESP and read by hiredis as from a socket. */
#ifndef LEAT_TESTS_RESP_H
#define LEAT_TESTS_RESP_H

#include <hiredis/hiredis.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

/* The reply, to be freed with freeReplyObject; ends the test program if it is not exactly one. */
static inline redisReply *resp_parse(const char *text, size_t size)
{
    void *reply = NULL;
    redisReader *reader = redisReaderCreate();
    if (!reader || redisReaderFeed(reader, text, size) != REDIS_OK ||
        redisReaderGetReply(reader, &reply) != REDIS_OK || !reply || reader->pos != reader->len) {
        abort();
    }
    redisReaderFree(reader);
    return reply;
}

#define RESP(text) resp_parse(text, sizeof text - 1)

/* Appends a bulk string; failures show when the whole is parsed. */
static inline void resp_bulk(struct buffer *out, const void *data, size_t size)
{
    (void)buffer_printf(out, "$%zu\r\n", size);
    (void)buffer_append(out, data, size);
    (void)buffer_append(out, "\r\n", 2);
}

static inline void resp_text(struct buffer *out, const char *text)
{
    resp_bulk(out, text, strlen(text));
}

/* Parses what was built and frees it. */
static inline redisReply *resp_take(struct buffer *out)
{
    redisReply *reply = resp_parse(out->data, out->size);
    buffer_free(out);
    return reply;
}

#endif
