/*
 * The keys that tasks are signed with: where they are kept, and reading them.
 */
#ifndef LEAT_CONFIG_TYPES_KEYS_H
#define LEAT_CONFIG_TYPES_KEYS_H

#include "base/buffer.h"
#include "config/config.h"
#include "config/report.h"
#include "config/table.h"

#define KEYS_NAME_MOST 64
#define KEYS_LEAST 32 /* bytes of a key */

/* Makes *list the words of text: NAME:FILE, or for credentials NAME[:CREDENTIAL]. Returns 0, or -1
 * with the reason in why, as value_set. */
int keys_set(char ***list, const char *text, bool files, struct buffer *why);

/* Whether a key of the list (NULL: empty) has that name. */
bool keys_in_list(char *const *list, const char *name, size_t length);

/* Appends NAME:KEY to the list (NULL while empty). entry is NAME:FILE. Returns 0, or -1 with the
 * reason in why. */
int keys_read_file(char ***secrets, const char *entry, struct buffer *why);

/* The same for one key of the config, by its name (NULL: the first). Returns 1, 0 where it has no
 * such key, or -1 with the reason in why. */
int keys_read(const struct config_security *security, const char *name, char ***secrets,
              struct buffer *why);

/* Reads all keys of the config into security->secrets; what is wrong is reported. */
void keys_load(struct config_security *security, const struct ini_places *places,
               struct report *report);

#endif
