/* Deletes the keys of a queue. */
#include "queue/removal.h"

#include <string.h>

#define SCAN_COUNT "1000"

static const char *const kept[] = {"result:", "output:"};

void removal_unlink_begin(struct command *command)
{
    COMMAND_BEGIN(command, "UNLINK");
}

void removal_unlink(struct command *command, const struct queue *queue)
{
    static const char *const more[] = {"seen", "seen_until", "history"};

    removal_unlink_begin(command);
    for (size_t i = 0; i < QUEUE_KEYS; i++) {
        command_add_text(command, queue->keys[i]);
    }
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        queue_add_key(command, queue, more[i], "");
    }
}

void removal_scan(struct command *command, const struct queue *queue, const char *cursor)
{
    const char *prefix = queue->keys[QUEUE_KEY_STATS];
    struct buffer pattern = BUFFER_INIT;

    /* a failed append marks the buffer */
    for (size_t i = 0; i < queue_prefix_size(queue); i++) {
        (void)buffer_append_text(&pattern, strchr("*?[]^\\", prefix[i]) ? "\\" : "");
        (void)buffer_append(&pattern, prefix + i, 1);
    }
    (void)buffer_append_text(&pattern, "*:*");
    COMMAND_BEGIN(command, "SCAN", cursor, "COUNT", SCAN_COUNT, "MATCH");
    if (pattern.failed) {
        command->wire.failed = true; /* as for each argument that does not fit */
    } else {
        command_add(command, pattern.data, pattern.size);
    }
    buffer_free(&pattern);
}

/* Whether the text is "*", or the id of a task. */
static bool is_owner(const char *text, size_t size)
{
    size_t ms = size, all = size;

    if (size == 1 && *text == '*') {
        return true;
    }
    for (size_t i = size; i-- > 0;) {
        all = text[i] == '-' || (text[i] >= '0' && text[i] <= '9') ? all : i;
        ms = text[i] == '-' ? i : ms;
    }
    return all == size && ms > 0 && ms + 1 < size;
}

/* Another queue may have a name that begins like such a key, so what follows must be an id. */
bool removal_is_kept(const struct queue *queue, struct bytes key)
{
    const char *prefix = queue->keys[QUEUE_KEY_STATS];
    size_t size = queue_prefix_size(queue);

    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        size_t start = size + strlen(kept[i]);
        if (key.size > start && memcmp(key.data, prefix, size) == 0 &&
            memcmp(key.data + size, kept[i], start - size) == 0 &&
            is_owner(key.data + start, key.size - start)) {
            return true;
        }
    }
    return false;
}
