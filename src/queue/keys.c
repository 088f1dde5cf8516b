/* Names the keys of a queue after its stream. */
#include "queue/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_slot.h"

static const char *const suffixes[QUEUE_KEYS] = {
    [QUEUE_KEY_STREAM] = "",          [QUEUE_KEY_BELL] = ":bell",
    [QUEUE_KEY_WAITING] = ":waiting", [QUEUE_KEY_DELAYED] = ":delayed",
    [QUEUE_KEY_NAMES] = ":names",     [QUEUE_KEY_CONF] = ":conf",
    [QUEUE_KEY_STATS] = ":stats",     [QUEUE_KEY_LANES] = ":lanes",
    [QUEUE_KEY_LANED] = ":laned",     [QUEUE_KEY_GO] = ":go",
    [QUEUE_KEY_RUNNING] = ":running", [QUEUE_KEY_DEAD] = ":dead",
    [QUEUE_KEY_WORKERS] = ":workers", [QUEUE_KEY_CANCEL] = ":cancel",
    [QUEUE_KEY_AWAITED] = ":awaited",
};

int queue_init(struct queue *queue, const char *stream, const char *group)
{
    *queue = (struct queue){0};
    bool tagged = hash_slot_is_tagged(stream);

    queue->group = strdup(group);
    queue->keys[QUEUE_KEY_STREAM] = strdup(stream);
    if (!queue->group || !queue->keys[QUEUE_KEY_STREAM]) {
        goto fail;
    }
    for (size_t i = 0; i < QUEUE_KEYS; i++) {
        if (i == QUEUE_KEY_STREAM) {
            continue;
        }
        if (asprintf(&queue->keys[i], "%s%s%s%s", tagged ? "" : "{", stream, tagged ? "" : "}",
                     suffixes[i]) < 0) {
            queue->keys[i] = NULL;
            goto fail;
        }
    }
    return 0;

fail:
    queue_free(queue);
    return -1;
}

void queue_free(struct queue *queue)
{
    free(queue->group);
    for (size_t i = 0; i < QUEUE_KEYS; i++) {
        free(queue->keys[i]);
    }
    *queue = (struct queue){0};
}

size_t queue_prefix_size(const struct queue *queue)
{
    return strlen(queue->keys[QUEUE_KEY_STATS]) - strlen("stats");
}

void queue_add_key(struct command *command, const struct queue *queue, const char *first,
                   const char *second)
{
    struct buffer key = BUFFER_INIT;
    if (buffer_append(&key, queue->keys[QUEUE_KEY_STATS], queue_prefix_size(queue)) ||
        buffer_append_text(&key, first) || buffer_append_text(&key, second)) {
        command->wire.failed = true; /* as for each argument that does not fit */
    } else {
        command_add(command, key.data, key.size);
    }
    buffer_free(&key);
}

void queue_begin(struct command *command, const struct queue *queue, const char *function,
                 size_t keys, size_t more)
{
    COMMAND_BEGIN(command, queue->read_only ? "FCALL_RO" : "FCALL", function);
    command_add_number(command, (int64_t)(keys + more));
    command_add_texts(command, (const char *const *)queue->keys, keys);
}
