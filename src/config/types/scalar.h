/*
 * Parses values that own no memory: numbers, words and sets of exit codes.
 */
#ifndef LEAT_CONFIG_TYPES_SCALAR_H
#define LEAT_CONFIG_TYPES_SCALAR_H

#include "base/buffer.h"
#include "config/config.h"
#include "config/table.h"

/* Like value_set, for these types. */
int scalar_set(void *member, const struct table_row *row, const char *text, struct buffer *why);

bool config_codes_has(const struct config_codes *codes, int code);

/* Formats a limit of a number as leat.ini(5) has it: whole days are not summed up to weeks. */
void scalar_format_limit(const struct table_row *row, int64_t limit, char *text, size_t size);

#endif
