/*
 * Parses, compares, copies and frees values in struct config by the type of their row.
 */
#ifndef LEAT_CONFIG_TYPES_VALUE_H
#define LEAT_CONFIG_TYPES_VALUE_H

#include "base/buffer.h"
#include "config/config.h"
#include "config/table.h"

/* Parses text into the member of the row. name is the key as written, or the NAME of a section like
 * [command.NAME]; rows for several names need it. Returns 0, or -1: why then says what is wrong and
 * what to do, or why->failed is set if memory ran out. why never repeats free text, which may be a
 * secret. */
int value_set(struct config *config, const struct table_row *row, const char *name,
              const char *text, struct buffer *why);

/* True if both have the same value. */
bool value_equal(const struct config *a, const struct config *b, const struct table_row *row);

/* Replaces the member of `to` by a copy of that of `from`. Returns 0, or -1 if memory ran out. */
int value_copy(struct config *to, const struct config *from, const struct table_row *row);

/* Wipes and frees the memory that the member owns. */
void value_free(struct config *config, const struct table_row *row);

#endif
