/* bare SOCKET STREAM: the least that a worker for a stream of commands does. It blocks on the
 * stream, starts the program of each entry, waits for its end, acknowledges the entry and deletes
 * it. It has no lease, retry or timeout, and reads neither output nor exit status: the floor of the
 * time from XADD to the first instruction. */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <hiredis/hiredis.h>

#include "start.h"

enum { WORDS_MOST = 32 };

static const char *stream;

static redisReply *next_reply(redisContext *redis)
{
    void *reply;
    if (redisGetReply(redis, &reply) != REDIS_OK) {
        errx(1, "Redis: %s", redis->errstr);
    }
    if (((redisReply *)reply)->type == REDIS_REPLY_ERROR) {
        errx(1, "Redis: %s", ((redisReply *)reply)->str);
    }
    return reply;
}

static void skip_reply(redisContext *redis)
{
    freeReplyObject(next_reply(redis));
}

static void append(redisContext *redis, const char *format, const char *first, const char *second)
{
    if (redisAppendCommand(redis, format, first, second) != REDIS_OK) {
        errx(1, "no memory");
    }
}

static void append_read(redisContext *redis)
{
    append(redis, "XREADGROUP GROUP bare one COUNT 1 BLOCK 0 STREAMS %s >", stream, NULL);
}

static redisContext *open_stream(const char *path)
{
    redisContext *redis = redisConnectUnix(path);
    if (!redis || redis->err) {
        errx(1, "%s: %s", path, redis ? redis->errstr : "no memory");
    }
    append(redis, "XGROUP CREATE %s bare 0 MKSTREAM", stream, NULL);
    skip_reply(redis);
    append_read(redis);
    return redis;
}

/* The entry in the reply of a read: its id, and its fields and values. */
static const redisReply *entry_of(const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 1) {
        errx(1, "unexpected reply");
    }
    return reply->element[0]->element[1]->element[0];
}

/* Starts the first field's value as a program and its arguments, which single spaces part, and
 * waits for its end. Changes the value. */
static void run(const redisReply *entry)
{
    char *words[WORDS_MOST + 1] = {NULL};
    size_t count = 0;
    int status;
    char *rest = entry->element[1]->element[1]->str;
    while (rest && count < WORDS_MOST) {
        words[count++] = strsep(&rest, " ");
    }
    if (waitpid(bench_start(words), &status, 0) < 0) {
        err(1, "waitpid");
    }
    if (status != 0) {
        errx(1, "the program failed: status %#x", (unsigned)status);
    }
}

/* Acknowledges, deletes and blocks again in one write. */
static void finish(redisContext *redis, const char *id)
{
    append(redis, "XACK %s bare %s", stream, id);
    append(redis, "XDEL %s %s", stream, id);
    append_read(redis);
    skip_reply(redis);
    skip_reply(redis);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        errx(2, "usage: bare SOCKET STREAM");
    }
    stream = argv[2];
    redisContext *redis = open_stream(argv[1]);
    for (;;) {
        redisReply *reply = next_reply(redis);
        const redisReply *entry = entry_of(reply);
        run(entry);
        finish(redis, entry->element[0]->str);
        freeReplyObject(reply);
    }
}
