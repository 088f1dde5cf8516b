/* Builds the calls for lists of producers, and reads their replies. */
#include "queue/lists.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <string.h>

#include "queue/replies.h"
#include "redis/value.h"

#define SCAN_COUNT 500 /* keys that one step examines, about */
#define CHANNEL "__redis__:invalidate"

/* ---- calls ---- */

void queue_intake(struct command *command, const struct queue *queue,
                  const struct queue_intake *intake)
{
    queue_begin(command, queue, "leat_intake", QUEUE_PRODUCER_KEYS, 1);
    command_add_bytes(command, intake->key);
    command_add_number(command, intake->most);
    command_add_text(command, intake->field);
    command_add_bytes(command, intake->lane);
    COMMAND_ADD(command, intake->unique ? "item" : "", intake->kind, intake->marks ? "1" : "");
}

void queue_preview(struct command *command, struct bytes key, const char *kind, int64_t most,
                   bool marks)
{
    COMMAND_BEGIN(command, "FCALL_RO", "leat_preview", "1");
    command_add_bytes(command, key);
    command_add_text(command, kind);
    command_add_number(command, most);
    command_add_text(command, marks ? "1" : "");
}

void queue_lists_turn(struct command *command, const struct queue *queue, int64_t period_ms,
                      bool busy)
{
    queue_begin(command, queue, "leat_lists_turn", QUEUE_PRODUCER_KEYS, 0);
    command_add_number(command, period_ms);
    command_add_text(command, busy ? "1" : "");
}

/* Escapes the characters that mean something in a pattern of Redis. */
static void add_pattern(struct command *command, const char *prefix)
{
    struct buffer pattern = BUFFER_INIT;
    for (; *prefix; prefix++) {
        if (strchr("*?[]^-\\", *prefix)) {
            (void)buffer_append_text(&pattern, "\\"); /* a failure marks the buffer */
        }
        (void)buffer_append(&pattern, prefix, 1);
    }
    (void)buffer_append_text(&pattern, "*");
    command->wire.failed |= pattern.failed;
    command_add(command, pattern.data, pattern.size);
    buffer_free(&pattern);
}

void queue_scan_lists(struct command *command, const char *cursor, const char *prefix)
{
    COMMAND_BEGIN(command, "SCAN", cursor, "MATCH");
    add_pattern(command, prefix);
    command_add_text(command, "COUNT");
    command_add_number(command, SCAN_COUNT);
    COMMAND_ADD(command, "TYPE", "list");
}

void queue_type(struct command *command, struct bytes key)
{
    COMMAND_BEGIN(command, "TYPE");
    command_add_bytes(command, key);
}

void queue_list_length(struct command *command, struct bytes key)
{
    COMMAND_BEGIN(command, "LLEN");
    command_add_bytes(command, key);
}

void queue_watch_listen(struct command *command)
{
    COMMAND_BEGIN(command, "SUBSCRIBE", CHANNEL);
}

void queue_watch_begin(struct command *command, int64_t listener)
{
    COMMAND_BEGIN(command, "CLIENT", "TRACKING", "ON", "REDIRECT");
    command_add_number(command, listener);
    COMMAND_ADD(command, "OPTIN", "NOLOOP");
}

void queue_watch_next(struct command *command)
{
    COMMAND_BEGIN(command, "CLIENT", "CACHING", "YES");
}

/* ---- replies ---- */

int queue_intake_read(const redisReply *reply, struct queue_intake_reply *out)
{
    int64_t full = 0;
    *out = (struct queue_intake_reply){0};
    if (!queue_speaks_protocol(reply) || value_number_at(reply, 1, &out->taken) ||
        value_number_at(reply, 2, &out->added) || value_number_at(reply, 3, &out->left) ||
        value_number_at(reply, 4, &full)) {
        return value_malformed();
    }
    out->full = full != 0;
    return 0;
}

int queue_lists_turn_read(const redisReply *reply, int64_t *wait_ms)
{
    return queue_speaks_protocol(reply) && value_number_at(reply, 1, wait_ms) == 0
               ? 0
               : value_malformed();
}

int queue_scan_lists_read(const redisReply *reply, char cursor[QUEUE_CURSOR_SIZE],
                          void (*key)(void *context, struct bytes key), void *context)
{
    const redisReply *next = value_at(reply, 0), *keys = value_at(reply, 1);
    if (!value_is_string(next) || next->len >= QUEUE_CURSOR_SIZE || !value_are_strings(keys)) {
        return value_malformed();
    }
    memcpy(cursor, next->str, next->len);
    cursor[next->len] = '\0';
    for (size_t i = 0; i < keys->elements; i++) {
        key(context, (struct bytes){keys->element[i]->str, keys->element[i]->len});
    }
    return 0;
}

int queue_list_length_read(const redisReply *reply, int64_t *length)
{
    if (!reply || reply->type != REDIS_REPLY_INTEGER || reply->integer < 0) {
        return value_malformed();
    }
    *length = reply->integer;
    return 0;
}

int queue_watch_read(const redisReply *reply,
                     void (*changed)(void *context, const struct bytes *key), void *context)
{
    const redisReply *what = value_at(reply, 0), *keys = value_at(reply, 2);
    if (value_is_string(what) && strcmp(what->str, "subscribe") == 0) {
        return 1;
    }
    if (!value_is_string(what) || strcmp(what->str, "message") != 0 || !keys) {
        return value_malformed();
    }
    if (keys->type == REDIS_REPLY_NIL) {
        changed(context, NULL);
        return 0;
    }
    if (!value_are_strings(keys)) {
        return value_malformed();
    }
    for (size_t i = 0; i < keys->elements; i++) {
        struct bytes key = {keys->element[i]->str, keys->element[i]->len};
        changed(context, &key);
    }
    return 0;
}
