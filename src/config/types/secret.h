/*
 * Reads secrets from files and systemd credentials: passwords and keys.
 */
#ifndef LEAT_CONFIG_TYPES_SECRET_H
#define LEAT_CONFIG_TYPES_SECRET_H

#include <stdbool.h>

#include "base/buffer.h"

/* Reads the file, without a final newline. If must_be_private is set, a file that others can
 * access, or that its group can write, is an error. Returns the text, which the caller wipes and
 * frees, or NULL with the reason in why. */
char *secret_read_file(const char *path, bool must_be_private, struct buffer *why);

/* The same for a file of $CREDENTIALS_DIRECTORY. */
char *secret_read_credential(const char *name, struct buffer *why);

/* Appends the command that leaves a file with a secret to its owner and to the group of this
 * process. Root does not know the group of the queue's user. A failed append marks the buffer. */
void secret_advise(struct buffer *text, const char *path);

#endif
