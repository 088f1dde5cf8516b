/*
 * Values of keys: from text into struct config, compared, copied and freed, by the row's type.
 */
#ifndef LEAT_CONFIG_TYPES_VALUE_H
#define LEAT_CONFIG_TYPES_VALUE_H

#include "base/buffer.h"
#include "config/config.h"
#include "config/table.h"

/* Reads text into the row's member. name: the key as it was given, or what NAME is in its section,
 * which rows for any name need. Returns 0, or -1; why then says what is wrong and what to do, or is
 * failed for want of memory. It never repeats free text, which may be a secret. */
int value_set(struct config *config, const struct table_row *row, const char *name,
              const char *text, struct buffer *why);

/* True where both hold the same. */
bool value_equal(const struct config *a, const struct config *b, const struct table_row *row);

/* Makes the member of `to` a copy of that of `from`. Returns 0, or -1 without memory. */
int value_copy(struct config *to, const struct config *from, const struct table_row *row);

/* Frees what the member owns, wiped. */
void value_free(struct config *config, const struct table_row *row);

#endif
