/* Builds one Redis command in wire form. */
#include "redis/command.h"

#include <string.h>

#include "base/units.h"

/* The header "*N\r\n" is known only at the end. Room for the longest one is kept before the
 * arguments, so that writing it moves nothing. */
enum { HEADER_ROOM = 24 };

void command_begin(struct command *command)
{
    static const char room[HEADER_ROOM] = {0};

    buffer_clear(&command->wire);
    command->arguments = 0;
    (void)buffer_append(&command->wire, room,
                        sizeof room); /* a failed reservation marks the buffer */
}

void command_add(struct command *command, const void *data, size_t size)
{
    struct buffer *wire = &command->wire;

    /* a failed append marks the buffer until command_finish */
    if (buffer_reserve(wire, size + 1 + UNITS_INTEGER_SIZE + 2 + 2)) {
        return;
    }
    char *end = wire->data + wire->size;
    *end++ = '$';
    end += units_format_integer((int64_t)size, end);
    end = mempcpy(end, "\r\n", 2);
    end = size > 0 ? mempcpy(end, data, size) : end;
    end = mempcpy(end, "\r\n", 2);
    wire->size = (size_t)(end - wire->data);
    command->arguments++;
}

void command_add_bytes(struct command *command, struct bytes bytes)
{
    command_add(command, bytes.data, bytes.size);
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
    char header[HEADER_ROOM + UNITS_INTEGER_SIZE] = "*";
    size_t written = 1 + units_format_integer((int64_t)command->arguments, header + 1);

    header[written++] = '\r';
    header[written++] = '\n';
    if (command->wire.failed || command->arguments == 0 || written > HEADER_ROOM) {
        return -1;
    }

    /* hiredis looks one byte beyond a command of a single argument */
    if (buffer_reserve(&command->wire, 1)) {
        return -1;
    }
    command->wire.data[command->wire.size] = '\0';

    char *start = command->wire.data + HEADER_ROOM - written;
    memcpy(start, header, written);
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

void command_add_texts(struct command *command, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        command_add_text(command, texts[i]);
    }
}

void command_begin_texts(struct command *command, const char *const *texts, size_t count)
{
    command_begin(command);
    command_add_texts(command, texts, count);
}
