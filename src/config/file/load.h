/*
 * Creates a struct config from an INI file, by the table of keys (config/table.h). The struct is
 * immutable once loaded; a reload creates a new one.
 */
#ifndef LEAT_CONFIG_FILE_LOAD_H
#define LEAT_CONFIG_FILE_LOAD_H

#include <stddef.h>

#include "base/buffer.h"
#include "config/config.h"
#include "config/file/override.h"

/* Reads and checks the file. Returns 0, and the caller owns *config. On errors returns -1; errors
 * then has a line for each: "FILE:LINE: key: what is wrong; what to do". If memory ran out,
 * errors->failed is set, and lines may be missing. */
int config_load(const char *path, struct config **config, struct buffer *errors);

/* The same with settings that take precedence over the file. If path is NULL, no file is read and
 * all other keys have their defaults; queue and url must then be given. */
int config_load_given(const char *path, const struct config_given *given, struct config **config,
                      struct buffer *errors);

/* The same from memory, without the keys that sign tasks; path is only used in messages. */
int config_parse(const char *path, const char *text, size_t size, struct config **config,
                 struct buffer *errors);

void config_free(struct config *config);

/* Appends "[section] key, ..." for each key that a reload does not change and that does not have
 * its default. shared: only those that workers share, otherwise only those that take effect after a
 * restart. Returns 0, or -1 if memory ran out. */
int config_list_kept(const struct config *config, bool shared, struct buffer *keys);

/* Returns the configuration after a reload: reloadable keys from `fresh`, all others from
 * `current`. Takes ownership of fresh; current stays the caller's. lease_ms: the queue's. Appends a
 * line "[section] key: what it takes" to kept for each key that differs but keeps its value.
 * Returns NULL if memory ran out. */
struct config *config_merge(const struct config *current, struct config *fresh, int64_t lease_ms,
                            struct buffer *kept);

#endif
