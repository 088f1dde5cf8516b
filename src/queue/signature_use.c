/*
 * leat_once: records signatures as used (declared in queue/calls.h).
 */
#include <hiredis/hiredis.h>
#include <string.h>

#include "queue/calls.h"
#include "queue/replies.h"
#include "redis/value.h"

void queue_once_begin(struct command *command, const struct queue *queue)
{
    COMMAND_BEGIN(command, "FCALL", "leat_once", "2");
    queue_add_key(command, queue, "seen", "");
    queue_add_key(command, queue, "seen", "_until");
}

void queue_once_add(struct command *command, const struct task *task, struct bytes mark,
                    int64_t not_after_ms)
{
    COMMAND_ADD(command, task->token, task->tid);
    command_add_bytes(command, mark);
    command_add_number(command, not_after_ms);
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
    const char *answer = queue_speaks_protocol(reply) ? value_text_at(reply, index + 1) : NULL;
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
