#include "queue/command.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"

/* The header "*N\r\n" is only known at the end; it is written right before the arguments, into
 * room kept for the longest one, so that nothing has to move. */
enum { HEADER_ROOM = 24 };

void command_begin(struct command *command)
{
    static const char room[HEADER_ROOM] = {0};

    buffer_clear(&command->wire);
    command->arguments = 0;
    (void)buffer_append(&command->wire, room, sizeof room); /* a failure stays marked */
}

void command_add(struct command *command, const void *data, size_t size)
{
    struct buffer *wire = &command->wire;
    char head[1 + UNITS_INTEGER_SIZE + 2] = "$";

    /* a failure stays marked in the buffer until command_finish */
    if (buffer_reserve(wire, sizeof head + size + 2)) {
        return;
    }
    size_t head_size = 1 + units_format_integer((int64_t)size, head + 1);
    head[head_size++] = '\r';
    head[head_size++] = '\n';
    (void)buffer_append(wire, head, head_size);
    (void)buffer_append(wire, data, size);
    (void)buffer_append(wire, "\r\n", 2);
    command->arguments++;
}

void command_add_text(struct command *command, const char *text)
{
    command_add(command, text, strlen(text));
}

void command_add_number(struct command *command, int64_t number)
{
    char text[UNITS_INTEGER_SIZE];
    command_add(command, text, units_format_integer(number, text));
}

int command_finish(struct command *command, const char **data, size_t *size)
{
    char header[HEADER_ROOM];
    int written = snprintf(header, sizeof header, "*%zu\r\n", command->arguments);

    if (command->wire.failed || command->arguments == 0 || written < 0 ||
        (size_t)written >= sizeof header) {
        return -1;
    }

    /* hiredis looks one byte beyond a command of a single argument */
    if (buffer_reserve(&command->wire, 1)) {
        return -1;
    }
    command->wire.data[command->wire.size] = '\0';

    char *start = command->wire.data + HEADER_ROOM - written;
    memcpy(start, header, (size_t)written);
    *data = start;
    *size = command->wire.size - (size_t)(start - command->wire.data);
    return 0;
}

void command_free(struct command *command)
{
    buffer_free(&command->wire);
    command->arguments = 0;
}

void command_wipe(struct command *command)
{
    if (command->wire.data) {
        explicit_bzero(command->wire.data, command->wire.capacity);
    }
    command_free(command);
}
