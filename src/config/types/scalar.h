/*
 * Values that are numbers, words or sets of exit codes: from text into the member of a row.
 */
#ifndef LEAT_CONFIG_TYPES_SCALAR_H
#define LEAT_CONFIG_TYPES_SCALAR_H

#include "base/buffer.h"
#include "config/config.h"
#include "config/table.h"

/* As value_set, for the types that own no memory. */
int scalar_set(void *member, const struct table_row *row, const char *text, struct buffer *why);

bool config_codes_has(const struct config_codes *codes, int code);

#endif
