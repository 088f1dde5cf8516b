/*
 * leat_once: records signatures as used (declared in queue/calls.h).
 */
#include <hiredis/hiredis.h>
#include <string.h>

#include "queue/calls.h"
#include "queue/replies.h"

/* Adds the key "{queue}:" and that name. */
static void add_key(struct command *command, const struct queue *queue, const char *name)
{
    const char *stats = queue->keys[QUEUE_KEY_STATS];
    struct buffer key = BUFFER_INIT;
    if (buffer_append(&key, stats, strlen(stats) - strlen("stats")) ||
        buffer_append_text(&key, name)) {
        command->wire.failed = true; /* as for each argument that does not fit */
    } else {
        command_add(command, key.data, key.size);
    }
    buffer_free(&key);
}

void queue_once_begin(struct command *command, const struct queue *queue)
{
    command_begin(command);
    command_add_text(command, "FCALL");
    command_add_text(command, "leat_once");
    command_add_number(command, 2);
    add_key(command, queue, "seen");
    add_key(command, queue, "seen_until");
}

void queue_once_add(struct command *command, const struct task *task, struct bytes mark,
                    int64_t not_after_ms)
{
    command_add_text(command, task->token);
    command_add_text(command, task->tid);
    command_add(command, mark.data, mark.size);
    command_add_number(command, not_after_ms);
}

/* The text at that index, or NULL if there is none or it contains NUL. */
static const char *text_at(const redisReply *reply, size_t index)
{
    const redisReply *value = index < reply->elements ? reply->element[index] : NULL;
    if (!value || (value->type != REDIS_REPLY_STRING && value->type != REDIS_REPLY_STATUS) ||
        strlen(value->str) != value->len) {
        return NULL;
    }
    return value->str;
}

int queue_once_read(const redisReply *reply, size_t index, enum queue_once *once, const char **tid)
{
    static const struct {
        const char *word;
        enum queue_once once;
    } words[] = {{"ok", QUEUE_ONCE_OK},
                 {"late", QUEUE_ONCE_LATE},
                 {"far", QUEUE_ONCE_FAR},
                 {"forged", QUEUE_ONCE_FORGED}};
    *tid = "";
    if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements < 1 ||
        reply->element[0]->type != REDIS_REPLY_INTEGER ||
        reply->element[0]->integer != QUEUE_PROTOCOL) {
        return -1;
    }
    const char *answer = text_at(reply, index + 1);
    for (size_t i = 0; answer && i < sizeof words / sizeof *words; i++) {
        if (strcmp(answer, words[i].word) == 0) {
            *once = words[i].once;
            return 0;
        }
    }
    if (!answer || strncmp(answer, "seen ", 5) != 0) {
        return -1;
    }
    *once = QUEUE_ONCE_SEEN;
    *tid = answer + 5;
    return 0;
}
