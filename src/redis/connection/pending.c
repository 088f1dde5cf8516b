/* A ring of commands that wait for their answers. */
#include "redis/connection/pending.h"

#include <stdlib.h>

enum { SMALLEST = 16 };

static size_t place(const struct pending *pending, size_t index)
{
    return (pending->first + index) % pending->capacity;
}

static int grow(struct pending *pending)
{
    size_t capacity = pending->capacity ? pending->capacity * 2 : SMALLEST;
    struct pending_command *commands = calloc(capacity, sizeof *commands);
    if (!commands) {
        return -1;
    }
    for (size_t i = 0; i < pending->count; i++) {
        commands[i] = pending->commands[place(pending, i)];
    }
    free(pending->commands);
    pending->commands = commands;
    pending->first = 0;
    pending->capacity = capacity;
    return 0;
}

int pending_push(struct pending *pending, const struct pending_command *command)
{
    if (pending->count == pending->capacity && grow(pending)) {
        return -1;
    }
    pending->commands[place(pending, pending->count)] = *command;
    pending->count++;
    return 0;
}

void pending_unpush(struct pending *pending)
{
    pending->count--;
}

bool pending_settle(struct pending *pending, const struct redisReply *reply)
{
    if (pending->count == 0) {
        return false;
    }
    struct pending_command command = pending->commands[pending->first];
    pending->first = place(pending, 1);
    pending->count--;
    if (command.callback) {
        command.callback(command.context, reply);
    }
    return true;
}

void pending_tell(const struct pending *pending, const struct redisReply *reply)
{
    if (pending->count > 0) {
        struct pending_command command = pending->commands[pending->first];
        command.callback(command.context, reply);
    }
}

int64_t pending_deadline(const struct pending *pending)
{
    int64_t earliest = 0;
    for (size_t i = 0; i < pending->count; i++) {
        int64_t deadline_ns = pending->commands[place(pending, i)].deadline_ns;
        if (deadline_ns && (!earliest || deadline_ns < earliest)) {
            earliest = deadline_ns;
        }
    }
    return earliest;
}

void pending_free(struct pending *pending)
{
    free(pending->commands);
    *pending = (struct pending){0};
}
