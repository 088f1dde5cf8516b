/*
 * Makes a struct config from an INI file, which is read through one table (config/table.h). The
 * struct is immutable once loaded; a reload makes a new one.
 */
#ifndef LEAT_CONFIG_FILE_LOAD_H
#define LEAT_CONFIG_FILE_LOAD_H

#include <stddef.h>

#include "base/buffer.h"
#include "config/config.h"
#include "config/file/override.h"

/* Reads and checks the file. On success the caller owns *config and the result is 0. Otherwise -1,
 * and errors holds every error found, a line each: "FILE:LINE: what is wrong; what to do". */
int config_load(const char *path, struct config **config, struct buffer *errors);

/* The same with what is given. path NULL: no file is read, and all else is at its default; queue
 * and url are then set. */
int config_load_given(const char *path, const struct config_given *given, struct config **config,
                      struct buffer *errors);

/* The same from memory, without keys; path is only for messages. */
int config_parse(const char *path, const char *text, size_t size, struct config **config,
                 struct buffer *errors);

void config_free(struct config *config);

/* The struct that the daemon goes on with after a reload: from `fresh` all that is reloadable, the
 * rest from `current`. Takes ownership of fresh and frees it; current stays the caller's. Keys that
 * differ but need a restart are listed in needs_restart as "[section] key" lines. Returns NULL
 * without memory. */
struct config *config_merge(const struct config *current, struct config *fresh,
                            struct buffer *needs_restart);

#endif
