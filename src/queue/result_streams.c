/* Builds the commands for results and live output of single tasks, and reads their replies. */
#include "queue/result_streams.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "redis/value.h"

static const char *const names[] = {[QUEUE_RESULT] = "result:", [QUEUE_OUTPUT] = "output:"};

static void add_key(struct command *command, const struct queue *queue, enum queue_kept kind,
                    const char *tid)
{
    queue_add_key(command, queue, names[kind], tid);
}

/* ---- writing ---- */

static void add_number(struct command *command, const char *name, int64_t number)
{
    command_add_text(command, name);
    command_add_number(command, number);
}

static void add_verdict(struct command *command, const struct queue_output *output)
{
    COMMAND_ADD(command, "ended", output->verdict, "how", output->how);
    if (output->delay_ms > 0) {
        add_number(command, "delay_ms", output->delay_ms);
    }
}

void queue_output(struct command *command, const struct queue *queue,
                  const struct queue_output *output, int64_t keep_ms)
{
    COMMAND_BEGIN(command, "FCALL", "leat_output", "1");
    add_key(command, queue, QUEUE_OUTPUT, output->tid);
    command_add_number(command, keep_ms);
    add_number(command, "attempt", output->attempt);
    add_number(command, "fence", output->fence);
    add_number(command, "offset", output->offset);
    if (output->dropped > 0) {
        add_number(command, "dropped", output->dropped);
    }
    if (output->worker) {
        COMMAND_ADD(command, "worker", output->worker);
    }
    if (output->number > 0) {
        add_number(command, "fd", output->number);
        command_add_text(command, "data");
        command_add_bytes(command, output->data);
    }
    if (output->verdict) {
        add_verdict(command, output);
    }
}

int queue_output_read(const struct redisReply *reply, const char **error)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        *error = reply->str;
        return -1;
    }
    return 0;
}

/* ---- reading ---- */

void queue_read(struct command *command, const struct queue *queue,
                const struct queue_source *sources, size_t count, int64_t most, int64_t block_ms)
{
    COMMAND_BEGIN(command, "XREAD", "COUNT");
    command_add_number(command, most);
    if (block_ms > 0) {
        command_add_text(command, "BLOCK");
        command_add_number(command, block_ms);
    }
    command_add_text(command, "STREAMS");
    for (size_t i = 0; i < count; i++) {
        add_key(command, queue, sources[i].kind, sources[i].tid);
    }
    for (size_t i = 0; i < count; i++) {
        command_add_text(command, sources[i].after);
    }
}

static bool is_entry(const redisReply *value)
{
    return value->type == REDIS_REPLY_ARRAY && value->elements == 2 &&
           value_is_text(value->element[0]) && value_are_strings(value->element[1]) &&
           value->element[1]->elements % 2 == 0;
}

/* Finds whose stream a key is. */
static bool find_source(const struct queue *queue, const redisReply *key, struct queue_entry *entry)
{
    size_t prefix = queue_prefix_size(queue);
    if (!value_is_text(key) || strncmp(key->str, queue->keys[QUEUE_KEY_STATS], prefix) != 0) {
        return false;
    }
    for (int kind = QUEUE_RESULT; kind <= QUEUE_OUTPUT; kind++) {
        size_t size = strlen(names[kind]);
        if (strncmp(key->str + prefix, names[kind], size) == 0) {
            entry->kind = (enum queue_kept)kind;
            entry->tid = key->str + prefix + size;
            return true;
        }
    }
    return false;
}

/* [[key, [[id, fields], …]], …]. Without `entry` it only checks. */
static int walk(const struct queue *queue, const redisReply *reply,
                void (*entry)(void *context, const struct queue_entry *entry), void *context)
{
    int count = 0;
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *stream = reply->element[i];
        struct queue_entry one;
        if (stream->type != REDIS_REPLY_ARRAY || stream->elements != 2 ||
            !find_source(queue, stream->element[0], &one) ||
            stream->element[1]->type != REDIS_REPLY_ARRAY) {
            return -1;
        }
        for (size_t j = 0; j < stream->element[1]->elements; j++, count++) {
            const redisReply *value = stream->element[1]->element[j];
            if (!is_entry(value)) {
                return -1;
            }
            one.id = value->element[0]->str;
            one.fields = value->element[1];
            if (entry) {
                entry(context, &one);
            }
        }
    }
    return count;
}

int queue_read_entries(const struct queue *queue, const struct redisReply *reply,
                       void (*entry)(void *context, const struct queue_entry *entry), void *context)
{
    if (reply->type == REDIS_REPLY_NIL) {
        return 0;
    }
    if (reply->type != REDIS_REPLY_ARRAY || walk(queue, reply, NULL, NULL) < 0) {
        return -1;
    }
    return walk(queue, reply, entry, context);
}
