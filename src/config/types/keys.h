/*
 * Reads the keys that sign tasks, from files and systemd credentials.
 */
#ifndef LEAT_CONFIG_TYPES_KEYS_H
#define LEAT_CONFIG_TYPES_KEYS_H

#include <stdbool.h>

#include "base/buffer.h"
#include "config/config.h"
#include "config/report.h"
#include "config/table.h"

#define KEYS_NAME_MOST 64
#define KEYS_LEAST 32 /* minimum bytes of a key */

/* Fills the empty *list with the words of text: NAME:FILE, or NAME[:CREDENTIAL] for credentials.
 * Returns 0, or -1 with the reason in why, like value_set. */
int keys_set(char ***list, const char *text, bool files, struct buffer *why);

/* Appends NAME:KEY to the list (NULL if empty). entry is NAME:FILE. Returns 0, or -1 with the
 * reason in why. */
int keys_read_file(char ***secrets, const char *entry, struct buffer *why);

/* The same for the key of the config with that name (NULL: the first key). Returns 1, or 0 if there
 * is no such key, or -1 with the reason in why. */
int keys_read(const struct config_security *security, const char *name, char ***secrets,
              struct buffer *why);

/* Reads all keys of the config into security->secrets and reports errors. skip_credentials: leaves
 * out those of credentials. */
void keys_load(struct config_security *security, bool skip_credentials,
               const struct key_lines *lines, struct report *report);

#endif
