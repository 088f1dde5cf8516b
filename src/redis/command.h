/*
 * One Redis command in wire form, built argument by argument; arguments are bytes. A failed
 * allocation marks the buffer failed; command_finish reports it.
 */
#ifndef LEAT_REDIS_COMMAND_H
#define LEAT_REDIS_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/bytes.h"

struct command {
    struct buffer wire; /* room for the header, then the arguments */
    size_t arguments;
};

/* Starts a new command in the memory of an earlier one. A zeroed struct is ready for this. */
void command_begin(struct command *command);
void command_add(struct command *command, const void *data, size_t size);
void command_add_bytes(struct command *command, struct bytes bytes);
void command_add_text(struct command *command, const char *text);
void command_add_texts(struct command *command, const char *const *texts, size_t count);

/* Starts a new command with these words. */
void command_begin_texts(struct command *command, const char *const *texts, size_t count);
#define COMMAND_BEGIN(command, ...)                                                                \
    command_begin_texts((command), (const char *const[]){__VA_ARGS__},                             \
                        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* Adds these texts. */
#define COMMAND_ADD(command, ...)                                                                  \
    command_add_texts((command), (const char *const[]){__VA_ARGS__},                               \
                      sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

void command_add_number(struct command *command, int64_t number);

/* Sets *data to the bytes to send, valid until the next change; size does not count the NUL that
 * follows them. Returns 0, or -1 if there was no memory for any part. */
int command_finish(struct command *command, const char **data, size_t *size);

void command_free(struct command *command);

/* Overwrites and frees a command that held a password. */
void command_wipe(struct command *command);

#endif
