/*
 * The table of all keys of a configuration file, and where in struct config their values go.
 */
#ifndef LEAT_CONFIG_TABLE_H
#define LEAT_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/table_type.h"

/* The part of a row that manuals, leat help ini and the reload need. */
struct config_key {
    const char *section;
    const char *name;
    const char *type;          /* "duration", "size", "integer", "text", "boolean", "codes", … */
    const char *default_value; /* as written in a file; "" if there is none */
    bool reloadable;
    const char *help;
};

struct table_row {
    struct config_key key;
    enum table_type type;
    size_t offset;            /* offset of the member in struct config */
    size_t size;              /* size of the member */
    int64_t low, high, scale; /* for numbers; scale: milliseconds per unit of the member */
    const struct table_word *words;
};

enum { TABLE_ROWS = 141 };

extern const struct table_row table[TABLE_ROWS];

/* The line of each key in the file; 0: the file does not have the key. */
struct key_lines {
    size_t keys[TABLE_ROWS];
    size_t last_line;
};

/* True if `section` of a file is the section `known` of the table. */
bool table_is_section(const char *known, const char *section);

/* The part after the dot in the name of a section like [command.NAME], or NULL for other
 * sections. */
const char *table_section_name(const char *section);

/* The row of that key, or NULL. */
const struct table_row *table_find(const char *section, const char *name);

/* True if workers share the value: Redis has it, and the file only sets it for the first worker. */
bool table_is_shared(const struct table_row *row);

/* True if the row is for keys of several names, or if its key may be repeated. */
bool table_is_open(const struct table_row *row);

/* The index of the row. */
size_t table_index(const struct table_row *row);

/* True if the table has such a section. */
bool table_has_section(const char *section);

/* The row that was probably meant by that key, or NULL: the same name in another section, the
 * nearest name in this section, or the nearest in any. */
const struct table_row *table_nearest(const char *section, const char *name);

/* The section that was probably meant by an unknown one, or NULL. */
const char *table_nearest_section(const char *section);

/* The key of that row, or NULL past the end. */
const struct config_key *config_key_at(size_t index);

#endif
