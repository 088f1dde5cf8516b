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

/* Writes the group that files with secrets should have, so that this process can read them: its
 * own, or leat for root, who can read them anyway. */
#define SECRET_GROUP_SIZE 64
void secret_group(char *name, size_t size);

#endif
