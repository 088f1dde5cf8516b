/*
 * One Redis command in wire form, built argument by argument; arguments are bytes. A failed
 * allocation marks the buffer failed; command_finish reports it.
 */
#ifndef LEAT_REDIS_COMMAND_H
#define LEAT_REDIS_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct command {
    struct buffer wire; /* room for the header, then the arguments */
    size_t arguments;
};

/* Begins anew, keeping the memory of an earlier command. A zeroed struct is ready for this. */
void command_begin(struct command *command);
void command_add(struct command *command, const void *data, size_t size);
void command_add_text(struct command *command, const char *text);
void command_add_texts(struct command *command, const char *const *texts, size_t count);

/* Begins it with these words. */
void command_begin_texts(struct command *command, const char *const *texts, size_t count);
void command_add_number(struct command *command, int64_t number);

/* The bytes to send, valid until the next change, with a NUL behind them that is not counted.
 * Returns 0, or -1 without memory. */
int command_finish(struct command *command, const char **data, size_t *size);

void command_free(struct command *command);

/* Frees what held a password: overwritten first. */
void command_wipe(struct command *command);

#endif
