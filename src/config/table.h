/*
 * The table of all keys: what a file may say, and where in struct config it goes.
 */
#ifndef LEAT_CONFIG_TABLE_H
#define LEAT_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/table_type.h"

/* One row of the table, for the tests of manuals and examples, and for the reload. */
struct config_key {
    const char *section;
    const char *name;
    const char *type;          /* "duration", "size", "integer", "text", "boolean", "codes", … */
    const char *default_value; /* as written in a file; "" where there is none */
    bool reloadable;
    const char *help;
};

struct table_row {
    struct config_key key;
    enum table_type type;
    size_t offset;            /* into struct config */
    size_t size;              /* of the member */
    int64_t low, high, scale; /* of numbers; scale: milliseconds in a unit of the member */
    const struct table_word *words;
};

enum { TABLE_ROWS = 128 };

extern const struct table_row table[TABLE_ROWS];

/* The lines of the file in which keys stand; 0: it has none. */
struct ini_places {
    size_t keys[TABLE_ROWS];
    size_t last_line;
};

/* Whether a file's section is that one of the table's. */
bool table_is_section(const char *known, const char *section);

/* What follows the dot in the name of a section that the table has for any NAME ("command.NAME"),
 * or NULL. */
const char *table_section_name(const char *section);

/* The row of that key, or NULL. */
const struct table_row *table_find(const char *section, const char *name);

/* True where it stands for keys of several names, or its key may be repeated. */
bool table_is_open(const struct table_row *row);

/* The row's number. */
size_t table_index(const struct table_row *row);

/* True where the table has such a section. */
bool table_has_section(const char *section);

/* What somebody who wrote that key probably meant, or NULL: the same name in another section, or
 * the nearest name in this one, or else in any. */
const struct table_row *table_nearest(const char *section, const char *name);

/* The section that is nearest to a wrong one, or NULL. */
const char *table_nearest_section(const char *section);

/* Row number index, or NULL past the end. */
const struct config_key *config_key_at(size_t index);

#endif
